"""Average precision of many classes at once, from the ranks of their true positives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hoicli.records.kit import Floats, Ints


def precision_from(rank: Ints, bounds: Ints, positives: Ints, recalls: Sequence[float]) -> Iterator[Floats]:
    """For each of `recalls` [C] the largest precision of each class at that recall or more, in [0, 1].

    Arguments as for `interpolated_ap`. Precision is highest at a true positive (a false positive only lowers it), so
    only these matter: the k-th true positive at rank r gives precision k / r and recall k / positives. Recall is
    compared with `>=` in float64: the grid decides for a recall of exactly 3/10, 6/10 or 7/10
    (tests/evaluation/test_average_precision.py).
    """
    count = np.diff(bounds)
    owner = np.repeat(np.arange(len(positives)), count)
    found = np.arange(len(rank)) - bounds[owner] + 1
    precision, recall = found / rank, found / positives[owner]
    has_some = np.flatnonzero(count)
    for point in recalls:
        largest = np.zeros(len(positives))
        if len(has_some):
            largest[has_some] = np.maximum.reduceat(np.where(recall >= point, precision, 0.0), bounds[has_some])
        yield largest


def interpolated_ap(rank: Ints, bounds: Ints, positives: Ints, grid: tuple[float, ...]) -> Floats:
    """[C] the mean over `grid` of each class's largest precision at any recall >= the grid value, in [0, 1].

    rank [K]: 1-based ranks of the true positives in their class's list, ascending; class c has
    rank[bounds[c]:bounds[c + 1]]. positives [C]: ground truth. A class without ground truth or true positives gets 0,
    as in every released evaluator.
    """
    ap = np.zeros(len(positives))
    for largest in precision_from(rank, bounds, positives, grid):
        ap += largest
    # The evaluators divide each summand, so a perfect class gets 100.00000000000003; this differs by at most 1e-15.
    return ap / len(grid)


def enveloped_ap(rank: Ints, bounds: Ints, positives: Ints) -> Floats:
    """[C] the area under each class's precision envelope, with a step at every recall, in [0, 1].

    Arguments as for `interpolated_ap`. Each true positive adds 1 / positives of recall at the largest precision
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
