"""Which annotated box each detection takes, by the rule of PASCAL VOC and by that of COCO. No Python loop runs per box:
detections of one rank, each of another image or label, are matched together."""

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
    """M pairs of a detection and an annotated box of its image and label: row [M] the detection, ascending; mate [M]
    the annotated box; overlap [M] their IoU."""

    row: Ints
    mate: Ints
    overlap: Floats


def match_best(pairs: BoxPairs, rank: Ints, crowd: Bools) -> Codes:
    """Return the outcome codes by VOC's rule, at one threshold: each detection claims the annotated box that it
    overlaps most; of the claims on a box the best-scored is true, and those on a crowd are ignored.

    pairs: those that overlap enough; rank [D]: the rank of each detection among those of its image and label, from 0;
    crowd [G]: whether an annotated box is a crowd."""
    row, mate, overlap = pairs
    claims = first_largest(row, overlap)
    claims = claims[np.lexsort((rank[row[claims]], mate[claims]))]  # by annotated box, the best-scored claim first
    codes = np.full((1, len(rank)), FALSE_POSITIVE, dtype=np.uint8)
    codes[0, row[claims[run_starts(mate[claims])]]] = TRUE_POSITIVE
    codes[0, row[claims[crowd[mate[claims]]]]] = OUTSIDE
    return codes


def match_free(pairs: BoxPairs, thresholds: Sequence[float], rank: Ints, crowd: Bools, countable: Bools) -> Codes:
    """Return the outcome codes by pycocotools' greedy matching (`COCOeval.evaluateImg`).

    The detections of an image and label choose in the order of their scores. Each takes the annotated box that it
    overlaps most of those still free, a counted box before an ignored one, and the last of equally overlapped ones.
    rank, crowd: as in `match_best`; countable [G]: whether an annotated box counts (not a crowd, and in the range of
    areas) rather than being ignored."""
    row, mate, overlap = pairs
    pair_at_place, wish = _wishes(pairs, countable)
    enough = overlap >= np.minimum(thresholds, _CERTAIN)[:, np.newaxis]
    free = np.ones((len(thresholds), len(crowd)), dtype=bool)
    codes = np.full((len(thresholds), len(rank)), FALSE_POSITIVE, dtype=np.uint8)
    for pairs_of_rank in _pairs_by_rank(rank[row]):
        first = run_starts(row[pairs_of_rank])  # where the pairs of each detection begin
        wishes = np.where(enough[:, pairs_of_rank] & free[:, mate[pairs_of_rank]], wish[pairs_of_rank], -1)
        best_wish = np.maximum.reduceat(wishes, first, axis=1)
        threshold, detection = np.nonzero(best_wish >= 0)
        granted = best_wish[threshold, detection]
        taken = mate[pair_at_place[granted % len(row)]]
        free[threshold, taken] = crowd[taken]  # a crowd has room for all
        outcome = np.where(granted >= len(row), TRUE_POSITIVE, OUTSIDE)
        codes[threshold, row[pairs_of_rank[first[detection]]]] = outcome
    return codes


def _wishes(pairs: BoxPairs, countable: Bools) -> tuple[Ints, Ints]:
    """Return ([M] the pairs sorted by overlap, then by annotated box; [M] the wish of each pair).

    A wish is a number that orders pairs by preference: the pair's place in that order, and M more if its annotated box
    counts (countable [G]). So the largest wish is the pair to choose; wish % M is its place, and wish >= M tells
    whether its box counts."""
    pair_at_place = np.lexsort((pairs.mate, pairs.overlap))
    place = np.empty(len(pair_at_place), dtype=np.int64)
    place[pair_at_place] = np.arange(len(pair_at_place))
    return pair_at_place, place + len(pair_at_place) * countable[pairs.mate]


def _pairs_by_rank(rank_of_pair: Ints) -> Sequence[Ints]:
    """Return the pairs of the detections that are first in their image and label, then those of the second, and so on
    to the COCO_CAP-th. rank_of_pair [M]: the rank of each pair's detection, from 0."""
    order = np.argsort(rank_of_pair, kind="stable")
    order = order[rank_of_pair[order] < COCO_CAP]
    return np.split(order, run_starts(rank_of_pair[order])[1:]) if len(order) else ()
