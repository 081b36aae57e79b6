"""Which ground truth each prediction of a batch of images may belong to, and how much their boxes overlap.

One sorted join finds the ground truth of each prediction's class. What is compared is compared some pairs at a time, so
that thousands of predictions and annotations in an image take no more memory. No Python loop runs per triplet or
image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

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


class Candidates(NamedTuple):
    """M pairs of a prediction and a ground-truth triplet that it may match. row [M]: the prediction, ascending; truth
    [M]: the triplet, as a row of the ground truth; iou_subject, iou_object [M]: how much their boxes overlap."""

    row: Ints
    truth: Ints
    iou_subject: Floats
    iou_object: Floats


_LAST_PIXELS = caveats.mask([caveats.LAST_PIXELS])
PAIRS_AT_ONCE = 1 << 19
"""Pairs of boxes, or of predictions and ground truth of a class, that are compared at a time: 150 MB. A batch of real
images has a fifth of them; one with thousands of predictions and annotations in an image goes in blocks."""
MOST_PAIRS = 1 << 24
"""Such pairs that one image may have, 4,096 of each: some seconds' work for each protocol. Real ones have thousands."""


class Pairing:
    """The predictions of some images and their ground truth, with columns that all protocols share. Where a method
    takes or returns arrays, T is the number of predictions, and a "box" is an index of a predicted box."""

    def __init__(self, predictions: Scenes, truth: GroundTruth) -> None:
        """Find the ground truth of each prediction's image and class. Raises `DataError` for an image that the ground
        truth does not have, and for one with too many pairs to compare."""
        self.predictions = predictions
        self.truth = truth
        self.image = truth.find_images(predictions.image_ids)
        """[N] the row of each image in the ground truth."""
        self.image_of_hoi: Ints = self.image[predictions.image_of_hoi]
        """[T] the row in the ground truth of each prediction's image."""
        # the label of each box as matching compares it: all labels of subjects count as one
        self._kinds = box_kinds(predictions.labels, truth.vocabulary)
        self._truth_kinds = truth.kinds
        self._triplets_by_class = truth.index_by_class(self.image)
        rows, start, count = self._triplets_by_class.find(predictions.image_of_hoi, predictions.interaction)
        check_pairs(count, predictions.image_of_hoi[rows], predictions.image_ids, "triplets of one class")
        # of each block of predictions, what `join_rows` takes
        self._found_by_block = [(rows[block], start[block], count[block]) for block in blocks_of(count)]
        self._people: dict[object, tuple[Ints, Floats]] = {}  # results of `best_people` by `Protocol.iou_key`

    def _candidate_blocks(self, protocol: Protocol, code: NDArray[np.uint8]) -> Iterator[Candidates]:
        """Return every pair of a prediction that counts and a ground-truth triplet that it may match, in blocks of
        bounded size, at least one. code [T]: 0 for each prediction that counts. While the blocks of a person-first
        protocol (V-COCO's official ones) are read, the code of predictions whose person nobody annotated is set."""
        if protocol.person_first:
            return self._person_candidates(protocol, code)
        return self._class_candidates(protocol, code)

    def overlapping_pairs(self, protocol: Protocol) -> tuple[Ints, Ints]:
        """Return every pair of a prediction and a ground-truth triplet of its class whose boxes have the same labels
        and overlap enough, as two columns: the prediction, ascending, and the triplet's row in the ground truth. Unlike
        in matching, a prediction may have several triplets, and a triplet several predictions."""
        all_count = np.zeros(len(self.predictions.score), dtype=np.uint8)
        overlapping = []
        for row, truth, iou_subject, iou_object in self._candidate_blocks(protocol, all_count):
            enough = reaches(protocol, np.minimum(iou_subject, iou_object))
            overlapping.append((row[enough], truth[enough]))
        row, truth = map(np.concatenate, zip(*overlapping, strict=True))
        predictions, annotated = self.predictions, self.truth.scenes
        label = predictions.labels[predictions.subject[row]]
        same_label = label == annotated.labels[annotated.subject[truth]]
        return row[same_label], truth[same_label]

    def _class_candidates(self, protocol: Protocol, code: NDArray[np.uint8]) -> Iterator[Candidates]:
        """Yield, block by block, the candidates of each prediction that counts (code [T] is 0): all ground-truth
        triplets of its class in its image, with the IoU of their subjects and of their objects."""
        predictions, annotated = self.predictions, self.truth.scenes
        for rows, start, count in self._found_by_block:
            counts = code[rows] == 0
            row, truth = self._triplets_by_class.join_rows(rows[counts], start[counts], count[counts])
            subject = predictions.subject[row]
            truth_subject = annotated.subject[truth]
            iou_subject = self._comparable_iou(protocol, subject, truth_subject, self._kinds, self._truth_kinds)
            if protocol.same_subject:
                iou_subject[predictions.labels[subject] != annotated.labels[truth_subject]] = 0.0
            object_ = predictions.object[row]
            truth_object = annotated.object[truth]
            iou_object = self._comparable_iou(protocol, object_, truth_object, predictions.labels, annotated.labels)
            if self.truth.vocabulary.roles and not protocol.pairs_only:
                iou_object[truth_object < 0] = 1.0  # no object to find: the subject alone decides (QPIC)
            yield Candidates(row, truth, iou_subject, iou_object)

    def _comparable_iou(self, protocol: Protocol, box: Ints, truth_box: Ints, label: Ints, truth_label: Ints) -> Floats:
        """Return [M] the IoU of each predicted box with the annotated box beside it. In a dataset with roles (V-COCO),
        where a class does not fix the object, it is 0 if one of the two is missing (-1) or, unless the protocol counts
        pairs only, their labels differ.

        label, truth_label: the labels of all predicted and of all annotated boxes."""
        if not self.truth.vocabulary.roles:
            return self.iou_of(protocol, box, truth_box)
        comparable = (box >= 0) & (truth_box >= 0)
        if not protocol.pairs_only:
            comparable &= label[box] == truth_label[truth_box]
        both = np.flatnonzero(comparable)
        overlap = np.zeros(len(box))
        overlap[both] = self.iou_of(protocol, box[both], truth_box[both])
        return overlap

    def _person_candidates(self, protocol: Protocol, code: NDArray[np.uint8]) -> Iterator[Candidates]:
        """Yield, block by block, the candidates of each prediction that counts (code [T] is 0) under a person-first
        protocol: the triplets of its class whose subject is the annotated person that its own subject overlaps most,
        even with IoU 0 (s-gupta/v-coco vsrl_eval.py). A prediction whose person has no annotated actions is dropped:
        its code becomes that of `ignored_person`."""
        predictions, annotated = self.predictions, self.truth.scenes
        person, iou_person = self.best_people(protocol)
        if len(annotated.boxes):  # otherwise there are no people
            ignored = (person >= 0) & ~annotated.annotated[person]
            code[ignored & (code == 0)] = OUTCOME_CODES["ignored_person"]
        counted = np.flatnonzero(code == 0)
        triplets_by_person = self.truth.index_by_person(self.image)
        positions, start, count = triplets_by_person.find(person[counted], predictions.interaction[counted])
        with_triplets = counted[positions]
        _, is_agent = class_columns(self.truth.vocabulary)  # whether a class is an action itself, not one of its roles
        for block in blocks_of(count):
            row, truth = triplets_by_person.join_rows(with_triplets[block], start[block], count[block])
            object_ = predictions.object[row]
            truth_object = annotated.object[truth]
            iou_object = np.zeros(len(row))
            both = (object_ >= 0) & (truth_object >= 0)
            iou_object[both] = self.iou_of(protocol, object_[both], truth_object[both])
            # If no object is annotated, a prediction without an object is right (IoU 1); for some classes any is.
            any_is_right = protocol.any_object_when_none | is_agent[predictions.interaction[row]]
            is_right = any_is_right | self.empty_object[row]
            no_truth_object = truth_object < 0
            iou_object[no_truth_object] = is_right[no_truth_object]
            yield Candidates(row, truth, iou_person[row], iou_object)

    @cached_property
    def empty_object(self) -> Bools:
        """A mask of the T predictions without an object: it is null, or a box of zeros as in official V-COCO dumps."""
        is_null = self.predictions.object < 0
        if not len(self.predictions.boxes):
            return is_null
        is_zeros: Bools = (self.predictions.boxes == 0).all(axis=1)  # [boxes]
        return is_null | is_zeros[self.predictions.object]  # (-1 looks at the last box, which changes nothing)

    def best_people(self, protocol: Protocol) -> tuple[Ints, Floats]:
        """Return two columns about the annotated person that each prediction's subject overlaps most, the first of
        equals: [T] the person's box in the ground truth, -1 in an image without people; [T] the IoU."""
        if protocol.iou_key not in self._people:
            # Many predictions share a subject box, so each box is compared once.
            subjects, index_of_subject = np.unique(self.predictions.subject, return_inverse=True)
            people, starts = self.truth.people
            image = self.image[self.predictions.image_of_box[subjects]]
            count = starts[image + 1] - starts[image]
            check_pairs(count, self.predictions.image_of_box[subjects], self.predictions.image_ids, "people")
            best_person = np.full(len(subjects), -1, dtype=np.int64)
            largest_overlap = np.zeros(len(subjects))
            for row, number in iterate_pairs(starts[image], count):  # each subject with each person of its image
                overlap = self.iou_of(protocol, subjects[row], people[number])
                best = first_largest(row, overlap)
                best_person[row[best]] = people[number[best]]
                largest_overlap[row[best]] = overlap[best]
            self._people[protocol.iou_key] = best_person[index_of_subject], largest_overlap[index_of_subject]
        return self._people[protocol.iou_key]

    def find_people(self, protocol: Protocol) -> Ints:
        """Return [T] the box of the annotated person that each prediction's subject overlaps most, -1 where that
        overlap is below the protocol's threshold."""
        person, overlap = self.best_people(protocol)
        return np.where(reaches(protocol, overlap), person, -1)

    def iou_of(self, protocol: Protocol, box: Ints, truth_box: Ints) -> Floats:
        """Return [M] the IoU, as the protocol measures it, of each predicted box with the ground-truth box beside it.
        box, truth_box [M]: indices of predicted and of ground-truth boxes, none missing."""
        boxes = take_columns(self.predictions.boxes, box)
        # some records say that x2, y2 are the last pixels of their boxes, which some protocols shift
        if protocol.last_pixel_shift != NO_SHIFT and self.predictions.every_caveat & _LAST_PIXELS:
            is_marked = (self.predictions.caveats & _LAST_PIXELS)[self.predictions.image_of_box[box]] > 0
            boxes = boxes + is_marked * np.array(protocol.last_pixel_shift)[:, np.newaxis]
        return protocol_iou(protocol, boxes, take_columns(self.truth.scenes.boxes, truth_box))

    def matched_boxes(self, protocol: Protocol, *, any_label: bool = False) -> tuple[Ints, Ints]:
        """Return every pair of a predicted and a ground-truth box of one image that have the same label and overlap
        enough: two columns of box indices, sorted by the predicted box, then by the other. any_label: whether pairs of
        different labels are returned, too; a person-first protocol always takes them."""
        image = self.image[self.predictions.image_of_box]  # of each predicted box, the row in the ground truth
        start = self.truth.scenes.box_start
        count = start[image + 1] - start[image]
        check_pairs(count, self.predictions.image_of_box, self.predictions.image_ids, "boxes")
        matches = []
        for box, truth_box in iterate_pairs(start[image], count):
            if not any_label:
                box, truth_box = self._keep_same_label(protocol, box, truth_box)
            enough = self.meets(protocol, box, truth_box)
            matches.append((box[enough], truth_box[enough]))
        boxes, truth_boxes = map(np.concatenate, zip(*matches, strict=True))
        return boxes, truth_boxes

    def meets(self, protocol: Protocol, box: Ints, truth_box: Ints) -> Bools:
        """Return a mask of the M pairs of boxes whose IoU reaches the protocol's threshold, whatever their labels."""
        return reaches(protocol, self.iou_of(protocol, box, truth_box))

    def _keep_same_label(self, protocol: Protocol, box: Ints, truth_box: Ints) -> tuple[Ints, Ints]:
        """Return only the pairs of a predicted and a ground-truth box that the protocol may match: those of the same
        label (all labels of subjects count as one; a predicted box without a label fits any) whose ground-truth box the
        protocol uses. Protocols that compare no labels (person-first, or of pairs only) keep all pairs."""
        if protocol.person_first or protocol.pairs_only:
            return box, truth_box
        label = self._kinds[box]
        fits = (label == self._truth_kinds[truth_box]) | (label < 0)
        # dropping no_interaction may leave boxes that no counted triplet has
        if protocol.drop_no_interaction:
            fits &= self.truth.present_boxes(protocol)[truth_box]
        return box[fits], truth_box[fits]

    def box_matches(self, protocol: Protocol) -> list[list[int]]:
        """Return a list for each predicted box: the ground-truth boxes of the same label that it overlaps enough, as
        indices among the boxes of their image."""
        box, truth_box = self.matched_boxes(protocol)
        first_of_image = self.truth.scenes.box_start[self.image[self.predictions.image_of_box[box]]]
        index_in_image = (truth_box - first_of_image).tolist()
        bounds = np.searchsorted(box, np.arange(len(self.predictions.boxes) + 1)).tolist()
        return [index_in_image[start:end] for start, end in pairwise(bounds)]


def reaches(protocol: Protocol, overlap: Floats) -> Bools:
    """Return a mask of the overlaps [M] that reach the protocol's threshold, or exceed it if the protocol is strict."""
    enough: Bools = overlap > protocol.threshold if protocol.strict else overlap >= protocol.threshold
    return enough


def protocol_iou(protocol: Protocol, boxes: Floats, truth_boxes: Floats) -> Floats:
    """Return [M] the IoU of each predicted box with the ground-truth box beside it, shifted and measured as the
    protocol says. boxes, truth_boxes [4, M]: their corners."""
    return iou(
        boxes + np.array(protocol.prediction_shift)[:, np.newaxis],
        truth_boxes + np.array(protocol.truth_shift)[:, np.newaxis],
        inclusive=protocol.inclusive,
        touching_overlap=protocol.touching_overlap,
        inclusive_overlap=protocol.inclusive_overlap,
        union_margin=protocol.union_margin,
    )


def check_pairs(count: Ints, image: Ints, image_ids: Sequence[str], what: str) -> None:
    """Raise `DataError` if one image has more than MOST_PAIRS pairs to compare, which would take minutes.

    count, image [M]: for each predicted thing, with how many annotated ones it is compared, and its image, as an index
    into `image_ids`. what: the plural of what is compared, for the message."""
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
    """Return slices that cut M rows into blocks of consecutive rows, at least one. The pairs of a block are compared at
    once, so a block has at most PAIRS_AT_ONCE of them, which bounds memory; a row that alone has more is a block of its
    own. count [M]: with how many things each row is to be compared."""
    pairs_up_to = np.cumsum(count)  # by row: the pairs of this row and of those before it
    if not len(count) or pairs_up_to[-1] <= PAIRS_AT_ONCE:
        return [slice(0, len(count))]
    bounds = [0]
    while bounds[-1] < len(count):
        pairs_before = pairs_up_to[bounds[-1] - 1] if bounds[-1] else 0
        end = int(np.searchsorted(pairs_up_to, pairs_before + PAIRS_AT_ONCE, side="right"))
        bounds.append(max(end, bounds[-1] + 1))
    return [slice(start, end) for start, end in pairwise(bounds)]


def iterate_pairs(start: Ints, count: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield every pair of a row r and one of its count[r] numbers, start[r], start[r] + 1, ..., as two columns. The
    numbers are most often the annotated boxes of the row's image. The pairs come in blocks that fit into memory, at
    least one block."""
    for block in blocks_of(count):
        row, number = expand_runs(start[block], count[block])
        row += block.start
        yield row, number


def first_largest(group: Ints, value: Floats | Ints) -> Ints:
    """Return the position of the largest value of each group, the first of equal values. group, value: the group of
    each item and its value; the items of one group must stand next to each other."""
    starts = run_starts(group)
    if len(starts) == 0:
        return starts
    largest = np.maximum.reduceat(value, starts)  # of each group
    sizes = np.diff(starts, append=len(group))
    positions = np.flatnonzero(value == np.repeat(largest, sizes))
    return positions[run_starts(group[positions])]
