"""Diagnoses of one or several models from their streams, as result rows: counts of each error type, mAP with each
oracle and the difference it makes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any
from typing import Protocol as Interface

import numpy as np

from hoicli.converters.named import also_listed
from hoicli.diagnosis.error_types import ERRORS, MISSED, SIGNATURES, ErrorTypes, Reading, types_of
from hoicli.diagnosis.located import Located, Settled, each_match, locate
from hoicli.diagnosis.repairs import Diagnosis, OracleResult
from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import Coverage, check_counted, choose_computable
from hoicli.evaluation.evaluating import gather_in_parallel, matched_batches, read_truth
from hoicli.evaluation.evaluation_rows import RECALL, class_subsets
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.match_stream import MatchedView
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import one_protocol, protocol_of
from hoicli.evaluation.slices import Part, Slice
from hoicli.evaluation.tally import Tally, subset_classes
from hoicli.evaluation.views import Views, check_diagnosed, view_on_part
from hoicli.io.streams import Line, Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Ints
from hoicli.records.oracles import IN_TURN
from hoicli.records.result_rows import Row, Settings, percent, result_row, signature
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Placed:
    """A matched batch and where its boxes lie; the types of its predictions are found when they are first asked for."""

    batch: Batch
    located: Located
    reading: Reading

    @cached_property
    def types(self) -> ErrorTypes:
        """The type of each prediction."""
        return types_of(self.located, self.reading)


class Collector(Interface):
    """Something that keeps parts of matched batches besides their diagnosis, in any order and in several processes."""

    def add(self, placed: Placed) -> None:
        """Add a batch."""

    def merge(self, other: Any) -> None:
        """Add what another collector of the same kind has of other images."""


@dataclass
class Gathered:
    """One model's predictions matched with ground truth: their tally, their diagnosis under each view of a protocol,
    their coverage, and what the collectors of the views kept."""

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
    """Match a model's predictions in one pass, in which a large file is split among processors, and return their tally
    under `protocols` and, for each of `views`, a diagnosis (if `diagnosed`) and what its collector kept. collector:
    makes the collector of a view, or None to keep nothing of it. The caller reports the coverage."""
    classes = len(truth.vocabulary.interactions)
    tallied = {row.key for row in protocols}
    matched_by = [*protocols, *(row for row in views if row.key not in tallied)]

    def gather(part: Iterable[Line], shared: ErrorPolicy) -> Gathered:
        tally = Tally(protocols, classes)
        diagnoses = [Diagnosis(row, classes, tally.listed, reading) for row in views if diagnosed]
        collectors = [collector(row) for row in views]
        coverage = Coverage()
        for batch, outcomes in matched_batches(part, truth, matched_by, filters, shared):
            coverage.add(batch)
            tally.add_batch(batch, {key: outcome for key, outcome in outcomes.items() if key in tallied})
            for number, view in enumerate(views):
                placed = Placed(batch, locate(batch, outcomes[view.key], view), reading)
                if diagnosed:
                    diagnoses[number].add(placed.located, placed.types)
                if (one_collector := collectors[number]) is not None:
                    one_collector.add(placed)
        return Gathered(
            tally, diagnoses, coverage, [one_collector for one_collector in collectors if one_collector is not None]
        )

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
    """Yield the rows of a diagnosis, subset by subset (full and the frequency groups, or the protocol's own subsets):
    count of each error type, then mAP and delta_mAP under each oracle; per class also count, AP, delta_AP and
    mean_max_recall.

    order: oracles to apply one after another, for the rows of progressive_mAP after each step and of
    progressive_delta_mAP, what the step adds. part: the classes that counts and means are over (None: all); a subset
    without any of them has no rows. A count's subset is that of the predicted class, for missed_gt that of the
    annotated one; its n is how many triplets are predicted there, for missed_gt annotated. Values are in percent,
    except counts."""
    name = diagnosis.protocol.name
    settings = {**settings, **SIGNATURES[diagnosis.reading], "protocol": name}
    if diagnosis.reading == "released":
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
        yield from _steps(steps, subsets, {**common, "signature": signature({**settings, "order": tuple(order)})})
    if per_class:
        yield from _classes(diagnosis, vocabulary, counts, results, common)


def _row(metric: str, named: Mapping[str, str], value: float | None, n: int, common: Row, unit: str = "%") -> Row:
    return result_row(metric, **named, value=value, n=n, unit=unit, **common)


_UNITS = {**dict.fromkeys(ERRORS, "predictions"), MISSED: "triplets"}


def _counts(counts: Mapping[str, Ints], positives: Ints, subsets: Mapping[str, Ints], common: Row) -> Iterator[Row]:
    for error in _UNITS:
        for subset, classes in subsets.items():
            counted_with = [positives] if error == MISSED else [counts[name] for name in ERRORS]
            total = sum(int(number[classes].sum()) for number in counted_with)
            value = int(counts[error][classes].sum())
            yield _row("count", {"subset": subset, "error": error}, value, total, common, _UNITS[error])


def _means(
    results: list[OracleResult], subsets: Mapping[str, Ints], common: Row, *, recall: bool = False
) -> Iterator[Row]:
    base = {subset: ap for subset, ap, _, _ in results[0].means(subsets)}
    for result in results:
        for subset, ap, max_recall, classes in result.means(subsets):
            base_ap = base[subset]
            delta = None if ap is None or base_ap is None else ap - base_ap
            recall_rows = [(RECALL, max_recall)] if recall else []  # once, without an oracle
            extra_rows = [("delta_mAP", delta)] if result.oracle != "none" else recall_rows
            for metric, value in (("mAP", ap), *extra_rows):
                named = {"subset": subset, "oracle": result.oracle}
                yield _row(metric, named, percent(value), classes, common)


def _steps(results: list[OracleResult], subsets: Mapping[str, Ints], common: Row) -> Iterator[Row]:
    """Yield mAP after each step and its gain over the step before (Diag-HOI Eq. 5); `results` begins with "none"."""
    last_ap: dict[str, float | None] = {}
    for step, result in enumerate(results):
        for subset, ap, _, classes in result.means(subsets):
            ap_before = last_ap.get(subset)
            delta = None if ap is None or ap_before is None else ap - ap_before
            last_ap[subset] = ap
            for metric, value in (("progressive_mAP", ap), ("progressive_delta_mAP", delta)) if step else ():
                named = {"subset": subset, "oracle": result.oracle}
                yield _row(metric, named, percent(value), classes, {"step": step, **common})


def _classes(
    diagnosis: Diagnosis,
    vocabulary: Vocabulary,
    counts: Mapping[str, Ints],
    results: list[OracleResult],
    common: Row,
) -> Iterator[Row]:
    subset_of = class_subsets(vocabulary, diagnosis.protocol)
    positives = diagnosis.positives
    for number in np.flatnonzero(positives).tolist():
        verb, name = vocabulary.interactions[number]
        named = {"subset": subset_of.get(number, "full"), "verb": verb, vocabulary.qualifier: name}
        n = int(positives[number])
        for error, unit in _UNITS.items():
            yield _row("count", {**named, "error": error}, int(counts[error][number]), n, common, unit)
        for result in results:
            yield _row("AP", {**named, "oracle": result.oracle}, percent(result.ap[number]), n, common)
        for result in results[1:]:
            delta = result.ap[number] - results[0].ap[number]
            yield _row("delta_AP", {**named, "oracle": result.oracle}, percent(delta), n, common)


@dataclass
class DiagnosedModel:
    """A model's diagnosis under one view of the protocol, and the settings of its signature."""

    name: str
    tagged: bool
    vocabulary: Vocabulary
    diagnosis: Diagnosis
    settings: Settings
    plotted: list[Row] = field(default_factory=list)
    slices: Sequence[Slice] = ()

    @property
    def label(self) -> str:
        """The model's name for figures, followed by the settings of the view."""
        return ", ".join([self.name, *(f"{key} {value}" for key, value in self.diagnosis.protocol.view)])

    def rows(self, *, per_class: bool, order: Sequence[str], tags: Mapping[str, str]) -> list[Row]:
        """Return the result rows, those of parts of slices of classes last; the rows before them are kept in
        `plotted`."""
        view = dict(self.diagnosis.protocol.view)
        tags = {**({"model": self.name} if self.tagged else {}), **tags, **view}
        rows_of = partial(diagnosis_rows, self.diagnosis, self.vocabulary)
        self.plotted = list(rows_of(per_class=per_class, order=order, settings=self.settings, tags=tags))
        rows = list(self.plotted)
        for slice_ in () if "slice" in view else self.slices:
            for part, classes in zip(slice_.parts, slice_.classes, strict=True):
                settings = {**self.settings, **slice_.setting(part)}
                rows += rows_of(part=classes, settings=settings, tags={**tags, **slice_.tags(part)})
        return rows


def diagnosing(
    names: Sequence[str], dataset: str | None, *, as_released: bool = False, no_interaction: bool = False
) -> Protocol | None:
    """Return the protocol that `--protocol` names for error types and pair statistics, None without one.
    no_interaction: count the no_interaction classes, too. Raises `UsageError` for several protocols, for one whose
    matching the error types cannot follow, for one beside the released reading, and for a dataset without
    no_interaction."""
    row = one_protocol(names, dataset)
    if row is not None:
        _check_types(row, dataset, as_released=as_released)
    if not no_interaction:
        return row
    row = row or protocol_of(load(dataset or "hico"))
    if as_released or not row.drop_no_interaction:
        problem = "the released code never does" if as_released else f"{row.dataset} has no such classes"
        raise UsageError(f"{arg('with_no_interaction')}: {problem}; leave it out")
    return replace(row, drop_no_interaction=False, changed=(*row.changed, ("noint", "counted")))


def _check_types(row: Protocol, dataset: str | None, *, as_released: bool) -> None:
    usual = protocol_of(load(dataset or row.dataset))
    if as_released and row != usual:
        raise UsageError(f"{arg('as_released')}: the released code has no other protocol than {usual.name}")
    averaged = row.only_annotated_classes, row.drop_no_interaction, row.classes if usual.person_first else ""
    if (
        row.person_first != usual.person_first
        or averaged != (True, usual.drop_no_interaction, usual.classes)
        or row.whole_image
        or row.by_verb
        or row.every_overlap
    ):
        problem = f"{arg('protocol', row.name)}: error types and pairs need the classes and the matching of"
        raise UsageError(f'{problem} {usual.name}; give a file that is "like": "{usual.name}", with your changes')


def progressive_order(text: str) -> tuple[str, ...]:
    """Return the oracles in a list with commas, or all for `all`; raises `UsageError` for an unknown or repeated
    name."""
    if text.strip() == "all":
        return IN_TURN
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in IN_TURN]
    if unknown:
        raise UsageError(
            f"{arg('progressive')}: unknown {', '.join(map(repr, unknown))}; choose all, or {', '.join(IN_TURN)}"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{arg('progressive')}: {', '.join(twice)} twice; an oracle is applied once")
    return names


def diagnose_models(
    models: Sequence[Predictions], of: Settled, filters: Filters, policy: ErrorPolicy, reading: Reading = "shared"
) -> list[DiagnosedModel]:
    """Return each model's diagnosis, one for each view, from predictions with ground truth, or from match records with
    or without it (whose views were chosen when they were matched). Raises `DataError` for a bad stream."""
    diagnosed = []
    vocabulary, protocol, truth = of.vocabulary, of.protocol, of.truth
    protocol_views = of.views.diagnosis_views(protocol)
    for model in models:
        diagnosed_model = partial(DiagnosedModel, model.model, model.tagged, vocabulary, slices=of.views.of_classes)
        if truth is not None and not model.matched:
            whole = match_and_diagnose(model, truth, [], protocol_views, filters, policy, reading=reading)
            whole.coverage.report(truth, protocol_views, model.name, model=model.model if len(models) > 1 else None)
            settings = {"data": vocabulary.signed, **filters.signature(), **whole.tally.leave}
            settings |= truth.settings(protocol)
            diagnosed += [diagnosed_model(each, settings | each.protocol.settings()) for each in whole.diagnoses]
            continue
        of_views: dict[str, Diagnosis] = {}

        def add(view: MatchedView, located: Located, of_views: dict[str, Diagnosis] = of_views) -> None:
            gathered = Diagnosis(view.row, len(vocabulary.interactions), view.tally.listed, reading)
            of_views.setdefault(view.row.key, gathered).add(located, types_of(located, reading))

        for view, settings in each_match(model, of, filters, policy, add):
            if truth is not None:
                of_views[view.key].add_unseen(truth)
            diagnosed.append(diagnosed_model(of_views[view.key], settings))
    return diagnosed


def settle_options(
    models: Sequence[Predictions],
    gt: Stream | None,
    dataset: str | None,
    filters: Filters,
    policy: ErrorPolicy,
    *,
    reading: Reading,
    views_of: Callable[[Vocabulary], Views],
    protocol: Protocol | None,
) -> Settled:
    """Return the dataset, protocol, views and ground truth that the options choose, before predictions are read.
    views_of: makes the views for a vocabulary. protocol: None for `protocol_of` the vocabulary. Without a `dataset` it
    is that of the first stream if it holds match records, else HICO-DET. Raises `UsageError` for options that need
    predictions and for the released reading on other datasets than HICO-DET, `DataError` for bad ground truth."""
    vocabulary = load(dataset or (protocol.dataset if protocol else None) or models[0].dataset or "hico")
    protocol = protocol or protocol_of(vocabulary)
    if reading == "released" and vocabulary.roles:
        # map_improvement_vcoco.py of neu-vi/Diag-HOI ranks by numpy.argsort without `kind`: equal scores (in a V-COCO
        # dump, all statements that no one made) are ordered by NumPy's build, and repairs depend on that order.
        problem = f"the released code for {vocabulary.name} ranks equal scores in no certain order"
        raise UsageError(f"{arg('as_released')}: for HICO-DET only; {problem}")
    views = views_of(vocabulary)
    for slice_ in views.of_data:
        check_diagnosed(view_on_part(protocol, Part(slice_, 0)))
    if gt is None:
        return Settled(vocabulary, protocol, views, None)
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    choose_computable(truth, [protocol])
    return Settled(vocabulary, protocol, views, truth)
