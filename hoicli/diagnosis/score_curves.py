"""Precision and recall of a class, or of a group of classes pooled in one list, and the list's calibration, as rows.

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

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.evaluating import tallies
from hoicli.evaluation.evaluation_rows import Evaluated, Wanted, class_subsets
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import order_by_score, precision_from
from hoicli.evaluation.tally import ScoredLists
from hoicli.evaluation.views import ALONE, Thresholds, Views
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Floats, Ints, expand_runs, starts_of
from hoicli.records.result_rows import Row, percent, result_row, row_ends
from hoicli.vocabulary.labels import Vocabulary

BINS = 15
"""Guo et al. 2017, On Calibration of Modern Neural Networks, section 2 and Table 1."""
STEPS = 100
"""The rows of a curve hold the points that decide at this many evenly spaced recalls, and at as many thresholds."""
NO_PROBABILITIES = "there are scores below 0 or above 1, which are no probabilities"


@dataclass(frozen=True)
class Curve:
    """A precision-recall curve. score [T], descending, and hit [T]: the score of each counted prediction in the order
    of the ranking, and whether it is a true positive; positives: the number of ground truths; pooled: whether the list
    joins several classes, whose order within equal scores means nothing."""

    score: Floats
    hit: Bools
    positives: int
    pooled: bool = False

    @cached_property
    def found(self) -> Ints:
        """The number of true positives [T] among the first 1, 2, ... predictions."""
        return np.cumsum(self.hit, dtype=np.int64)

    @cached_property
    def precision(self) -> Floats:
        """The precision [T] at each rank, in [0, 1]."""
        precision: Floats = self.found / np.arange(1, len(self.hit) + 1)
        return precision

    @cached_property
    def recall(self) -> Floats:
        """The recall [T] at each rank, in [0, 1]; 0 if there is no ground truth."""
        recall: Floats = self.found / max(self.positives, 1)
        return recall

    @cached_property
    def reachable(self) -> Bools:
        """The points [T] that some threshold reaches: the last of each run of equal scores."""
        return np.append(self.score[1:] != self.score[:-1], True) if len(self.score) else np.zeros(0, dtype=bool)

    def f1(self, points: Ints) -> Floats:
        """Return the F1 at some points, in [0, 1]: 2 TP / (predictions + ground truth). The division is of whole
        numbers, so equal F1 are equal floats."""
        f1: Floats = 2 * self.found[points] / (points + 1 + self.positives)
        return f1

    @cached_property
    def best(self) -> int | None:
        """The reachable point with the highest F1 (among equal ones, the one with the highest threshold), None if there
        is no true positive."""
        points = np.flatnonzero(self.reachable)
        if self.positives == 0 or not self.hit.any():
            return None
        return int(points[self.f1(points).argmax()])

    def decisive(self, levels: Sequence[float]) -> Ints:
        """Return the points, ascending, that decide the interpolated precision at some recalls. For each recall in
        `levels` that is the point with the highest precision among all points of at least that recall (among equal
        ones, the point with the highest recall). For every other point there is one that is at least as precise and
        finds more, except between two levels. On a pooled curve, only reachable points are taken."""
        points = np.flatnonzero(self.reachable) if self.pooled else np.arange(len(self.score))
        if not len(points):
            return points
        precision, recall = self.precision[points], self.recall[points]
        backwards = precision[::-1]
        best = np.maximum.accumulate(backwards)
        is_new_best = np.append(True, best[1:] > best[:-1])
        last_new_best = np.maximum.accumulate(np.where(is_new_best, np.arange(len(points)), 0))
        most_precise = (len(points) - 1 - last_new_best)[::-1]  # [T] the most precise point from here on
        first_at_level = np.searchsorted(recall, np.asarray(levels))
        decisive_points: Ints = points[np.unique(most_precise[first_at_level[first_at_level < len(points)]])]
        return decisive_points

    def points(self, levels: Sequence[float], steps: int) -> list[int]:
        """Return the points to write as rows, ascending: the decisive ones at some recalls, those of evenly spaced
        thresholds from the highest score to the lowest (nearly all thresholds may lie between two decisive points), the
        one with the best F1, and the last, which keeps every prediction."""
        if not len(self.score):
            return []
        high, low = float(self.score[0]) / 2, float(self.score[-1]) / 2  # halves, whose difference cannot overflow
        cuts = 2 * np.linspace(high, low, steps + 1)  # both ends exactly as the scores are
        counts = np.searchsorted(-self.score, -cuts, side="right")
        chosen = {*self.decisive(levels).tolist(), *(counts[counts > 0] - 1).tolist(), len(self.score) - 1}
        return sorted(chosen if self.best is None else {*chosen, self.best})


def levels_of(grid: Sequence[float], steps: int) -> tuple[float, ...]:
    """Return the recalls 0, 1/steps, ... 1 and those of a protocol's grid; where both have the same recall but for
    rounding, the grid's number is taken."""
    own_levels = {round(value * steps): value for value in grid if abs(value * steps - round(value * steps)) < 1e-9}
    even = {place: own_levels.get(place, place / steps) for place in range(steps + 1)}
    return tuple(sorted({*even.values(), *grid}))


@dataclass(frozen=True)
class Calibration:
    """How scores compare with the share of right predictions, in B bins. count, right, confidence [B]: how many
    predictions a bin has, the share of right ones and their mean score, both NaN for an empty bin."""

    count: Ints
    right: Floats
    confidence: Floats

    @property
    def edges(self) -> list[float]:
        """The B + 1 scores at which the bins begin and end."""
        return [place / len(self.count) for place in range(len(self.count) + 1)]

    @property
    def error(self) -> float | None:
        """The expected calibration error, in [0, 1]; None without predictions."""
        return self.mean(np.abs(self.right - self.confidence))

    def mean(self, values: Floats) -> float | None:
        """Return the mean over predictions of a value per bin, such as `right`; None without predictions."""
        filled = self.count > 0
        total = int(self.count.sum())
        return float((self.count[filled] * values[filled]).sum() / total) if total else None


def calibration(score: Floats, hit: Bools) -> Calibration | None:
    """Return the calibration of scores [T], None if one is outside [0, 1]. The sums follow the order of the arrays."""
    if len(score) and (score.min() < 0 or score.max() > 1):
        return None
    edges = np.arange(BINS + 1) / BINS
    bin_ = np.maximum(np.searchsorted(edges, score, side="left") - 1, 0)
    count = np.bincount(bin_, minlength=BINS)
    sums = (np.bincount(bin_, weights=values, minlength=BINS) for values in (hit, score))
    right, confidence = (np.divide(part, count, out=np.full(BINS, np.nan), where=count > 0) for part in sums)
    return Calibration(count, right, confidence)


def classes_named(names: Sequence[str], vocabulary: Vocabulary) -> Ints:
    """Return the numbers of the classes named `VERB OBJECT` (or role). Raises `UsageError` for an unknown name."""
    class_of = {" ".join(filter(None, pair)): number for number, pair in enumerate(vocabulary.interactions)}
    for name in names:
        if name not in class_of:
            command = f"hoicli vocab {vocabulary.path or vocabulary.name} --list interactions"
            problem = f"no class of {vocabulary.name} has it; {command} lists them"
            raise UsageError(f"{arg('interaction', name)}: {problem}")
    return np.array(sorted({class_of[name] for name in names}), dtype=np.int64)


@dataclass(frozen=True)
class Curves:
    """One model's ranked lists under one view of a protocol, and the rows to write of them. evaluated: the model's
    results and what the rows say besides; ranked: all predictions that have an outcome; single: the classes whose own
    curves are wanted, None for all."""

    evaluated: Evaluated
    ranked: ScoredLists
    single: Ints | None

    @cached_property
    def _lists(self) -> ScoredLists:
        """The ranked lists, each cut to as many predictions of its class as the protocol counts."""
        lists, cap = self.ranked, self.evaluated.protocol.predictions_per_class
        if cap is None:
            return lists
        within_cap = np.arange(len(lists.hit)) - np.repeat(lists.bounds[:-1], np.diff(lists.bounds)) < cap
        return ScoredLists(lists.hit[within_cap], lists.score[within_cap], starts_of(within_cap)[lists.bounds])

    @cached_property
    def _levels(self) -> tuple[float, ...]:
        return levels_of(self.evaluated.protocol.grid, STEPS)

    @cached_property
    def _mean_precision(self) -> Floats:
        """The interpolated precision [C, L] of each class at each recall: the highest precision at that recall or a
        higher one, in [0, 1]. Its mean over the recalls of a protocol's grid is the AP of the class."""
        hit, bounds = np.flatnonzero(self._lists.hit), self._lists.bounds
        starts = np.searchsorted(hit, bounds)
        rank = hit + 1 - np.repeat(bounds[:-1], np.diff(starts))
        return np.stack(list(precision_from(rank, starts, self.evaluated.results.positives, self._levels)), axis=1)

    def rows(self) -> Iterator[Row]:
        """Yield the rows of each subset (the curve of its classes pooled in one list, and the mean of their curves),
        then the curves of the `single` classes that the protocol averages. Values are in percent, thresholds scores."""
        evaluated, vocabulary, results = self.evaluated, self.evaluated.classes, self.evaluated.results
        for subset, members in evaluated.members.items():
            yield from self._group({"subset": subset}, members)
        subset_of = class_subsets(vocabulary, evaluated.protocol)
        averaged = np.flatnonzero(results.in_mean)
        for within in (self.single, evaluated.within):  # the classes of a part of a slice
            averaged = averaged if within is None else averaged[np.isin(averaged, list(within))]
        for number in averaged.tolist():
            verb, name = vocabulary.interactions[number]
            named = {"subset": subset_of.get(number, "full"), "verb": verb, vocabulary.qualifier: name or None}
            yield self._row("AP", named, percent(results.ap[number]), int(results.positives[number]))
            yield from self._curve(named, np.array([number]), pooled=False)

    @cached_property
    def _ends(self) -> tuple[Row, Row]:
        """The last keys of the rows of curves and of calibration, which differ: the latter are signed with the number
        of bins."""
        evaluated = self.evaluated
        tags, settings = {**evaluated.tags, **evaluated.view}, evaluated.settings
        signatures = settings, {**settings, "bins": BINS}
        of_curves, of_bins = (row_ends(evaluated.protocol.name, tags, signed) for signed in signatures)
        return of_curves, of_bins

    def _row(self, metric: str, named: Row, value: float | None, n: int, *, binned: bool = False) -> Row:
        return result_row(metric, **named, value=value, n=n, unit="%", **self._ends[1 if binned else 0])

    def _group(self, named: Row, members: Ints) -> Iterator[Row]:
        ap = self.evaluated.results.ap[members]
        yield self._row("mAP", named, percent(ap.mean()) if len(members) else None, len(members))
        means = self._mean_precision[members].mean(axis=0).tolist() if len(members) else []
        for level, value in zip(self._levels, means, strict=False):
            yield self._row("mean_precision", {**named, "recall": round(100 * level, 10)}, percent(value), len(members))
        yield from self._curve(named, members, pooled=True)

    def _curve(self, named: Row, classes: Ints, *, pooled: bool) -> Iterator[Row]:
        """Yield the best threshold, the points of the curve and the calibration of some classes, pooled in one list by
        score."""
        lists = self._lists
        _, rows = expand_runs(lists.bounds[classes], np.diff(lists.bounds)[classes])
        rows = rows[order_by_score(lists.score[rows])]
        positives = int(self.evaluated.results.positives[classes].sum())
        curve = Curve(lists.score[rows], lists.hit[rows], positives, pooled)
        if (best := curve.best) is None:
            nowhere = {**named, "threshold": None, "rank": 0}
            yield self._row("best_f1", nowhere, 0.0 if curve.positives else None, curve.positives)
        else:
            f1 = curve.f1(np.array([best]))[0]
            yield self._row("best_f1", {**named, **self._place(curve, best)}, percent(f1), curve.positives)
        for point in curve.points(self._levels, STEPS):
            place = {**named, **self._place(curve, point)}
            yield self._row("precision", place, percent(curve.precision[point]), point + 1)
            recall = percent(curve.recall[point]) if curve.positives else None
            yield self._row("recall", place, recall, curve.positives)
        yield from self._calibration(named, curve)

    @staticmethod
    def _place(curve: Curve, point: int) -> Row:
        reachable = bool(curve.reachable[point])
        return {"threshold": float(curve.score[point]) if reachable else None, "rank": point + 1}

    def _calibration(self, named: Row, curve: Curve) -> Iterator[Row]:
        """Yield the ECE, the share of right predictions and their mean score, over all and in each bin that has any."""
        bins, total = calibration(curve.score, curve.hit), len(curve.score)
        row = partial(self._row, binned=True)
        if bins is None:
            yield row("ece", {**named, "reason": NO_PROBABILITIES}, None, total)
            return
        yield row("ece", named, percent(bins.error), total)
        for metric, values in (("accuracy", bins.right), ("confidence", bins.confidence)):
            yield row(metric, named, percent(bins.mean(values)), total)
            for (low, high), n, value in zip(pairwise(bins.edges), bins.count.tolist(), values.tolist(), strict=True):
                if n:
                    bin_ = {**named, "bin_low": round(low, 10), "bin_high": round(high, 10)}
                    yield row(metric, bin_, percent(value), n)


def curve_rows(
    predictions: Predictions,
    truth: GroundTruth | None,
    protocols: Sequence[Protocol],
    vocabulary: Vocabulary,
    filters: Filters,
    policy: ErrorPolicy,
    single: Ints | None,
    *,
    named: Collection[str] = (),
    views: Views = ALONE,
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """Yield the rows of `Curves` for predictions with ground truth, or for match records; parameters and errors are
    those of `tallies`. A mean over several thresholds has no curve: each of its thresholds has one."""
    views = replace(views, thresholds=Thresholds(views.thresholds.values))
    requested = Wanted(slices=views.of_classes)
    for tally, vocabulary_of_tally, settings in tallies(
        predictions, truth, protocols, filters, policy, named=named, views=views, vocabulary=vocabulary
    ):
        for protocol, results, lists in tally.scored_results(vocabulary_of_tally):
            signed = {**settings, "data": vocabulary_of_tally.signed, **tally.settings(protocol)}
            for evaluated in Evaluated.split_by_slices(protocol, vocabulary_of_tally, requested, results, signed, tags):
                yield from Curves(evaluated, lists, single).rows()
