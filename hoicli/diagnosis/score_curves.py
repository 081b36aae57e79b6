"""Precision and recall of a class, or of a group of classes pooled in one list, and the list's calibration, as rows.

A threshold keeps every prediction that scores at least as much, so it cannot split equal scores. Average precision can:
it ranks them (by image id, then by place in the image) and reads precision between them. A curve therefore has a point
at every rank, and the points inside a run of equal scores have no threshold (NaN). The best F1, and everything that is
asked of a threshold, is read at the ends of such runs alone.

Calibration: how far scores are probabilities. Of the predictions that score 0.7, are 70 % right? Right is a true
positive of the protocol; so a duplicate is wrong, and the second prediction of one pair lowers the calibration as it
lowers precision. The bins are of equal width and closed on the right, the first on the left as well; ECE is the mean
over predictions of the distance between the share of right ones in a bin and its mean score (Naeini et al. 2015; Guo et
al. 2017, with 15 bins)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.evaluating import gather_tallies
from hoicli.evaluation.evaluation_rows import Evaluated, Wanted, class_keys
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import order_by_score, precision_from
from hoicli.evaluation.tally import ScoredLists
from hoicli.evaluation.views import ALONE, Thresholds, Views
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Floats, Ints, expand_runs, starts_of
from hoicli.records.result_rows import Row, percent, result_row
from hoicli.vocabulary.labels import Vocabulary

BINS = 15
"""Guo et al. 2017, On Calibration of Modern Neural Networks, section 2 and Table 1."""
STEPS = 100
"""The rows of a curve hold the points that decide at this many evenly spaced recalls, and at as many thresholds."""
NO_PROBABILITIES = "there are scores below 0 or above 1, which are no probabilities"


@dataclass(frozen=True)
class Curve:
    """A precision-recall curve, with a point for each of T ranked predictions: what precision and recall are if that
    one and those above it are kept.

    score [T], descending, and hit [T]: the score of each prediction, and whether it is a true positive; positives: the
    number of ground truths; pooled: whether the list joins several classes, where equal scores have no order."""

    score: Floats
    hit: Bools
    positives: int
    pooled: bool = False

    @cached_property
    def true_positives(self) -> Ints:
        """The number of true positives [T] among the first 1, 2, ... predictions."""
        return np.cumsum(self.hit, dtype=np.int64)

    @cached_property
    def precision(self) -> Floats:
        """The precision [T] at each rank, in [0, 1]."""
        precision: Floats = self.true_positives / np.arange(1, len(self.hit) + 1)
        return precision

    @cached_property
    def recall(self) -> Floats:
        """The recall [T] at each rank, in [0, 1]; 0 if there is no ground truth."""
        recall: Floats = self.true_positives / max(self.positives, 1)
        return recall

    @cached_property
    def reachable(self) -> Bools:
        """Whether each point [T] is reached by a threshold: whether it is the last of a run of equal scores."""
        return np.append(self.score[1:] != self.score[:-1], True) if len(self.score) else np.zeros(0, dtype=bool)

    def f1(self, points: Ints) -> Floats:
        """Return the F1 at some points, in [0, 1]: 2 TP / (predictions + ground truths). Computed from whole numbers,
        so that equal F1 are equal floats."""
        f1: Floats = 2 * self.true_positives[points] / (points + 1 + self.positives)
        return f1

    @cached_property
    def best(self) -> int | None:
        """The reachable point with the highest F1, of equals the highest threshold; None without true positives."""
        points = np.flatnonzero(self.reachable)
        if self.positives == 0 or not self.hit.any():
            return None
        return int(points[self.f1(points).argmax()])

    def interpolation_points(self, levels: Sequence[float]) -> Ints:
        """Return the points, ascending, that give the interpolated precision at the recalls `levels`: for each recall,
        the point with the highest precision among all points of at least that recall (among equally precise ones, the
        point with the highest recall). On a pooled curve, only points that a threshold reaches are taken."""
        points = np.flatnonzero(self.reachable) if self.pooled else np.arange(len(self.score))
        if not len(points):
            return points
        precision, recall = self.precision[points], self.recall[points]
        # From the last point backwards, note where the precision was last higher than ever before.
        highest = np.maximum.accumulate(precision[::-1])
        is_new_highest = np.append(True, highest[1:] > highest[:-1])
        last_new_highest = np.maximum.accumulate(np.where(is_new_highest, np.arange(len(points)), 0))
        most_precise = (len(points) - 1 - last_new_highest)[::-1]  # [T] the most precise point from each point on
        first_at_level = np.searchsorted(recall, np.asarray(levels))
        reached = first_at_level[first_at_level < len(points)]
        interpolation_points: Ints = points[np.unique(most_precise[reached])]
        return interpolation_points

    def points(self, levels: Sequence[float], steps: int) -> list[int]:
        """Return the points to write as rows, ascending: those that give the interpolated precision at the recalls
        `levels`, those of steps + 1 evenly spaced thresholds from the highest score to the lowest, the one with the
        best F1, and the last, which keeps every prediction."""
        if not len(self.score):
            return []
        high, low = float(self.score[0]) / 2, float(self.score[-1]) / 2  # halves, whose difference cannot overflow
        thresholds = 2 * np.linspace(high, low, steps + 1)  # both ends exactly as the scores are
        counts = np.searchsorted(-self.score, -thresholds, side="right")  # predictions at or above each threshold
        interpolating = self.interpolation_points(levels).tolist()
        chosen = {*interpolating, *(counts[counts > 0] - 1).tolist(), len(self.score) - 1}
        return sorted(chosen if self.best is None else {*chosen, self.best})


def recall_levels(grid: Sequence[float], steps: int) -> tuple[float, ...]:
    """Return the recalls 0, 1/steps, ... 1 and those of a protocol's grid, ascending. Where both have the same recall
    but for rounding, only the grid's number is taken."""
    # the recalls of the grid that are a multiple of 1/steps but for rounding, by that multiple
    on_grid = {round(value * steps): value for value in grid if abs(value * steps - round(value * steps)) < 1e-9}
    evenly_spaced = [on_grid.get(step, step / steps) for step in range(steps + 1)]
    return tuple(sorted({*evenly_spaced, *grid}))


@dataclass(frozen=True)
class Calibration:
    """How scores compare with the share of right predictions, in B bins of equal width. count [B]: how many predictions
    each bin has; right, confidence [B]: the share of true positives in it, and their mean score; NaN for an empty bin.
    """

    count: Ints
    right: Floats
    confidence: Floats

    @property
    def edges(self) -> list[float]:
        """The B + 1 scores, from 0 to 1, at which the bins begin and end."""
        return [bin_ / len(self.count) for bin_ in range(len(self.count) + 1)]

    @property
    def error(self) -> float | None:
        """The expected calibration error, in [0, 1]; None without predictions."""
        return self.mean(np.abs(self.right - self.confidence))

    def mean(self, values: Floats) -> float | None:
        """Return the mean over all predictions of a value [B] of their bins, such as `right`; None without any."""
        filled = self.count > 0
        total = int(self.count.sum())
        return float((self.count[filled] * values[filled]).sum() / total) if total else None


def calibration(score: Floats, hit: Bools) -> Calibration | None:
    """Return the calibration of predictions in BINS bins, None if a score is outside [0, 1]."""
    if len(score) and (score.min() < 0 or score.max() > 1):
        return None
    edges = np.arange(BINS + 1) / BINS
    # A bin is closed on the right, so a score on an edge is in the bin below it; a score of 0 is in the first bin.
    bin_ = np.maximum(np.searchsorted(edges, score, side="left") - 1, 0)
    count = np.bincount(bin_, minlength=BINS)
    sums = (np.bincount(bin_, weights=values, minlength=BINS) for values in (hit, score))
    right, confidence = (np.divide(part, count, out=np.full(BINS, np.nan), where=count > 0) for part in sums)
    return Calibration(count, right, confidence)


def classes_named(names: Sequence[str], vocabulary: Vocabulary) -> Ints:
    """Return the numbers, ascending, of the classes "VERB OBJECT" or "VERB ROLE". Raises `UsageError` for others."""
    class_of = {" ".join(filter(None, pair)): number for number, pair in enumerate(vocabulary.interactions)}
    for name in names:
        if name not in class_of:
            command = f"hoicli vocab {vocabulary.path or vocabulary.name} --list interactions"
            problem = f"no class of {vocabulary.name} has it; {command} lists them"
            raise UsageError(f"{arg('interaction', name)}: {problem}")
    return np.array(sorted({class_of[name] for name in names}), dtype=np.int64)


@dataclass(frozen=True)
class Curves:
    """The precision-recall curves of one model by one protocol (at one threshold, on one part of the data), as rows.

    evaluated: the model's AP per class, and the tags and settings of its rows; ranked: its predictions, ranked class by
    class; single: the classes whose own curves are wanted, besides those of subsets; None for all."""

    evaluated: Evaluated
    ranked: ScoredLists
    single: Ints | None

    @cached_property
    def _lists(self) -> ScoredLists:
        """The ranked lists, each cut to as many predictions of its class as the protocol counts."""
        lists, limit = self.ranked, self.evaluated.protocol.predictions_per_class
        if limit is None:
            return lists
        rank_in_class = np.arange(len(lists.hit)) - np.repeat(lists.bounds[:-1], np.diff(lists.bounds))
        counted = rank_in_class < limit
        return ScoredLists(lists.hit[counted], lists.score[counted], starts_of(counted)[lists.bounds])

    @cached_property
    def _levels(self) -> tuple[float, ...]:
        """The recalls at which interpolated precision is read."""
        return recall_levels(self.evaluated.protocol.grid, STEPS)

    @cached_property
    def _mean_precision(self) -> Floats:
        """The interpolated precision [C, L] of each class at each of the L recalls `_levels`: the highest precision at
        that recall or a higher one, in [0, 1]."""
        hit, bounds = np.flatnonzero(self._lists.hit), self._lists.bounds
        starts = np.searchsorted(hit, bounds)  # class c has the true positives hit[starts[c]:starts[c + 1]]
        rank = hit + 1 - np.repeat(bounds[:-1], np.diff(starts))
        return np.stack(list(precision_from(rank, starts, self.evaluated.results.positives, self._levels)), axis=1)

    def rows(self) -> Iterator[Row]:
        """Yield the rows of each subset (the curve of its classes pooled in one list, and the mean of their curves),
        then the curves of the `single` classes that the protocol averages. Values are in percent, thresholds scores."""
        evaluated, results = self.evaluated, self.evaluated.results
        for subset, classes in evaluated.members.items():
            yield from self._subset_rows({"subset": subset}, classes)
        keys_of_class = class_keys(evaluated.classes, evaluated.protocol)
        averaged = np.flatnonzero(results.in_mean)
        # Only the classes that were asked for and, for rows about a part of a slice of classes, the part's classes.
        for chosen in (self.single, evaluated.within):
            averaged = averaged if chosen is None else averaged[np.isin(averaged, list(chosen))]
        for number in averaged.tolist():
            named = keys_of_class[number]
            yield self._row("AP", named, percent(results.ap[number]), int(results.positives[number]))
            yield from self._curve_rows(named, np.array([number]), pooled=False)

    @cached_property
    def _last_keys(self) -> tuple[Row, Row]:
        """The keys that all rows of curves end with, and those of calibration, which sign the number of bins, too."""
        return self.evaluated.last_keys(), self.evaluated.last_keys({"bins": BINS})

    def _row(self, metric: str, named: Row, value: float | None, n: int, *, binned: bool = False) -> Row:
        """Return a result row in percent. named: the keys that say what it is about, such as subset, verb and rank;
        binned: whether the value depends on the number of bins, which its signature then states."""
        return result_row(metric, **named, value=value, n=n, **self._last_keys[binned])

    def _subset_rows(self, named: Row, classes: Ints) -> Iterator[Row]:
        """Yield the rows of a subset: its mAP, the mean of its classes' precision at each recall, and the curve of its
        classes pooled in one list."""
        ap = self.evaluated.results.ap[classes]
        yield self._row("mAP", named, percent(ap.mean()) if len(classes) else None, len(classes))
        means = self._mean_precision[classes].mean(axis=0).tolist() if len(classes) else []
        for level, value in zip(self._levels, means, strict=False):  # no mean without classes
            yield self._row("mean_precision", {**named, "recall": round(100 * level, 10)}, percent(value), len(classes))
        yield from self._curve_rows(named, classes, pooled=True)

    def _curve_rows(self, named: Row, classes: Ints, *, pooled: bool) -> Iterator[Row]:
        """Yield the best F1 with its threshold, the points of the precision-recall curve, and the calibration of some
        classes, whose predictions are joined in one list by score. pooled: whether they are a subset."""
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
            place = {**named, **self._place(curve, point)}  # its threshold and rank
            yield self._row("precision", place, percent(curve.precision[point]), point + 1)
            recall = percent(curve.recall[point]) if curve.positives else None
            yield self._row("recall", place, recall, curve.positives)
        yield from self._calibration_rows(named, curve)

    @staticmethod
    def _place(curve: Curve, point: int) -> Row:
        """Return the keys that say where on the curve a point is: its rank, and the threshold that keeps the
        predictions down to it, None if that would keep others of equal score too."""
        reachable = bool(curve.reachable[point])
        return {"threshold": float(curve.score[point]) if reachable else None, "rank": point + 1}

    def _calibration_rows(self, named: Row, curve: Curve) -> Iterator[Row]:
        """Yield the expected calibration error; then the share of right predictions and the mean score, each over all
        predictions and in every bin that has some."""
        bins, total = calibration(curve.score, curve.hit), len(curve.score)
        row = partial(self._row, binned=True)  # signatures state the number of bins
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
    """Yield the rows of `Curves` for predictions with ground truth, or for match records, by each of `protocols`.

    single: the classes whose own curves are wanted, None for all; named: the names of protocols that the user asked
    for. A mean over several thresholds has no curve: each of its thresholds has one. Raises `DataError` for a bad
    stream or one that does not serve a protocol, `UsageError` for options that need predictions."""
    # the values without the ranges, over which means would be taken
    views = replace(views, thresholds=Thresholds(views.thresholds.values))
    requested = Wanted(slices=views.of_classes)
    for tally, vocabulary_of_tally, settings in gather_tallies(
        predictions, truth, protocols, filters, policy, named=named, views=views, vocabulary=vocabulary
    ):
        for protocol, results, lists in tally.scored_results(vocabulary_of_tally):
            signed = {**settings, "data": vocabulary_of_tally.signed, **tally.settings(protocol)}
            for evaluated in Evaluated.split_by_slices(protocol, vocabulary_of_tally, requested, results, signed, tags):
                yield from Curves(evaluated, lists, single).rows()
