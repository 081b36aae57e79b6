"""The confusions of one or several models as rows, with the mAP that repairing each cell would give.

Repairing the cell (v, w), w predicted in place of v, is an oracle as in `hoicli.diagnosis.repairs`:

- the first prediction of each ground truth of the cell becomes a true positive of its class with its own score, and
  the true positive it replaces (a lower score) is dropped, as the oracles do with repairs. A prediction that is first
  for several becomes one, that of the first in annotation order (they are of one class);
- every other prediction that says w of the cell's pairs is dropped.

Of an object, the prediction that becomes a true positive is, for each triplet of a pair in the cell, the best one with
the wrong label and the triplet's verb, if it ranks above the triplet's true positive. In the cells (nothing, w) the
predictions are dropped, as `both_boxes` does; in (v, nothing) the ground truth leaves the count, as `missed_gt` does.
The repairs of different cells overlap, so their gains do not add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from hoicli.diagnosis.confusions import NOTHING, ConfusionColumns, KindConfusions
from hoicli.diagnosis.diagnosed_models import Placed, match_and_diagnose
from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import check_computable
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
    """The K cells of a confusion matrix (of verbs or of objects) that occur, ordered by annotated and predicted name.

    true, predicted [K]: the number of the annotated and of the predicted name, NOTHING (-1) for none. count [K]: how
    many ground-truth triplets (for objects: annotated pairs of boxes) are in the cell; where nothing is annotated, how
    many predictions (for objects: predicted pairs). gain [K]: how much mean AP, in [0, 1], repairing the cell would
    add; NaN on the diagonal and where there is no class to average."""

    true: Ints
    predicted: Ints
    count: Ints
    gain: Floats

    def totals(self) -> Ints:
        """Return [K] what the count of each cell is a share of: the total count of its row (the cells with the same
        annotated name); for a cell where nothing is annotated, of its column (the same predicted name)."""
        names = int(max(self.true.max(initial=0), self.predicted.max(initial=0))) + 1
        has_true, has_predicted = self.true != NOTHING, self.predicted != NOTHING
        row_totals = np.bincount(self.true[has_true], self.count[has_true], minlength=names)
        column_totals = np.bincount(self.predicted[has_predicted], self.count[has_predicted], minlength=names)
        return np.where(has_true, row_totals[self.true], column_totals[self.predicted]).astype(np.int64)


class _Tasks(NamedTuple):
    """What the repairs of cells change: a task is one cell with one class whose AP its repair may change.

    cells, classes [J]: the cell and the class of each task. inserted, removed: the true positives that tasks add and
    the predictions that they take away, ascending; each is written as one number, the task times `Repaired._width` plus
    the prediction's place in the ranking of all predictions. lost [J]: how many ground truths no longer count."""

    cells: Ints
    classes: Ints
    inserted: Ints
    removed: Ints
    lost: Ints


class Repaired:
    """A model's ranked predictions, from which the AP after the repair of each cell is computed."""

    def __init__(self, listed: Listed, columns: ConfusionColumns, protocol: Protocol, vocabulary: Vocabulary) -> None:
        """Rank all predictions once, by descending score. listed: the predictions; columns: their confusions."""
        self._interaction, self._columns, self._protocol = listed.interaction.astype(np.int64), columns, protocol
        count = len(listed)
        # The place of each prediction in one ranking of all classes: rank_by_class is told that all are of class 0.
        self._place = np.empty(count, dtype=np.int64)
        ranking = listed.rank_by_class(np.zeros(count, dtype=np.int8), 1, place=listed.interaction)
        self._place[ranking.order] = np.arange(count)
        self._width = count + 1  # above every place, so that class * width + place sorts by class, then by place
        self._keys = np.sort(self._key(np.flatnonzero(columns.counted)))  # in which a rank in a class is looked up
        # The true positives by class and rank; those of class c are _hits[_hit_bounds[c]:_hit_bounds[c + 1]].
        hits = np.flatnonzero(columns.hit)
        self._hits = hits[np.argsort(self._key(hits))]
        classes = len(vocabulary.interactions)
        self._hit_bounds = np.searchsorted(self._interaction[self._hits], np.arange(classes + 1))
        self._positives = np.bincount(columns.truth_class, minlength=classes)
        # The classes [C] in the mean AP over the largest subset.
        largest_subset = max(subset_classes(vocabulary, protocol).values(), key=len)
        self._averaged = classes_in_mean(self._positives, vocabulary, protocol) & (self._positives > 0)
        self._averaged &= np.isin(np.arange(classes), largest_subset)
        self._averaged[sorted(vocabulary.no_interaction_ids)] = False

    def _key(self, rows: Ints) -> Ints:
        """Return [R] a number for each of the predictions `rows` [R] that sorts them by class, then by score."""
        key: Ints = self._interaction[rows] * self._width + self._place[rows]
        return key

    def _rank(self, classes: Ints, place: Ints) -> Ints:
        """Return [R] the rank that a prediction of each class has, or would have, in the list of its class: how many
        counted predictions of the class stand at or above it. place [R]: its place in the ranking of all classes."""
        start = np.searchsorted(self._keys, classes * self._width)
        rank: Ints = np.searchsorted(self._keys, classes * self._width + place, side="right") - start
        return rank

    @cached_property
    def _hit_rank(self) -> Ints:
        """The rank of each true positive in `_hits` among the counted predictions of its class."""
        return self._rank(self._interaction[self._hits], self._place[self._hits])

    @cached_property
    def ap(self) -> Floats:
        """The AP of each class [C] before any repair, in [0, 1]."""
        return ranked_ap(self._hit_rank, self._hit_bounds, self._positives, self._protocol)[0]

    def cells(self, confusions: KindConfusions, names: int) -> Cells:
        """Return the cells of the confusion matrix, with the gain of repairing each. names: how many there are."""
        width = names + 1

        def key_of(true: Ints, predicted: Ints) -> Ints:
            """Return the number of each cell (annotated name, predicted name), ascending by both."""
            return (true + 1) * width + predicted + 1  # NOTHING is -1, so both names are raised by one

        annotated_cells = key_of(confusions.true, confusions.predicted)
        stray_cells = key_of(np.full(len(confusions.stray_name), NOTHING), confusions.stray_name)
        keys, count = np.unique(np.concatenate([annotated_cells, stray_cells]), return_counts=True)
        true, predicted = keys // width - 1, keys % width - 1
        gain = self._gains(confusions, keys, key_of)
        gain[true == predicted] = np.nan
        return Cells(true, predicted, count, gain)

    def _gains(self, confusions: KindConfusions, cells: Ints, key_of: Callable[[Ints, Ints], Ints]) -> Floats:
        """Return [K] how much mean AP the repair of each cell would add. cells [K]: the keys of the cells, which
        `key_of` makes from annotated and predicted names."""
        tasks = self._tasks(confusions, cells, key_of)
        positives = self._positives[tasks.classes] - tasks.lost
        # For each cell, the sum of the AP of all classes and the number of classes in the mean are corrected by what
        # its tasks change. A class that loses all its ground truth leaves the mean.
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

    def _tasks(self, confusions: KindConfusions, cells: Ints, key_of: Callable[[Ints, Ints], Ints]) -> _Tasks:
        """Return what the repair of each cell inserts, removes and no longer counts. cells, key_of: as in `_gains`.

        A fix turns a prediction into the true positive of a ground truth of its class, in place of the one that it had
        (`former_hit`); a drop removes a wrong prediction; ground truth of which nothing is predicted no longer counts.
        """
        columns, classes = self._columns, len(self._positives)

        def task_keys(cell_keys: Ints, class_numbers: Ints) -> Ints:
            """Return one number for each (cell, class): the cell's position in `cells`, times classes, plus class."""
            return find(cells, cell_keys)[0] * classes + class_numbers

        cell_of_unit = key_of(confusions.true, confusions.predicted)
        repaired_class = columns.truth_class[confusions.fix_truth]
        fixed_cell = cell_of_unit[confusions.fix_unit]
        former_hit = columns.true_positive[confusions.fix_truth]
        replaced = former_hit >= 0
        stray_cell = key_of(np.full(len(confusions.stray_row), NOTHING), confusions.name_of_stray)
        dropped_cell = np.concatenate([cell_of_unit[confusions.drop_unit], stray_cell])
        dropped_row = np.concatenate([confusions.drop_row, confusions.stray_row])
        missed = np.flatnonzero(confusions.predicted[confusions.of_truth] == NOTHING)
        insert_key = task_keys(fixed_cell, repaired_class)
        drop_key = task_keys(dropped_cell, self._interaction[dropped_row])
        remove_key = np.concatenate([drop_key, task_keys(fixed_cell[replaced], repaired_class[replaced])])
        lose_key = task_keys(cell_of_unit[confusions.of_truth[missed]], columns.truth_class[missed])

        task_key = np.unique(np.concatenate([insert_key, remove_key, lose_key]))
        removed_row = np.concatenate([dropped_row, former_hit[replaced]])
        return _Tasks(
            cells=task_key // classes,
            classes=task_key % classes,
            inserted=np.sort(find(task_key, insert_key)[0] * self._width + self._place[confusions.fix_row]),
            removed=np.sort(find(task_key, remove_key)[0] * self._width + self._place[removed_row]),
            lost=np.bincount(find(task_key, lose_key)[0], minlength=len(task_key)),
        )

    def _ap_after(self, tasks: _Tasks, positives: Ints) -> Floats:
        """Return [J] the AP of each task's class once its cell is repaired, in blocks of tasks to bound the memory.
        positives [J]: how many ground truths of the class count then."""
        ap = np.zeros(len(tasks.classes))
        for block in blocks_of(np.diff(self._hit_bounds)[tasks.classes]):
            start, stop = block.start * self._width, block.stop * self._width
            # The keys of this block's tasks; less `start`, they number the tasks from the block's first.
            inserted, removed = (
                keys[slice(*np.searchsorted(keys, [start, stop]))] - start for keys in (tasks.inserted, tasks.removed)
            )
            ap[block] = self._repaired_ap(tasks.classes[block], positives[block], inserted, removed)
        return ap

    def _repaired_ap(self, of_class: Ints, positives: Ints, inserted: Ints, removed: Ints) -> Floats:
        """Return [J] the AP of each task's class after the repair, from the ranks that the true positives have then.
        of_class, positives [J]: the class of each task, and how many of its ground truths count. inserted, removed: the
        new true positives and the dropped predictions, ascending, each as task * width + place (see `_Tasks`)."""
        # every true positive of each task's class before the repair
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
        remaining = np.flatnonzero(~find(removed, key)[1])  # a removed true positive has left the list
        remaining = remaining[np.argsort(key[remaining], kind="stable")]
        bounds = np.searchsorted(task[remaining], np.arange(len(of_class) + 1))
        return ranked_ap(rank[remaining], bounds, positives, self._protocol)[0]


UNITS = {"verb": ("triplets", "predictions"), "object": ("pairs", "predicted pairs")}
"""What a cell of each kind of confusion counts, and what its cells in which nothing is annotated count."""


@dataclass(frozen=True)
class Confused:
    """One model's confusions under one view of the protocol (a threshold and a part of the data to evaluate).

    name, tagged: the model, and whether rows name it (as the tag `model`). listed: the model's predictions. columns:
    their confusions. settings: what the signatures of the rows state."""

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
        """Return the cells of each kind of confusion that was gathered: "verb" and, unless left out, "object"."""
        repaired = Repaired(self.listed, self.columns, self.protocol, self.vocabulary)
        return {
            kind: repaired.cells(confusions, len(self.names[kind])) for kind, confusions in self.columns.kinds.items()
        }

    def panels(self, cells: Mapping[str, Cells]) -> Iterator[Panel]:
        """Yield a heat map for each kind, which shows which annotated name is taken for which other name."""
        for kind, matrix in cells.items():
            is_confusion = (matrix.true != NOTHING) & (matrix.predicted != NOTHING) & (matrix.true != matrix.predicted)
            share = 100 * (matrix.count / matrix.totals())
            model_label = [short_label(self.name)] if self.tagged else []
            view_texts = [f"{key} {value}" for key, value in self.protocol.view]
            title = ", ".join([f"{kind.capitalize()}s taken for others", *model_label, *view_texts])
            columns = (matrix.true, matrix.predicted, matrix.count, share)
            yield Panel(title, self.names[kind], *(column[is_confusion] for column in columns))

    def rows(self, cells: Mapping[str, Cells], *, top: int | None, tags: Mapping[str, str]) -> Iterator[Row]:
        """Yield the result rows of the cells that `rank_cells` chooses, kind by kind: the count of each cell, its share
        of its row (column, if nothing is annotated) and, off the diagonal, the mAP that its repair would add, in %."""
        tagged = {**({"model": self.name} if self.tagged else {}), **tags, **dict(self.protocol.view)}
        common_keys = row_ends(self.protocol.name, tagged, self.settings)
        subsets = subset_classes(self.vocabulary, self.protocol)
        subset = max(subsets, key=lambda name: len(subsets[name]))  # the mean is over all classes
        positives = np.bincount(self.columns.truth_class, minlength=len(self.vocabulary.interactions))
        averaged = int((positives[subsets[subset]] > 0).sum())
        for kind, matrix in cells.items():
            names, totals = self.names[kind], matrix.totals()
            for cell_number in rank_cells(matrix, top).tolist():
                true, predicted = int(matrix.true[cell_number]), int(matrix.predicted[cell_number])
                cell = {
                    "subset": subset,
                    "kind": kind,
                    "truth": None if true == NOTHING else names[true],
                    "predicted": None if predicted == NOTHING else names[predicted],
                }
                count, total = int(matrix.count[cell_number]), int(totals[cell_number])
                counted_unit, unit_if_unannotated = UNITS[kind]
                unit = unit_if_unannotated if true == NOTHING else counted_unit
                values: list[tuple[str, Any, int, str]] = [
                    ("confusion", count, total, unit),
                    ("confusion_share", 100.0 * count / total, total, "%"),
                ]
                gain = float(matrix.gain[cell_number])
                if true != predicted:
                    values.append(("confusion_delta_mAP", None if np.isnan(gain) else percent(gain), averaged, "%"))
                for metric, value, n, value_unit in values:
                    yield result_row(metric, **cell, value=value, n=n, unit=value_unit, **common_keys)


class Confusing:
    """Gathers the confusions of one model, as a `Collector`: `match_and_diagnose` hands it every matched batch."""

    def __init__(self, truth: GroundTruth, protocol: Protocol, *, objects: bool = True) -> None:
        """Start with no batch. objects: also gather the confusions of objects, if the protocol compares labels."""
        self._truth, self._protocol = truth, protocol
        self._objects = objects and not protocol.person_first
        self._parts: list[ConfusionColumns] = []

    def add(self, placed: Placed) -> None:
        """Add the confusions of a matched batch."""
        meets = partial(placed.batch.meets, self._protocol) if self._objects else None
        self._parts.append(ConfusionColumns.from_batch(placed.located, self._truth.vocabulary, meets))

    def merge(self, other: Confusing) -> None:
        """Add what was gathered from other images."""
        self._parts += other._parts

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled when a worker process hands its result back: only the gathered parts, since the
        process that merges them has the ground truth already."""
        return {"_parts": self._parts}

    def find_confusions(self, name: str, listed: Listed, settings: Settings, *, tagged: bool) -> Confused:
        """Return the confusions of all batches, and of the images that no batch had. settings: what signatures state
        besides the ground truth and the protocol."""
        truth, view = self._truth, self._protocol
        signed = {"data": truth.vocabulary.signed, **settings, **truth.settings(view), **view.settings()}
        whole = ConfusionColumns.join([*self._parts, ConfusionColumns.unseen(truth, view, listed.image_ids)])
        return Confused(name, tagged, view, truth.vocabulary, listed, whole, signed)


def rank_cells(cells: Cells, top: int | None) -> Ints:
    """Return the numbers of the cells to write, in order. First come the `top` confusions of two names, then the `top`
    cells in which nothing is annotated or nothing is predicted; both by descending gain, then count, then name.

    With `top` None all cells are returned, the diagonal too, ordered by annotated and predicted name, NOTHING last."""
    last = np.iinfo(np.int64).max
    by_name = [np.where(names == NOTHING, last, names) for names in (cells.predicted, cells.true)]
    if top is None:
        return np.lexsort(by_name)
    gain = np.where(np.isnan(cells.gain), -np.inf, cells.gain)
    order = np.lexsort((*by_name, -cells.count, -gain))  # lexsort sorts by its last key first
    both_named = ((cells.true != NOTHING) & (cells.predicted != NOTHING))[order]
    off_diagonal = (cells.true != cells.predicted)[order]
    return np.concatenate([order[off_diagonal & both_named][:top], order[off_diagonal & ~both_named][:top]])


def confused_models(
    models: Sequence[Predictions],
    truth: GroundTruth,
    protocol: Protocol,
    filters: Filters,
    policy: ErrorPolicy,
    views: Views = ALONE,
) -> list[Confused]:
    """Return the confusions of each model under each view: each threshold and each part of a slice in `views`. Raises
    `UsageError` for slices of classes, `DataError` for a bad stream."""
    if views.of_classes:
        names = ",".join(slice_.name for slice_ in views.of_classes)
        raise UsageError(f"{arg('slice', names)}: of classes, which confusions join; use people, pairs or a file")
    protocol_views = views.diagnosis_views(protocol)
    check_computable(truth, protocol)
    models_confused: list[Confused] = []
    for model in models:
        collect = partial(Confusing, truth)
        whole = match_and_diagnose(
            model, truth, [], protocol_views, filters, policy, collector=collect, diagnosed=False
        )
        whole.coverage.report(truth, protocol_views, model.name, model=model.model if len(models) > 1 else None)
        settings = filters.signature() | whole.tally.uncounted_setting
        models_confused += [
            confusing.find_confusions(model.model, whole.tally.listed, settings, tagged=model.tagged)
            for confusing in whole.collected
        ]
    return models_confused
