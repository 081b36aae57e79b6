"""Which prediction each ground-truth triplet takes, among those that overlap enough: two ways.

greedy is the supplement's (both algorithms, lines 9 to 22): ground truth chooses in the order of its record, and what
is taken is gone. optimal gives an image the greatest total similarity that one-to-one matches can have, and with it the
most matches; what the two differ by is what the order of annotation costs. Between equally good assignments the
predictions that come first by score, then by place in the record, are preferred.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hoicli.arrays.kit import Floats, Ints, run_starts


def greedy(truth: Ints, prediction: Ints, similarity: Ints, score: Floats, turn: Ints) -> Ints:
    """[G] the prediction that each ground truth takes, -1 for none.

    truth, prediction, similarity [K] of the pairs that overlap enough; score [P]; turn [G] the place of each ground
    truth in its record. The most similar free prediction is taken, of equals the highest score, then the first.
    """
    order = np.lexsort((prediction, -score[prediction], -similarity, truth, turn[truth]))
    truth, prediction = truth[order], prediction[order]
    taken = np.full(len(turn), -1, dtype=np.int64)
    free = np.ones(len(score), dtype=bool)
    bounds = np.searchsorted(turn[truth], np.arange(turn.max(initial=-1) + 2))
    # The first triplets of all images choose together, then the second ones: two of one image never compete.
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        left = begin + np.flatnonzero(free[prediction[begin:end]])
        first = left[run_starts(truth[left])]
        taken[truth[first]] = prediction[first]
        free[prediction[first]] = False
    return taken


def optimal(truth: Ints, prediction: Ints, similarity: Ints, score: Floats, image_of_truth: Ints) -> Ints:
    """[G] the prediction that each ground truth takes, -1 for none, as `greedy` has it; image_of_truth [G].

    SciPy's `linear_sum_assignment`, an image at a time. A pair is worth its similarity (a whole number), then 1 for
    being a match, then its prediction's rank by score: whole numbers that are added without rounding as long as an
    image has fewer than some hundred ground-truth triplets with a thousand predictions on them.
    """
    from scipy.optimize import linear_sum_assignment

    taken = np.full(len(image_of_truth), -1, dtype=np.int64)
    order = np.lexsort((prediction, -score[prediction], image_of_truth[truth]))
    truth, prediction, similarity = truth[order], prediction[order], similarity[order]
    bounds = [*run_starts(image_of_truth[truth]).tolist(), len(truth)]
    for begin, end in pairwise(bounds):
        rows, row = np.unique(truth[begin:end], return_inverse=True)
        _, first, column = np.unique(prediction[begin:end], return_index=True, return_inverse=True)
        by_score = np.argsort(first)  # entries are by score, so a prediction's first place is its rank
        rank = np.argsort(by_score)[column]
        columns = prediction[begin:end][first[by_score]]
        most, wide = min(len(rows), len(columns)), len(columns)
        match = most * wide + 1  # more than all ranks together
        worth = np.zeros((len(rows), len(columns)))
        worth[row, rank] = similarity[begin:end] * float(most * (match + wide) + 1) + match + (wide - rank)
        one, other = linear_sum_assignment(worth, maximize=True)
        met = worth[one, other] > 0
        taken[rows[one[met]]] = columns[other[met]]
    return taken
