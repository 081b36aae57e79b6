"""Which prediction each ground-truth triplet takes, among those that overlap enough: two ways.

greedy is the supplement's (both algorithms, lines 9 to 22): ground truth chooses in the order of its record, and what
is taken is gone. optimal gives an image the greatest total similarity that one-to-one matches can have, and with it the
most matches; what the two differ by is what the order of annotation costs. Between equally good assignments the
predictions that come first by score, then by place in the record, are preferred.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hoicli.records.kit import Ints, expanded, run_starts, starts_of


def greedy(truth: Ints, prediction: Ints, similarity: Ints, rank: Ints, turn: Ints) -> Ints:
    """[G] the prediction that each ground truth takes, -1 for none.

    truth (ascending), prediction, similarity [K] of the pairs that overlap enough; rank [P] the place of each
    prediction by score, then place in the record, in its image at least; turn [G] the place of each ground truth in its
    record. The most similar free prediction is taken, of equals the one of the lowest rank.
    """
    count = max(len(rank), 1)
    worth = similarity * count + (count - 1 - rank[prediction])
    of_rank = np.empty(len(rank), dtype=np.int64)
    of_rank[rank] = np.arange(len(rank))
    taken = np.full(len(turn), -1, dtype=np.int64)
    free = np.ones(len(rank), dtype=bool)
    runs = run_starts(truth)
    owners, sizes = truth[runs], np.diff(np.append(runs, len(truth)))
    order = np.argsort(turn[owners], kind="stable")
    owners, starts = owners[order], starts_of(sizes[order])
    _, at = expanded(runs[order], sizes[order])
    worth, prediction = worth[at], prediction[at]
    bounds = np.searchsorted(turn[owners], np.arange(turn.max(initial=-1) + 2))
    # The first triplets of all images choose together, then the second ones: two of one image never compete.
    for begin, end in pairwise(bounds.tolist()):
        if begin == end:
            continue
        own = slice(starts[begin], starts[end])
        best = np.maximum.reduceat(np.where(free[prediction[own]], worth[own], -1), starts[begin:end] - starts[begin])
        some = np.flatnonzero(best >= 0)
        chosen = of_rank[count - 1 - best[some] % count]
        taken[owners[begin:end][some]] = chosen
        free[chosen] = False
    return taken


def optimal(truth: Ints, prediction: Ints, similarity: Ints, rank: Ints, image_of_truth: Ints) -> Ints:
    """[G] the prediction that each ground truth takes, -1 for none, as `greedy` has it; image_of_truth [G].

    SciPy's `linear_sum_assignment`, an image at a time. A pair is worth its similarity (a whole number), then 1 for
    being a match, then its prediction's rank by score: whole numbers that are added without rounding as long as an
    image has fewer than some hundred ground-truth triplets with a thousand predictions on them.
    """
    from scipy.optimize import linear_sum_assignment

    taken = np.full(len(image_of_truth), -1, dtype=np.int64)
    order = np.lexsort((rank[prediction], image_of_truth[truth]))
    truth, prediction, similarity = truth[order], prediction[order], similarity[order]
    bounds = [*run_starts(image_of_truth[truth]).tolist(), len(truth)]
    for begin, end in pairwise(bounds):
        rows, row = np.unique(truth[begin:end], return_inverse=True)
        _, first, column = np.unique(prediction[begin:end], return_index=True, return_inverse=True)
        by_score = np.argsort(first)  # entries are by score, so a prediction's first place is its rank
        place = np.argsort(by_score)[column]
        columns = prediction[begin:end][first[by_score]]
        most, wide = min(len(rows), len(columns)), len(columns)
        match = most * wide + 1  # more than all ranks together
        worth = np.zeros((len(rows), len(columns)))
        worth[row, place] = similarity[begin:end] * float(most * (match + wide) + 1) + match + (wide - place)
        one, other = linear_sum_assignment(worth, maximize=True)
        met = worth[one, other] > 0
        taken[rows[one[met]]] = columns[other[met]]
    return taken
