"""Corruption beside imagecorruptions: speed, and PSNR against the original where the constants are the same.

    python -m tests.bench_corrupt           both tables, on the photographs of scikit-image and scikit-learn
    python -m tests.bench_corrupt --means   mean PSNR and SSIM of every corruption and severity (the README)

Needs scikit-image, scikit-learn and imagecorruptions (pip install --no-deps imagecorruptions; it wants pkg_resources of
setuptools below 81, and is helped here over what SciPy and scikit-image have since removed).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import scipy
from numpy.typing import NDArray

from hoicli.corruption import CORRUPTIONS, corrupt
from hoicli.corruption.constants import REFERENCE_SIDE, SEVERITIES
from hoicli.corruption.quality import Original
from tests.test_corruption_quality import PHOTOS, photograph

Image = NDArray[np.uint8]

THEIR_NAMES = {
    "motion_blur": "motion_blur",
    "defocus_blur": "defocus_blur",
    "gaussian_blur": "gaussian_blur",
    "glass_blur": "glass_blur",
    "gaussian_noise": "gaussian_noise",
    "shot_noise": "shot_noise",
    "salt_pepper_noise": "impulse_noise",
    "jpeg": "jpeg_compression",
    "speckle_noise": "speckle_noise",
    "elastic": "elastic_transform",
    "pixelate": "pixelate",
    "zoom_blur": "zoom_blur",
}
OTHERWISE = {
    "glass_blur": "theirs drifts; see optical.glass_blur",
    "pixelate": "a pixel halfway between two blocks shows the mean it went into",
    "zoom_blur": "more layers from severity 3 on; see constants",
}
"""Where ours is different on purpose."""


def imagecorruptions() -> Any:
    """The package, with what it imports and calls by names that are gone."""
    import skimage.filters

    moved = types.ModuleType("scipy.ndimage.interpolation")
    vars(moved)["map_coordinates"] = importlib.import_module("scipy.ndimage").map_coordinates
    sys.modules.setdefault("scipy.ndimage.interpolation", moved)
    if not hasattr(np, "float_"):
        vars(np)["float_"] = np.float64
    gaussian: Any = skimage.filters.gaussian

    def older(*arguments: Any, multichannel: bool = False, **options: Any) -> Any:
        return gaussian(*arguments, **({"channel_axis": -1} if multichannel else {}), **options)

    skimage.filters.gaussian = older
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("imagecorruptions")
    finally:
        skimage.filters.gaussian = gaussian


def photographs() -> dict[str, Image]:
    """RGB, the longer side at most REFERENCE_SIDE."""
    photos = {name: photograph(name, REFERENCE_SIDE) for name in PHOTOS}
    return {name: np.ascontiguousarray(np.broadcast_to(p, (*p.shape[:2], 3))) for name, p in photos.items()}


def timed(work: Callable[[], Image], repeat: int) -> tuple[float, Image]:
    """(the best time of so many, the last result)."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def compare(repeat: int) -> None:
    """A row for each corruption that both have: the mean time of a picture, and the PSNRs."""
    theirs = imagecorruptions()
    cv2.setNumThreads(1)
    photos = photographs()
    print("| corruption | hoicli ms | imagecorruptions ms | times faster | PSNR hoicli | PSNR imagecorruptions | "
          "largest difference of a severity | |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")  # fmt: skip
    for name, their_name in THEIR_NAMES.items():
        times = np.zeros((2, len(SEVERITIES), len(photos)))
        psnr = np.zeros_like(times)
        for column, (photo_name, photo) in enumerate(photos.items()):
            original = Original(photo)
            for row, severity in enumerate(SEVERITIES):

                def our_way(photo: Image = photo, severity: int = severity, photo_name: str = photo_name) -> Image:
                    return corrupt(photo, name, severity, image_id=photo_name)  # noqa: B023 (called at once)

                def their_way(photo: Image = photo, severity: int = severity) -> Image:
                    made: Image = theirs.corrupt(photo, corruption_name=their_name, severity=severity)  # noqa: B023
                    return made

                for side, work in enumerate((our_way, their_way)):
                    slow = side == 1 and name == "glass_blur"
                    times[side, row, column], result = timed(work, 1 if slow else repeat)
                    psnr[side, row, column] = original.psnr(result)
        ours_ms, theirs_ms = (1000 * times[side].mean() for side in (0, 1))
        means = psnr.mean(axis=2)
        difference = np.abs(means[0] - means[1]).max()
        print(
            f"| {name} | {ours_ms:.1f} | {theirs_ms:.1f} | {theirs_ms / ours_ms:.1f} | {means[0].mean():.2f} | "
            f"{means[1].mean():.2f} | {difference:.2f} | {OTHERWISE.get(name, '')} |",
            flush=True,
        )


def grid() -> None:
    """How long the whole command takes for 100 files a photograph."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = []
        for file, photo in photographs().items():
            cv2.imwrite(str(folder / f"{Path(file).stem}.jpg"), cv2.cvtColor(photo, cv2.COLOR_RGB2BGR))
            boxes = [[20, 20, 120, 200], [50, 80, 240, 230]]
            lines.append({"image_id": file, "file_name": f"{Path(file).stem}.jpg", "boxes": boxes})
        (folder / "gt.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        for jobs in dict.fromkeys((1, len(os.sched_getaffinity(0)))):
            out = folder / f"out{jobs}"
            command = [
                sys.executable,
                "-m",
                "hoicli",
                "corrupt",
                "--images",
                name,
                "--out",
                str(out),
                "--jobs",
                str(jobs),
            ]
            for what in ("made", "there already"):
                start = time.perf_counter()
                subprocess.run([*command, str(folder / "gt.jsonl")], stdout=subprocess.DEVNULL, check=True)
                seconds = time.perf_counter() - start
                print(f"{jobs} processes, {100 * len(lines)} files {what}: {100 * len(lines) / seconds:.0f} files/s")
        size = sum(path.stat().st_size for path in out.rglob("*.jpg")) / (100 * len(lines))
        print(f"{size / 1000:.0f} kB a file")


def means() -> None:
    """A table of mean PSNR and SSIM for each corruption and severity."""
    photos = photographs()
    print("| corruption | PSNR 1 | 2 | 3 | 4 | 5 | SSIM 1 | 2 | 3 | 4 | 5 |\n| --- |" + " ---: |" * 10)
    for name in CORRUPTIONS:
        values = np.zeros((len(photos), 2, len(SEVERITIES)))
        for row, (photo_name, photo) in enumerate(photos.items()):
            original = Original(photo)
            for column, severity in enumerate(SEVERITIES):
                result = corrupt(photo, name, severity, image_id=photo_name)
                values[row, :, column] = original.psnr(result), original.ssim(result)
        psnr, ssim = values.mean(axis=0)
        cells = [f"{value:.1f}" for value in psnr] + [f"{value:.2f}" for value in ssim]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure hoicli corrupt beside imagecorruptions.")
    parser.add_argument("--means", action="store_true", help="mean PSNR and SSIM instead")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    if options.means:
        means()
        return
    print(f"{len(PHOTOS)} photographs, longer side at most {REFERENCE_SIDE}; best of {options.repeat}")
    versions = f"OpenCV {cv2.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    print(f"{versions}, Python {platform.python_version()}\n")
    compare(options.repeat)
    print()
    grid()


if __name__ == "__main__":
    main()
