"""The confusions of one or several models as rows, with the mAP that repairing each cell would give.

Repairing the cell (v, w), w said in place of v, is an oracle as in `hoicli.diagnosis.oracles`:

- the first prediction of each ground truth of the cell becomes a true positive of its class with its own score, and
  the true positive it replaces (a lower score) is dropped, as the oracles do with repairs. A prediction that is first
  for several becomes one, that of the first in annotation order (they are of one class);
- every other prediction that says w of the cell's pairs is dropped.

Of an object, the prediction that becomes a true positive is, for each triplet of a pair in the cell, the best one with
the wrong label and the triplet's verb, if it stands above the triplet's true positive. In the cells (nothing, w) the
predictions are dropped, as `both_boxes` does; in (v, nothing) the ground truth leaves the count, as `missed_gt` does.
Cells overlap in what they would mend, so their gains do not add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from hoicli.diagnosis.confusions import NOTHING, ConfusionColumns, Said
from hoicli.diagnosis.run import Placed, match_and_diagnose
from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import choose_computable
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.pairing import blocks_of
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import Listed, ranked_ap
from hoicli.evaluation.tally import classes_in_mean, subset_classes
from hoicli.evaluation.views import ALONE, Views
from hoicli.figures.confusion import Panel
from hoicli.figures.shown import label
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats, Ints, expand_runs, find
from hoicli.records.results import Row, Settings, percent, result_row, row_ends
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Cells:
    """The cells of one kind that occur, ascending: true, said [K] names, NOTHING for none; count [K] units (of the
    cells of nothing annotated, predictions or predicted pairs); gain [K], the mean AP gained by the repair, in [0, 1];
    NaN on the diagonal, and where there is nothing to average."""

    true: Ints
    said: Ints
    count: Ints
    gain: Floats

    def totals(self) -> Ints:
        """[K] all units of the name that is annotated; of nothing, all that say the name."""
        names = int(max(self.true.max(initial=0), self.said.max(initial=0))) + 1
        of_true = np.bincount(self.true[self.true >= 0], self.count[self.true >= 0], minlength=names)
        of_said = np.bincount(self.said[self.said >= 0], self.count[self.said >= 0], minlength=names)
        return np.where(self.true >= 0, of_true[self.true], of_said[self.said]).astype(np.int64)


class Repaired:
    """The ranked lists of a model, ranked once, and what the repair of each cell makes of them. columns: of the
    predictions that are `listed`."""

    def __init__(self, listed: Listed, columns: ConfusionColumns, protocol: Protocol, vocabulary: Vocabulary) -> None:
        self._interaction, self._columns, self._protocol = listed.interaction.astype(np.int64), columns, protocol
        count = len(listed)
        self._place = np.empty(count, dtype=np.int64)
        by_class = listed.rank_by_class(np.zeros(count, dtype=np.int8), 1, place=listed.interaction)
        self._place[by_class.order] = np.arange(count)
        self._width = count + 1
        self._keys = np.sort(self._key(np.flatnonzero(columns.counted)))
        hits = np.flatnonzero(columns.hit)
        self._hits = hits[np.argsort(self._key(hits))]
        classes = len(vocabulary.interactions)
        self._hit_bounds = np.searchsorted(self._interaction[self._hits], np.arange(classes + 1))
        self._positives = np.bincount(columns.truth_class, minlength=classes)
        every = max(subset_classes(vocabulary, protocol).values(), key=len)
        self._averaged = classes_in_mean(self._positives, vocabulary, protocol) & (self._positives > 0)
        self._averaged &= np.isin(np.arange(classes), every)
        self._averaged[sorted(vocabulary.no_interaction_ids)] = False

    def _key(self, rows: Ints) -> Ints:
        """[R] the order of predictions: by class, then by rank among all."""
        key: Ints = self._interaction[rows] * self._width + self._place[rows]
        return key

    def _rank(self, classes: Ints, place: Ints) -> Ints:
        """[R] how many counted predictions of each class are at or above a place among all."""
        start = np.searchsorted(self._keys, classes * self._width)
        rank: Ints = np.searchsorted(self._keys, classes * self._width + place, side="right") - start
        return rank

    @cached_property
    def _hit_rank(self) -> Ints:
        """The rank of each true positive in its class."""
        return self._rank(self._interaction[self._hits], self._place[self._hits])

    @cached_property
    def ap(self) -> Floats:
        """[C] AP as it is, in [0, 1]."""
        return ranked_ap(self._hit_rank, self._hit_bounds, self._positives, self._protocol)[0]

    def cells(self, answers: Said, names: int) -> Cells:
        """The cells of a kind; `names`: how many names there are."""
        width = names + 1

        def cell(true: Ints, name: Ints) -> Ints:
            return (true + 1) * width + name + 1

        unit, lone = cell(answers.true, answers.said), cell(np.full(len(answers.lone), NOTHING), answers.lone)
        cells_found, count = np.unique(np.concatenate([unit, lone]), return_counts=True)
        true, name = cells_found // width - 1, cells_found % width - 1
        gain = self._gains(answers, cells_found, cell)
        gain[true == name] = np.nan
        return Cells(true, name, count, gain)

    def _gains(self, answers: Said, cells: Ints, cell: Callable[[Ints, Ints], Ints]) -> Floats:
        """[K] the mean AP gained by repairing each of the cells."""
        columns, classes = self._columns, len(self._positives)

        def tasks(of_cell: Ints, of_class: Ints) -> Ints:
            return find(cells, of_cell)[0] * classes + of_class

        new = columns.truth_class[answers.fix_truth]
        fixed_cell, former = cell(answers.fix_true, answers.fix_said), columns.found[answers.fix_truth]
        replaced = former >= 0
        dropped_cell = cell(answers.drop_true, answers.drop_said)
        lost_cell = cell(answers.missed_true, np.full(len(answers.missed), NOTHING))
        gone = np.concatenate([answers.drop_row, former[replaced]])
        insert = tasks(fixed_cell, new)
        remove = np.concatenate(
            [
                tasks(dropped_cell, self._interaction[answers.drop_row]),
                tasks(fixed_cell[replaced], new[replaced]),
            ]
        )
        lose = tasks(lost_cell, columns.truth_class[answers.missed])
        every = np.unique(np.concatenate([insert, remove, lose]))
        of_class = every % classes
        positives = self._positives[of_class] - np.bincount(find(every, lose)[0], minlength=len(every))
        ap = np.zeros(len(every))
        inserted = np.sort(find(every, insert)[0] * self._width + self._place[answers.fix_row])
        removed = np.sort(find(every, remove)[0] * self._width + self._place[gone])
        for part in blocks_of(np.diff(self._hit_bounds)[of_class]):
            of_part = [
                keys[slice(*np.searchsorted(keys, [part.start * self._width, part.stop * self._width]))]
                - part.start * self._width
                for keys in (inserted, removed)
            ]
            ap[part] = self._repaired_ap(of_class[part], positives[part], *of_part)

        before, after = self.ap[of_class], self._averaged[of_class] & (positives > 0)
        change = np.where(after, ap, 0.0) - np.where(self._averaged[of_class], before, 0.0)
        positives_left = self._averaged[of_class].astype(np.int64) - after
        at = every // classes
        total, many = self.ap[self._averaged].sum(), int(self._averaged.sum())
        sums = total + np.bincount(at, change, minlength=len(cells))
        counts = many - np.bincount(at, positives_left, minlength=len(cells))
        means: Floats = np.divide(sums, counts, out=np.full(len(cells), np.nan), where=counts > 0)
        means -= total / max(many, 1)
        return means

    def _repaired_ap(self, of_class: Ints, positives: Ints, inserted: Ints, removed: Ints) -> Floats:
        """[J] AP of some (cell, class): the true positives of the class with what the cell inserts and removes. Both
        are keys, ascending: the number in J, then the place among all predictions."""
        task, hit = expand_runs(self._hit_bounds[of_class], np.diff(self._hit_bounds)[of_class])
        task_and_place = task * self._width + self._place[self._hits[hit]]
        new, new_place = np.divmod(inserted, self._width)
        key, task = np.concatenate([task_and_place, inserted]), np.concatenate([task, new])
        rank = np.concatenate([self._hit_rank[hit], self._rank(of_class[new], new_place)])
        # What comes before each, an inserted one with itself, without that of the (cell, class) before.
        more = np.concatenate([np.searchsorted(inserted, task_and_place), np.arange(1, len(inserted) + 1)])
        fewer = np.searchsorted(removed, key)
        begin = np.arange(len(of_class)) * self._width
        rank += more - fewer + (np.searchsorted(removed, begin) - np.searchsorted(inserted, begin))[task]
        remaining = np.flatnonzero(~find(removed, key)[1])
        remaining = remaining[np.argsort(key[remaining], kind="stable")]
        bounds = np.searchsorted(task[remaining], np.arange(len(of_class) + 1))
        return ranked_ap(rank[remaining], bounds, positives, self._protocol)[0]


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
    settings: Settings

    @property
    def names(self) -> dict[str, list[str]]:
        """The names of each kind, by number: verbs (in V-COCO action-roles), objects."""
        vocabulary = self.vocabulary
        verbs = [" ".join(filter(None, pair)) for pair in vocabulary.interactions]
        names_by_kind = {
            "verb": verbs if vocabulary.roles else list(vocabulary.verbs),
            "object": list(vocabulary.objects),
        }
        return {kind: names_by_kind[kind] for kind in self.columns.kinds}

    def cells(self) -> dict[str, Cells]:
        """The cells of each kind."""
        repaired = Repaired(self.listed, self.columns, self.protocol, self.vocabulary)
        return {kind: repaired.cells(answers, len(self.names[kind])) for kind, answers in self.columns.kinds.items()}

    def panels(self, cells: Mapping[str, Cells]) -> Iterator[Panel]:
        """A heat map for each kind: names taken for names."""
        for kind, of_kind in cells.items():
            named = (of_kind.true != NOTHING) & (of_kind.said != NOTHING) & (of_kind.true != of_kind.said)
            share = 100 * (of_kind.count / of_kind.totals())
            model_label = [label(self.name)] if self.tagged else []
            view = [f"{key} {value}" for key, value in self.protocol.view]
            title = ", ".join([f"{kind.capitalize()}s", *model_label, *view])
            columns = (of_kind.true, of_kind.said, of_kind.count, share)
            yield Panel(title, self.names[kind], *(column[named] for column in columns))

    def rows(self, cells: Mapping[str, Cells], *, top: int | None, tags: Mapping[str, str]) -> Iterator[Row]:
        """Yield of each kind the cells that `rank_cells` chooses: their number, their share of all with the annotated
        name (of nothing annotated, of all that say the name) in percent, and the gain in points of mAP."""
        tagged = {**({"model": self.name} if self.tagged else {}), **tags, **dict(self.protocol.view)}
        ends = row_ends(self.protocol.name, tagged, self.settings)
        (subset, members) = max(subset_classes(self.vocabulary, self.protocol).items(), key=lambda pair: len(pair[1]))
        positives = np.bincount(self.columns.truth_class, minlength=len(self.vocabulary.interactions))[members]
        averaged = int((positives > 0).sum())
        for kind, of_kind in cells.items():
            names, totals = self.names[kind], of_kind.totals()
            for at in rank_cells(of_kind, top).tolist():
                true, predicted = int(of_kind.true[at]), int(of_kind.said[at])
                cell = {
                    "subset": subset,
                    "kind": kind,
                    "truth": None if true == NOTHING else names[true],
                    "predicted": None if predicted == NOTHING else names[predicted],
                }
                count, total = int(of_kind.count[at]), int(totals[at])
                unit = UNITS[kind][true == NOTHING]
                values: list[tuple[str, Any, int, str]] = [
                    ("confusion", count, total, unit),
                    ("confusion_share", 100.0 * count / total, total, "%"),
                ]
                gain = float(of_kind.gain[at])
                if true != predicted:
                    values.append(("confusion_delta_mAP", None if np.isnan(gain) else percent(gain), averaged, "%"))
                for metric, value, n, of_value in values:
                    yield result_row(metric, **cell, value=value, n=n, unit=of_value, **ends)


class Confusing:
    """Gathers the confusions of one model, batch by batch in any order (`Collector`)."""

    def __init__(self, truth: GroundTruth, protocol: Protocol, *, objects: bool = True) -> None:
        """objects: gather those of objects, too, where labels are compared."""
        self._truth, self._protocol = truth, protocol
        self._objects = objects and not protocol.person_first
        self._parts: list[ConfusionColumns] = []

    def add(self, placed: Placed) -> None:
        """Add a batch."""
        meets = partial(placed.batch.meets, self._protocol) if self._objects else None
        self._parts.append(ConfusionColumns.from_batch(placed.located, self._truth.vocabulary, meets))

    def merge(self, other: Confusing) -> None:
        """Add what was gathered from other images."""
        self._parts += other._parts

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent to the process that merges it, which has the ground truth."""
        return {"_parts": self._parts}

    def find_confusions(self, name: str, listed: Listed, settings: Settings, *, tagged: bool) -> Confused:
        """The confusions. listed: the predictions that were added; settings: what signatures say besides the ground
        truth and the protocol."""
        truth, view = self._truth, self._protocol
        signed = {"data": truth.vocabulary.signed, **settings, **truth.settings(view), **view.settings()}
        whole = ConfusionColumns.join([*self._parts, ConfusionColumns.unseen(truth, view, listed.image_ids)])
        return Confused(name, tagged, view, truth.vocabulary, listed, whole, signed)


def rank_cells(cells: Cells, top: int | None) -> Ints:
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
    protocol_views = views.diagnosis_views(protocol)
    choose_computable(truth, [protocol])
    models_confused: list[Confused] = []
    for model in models:
        collect = partial(Confusing, truth)
        whole = match_and_diagnose(
            model, truth, [], protocol_views, filters, policy, collector=collect, diagnosed=False
        )
        whole.coverage.report(truth, protocol_views, model.name, model=model.model if len(models) > 1 else None)
        settings = filters.signature() | whole.tally.leave
        listed = whole.tally.listed
        models_confused += [
            of_view.find_confusions(model.model, listed, settings, tagged=model.tagged) for of_view in whole.collected
        ]
    return models_confused
