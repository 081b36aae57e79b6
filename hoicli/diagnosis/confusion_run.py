"""The confusions of one or several models from their predictions, and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hoicli.diagnosis.confusions import NOTHING, ConfusionColumns
from hoicli.diagnosis.gather import Placed, match_and_diagnose
from hoicli.diagnosis.repaired import Cells, Repaired
from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import served
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.listed import Listed
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.tally import subset_classes
from hoicli.evaluation.views import ALONE, Views
from hoicli.figures.confusion import Panel
from hoicli.figures.shown import label
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Ints
from hoicli.records.results import Row, percent, row_ends
from hoicli.vocabulary.labels import Vocabulary

UNITS = {"verb": ("triplets", "predictions"), "object": ("pairs", "predicted pairs")}
"""What a cell of each kind counts, and what one of nothing annotated does."""


@dataclass(frozen=True)
class Confused:
    """One model's confusions under one view of the protocol. listed: its predictions."""

    name: str
    tagged: bool
    protocol: Protocol
    vocabulary: Vocabulary
    listed: Listed
    columns: ConfusionColumns
    settings: Mapping[str, str]

    @property
    def names(self) -> dict[str, list[str]]:
        """The names of each kind, by number: verbs (in V-COCO action-roles), objects."""
        vocabulary = self.vocabulary
        verbs = [" ".join(filter(None, pair)) for pair in vocabulary.interactions]
        found = {"verb": verbs if vocabulary.roles else list(vocabulary.verbs), "object": list(vocabulary.objects)}
        return {kind: found[kind] for kind in self.columns.kinds}

    def cells(self) -> dict[str, Cells]:
        """The cells of each kind."""
        repaired = Repaired(self.listed, self.columns, self.protocol, self.vocabulary)
        return {kind: repaired.cells(said, len(self.names[kind])) for kind, said in self.columns.kinds.items()}

    def panels(self, cells: Mapping[str, Cells]) -> Iterator[Panel]:
        """A heat map for each kind: names taken for names."""
        for kind, of_kind in cells.items():
            named = (of_kind.true != NOTHING) & (of_kind.said != NOTHING) & (of_kind.true != of_kind.said)
            share = 100 * (of_kind.count / of_kind.totals())
            whose = [label(self.name)] if self.tagged else []
            view = [f"{key} {value}" for key, value in self.protocol.view]
            title = ", ".join([f"{kind.capitalize()}s", *whose, *view])
            columns = (of_kind.true, of_kind.said, of_kind.count, share)
            yield Panel(title, self.names[kind], *(column[named] for column in columns))

    def rows(self, cells: Mapping[str, Cells], *, top: int | None, tags: Mapping[str, str]) -> Iterator[Row]:
        """Of each kind the cells that `ranked` chooses: their number, their share of all with the annotated name (of
        nothing annotated, of all that say the name) in percent, and the gain in points of mAP."""
        tagged = {**({"model": self.name} if self.tagged else {}), **tags, **dict(self.protocol.view)}
        ends = row_ends(self.protocol.name, tagged, self.settings)
        (subset, members) = max(subset_classes(self.vocabulary, self.protocol).items(), key=lambda one: len(one[1]))
        asked = np.bincount(self.columns.truth_class, minlength=len(self.vocabulary.interactions))[members]
        averaged = int((asked > 0).sum())
        for kind, of_kind in cells.items():
            names, totals = self.names[kind], of_kind.totals()
            for at in ranked(of_kind, top).tolist():
                true, said = int(of_kind.true[at]), int(of_kind.said[at])
                cell = {
                    "subset": subset,
                    "kind": kind,
                    "truth": None if true == NOTHING else names[true],
                    "predicted": None if said == NOTHING else names[said],
                }
                count, total = int(of_kind.count[at]), int(totals[at])
                unit = UNITS[kind][true == NOTHING]
                values: list[tuple[str, Any, int, str]] = [
                    ("confusion", count, total, unit),
                    ("confusion_share", 100.0 * count / total, total, "%"),
                ]
                gain = float(of_kind.gain[at])
                if true != said:
                    values.append(("confusion_delta_mAP", None if np.isnan(gain) else percent(gain), averaged, "%"))
                for metric, value, n, of_value in values:
                    yield {"metric": metric, **cell, "value": value, "n": n, "unit": of_value, **ends}


class Confusing:
    """Gathers the confusions of one model, batch by batch in any order (`gather.Collector`)."""

    def __init__(self, truth: GroundTruth, protocol: Protocol, *, objects: bool = True) -> None:
        """objects: gather those of objects, too, where labels are compared."""
        self._truth, self._protocol = truth, protocol
        self._objects = objects and not protocol.person_first
        self._parts: list[ConfusionColumns] = []

    def add(self, placed: Placed) -> None:
        """Add a batch."""
        meets = partial(placed.batch.meets, self._protocol) if self._objects else None
        self._parts.append(ConfusionColumns.of(placed.found, self._truth.vocabulary, meets))

    def merge(self, other: Confusing) -> None:
        """Add what was gathered from other images."""
        self._parts += other._parts

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to the process that merges it, which has the ground truth."""
        return {"_parts": self._parts}

    def confused(self, name: str, listed: Listed, settings: Mapping[str, str], *, tagged: bool) -> Confused:
        """The confusions. listed: the predictions that were added; settings: what signatures say besides the ground
        truth and the protocol."""
        truth, view = self._truth, self._protocol
        signed = {"data": truth.vocabulary.signed, **settings, **truth.settings(view), **view.settings()}
        whole = ConfusionColumns.joined([*self._parts, ConfusionColumns.unseen(truth, view, listed.image_ids)])
        return Confused(name, tagged, view, truth.vocabulary, listed, whole, signed)


def ranked(cells: Cells, top: int | None) -> Ints:
    """The cells in the order of their rows: names taken for names, then nothing annotated or said, of each the `top` by
    gain, then number, then name; None: all, by name, nothing last."""
    last = np.iinfo(np.int64).max
    by_name = [np.where(names == NOTHING, last, names) for names in (cells.said, cells.true)]
    if top is None:
        return np.lexsort(by_name)
    gain = np.where(np.isnan(cells.gain), -np.inf, cells.gain)
    order = np.lexsort((*by_name, -cells.count, -gain))
    named = ((cells.true != NOTHING) & (cells.said != NOTHING))[order]
    wrong = (cells.true != cells.said)[order]
    return np.concatenate([order[wrong & named][:top], order[wrong & ~named][:top]])


def confused_models(
    models: Sequence[Predictions],
    truth: GroundTruth,
    protocol: Protocol,
    filters: Filters,
    policy: ErrorPolicy,
    views: Views = ALONE,
) -> list[Confused]:
    """Each model's confusions by each view. Raises `UsageError` for slices of classes, `DataError` for a bad stream."""
    if views.of_classes:
        names = ",".join(slice_.name for slice_ in views.of_classes)
        raise UsageError(f"{arg('slice', names)}: of classes, which confusions join; use people, pairs or a file")
    wanted = views.diagnosed(protocol)
    served(truth, [protocol])
    found: list[Confused] = []
    for model in models:
        collect = partial(Confusing, truth)
        whole = match_and_diagnose(model, truth, [], wanted, filters, policy, collector=collect, diagnosed=False)
        whole.coverage.report(truth, wanted, model.name, model=model.model if len(models) > 1 else None)
        settings = filters.signature() | whole.tally.leave
        listed = whole.tally.listed
        found += [of_view.confused(model.model, listed, settings, tagged=model.tagged) for of_view in whole.kept]
    return found
