"""preds_wo_nointer.pkl of Diag-HOI: CDN's list as a pickle, no_interaction left out, numbers as NumPy scalars."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from tests.foreign.cdn import items

FILE = "preds_wo_nointer.pkl"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """Integers as np.int64, scores and boxes as np.float64 (float32 would round them)."""
    kept = [
        {**record, "hois": [hoi for hoi in record["hois"] if hoi["verb"] != "no_interaction"]} for record in predictions
    ]
    path.write_bytes(pickle.dumps(items(kept, _scalar), protocol=4))


def _scalar(value: float) -> Any:
    return np.int64(value) if isinstance(value, int) else np.float64(value)
