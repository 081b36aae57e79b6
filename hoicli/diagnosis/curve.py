"""Precision and recall of one ranked list, of a class or of a group of classes pooled, and its calibration.

A threshold keeps every prediction that scores at least as much, so it cannot split equal scores. Average precision can:
it ranks them (by image id, then by place in the image) and reads precision between them. A curve therefore has a point
at every rank, and the points inside a run of equal scores have no threshold (NaN). The best F1, and everything that is
asked of a threshold, is read at the ends of such runs alone.

Calibration: how far scores are probabilities. Of the predictions that score 0.7, are 70 % right? Right is a true
positive of the protocol; so a duplicate is wrong, and the second prediction of one pair lowers the calibration as it
lowers precision. The bins are of equal width and closed on the right, the first on the left as well; ECE is the mean
over predictions of the distance between the share of right ones in a bin and its mean score (Naeini et al. 2015; Guo et
al. 2017, with 15 bins).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hoicli.evaluation.average_precision import precision_from
from hoicli.evaluation.listed import by_score
from hoicli.evaluation.tally import ScoredLists
from hoicli.records.kit import Bools, Floats, Ints, expanded, starts_of

BINS = 15
"""Guo et al. 2017, On Calibration of Modern Neural Networks, section 2 and Table 1."""
NO_PROBABILITIES = "there are scores below 0 or above 1, which are no probabilities"


@dataclass(frozen=True)
class Curve:
    """score [T], descending, and hit [T] of the counted predictions in the order of the ranking; positives: the
    ground truth. pooled: the list is of several classes, whose order within equal scores means nothing."""

    score: Floats
    hit: Bools
    positives: int
    pooled: bool = False

    @cached_property
    def found(self) -> Ints:
        """[T] true positives among the first 1, 2, ... predictions."""
        return np.cumsum(self.hit, dtype=np.int64)

    @cached_property
    def precision(self) -> Floats:
        """[T] in [0, 1]."""
        precision: Floats = self.found / np.arange(1, len(self.hit) + 1)
        return precision

    @cached_property
    def recall(self) -> Floats:
        """[T] in [0, 1]; 0 without ground truth."""
        recall: Floats = self.found / max(self.positives, 1)
        return recall

    @cached_property
    def reachable(self) -> Bools:
        """[T] the points that a threshold has: the last of each run of equal scores."""
        return np.append(self.score[1:] != self.score[:-1], True) if len(self.score) else np.zeros(0, dtype=bool)

    def f1(self, points: Ints) -> Floats:
        """The F1 at some points, in [0, 1]: 2 TP / (predictions + ground truth). The division is of whole numbers, so
        equal F1 are equal floats."""
        f1: Floats = 2 * self.found[points] / (points + 1 + self.positives)
        return f1

    @cached_property
    def best(self) -> int | None:
        """The point that a threshold has with the highest F1, of equals the one with the highest threshold; None
        without a true positive."""
        points = np.flatnonzero(self.reachable)
        if self.positives == 0 or not self.hit.any():
            return None
        return int(points[self.f1(points).argmax()])

    def decisive(self, levels: Sequence[float]) -> Ints:
        """The points, ascending, that decide the interpolated precision at some recalls: of all with at least that
        recall the one with the highest precision, of equals the one with the highest recall. Every other point has a
        rival that is at least as precise and finds more, but for what lies between two levels.

        Of a pooled curve, only points that a threshold has."""
        points = np.flatnonzero(self.reachable) if self.pooled else np.arange(len(self.score))
        if not len(points):
            return points
        precision, recall = self.precision[points], self.recall[points]
        backwards = precision[::-1]
        best = np.maximum.accumulate(backwards)
        new = np.append(True, best[1:] > best[:-1])
        last = np.maximum.accumulate(np.where(new, np.arange(len(points)), 0))
        holder = (len(points) - 1 - last)[::-1]  # [T] the point with the highest precision from here on
        first = np.searchsorted(recall, np.asarray(levels))
        kept: Ints = points[np.unique(holder[first[first < len(points)]])]
        return kept

    def spread(self, steps: int) -> Ints:
        """The points of evenly spaced thresholds, from the highest score to the lowest, ascending."""
        if not len(self.score):
            return np.zeros(0, dtype=np.int64)
        high, low = float(self.score[0]) / 2, float(self.score[-1]) / 2  # halves: their difference is always a number
        cuts = 2 * np.linspace(high, low, steps + 1)  # both ends as they are
        kept = np.searchsorted(-self.score, -cuts, side="right")
        return np.unique(kept[kept > 0] - 1)

    def points(self, levels: Sequence[float], steps: int) -> Ints:
        """The points to be written, ascending: those that are decisive at some recalls, those of evenly spaced
        thresholds (between two decisive ones may lie nearly all of them), that of the best F1, and the last, which
        keeps everything."""
        best = self.best
        kept = [
            self.decisive(levels),
            self.spread(steps),
            np.arange(len(self.score))[-1:],
            np.array([] if best is None else [best]),
        ]
        return np.unique(np.concatenate(kept).astype(np.int64))


def curve_of(lists: ScoredLists, positives: Ints, classes: Ints, *, pooled: bool) -> Curve:
    """The curve of some classes as one list by score; not `pooled`: of one class. positives [C]."""
    _, rows = expanded(lists.bounds[classes], np.diff(lists.bounds)[classes])
    rows = rows[by_score(lists.score[rows])]
    return Curve(lists.score[rows], lists.hit[rows], int(positives[classes].sum()), pooled)


def mean_precision(lists: ScoredLists, positives: Ints, levels: Sequence[float]) -> Floats:
    """[C, L] the interpolated precision of each class at each recall: the highest at that recall or more, in [0, 1].
    Over a protocol's grid the mean of a class is its AP."""
    hit = np.flatnonzero(lists.hit)
    starts = np.searchsorted(hit, lists.bounds)
    rank = hit + 1 - np.repeat(lists.bounds[:-1], np.diff(starts))
    return np.stack(list(precision_from(rank, starts, positives, levels)), axis=1)


def levels_of(grid: Sequence[float], steps: int) -> tuple[float, ...]:
    """0, 1/steps, ... 1, with a protocol's own grid in place of what equals it but for rounding."""
    own = {round(value * steps): value for value in grid if abs(value * steps - round(value * steps)) < 1e-9}
    even = {place: own.get(place, place / steps) for place in range(steps + 1)}
    return tuple(sorted({*even.values(), *grid}))


def capped(lists: ScoredLists, cap: int | None) -> ScoredLists:
    """The lists cut to the first `cap` predictions of each class; None leaves them whole."""
    if cap is None:
        return lists
    rank = np.arange(len(lists.hit)) - np.repeat(lists.bounds[:-1], np.diff(lists.bounds))
    kept = rank < cap
    return ScoredLists(lists.hit[kept], lists.score[kept], starts_of(kept)[lists.bounds])


@dataclass(frozen=True)
class Calibration:
    """count, right, confidence [B]: predictions of each bin, the share of right ones and their mean score, NaN for an
    empty bin."""

    count: Ints
    right: Floats
    confidence: Floats

    @property
    def edges(self) -> list[float]:
        """[B + 1] where the bins begin and end."""
        return [place / len(self.count) for place in range(len(self.count) + 1)]

    @property
    def error(self) -> float | None:
        """The expected calibration error, in [0, 1]; None without predictions."""
        return self.mean(np.abs(self.right - self.confidence))

    def mean(self, values: Floats) -> float | None:
        """The mean over predictions of `right` or `confidence`; None without predictions."""
        some = self.count > 0
        total = int(self.count.sum())
        return float((self.count[some] * values[some]).sum() / total) if total else None


def calibration(score: Floats, hit: Bools) -> Calibration | None:
    """The calibration of scores [T]; None if one is below 0 or above 1. The sums follow the order of the arrays."""
    if len(score) and (score.min() < 0 or score.max() > 1):
        return None
    edges = np.arange(BINS + 1) / BINS
    bin_ = np.maximum(np.searchsorted(edges, score, side="left") - 1, 0)
    count = np.bincount(bin_, minlength=BINS)
    sums = (np.bincount(bin_, weights=values, minlength=BINS) for values in (hit, score))
    right, confidence = (np.divide(part, count, out=np.full(BINS, np.nan), where=count > 0) for part in sums)
    return Calibration(count, right, confidence)
