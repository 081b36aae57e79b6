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


@dataclass(frozen=True)
class Asked:
    """Which rows are wanted. thresholds: to read besides the curve's own. per_class: the curve of every class. verbs,
    objects: the group of the classes of each. interactions: the curve of each, as `VERB OBJECT` (or role)."""

    thresholds: tuple[float, ...] = ()
    per_class: bool = False
    verbs: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    interactions: tuple[str, ...] = ()

    def check(self, vocabulary: Vocabulary) -> None:
        """Raises `UsageError` for a name that is none of the vocabulary of the classes."""
        self.groups(vocabulary)
        self.classes(vocabulary)

    def groups(self, vocabulary: Vocabulary) -> list[tuple[Row, Ints]]:
        """(how its rows are marked, its classes) of each verb and object that is asked for. Raises `UsageError` for an
        unknown one."""
        columns = {"verb": (self.verbs, 0), vocabulary.qualifier: (self.objects, 1)}
        if self.objects and (vocabulary.roles or not any(name for _, name in vocabulary.interactions)):
            raise UsageError(f"{arg('object_', self.objects[0])}: the classes of this protocol have no objects")
        found: list[tuple[Row, Ints]] = []
        for key, (names, side) in columns.items():
            for name in names:
                members = [at for at, pair in enumerate(vocabulary.interactions) if pair[side] == name]
                if not members:
                    raise _unknown(f"--{key} {name}", vocabulary, f"{key}s")
                found.append(({"subset": "full", key: name}, np.array(members, dtype=np.int64)))
        return found

    def classes(self, vocabulary: Vocabulary) -> Ints:
        """The classes whose curves are asked for by name. Raises `UsageError` for an unknown one."""
        known = {" ".join(filter(None, pair)): at for at, pair in enumerate(vocabulary.interactions)}
        for name in self.interactions:
            if name not in known:
                raise _unknown(arg("interaction", name), vocabulary, "interactions")
        return np.array(sorted({known[name] for name in self.interactions}), dtype=np.int64)


def _unknown(given: str, vocabulary: Vocabulary, kind: str) -> UsageError:
    listed = f"hoicli vocab {vocabulary.path or vocabulary.name} --list {kind}"
    return UsageError(f"{given}: no class of {vocabulary.name} has it; {listed} lists them")


@dataclass(frozen=True)
class Curves:
    """One model's ranked lists under one view of a protocol, and the rows to write. evaluated: its results and what
    the rows say of them; ranked: all predictions that have an outcome."""

    evaluated: Evaluated
    ranked: ScoredLists
    asked: Asked

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
        """Of every subset, then of the verbs and objects asked for, the curve of their classes pooled and the mean of
        their classes' curves; then the curves of single classes. Values are in percent, thresholds are scores."""
        evaluated, vocabulary = self.evaluated, self.evaluated.classes
        groups: list[tuple[Row, Ints]] = [({"subset": name}, members) for name, members in evaluated.members.items()]
        averaged = self._averaged
        for named, members in self.asked.groups(vocabulary):
            groups.append((named, members[np.isin(members, averaged)]))
        for named, members in groups:
            yield from self._group(named, members)
        group = class_subsets(vocabulary, evaluated.protocol)
        chosen = averaged if self.asked.per_class else self.asked.classes(vocabulary)
        for number in chosen[np.isin(chosen, averaged)].tolist():
            verb, name = vocabulary.interactions[number]
            named = {"subset": group.get(number, "full"), "verb": verb, vocabulary.qualifier: name or None}
            yield from self._class(named, number)

    @cached_property
    def _averaged(self) -> Ints:
        """The classes that the protocol averages, within the part of a slice of classes."""
        classes = np.flatnonzero(self.evaluated.results.in_mean)
        within = self.evaluated.within
        return classes if within is None else classes[np.isin(classes, sorted(within))]

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
        """The best threshold, those asked for, the points of the curve, and the calibration."""
        if (best := curve.best) is None:
            nowhere = {**named, "threshold": None, "rank": 0}
            yield self._row("best_f1", nowhere, 0.0 if curve.positives else None, curve.positives)
        else:
            f1 = curve.f1(np.array([best]))[0]
            yield self._row("best_f1", {**named, **self._place(curve, best)}, percent(f1), curve.positives)
        for threshold in self.asked.thresholds:
            yield from self._at(named, curve, threshold)
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

    def _at(self, named: Row, curve: Curve, threshold: float) -> Iterator[Row]:
        """The three values at a threshold that was asked for. Without a prediction that reaches it, precision is null
        and recall 0."""
        rank = curve.kept(threshold)
        found = int(curve.found[rank - 1]) if rank else 0
        values = {
            "precision_at": (found / rank if rank else None, rank),
            "recall_at": (found / curve.positives if curve.positives else None, curve.positives),
            "f1_at": (2 * found / (rank + curve.positives) if curve.positives else None, curve.positives),
        }
        for metric, (value, n) in values.items():
            yield self._row(metric, {**named, "threshold": threshold, "rank": rank}, percent(value), n)

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
    asked: Asked,
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
                yield from Curves(evaluated, lists, asked).rows()
