"""Which ground truth each prediction of a batch of images may belong to, and how much their boxes overlap.

IoU is computed once per (predicted box, ground-truth box) of an image and shared by protocols with one convention; one
sorted join finds the ground truth of each prediction's class. No Python loop runs per triplet or image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import NO_SHIFT, Protocol
from hoicli.records import caveats
from hoicli.records.boxes import iou
from hoicli.records.kit import Bools, Floats, Ints, expanded, joined, run_starts, starts_of
from hoicli.records.outcomes import OUTCOME_CODES
from hoicli.records.roles import class_columns
from hoicli.records.scenes import Scenes, box_kinds

Candidates = tuple[Ints, Ints, Floats, Floats]
"""[M] predictions, ascending; ground-truth triplets; IoU_subject and IoU_object of the two."""

_LAST_PIXELS = caveats.mask([caveats.LAST_PIXELS])
PAIRS_AT_ONCE = 1 << 19
"""Pairs of boxes, or of predictions and ground truth of a class, that are compared at a time: 150 MB. A batch of real
images has a fifth of them; one with thousands of predictions and annotations in an image goes in blocks."""
MOST_PAIRS = 1 << 24
"""Such pairs that one image may have, 4,096 of each: some seconds' work for each protocol. Real ones have thousands."""


class Pairing:
    """The predictions of some images and their ground truth, with columns that all protocols share."""

    def __init__(self, predictions: Scenes, truth: GroundTruth, *, all_boxes: bool = False) -> None:
        """`all_boxes`: compute IoU for all boxes of one label (`box_matches` needs it), not only within a class."""
        self.predictions = predictions
        self.truth = truth
        self.image = truth.rows_of(predictions.image_ids)
        self.image_of_hoi: Ints = self.image[predictions.image_of_hoi]
        # A box pair is a predicted and a ground-truth box of one image. Pair numbers are dense: those of a predicted
        # box are consecutive, in the order of its image's ground-truth boxes.
        image = self.image[predictions.image_of_box]
        self._first_truth_box: Ints = truth.scenes.box_start[image]  # [B] of the image of each predicted box
        self._pair_start = starts_of(truth.scenes.box_start[image + 1] - self._first_truth_box)
        self._kinds, self._truth_kinds = box_kinds(predictions.labels, truth.vocabulary), truth.kinds
        if all_boxes:
            self._check(np.diff(self._pair_start), predictions.image_of_box, "boxes")
        self._annotations = truth.by_class(self.image)
        rows, first, count = self._annotations.find(predictions.image_of_hoi, predictions.interaction)
        self._crowded = bool(max(count.sum(), self._pair_start[-1]) > PAIRS_AT_ONCE)
        if self._crowded:
            self._check(count, predictions.image_of_hoi[rows], "triplets of one class")
            self._blocks_of_class = [(rows[part], first[part], count[part]) for part in blocks_of(count)]
        else:
            self._candidate, self._candidate_truth = self._annotations.joined(rows, first, count)
            self._subject_pair, self._object_pair = self._candidate_pairs()
            self._needed = self._needed_pairs(all_boxes=all_boxes)
        self._overlaps: dict[object, Floats] = {}
        self._people: dict[object, tuple[Ints, Floats]] = {}

    def _check(self, count: Ints, image: Ints, what: str) -> None:
        check_pairs(count, image, self.predictions.image_ids, what)

    def _candidate_pairs(self) -> tuple[Ints, Ints]:
        """The box pairs of the subjects and of the objects, for each (prediction, ground truth of its class); -1 if the
        labels of the two boxes differ."""
        predictions, annotated = self.predictions, self.truth.scenes
        candidate, truth = self._candidate, self._candidate_truth
        subject, object_ = predictions.subject[candidate], predictions.object[candidate]
        truth_subject, truth_object = annotated.subject[truth], annotated.object[truth]
        pairs = self._pair(subject, truth_subject), self._pair(object_, truth_object)
        if not self.truth.vocabulary.roles:
            return pairs
        # A class with a role does not fix the labels, and may have no object.
        same_subject = self._kinds[subject] == self._truth_kinds[truth_subject]
        same_object = predictions.object_label[candidate] == annotated.object_label[truth]
        same_object &= (object_ >= 0) & (truth_object >= 0)
        return np.where(same_subject, pairs[0], -1), np.where(same_object, pairs[1], -1)

    def _pair(self, box: Ints, truth_box: Ints) -> Ints:
        """The number of each (predicted box, ground-truth box)."""
        return self._pair_start[box] + truth_box - self._first_truth_box[box]

    def _boxes_of(self, pair: Ints) -> tuple[Ints, Ints]:
        """(predicted box, ground-truth box) of each pair number."""
        box = np.searchsorted(self._pair_start, pair, side="right") - 1
        return box, self._first_truth_box[box] + pair - self._pair_start[box]

    def _needed_pairs(self, *, all_boxes: bool) -> Ints:
        """The pairs that some protocol can need, ascending: only these get an IoU."""
        wanted = np.zeros(self._pair_start[-1], dtype=bool)
        wanted[self._subject_pair[self._subject_pair >= 0]] = True
        wanted[self._object_pair[self._object_pair >= 0]] = True
        if all_boxes:
            wanted |= self._same_label(*self._boxes_of(np.arange(len(wanted))))
        return np.flatnonzero(wanted)

    def _same_label(self, box: Ints, truth_box: Ints) -> Bools:
        """Whether a predicted and a ground-truth box have the same label (`box_kinds`); one without a label has any."""
        label = self._kinds[box]
        same: Bools = (label == self._truth_kinds[truth_box]) | (label < 0)
        return same

    @cached_property
    def _needed_coordinates(self) -> tuple[Ints, Floats, Floats]:
        """The predicted box of each needed pair; [4, needed] x1, y1, x2, y2 of it and of the ground-truth box."""
        box, truth_box = self._boxes_of(self._needed)
        sides = ((self.predictions.boxes, box), (self.truth.scenes.boxes, truth_box))
        first, second = (np.ascontiguousarray(boxes[rows].T) for boxes, rows in sides)
        return box, first, second

    def overlaps(self, protocol: Protocol) -> Floats:
        """[pairs] IoU by the protocol's convention, 0 for pairs not needed; computed once for each convention."""
        key = protocol.iou_key
        if key not in self._overlaps:
            box, first, second = self._needed_coordinates
            overlap = np.zeros(self._pair_start[-1])
            overlap[self._needed] = protocol_iou(protocol, self._as_fed(protocol, first, box), second)
            self._overlaps[key] = overlap
        return self._overlaps[key]

    def _blocks(self, protocol: Protocol, code: NDArray[np.uint8]) -> Iterator[Candidates]:
        """The candidates of the predictions that count, all at once or, where they are many, some at a time."""
        if protocol.person_first:
            return self._of_best_person(protocol, code)
        return self._of_class_in_blocks(protocol, code) if self._crowded else iter([self._of_class(protocol, code)])

    def covered(self, protocol: Protocol) -> tuple[Ints, Ints]:
        """Every (prediction, ground-truth triplet of its class) whose boxes have the same labels and overlap enough:
        rows of the predictions, ascending, and of the ground truth. Unlike `match`, a prediction may have several, and
        be one of several for a triplet."""
        every = np.zeros(len(self.predictions.score), dtype=np.uint8)
        enough = [
            (row[fits], truth[fits])
            for row, truth, subject, object_ in self._blocks(protocol, every)
            for fits in [np.minimum(subject, object_) >= protocol.threshold]
        ]
        row, truth = (joined([part[side] for part in enough], np.int64) for side in (0, 1))
        labels, annotated = self.predictions.labels, self.truth.scenes
        same = labels[self.predictions.subject[row]] == annotated.labels[annotated.subject[truth]]
        return row[same], truth[same]

    def _of_class_in_blocks(self, protocol: Protocol, code: NDArray[np.uint8]) -> Iterator[Candidates]:
        """As `_of_class`, some predictions at a time; each IoU is computed where it is needed."""
        predictions, annotated = self.predictions, self.truth.scenes
        for rows, first, count in self._blocks_of_class:
            live = code[rows] == 0
            candidate, truth = self._annotations.joined(rows[live], first[live], count[live])
            sides = [
                (predictions.subject[candidate], annotated.subject[truth]),
                (predictions.object[candidate], annotated.object[truth]),
            ]
            labels = [(self._kinds, self._truth_kinds), (predictions.labels, annotated.labels)]
            subject, object_ = (
                self._iou_where(protocol, *side, *of_side) for side, of_side in zip(sides, labels, strict=True)
            )
            yield self._by_labels(protocol, candidate, truth, subject, object_)

    def _iou_where(self, protocol: Protocol, box: Ints, truth_box: Ints, label: Ints, truth_label: Ints) -> Floats:
        """IoU of aligned boxes, 0 where there is none, and for classes with roles where their labels [B] differ."""
        if not self.truth.vocabulary.roles:
            return self.iou_of(protocol, box, truth_box)
        both = np.flatnonzero((box >= 0) & (truth_box >= 0) & (label[box] == truth_label[truth_box]))
        overlap = np.zeros(len(box))
        overlap[both] = self.iou_of(protocol, box[both], truth_box[both])
        return overlap

    def _of_class(self, protocol: Protocol, code: NDArray[np.uint8]) -> Candidates:
        """Every (prediction that counts, ground truth of its class) with IoU_subject and IoU_object."""
        live = np.flatnonzero(code[self._candidate] == 0)
        overlaps = np.append(self.overlaps(protocol), 0.0)  # index -1: no pair
        candidate, truth = self._candidate[live], self._candidate_truth[live]
        subject, object_ = overlaps[self._subject_pair[live]], overlaps[self._object_pair[live]]
        return self._by_labels(protocol, candidate, truth, subject, object_)

    def _by_labels(
        self, protocol: Protocol, candidate: Ints, truth: Ints, subject: Floats, object_: Floats
    ) -> Candidates:
        """Candidates whose IoU also depends on labels, where a protocol compares those of subjects or the ground truth
        has no object."""
        if protocol.same_subject:
            ends = self.predictions.subject[candidate], self.truth.scenes.subject[truth]
            subject[self.predictions.labels[ends[0]] != self.truth.scenes.labels[ends[1]]] = 0.0
        if self.truth.vocabulary.roles:
            object_[self.truth.scenes.object[truth] < 0] = 1.0  # nothing to find: the subject decides (QPIC)
        return candidate, truth, subject, object_

    def _of_best_person(self, protocol: Protocol, code: NDArray[np.uint8]) -> Iterator[Candidates]:
        """As `_of_class`, but only the annotations of each prediction's best person; drops predictions of ignored
        people.

        s-gupta/v-coco vsrl_eval.py: a subject belongs to the person it overlaps most, even with IoU 0.
        """
        predictions, annotated = self.predictions, self.truth.scenes
        person, with_person = self.best_people(protocol)
        ignored = (person >= 0) & ~annotated.annotated[person] if len(annotated.boxes) else person >= 0
        code[ignored & (code == 0)] = OUTCOME_CODES["ignored_person"]
        live = np.flatnonzero(code == 0)
        annotations = self.truth.by_person(self.image)
        rows, first, count = annotations.find(person[live], predictions.interaction[live])
        live = live[rows]
        self._check(count, predictions.image_of_hoi[live], "triplets of one person")
        _, is_agent = class_columns(self.truth.vocabulary)
        for part in blocks_of(count):
            row, truth = annotations.joined(live[part], first[part], count[part])
            box, truth_box = predictions.object[row], annotated.object[truth]
            object_ = np.zeros(len(row))
            both = (box >= 0) & (truth_box >= 0)
            object_[both] = self.iou_of(protocol, box[both], truth_box[both])
            nothing = truth_box < 0
            will_do = protocol.any_object_when_none | is_agent[predictions.interaction[row]]
            object_[nothing] = (will_do | self.empty_object[row])[nothing]
            yield row, truth, with_person[row], object_

    @cached_property
    def empty_object(self) -> Bools:
        """[T] predictions without an object: null, or a box of zeros as in official dumps."""
        absent = self.predictions.object < 0
        if not len(self.predictions.boxes):
            return absent
        zeros: Bools = (self.predictions.boxes == 0).all(axis=1)
        return absent | zeros[self.predictions.object]

    def best_people(self, protocol: Protocol) -> tuple[Ints, Floats]:
        """([T] the ground-truth person each subject overlaps most, -1 in an image without people; [T] the IoU)."""
        if protocol.iou_key not in self._people:
            subjects, of_subject = np.unique(self.predictions.subject, return_inverse=True)
            people, starts = self.truth.people
            image = self.image[self.predictions.image_of_box[subjects]]
            count = starts[image + 1] - starts[image]
            self._check(count, self.predictions.image_of_box[subjects], "people")
            person, largest = np.full(len(subjects), -1, dtype=np.int64), np.zeros(len(subjects))
            for part in blocks_of(count):
                row, place = expanded(starts[image[part]], count[part])
                row += part.start
                overlap = self.iou_of(protocol, subjects[row], people[place])
                best = first_largest(row, overlap)
                person[row[best]], largest[row[best]] = people[place[best]], overlap[best]
            self._people[protocol.iou_key] = person[of_subject], largest[of_subject]
        return self._people[protocol.iou_key]

    def found_people(self, protocol: Protocol) -> Ints:
        """[T] the ground-truth person each subject belongs to, -1 where it overlaps none of them enough."""
        person, overlap = self.best_people(protocol)
        return np.where(overlap >= protocol.threshold, person, -1)

    def iou_of(self, protocol: Protocol, box: Ints, truth_box: Ints) -> Floats:
        """IoU of aligned predicted and ground-truth boxes by the protocol's convention."""
        first = self._as_fed(protocol, self.predictions.boxes[box].T, box)
        return protocol_iou(protocol, first, self.truth.scenes.boxes[truth_box].T)

    def _as_fed(self, protocol: Protocol, coordinates: Floats, box: Ints) -> Floats:
        """[4, M] `coordinates` of the predicted boxes [M], shifted if their records have the caveat `last_pixels`."""
        if protocol.last_pixel_shift == NO_SHIFT or not self.predictions.every_caveat & _LAST_PIXELS:
            return coordinates
        marked = (self.predictions.caveats & _LAST_PIXELS)[self.predictions.image_of_box[box]] > 0
        fed: Floats = coordinates + marked * np.array(protocol.last_pixel_shift)[:, np.newaxis]
        return fed

    def matched_boxes(self, protocol: Protocol) -> tuple[Ints, Ints]:
        """Every (predicted box, ground-truth box) of one image and label with enough overlap, ascending. Needs a batch
        made with `all_boxes`. A person-first protocol ignores labels."""
        if protocol.person_first or self._crowded:
            return self._matched_in_blocks(protocol)
        enough = reaches(protocol, self.overlaps(protocol)[self._needed])
        return self._fitting(protocol, *self._boxes_of(self._needed[enough]))

    def meets(self, protocol: Protocol, box: Ints, truth_box: Ints) -> Bools:
        """[M] whether aligned predicted and ground-truth boxes overlap enough, whatever their labels."""
        return reaches(protocol, self.iou_of(protocol, box, truth_box))

    def _fitting(self, protocol: Protocol, box: Ints, truth_box: Ints) -> tuple[Ints, Ints]:
        """Those pairs of boxes that have one label and that the protocol uses."""
        if protocol.person_first:
            return box, truth_box
        fits = self._same_label(box, truth_box)
        if protocol.drop_no_interaction:
            fits &= self.truth.present_boxes(protocol)[truth_box]
        return box[fits], truth_box[fits]

    def _matched_in_blocks(self, protocol: Protocol) -> tuple[Ints, Ints]:
        """As `matched_boxes`, with every pair compared but few in memory at a time."""
        pairs = int(self._pair_start[-1])
        found = []
        for start in range(0, pairs, PAIRS_AT_ONCE):
            pair = np.arange(start, min(start + PAIRS_AT_ONCE, pairs))
            box, truth_box = self._fitting(protocol, *self._boxes_of(pair))
            enough = self.meets(protocol, box, truth_box)
            found.append((box[enough], truth_box[enough]))
        boxes, truth_boxes = zip(*found, strict=True) if found else ((), ())
        return joined(boxes, np.int64), joined(truth_boxes, np.int64)

    def box_matches(self, protocol: Protocol) -> list[list[int]]:
        """For each predicted box, the ground-truth boxes that match it, by their own index in the image."""
        box, truth_box = self.matched_boxes(protocol)
        local = (truth_box - self._first_truth_box[box]).tolist()
        bounds = np.searchsorted(box, np.arange(len(self.predictions.boxes) + 1)).tolist()
        return [local[start:end] for start, end in pairwise(bounds)]


def reaches(protocol: Protocol, overlap: Floats) -> Bools:
    """[M] which overlaps are enough."""
    enough: Bools = overlap > protocol.threshold if protocol.strict else overlap >= protocol.threshold
    return enough


def protocol_iou(protocol: Protocol, first: Floats, second: Floats) -> Floats:
    """[M] IoU of predicted and ground-truth boxes, [4, M] each, as the protocol shifts and measures them."""
    return iou(
        first + np.array(protocol.prediction_shift)[:, np.newaxis],
        second + np.array(protocol.truth_shift)[:, np.newaxis],
        inclusive=protocol.inclusive,
        touching_overlap=protocol.touching_overlap,
        inclusive_overlap=protocol.inclusive_overlap,
    )


def check_pairs(count: Ints, image: Ints, image_ids: Sequence[str], what: str) -> None:
    """Refuse an image whose comparison would take minutes; `count` [M] counterparts of each row, which is of `image`.

    Raises `DataError`.
    """
    if count.sum() <= MOST_PAIRS:
        return
    total = np.bincount(image, weights=count)
    worst = int(total.argmax())
    if total[worst] > MOST_PAIRS:
        raise DataError(
            f"image {image_ids[worst]!r}: {int(total[worst]):,} pairs of predicted and annotated {what}, at most "
            f"{MOST_PAIRS:,} are compared; does the record hold many images?"
        )


def blocks_of(count: Ints) -> list[slice]:
    """Consecutive rows with at most PAIRS_AT_ONCE counterparts together; one that has more stands alone."""
    total = np.cumsum(count)
    if not len(total) or total[-1] <= PAIRS_AT_ONCE:
        return [slice(0, len(count))]
    bounds = [0]
    while bounds[-1] < len(count):
        done = total[bounds[-1] - 1] if bounds[-1] else 0
        bounds.append(max(int(np.searchsorted(total, done + PAIRS_AT_ONCE, side="right")), bounds[-1] + 1))
    return [slice(*ends) for ends in pairwise(bounds)]


def first_largest(group: Ints, value: Floats) -> Ints:
    """The position of the largest value in each run of equal `group`, the first of equals."""
    starts = run_starts(group)
    if len(starts) == 0:
        return starts
    largest = np.maximum.reduceat(value, starts)
    place = np.flatnonzero(value == np.repeat(largest, np.diff(starts, append=len(group))))
    return place[run_starts(group[place])]
