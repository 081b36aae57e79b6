"""The page's part on corruptions: beside imagecorruptions, in speed and in PSNR against the original, and the command.

    python -m tests.bench.corrupt    milliseconds of every corruption and severity (docs/benchmarks.md)

Needs scikit-image, scikit-learn and imagecorruptions (pip install --no-deps imagecorruptions; it wants pkg_resources of
setuptools below 81, and is helped here over what SciPy and scikit-image have since removed).
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hoicli.corruption.catalogue import HOICLI_1, IMAGENET_C, RECIPES, REFERENCE_SIDE, ROHOI, SEVERITIES
from hoicli.corruption.effects import EFFECTS, corrupt, draw
from hoicli.corruption.images import Picture, decoded_pixels, encode
from hoicli.corruption.pixels import resize_image
from hoicli.corruption.quality import Original
from hoicli.io.memory import keep_memory
from tests.bench.measuring import HOICLI, PYTHON, Options, Process, Table, say
from tests.support.pictures import PHOTOS, photograph

Image = NDArray[np.uint8]

PUBLISHED = RECIPES[IMAGENET_C]
"""Beside theirs: the constants are the same."""
PICTURES = "corrupt_pictures"
FILES = len(ROHOI) * len(SEVERITIES)
HEADER = ("corruption", "hoicli ms", "imagecorruptions ms", "times ours", "PSNR hoicli", "PSNR imagecorruptions",
          "largest difference of a severity", "")  # fmt: skip

THEIR_NAMES = {
    "motion_blur": "motion_blur", "defocus_blur": "defocus_blur", "gaussian_blur": "gaussian_blur",
    "glass_blur": "glass_blur", "gaussian_noise": "gaussian_noise", "shot_noise": "shot_noise",
    "salt_pepper_noise": "impulse_noise", "jpeg": "jpeg_compression", "speckle_noise": "speckle_noise",
    "elastic": "elastic_transform", "pixelate": "pixelate", "zoom_blur": "zoom_blur",
}  # fmt: skip
OTHERWISE = {
    "glass_blur": "theirs drifts; 0.1 to 2.6 by photograph and severity",
    "pixelate": "a pixel halfway between two blocks shows the mean it went into",
    "salt_pepper_noise": "whole pixels; theirs single channels",
    "zoom_blur": "about the exact centre",
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


def prepare(options: Options) -> None:
    """The photographs as JPEGs, and records of them with two boxes each; nothing corrupted yet."""
    imagecorruptions()  # to say so before the work, where it is not installed
    folder = options.folder / PICTURES
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    lines = []
    for file, photo in photographs().items():
        name = f"{file.split('.')[0]}.jpg"
        cv2.imwrite(str(folder / name), cv2.cvtColor(photo, cv2.COLOR_RGB2BGR))
        lines.append({"image_id": file, "file_name": name, "boxes": [[20, 20, 120, 200], [50, 80, 240, 230]]})
    (folder / "gt.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def processes(options: Options) -> list[Process]:
    """The whole command on every photograph, corruption and severity. What is made once is there the second time."""
    folder = options.folder / PICTURES
    floor = f"floor: JPEGs decoded, and encoded {FILES} times"
    rows = [
        Process(name, (*PYTHON, "-m", "tests.bench.floor", what, str(folder), str(FILES)))
        for name, what in ((floor, "images"), ("the same, and each file decoded again", "read"))
    ]
    for jobs in (1, 2):
        out = ("--images", str(folder), "--save-images", str(folder / f"out{jobs}"))
        command = (*HOICLI, "corrupt", *out, "--jobs", str(jobs), str(folder / "gt.jsonl"))
        rows.append(Process(f"corrupt --jobs {jobs}", command, floor, once=True))
        rows.append(Process(f"corrupt --jobs {jobs}, again", command, floor, once=True))
    return rows


def facts(options: Options) -> str:
    made = [path.stat().st_size for path in (options.folder / PICTURES / "out1").rglob("*.jpg")]
    return (
        f"{len(PHOTOS)} photographs of scikit-image and scikit-learn, longer side at most {REFERENCE_SIDE}; "
        f"{len(made):,} files of {np.mean(made) / 1000:.0f} kB; the second table: one picture in memory, one thread, "
        f"the mean over photographs and severities, best of {options.repeat}"
    )


def photographs() -> dict[str, Image]:
    """RGB, the longer side at most REFERENCE_SIDE."""
    photos = {name: photograph(name, REFERENCE_SIDE) for name in PHOTOS}
    return {name: np.ascontiguousarray(np.broadcast_to(p, (*p.shape[:2], 3))) for name, p in photos.items()}


def timed(work: Callable[[], Image], repeat: int) -> tuple[float, Image]:
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def comparison(options: Options) -> Table:
    """A row for each corruption that both have: the mean time of a picture, and the PSNRs."""
    theirs = imagecorruptions()
    cv2.setNumThreads(1)
    photos = photographs()
    rows: list[tuple[str, ...]] = []
    for name, their_name in THEIR_NAMES.items():
        times = np.zeros((2, len(SEVERITIES), len(photos)))
        psnr = np.zeros_like(times)
        for column, (photo_name, photo) in enumerate(photos.items()):
            original = Original(photo)
            for row, severity in enumerate(SEVERITIES):

                def our_way(photo: Image = photo, severity: int = severity, photo_name: str = photo_name) -> Image:
                    return corrupt(photo, name, severity, image_id=photo_name, recipe=PUBLISHED)  # noqa: B023

                def their_way(photo: Image = photo, severity: int = severity) -> Image:
                    made: Image = theirs.corrupt(photo, corruption_name=their_name, severity=severity)  # noqa: B023
                    return made

                for side, work in enumerate((our_way, their_way)):
                    slow = side == 1 and name == "glass_blur"
                    times[side, row, column], result = timed(work, 1 if slow else options.repeat)
                    psnr[side, row, column] = original.psnr(result)
        ours_ms, theirs_ms = (1000 * times[side].mean() for side in (0, 1))
        means = psnr.mean(axis=2)
        difference = np.abs(means[0] - means[1]).max()
        times_ours = f"{theirs_ms / ours_ms:.1f}"
        psnrs = (f"{means[0].mean():.2f}", f"{means[1].mean():.2f}", f"{difference:.2f}")
        rows.append((name, f"{ours_ms:.1f}", f"{theirs_ms:.1f}", times_ours, *psnrs, OTHERWISE.get(name, "")))
        say(f"  {ours_ms:8.1f} ms  {theirs_ms:8.1f} ms  {name}")
    return Table(HEADER, rows, frozenset({0, len(HEADER) - 1}))


def costs() -> Table:
    """Milliseconds of processor time for one picture of 640 x 480, and what every file takes besides."""
    cv2.setNumThreads(1)
    keep_memory()
    photo = resize_image(photographs()["astronaut.png"], 480, 640, cv2.INTER_AREA)
    picture = Picture(photo, "JPEG", {})
    original = Original(photo)
    rows = []
    besides = np.zeros(3)
    for name, effect in EFFECTS.items():
        drawn = draw(name, photo.shape, image_id="", seed=0)
        cells = [processor_time(draw, name, photo.shape, image_id="", seed=0)[0]]
        for severity in SEVERITIES:
            seconds, made = processor_time(effect.apply, photo, drawn, *HOICLI_1.level(name, severity))
            cells.append(seconds)
            encoding, data = processor_time(encode, picture, made)
            decoding, seen = processor_time(decoded_pixels, picture, made, data)
            judged = processor_time(original.psnr, seen)[0] + processor_time(original.ssim, seen)[0]
            besides += (encoding, decoding, judged)
        rows.append((name, *(f"{1000 * seconds:.1f}" for seconds in cells)))
    each = besides / (len(EFFECTS) * len(SEVERITIES))
    for what, seconds in zip(("JPEG encoded", "JPEG decoded", "PSNR and SSIM"), each, strict=True):
        rows.append((f"{what}, a file", f"{1000 * seconds:.1f}", *[""] * len(SEVERITIES)))
    return Table(("", "drawn once an image", *map(str, SEVERITIES)), rows)


def processor_time(work: Callable[..., Any], *given: Any, **named: Any) -> tuple[float, Any]:
    """(the least processor time of five, the result): other processes do not count."""
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        result = work(*given, **named)
        best = min(best, time.process_time() - start)
    return best, result


if __name__ == "__main__":
    print(costs().markdown(), end="")
