"""Which ground truth each prediction of a batch of images may belong to, and how much their boxes overlap.

One sorted join finds the ground truth of each prediction's class. What is compared is compared some pairs at a time, so
that thousands of predictions and annotations in an image take no more memory. No Python loop runs per triplet or
image."""

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
from hoicli.records.boxes import iou, take_columns
from hoicli.records.kit import Bools, Floats, Ints, expand_runs, run_starts
from hoicli.records.scenes import Scenes, box_kinds, class_columns

OUTCOMES = (
    "false_positive",
    "true_positive",
    "not_an_interaction",  # the vocabulary has no class of this verb and object
    "no_interaction",  # dropped by a protocol that leaves no_interaction out
    "subject_not_person",  # the class requires a subject labelled person
    "over_the_cap",  # beyond the best k of its image
    "suppressed",  # by pair NMS
    "unannotated_image",  # the protocol counts nothing in such images
    "object_not_known",  # Known Object: the image has no label for this object
    "other_class",  # the protocol does not score its class
    "ignored_person",  # it belongs to a person without annotations
    "outside_slice",  # it is in another part of the data
)
"""The possible outcomes of a prediction: the first two count; the others say why it does not."""
FALSE_POSITIVE, TRUE_POSITIVE = 0, 1
OUTCOME_CODES = {name: code for code, name in enumerate(OUTCOMES)}

Candidates = tuple[Ints, Ints, Floats, Floats]
"""Four columns [M], a row for each pair of a prediction and a triplet that it may match: the prediction, ascending; the
ground-truth triplet; the IoU of their subjects; the IoU of their objects."""

_LAST_PIXELS = caveats.mask([caveats.LAST_PIXELS])
PAIRS_AT_ONCE = 1 << 19
"""Pairs of boxes, or of predictions and ground truth of a class, that are compared at a time: 150 MB. A batch of real
images has a fifth of them; one with thousands of predictions and annotations in an image goes in blocks."""
MOST_PAIRS = 1 << 24
"""Such pairs that one image may have, 4,096 of each: some seconds' work for each protocol. Real ones have thousands."""


class Pairing:
    """The predictions of some images and their ground truth, with columns that all protocols share."""

    def __init__(self, predictions: Scenes, truth: GroundTruth) -> None:
        self.predictions = predictions
        self.truth = truth
        self.image = truth.rows_of(predictions.image_ids)
        self.image_of_hoi: Ints = self.image[predictions.image_of_hoi]
        self._kinds, self._truth_kinds = box_kinds(predictions.labels, truth.vocabulary), truth.kinds
        self._annotations = truth.index_by_class(self.image)
        rows, first, count = self._annotations.find(predictions.image_of_hoi, predictions.interaction)
        check_pairs(count, predictions.image_of_hoi[rows], predictions.image_ids, "triplets of one class")
        self._of_class_at_once = [(rows[part], first[part], count[part]) for part in blocks_of(count)]
        self._people: dict[object, tuple[Ints, Floats]] = {}

    def _blocks(self, protocol: Protocol, code: NDArray[np.uint8]) -> Iterator[Candidates]:
        """Return the candidates of the predictions that count, block by block, with at least one block. code [T]: 0 for
        a prediction that counts; under a person-first protocol, ignored people are marked in it."""
        return (self._of_best_person if protocol.person_first else self._class_candidates)(protocol, code)

    def overlapping_pairs(self, protocol: Protocol) -> tuple[Ints, Ints]:
        """Return every pair of a prediction and a ground-truth triplet of its class whose boxes have the same labels
        and overlap enough: the rows of the predictions, ascending, and those of the triplets. Unlike in `match`, a
        prediction may have several triplets, and a triplet several predictions."""
        all_count = np.zeros(len(self.predictions.score), dtype=np.uint8)
        pairs_found = []
        for row, truth, subject, object_ in self._blocks(protocol, all_count):
            enough = reaches(protocol, np.minimum(subject, object_))
            pairs_found.append((row[enough], truth[enough]))
        row, truth = map(np.concatenate, zip(*pairs_found, strict=True))
        labels, annotated = self.predictions.labels, self.truth.scenes
        same_label = labels[self.predictions.subject[row]] == annotated.labels[annotated.subject[truth]]
        return row[same_label], truth[same_label]

    def _class_candidates(self, protocol: Protocol, code: NDArray[np.uint8]) -> Iterator[Candidates]:
        """Yield the candidates of the predictions that count (code [T] is 0): all triplets of the prediction's class in
        its image, with the IoU of the subjects and of the objects."""
        predictions, annotated = self.predictions, self.truth.scenes
        for rows, first, count in self._of_class_at_once:
            live = code[rows] == 0
            candidate, truth = self._annotations.join_rows(rows[live], first[live], count[live])
            box, truth_box = predictions.subject[candidate], annotated.subject[truth]
            subject = self._iou_where(protocol, box, truth_box, self._kinds, self._truth_kinds)
            if protocol.same_subject:
                subject[predictions.labels[box] != annotated.labels[truth_box]] = 0.0
            box, truth_box = predictions.object[candidate], annotated.object[truth]
            object_ = self._iou_where(protocol, box, truth_box, predictions.labels, annotated.labels)
            if self.truth.vocabulary.roles:
                object_[truth_box < 0] = 1.0  # nothing to find: the subject decides (QPIC)
            yield candidate, truth, subject, object_

    def _iou_where(self, protocol: Protocol, box: Ints, truth_box: Ints, label: Ints, truth_label: Ints) -> Floats:
        """Return [M] the IoU of each predicted box with the annotated box beside it. For classes with roles it is 0
        where one of the two is missing (-1) or their labels differ.

        box, truth_box [M]: indices of boxes; label, truth_label [B]: the labels of all predicted and annotated boxes.
        """
        if not self.truth.vocabulary.roles:
            return self.iou_of(protocol, box, truth_box)
        both = np.flatnonzero((box >= 0) & (truth_box >= 0) & (label[box] == truth_label[truth_box]))
        overlap = np.zeros(len(box))
        overlap[both] = self.iou_of(protocol, box[both], truth_box[both])
        return overlap

    def _of_best_person(self, protocol: Protocol, code: NDArray[np.uint8]) -> Iterator[Candidates]:
        """Yield candidates as `_class_candidates` does, but only triplets of the person that the prediction's subject
        overlaps most, even with IoU 0 (s-gupta/v-coco vsrl_eval.py). A prediction whose person has no annotated actions
        is dropped: its code becomes that of `ignored_person`."""
        predictions, annotated = self.predictions, self.truth.scenes
        person, with_person = self.best_people(protocol)
        ignored = (person >= 0) & ~annotated.annotated[person] if len(annotated.boxes) else person >= 0
        code[ignored & (code == 0)] = OUTCOME_CODES["ignored_person"]
        live = np.flatnonzero(code == 0)
        annotations = self.truth.index_by_person(self.image)
        rows, first, count = annotations.find(person[live], predictions.interaction[live])
        live = live[rows]
        _, is_agent = class_columns(self.truth.vocabulary)
        for part in blocks_of(count):
            row, truth = annotations.join_rows(live[part], first[part], count[part])
            box, truth_box = predictions.object[row], annotated.object[truth]
            object_ = np.zeros(len(row))
            both = (box >= 0) & (truth_box >= 0)
            object_[both] = self.iou_of(protocol, box[both], truth_box[both])
            no_truth_object = truth_box < 0
            any_will_do = protocol.any_object_when_none | is_agent[predictions.interaction[row]]
            object_[no_truth_object] = (any_will_do | self.empty_object[row])[no_truth_object]  # True is an IoU of 1
            yield row, truth, with_person[row], object_

    @cached_property
    def empty_object(self) -> Bools:
        """[T] whether each prediction has no object: null, or a box of zeros as in official dumps."""
        absent = self.predictions.object < 0
        if not len(self.predictions.boxes):
            return absent
        zeros: Bools = (self.predictions.boxes == 0).all(axis=1)
        return absent | zeros[self.predictions.object]

    def best_people(self, protocol: Protocol) -> tuple[Ints, Floats]:
        """Return [T] the ground-truth person (a box) that each subject overlaps most, -1 for nobody, and the IoU."""
        if protocol.iou_key not in self._people:
            subjects, of_subject = np.unique(self.predictions.subject, return_inverse=True)
            people, starts = self.truth.people
            image = self.image[self.predictions.image_of_box[subjects]]
            count = starts[image + 1] - starts[image]
            check_pairs(count, self.predictions.image_of_box[subjects], self.predictions.image_ids, "people")
            person, largest = np.full(len(subjects), -1, dtype=np.int64), np.zeros(len(subjects))
            for row, number in counterparts(starts[image], count):
                overlap = self.iou_of(protocol, subjects[row], people[number])
                best = first_largest(row, overlap)
                person[row[best]], largest[row[best]] = people[number[best]], overlap[best]
            self._people[protocol.iou_key] = person[of_subject], largest[of_subject]
        return self._people[protocol.iou_key]

    def found_people(self, protocol: Protocol) -> Ints:
        """Return [T] the ground-truth person that each subject belongs to, -1 where it overlaps nobody enough."""
        person, overlap = self.best_people(protocol)
        return np.where(reaches(protocol, overlap), person, -1)

    def iou_of(self, protocol: Protocol, box: Ints, truth_box: Ints) -> Floats:
        """Return [M] the IoU, as the protocol measures it, of each predicted box and the annotated box beside it."""
        first = take_columns(self.predictions.boxes, box)
        if protocol.last_pixel_shift != NO_SHIFT and self.predictions.every_caveat & _LAST_PIXELS:
            marked = (self.predictions.caveats & _LAST_PIXELS)[self.predictions.image_of_box[box]] > 0
            first = first + marked * np.array(protocol.last_pixel_shift)[:, np.newaxis]
        return protocol_iou(protocol, first, take_columns(self.truth.scenes.boxes, truth_box))

    def matched_boxes(self, protocol: Protocol, *, any_label: bool = False) -> tuple[Ints, Ints]:
        """Return every pair of a predicted and a ground-truth box of one image that have the same label and overlap
        enough, ascending, as two columns of indices. any_label: labels may differ, as under a person-first protocol."""
        image, start = self.image[self.predictions.image_of_box], self.truth.scenes.box_start
        count = start[image + 1] - start[image]
        check_pairs(count, self.predictions.image_of_box, self.predictions.image_ids, "boxes")
        matches = []
        for box, truth_box in counterparts(start[image], count):
            if not any_label:
                box, truth_box = self._fitting(protocol, box, truth_box)
            enough = self.meets(protocol, box, truth_box)
            matches.append((box[enough], truth_box[enough]))
        boxes, truth_boxes = map(np.concatenate, zip(*matches, strict=True))
        return boxes, truth_boxes

    def meets(self, protocol: Protocol, box: Ints, truth_box: Ints) -> Bools:
        """Return [M] whether each predicted box and the ground-truth box beside it overlap enough, labels aside."""
        return reaches(protocol, self.iou_of(protocol, box, truth_box))

    def _fitting(self, protocol: Protocol, box: Ints, truth_box: Ints) -> tuple[Ints, Ints]:
        """Return the pairs of boxes that a protocol may match: of the same label (`box_kinds`; a predicted box without
        a label fits any), and with a ground-truth box that the protocol uses."""
        if protocol.person_first:
            return box, truth_box
        label = self._kinds[box]
        fits = (label == self._truth_kinds[truth_box]) | (label < 0)
        if protocol.drop_no_interaction:
            fits &= self.truth.present_boxes(protocol)[truth_box]
        return box[fits], truth_box[fits]

    def box_matches(self, protocol: Protocol) -> list[list[int]]:
        """Return, for each predicted box, the ground-truth boxes that match it, by their index in their image."""
        box, truth_box = self.matched_boxes(protocol)
        local = (truth_box - self.truth.scenes.box_start[self.image[self.predictions.image_of_box[box]]]).tolist()
        bounds = np.searchsorted(box, np.arange(len(self.predictions.boxes) + 1)).tolist()
        return [local[start:end] for start, end in pairwise(bounds)]


def reaches(protocol: Protocol, overlap: Floats) -> Bools:
    """Return [M] whether each overlap reaches the protocol's threshold, or exceeds it if the protocol is strict."""
    enough: Bools = overlap > protocol.threshold if protocol.strict else overlap >= protocol.threshold
    return enough


def protocol_iou(protocol: Protocol, first: Floats, second: Floats) -> Floats:
    """Return [M] the IoU of each predicted box with the ground-truth box beside it, as the protocol shifts and measures
    them. first, second [4, M]: the corners of the predicted and of the ground-truth boxes."""
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
    """Return blocks of consecutive rows that together have at most PAIRS_AT_ONCE counterparts, so that comparing them
    takes bounded memory; a row that alone has more is a block of its own. count [M]: the counterparts of each row."""
    total = np.cumsum(count)
    if not len(total) or total[-1] <= PAIRS_AT_ONCE:
        return [slice(0, len(count))]
    bounds = [0]
    while bounds[-1] < len(count):
        done = total[bounds[-1] - 1] if bounds[-1] else 0
        bounds.append(max(int(np.searchsorted(total, done + PAIRS_AT_ONCE, side="right")), bounds[-1] + 1))
    return [slice(*ends) for ends in pairwise(bounds)]


def counterparts(start: Ints, count: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield every pair of a row and one of its counterparts, as two columns, block by block and with at least one
    block. Row r has the `count[r]` counterparts start[r], start[r] + 1, ..."""
    for block in blocks_of(count):
        row, counterpart = expand_runs(start[block], count[block])
        row += block.start
        yield row, counterpart


def first_largest(group: Ints, value: Floats | Ints) -> Ints:
    """Return the position of the largest value in each run of equal numbers in `group`, the first of several equal
    values. group, value: columns of one length; the members of a group stand together."""
    starts = run_starts(group)
    if len(starts) == 0:
        return starts
    largest = np.maximum.reduceat(value, starts)
    positions = np.flatnonzero(value == np.repeat(largest, np.diff(starts, append=len(group))))
    return positions[run_starts(group[positions])]
