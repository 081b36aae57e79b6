"""An epoch of HICO-DET's test set through an evaluator in memory: updates image by image, then the result.

python -m tests.bench.epochs hoicli|torchmetrics|faster-coco-eval GT FILE.npz [IMAGES]

FILE.npz: what `tests.bench.updates.save` made of a dump (`make bench` leaves bench-output/predictions.npz). IMAGES: the
first so many. The other two know boxes, not pairs: they get the box around both boxes of a pair, and its interaction as
the label. They need `pip install torch torchvision torchmetrics faster-coco-eval pycocotools`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson

import hoicli
from hoicli.records.scenes import class_table
from hoicli.vocabulary.datasets import load
from tests.bench.updates import images

Way = tuple[Callable[..., None], Callable[[], object]]
"""update(image, arrays, annotations), and the result."""


def own(truth: Path) -> Way:
    evaluator = hoicli.Evaluator(truth, "hico")
    return (
        lambda image_id, given, _: evaluator.update(image_id, **given),
        lambda: evaluator.compute().to_dict()["hico/mAP/full"],
    )


def theirs(backend: str) -> Way:
    import torch
    from torchmetrics.detection import MeanAveragePrecision

    metric = MeanAveragePrecision(iou_thresholds=[0.5], backend=backend)

    def update(_: str, given: dict[str, Any], annotated: dict[str, Any]) -> None:
        both = (unions(given), annotated)
        found, wanted = ({name: torch.from_numpy(array) for name, array in arrays.items()} for arrays in both)
        metric.update([found], [wanted])

    return update, lambda: 100 * metric.compute()["map"].item()


def unions(given: dict[str, Any]) -> dict[str, Any]:
    """The boxes around pairs, their classes and scores."""
    table, boxes = class_table(load("hico")), given["boxes"]
    labels = table[given["verb"], given["labels"][given["object"]]]
    first, second = boxes[given["subject"]], boxes[given["object"]]
    around = np.concatenate([np.minimum(first[:, :2], second[:, :2]), np.maximum(first[:, 2:], second[:, 2:])], axis=1)
    kept = labels >= 0
    found = {"boxes": around[kept].astype(np.float32), "labels": labels[kept]}
    return found | ({"scores": given["score"][kept].astype(np.float32)} if "score" in given else {})


def annotated_pairs(truth: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(image, its pairs as `unions` has them)."""
    verbs, objects = load("hico").verb_ids, load("hico").object_ids
    for line in truth.read_bytes().splitlines():
        record = orjson.loads(line)
        hois = record["hois"]
        given: dict[str, Any] = {end: np.array([hoi[end] for hoi in hois], np.int64) for end in ("subject", "object")}
        given["verb"] = np.array([verbs[hoi["verb"]] for hoi in hois], dtype=np.int64)
        given["labels"] = np.array([objects[label] for label in record["labels"]], dtype=np.int64)
        given["boxes"] = np.array(record["boxes"], dtype=np.float64).reshape(-1, 4)
        yield record["image_id"], unions(given)


def main(way: str, truth: str, source: str, count: str = "") -> None:
    given = images(Path(source))[: int(count) if count else None]
    annotated = dict(annotated_pairs(Path(truth)))
    backends = {"torchmetrics": "pycocotools", "faster-coco-eval": "faster_coco_eval"}
    update, compute = theirs(backends[way]) if way in backends else own(Path(truth))
    start = time.process_time()
    for image_id, arrays in given:
        update(image_id, arrays, annotated[image_id])
    updated = time.process_time()
    value, end = compute(), time.process_time()
    print(f"{way}: {len(given):,} images, updates {updated - start:.2f} s, result {end - updated:.2f} s, {value:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
