"""results.json as the evaluators of CDN and MUREN leave it: a JSON string that holds the repr of a dictionary.

With NumPy 2 the repr names its scalars. The scores and boxes of a network are float32; where a number of the fixture
is not one exactly it is written as np.float64, so that nothing is rounded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hoicli.vocabulary.datasets import load

FILE = "results.json"


class Scalar:
    """A number whose repr is that of a NumPy 2 scalar, whichever NumPy writes the fixture."""

    def __init__(self, value: float) -> None:
        kind = "int64" if isinstance(value, int) else "float32" if float(np.float32(value)) == value else "float64"
        self.text = f"np.{kind}({value!r})"

    def __repr__(self) -> str:
        return self.text


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """`preds`, and `gts` as the evaluator keeps them: 1-based boxes, 0-based ids."""
    vocabulary = load("hico")
    gts = [
        {
            "filename": record["file_name"],
            "annotations": [
                {"bbox": [Scalar(float(x + 1)) for x in box], "category_id": Scalar(vocabulary.object_ids[label])}
                for box, label in zip(record["boxes"], record["labels"], strict=True)
            ],
            "hoi_annotation": [
                {
                    "subject_id": Scalar(hoi["subject"]),
                    "object_id": Scalar(hoi["object"]),
                    "category_id": Scalar(vocabulary.verb_ids[hoi["verb"]]),
                }
                for hoi in record["hois"]
            ],
        }
        for record in truth
    ]
    path.write_text(json.dumps(str({"preds": items(predictions, Scalar), "gts": gts})))


def items(predictions: list[dict[str, Any]], number: Any) -> list[dict[str, Any]]:
    """The list of CDN's dictionaries; `number` makes the numbers of it."""
    vocabulary = load("hico")
    return [
        {
            "filename": record["file_name"],
            "predictions": [
                {"bbox": [number(x) for x in box], "category_id": number(vocabulary.object_ids[label])}
                for box, label in zip(record["boxes"], record["labels"], strict=True)
            ],
            "hoi_prediction": [
                {
                    "subject_id": number(hoi["subject"]),
                    "object_id": number(hoi["object"]),
                    "category_id": number(vocabulary.verb_ids[hoi["verb"]]),
                    "score": number(hoi["score"]),
                }
                for hoi in record["hois"]
            ],
        }
        for record in predictions
    ]
