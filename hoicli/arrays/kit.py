"""Small arithmetic on columns: runs, ranks, ranges, and the array types of the house."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
else:  # numpy.typing takes longer to import than a small file takes to evaluate
    Floats = Ints = Bools = np.ndarray


def starts_of(counts: list[int]) -> Ints:
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def expanded(start: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Runs laid end to end: (run, position) of each of the sum(count) places, run r being start[r], start[r] + 1, ...

    How everything here meets what it belongs to without a loop: a run per row, `count` of it possibly zero.
    """
    run = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count)
    return run, start[run] + within


def rank_by_id(image_ids: list[str]) -> Ints:
    """[N] each image's place among all images sorted by id: what breaks ties, whatever order the lines came in."""
    rank = np.empty(len(image_ids), dtype=np.int64)
    rank[sorted(range(len(rank)), key=image_ids.__getitem__)] = np.arange(len(rank))
    return rank
