"""test_hico.json as PPDM, QPIC and CDN have it: 1-based integer boxes, COCO ids, verbs from 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load
from tests.foreign._lists import boxes, hois

FILE = "test_hico.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """No image-level labels, no sizes. Every other image has its category ids as text with a line break."""
    vocabulary = load("hico")
    content = []
    for row, record in enumerate(truth):
        counted = {**record, "boxes": [[side + 1 for side in box] for box in record["boxes"]]}
        annotations = boxes(counted, vocabulary.coco_ids)
        if row % 2:
            annotations = [{**box, "category_id": f"{box['category_id']}\n"} for box in annotations]
        hoi_annotation = hois(record, lambda verb, _: vocabulary.verb_ids[verb] + 1)
        item = {"file_name": record["file_name"], "annotations": annotations, "hoi_annotation": hoi_annotation}
        content.append(item)
    path.write_text(json.dumps(content))
