"""How sure a model is of each of its predictions. Scores of two models, or of two classes, cannot be compared, so a
prediction is placed among the right and the wrong ones of its own class and model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hoicli.evaluation.matching import Batch, Outcomes
from hoicli.evaluation.pairing import FALSE_POSITIVE, TRUE_POSITIVE, iterate_pairs
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import Ranked
from hoicli.evaluation.tally import Tally
from hoicli.records.kit import Bools, Floats, Growing, Ints, expand_runs, find, run_starts, starts_of
from hoicli.records.scenes import Scenes

BACKGROUND = 0.1
"""As in TIDE: a prediction that overlaps no annotation of its class by more is of something that is not annotated."""


@dataclass(frozen=True)
class Opinion:
    """The predictions of a model for all images, matched by a protocol, with how sure the model is of each.

    name: the model. batch, outcomes: the predictions, and how they match. tally: these outcomes, as for mAP."""

    name: str
    batch: Batch
    outcomes: Outcomes
    tally: Tally
    protocol: Protocol

    @property
    def scenes(self) -> Scenes:
        """The model's predictions."""
        return self.batch.predictions

    @cached_property
    def sure(self) -> Floats:
        """How sure the model is of each prediction [T], from 0 to 1. It is the share of true positives of the class
        that score no higher, times the precision among the predictions of the class that score higher or the same. Both
        shares are computed with one more example of each kind, so that a model is not sure after a few examples."""
        higher_right, right = self._count_higher(self.outcomes.code == TRUE_POSITIVE, equal=False)
        higher_or_same_wrong, _ = self._higher_wrong
        higher_wrong = higher_or_same_wrong - (self.outcomes.code == FALSE_POSITIVE)  # without the prediction itself
        share_not_higher = (right - higher_right) / (right + 1)
        sure: Floats = share_not_higher * (higher_right + 1) / (higher_right + 2 + higher_wrong)
        return sure

    @cached_property
    def doubtful(self) -> Floats:
        """How doubtful each prediction [T] is: the share of false positives of its class that score higher or the same,
        computed with one more false positive that scores lower than all."""
        higher, wrong = self._higher_wrong
        return higher / (wrong + 1)

    @cached_property
    def _higher_wrong(self) -> tuple[Ints, Ints]:
        """For each prediction [T], how many false positives of its class score higher or the same, and how many there
        are."""
        return self._count_higher(self.outcomes.code == FALSE_POSITIVE, equal=True)

    def _count_higher(self, counted: Bools, *, equal: bool) -> tuple[Ints, Ints]:
        """Return for each prediction [T] how many predictions of its class are `counted` [T] and score higher than it
        (or the same, if `equal`), and how many of its class are counted at all."""
        ranked, run = self._ranking  # by class and score; the number of each one's run of equal scores in its class
        class_ = self.scenes.interaction
        # how many counted predictions are ranked before each class, and before each run of equal scores
        before_class = starts_of(counted[ranked.order])[ranked.bounds]
        before_run = starts_of(np.bincount(run[counted[ranked.order]], minlength=len(run)))
        higher = np.zeros(len(class_), dtype=np.int64)
        higher[ranked.order] = (before_run[1:] if equal else before_run)[run] - before_class[class_[ranked.order]]
        return higher, np.append(np.diff(before_class), 0)[class_]  # class -1, none, reads the last entry

    @cached_property
    def _ranking(self) -> tuple[Ranked, Ints]:
        """The predictions ranked by class and descending score; and of each the number of its run of equal scores."""
        ranked = self.tally.rank(self.batch.truth.vocabulary)
        class_, score = self.scenes.interaction[ranked.order], self.scenes.score[ranked.order]
        starts_run = (class_[1:] != class_[:-1]) | (score[1:] != score[:-1])
        return ranked, starts_of(starts_run)[: len(score)]

    @cached_property
    def _matched(self) -> tuple[Ints, Ints]:
        """Two columns: each predicted box with each ground-truth box that it overlaps enough, whatever their labels."""
        return self.batch.matched_boxes(self.protocol, any_label=True)

    def overlapping_predictions(self, subject: Ints, object_: Ints) -> tuple[Ints, Ints]:
        """Return every annotated pair of boxes with every counted prediction whose two boxes overlap them enough, as
        two columns: the number of the pair, and the prediction. subject, object_: the ground-truth boxes of each pair,
        object -1 for none. A prediction without an object is only on pairs without one."""
        scenes = self.scenes
        box, truth_box = self._matched  # every predicted box with every ground-truth box that it overlaps enough
        # First every pair with every prediction whose subject overlaps that of the pair; then the objects are compared.
        order = np.lexsort((box, truth_box))
        by_truth = truth_box[order]
        start = np.searchsorted(by_truth, subject)
        count = np.searchsorted(by_truth, subject, side="right") - start
        rows = np.flatnonzero(self.outcomes.code <= TRUE_POSITIVE)  # or FALSE_POSITIVE, 0; the others do not count
        rows = rows[np.argsort(scenes.subject[rows], kind="stable")]
        subjects = scenes.subject[rows]
        # each such two boxes as one number, by which it is looked up whether two objects overlap enough
        match_keys = np.sort(box * (len(self.batch.truth.scenes.boxes) + 1) + truth_box)
        pairs_found = Growing(pair=np.int64, row=np.int64)
        for pair, match in iterate_pairs(start, count):
            person = box[order[match]]
            first = np.searchsorted(subjects, person)
            entry_of_row, place = expand_runs(first, np.searchsorted(subjects, person, side="right") - first)
            pair, row = pair[entry_of_row], rows[place]
            object_keys = scenes.object[row] * (len(self.batch.truth.scenes.boxes) + 1) + object_[pair]
            neither_has_object = (scenes.object[row] < 0) & (object_[pair] < 0)
            both_have_object = (scenes.object[row] >= 0) & (object_[pair] >= 0)
            _, objects_overlap = find(match_keys, object_keys)
            keep = neither_has_object | (both_have_object & objects_overlap)
            pairs_found.add(pair=pair[keep], row=row[keep])
        return pairs_found["pair"], pairs_found["row"]

    @cached_property
    def stray(self) -> Bools:
        """Whether each prediction [T] is a false positive that is not even near an annotated triplet of its class: it
        overlaps none enough, nor by more than `BACKGROUND`."""
        stray: Bools = self.outcomes.code == FALSE_POSITIVE
        near = np.minimum(self.outcomes.iou_subject, self.outcomes.iou_object) > BACKGROUND
        stray[self.outcomes.row[near | self.outcomes.enough]] = False
        return stray

    def annotated_box(self, boxes: Ints) -> Ints:
        """Return the ground-truth box of its label that each predicted box (-1 for none) overlaps most, if it does so
        enough, else -1; among equal overlaps the first by corners. boxes: an array of predicted boxes of any shape."""
        box, truth_box = self._matched
        kinds, truth_kinds = self.scenes.labels, self.batch.truth.scenes.labels
        same_label = (kinds[box] == truth_kinds[truth_box]) | (kinds[box] < 0)  # -1: no label, which fits any
        box, truth_box = box[same_label], truth_box[same_label]
        overlap = self.batch.iou_of(self.protocol, box, truth_box)
        best = np.lexsort((*self.batch.truth.scenes.corners(truth_box), -overlap, box))
        best = best[run_starts(box[best])]
        nearest = np.full(len(kinds) + 1, -1, dtype=np.int64)  # box -1 reads the last entry
        nearest[box[best]] = truth_box[best]
        return nearest[boxes]
