"""Which annotated box each detection takes, by the rule of PASCAL VOC and by that of COCO. No Python loop runs per box:
all detections of the same rank in their image and label are matched together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoicli.evaluation.pairing import FALSE_POSITIVE, OUTCOME_CODES, TRUE_POSITIVE, first_largest
from hoicli.records.kit import Bools, Floats, Ints, run_starts

Codes = NDArray[np.uint8]
"""The outcome codes [thresholds, D] of D detections at each IoU threshold."""
OUTSIDE = OUTCOME_CODES["outside_slice"]
COCO_CAP = 100
"""The most detections of an image and label."""
_CERTAIN = 1 - 1e-10
"""pycocotools' largest threshold."""


class BoxPairs(NamedTuple):
    """M pairs of a detection and an annotated box of the same image and label. row [M]: the index of the detection,
    ascending; mate [M]: the index of the annotated box; overlap [M]: their IoU."""

    row: Ints
    mate: Ints
    overlap: Floats


def match_best(pairs: BoxPairs, rank: Ints, crowd: Bools) -> Codes:
    """Return the outcome codes [1, D] of D detections by PASCAL VOC's rule, at one IoU threshold. Each detection claims
    the annotated box that it overlaps most; of the claims on a box the best is true; those on a crowd are ignored.

    pairs: those that overlap enough; rank [D]: the rank of each detection among those of its image and label by
    descending score, from 0; crowd [G]: whether each annotated box is a crowd."""
    row, mate, overlap = pairs
    claims = first_largest(row, overlap)  # positions in `pairs`
    claims = claims[np.lexsort((rank[row[claims]], mate[claims]))]  # by annotated box, the best-scored claim first
    best_claims = claims[run_starts(mate[claims])]
    claims_on_crowds = claims[crowd[mate[claims]]]
    codes = np.full((1, len(rank)), FALSE_POSITIVE, dtype=np.uint8)
    codes[0, row[best_claims]] = TRUE_POSITIVE
    codes[0, row[claims_on_crowds]] = OUTSIDE
    return codes


def match_free(pairs: BoxPairs, thresholds: Sequence[float], rank: Ints, crowd: Bools, countable: Bools) -> Codes:
    """Return the outcome codes [thresholds, D] of D detections by pycocotools' greedy matching (`evaluateImg`).

    The detections of an image and label choose in the order of their scores. Each takes the annotated box that it
    overlaps most of those still free, a counted box before an ignored one, and the last of equally overlapped ones.

    rank, crowd: as in `match_best`; countable [G]: whether each annotated box counts rather than being ignored."""
    row, mate, overlap = pairs
    # A pair's preference is its position in `pair_by_overlap`, plus the number of pairs if its box is countable.
    pair_by_overlap, preference = _preferences(pairs, countable)
    # as in pycocotools, no threshold is above _CERTAIN (1 - 1e-10), so that an equal box always reaches it
    enough = overlap >= np.minimum(thresholds, _CERTAIN)[:, np.newaxis]
    free = np.ones((len(thresholds), len(crowd)), dtype=bool)
    codes = np.full((len(thresholds), len(rank)), FALSE_POSITIVE, dtype=np.uint8)
    for pairs_of_rank in _pairs_by_rank(rank[row]):
        first = run_starts(row[pairs_of_rank])  # where the pairs of each detection begin
        possible = enough[:, pairs_of_rank] & free[:, mate[pairs_of_rank]]
        # The largest preference of each detection's possible pairs, -1 if it has none; [thresholds, detections]
        largest = np.maximum.reduceat(np.where(possible, preference[pairs_of_rank], -1), first, axis=1)
        threshold, detection = np.nonzero(largest >= 0)
        chosen = largest[threshold, detection]
        taken = mate[pair_by_overlap[chosen % len(row)]]
        free[threshold, taken] = crowd[taken]  # a crowd has room for all
        outcome = np.where(chosen >= len(row), TRUE_POSITIVE, OUTSIDE)
        codes[threshold, row[pairs_of_rank[first[detection]]]] = outcome
    return codes


def _preferences(pairs: BoxPairs, countable: Bools) -> tuple[Ints, Ints]:
    """Return two columns about M pairs: [M] the pairs sorted by overlap, then by annotated box; and [M] the preference
    of each pair: of its pairs, a detection takes the one with the largest number.

    The preference is the pair's position in that order, and M more if its annotated box counts (countable [G]). So
    preference % M gives the pair back, and preference >= M tells whether its box counts."""
    pair_by_overlap = np.lexsort((pairs.mate, pairs.overlap))
    position = np.empty(len(pair_by_overlap), dtype=np.int64)
    position[pair_by_overlap] = np.arange(len(pair_by_overlap))
    return pair_by_overlap, position + len(pair_by_overlap) * countable[pairs.mate]


def _pairs_by_rank(rank_of_pair: Ints) -> Sequence[Ints]:
    """Return the positions of the pairs grouped by the rank of their detection: one array for the best-scored
    detections of all images and labels, one for the second-best, and so on to the COCO_CAP-th.

    rank_of_pair [M]: the rank of each pair's detection in its image and label, from 0."""
    order = np.argsort(rank_of_pair, kind="stable")
    order = order[rank_of_pair[order] < COCO_CAP]
    if not len(order):
        return ()
    return np.split(order, run_starts(rank_of_pair[order])[1:])
