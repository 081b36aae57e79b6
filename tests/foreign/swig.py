"""swig_dev_1000.json of SWIG-HOI: everything counted from 0, boxes as the records have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load

FOLDER = "swig"
FILE = "swig_dev_1000.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """With what else annotators called a box, which evaluation does not look at."""
    vocabulary = load("swig")
    content = [
        {
            "file_name": record["file_name"],
            "img_id": record["img_id"],
            "height": record["height"],
            "width": record["width"],
            "box_annotations": [
                {"bbox": box, "category_id": vocabulary.object_ids[label], "aux_category_id": [1]}
                for box, label in zip(record["boxes"], record["labels"], strict=True)
            ],
            "hoi_annotations": [
                {
                    "subject_id": hoi["subject"],
                    "object_id": hoi["object"],
                    "action_id": vocabulary.verb_ids[hoi["verb"]],
                }
                for hoi in record["hois"]
            ],
        }
        for record in truth
    ]
    path.write_text(json.dumps(content))
