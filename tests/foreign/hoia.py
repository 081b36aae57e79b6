"""test_hico.json as PPDM, QPIC and CDN have it: 1-based integer boxes, COCO ids, verbs from 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load

FILE = "test_hico.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """No image-level labels, no sizes. Every other image has its category ids as text with a line break."""
    vocabulary = load("hico")
    content = []
    for row, record in enumerate(truth):
        ids = [vocabulary.coco_ids[label] for label in record["labels"]]
        content.append(
            {
                "file_name": record["file_name"],
                "annotations": [
                    {"bbox": [side + 1 for side in box], "category_id": f"{number}\n" if row % 2 else number}
                    for box, number in zip(record["boxes"], ids, strict=True)
                ],
                "hoi_annotation": [
                    {
                        "subject_id": hoi["subject"],
                        "object_id": hoi["object"],
                        "category_id": vocabulary.verb_ids[hoi["verb"]] + 1,
                    }
                    for hoi in record["hois"]
                ],
            }
        )
    path.write_text(json.dumps(content))
