"""predictions_model_N.json of PPDM and GGNet: COCO ids 1-90, verbs 1-117, 0-based boxes, the key file_name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load

FILE = "predictions_ppdm.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """The keys in the order in which the project adds them: file_name comes last."""
    vocabulary = load("hico")
    content = [
        {
            "predictions": [
                {"bbox": box, "category_id": vocabulary.coco_ids[label]}
                for box, label in zip(record["boxes"], record["labels"], strict=True)
            ],
            "hoi_prediction": [
                {
                    "subject_id": hoi["subject"],
                    "object_id": hoi["object"],
                    "category_id": vocabulary.verb_ids[hoi["verb"]] + 1,
                    "score": hoi["score"],
                }
                for hoi in record["hois"]
            ],
            "file_name": record["file_name"],
        }
        for record in predictions
    ]
    path.write_text(json.dumps(content))
