"""All that the page shows, measured: the rows of eval, compare and diagnose, confusions, the numbers of each class on
all data and on each part, and every prediction as columns. Each model's predictions are read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from hoicli.comparison.comparison_rows import Compared, Comparison, protocol_rows
from hoicli.diagnosis.confusion_cells import Cells, Confusing
from hoicli.diagnosis.diagnosed_models import Gathered, Placed, diagnosis_rows, match_and_diagnose
from hoicli.diagnosis.repairs import Diagnosis
from hoicli.evaluation.coverage import check_computable, choose_computable, find_unlabelled_views
from hoicli.evaluation.evaluating import read_truth
from hoicli.evaluation.evaluation_rows import RECALL, Evaluated, Wanted
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import main_protocol
from hoicli.evaluation.slice_parts import image_parts
from hoicli.evaluation.slices import IMAGES, Part, Slice
from hoicli.evaluation.tally import ClassResults, subset_classes
from hoicli.evaluation.views import view_on_part
from hoicli.explorer.page_columns import NEVER, STATES, ErrorTable, TruthTable, TypedPredictions, truth_table
from hoicli.io.forks import shared_out
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.records.result_rows import Row
from hoicli.resampling.draws import Resampling
from hoicli.vocabulary.labels import Vocabulary

TOP = 10
"""How many classes, images or confusions a table of the summary lists."""


@dataclass(frozen=True)
class PageRequest:
    """The request of a page. protocol: the one that decides what is an error; protocols: those of the table of mAP;
    slices: of images and of triplets; repaired: whether the gains from repairing errors are computed for each part of
    slices of images, too; filters: which predictions count; resampling: for the intervals and p of the comparison."""

    vocabulary: Vocabulary
    protocol: Protocol
    protocols: Sequence[Protocol]
    slices: Sequence[Slice]
    repaired: bool
    filters: Filters
    resampling: Resampling

    @property
    def triplet_slices(self) -> list[Slice]:
        """Return the slices that divide triplets into parts."""
        return [slice_ for slice_ in self.slices if slice_.of != IMAGES]


class Numbers(NamedTuple):
    """The numbers of M models and C classes on all data or a part. positives [C]: the count of ground truth; ap [M, C]:
    in percent, NaN for a class without ground truth; counts [M, C, S]: of predictions, and of missed ground truth, for
    each of S STATES; gains [M, C, S]: how much repairing all errors of a type adds to the AP, None if not computed."""

    positives: Ints
    ap: Floats
    counts: Ints
    gains: Floats | None


@dataclass(frozen=True)
class Model:
    """One model. rows: as from diagnose; cells: its confusions of verbs; table: its predictions."""

    name: str
    rows: list[Row]
    cells: Cells
    table: ErrorTable


@dataclass(frozen=True)
class Measured:
    """All that the page shows. annotated: how many triplets the ground truth has, counted by the protocol or not;
    members: {slice of images: [parts, N] whether each image is in each part}; numbers: {(slice, part): numbers}, those
    of all data under ("", ""); subsets: {subset: its classes}, over which means are; evaluation, comparison: the rows
    of eval, and of compare under the main protocol; names: the verbs that the numbers in confusion cells stand for."""

    request: PageRequest
    models: Sequence[Model]
    truth: TruthTable
    annotated: int
    members: Mapping[str, Bools]
    numbers: Mapping[tuple[str, str], Numbers]
    subsets: Mapping[str, Ints]
    evaluation: list[Row]
    comparison: list[Row]
    names: Sequence[str]

    @property
    def several(self) -> bool:
        """Return whether there are two models, so that tables must name the model of each number."""
        return len(self.models) > 1

    @property
    def every(self) -> tuple[str, Ints]:
        """Return the subset with the most classes, as (name, classes); means are over it unless another is named."""
        return max(self.subsets.items(), key=lambda item: len(item[1]))

    @property
    def title(self) -> str:
        """Return the page's heading."""
        return f"{' and '.join(model.name for model in self.models)} on {self.request.vocabulary.title}"


class PredictionCollector:
    """Keeps the predictions of each batch as columns, and their confusions of verbs (a `Collector`)."""

    def __init__(self, truth: GroundTruth, protocol: Protocol, slices: Sequence[Slice]) -> None:
        """Start without predictions. protocol: the one that decides what is an error; slices: of triplets."""
        self.typed, self.confusing = TypedPredictions(protocol, slices), Confusing(truth, protocol, objects=False)

    def add(self, placed: Placed) -> None:
        """Add the predictions of a batch."""
        self.typed.add(placed)
        self.confusing.add(placed)

    def merge(self, other: PredictionCollector) -> None:
        """Add the predictions that another process kept, which are about other images."""
        self.typed.merge(other.typed)
        self.confusing.merge(other.confusing)


class _Views(NamedTuple):
    """The views by which predictions are matched besides the main protocol; a view is a protocol on all data or on a
    part of a slice. table: of the table of mAP; parts: {(slice, part): the main protocol on it}; repaired: those of the
    parts that get a diagnosis, from which their AP is taken."""

    table: Sequence[Protocol]
    parts: Mapping[tuple[str, str], Protocol]
    repaired: Sequence[Protocol]


def measure(streams: Sequence[Predictions], gt: Stream, request: PageRequest, policy: ErrorPolicy) -> Measured:
    """Read the ground truth and each model's stream of predictions, and measure all that the page shows. Raises
    `DataError` for what is wrong with a stream, `UsageError` for match records."""
    vocabulary, protocol = request.vocabulary, request.protocol
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=request.filters.allow_uncounted)
    check_computable(truth, protocol)
    # Of the table's protocols, those that the ground truth allows: the user named none of them, so none must be there.
    views = _views(request, choose_computable(truth, request.protocols, named=()))
    truth_columns = truth_table(truth, protocol, request.triplet_slices)
    members = {  # in the order that the images have in `truth_columns`
        slice_.name: image_parts(slice_, truth.scenes, vocabulary)[:, truth_columns.order]
        for slice_ in request.slices
        if slice_.of == IMAGES
    }
    gathered = _gather_models(streams, truth, request, views, policy)
    results_of_models = _ModelResults(request, [stream.model for stream in streams], views.parts, gathered)
    # In two processes, as the comparison takes as long as everything else.
    tasks: list[Callable[[], Any]] = [
        partial(results_of_models.comparison, truth),
        partial(_measure_models, results_of_models, truth, truth_columns, members),
    ]
    comparison, (models, names, numbers, evaluation) = shared_out(lambda task: task(), tasks)
    return Measured(
        request=request,
        models=[replace(model, rows=policy.sign_skipped(model.rows)) for model in models],
        truth=truth_columns,
        annotated=len(truth.scenes.interaction),
        members=members,
        numbers=numbers,
        subsets=subset_classes(vocabulary, protocol),
        evaluation=policy.sign_skipped(evaluation),
        comparison=policy.sign_skipped(comparison),
        names=names,
    )


def _views(request: PageRequest, table_protocols: Sequence[Protocol]) -> _Views:
    """Return the views that a request needs: the protocols of the table of mAP, the main protocol on each part of each
    slice of the data, and which of these get a diagnosis. table_protocols: of the table, those that can be computed."""
    views_on_parts, repaired = {}, []
    for slice_ in request.slices:
        for number, part_name in enumerate(slice_.parts):
            view = view_on_part(request.protocol, Part(slice_, number))
            views_on_parts[slice_.name, part_name] = view
            if request.repaired and slice_.of == IMAGES:
                repaired.append(view)
    return _Views(table_protocols, views_on_parts, repaired)


def _gather_models(
    streams: Sequence[Predictions], truth: GroundTruth, request: PageRequest, views: _Views, policy: ErrorPolicy
) -> list[Gathered]:
    """Read each model's stream, match and diagnose its predictions, and return the result of each. Protocols of the
    table of mAP for which a model's predictions lack something are left out; notes say so, and which images lack
    predictions. views: the protocols of that table, and the main protocol on each part of the data."""

    def make_collector(view: Protocol) -> PredictionCollector | None:
        """Return what keeps the predictions diagnosed by a view: only those on all data are kept."""
        return PredictionCollector(truth, view, request.triplet_slices) if view.part is None else None

    models = []
    diagnosed = [request.protocol, *views.repaired]
    # the views whose AP is computed from a tally of hits and scores, without a diagnosis
    tallied = [*views.table, *(view for view in views.parts.values() if view not in views.repaired)]
    for stream in streams:
        model = match_and_diagnose(stream, truth, tallied, diagnosed, request.filters, policy, collector=make_collector)
        model.coverage.report(truth, [request.protocol], stream.name, model=stream.model if len(streams) > 1 else None)
        model.tally.leave_out(find_unlabelled_views(dict.fromkeys(views.table, model.tally), (), stream.name))
        models.append(model)
    return models


def _measure_models(
    results_of_models: _ModelResults, truth: GroundTruth, truth_columns: TruthTable, members: Mapping[str, Bools]
) -> tuple[list[Model], Sequence[str], dict[tuple[str, str], Numbers], list[Row]]:
    """Return `models`, `names`, `numbers` and `evaluation` of `Measured`: all that the page shows of the models'
    predictions, except the comparison. truth_columns: the ground truth as columns; members: as in `Measured`."""
    request, models = results_of_models.request, []
    vocabulary, protocol = request.vocabulary, request.protocol
    names: Sequence[str] = ()
    for name, gathered in zip(results_of_models.names, results_of_models.gathered, strict=True):
        (collector,) = gathered.collected  # there is one, of the main protocol on all data
        confused = collector.confusing.find_confusions(name, gathered.tally.listed, {}, tagged=False)
        names = confused.names["verb"]
        settings = {"data": vocabulary.signed, **request.filters.signature(), **gathered.tally.uncounted_setting}
        settings |= truth.settings(protocol) | protocol.settings()
        rows = diagnosis_rows(gathered.diagnoses[0], vocabulary, per_class=False, settings=settings, tags={})
        models.append(Model(name, list(rows), confused.cells()["verb"], collector.typed.table(truth_columns)))
    numbers = results_of_models.numbers(truth_columns, [model.table for model in models], members)
    return models, names, dict(numbers), list(results_of_models.evaluation())


@dataclass(frozen=True)
class _ModelResults:
    """Makes rows and numbers of the matched predictions of the named models (`gathered`). parts: as in `_Views`."""

    request: PageRequest
    names: Sequence[str]
    parts: Mapping[tuple[str, str], Protocol]
    gathered: Sequence[Gathered]

    @cached_property
    def _tallied(self) -> list[list[tuple[Protocol, ClassResults]]]:
        """Return for each model (view, its results for each class), for all views with a tally."""
        return [list(gathered.tally.results(self.request.vocabulary)) for gathered in self.gathered]

    def evaluation(self) -> Iterator[Row]:
        """Yield the rows of eval, model by model."""
        for name, gathered, tallied in zip(self.names, self.gathered, self._tallied, strict=True):
            for protocol, results in tallied:
                if protocol.part is None:
                    yield from self._evaluate(name, gathered, protocol, results, Wanted())[0].rows()

    def comparison(self, truth: GroundTruth) -> list[Row]:
        """Return the rows of compare under the main protocol: each model's, and with two models the differences; none
        if that protocol cannot be computed with this ground truth."""
        vocabulary, main_key = self.request.vocabulary, main_protocol(self.request.vocabulary).key
        shared = Comparison(vocabulary, sorted(truth.scenes.image_ids), self.request.resampling, top=TOP, tags={})
        compared = []
        for name, gathered in zip(self.names, self.gathered, strict=True):
            for protocol, results, lists in gathered.tally.ranked_results(vocabulary, shared.image_ids):
                if protocol.key == main_key:
                    parts = self._evaluate(name, gathered, protocol, results, Wanted(metrics=[RECALL]))
                    compared.append(Compared(name, lists, parts))
                    break
        return list(protocol_rows(compared, shared)) if compared else []

    def _evaluate(
        self, name: str, gathered: Gathered, protocol: Protocol, results: ClassResults, requested: Wanted
    ) -> list[Evaluated]:
        """Return the evaluation of a model by a protocol, on all data first, then on each part of its slices.
        requested: which metrics are wanted."""
        vocabulary, tags = self.request.vocabulary, {"model": name} if len(self.gathered) > 1 else {}
        settings = {**self.request.filters.signature(), "data": vocabulary.signed, **gathered.tally.settings(protocol)}
        return Evaluated.split_by_slices(protocol, vocabulary, requested, results, settings, tags)

    def numbers(
        self, truth: TruthTable, tables: Sequence[ErrorTable], members: Mapping[str, Bools]
    ) -> Iterator[tuple[tuple[str, str], Numbers]]:
        """Yield ((slice, part), its numbers), all data as ("", "") first. tables: each model's predictions; members:
        {slice: [parts, N] whether each image is in each part}."""
        vocabulary = self.request.vocabulary
        # of each model: the results by tally, and the diagnoses, which have the AP of the views that have one
        results_by_view = [{view.key: results for view, results in model} for model in self._tallied]
        diagnosis_by_view = [
            {diagnosis.protocol.key: diagnosis for diagnosis in gathered.diagnoses} for gathered in self.gathered
        ]
        classes = len(vocabulary.interactions)
        for (name, part), view in {("", ""): self.request.protocol, **self.parts}.items():
            gains: list[Floats] = []
            if view.key in diagnosis_by_view[0]:
                ap_and_gains = [_ap_and_gains(diagnoses[view.key], vocabulary) for diagnoses in diagnosis_by_view]
                ap, gains = [model_ap for model_ap, _ in ap_and_gains], [model_gains for _, model_gains in ap_and_gains]
            else:
                ap = [results[view.key].ap for results in results_by_view]
            truth_inside = self._is_inside(view, members, truth)
            positives = np.bincount(truth.interaction[truth_inside], minlength=classes)
            counts = [
                _count_errors(table, truth, self._is_inside(view, members, table), truth_inside, classes)
                for table in tables
            ]
            ap_percent = 100 * np.stack(ap)
            ap_percent[:, positives == 0] = np.nan
            gains_percent = 100 * np.stack(gains) if gains else None
            yield (name, part), Numbers(positives, ap_percent, np.stack(counts), gains_percent)

    def _is_inside(self, view: Protocol, members: Mapping[str, Bools], table: TruthTable | ErrorTable) -> Bools:
        """Return [T]: whether each triplet of a table is in a view's part; all are if it is of all data."""
        if view.part is None:
            return np.ones(len(table.image), np.bool_)
        slice_, number = view.part.slice, view.part.number
        if slice_.name in members:
            inside: Bools = members[slice_.name][number][table.image]
        else:
            inside = table.parts[self.request.triplet_slices.index(slice_)] == number
        return inside


def _ap_and_gains(diagnosis: Diagnosis, vocabulary: Vocabulary) -> tuple[Floats, Floats]:
    """Return the AP of each class [C], and [C, S]: how much the oracle that repairs each of the S STATES adds to it, 0
    for a state without an oracle. Both are fractions."""
    plain, *repaired = diagnosis.results(vocabulary)
    gains = np.zeros((len(plain.ap), len(STATES)))
    for result in repaired:
        if result.oracle in STATES:
            gains[:, STATES.index(result.oracle)] = result.ap - plain.ap
    return plain.ap, gains


def _count_errors(table: ErrorTable, truth: TruthTable, predicted: Bools, annotated: Bools, classes: int) -> Ints:
    """Return [C, S]: of each class, how many predictions have each type of error; the last column (NEVER) counts ground
    truth that no prediction finds or could find. predicted [T], annotated [G]: masks of the predictions and of the
    ground truth to count; classes: their number C."""
    missed = annotated & (table.state == NEVER)  # `state` is by ground truth [G], `error` by prediction [T]
    class_and_state = np.concatenate([
        table.interaction[predicted] * len(STATES) + table.error[predicted],
        truth.interaction[missed] * len(STATES) + NEVER,
    ])  # fmt: skip
    return np.bincount(class_and_state, minlength=classes * len(STATES)).reshape(classes, len(STATES))
