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
from tests.foreign._lists import boxes, hois

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
    counted = [{**record, "boxes": [[float(x + 1) for x in box] for box in record["boxes"]]} for record in truth]
    gts = [
        {"filename": item["filename"], "annotations": item["predictions"], "hoi_annotation": item["hoi_prediction"]}
        for item in items(counted, Scalar)
    ]
    path.write_text(json.dumps(str({"preds": items(predictions, Scalar), "gts": gts})))


def items(records: list[dict[str, Any]], number: Any) -> list[dict[str, Any]]:
    """The list of CDN's dictionaries; `number` makes the numbers of it."""
    vocabulary = load("hico")
    return [
        {
            "filename": record["file_name"],
            "predictions": boxes(record, vocabulary.object_ids, number),
            "hoi_prediction": hois(record, lambda verb, _: vocabulary.verb_ids[verb], number),
        }
        for record in records
    ]
