"""Average precision of many classes at once, from the ranks of their true positives."""

import numpy as np

from hoicli.arrays.kit import Floats, Ints


def interpolated_ap(rank: Ints, bounds: Ints, positives: Ints, grid: tuple[float, ...]) -> Floats:
    """[C] the mean over `grid` of each class's largest precision at any recall >= the grid value, in [0, 1].

    rank [K]: 1-based places of the true positives in their class's ranked list, ascending; class c owns
    rank[bounds[c]:bounds[c + 1]]. positives [C]: ground truth. A class with none, or without true positives, gets 0,
    as in every released evaluator.

    Precision is highest at a true positive (a false one only lowers it), so the k-th true positive at rank r stands
    for precision k / r and recall k / positives, and false positives need not be looked at. Recall is compared with
    `>=` in float64: the grid decides for a recall of exactly 3/10, 6/10 or 7/10
    (tests/evaluation/test_average_precision.py).
    """
    ap = np.zeros(len(positives))
    if len(rank) == 0:
        return ap
    count = np.diff(bounds)
    owner = np.repeat(np.arange(len(positives)), count)
    found = np.arange(len(rank)) - bounds[owner] + 1
    precision, recall = found / rank, found / positives[owner]
    has_some = np.flatnonzero(count)
    for point in grid:
        reached = np.where(recall >= point, precision, 0.0)
        ap[has_some] += np.maximum.reduceat(reached, bounds[has_some])
    # The evaluators divide each summand, which makes 100.00000000000003 of a perfect class; this is within 1e-15 of it.
    return ap / len(grid)


def enveloped_ap(rank: Ints, bounds: Ints, positives: Ints) -> Floats:
    """[C] the area under each class's precision envelope, every recall a step, in [0, 1].

    Arguments as `interpolated_ap` has them. Each true positive adds 1 / positives of recall at the largest precision
    of any recall from there on (PASCAL VOC since 2010; s-gupta/v-coco vsrl_eval.py `voc_ap`).
    """
    ap = np.zeros(len(positives))
    for number in np.flatnonzero(np.diff(bounds)).tolist():
        ranks = rank[bounds[number] : bounds[number + 1]]
        precision = np.arange(1, len(ranks) + 1) / ranks
        ap[number] = np.maximum.accumulate(precision[::-1]).sum() / positives[number]
    return ap


def max_recall(bounds: Ints, positives: Ints) -> Floats:
    """[C] true positives over ground truth of each class, 0 where there is no ground truth."""
    found = np.diff(bounds)
    recall: Floats = np.divide(found, positives, out=np.zeros(len(positives)), where=positives > 0)
    return recall
