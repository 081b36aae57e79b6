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
from hoicli.evaluation.coverage import choose_computable, find_unlabelled_views
from hoicli.evaluation.evaluating import read_truth
from hoicli.evaluation.evaluation_rows import RECALL, Evaluated, Wanted
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth, image_parts
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import main_protocol
from hoicli.evaluation.slices import IMAGES, Part, Slice
from hoicli.evaluation.tally import ClassResults, subset_classes
from hoicli.evaluation.views import within
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
class Asked:
    """What is to be measured. protocol: the one that decides what is an error; protocols: those of the table of mAP.
    slices: of images and triplets; repaired: whether gains are computed for the parts of slices of images, too."""

    vocabulary: Vocabulary
    protocol: Protocol
    protocols: Sequence[Protocol]
    slices: Sequence[Slice]
    repaired: bool
    filters: Filters
    resampling: Resampling

    @property
    def image_slices(self) -> list[Slice]:
        """Return the slices of images."""
        return [slice_ for slice_ in self.slices if slice_.of == IMAGES]

    @property
    def triplet_slices(self) -> list[Slice]:
        """Return the slices of triplets."""
        return [slice_ for slice_ in self.slices if slice_.of != IMAGES]


class Numbers(NamedTuple):
    """The numbers of M models and C classes on all data or a part. positives [C]: ground truth; ap [M, C]: in percent,
    NaN for a class without ground truth; counts [M, C, S]: predictions, and missed ground truth, for each of S STATES;
    gains [M, C, S]: what repairing a type adds to the AP, None if nothing was repaired on this part alone."""

    positives: Ints
    ap: Floats
    counts: Ints
    gains: Floats | None


@dataclass(frozen=True)
class Model:
    """One model: its rows of diagnose, its confusions of verbs (`cells`), and its predictions."""

    name: str
    rows: list[Row]
    cells: Cells
    table: ErrorTable


@dataclass(frozen=True)
class Measured:
    """What was asked, and what was found. annotated: how many triplets the ground truth has, counted or not. members:
    for each slice of images [parts, N] which images are in each part. numbers: by (slice, part), those of all data by
    ("", ""). subsets: the classes of each mean. evaluation, comparison: the rows of eval, and of compare under the main
    protocol. names: what the numbers in confusion cells stand for."""

    request: Asked
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
        """Return the subset with the most classes (name, classes), which means are over unless another is named."""
        return max(self.subsets.items(), key=lambda item: len(item[1]))

    @property
    def title(self) -> str:
        """Return the page's heading."""
        return f"{' and '.join(model.name for model in self.models)} on {self.request.vocabulary.title}"


_Shown = tuple[list[Model], Sequence[str], dict[tuple[str, str], Numbers], list[Row]]
"""`models`, `names`, `numbers` and `evaluation` of `Measured`."""


class Kept:
    """Keeps of each batch its predictions as columns, and its confusions (a `Collector`)."""

    def __init__(self, truth: GroundTruth, protocol: Protocol, slices: Sequence[Slice]) -> None:
        """Start with nothing kept. slices: of triplets."""
        self.typed, self.confusing = TypedPredictions(protocol, slices), Confusing(truth, protocol, objects=False)

    def add(self, placed: Placed) -> None:
        """Add a batch."""
        self.typed.add(placed)
        self.confusing.add(placed)

    def merge(self, other: Kept) -> None:
        """Add what another process kept of other images."""
        self.typed.merge(other.typed)
        self.confusing.merge(other.confusing)


class _Views(NamedTuple):
    """The protocols that predictions are matched by besides the main one. table: those of the table of mAP; parts: the
    main protocol on each (slice, part); repaired: the parts that get a diagnosis, from which their AP is."""

    table: Sequence[Protocol]
    parts: Mapping[tuple[str, str], Protocol]
    repaired: Sequence[Protocol]

    @property
    def tallied(self) -> list[Protocol]:
        """Return the protocols and parts whose AP is computed from a tally."""
        return [*self.table, *(view for view in self.parts.values() if view not in self.repaired)]


def measure(streams: Sequence[Predictions], gt: Stream, request: Asked, policy: ErrorPolicy) -> Measured:
    """Read the streams and measure. Raises `DataError` for what is wrong with a stream, `UsageError` for match
    records."""
    vocabulary, protocol = request.vocabulary, request.protocol
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=request.filters.allow_uncounted)
    choose_computable(truth, [protocol])
    views = _views(request, choose_computable(truth, request.protocols, ()))
    truths = truth_table(truth, protocol, request.triplet_slices)
    members = _image_members(request, truth, truths.order)
    gathered = _gather_models(streams, truth, request, views, policy)
    rated = _Rated(request, [stream.model for stream in streams], views.parts, gathered)
    # the comparison takes as long as everything else
    work: list[Callable[[], Any]] = [
        partial(rated.comparison, truth),
        partial(_measure_models, rated, truth, truths, members),
    ]
    comparison, models_measured = shared_out(lambda part: part(), work)
    models, names, numbers, evaluation = models_measured
    return Measured(
        request=request,
        models=[replace(model, rows=policy.sign_skipped(model.rows)) for model in models],
        truth=truths,
        annotated=len(truth.scenes.interaction),
        members=members,
        numbers=numbers,
        subsets=subset_classes(vocabulary, protocol),
        evaluation=policy.sign_skipped(evaluation),
        comparison=policy.sign_skipped(comparison),
        names=names,
    )


def _views(request: Asked, table_protocols: Sequence[Protocol]) -> _Views:
    """Return the views that a request needs. table_protocols: those of the table of mAP that can be computed."""
    parts = {}
    for slice_ in request.slices:
        for number, part in enumerate(slice_.parts):
            parts[slice_.name, part] = within(request.protocol, Part(slice_, number))
    of_images = [view for view in parts.values() if view.part and view.part.slice.of == IMAGES]
    return _Views(table_protocols, parts, of_images if request.repaired else [])


def _image_members(request: Asked, truth: GroundTruth, order: Ints) -> dict[str, Bools]:
    """Return for each slice of images [parts, N] which images are in each part, as in `Measured`. order: that of
    `TruthTable`."""
    return {
        slice_.name: image_parts(slice_, truth.scenes, request.vocabulary)[:, order] for slice_ in request.image_slices
    }


def _gather_models(
    streams: Sequence[Predictions], truth: GroundTruth, request: Asked, views: _Views, policy: ErrorPolicy
) -> list[Gathered]:
    """Read each model's stream, match and diagnose its predictions, and return what was gathered, without the protocols
    of the table that it cannot serve. Its coverage is reported."""

    def collector(view: Protocol) -> Kept | None:
        return Kept(truth, view, request.triplet_slices) if view.part is None else None

    models = []
    diagnosed = [request.protocol, *views.repaired]
    for stream in streams:
        model = match_and_diagnose(
            stream, truth, views.tallied, diagnosed, request.filters, policy, collector=collector
        )
        model.coverage.report(truth, [request.protocol], stream.name, model=stream.model if len(streams) > 1 else None)
        model.tally.leave_out(find_unlabelled_views(dict.fromkeys(views.table, model.tally), (), stream.name))
        models.append(model)
    return models


def _measure_models(rated: _Rated, truth: GroundTruth, truths: TruthTable, members: Mapping[str, Bools]) -> _Shown:
    """Return all of `Measured` that the models' predictions give, except the comparison. truths: the ground truth as
    columns."""
    request, models = rated.request, []
    vocabulary, protocol = request.vocabulary, request.protocol
    names: Sequence[str] = ()
    for name, gathered in zip(rated.names, rated.gathered, strict=True):
        (columns_kept,) = gathered.collected
        confused = columns_kept.confusing.find_confusions(name, gathered.tally.listed, {}, tagged=False)
        names = confused.names["verb"]
        settings = {"data": vocabulary.signed, **request.filters.signature(), **gathered.tally.leave}
        settings |= truth.settings(protocol) | protocol.settings()
        rows = diagnosis_rows(gathered.diagnoses[0], vocabulary, per_class=False, settings=settings, tags={})
        models.append(Model(name, list(rows), confused.cells()["verb"], columns_kept.typed.table(truths)))
    numbers = rated.numbers(truths, [model.table for model in models], members)
    return models, names, dict(numbers), list(rated.evaluation())


@dataclass(frozen=True)
class _Rated:
    """Makes numbers of what was gathered for the named models. parts: the protocol's view on each (slice, part)."""

    request: Asked
    names: Sequence[str]
    parts: Mapping[tuple[str, str], Protocol]
    gathered: Sequence[Gathered]

    @cached_property
    def _tallied(self) -> list[list[tuple[Protocol, ClassResults]]]:
        """Return each model's results by every protocol and part."""
        return [list(gathered.tally.results(self.request.vocabulary)) for gathered in self.gathered]

    def evaluation(self) -> Iterator[Row]:
        """Yield the rows of eval, model by model."""
        for name, gathered, tallied in zip(self.names, self.gathered, self._tallied, strict=True):
            for protocol, results in tallied:
                if protocol.part is None:
                    yield from self._evaluate(name, gathered, protocol, results, Wanted())[0].rows()

    def comparison(self, truth: GroundTruth) -> list[Row]:
        """Return the rows of compare under the main protocol: each model's, and with two models the differences. There
        are none if the ground truth does not serve that protocol."""
        vocabulary, main_key = self.request.vocabulary, main_protocol(self.request.vocabulary).key
        shared = Comparison(vocabulary, sorted(truth.scenes.image_ids), self.request.resampling, TOP, {})
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
        vocabulary, tags = self.request.vocabulary, {"model": name} if len(self.gathered) > 1 else {}
        settings = {**self.request.filters.signature(), "data": vocabulary.signed, **gathered.tally.settings(protocol)}
        return Evaluated.split_by_slices(protocol, vocabulary, requested, results, settings, tags)

    def numbers(
        self, truth: TruthTable, tables: Sequence[ErrorTable], members: Mapping[str, Bools]
    ) -> Iterator[tuple[tuple[str, str], Numbers]]:
        """Yield each (slice, part) with its numbers, all data as ("", "") first."""
        vocabulary = self.request.vocabulary
        tallied = [{row.key: result for row, result in tallied_model} for tallied_model in self._tallied]
        diagnosed = [
            {diagnosis.protocol.key: diagnosis for diagnosis in gathered.diagnoses} for gathered in self.gathered
        ]
        truth_and_tables: list[TruthTable | ErrorTable] = [truth, *tables]
        for (name, part), view in {("", ""): self.request.protocol, **self.parts}.items():
            inside = [self._inside(view, members, table) for table in truth_and_tables]
            if view.key in diagnosed[0]:
                ap, gains = zip(
                    *(_under_oracles(diagnosed_model[view.key], vocabulary) for diagnosed_model in diagnosed),
                    strict=True,
                )
            else:
                ap, gains = tuple(tallied_model[view.key].ap for tallied_model in tallied), ()
            classes = len(vocabulary.interactions)
            positives = np.bincount(truth.interaction[inside[0]], minlength=classes)
            counts = [
                _counts(table, truth, in_part, inside[0], classes)
                for table, in_part in zip(tables, inside[1:], strict=True)
            ]
            rated = 100 * np.stack(ap)
            rated[:, positives == 0] = np.nan
            yield (name, part), Numbers(positives, rated, np.stack(counts), 100 * np.stack(gains) if gains else None)

    def _inside(self, view: Protocol, members: Mapping[str, Bools], table: TruthTable | ErrorTable) -> Bools:
        """Return [T] which triplets of a table are in the part that the view is of; all of them if it is of no part."""
        if view.part is None:
            return np.ones(len(table.image), np.bool_)
        slice_, number = view.part.slice, view.part.number
        if slice_.name in members:
            inside: Bools = members[slice_.name][number][table.image]
        else:
            inside = table.parts[self.request.triplet_slices.index(slice_)] == number
        return inside


def _under_oracles(diagnosis: Diagnosis, vocabulary: Vocabulary) -> tuple[Floats, Floats]:
    """Return in [0, 1] [C] the AP, and [C, S] what each oracle adds that is named like one of the S STATES."""
    plain, *others = diagnosis.results(vocabulary)
    gains = np.zeros((len(plain.ap), len(STATES)))
    for result in others:
        if result.oracle in STATES:
            gains[:, STATES.index(result.oracle)] = result.ap - plain.ap
    return plain.ap, gains


def _counts(table: ErrorTable, truth: TruthTable, predicted: Bools, annotated: Bools, classes: int) -> Ints:
    """Return [C, S] how many of the chosen predictions, and of the chosen ground truth that is never found, each class
    and type has. predicted, annotated: which rows of `table` and `truth` are chosen."""
    missed = annotated & (table.state == NEVER)
    class_and_state = np.concatenate([
        table.interaction[predicted] * len(STATES) + table.error[predicted],
        truth.interaction[missed] * len(STATES) + NEVER,
    ])  # fmt: skip
    return np.bincount(class_and_state, minlength=classes * len(STATES)).reshape(classes, len(STATES))
