"""The confusions of one or several models as rows, with the mAP that repairing each cell would give.

Repairing the cell (v, w), w said in place of v, is an oracle as in `hoicli.diagnosis.repairs`:

- the first prediction of each ground truth of the cell becomes a true positive of its class with its own score, and
  the true positive it replaces (a lower score) is dropped, as the oracles do with repairs. A prediction that is first
  for several becomes one, that of the first in annotation order (they are of one class);
- every other prediction that says w of the cell's pairs is dropped.

Of an object, the prediction that becomes a true positive is, for each triplet of a pair in the cell, the best one with
the wrong label and the triplet's verb, if it stands above the triplet's true positive. In the cells (nothing, w) the
predictions are dropped, as `both_boxes` does; in (v, nothing) the ground truth leaves the count, as `missed_gt` does.
The repairs of different cells overlap, so their gains do not add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from hoicli.diagnosis.confusions import NOTHING, ConfusionColumns, Said
from hoicli.diagnosis.diagnosed_models import Placed, match_and_diagnose
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
from hoicli.figures.confusion_plot import Panel
from hoicli.figures.shown import short_label
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats, Ints, expand_runs, find
from hoicli.records.result_rows import Row, Settings, percent, result_row, row_ends
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Cells:
    """The cells of one kind of confusion (of verbs or of objects) that occur, in ascending order. true, said [K]: the
    numbers of the annotated and of the predicted name, NOTHING for none. count [K]: the units in each cell (in the
    cells of nothing annotated: predictions, or predicted pairs). gain [K]: the mean AP that repairing the cell would
    add, in [0, 1]; NaN on the diagonal and where there is no class to average."""

    true: Ints
    said: Ints
    count: Ints
    gain: Floats

    def totals(self) -> Ints:
        """Return for each cell [K] the number of units with its annotated name; for a cell of nothing annotated, the
        number of units that were predicted to have its name."""
        names = int(max(self.true.max(initial=0), self.said.max(initial=0))) + 1
        of_true = np.bincount(self.true[self.true >= 0], self.count[self.true >= 0], minlength=names)
        of_said = np.bincount(self.said[self.said >= 0], self.count[self.said >= 0], minlength=names)
        return np.where(self.true >= 0, of_true[self.true], of_said[self.said]).astype(np.int64)


class _Tasks(NamedTuple):
    """What the repairs of cells change, class by class: a task is a cell and a class whose AP its repair may change.
    cells, classes [J]: the cell and the class of each task. inserted, removed: the true positives that tasks add and
    the predictions that they take away, as ascending keys of the task and the place among all predictions. lost [J]:
    how much ground truth leaves the count."""

    cells: Ints
    classes: Ints
    inserted: Ints
    removed: Ints
    lost: Ints


class Repaired:
    """A model's ranked lists, ranked once, from which the AP after the repair of each cell is computed. columns: the
    confusions of the predictions in `listed`."""

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
        largest_subset = max(subset_classes(vocabulary, protocol).values(), key=len)
        self._averaged = classes_in_mean(self._positives, vocabulary, protocol) & (self._positives > 0)
        self._averaged &= np.isin(np.arange(classes), largest_subset)
        self._averaged[sorted(vocabulary.no_interaction_ids)] = False

    def _key(self, rows: Ints) -> Ints:
        """Return a key [R] that sorts predictions by class and, within a class, by rank among all predictions."""
        key: Ints = self._interaction[rows] * self._width + self._place[rows]
        return key

    def _rank(self, classes: Ints, place: Ints) -> Ints:
        """Return how many [R] counted predictions of each class rank at or above a place among all predictions."""
        start = np.searchsorted(self._keys, classes * self._width)
        rank: Ints = np.searchsorted(self._keys, classes * self._width + place, side="right") - start
        return rank

    @cached_property
    def _hit_rank(self) -> Ints:
        """The rank of each true positive among the counted predictions of its class."""
        return self._rank(self._interaction[self._hits], self._place[self._hits])

    @cached_property
    def ap(self) -> Floats:
        """The AP of each class [C] before any repair, in [0, 1]."""
        return ranked_ap(self._hit_rank, self._hit_bounds, self._positives, self._protocol)[0]

    def cells(self, answers: Said, names: int) -> Cells:
        """Return the cells of one kind of confusion. names: the number of names of this kind."""
        width = names + 1

        def cell(true: Ints, said: Ints) -> Ints:
            # NOTHING is -1, so both numbers are raised by one.
            return (true + 1) * width + said + 1

        cell_of_unit = cell(answers.true, answers.said)
        cell_of_lone = cell(np.full(len(answers.lone), NOTHING), answers.lone)
        cells_found, count = np.unique(np.concatenate([cell_of_unit, cell_of_lone]), return_counts=True)
        true, said = cells_found // width - 1, cells_found % width - 1
        gain = self._gains(answers, cells_found, cell)
        gain[true == said] = np.nan
        return Cells(true, said, count, gain)

    def _gains(self, answers: Said, cells: Ints, cell: Callable[[Ints, Ints], Ints]) -> Floats:
        """Return the mean AP [K] that the repair of each cell would add. cell: makes the key of a cell from its two
        names."""
        tasks = self._tasks(answers, cells, cell)
        positives = self._positives[tasks.classes] - tasks.lost
        averaged = self._averaged[tasks.classes]
        still_averaged = averaged & (positives > 0)
        ap_before, ap_after = self.ap[tasks.classes], self._ap_after(tasks, positives)
        ap_change = np.where(still_averaged, ap_after, 0.0) - np.where(averaged, ap_before, 0.0)
        leaves_mean = averaged.astype(np.int64) - still_averaged
        total, averaged_classes = self.ap[self._averaged].sum(), int(self._averaged.sum())
        sums = total + np.bincount(tasks.cells, ap_change, minlength=len(cells))
        counts = averaged_classes - np.bincount(tasks.cells, leaves_mean, minlength=len(cells))
        means: Floats = np.divide(sums, counts, out=np.full(len(cells), np.nan), where=counts > 0)
        means -= total / max(averaged_classes, 1)
        return means

    def _tasks(self, answers: Said, cells: Ints, cell: Callable[[Ints, Ints], Ints]) -> _Tasks:
        """Return the tasks that the repairs of some cells are made of."""
        columns, classes = self._columns, len(self._positives)

        def keys(of_cell: Ints, of_class: Ints) -> Ints:
            """Return the key of each (cell, class)."""
            return find(cells, of_cell)[0] * classes + of_class

        repaired_class = columns.truth_class[answers.fix_truth]
        fixed_cell, former_hit = cell(answers.fix_true, answers.fix_said), columns.found[answers.fix_truth]
        replaced = former_hit >= 0
        dropped_cell = cell(answers.drop_true, answers.drop_said)
        lost_cell = cell(answers.missed_true, np.full(len(answers.missed), NOTHING))
        insert_key = keys(fixed_cell, repaired_class)
        drop_key = keys(dropped_cell, self._interaction[answers.drop_row])
        remove_key = np.concatenate([drop_key, keys(fixed_cell[replaced], repaired_class[replaced])])
        lose_key = keys(lost_cell, columns.truth_class[answers.missed])

        task_key = np.unique(np.concatenate([insert_key, remove_key, lose_key]))
        removed_row = np.concatenate([answers.drop_row, former_hit[replaced]])
        return _Tasks(
            cells=task_key // classes,
            classes=task_key % classes,
            inserted=np.sort(find(task_key, insert_key)[0] * self._width + self._place[answers.fix_row]),
            removed=np.sort(find(task_key, remove_key)[0] * self._width + self._place[removed_row]),
            lost=np.bincount(find(task_key, lose_key)[0], minlength=len(task_key)),
        )

    def _ap_after(self, tasks: _Tasks, positives: Ints) -> Floats:
        """Return the AP [J] of the class of each task after the repair. positives [J]: the ground truth that counts
        then."""
        ap = np.zeros(len(tasks.classes))
        for part in blocks_of(np.diff(self._hit_bounds)[tasks.classes]):
            # the keys of this block of tasks, with the tasks numbered from its start
            of_part = [
                keys[slice(*np.searchsorted(keys, [part.start * self._width, part.stop * self._width]))]
                - part.start * self._width
                for keys in (tasks.inserted, tasks.removed)
            ]
            ap[part] = self._repaired_ap(tasks.classes[part], positives[part], *of_part)
        return ap

    def _repaired_ap(self, of_class: Ints, positives: Ints, inserted: Ints, removed: Ints) -> Floats:
        """Return the AP [J] of some tasks, each the true positives of one class with what one cell inserts and removes.
        inserted, removed: keys, ascending, made of the number of the task in J and the place among all predictions."""
        task, hit = expand_runs(self._hit_bounds[of_class], np.diff(self._hit_bounds)[of_class])
        task_and_place = task * self._width + self._place[self._hits[hit]]
        task_of_inserted, place_of_inserted = np.divmod(inserted, self._width)
        key, task = np.concatenate([task_and_place, inserted]), np.concatenate([task, task_of_inserted])
        rank = np.concatenate([self._hit_rank[hit], self._rank(of_class[task_of_inserted], place_of_inserted)])
        # How many insertions stand at or above each prediction, and how many removals above it. Both are counted from
        # the first task on, so what the tasks before hold is taken off again.
        inserted_above = np.concatenate([np.searchsorted(inserted, task_and_place), np.arange(1, len(inserted) + 1)])
        removed_above = np.searchsorted(removed, key)
        task_start = np.arange(len(of_class)) * self._width
        before_task = np.searchsorted(removed, task_start) - np.searchsorted(inserted, task_start)
        rank += inserted_above - removed_above + before_task[task]
        remaining = np.flatnonzero(~find(removed, key)[1])
        remaining = remaining[np.argsort(key[remaining], kind="stable")]
        bounds = np.searchsorted(task[remaining], np.arange(len(of_class) + 1))
        return ranked_ap(rank[remaining], bounds, positives, self._protocol)[0]


UNITS = {"verb": ("triplets", "predictions"), "object": ("pairs", "predicted pairs")}
"""The unit that a cell of each kind counts, and the unit of its cells of nothing annotated."""


@dataclass(frozen=True)
class Confused:
    """One model's confusions under one view of the protocol. listed: the model's predictions."""

    name: str
    tagged: bool
    protocol: Protocol
    vocabulary: Vocabulary
    listed: Listed
    columns: ConfusionColumns
    settings: Settings

    @property
    def names(self) -> dict[str, list[str]]:
        """The names of each kind in the order of their numbers: verbs (in V-COCO action-roles) and objects."""
        vocabulary = self.vocabulary
        verbs = [" ".join(filter(None, pair)) for pair in vocabulary.interactions]
        names_by_kind = {
            "verb": verbs if vocabulary.roles else list(vocabulary.verbs),
            "object": list(vocabulary.objects),
        }
        return {kind: names_by_kind[kind] for kind in self.columns.kinds}

    def cells(self) -> dict[str, Cells]:
        """Return the cells of each kind of confusion that was gathered."""
        repaired = Repaired(self.listed, self.columns, self.protocol, self.vocabulary)
        return {kind: repaired.cells(answers, len(self.names[kind])) for kind, answers in self.columns.kinds.items()}

    def panels(self, cells: Mapping[str, Cells]) -> Iterator[Panel]:
        """Yield a heat map for each kind: which annotated name is taken for which other name."""
        for kind, of_kind in cells.items():
            is_confusion = (of_kind.true != NOTHING) & (of_kind.said != NOTHING) & (of_kind.true != of_kind.said)
            share = 100 * (of_kind.count / of_kind.totals())
            model_label = [short_label(self.name)] if self.tagged else []
            view_texts = [f"{key} {value}" for key, value in self.protocol.view]
            title = ", ".join([f"{kind.capitalize()}s", *model_label, *view_texts])
            columns = (of_kind.true, of_kind.said, of_kind.count, share)
            yield Panel(title, self.names[kind], *(column[is_confusion] for column in columns))

    def rows(self, cells: Mapping[str, Cells], *, top: int | None, tags: Mapping[str, str]) -> Iterator[Row]:
        """Yield the result rows of the cells that `rank_cells` chooses, kind by kind. Each cell has its count, its
        share in percent of all units with the annotated name (where nothing is annotated, of all that were predicted to
        have the name), and the gain of its repair in points of mAP."""
        tagged = {**({"model": self.name} if self.tagged else {}), **tags, **dict(self.protocol.view)}
        common_keys = row_ends(self.protocol.name, tagged, self.settings)
        (subset, members) = max(subset_classes(self.vocabulary, self.protocol).items(), key=lambda pair: len(pair[1]))
        positives = np.bincount(self.columns.truth_class, minlength=len(self.vocabulary.interactions))[members]
        averaged = int((positives > 0).sum())
        for kind, of_kind in cells.items():
            names, totals = self.names[kind], of_kind.totals()
            for cell_number in rank_cells(of_kind, top).tolist():
                true, predicted = int(of_kind.true[cell_number]), int(of_kind.said[cell_number])
                cell = {
                    "subset": subset,
                    "kind": kind,
                    "truth": None if true == NOTHING else names[true],
                    "predicted": None if predicted == NOTHING else names[predicted],
                }
                count, total = int(of_kind.count[cell_number]), int(totals[cell_number])
                unit = UNITS[kind][true == NOTHING]
                values: list[tuple[str, Any, int, str]] = [
                    ("confusion", count, total, unit),
                    ("confusion_share", 100.0 * count / total, total, "%"),
                ]
                gain = float(of_kind.gain[cell_number])
                if true != predicted:
                    values.append(("confusion_delta_mAP", None if np.isnan(gain) else percent(gain), averaged, "%"))
                for metric, value, n, value_unit in values:
                    yield result_row(metric, **cell, value=value, n=n, unit=value_unit, **common_keys)


class Confusing:
    """Gathers the confusions of one model, batch by batch in any order (`Collector`)."""

    def __init__(self, truth: GroundTruth, protocol: Protocol, *, objects: bool = True) -> None:
        """objects: also gather the confusions of objects, if the protocol compares labels."""
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
        """Return the parts alone, for the process that merges them: it has the ground truth already."""
        return {"_parts": self._parts}

    def find_confusions(self, name: str, listed: Listed, settings: Settings, *, tagged: bool) -> Confused:
        """Return the confusions of all that was added. listed: the predictions that were added; settings: what
        signatures say besides the ground truth and the protocol."""
        truth, view = self._truth, self._protocol
        signed = {"data": truth.vocabulary.signed, **settings, **truth.settings(view), **view.settings()}
        whole = ConfusionColumns.join([*self._parts, ConfusionColumns.unseen(truth, view, listed.image_ids)])
        return Confused(name, tagged, view, truth.vocabulary, listed, whole, signed)


def rank_cells(cells: Cells, top: int | None) -> Ints:
    """Return the numbers of the cells in the order of their rows. Confusions of two names come first, then the cells in
    which nothing is annotated or predicted; of either sort the `top` by gain, then count, then name. With `top` None
    all cells are returned by name, NOTHING last."""
    last = np.iinfo(np.int64).max
    by_name = [np.where(names == NOTHING, last, names) for names in (cells.said, cells.true)]
    if top is None:
        return np.lexsort(by_name)
    gain = np.where(np.isnan(cells.gain), -np.inf, cells.gain)
    order = np.lexsort((*by_name, -cells.count, -gain))
    both_named = ((cells.true != NOTHING) & (cells.said != NOTHING))[order]
    off_diagonal = (cells.true != cells.said)[order]
    return np.concatenate([order[off_diagonal & both_named][:top], order[off_diagonal & ~both_named][:top]])


def confused_models(
    models: Sequence[Predictions],
    truth: GroundTruth,
    protocol: Protocol,
    filters: Filters,
    policy: ErrorPolicy,
    views: Views = ALONE,
) -> list[Confused]:
    """Return each model's confusions by view. Raises `UsageError` for slices of classes, `DataError` for a bad
    stream."""
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
