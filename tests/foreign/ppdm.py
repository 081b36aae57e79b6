"""predictions_model_N.json of PPDM and GGNet: COCO ids 1-90, verbs 1-117, 0-based boxes, the key file_name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load
from tests.foreign._lists import boxes, hois

FILE = "predictions_ppdm.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """The keys in the order in which the project adds them: file_name comes last."""
    vocabulary = load("hico")
    content = [
        {
            "predictions": boxes(record, vocabulary.coco_ids),
            "hoi_prediction": hois(record, lambda verb, _: vocabulary.verb_ids[verb] + 1),
            "file_name": record["file_name"],
        }
        for record in predictions
    ]
    path.write_text(json.dumps(content))
