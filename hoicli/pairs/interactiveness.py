"""Interactiveness AP: how well the pairs that interact are found and ranked, whatever they do and whatever they are.

Source: enlighten0707/Body-Part-Map-for-Interactiveness binary_evaluation.py `calc_binary`, which printed the numbers of
its paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hoicli.evaluation.average_precision import interpolated_ap
from hoicli.evaluation.pairing import check_pairs, counterparts, first_largest, protocol_iou
from hoicli.evaluation.protocols import GRID_TENTHS, Protocol
from hoicli.evaluation.selection import main_protocol, rows_of
from hoicli.pairs.truth import TruthPairs
from hoicli.records.kit import Floats, Ints
from hoicli.records.scenes import Scenes
from hoicli.vocabulary.labels import Vocabulary

COMPARED_AS = ("inp-cc", "vcoco-qpic")
"""The protocols whose shifts are the released code's: 1-based ground truth of HICO-DET, x + w of V-COCO."""


def compared_as(vocabulary: Vocabulary) -> Protocol:
    """The protocol that says how boxes are compared: by their edges."""
    rows = rows_of(vocabulary)
    row = next((rows[name] for name in COMPARED_AS if name in rows), main_protocol(vocabulary))
    return replace(row, inclusive=False, touching_overlap=True, inclusive_overlap=False)


class InteractingPairs:
    """The Q pairs of the ground truth that interact: pairs of boxes with different coordinates, one class for all.

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
