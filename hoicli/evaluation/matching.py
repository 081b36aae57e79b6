"""The matching kernel: which predictions of a batch of images are true positives, under several protocols. IoU is
computed once per (predicted box, ground-truth box) of an image and shared by protocols with one convention; one sorted
join finds the ground truth of each prediction's class. No Python loop runs per triplet or image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hoicli.arrays.boxes import best_per_image, iou, pair_nms
from hoicli.arrays.kit import Bools, Floats, Ints, expanded, joined, run_starts, starts_of
from hoicli.arrays.roles import class_columns
from hoicli.arrays.scenes import Scenes, are_subjects, box_kinds
from hoicli.errors import DataError
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import NO_SHIFT, Protocol
from hoicli.records import caveats
from hoicli.records.outcomes import FALSE_POSITIVE, OUTCOME_CODES, TRUE_POSITIVE

_LAST_PIXELS = caveats.mask([caveats.LAST_PIXELS])
PAIRS_AT_ONCE = 1 << 19
"""Pairs of boxes compared at a time when all boxes are compared: 16 MB for each side."""


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of the T predictions of a batch under one protocol. code [T] indexes OUTCOMES. The rest is about the
    K predictions with ground truth of their class in the image: row [K] their rows, ascending; truth [K] the
    ground-truth triplet (a row of the ground truth's Scenes) with the largest overlap; iou_subject, iou_object [K] the
    IoU with it; enough [K] whether the overlap reaches the threshold, so that the prediction belongs to this triplet,
    even if a better one takes it.
    """

    code: NDArray[np.uint8]
    row: Ints
    truth: Ints
    iou_subject: Floats
    iou_object: Floats
    enough: Bools


class Batch:
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
        self._candidate, self._candidate_truth = truth.join(self.image_of_hoi, predictions.interaction)
        self._subject_pair, self._object_pair = self._candidate_pairs()
        self._needed = self._needed_pairs(all_boxes=all_boxes)
        self._overlaps: dict[object, Floats] = {}
        self._people: dict[object, tuple[Ints, Floats]] = {}

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

    def matched_boxes(self, protocol: Protocol) -> tuple[Ints, Ints]:
        """Every (predicted box, ground-truth box) of one image and label with enough overlap, ascending. Needs a batch
        made with `all_boxes`. A person-first protocol ignores labels."""
        if protocol.person_first:
            return self._matched_without_labels(protocol)
        overlap = self.overlaps(protocol)[self._needed]
        enough = overlap > protocol.threshold if protocol.strict else overlap >= protocol.threshold
        box, truth_box = self._boxes_of(self._needed[enough])
        fits = self._same_label(box, truth_box)
        if protocol.drop_no_interaction:
            fits &= self.truth.present_boxes(protocol)[truth_box]
        return box[fits], truth_box[fits]

    def _matched_without_labels(self, protocol: Protocol) -> tuple[Ints, Ints]:
        pairs = int(self._pair_start[-1])
        found = []
        for start in range(0, pairs, PAIRS_AT_ONCE):
            pair = np.arange(start, min(start + PAIRS_AT_ONCE, pairs))
            found.append(pair[self._iou(protocol, *self._boxes_of(pair)) >= protocol.threshold])
        return self._boxes_of(joined(found, np.int64))

    def box_matches(self, protocol: Protocol) -> list[list[int]]:
        """For each predicted box, the ground-truth boxes that match it, by their own index in the image."""
        box, truth_box = self.matched_boxes(protocol)
        local = (truth_box - self._first_truth_box[box]).tolist()
        bounds = np.searchsorted(box, np.arange(len(self.predictions.boxes) + 1)).tolist()
        return [local[start:end] for start, end in pairwise(bounds)]

    def dropped(self, protocol: Protocol, filters: Filters) -> NDArray[np.uint8]:
        """[T] 0 for a prediction that counts, else the code of the first reason why it does not."""
        scenes, vocabulary = self.predictions, self.truth.vocabulary
        code = np.zeros(len(scenes.score), dtype=np.uint8)

        def drop(rows: Bools, reason: str) -> None:
            code[rows & (code == 0)] = OUTCOME_CODES[reason]

        # Predictions that a protocol's dumps never have are dropped before the cap on an image's predictions: those of
        # other classes (V-COCO's about people alone), which take no place under the cap, and no_interaction.
        if protocol.classes:
            drop(~self.truth.scored(protocol)[scenes.interaction] & (scenes.interaction >= 0), "other_class")
        if protocol.drop_no_interaction:
            drop(scenes.verb == vocabulary.verb_ids[vocabulary.no_interaction or ""], "no_interaction")
        caps = [cap for cap in (filters.top_k, protocol.triplets_per_image) if cap is not None]
        if caps:
            drop(~best_per_image(scenes, min(caps), code == 0 if protocol.classes else None), "over_the_cap")
        if filters.nms is not None:
            kept = pair_nms(scenes, code == 0, threshold=filters.nms, alpha=filters.nms_alpha, beta=filters.nms_beta)
            drop(~kept, "suppressed")
        drop(scenes.interaction < 0, "not_an_interaction")
        if protocol.person_subject:
            drop(~are_subjects(scenes.labels[scenes.subject], vocabulary), "subject_not_person")
        if protocol.images != "all":
            drop(~self.truth.annotated_images(protocol)[self.image_of_hoi], "unannotated_image")
        if protocol.known_object:
            known = self.truth.scenes.known_object[self.image_of_hoi, scenes.labels[scenes.object]]
            drop(~known, "object_not_known")
        return code

    def match(self, protocol: Protocol, filters: Filters) -> Outcomes:
        """The outcome of every prediction under a protocol. A prediction belongs to the ground truth of its class (for
        a person-first protocol: of its person's actions) with the largest min(IoU_subject, IoU_object), the first of
        equals. Of the predictions that belong to one ground truth and reach the threshold, the best-scored is its true
        positive and the others are false (no released evaluator tries the second best). Equal scores: input order.
        """
        if caveats.names(protocol.refuses & self.predictions.every_caveat):
            self._refuse(protocol)
        code = self.dropped(protocol, filters)
        if protocol.whole_image:
            return self._match_labels(code)
        candidate, candidate_truth, subject, object_ = (
            self._of_best_person(protocol, code) if protocol.person_first else self._of_class(protocol, code)
        )
        overlap = np.minimum(subject, object_)
        enough = overlap > protocol.threshold if protocol.strict else overlap >= protocol.threshold
        if protocol.every_overlap:
            # Whoever claims a triplet first takes it, true positive or not: so a prediction is right exactly if it has
            # the best score of all that overlap some triplet enough. That triplet is then the one it belongs to.
            taken = self._best_claims(candidate, candidate_truth, enough)
            code[candidate[taken]] = TRUE_POSITIVE
            overlap[taken] += 1.0
        best = _first_largest(candidate, overlap)
        row, truth, enough = candidate[best], candidate_truth[best], enough[best]
        if not protocol.every_overlap:
            code[row[self._best_claims(row, truth, enough)]] = TRUE_POSITIVE
        return Outcomes(code, row, truth, subject[best], object_[best], enough)

    def _best_claims(self, row: Ints, truth: Ints, enough: Bools) -> Ints:
        """The places of the best-scored claim on each ground-truth triplet, of equals the first in the input, among
        (prediction `row`, triplet `truth`) that overlap `enough`."""
        place = np.flatnonzero(enough)
        rivals, claimed = row[place], truth[place]
        order = np.lexsort((rivals, -self.predictions.score[rivals], claimed))
        return place[order[run_starts(claimed[order])]]

    def _match_labels(self, code: NDArray[np.uint8]) -> Outcomes:
        """The outcomes by image-level labels: the best triplet of a class in an image, the first of equals, stands for
        the class, and the others do not count; nor do classes whose label is ambiguous."""
        live = np.flatnonzero(code == 0)
        key = self.image_of_hoi[live] * len(self.truth.vocabulary.interactions) + self.predictions.interaction[live]
        order = np.lexsort((live, -self.predictions.score[live], key))
        first = order[run_starts(key[order])]
        code[live] = OUTCOME_CODES["over_the_cap"]
        code[live[first]] = FALSE_POSITIVE
        positive, ambiguous = self.truth.image_labels
        code[live[first[np.isin(key[first], ambiguous)]]] = OUTCOME_CODES["unannotated_image"]
        code[live[first[np.isin(key[first], positive)]]] = TRUE_POSITIVE
        none = np.zeros(0)
        return Outcomes(code, none.astype(np.int64), none.astype(np.int64), none, none, none.astype(bool))

    def _refuse(self, protocol: Protocol) -> None:
        """Raises `DataError` for predictions whose caveats rule the protocol out."""
        refused = self.predictions.caveats & protocol.refuses
        image_id = self.predictions.image_ids[int(np.flatnonzero(refused)[0])]
        lacks = caveats.CAVEATS[caveats.names(int(refused.max()))[0]].lacks
        raise DataError(f"cannot serve {protocol.name}: {lacks}", place=f"image {image_id}")

    def _of_class(self, protocol: Protocol, code: NDArray[np.uint8]) -> tuple[Ints, Ints, Floats, Floats]:
        """Every (prediction that counts, ground truth of its class) with IoU_subject and IoU_object."""
        live = np.flatnonzero(code[self._candidate] == 0)
        overlaps = np.append(self.overlaps(protocol), 0.0)  # index -1: no pair
        candidate, truth = self._candidate[live], self._candidate_truth[live]
        subject, object_ = overlaps[self._subject_pair[live]], overlaps[self._object_pair[live]]
        if protocol.same_subject:
            ends = self.predictions.subject[candidate], self.truth.scenes.subject[truth]
            subject[self.predictions.labels[ends[0]] != self.truth.scenes.labels[ends[1]]] = 0.0
        if self.truth.vocabulary.roles:
            object_[self.truth.scenes.object[truth] < 0] = 1.0  # nothing to find: the subject decides (QPIC)
        return candidate, truth, subject, object_

    def _of_best_person(self, protocol: Protocol, code: NDArray[np.uint8]) -> tuple[Ints, Ints, Floats, Floats]:
        """As `_of_class`, but only the annotations of each prediction's best person; drops predictions of ignored
        people.

        s-gupta/v-coco vsrl_eval.py: a subject belongs to the person it overlaps most, even with IoU 0.
        """
        predictions, annotated = self.predictions, self.truth.scenes
        person, with_person = self.best_people(protocol)
        ignored = (person >= 0) & ~annotated.annotated[person] if len(annotated.boxes) else person >= 0
        code[ignored & (code == 0)] = OUTCOME_CODES["ignored_person"]
        live = np.flatnonzero(code == 0)
        row, truth = self.truth.join_person(person[live], predictions.interaction[live])
        row = live[row]
        box, truth_box = predictions.object[row], annotated.object[truth]
        object_ = np.zeros(len(row))
        both = (box >= 0) & (truth_box >= 0)
        object_[both] = self._iou(protocol, box[both], truth_box[both])
        _, is_agent = class_columns(self.truth.vocabulary)
        nothing = truth_box < 0
        will_do = protocol.any_object_when_none | is_agent[predictions.interaction[row]]
        object_[nothing] = (will_do | self.empty_object[row])[nothing]
        return row, truth, with_person[row], object_

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
            row, place = expanded(starts[image], starts[image + 1] - starts[image])
            overlap = self._iou(protocol, subjects[row], people[place])
            best = _first_largest(row, overlap)
            person, largest = np.full(len(subjects), -1, dtype=np.int64), np.zeros(len(subjects))
            person[row[best]], largest[row[best]] = people[place[best]], overlap[best]
            self._people[protocol.iou_key] = person[of_subject], largest[of_subject]
        return self._people[protocol.iou_key]

    def found_people(self, protocol: Protocol) -> Ints:
        """[T] the ground-truth person each subject belongs to, -1 where it overlaps none of them enough."""
        person, overlap = self.best_people(protocol)
        return np.where(overlap >= protocol.threshold, person, -1)

    def _iou(self, protocol: Protocol, box: Ints, truth_box: Ints) -> Floats:
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


def protocol_iou(protocol: Protocol, first: Floats, second: Floats) -> Floats:
    """[M] IoU of predicted and ground-truth boxes, [4, M] each, as the protocol shifts and measures them."""
    return iou(
        first + np.array(protocol.prediction_shift)[:, np.newaxis],
        second + np.array(protocol.truth_shift)[:, np.newaxis],
        inclusive=protocol.inclusive,
        touching_overlap=protocol.touching_overlap,
    )


def match_all(batch: Batch, protocols: Sequence[Protocol], filters: Filters) -> Mapping[str, Outcomes]:
    """Outcomes by protocol name."""
    return {protocol.name: batch.match(protocol, filters) for protocol in protocols}


def _first_largest(group: Ints, value: Floats) -> Ints:
    """The position of the largest value in each run of equal `group`, the first of equals."""
    starts = run_starts(group)
    if len(starts) == 0:
        return starts
    lengths = np.diff(np.r_[starts, len(group)])
    is_largest = value == np.repeat(np.maximum.reduceat(value, starts), lengths)
    position = np.where(is_largest, np.arange(len(group)), len(group))
    return np.minimum.reduceat(position, starts)
