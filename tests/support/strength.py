"""How strong every corruption is: PSNR and SSIM on photographs, what a detector keeps, and the paper's order.

    python -m tests.support.strength    the tables of docs/robustness.md (some minutes)

The detector is that of fixtures/robust, plain, on its twelve drawn scenes. Needs scikit-image and scikit-learn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import stats

import hoicli
from hoicli.corruption.catalogue import HOICLI_1, REFERENCE_SIDE, ROHOI, SEVERITIES, WEATHER
from hoicli.corruption.effects import EFFECTS, corrupt, draw
from hoicli.corruption.engine import cell_record
from hoicli.corruption.quality import Original
from tests.support.pictures import PHOTOS as ALL
from tests.support.pictures import photograph
from tests.support.rohoi import rohoi_indices, rohoi_means
from tests.support.standin import FOLDER, detector

Values = NDArray[np.float64]

PHOTOS = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png", "china.jpg", "flower.jpg",
          "camera.png")  # fmt: skip
"""People, animals, things, a building, a night scene; no mere texture."""
SIDE = 400
"""Pixels of the longer side: some minutes less than with 640."""


def quality(names: Iterable[str] = ROHOI, photos: Iterable[str] = PHOTOS, side: int = SIDE) -> Values:
    """[corruptions, 2 (PSNR, SSIM), severities] means over photographs whose longer side is at most `side`."""
    pictures = {name: photograph(name, side) for name in photos}
    rows = []
    for name in names:
        values = np.zeros((len(pictures), 2, len(SEVERITIES)))
        for row, (photo_name, photo) in enumerate(pictures.items()):
            photo = np.ascontiguousarray(np.broadcast_to(photo, (*photo.shape[:2], 3)))
            original = Original(photo)
            for column, severity in enumerate(SEVERITIES):
                result = corrupt(photo, name, severity, image_id=photo_name)
                values[row, :, column] = original.psnr(result), original.ssim(result)
        rows.append(values.mean(axis=0))
    return np.stack(rows)


SIGNS = {"exposure": (1, -1), "perspective": (True, False)}
"""What chance draws for the corruptions that go either way."""


def signs(name: str) -> Values:
    """[photographs, severities] the PSNR of one way less that of the other, on all photographs at their size of 640."""
    rows = []
    for photo_name in ALL:
        photo = photograph(photo_name, REFERENCE_SIDE)
        original = Original(photo)
        one, other = (
            [original.psnr(EFFECTS[name].apply(photo, way, *level)) or 0.0 for level in HOICLI_1.levels[name]]
            for way in SIGNS[name]
        )
        rows.append(np.subtract(one, other))
    return np.stack(rows)


def kept() -> dict[str, float]:
    """The share of the clean value that RoHOI's five models of Table 4 keep under each corruption, their mean."""
    clean = {model: values[0] for model, values in rohoi_indices("vcoco").items()}
    shares = [{name: value / clean[model] for name, value in means.items()} for model, means in rohoi_means().items()]
    return {name: sum(share[name] for share in shares) / len(shares) for name in ROHOI}


def scenes() -> list[tuple[dict[str, Any], NDArray[np.uint8]]]:
    records = [json.loads(line) for line in (FOLDER / "ground_truth.jsonl").read_text().splitlines()]
    pictures = [np.asarray(cv2.imread(str(FOLDER / "images" / record["file_name"]))) for record in records]
    return [(record, np.ascontiguousarray(picture[:, :, ::-1], dtype=np.uint8))
            for record, picture in zip(records, pictures, strict=True)]  # fmt: skip


def detected(cell: tuple[str, int] | None, median: int = 0) -> list[dict[str, Any]]:
    """The rows of the stand-in detector under one corruption and severity, or on the clean scenes."""
    truth, predictions = [], []
    for record, picture in scenes():
        if cell is not None:
            name, severity = cell
            drawn = draw(name, picture.shape, image_id=record["image_id"], seed=0)
            record = cell_record(record, cell, 0, (None, None), picture.shape, drawn)
            picture = corrupt(picture, name, severity, image_id=record["image_id"])
        seen = np.ascontiguousarray(picture[:, :, ::-1])
        seen = np.asarray(cv2.medianBlur(seen, median), dtype=np.uint8) if median else seen
        truth.append(record)
        predictions.append({"image_id": record["image_id"], **detector().interactions(seen)})
    return list(hoicli.evaluate(truth, predictions, protocol="qpic").rows)


def retention(names: Iterable[str] = ROHOI) -> Values:
    """[corruptions, severities] the mAP of the plain detector, in percent of its clean one."""
    clean = _full(detected(None))
    return np.array([[100 * _full(detected((name, level))) / clean for level in SEVERITIES] for name in names])


def _full(rows: Iterable[Mapping[str, Any]]) -> float:
    return next(float(row["value"]) for row in rows if row["metric"] == "mAP" and row["subset"] == "full")


def correlation(strength: Values, names: Iterable[str] = ROHOI) -> float:
    """Spearman's correlation of the means over severities with the share that the paper's models keep."""
    published = kept()
    result = stats.spearmanr(strength.mean(axis=-1), [published[name] for name in names])
    return float(result.statistic)


def main() -> None:
    names, published = [*ROHOI, *WEATHER], kept()
    seen, found = quality(names), retention(names)
    print("| corruption | PSNR 1 | 2 | 3 | 4 | 5 | SSIM 1 | 2 | 3 | 4 | 5 |\n| --- |" + " ---: |" * 10)
    for name, (psnr, ssim) in zip(names, seen, strict=True):
        print("|", " | ".join([name, *(f"{v:.1f}" for v in psnr), *(f"{v:.2f}" for v in ssim)]), "|")
    print("\n| corruption | detector 1 | 2 | 3 | 4 | 5 | mean | paper |\n| --- |" + " ---: |" * 7)
    for name, values in zip(names, found, strict=True):
        paper = [100 * published[name]] if name in ROHOI else []
        cells = [f"{value:.0f}" for value in (*values, values.mean(), *paper)]
        print("|", " | ".join([name, *cells]), "|")
    for what, values in (("PSNR", seen[:, 0]), ("SSIM", seen[:, 1]), ("the detector", found)):
        print(f"{what}: {correlation(values[: len(ROHOI)]):.2f}")
    print("\n| two ways | 1 | 2 | 3 | 4 | 5 |\n| --- |" + " ---: |" * 5)
    for name in SIGNS:
        apart = signs(name)
        for what, values in (
            ("of the means", np.abs(apart.mean(axis=0))),
            ("of a photograph, median", np.median(np.abs(apart), axis=0)),
            ("of a photograph, largest", np.abs(apart).max(axis=0)),
        ):
            print("|", " | ".join([f"{name}, {what}", *(f"{value:.1f}" for value in values)]), "|")


if __name__ == "__main__":
    main()
