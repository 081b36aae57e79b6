"""The pairs of the ground truth, and which detected pairs match them: by a protocol, or as pairs that interact."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from hoicli.evaluation.average_precision import interpolated_ap
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.pairing import check_pairs, counterparts, first_largest, protocol_iou, reaches
from hoicli.evaluation.protocols import GRID_TENTHS, Protocol
from hoicli.evaluation.selection import main_protocol, rows_of
from hoicli.pairs.reading import distinct_pairs
from hoicli.records.boxes import taken
from hoicli.records.kit import Bools, Floats, Ints, among, rank_by_id
from hoicli.records.scenes import Scenes, box_kinds
from hoicli.vocabulary.labels import Vocabulary

COMPARED_AS = ("inp-cc", "vcoco-qpic")
"""The protocols whose shifts are the released code's: 1-based ground truth of HICO-DET, x + w of V-COCO."""


class TruthPairs:
    """The Q distinct (human box, object box) of the ground truth that a protocol counts.

    subject, object [Q] rows of the ground truth's boxes; image [Q], ascending; start [N + 1] bounds them by image.
    triplet [C] the rows of the counted triplets, pair [C] the pair each belongs to. members: by subset (full and the
    vocabulary's groups) a mask [Q] of the pairs with an interaction of it; classes: a mask [K] of its interactions. As
    in the released code, boxes are distinguished by their place in the record.
    """

    def __init__(self, truth: GroundTruth, protocol: Protocol) -> None:
        scenes = truth.scenes
        self.truth, self.protocol = truth, protocol
        triplet = np.flatnonzero(truth.counted(protocol) & (scenes.object >= 0))
        keys, first, pair = distinct_pairs(scenes, triplet)
        self.triplet, self.pair = triplet.astype(np.int32), pair.astype(np.int32)
        self.subject, self.object = scenes.subject[first], scenes.object[first]
        self.image = (np.searchsorted(scenes.box_start, self.subject, side="right") - 1).astype(np.int32)
        self.start = np.searchsorted(self.image, np.arange(len(scenes.image_ids) + 1))
        interactions = len(truth.vocabulary.interactions)
        self.classes = {"full": np.ones(interactions, dtype=bool)}
        for name, ids in truth.vocabulary.groups.items():
            self.classes[name] = among(np.arange(interactions), ids)
        self.members = {
            name: np.bincount(self.pair, weights=mask[scenes.interaction[self.triplet]], minlength=len(keys)) > 0
            for name, mask in self.classes.items()
        }

    def images(self, subset: str) -> Bools:
        """[N] the images with an annotated interaction of the subset; all, if the protocol counts in all images."""
        if self.protocol.images == "all":
            return np.ones(len(self.truth.scenes.image_ids), dtype=bool)
        counts = np.bincount(self.image[self.members[subset]], minlength=len(self.truth.scenes.image_ids))
        return counts > 0

    @cached_property
    def rank(self) -> Ints:
        """[N] each image's place among all images sorted by id, so that ties do not depend on the order of lines."""
        return rank_by_id(self.truth.scenes.image_ids)

    def join(
        self, scenes: Scenes, image: Ints, subject: Ints, object_: Ints, person: Ints | None = None
    ) -> tuple[Ints, Ints, Floats]:
        """Which detected pairs match which true pairs: (rows of the arguments, ascending; rows of self; the smaller
        IoU).

        image [P] images of the ground truth, subject and object_ [P] rows of `scenes.boxes`. person [P]: the
        ground-truth person each belongs to, for a person-first protocol, which ignores labels.
        """
        count = self.start[image + 1] - self.start[image]
        check_pairs(count, image, self.truth.scenes.image_ids, "pairs")
        truth, protocol = self.truth.scenes, self.protocol
        kinds = box_kinds(scenes.labels, self.truth.vocabulary)
        found = []
        for row, mate in counterparts(self.start[image], count):
            if person is not None:
                of_person = person[row] == self.subject[mate]
                row, mate = row[of_person], mate[of_person]
            overlap, sides = np.full(len(row), np.inf), ((subject, self.subject), (object_, self.object))
            if person is None:
                same = np.all([kinds[mine[row]] == self.truth.kinds[theirs[mate]] for mine, theirs in sides], axis=0)
                row, mate, overlap = row[same], mate[same], overlap[same]
            for mine, theirs in sides:
                side = protocol_iou(protocol, taken(scenes.boxes, mine[row]), taken(truth.boxes, theirs[mate]))
                enough = reaches(protocol, side)
                row, mate, overlap = row[enough], mate[enough], np.minimum(overlap, side)[enough]
            found.append((row, mate, overlap))
        rows, mates, overlaps = map(np.concatenate, zip(*found, strict=True))
        return rows, mates, overlaps


def compared_as(vocabulary: Vocabulary) -> Protocol:
    """The protocol that says how boxes are compared: by their edges."""
    rows = rows_of(vocabulary)
    row = next((rows[name] for name in COMPARED_AS if name in rows), main_protocol(vocabulary))
    return replace(row, inclusive=False, touching_overlap=True, inclusive_overlap=False)


class InteractingPairs:
    """The Q pairs of the ground truth that interact: pairs of boxes with different coordinates, one class for all, for
    interactiveness AP (enlighten0707/Body-Part-Map-for-Interactiveness binary_evaluation.py `calc_binary`, which
    printed the numbers of its paper).

    A detected pair belongs to the true pair with the largest min(IoU_subject, IoU_object), the first of equals,
    whatever the labels; from 0.5 on the best-scored of those that belong to one is right.
    """

    def __init__(self, truth: TruthPairs) -> None:
        scenes = truth.truth.scenes
        corners = (truth.image[:, np.newaxis], scenes.boxes[truth.subject], scenes.boxes[truth.object])
        _, first = np.unique(np.hstack(corners), axis=0, return_index=True)
        first.sort()
        self._scenes, self._image_ids = scenes, scenes.image_ids
        self._subject, self._object = truth.subject[first], truth.object[first]
        self._start = np.searchsorted(truth.image[first], np.arange(len(scenes.image_ids) + 1))
        self._protocol = compared_as(truth.truth.vocabulary)
        self.count = len(first)

    def mates(self, pairs: Scenes, image: Ints) -> Ints:
        """[P] the true pair that each detected pair belongs to, -1 for none; image [P] images of the ground truth."""
        count = self._start[image + 1] - self._start[image]
        check_pairs(count, image, self._image_ids, "pairs")
        mates = np.full(len(image), -1, dtype=np.int64)
        for row, mate in counterparts(self._start[image], count):
            overlap = np.minimum(
                self._overlap(pairs.boxes[pairs.subject[row]], self._subject[mate]),
                self._overlap(pairs.boxes[pairs.object[row]], self._object[mate]),
            )
            best = first_largest(row, overlap)
            best = best[overlap[best] >= self._protocol.threshold]
            mates[row[best]] = mate[best]
        return mates

    def _overlap(self, boxes: Floats, truth_box: Ints) -> Floats:
        return protocol_iou(self._protocol, boxes.T, self._scenes.boxes[truth_box].T)

    def average_precision(self, mates: Ints) -> float | None:
        """11-point AP in [0, 1] of detected pairs in the order of their scores, the best first; None if nothing
        interacts."""
        if not self.count:
            return None
        claimed, first = np.unique(mates, return_index=True)
        ranks = np.sort(first[claimed >= 0]) + 1
        ap = interpolated_ap(ranks, np.array([0, len(ranks)]), np.array([self.count]), GRID_TENTHS)
        return float(ap[0])
