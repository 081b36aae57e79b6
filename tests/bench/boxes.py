"""The page's part on boxes as such: `eval --boxes` beside the evaluators of COCO, on a made dump of COCO's size.

python -m tests.bench.boxes pycocotools|faster_coco_eval|hotcoco FOLDER

The peers read FOLDER's annotations.json and detections.json, and print AP: the same value as ours, in percent.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from hoicli.vocabulary.datasets import load
from tests.bench.hico import upright
from tests.bench.measuring import HOICLI, PYTHON, Options, Process

IMAGES = 5_000
DETECTIONS = 100
PEERS = ("pycocotools", "faster_coco_eval", "hotcoco")


def prepare(options: Options) -> None:
    """Make ground truth and detections, as records and as COCO's files: boxes of 80 labels, most of them jittered."""
    labels = list(load("hico").alphabetical_objects)
    rng = np.random.default_rng(7)
    truth, found = [], []
    for image in range(IMAGES):
        count = int(rng.integers(1, 15))
        drawn = upright(rng.integers(0, 640, (count, 4)).astype(float))
        chosen = rng.integers(0, len(labels), count)
        source = rng.integers(0, count, DETECTIONS)
        near = upright(drawn[source] + rng.normal(0, 12, (DETECTIONS, 4)))
        named = np.where(rng.random(DETECTIONS) < 0.7, chosen[source], rng.integers(0, len(labels), DETECTIONS))
        truth.append((image, drawn, chosen, None))
        found.append((image, near, named, rng.random(DETECTIONS)))
    for records, name in ((truth, "box_truth.jsonl"), (found, "box_detections.jsonl")):
        with (options.folder / name).open("wb") as file:
            for image, boxes, numbers, scores in records:
                record: dict[str, Any] = {"image_id": str(image), "boxes": boxes.tolist(), "hois": []}
                record["labels"] = [labels[number] for number in numbers]
                if scores is not None:
                    record["scores"] = scores.tolist()
                file.write(orjson.dumps(record) + b"\n")
    annotations = {
        "images": [{"id": image} for image in range(IMAGES)],
        "annotations": [{"id": at, "iscrowd": 0, **item} for at, item in enumerate(coco_items(truth), start=1)],
        "categories": [{"id": at, "name": name} for at, name in enumerate(labels, start=1)],
    }
    (options.folder / "annotations.json").write_bytes(orjson.dumps(annotations))
    (options.folder / "detections.json").write_bytes(orjson.dumps(coco_items(found)))


def coco_items(records: list[tuple[int, Any, Any, Any]]) -> list[dict[str, Any]]:
    """Boxes as COCO lists them: a corner, width and height."""
    items = []
    for image, boxes, numbers, scores in records:
        for index, (left, top, right, bottom) in enumerate(boxes.tolist()):
            sides = [right - left, bottom - top]
            item = {"image_id": image, "category_id": int(numbers[index]) + 1, "bbox": [left, top, *sides]}
            item |= {"area": sides[0] * sides[1]} if scores is None else {"score": float(scores[index])}
            items.append(item)
    return items


def processes(options: Options) -> list[Process]:
    truth, found = (str(options.folder / name) for name in ("box_truth.jsonl", "box_detections.jsonl"))
    floor, ours = "floor: every line of the records", "eval --boxes --protocol coco-boxes"
    return [
        Process(floor, (*PYTHON, "-m", "tests.bench.floor", "lines", found)),
        Process(ours, (*HOICLI, *ours.split(), "--same", "1", "--gt", truth, found), floor),
        *(
            Process(
                peer, (*PYTHON, "-m", "tests.bench.boxes", peer, str(options.folder)), ours=ours, once=peer == PEERS[0]
            )
            for peer in PEERS
        ),
    ]


def facts(options: Options) -> str:
    size = (options.folder / "box_detections.jsonl").stat().st_size / 1e6
    return f"a made dump: {IMAGES:,} images, {IMAGES * DETECTIONS:,} boxes of 80 labels, {size:.0f} MB of records"


def measure_peer(peer: str, folder: str) -> float:
    """AP by one of the peers, in percent."""
    if peer != "pycocotools":
        importlib.import_module(peer).init_as_pycocotools()
    coco, evaluator = (importlib.import_module(f"pycocotools.{name}") for name in ("coco", "cocoeval"))
    with contextlib.redirect_stdout(io.StringIO()):
        truth = coco.COCO(str(Path(folder, "annotations.json")))
        run = evaluator.COCOeval(truth, truth.loadRes(str(Path(folder, "detections.json"))), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return 100 * float(run.stats[0])


if __name__ == "__main__":
    print(measure_peer(*sys.argv[1:]))
