"""Curves and calibration as result rows: one value a line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from hoicli.diagnosis.curve import (
    BINS,
    NO_PROBABILITIES,
    Curve,
    calibration,
    capped,
    curve_of,
    levels_of,
    mean_precision,
)
from hoicli.errors import UsageError, arg
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.rows import Evaluated, Wanted, class_subsets
from hoicli.evaluation.run import tallies
from hoicli.evaluation.tally import ScoredLists
from hoicli.evaluation.views import ALONE, Thresholds, Views
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats, Ints
from hoicli.records.results import Row, percent, row_ends
from hoicli.vocabulary.labels import Vocabulary

STEPS = 100
"""Of so many evenly spaced recalls the deciding points are written, and those of as many thresholds."""


def classes_named(names: Sequence[str], vocabulary: Vocabulary) -> Ints:
    """The classes with these names, `VERB OBJECT` (or role). Raises `UsageError` for an unknown one."""
    known = {" ".join(filter(None, pair)): at for at, pair in enumerate(vocabulary.interactions)}
    for name in names:
        if name not in known:
            listed = f"hoicli vocab {vocabulary.path or vocabulary.name} --list interactions"
            problem = f"no class of {vocabulary.name} has it; {listed} lists them"
            raise UsageError(f"{arg('interaction', name)}: {problem}")
    return np.array(sorted({known[name] for name in names}), dtype=np.int64)


@dataclass(frozen=True)
class Curves:
    """One model's ranked lists under one view of a protocol, and the rows to write. evaluated: its results and what
    the rows say of them; ranked: all predictions that have an outcome. single: the classes whose own curves are wanted,
    None for all."""

    evaluated: Evaluated
    ranked: ScoredLists
    single: Ints | None

    @cached_property
    def lists(self) -> ScoredLists:
        """Cut to the predictions that the protocol counts."""
        return capped(self.ranked, self.evaluated.protocol.predictions_per_class)

    @cached_property
    def _levels(self) -> tuple[float, ...]:
        return levels_of(self.evaluated.protocol.grid, STEPS)

    @cached_property
    def _mean_precision(self) -> Floats:
        return mean_precision(self.lists, self.evaluated.results.positives, self._levels)

    def rows(self) -> Iterator[Row]:
        """Of every subset the curve of its classes pooled and the mean of its classes' curves; then the curves of
        `single` classes that the protocol averages. Values are in percent, thresholds are scores."""
        evaluated, vocabulary = self.evaluated, self.evaluated.classes
        for subset, members in evaluated.members.items():
            yield from self._group({"subset": subset}, members)
        group = class_subsets(vocabulary, evaluated.protocol)
        averaged = np.flatnonzero(evaluated.results.in_mean)
        for within in (self.single, evaluated.within):  # the classes of a part of a slice
            averaged = averaged if within is None else averaged[np.isin(averaged, list(within))]
        for number in averaged.tolist():
            verb, name = vocabulary.interactions[number]
            named = {"subset": group.get(number, "full"), "verb": verb, vocabulary.qualifier: name or None}
            yield from self._class(named, number)

    @cached_property
    def _ends(self) -> tuple[Row, Row]:
        """The last keys of the rows of curves, and of those of calibration, which depends on the number of bins."""
        evaluated = self.evaluated
        tags, settings = {**evaluated.tags, **evaluated.view}, evaluated.settings
        both = settings, {**settings, "bins": str(BINS)}
        of_curves, of_bins = (row_ends(evaluated.protocol.name, tags, one) for one in both)
        return of_curves, of_bins

    def _row(self, metric: str, named: Row, value: float | None, n: int, *, binned: bool = False) -> Row:
        return {"metric": metric, **named, "value": value, "n": n, "unit": "%", **self._ends[binned]}

    def _group(self, named: Row, members: Ints) -> Iterator[Row]:
        ap = self.evaluated.results.ap[members]
        yield self._row("mAP", named, percent(ap.mean()) if len(members) else None, len(members))
        means = self._mean_precision[members].mean(axis=0).tolist() if len(members) else []
        for level, value in zip(self._levels, means, strict=False):
            yield self._row("mean_precision", {**named, "recall": round(100 * level, 10)}, percent(value), len(members))
        yield from self._curve(named, curve_of(self.lists, self.evaluated.results.positives, members, pooled=True))

    def _class(self, named: Row, number: int) -> Iterator[Row]:
        results = self.evaluated.results
        positives = int(results.positives[number])
        yield self._row("AP", named, percent(results.ap[number]), positives)
        yield from self._curve(named, curve_of(self.lists, results.positives, np.array([number]), pooled=False))

    def _curve(self, named: Row, curve: Curve) -> Iterator[Row]:
        """The best threshold, the points of the curve, and the calibration."""
        if (best := curve.best) is None:
            nowhere = {**named, "threshold": None, "rank": 0}
            yield self._row("best_f1", nowhere, 0.0 if curve.positives else None, curve.positives)
        else:
            f1 = curve.f1(np.array([best]))[0]
            yield self._row("best_f1", {**named, **self._place(curve, best)}, percent(f1), curve.positives)
        for point in curve.points(self._levels, STEPS).tolist():
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
        """ECE, the share of right predictions and their mean score, over all and in each bin that has some."""
        found, total = calibration(curve.score, curve.hit), len(curve.score)
        row = partial(self._row, binned=True)
        if found is None:
            yield row("ece", {**named, "reason": NO_PROBABILITIES}, None, total)
            return
        yield row("ece", named, percent(found.error), total)
        for metric, values in (("accuracy", found.right), ("confidence", found.confidence)):
            yield row(metric, named, percent(found.mean(values)), total)
            for (low, high), n, value in zip(pairwise(found.edges), found.count.tolist(), values.tolist(), strict=True):
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
    """The rows of `Curves` of predictions with ground truth, or of match records; parameters as of `tallies`, which
    says what it raises. A mean over thresholds has no curve: its thresholds have one each."""
    views = replace(views, thresholds=Thresholds(views.thresholds.values))
    wanted = Wanted(slices=views.of_classes)
    for tally, own, settings in tallies(
        predictions, truth, protocols, filters, policy, named=named, views=views, vocabulary=vocabulary
    ):
        for protocol, results, lists in tally.scored(own):
            signed = {**settings, "data": own.signed, **tally.settings(protocol)}
            for evaluated in Evaluated.of(protocol, own, wanted, results, signed, tags):
                yield from Curves(evaluated, lists, single).rows()
