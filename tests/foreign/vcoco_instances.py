"""instances.json of COCO for V-COCO's images: boxes as [x, y, w, h], with some that its evaluator does not take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.contents import coco_objects

FOLDER = "vcoco"
GROUND_TRUTH = "ground_truth.jsonl"
PLACE = "."
FILE = "instances.json"


def annotation_id(record: dict[str, Any], index: int) -> int:
    """COCO's number of a box."""
    return int(record["image_id"]) * 100 + index + 1


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """A box at the image's edge reaches beyond it; after the last box of an image come a crowd without area, a box one
    pixel wide, and one marked `ignore`.
    """
    images = [{key: record[key] for key in ("file_name", "width", "height")} | _id(record) for record in truth]
    annotations = [
        {
            "id": annotation_id(record, index),
            "image_id": record["image_id"],
            "category_id": coco_objects()[label],
            "bbox": _xywh(box, record),
            "area": (box[2] - box[0]) * (box[3] - box[1]) / 2,
            "iscrowd": 0,
        }
        for record in truth
        for index, (box, label) in enumerate(zip(record["boxes"], record["labels"], strict=True))
    ]
    last = truth[-1]
    mistakes: tuple[dict[str, Any], ...]
    mistakes = ({"area": 0, "iscrowd": 1}, {"bbox": [4.0, 4.0, 1.0, 20.0]}, {"ignore": 1})
    for number, wrong in enumerate(mistakes):
        row = {"id": annotation_id(last, 90 + number), "image_id": last["image_id"], "category_id": 1}
        annotations.append(row | {"bbox": [4.0, 4.0, 30.0, 40.0], "area": 600.0, "iscrowd": 0} | wrong)
    categories = [{"id": number, "name": name.replace("_", " ")} for name, number in coco_objects().items()]
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))


def _id(record: dict[str, Any]) -> dict[str, Any]:
    return {"id": record["image_id"]}


def _xywh(box: list[float], record: dict[str, Any]) -> list[float]:
    """A box that ends at the image's last column or row is written three pixels longer, to be clipped again."""
    x1, y1, x2, y2 = box
    right, bottom = x2 == record["width"] - 1, y2 == record["height"] - 1
    return [float(x1), float(y1), x2 - x1 + 1.0 + 3 * right, y2 - y1 + 1.0 + 3 * bottom]
