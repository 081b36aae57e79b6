"""Means over classes as released code takes them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of the values, NaN of none."""
    listed = list(values)
    return float(np.mean(listed)) if listed else float("nan")
