"""The matching kernel: which predictions of a batch of images are true positives, for any protocol at once.

IoU is computed once per (predicted box, ground-truth box) of an image and shared by the protocols of one convention;
predictions meet the ground truth of their class through one sorted join. No Python loop runs per triplet or image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError
from hoicli.geometry import best_per_image, iou, pair_nms
from hoicli.protocols import Protocol
from hoicli.scenes import Bools, Floats, Ints, Scenes
from hoicli.vocabulary import SUBJECT, Vocabulary

OUTCOMES = (
    "false_positive",
    "true_positive",
    "not_an_interaction",  # the vocabulary has no class of this verb and object
    "no_interaction",  # dropped by a protocol that leaves no_interaction out
    "subject_not_person",  # of no class where the subject's label is part of it
    "over_the_cap",  # beyond the best k of its image
    "suppressed",  # by pair NMS
    "unannotated_image",  # the protocol counts nothing in such images
    "object_not_known",  # Known Object: the image has no label for this object
)
"""What became of a prediction. The first two count; the others say why a prediction does not."""
FALSE_POSITIVE, TRUE_POSITIVE = 0, 1
_CODE = {name: code for code, name in enumerate(OUTCOMES)}


@dataclass(frozen=True)
class Filters:
    """What to remove before any protocol looks: the best `top_k` triplets of an image stay, then pair NMS at `nms`.

    In CDN's order, where the 100 best of an image are taken before NMS; a protocol's own cap joins `top_k`.
    """

    top_k: int | None = None
    nms: float | None = None
    nms_alpha: float = 1.0
    nms_beta: float = 0.5

    def signature(self) -> dict[str, str]:
        """The settings in force, for signatures; nothing when there are none."""
        settings = {}
        if self.top_k is not None:
            settings["topk"] = str(self.top_k)
        if self.nms is not None:
            settings["nms"] = f"{self.nms:g}/{self.nms_alpha:g}/{self.nms_beta:g}"
        return settings


class GroundTruth:
    """All annotated images of a dataset, indexed for joining."""

    def __init__(self, scenes: Scenes, vocabulary: Vocabulary) -> None:
        self.scenes = scenes
        self.vocabulary = vocabulary
        self.position = {image_id: row for row, image_id in enumerate(scenes.image_ids)}
        key = self._key(scenes.image_of_hoi, scenes.interaction)
        self._order = np.argsort(key, kind="stable")  # stable: annotation order within a class
        self._sorted_key = key[self._order]

    def _key(self, image: Ints, interaction: Ints) -> Ints:
        key: Ints = image * len(self.vocabulary.interactions) + interaction
        return np.where(interaction < 0, -1, key)

    @cached_property
    def no_interaction(self) -> Bools:
        """[T] ground-truth triplets of the verb no_interaction."""
        ids = sorted(self.vocabulary.no_interaction_ids)
        return np.isin(self.scenes.interaction, ids)

    def join(self, image: Ints, interaction: Ints) -> tuple[Ints, Ints]:
        """Every (prediction, ground truth) of one image and class: rows of the arguments, ascending, and of `scenes`.

        Ground truth comes in annotation order for each prediction.
        """
        key = self._key(image, interaction)
        left = np.searchsorted(self._sorted_key, key, "left")
        count = np.where(key < 0, 0, np.searchsorted(self._sorted_key, key, "right") - left)
        rows = np.repeat(np.arange(len(key)), count)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
        return rows, self._order[left[rows] + within]

    def counted(self, protocol: Protocol) -> Bools:
        """[T] the ground truth a protocol counts."""
        counts = self.scenes.interaction >= 0
        return counts & ~self.no_interaction if protocol.drop_no_interaction else counts

    def annotated_images(self, protocol: Protocol) -> Bools:
        """[N] the images in which a protocol counts predictions."""
        if protocol.images == "all":
            return np.ones(len(self.scenes.image_ids), dtype=bool)
        if protocol.images == "boxes":
            return np.diff(self.scenes.box_start) > 0
        counts = np.bincount(
            self.scenes.image_of_hoi, weights=self.counted(protocol), minlength=len(self.scenes.image_ids)
        )
        return counts > 0

    def class_counts(self, protocol: Protocol) -> Ints:
        """[interactions] ground-truth triplets of each class."""
        rows = self.scenes.interaction[self.counted(protocol)]
        return np.bincount(rows, minlength=len(self.vocabulary.interactions))


@dataclass(frozen=True)
class Outcomes:
    """What became of the T predictions of a batch under one protocol.

    code [T] indexes OUTCOMES. truth [T] is the ground-truth triplet (a row of the ground truth's Scenes) a prediction
    overlaps enough, taken or not, else -1. iou_subject, iou_object [T]: with the best ground truth of its class, NaN
    where the image has none.
    """

    code: NDArray[np.uint8]
    truth: Ints
    iou_subject: Floats
    iou_object: Floats


class Batch:
    """The predictions of some images beside their ground truth: what all protocols share, computed once."""

    def __init__(self, predictions: Scenes, truth: GroundTruth) -> None:
        missing = [image_id for image_id in predictions.image_ids if image_id not in truth.position]
        if missing:
            raise DataError(f"image {missing[0]!r} is not in the ground truth", field="image_id")
        self.predictions = predictions
        self.truth = truth
        self.image = np.array([truth.position[image_id] for image_id in predictions.image_ids], dtype=np.int64)
        self.image_of_hoi: Ints = self.image[predictions.image_of_hoi]
        self._candidate, self._candidate_truth = truth.join(self.image_of_hoi, predictions.interaction)
        self._overlaps: dict[object, Floats] = {}

    @cached_property
    def _box_pairs(self) -> tuple[Ints, Ints, Ints]:
        """All (predicted box, ground-truth box) of one image: rows of each, and where each predicted box's run starts."""
        truth = self.truth.scenes
        image = self.image[self.predictions.image_of_box]
        count = np.diff(truth.box_start)[image]
        start = np.cumsum(count) - count
        box = np.repeat(np.arange(len(count)), count)
        return box, truth.box_start[image][box] + np.arange(len(box)) - start[box], start

    def overlaps(self, protocol: Protocol) -> Floats:
        """IoU of every pair of `_box_pairs` by the protocol's convention; computed once a convention."""
        key = protocol.iou_key
        if key not in self._overlaps:
            box, truth_box, _ = self._box_pairs
            self._overlaps[key] = iou(
                (self.predictions.boxes + protocol.prediction_shift)[box],
                (self.truth.scenes.boxes + protocol.truth_shift)[truth_box],
                inclusive=protocol.inclusive,
                touching_overlap=protocol.touching_overlap,
            )
        return self._overlaps[key]

    def _candidate_iou(self, protocol: Protocol, boxes: Ints, truth_boxes: Ints) -> Floats:
        """IoU of a predicted box with a ground-truth box, row by row, looked up."""
        _, _, start = self._box_pairs
        first = self.truth.scenes.box_start[self.image[self.predictions.image_of_box[boxes]]]
        return self.overlaps(protocol)[start[boxes] + truth_boxes - first]

    def dropped(self, protocol: Protocol, filters: Filters) -> NDArray[np.uint8]:
        """[T] 0 for a prediction that counts, else the code of the reason why it does not."""
        scenes = self.predictions
        code = np.zeros(len(scenes.score), dtype=np.uint8)

        def drop(rows: Bools, reason: str) -> None:
            code[rows & (code == 0)] = _CODE[reason]

        if protocol.drop_no_interaction:
            # First of all, as Diag-HOI's dumps are written without it.
            drop(scenes.verb == self.truth.vocabulary.verb_ids[self.truth.vocabulary.no_interaction or ""], "no_interaction")
        caps = [cap for cap in (filters.top_k, protocol.triplets_per_image) if cap is not None]
        if caps:
            drop(~best_per_image(scenes, min(caps)), "over_the_cap")
        if filters.nms is not None:
            kept = pair_nms(
                scenes, code == 0, threshold=filters.nms, alpha=filters.nms_alpha, beta=filters.nms_beta
            )
            drop(~kept, "suppressed")
        drop(scenes.interaction < 0, "not_an_interaction")
        if protocol.person_subject:
            person = self.truth.vocabulary.object_ids[SUBJECT]
            drop(scenes.labels[scenes.subject] != person, "subject_not_person")
        if protocol.images != "all":
            drop(~self.truth.annotated_images(protocol)[self.image_of_hoi], "unannotated_image")
        if protocol.known_object:
            known = self.truth.scenes.known_object[self.image_of_hoi, scenes.labels[scenes.object]]
            drop(~known, "object_not_known")
        return code

    def match(self, protocol: Protocol, filters: Filters) -> Outcomes:
        """The outcome of every prediction: PROTOCOLS' row applied to this batch.

        A prediction belongs to the ground truth of its class with the largest min(IoU_subject, IoU_object), the first
        of equals; among those that reach the threshold with one ground truth, the highest score is its true positive
        and the rest are false (no released evaluator falls back on the second best). Ties in score: input order.
        """
        code = self.dropped(protocol, filters)
        total = len(code)
        truth = np.full(total, -1, dtype=np.int64)
        iou_subject, iou_object = np.full(total, np.nan), np.full(total, np.nan)
        live = code[self._candidate] == 0
        row, candidate = self._candidate[live], self._candidate_truth[live]
        if len(row):
            scenes, annotated = self.predictions, self.truth.scenes
            subject = self._candidate_iou(protocol, scenes.subject[row], annotated.subject[candidate])
            object_ = self._candidate_iou(protocol, scenes.object[row], annotated.object[candidate])
            best = _first_largest(row, np.minimum(subject, object_))
            row, candidate, subject, object_ = (column[best] for column in (row, candidate, subject, object_))
            iou_subject[row], iou_object[row] = subject, object_
            overlap = np.minimum(subject, object_)
            enough = overlap > protocol.threshold if protocol.strict else overlap >= protocol.threshold
            row, candidate = row[enough], candidate[enough]
            truth[row] = candidate
            order = np.lexsort((row, -scenes.score[row], candidate))
            winners = order[_run_starts(candidate[order])]
            code[row[winners]] = TRUE_POSITIVE
        return Outcomes(code, truth, iou_subject, iou_object)


def match_all(batch: Batch, protocols: Sequence[Protocol], filters: Filters) -> Mapping[str, Outcomes]:
    """Outcomes by protocol name."""
    return {protocol.name: batch.match(protocol, filters) for protocol in protocols}


def _run_starts(values: Ints) -> Ints:
    """Where each run of equal neighbours begins."""
    return np.flatnonzero(np.r_[True, values[1:] != values[:-1]]) if len(values) else np.zeros(0, dtype=np.int64)


def _first_largest(group: Ints, value: Floats) -> Ints:
    """For each run of equal `group`, the position of its largest value, the first of equals."""
    starts = _run_starts(group)
    lengths = np.diff(np.r_[starts, len(group)])
    is_largest = value == np.repeat(np.maximum.reduceat(value, starts), lengths)
    position = np.where(is_largest, np.arange(len(group)), len(group))
    return np.minimum.reduceat(position, starts)
