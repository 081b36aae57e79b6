"""The pairs of the ground truth, and which detected pairs match them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.pairing import check_pairs, counterparts, protocol_iou, reaches
from hoicli.evaluation.protocols import Protocol
from hoicli.pairs.reading import distinct_pairs
from hoicli.records.boxes import taken
from hoicli.records.kit import Bools, Floats, Ints, rank_by_id
from hoicli.records.scenes import Scenes, box_kinds


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
            self.classes[name] = np.isin(np.arange(interactions), sorted(ids))
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
            overlap = np.full(len(row), np.inf)
            for mine, theirs in ((subject, self.subject), (object_, self.object)):
                if person is None:
                    same = kinds[mine[row]] == self.truth.kinds[theirs[mate]]
                    row, mate, overlap = row[same], mate[same], overlap[same]
                side = protocol_iou(protocol, taken(scenes.boxes, mine[row]), taken(truth.boxes, theirs[mate]))
                enough = reaches(protocol, side)
                row, mate, overlap = row[enough], mate[enough], np.minimum(overlap, side)[enough]
            found.append((row, mate, overlap))
        rows, mates, overlaps = map(np.concatenate, zip(*found, strict=True))
        return rows, mates, overlaps
