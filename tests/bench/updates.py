"""The test set through `hoicli.Evaluator`, as a process: arrays in, image by image, and the numbers out.

python -m tests.bench.updates GT FILE.npz        FILE.npz: from `save`
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import hoicli

OF_BOXES, OF_TRIPLETS = ("boxes", "labels"), ("subject", "object", "verb", "score")


def save(dump: Path, target: Path) -> None:
    """The arrays that a detector had before it wrote the dump: numbers of the vocabulary, single precision."""
    found = list(hoicli.convert(dump))
    evaluator = hoicli.Evaluator([{**record, "hois": []} for record in found], "hico")
    for record in found:
        hois = record["hois"]
        evaluator.update(
            record["image_id"],
            boxes=np.array(record["boxes"], dtype=np.float32).reshape(-1, 4),
            labels=record["labels"],
            subject=[hoi["subject"] for hoi in hois],
            object=[hoi["object"] for hoi in hois],
            verb=[hoi["verb"] for hoi in hois],
            score=np.array([hoi["score"] for hoi in hois], dtype=np.float32),
        )
    np.savez(target, image_ids=np.array([record["image_id"] for record in found]), **evaluator.state())


def images(source: Path) -> list[tuple[str, dict[str, Any]]]:
    """(id, arguments of `update`) of each image."""
    with np.load(source) as saved:
        arrays = {name: saved[name] for name in (*OF_BOXES, *OF_TRIPLETS)}
        ends = {"boxes": np.cumsum(saved["box_counts"]), "triplets": np.cumsum(saved["triplet_counts"])}
        ids = saved["image_ids"].tolist()
    parts = [np.split(arrays[name], ends["boxes" if name in OF_BOXES else "triplets"][:-1]) for name in arrays]
    return [(image_id, dict(zip(arrays, given, strict=True))) for image_id, *given in zip(ids, *parts, strict=True)]


def microseconds(truth: Path, source: Path) -> float:
    """What an update takes of a processor, the mean over the images."""
    evaluator, given = hoicli.Evaluator(truth, "hico"), images(source)
    start = time.process_time()
    for image_id, arrays in given:
        evaluator.update(image_id, **arrays)
    return 1e6 * (time.process_time() - start) / len(given)


def main(truth: str, source: str) -> None:
    evaluator = hoicli.Evaluator(truth, protocol=["hico"])
    for image_id, arrays in images(Path(source)):
        evaluator.update(image_id, **arrays)
    print(evaluator.compute())


if __name__ == "__main__":
    main(*sys.argv[1:])
