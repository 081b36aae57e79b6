"""The state of an `Evaluator`, as numpy.savez writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import hoicli
from tests.support.arrays import arrays

FILE = "state.npz"
FORMAT = "state"
KIND = "npz"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """All images of one process."""
    evaluator = hoicli.Evaluator(truth, "hico")
    for record in predictions:
        evaluator.update(record["image_id"], **arrays(record))
    np.savez_compressed(path, **evaluator.state())
