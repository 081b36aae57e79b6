"""Image records as the arrays that a detector has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.project import EIGHT

Record = dict[str, Any]

GT, PREDICTIONS = EIGHT / "gt.jsonl", EIGHT / "predictions.jsonl"


def records(path: Path) -> list[Record]:
    """The records of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def arrays(record: Record, *, scored: bool = True) -> dict[str, Any]:
    """The arguments of `Evaluator.update` for a record; names stay names, and -1 stands for no object."""
    hois = record["hois"]
    given: dict[str, Any] = {
        "boxes": np.array(record["boxes"], dtype=np.float64).reshape(-1, 4),
        "labels": record["labels"],
        "subject": np.array([hoi["subject"] for hoi in hois], dtype=np.int64),
        "object": np.array([-1 if hoi["object"] is None else hoi["object"] for hoi in hois], dtype=np.int64),
        "verb": [hoi["verb"] for hoi in hois],
    }
    if any("role" in hoi for hoi in hois):
        given["role"] = [hoi.get("role") for hoi in hois]
    return given | ({"score": np.array([hoi["score"] for hoi in hois])} if scored else {})
