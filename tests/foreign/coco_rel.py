"""_annotations.coco.json as SGG-Benchmark's download.py writes it: ids of annotations run through the whole file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER, FILE = "graphs", "_annotations.coco.json"
OBJECTS = ("bicycle", "dog", "hat", "person", "street", "tree")
PREDICATES = ("behind", "holding", "looking at", "next to", "on", "riding", "wearing")


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """The ground truth; boxes as x, y, width, height, predicates with their spaces."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    relations: list[dict[str, Any]] = []
    for record in truth:
        number = record["img_id"]
        images.append({"id": number, "file_name": record["file_name"], "width": 640, "height": 480})
        first = len(annotations)
        for (x1, y1, x2, y2), label in zip(record["boxes"], record["labels"], strict=True):
            width, height = x2 - x1, y2 - y1
            row = {"id": len(annotations), "image_id": number, "category_id": OBJECTS.index(label) + 1}
            box = {"bbox": [x1, y1, width, height], "area": width * height, "iscrowd": 0, "segmentation": []}
            annotations.append({**row, **box})
        for hoi in record["hois"]:
            ends = {"subject_id": first + hoi["subject"], "object_id": first + hoi["object"]}
            predicate = PREDICATES.index(hoi["verb"].replace("_", " ")) + 1
            relations.append({"id": len(relations), "image_id": number, **ends, "predicate_id": predicate})
    content = {
        "images": images,
        "annotations": annotations,
        "rel_annotations": relations,
        "categories": [{"id": at, "name": name} for at, name in enumerate(OBJECTS, start=1)],
        "rel_categories": [{"id": at, "name": name} for at, name in enumerate(PREDICATES, start=1)],
    }
    path.write_text(json.dumps(content))
