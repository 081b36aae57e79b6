"""Average precision from the ranks of the true positives, at a given grid of recall values."""

from __future__ import annotations

import numpy as np

from hoicli.scenes import Floats, Ints


def interpolated_ap(true_positive_ranks: Ints, positives: int, grid: tuple[float, ...]) -> float:
    """The mean over `grid` of the largest precision at any recall >= the grid value, in [0, 1].

    true_positive_ranks [K]: 1-based positions of the true positives in the ranked list, ascending. positives: ground
    truth of the class; with none, or without true positives, the value is 0, as in every released evaluator.

    Precision is highest at a true positive (a false one only lowers it), so the k-th true positive at rank r stands
    for precision k / r and recall k / positives, and the false positives need not be looked at. The recall is compared
    with `>=` in float64: which grid is used decides for a recall of exactly 3/10, 6/10 or 7/10.
    """
    if positives == 0 or len(true_positive_ranks) == 0:
        return 0.0
    found = np.arange(1, len(true_positive_ranks) + 1)
    recall: Floats = found / positives
    envelope = np.maximum.accumulate((found / true_positive_ranks)[::-1])[::-1]
    first = np.searchsorted(recall, grid, side="left")
    reached = first[first < len(envelope)]
    return float(sum((envelope[reached] / len(grid)).tolist()))
