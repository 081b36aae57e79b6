"""Diagnoses of one or several models from their streams, as result rows: counts of each error type, mAP with each
oracle and the difference it makes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any
from typing import Protocol as Interface

import numpy as np

from hoicli.converters.named import also_listed
from hoicli.diagnosis.error_types import ERRORS, MISSED
from hoicli.diagnosis.located import Located, Settled, each_match, locate
from hoicli.diagnosis.repair_assignment import SIGNATURES, ErrorTypes, Reading, types_of
from hoicli.diagnosis.repairs import Diagnosis, OracleResult
from hoicli.evaluation.coverage import Coverage, check_counted
from hoicli.evaluation.evaluating import gather_in_parallel, match_batches
from hoicli.evaluation.evaluation_rows import RECALL, class_keys
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.match_stream import MatchedView
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.slices import Slice
from hoicli.evaluation.tally import Tally, subset_classes
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Ints
from hoicli.records.oracles import ORACLES
from hoicli.records.result_rows import Row, Settings, percent, result_row, signature
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Placed:
    """A batch of matched images, as `Batch` and as `Located`; its error types are computed when first asked for."""

    batch: Batch
    located: Located
    reading: Reading

    @cached_property
    def types(self) -> ErrorTypes:
        """The error type of each prediction, and the ground truth that it repairs."""
        return types_of(self.located, self.reading)


class Collector(Interface):
    """What `match_and_diagnose` hands every matched batch to, besides diagnosing it, such as `Confusing`. Batches come
    in any order; in several processes each process has a collector, and these are merged."""

    def add(self, placed: Placed) -> None:
        """Keep of a batch what is wanted of it."""

    def merge(self, other: Any) -> None:
        """Add what another collector of the same kind kept of other images."""


@dataclass
class Gathered:
    """What one pass over a model's predictions gathered, once they are matched with the ground truth.

    tally: the outcomes, from which mAP is computed. diagnoses: the error types under each view, which is the protocol
    at one threshold or on one part of the data. coverage: which images have predictions. collected: the collectors."""

    tally: Tally
    diagnoses: list[Diagnosis]
    coverage: Coverage
    collected: list[Any]

    def merge(self, other: Gathered) -> None:
        """Add what was gathered from another part of the same stream."""
        self.tally.merge(other.tally)
        self.coverage.merge(other.coverage)
        for mine, theirs in zip([*self.collected, *self.diagnoses], [*other.collected, *other.diagnoses], strict=True):
            mine.merge(theirs)


def match_and_diagnose(
    predictions: Predictions,
    truth: GroundTruth,
    protocols: Sequence[Protocol],
    views: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    *,
    reading: Reading = "shared",
    collector: Callable[[Protocol], Collector | None] = lambda _: None,
    diagnosed: bool = True,
) -> Gathered:
    """Match a model's predictions in one pass, shared by processes for a large file, and return what was gathered. The
    caller reports the coverage.

    protocols: those to tally outcomes by, for mAP. views: those to diagnose errors by, if `diagnosed`, and to collect
    for. collector: makes the collector of a view, or returns None to keep nothing of it."""
    classes = len(truth.vocabulary.interactions)
    tallied = {protocol.key for protocol in protocols}
    matched_by = [*protocols, *(view for view in views if view.key not in tallied)]

    def gather(part: Iterable[Line], shared: ErrorPolicy) -> Gathered:
        """Return what is gathered from a part of the lines."""
        tally = Tally(protocols, classes)
        diagnoses = [Diagnosis(view, classes, tally.listed, reading) for view in views if diagnosed]
        collectors = [collector(view) for view in views]
        coverage = Coverage()
        for batch, outcomes in match_batches(part, truth, matched_by, filters, shared):
            coverage.add(batch)
            tally.add_batch(batch, {key: outcome for key, outcome in outcomes.items() if key in tallied})
            for number, view in enumerate(views):
                placed = Placed(batch, locate(batch, outcomes[view.key], view), reading)
                if diagnosed:
                    diagnoses[number].add(placed.located, placed.types)
                if (view_collector := collectors[number]) is not None:
                    view_collector.add(placed)
        return Gathered(tally, diagnoses, coverage, [item for item in collectors if item is not None])

    parts = gather_in_parallel(gather, predictions, policy, lambda part: part.tally.listed.image_ids)
    whole = parts[0]
    for other in parts[1:]:
        whole.merge(other)
    check_counted(whole.tally, truth.vocabulary, predictions.name, allowed=filters.allow_uncounted)
    whole.tally.add_truth(truth)
    for diagnosis in whole.diagnoses:
        diagnosis.add_unseen(truth)
    return whole


def diagnosis_rows(
    diagnosis: Diagnosis,
    vocabulary: Vocabulary,
    *,
    per_class: bool = False,
    order: Sequence[str] = (),
    part: Collection[int] | None = None,
    settings: Settings,
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """Yield the result rows of a diagnosis: how often each error type occurs, then mAP without and with each oracle and
    the difference (delta_mAP), each for every subset of classes. Values are in percent, except counts.

    per_class: also yield count, AP and delta_AP of each class, and mean_max_recall. order: oracles to apply one after
    another; then rows progressive_mAP have the mAP after each step, and progressive_delta_mAP what the step adds. part:
    the classes that counts and means are over (None: all); a subset without any of them has no rows.

    A count's subset is that of the predicted class, for missed_gt that of the annotated one; its n is how many triplets
    are predicted there, for missed_gt annotated."""
    name = diagnosis.protocol.name
    # reading: by which rules repairs are assigned to ground truth
    settings = {**settings, **SIGNATURES[diagnosis.reading], "protocol": name}
    if diagnosis.reading == "released":  # its repairs depend on the order of an image's classes: the signature says so
        settings = also_listed(settings, diagnosis.order_of_classes())
    common: Row = {"protocol": name, "tags": dict(tags), "signature": signature(settings)}
    counts = diagnosis.counts()
    results = list(diagnosis.results(vocabulary))
    subsets = subset_classes(vocabulary, diagnosis.protocol)
    if part is not None:
        subsets_kept = {subset: classes[np.isin(classes, sorted(part))] for subset, classes in subsets.items()}
        subsets = {subset: classes for subset, classes in subsets_kept.items() if len(classes)}
    yield from _counts(counts, diagnosis.positives, subsets, common)
    yield from _means(results, subsets, common, recall=per_class)
    if order:
        steps = [results[0], *diagnosis.progressive(vocabulary, order)]
        of_oracles = dict(chain.from_iterable(ORACLES[oracle].settings.items() for oracle in order))
        signed = signature({**settings, **of_oracles, "order": tuple(order)})
        yield from _steps(steps, subsets, {**common, "signature": signed})
    if per_class:
        yield from _classes(diagnosis, vocabulary, counts, results, common)


def _row(metric: str, named: Mapping[str, str], value: float | None, n: int, common: Row, unit: str = "%") -> Row:
    """Return a result row. named: the keys that say what it is about, such as subset and oracle; common: the keys that
    all rows of a diagnosis share (protocol, tags, signature)."""
    return result_row(metric, **named, value=value, n=n, unit=unit, **common)


_UNITS = {**dict.fromkeys(ERRORS, "predictions"), MISSED: "triplets"}
"""What the count of each error type counts."""


def _counts(counts: Mapping[str, Ints], positives: Ints, subsets: Mapping[str, Ints], common: Row) -> Iterator[Row]:
    """Yield how often each error type occurs in each subset. counts, positives: [C] by class."""
    predicted = np.sum([counts[name] for name in ERRORS], axis=0)  # [C] predictions of each class that have a type
    for error in _UNITS:
        for subset, classes in subsets.items():
            total = int((positives if error == MISSED else predicted)[classes].sum())
            value = int(counts[error][classes].sum())
            yield _row("count", {"subset": subset, "error": error}, value, total, common, _UNITS[error])


def _means(
    results: list[OracleResult], subsets: Mapping[str, Ints], common: Row, *, recall: bool = False
) -> Iterator[Row]:
    """Yield the mAP of each subset without an oracle and under each one, with the difference. results: the first is
    without an oracle ("none"); with `recall` it also has a row of the mean maximal recall."""
    ap_without_oracle = {mean.subset: mean.ap for mean in results[0].means(subsets)}
    for result in results:
        for subset, ap, max_recall, classes in result.means(subsets):
            ap_before = ap_without_oracle[subset]
            values = [("mAP", ap)]
            if result.oracle != "none":
                values.append(("delta_mAP", None if ap is None or ap_before is None else ap - ap_before))
            elif recall:
                values.append((RECALL, max_recall))
            for metric, value in values:
                named = {"subset": subset, "oracle": result.oracle}
                yield _row(metric, named, percent(value), classes, common)


def _steps(results: list[OracleResult], subsets: Mapping[str, Ints], common: Row) -> Iterator[Row]:
    """Yield the mAP of each subset after each step of a progression of oracles, and what the step adds to it (Diag-HOI
    Eq. 5). results: the first is without an oracle ("none") and has no rows, each other one adds its oracle."""
    last_ap: dict[str, float | None] = {}
    for step, result in enumerate(results):
        for subset, ap, _, classes in result.means(subsets):
            ap_before = last_ap.get(subset)
            last_ap[subset] = ap
            if step > 0:
                delta = None if ap is None or ap_before is None else ap - ap_before
                row = partial(_row, named={"subset": subset, "oracle": result.oracle}, n=classes)
                yield row("progressive_mAP", value=percent(ap), common={"step": step, **common})
                yield row("progressive_delta_mAP", value=percent(delta), common={"step": step, **common})


def _classes(
    diagnosis: Diagnosis, vocabulary: Vocabulary, counts: Mapping[str, Ints], results: list[OracleResult], common: Row
) -> Iterator[Row]:
    """Yield the rows of each class that has ground truth: counts of its error types, its AP without and with each
    oracle, and the differences. results: the first is without an oracle."""
    keys_of_class, positives = class_keys(vocabulary, diagnosis.protocol), diagnosis.positives
    for number in np.flatnonzero(positives).tolist():
        named, n = keys_of_class[number], int(positives[number])
        for error, unit in _UNITS.items():
            yield _row("count", {**named, "error": error}, int(counts[error][number]), n, common, unit)
        for result in results:
            yield _row("AP", {**named, "oracle": result.oracle}, percent(result.ap[number]), n, common)
        for result in results[1:]:
            delta = result.ap[number] - results[0].ap[number]
            yield _row("delta_AP", {**named, "oracle": result.oracle}, percent(delta), n, common)


@dataclass
class DiagnosedModel:
    """A model's diagnosis under one view: the protocol at one threshold or on one part of the data.

    name, tagged: the model, and whether rows name it (as the tag `model`). settings: what signatures state. plotted:
    the rows that `rows` made last, without those of `slices`, which are `plotted_parts`. slices: of classes; their
    parts get rows too."""

    name: str
    tagged: bool
    vocabulary: Vocabulary
    diagnosis: Diagnosis
    settings: Settings
    plotted: list[Row] = field(default_factory=list)
    plotted_parts: list[Row] = field(default_factory=list)
    slices: Sequence[Slice] = ()

    @property
    def label(self) -> str:
        """The model's name for figures, followed by the threshold or the part of the data that the diagnosis is of."""
        view = [f"{key} {value}" for key, value in self.diagnosis.protocol.view if key != "noint"]
        return ", ".join([self.name, *view])

    def label_rows(self, rows: Iterable[Row]) -> list[Row]:
        """Return rows of this model with its label as `model`, for figures."""
        return [row | {"model": self.label} for row in rows]

    def rows(self, *, per_class: bool, order: Sequence[str], tags: Mapping[str, str]) -> list[Row]:
        """Return the result rows (`diagnosis_rows`), followed by those of each part of `slices`, and keep both."""
        view = dict(self.diagnosis.protocol.view)
        tags = {**({"model": self.name} if self.tagged else {}), **tags, **view}
        rows_of = partial(diagnosis_rows, self.diagnosis, self.vocabulary)
        self.plotted = list(rows_of(per_class=per_class, order=order, settings=self.settings, tags=tags))
        self.plotted_parts = []
        # a view on a part of one slice (a partition of the data) is not divided by the slices of classes, too
        for slice_ in () if "slice" in view else self.slices:
            classes_of_parts = slice_.classes_of_parts(self.diagnosis.positives.tolist())
            for part, classes in zip(slice_.parts, classes_of_parts, strict=True):
                settings = {**self.settings, **slice_.setting(part)}
                self.plotted_parts += rows_of(part=classes, settings=settings, tags={**tags, **slice_.tags(part)})
        return self.plotted + self.plotted_parts


def diagnose_models(
    models: Sequence[Predictions],
    settled: Settled,
    filters: Filters,
    policy: ErrorPolicy,
    reading: Reading = "shared",
    *,
    second_protocol: Protocol | None = None,
) -> list[DiagnosedModel]:
    """Return the diagnosis of each model under each view (threshold and part of the data). Models are predictions with
    ground truth, or match records with or without it, whose views were chosen when they were matched. second_protocol:
    another to diagnose by in the same pass, which match records do not have. Raises `DataError` for a bad stream."""
    results = []
    vocabulary, protocol, truth = settled.vocabulary, settled.protocol, settled.truth
    protocol_views = settled.views.diagnosis_views(protocol)
    if second_protocol is not None:
        protocol_views += settled.views.diagnosis_views(second_protocol)
    for model in models:
        make_result = partial(DiagnosedModel, model.model, model.tagged, vocabulary, slices=settled.views.of_classes)
        if truth is None or model.matched:
            for diagnosis, settings in _diagnose_matches(model, settled, filters, policy, reading):
                if truth is not None:
                    diagnosis.add_unseen(truth)
                results.append(make_result(diagnosis, settings))
            continue
        # protocols: [], as mAP comes from the diagnosis, not from a tally
        gathered = match_and_diagnose(model, truth, [], protocol_views, filters, policy, reading=reading)
        gathered.coverage.report(truth, protocol_views, model.name, model=model.model if len(models) > 1 else None)
        settings = {"data": vocabulary.signed, **filters.signature(), **gathered.tally.uncounted_setting}
        settings |= truth.settings(protocol)
        results += [make_result(each, settings | each.protocol.settings()) for each in gathered.diagnoses]
    return results


def _diagnose_matches(
    matches: Predictions, settled: Settled, filters: Filters, policy: ErrorPolicy, reading: Reading
) -> list[tuple[Diagnosis, dict[str, str]]]:
    """Return the diagnosis of a stream of match records under each view in it, with the settings of its signature."""
    diagnosis_by_view: dict[str, Diagnosis] = {}

    def add(view: MatchedView, located: Located) -> None:
        """Add a batch of match records to the diagnosis of its view, and start that if the batch is its first."""
        if view.protocol.key not in diagnosis_by_view:
            classes = len(settled.vocabulary.interactions)
            diagnosis_by_view[view.protocol.key] = Diagnosis(view.protocol, classes, view.tally.listed, reading)
        diagnosis_by_view[view.protocol.key].add(located, types_of(located, reading))

    views = each_match(matches, settled, filters, policy, add)
    return [(diagnosis_by_view[view.key], settings) for view, settings in views]
