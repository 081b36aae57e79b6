"""Diagnoses of one or several models from their streams, for rows, plots and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from hoicli.diagnosis.errors import Located
from hoicli.diagnosis.gather import Settled, each_match, match_and_diagnose
from hoicli.diagnosis.oracles import Diagnosis
from hoicli.diagnosis.repairs import Reading, types_of
from hoicli.diagnosis.rows import diagnosis_rows
from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import served
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.match_stream import MatchedView
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocol_files import one_protocol
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.run import read_truth
from hoicli.evaluation.selection import protocol_of
from hoicli.evaluation.slices import Part, Slice
from hoicli.evaluation.views import Views, check_diagnosed, within
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import Row
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary


@dataclass
class DiagnosedModel:
    """A model's diagnosis by one view of the protocol, and the settings of its signature."""

    name: str
    tagged: bool
    vocabulary: Vocabulary
    diagnosis: Diagnosis
    settings: Mapping[str, str]
    plotted: list[Row] = field(default_factory=list)
    slices: Sequence[Slice] = ()

    @property
    def label(self) -> str:
        """The model's name for figures, with what the view is of."""
        return ", ".join([self.name, *(f"{key} {value}" for key, value in self.diagnosis.protocol.view)])

    def rows(self, *, per_class: bool, order: Sequence[str], tags: Mapping[str, str]) -> list[Row]:
        """The model's result rows; those of all classes are kept in `plotted` for a plot."""
        self.plotted = list(
            diagnosis_rows(
                self.diagnosis,
                self.vocabulary,
                per_class=per_class,
                order=order,
                settings=self.settings,
                tags=self._tags(tags),
            )
        )
        return [*self.plotted, *self._parts(tags)]

    def _tags(self, tags: Mapping[str, str]) -> dict[str, str]:
        view = dict(self.diagnosis.protocol.view)
        return {"model": self.name, **tags, **view} if self.tagged else {**tags, **view}

    def _parts(self, tags: Mapping[str, str]) -> Iterator[Row]:
        """The rows of the parts of slices of classes."""
        slices = () if "slice" in dict(self.diagnosis.protocol.view) else self.slices
        for slice_ in slices:
            for part, classes in zip(slice_.parts, slice_.classes, strict=True):
                settings = {**self.settings, **slice_.setting(part)}
                tagged = self._tags(tags) | slice_.tags(part)
                yield from diagnosis_rows(self.diagnosis, self.vocabulary, part=classes, settings=settings, tags=tagged)


def diagnosing(
    names: Sequence[str], dataset: str | None, *, as_released: bool = False, no_interaction: bool = False
) -> Protocol | None:
    """The protocol that `--protocol` names for types of errors and pair statistics; None without one. no_interaction:
    count these classes, too. Raises `UsageError` for several, for one whose right and wrong the types cannot follow,
    for one beside the released reading, and for a dataset without no_interaction."""
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


def diagnose_models(
    models: Sequence[Predictions], of: Settled, filters: Filters, policy: ErrorPolicy, reading: Reading = "shared"
) -> list[DiagnosedModel]:
    """Each model's diagnosis: predictions with ground truth, match records with or without. With several views, one
    for each; the matches are of some already. Raises `DataError` for a bad stream."""
    diagnosed = []
    vocabulary, protocol, truth = of.vocabulary, of.protocol, of.truth
    wanted = of.views.diagnosed(protocol)
    for model in models:
        made = partial(DiagnosedModel, model.model, model.tagged, vocabulary, slices=of.views.of_classes)
        if truth is not None and not model.matched:
            whole = match_and_diagnose(model, truth, [], wanted, filters, policy, reading=reading)
            whole.coverage.report(truth, wanted, model.name, model=model.model if len(models) > 1 else None)
            settings = {"data": vocabulary.signed, **filters.signature(), **whole.tally.leave}
            settings |= truth.settings(protocol)
            diagnosed += [made(each, settings | each.protocol.settings()) for each in whole.diagnoses]
            continue
        of_views: dict[str, Diagnosis] = {}

        def add(view: MatchedView, found: Located, of_views: dict[str, Diagnosis] = of_views) -> None:
            gathered = Diagnosis(view.row, len(vocabulary.interactions), view.tally.listed, reading)
            of_views.setdefault(view.row.key, gathered).add(found, types_of(found, reading))

        for view, settings in each_match(model, of, filters, policy, add):
            if truth is not None:
                of_views[view.key].add_unseen(truth)
            diagnosed.append(made(of_views[view.key], settings))
    return diagnosed


def settled(
    models: Sequence[Predictions],
    gt: Stream | None,
    dataset: str | None,
    filters: Filters,
    policy: ErrorPolicy,
    *,
    reading: Reading,
    asked: Callable[[Vocabulary], Views],
    protocol: Protocol | None,
) -> Settled:
    """What options come to, before predictions are read. asked: the views of a vocabulary. protocol: default
    `protocol_of`.

    Without a `dataset` it is that of the first stream if it holds match records, else HICO-DET. Raises `UsageError` for
    options that need predictions and for the released reading on other datasets than HICO-DET, `DataError` for bad
    ground truth.
    """
    vocabulary = load(dataset or (protocol.dataset if protocol else None) or models[0].dataset or "hico")
    protocol = protocol or protocol_of(vocabulary)
    if reading == "released" and vocabulary.roles:
        # map_improvement_vcoco.py of neu-vi/Diag-HOI ranks by numpy.argsort without `kind`: equal scores (in a V-COCO
        # dump, all statements that no one made) are ordered by NumPy's build, and repairs depend on that order.
        problem = f"the released code for {vocabulary.name} ranks equal scores in no certain order"
        raise UsageError(f"{arg('as_released')}: for HICO-DET only; {problem}")
    views = asked(vocabulary)
    for slice_ in views.of_data:
        check_diagnosed(within(protocol, Part(slice_, 0)))
    if gt is None:
        return Settled(vocabulary, protocol, views, None)
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    served(truth, [protocol])
    return Settled(vocabulary, protocol, views, truth)
