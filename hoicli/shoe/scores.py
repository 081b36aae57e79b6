"""SHOE's numbers: soft mAP and soft mF1 of a matching (SHOE supplement, Algorithms 1 and 2).

- Unmatched ground truth is a pair (0, 0) of Algorithm 1. It adds no recall, so it is left out of the list and only
  counts as ground truth. For positive scores this changes nothing; negative scores (log probabilities) would wrongly
  rank below a pair at score 0.
- The small constant in the denominators only avoids 0; here 0 / 0 is 0 instead, so that a perfect result is 100.
- Algorithm 1's recall is over the number of ground truth, Algorithm 2's over TP + FN, where a match of similarity 0.4
  adds 0.4 to TP and nothing to FN. Both are followed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hoicli.arrays.kit import Ints, rank_by_id, run_starts
from hoicli.evaluation.grids import GRID_ARANGE
from hoicli.shoe.labels import predicted_classes
from hoicli.shoe.matching import UNIT, Matching, Shoe


@dataclass(frozen=True)
class ClassScores:
    """The scores of one (verb, object), as fractions. soft_ap and ap are None without scores."""

    verb: str
    object: str
    positives: int
    soft_ap: float | None
    f1: float
    ap: float | None


@dataclass(frozen=True)
class Scores:
    """The means over the classes that have ground truth, fractions, None where there is nothing to average.

    gt_miss_rate of `truths`, prediction_miss_rate of `predictions` (those the mF1 kept).
    """

    classes: list[ClassScores]
    soft_map: float | None
    mf1: float | None
    map: float | None
    gt_miss_rate: float | None
    prediction_miss_rate: float | None
    truths: int
    predictions: int


def scores_of(shoe: Shoe, strict: Matching) -> Scores:
    """All numbers: soft mAP and mAP over all predictions, mF1 and the miss rates over those of `strict`."""
    counts = len(shoe.classes.classes)
    positives = np.bincount(shoe.classes.class_of, minlength=counts)
    f1 = _f1(shoe, strict, counts)
    soft = plain = None
    if len(shoe.predictions.score) == 0 or not np.isnan(shoe.predictions.score).any():
        loose = strict if strict.kept.all() else shoe.match()
        soft = _areas(shoe, *_soft_entries(shoe, loose), positives)
        plain = _areas(shoe, *_plain_entries(shoe), positives)
    none = [None] * counts
    columns = (shoe.classes.classes, positives.tolist(), soft or none, f1, plain or none)
    rows = [ClassScores(verb, name, *rest) for (verb, name), *rest in zip(*columns, strict=True)]
    truths, kept = len(shoe.truth.verb), int(strict.kept.sum())
    missed = int((strict.prediction_of < 0).sum())
    return Scores(
        classes=rows,
        soft_map=_mean(soft),
        mf1=_mean(f1),
        map=_mean(plain),
        gt_miss_rate=missed / truths if truths else None,
        prediction_miss_rate=(kept - (truths - missed)) / kept if kept else None,
        truths=truths,
        predictions=kept,
    )


def _soft_entries(shoe: Shoe, matching: Matching) -> tuple[Ints, Ints]:
    """(class or -1, similarity gained in UNITs), each [P]: Algorithm 1's lists S and L."""
    entry = np.where(shoe.counts_against, shoe.class_of(shoe.nearest), -1)
    gain = np.zeros(len(entry), dtype=np.int64)
    taken = np.flatnonzero(matching.truth_of >= 0)
    entry[taken] = shoe.classes.class_of[matching.truth_of[taken]]
    gain[taken] = shoe.similarities(matching.truth_of[taken], taken)
    return entry, gain


def _plain_entries(shoe: Shoe) -> tuple[Ints, Ints]:
    """(class or -1, UNIT for a true positive) of each prediction by hoicli's own matching: a prediction belongs to
    the ground truth of its class with the largest min(IoU), the first of equals, and the highest score takes it."""
    entry = predicted_classes(shoe.predictions, shoe.classes.classes)
    meet = shoe.meetings
    same = np.flatnonzero(entry[meet.prediction] == shoe.classes.class_of[meet.truth])
    truth, prediction = meet.truth[same], meet.prediction[same]
    overlap = np.fmin(meet.iou_subject[same], meet.iou_object[same])
    order = np.lexsort((truth, -overlap, prediction))
    best = order[run_starts(prediction[order])]
    truth, prediction = truth[best], prediction[best]
    order = np.lexsort((prediction, -shoe.predictions.score[prediction], truth))
    gain = np.zeros(len(entry), dtype=np.int64)
    gain[prediction[order[run_starts(truth[order])]]] = UNIT
    return entry, gain


def _areas(shoe: Shoe, entry: Ints, gain: Ints, positives: Ints) -> list[float]:
    """[C] the average precision of each class; predictions by score, then image id, then place in the record."""
    used = np.flatnonzero(entry >= 0)
    image = rank_by_id(shoe.predictions.image_ids)[shoe.predictions.image_of_hoi[used]]
    used = used[np.lexsort((used, image, -shoe.predictions.score[used], entry[used]))]
    bounds = np.searchsorted(entry[used], np.arange(len(positives) + 1)).tolist()
    gains = gain[used]
    return [
        average_precision(gains[begin:end], count, shoe.settings.area)
        for begin, end, count in zip(bounds[:-1], bounds[1:], positives.tolist(), strict=True)
    ]


def _f1(shoe: Shoe, matching: Matching, count: int) -> list[float]:
    """[C] Algorithm 2, lines 15 to 28 and 30 to 35."""
    found = np.flatnonzero(matching.prediction_of >= 0)
    gain = shoe.similarities(found, matching.prediction_of[found])
    of_found = shoe.classes.class_of[found]
    loose = np.flatnonzero(matching.kept & (matching.truth_of < 0) & shoe.counts_against)
    # Weights are whole numbers, so these float sums are exact.
    true = np.bincount(of_found, weights=gain, minlength=count)
    false = np.bincount(of_found, weights=UNIT - gain, minlength=count)
    false += UNIT * np.bincount(shoe.class_of(shoe.nearest[loose]), minlength=count)
    missed = UNIT * np.bincount(shoe.classes.class_of[matching.prediction_of < 0], minlength=count)
    none = np.zeros(count)
    precision = np.divide(true, true + false, out=none.copy(), where=true > 0)
    recall = np.divide(true, true + missed, out=none.copy(), where=true > 0)
    f1: list[float] = np.divide(2 * precision * recall, precision + recall, out=none, where=true > 0).tolist()
    return f1


def average_precision(gain: Ints, positives: int, area: str) -> float:
    """Algorithm 1, lines 35 to 39, in [0, 1]: of gains in UNITs, best score first, for a class of `positives` ground
    truth, under the curve of soft precision and recall that `area` (a key of AREAS) names. Without any gain it is 0."""
    rank = np.flatnonzero(gain) + 1  # precision is highest at gains, and only they change recall
    if len(rank) == 0 or positives == 0:
        return 0.0
    found = np.cumsum(gain)[rank - 1]
    precision, recall = found / (rank * UNIT), found / (positives * UNIT)
    if area == "step":
        return math.fsum((gain[rank - 1] * precision).tolist()) / (positives * UNIT)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    if area == "envelope":
        return math.fsum((gain[rank - 1] * envelope).tolist()) / (positives * UNIT)
    at = np.searchsorted(recall, GRID_ARANGE)
    return math.fsum(envelope[at[at < len(recall)]].tolist()) / len(GRID_ARANGE)


def _mean(values: list[float] | None) -> float | None:
    """The mean, exactly independent of the order of values; None for no values."""
    return math.fsum(values) / len(values) if values else None
