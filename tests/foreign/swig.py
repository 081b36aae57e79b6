"""swig_dev_1000.json of SWIG-HOI: everything counted from 0, boxes as the records have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load
from tests.foreign._lists import boxes, hois

FOLDER = "swig"
FILE = "swig_dev_1000.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """With what else annotators called a box, which evaluation does not look at."""
    vocabulary = load("swig")
    content = [
        {
            **{key: record[key] for key in ("file_name", "img_id", "height", "width")},
            "box_annotations": [{**box, "aux_category_id": [1]} for box in boxes(record, vocabulary.object_ids)],
            "hoi_annotations": hois(record, lambda verb, _: vocabulary.verb_ids[verb], key="action_id"),
        }
        for record in truth
    ]
    path.write_text(json.dumps(content))
