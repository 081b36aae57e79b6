"""The ground truth that is shown beside each prediction, so that every error says what would have been right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.errors import Located, beside
from hoicli.diagnosis.repairs import ErrorTypes
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import blocks_of
from hoicli.evaluation.protocols import Protocol
from hoicli.records.kit import Floats, Ints, run_starts

RELATIONS = ("own", "repair", "nearest", "none")
OWN, REPAIR, NEAREST, NONE = range(len(RELATIONS))


@dataclass(frozen=True)
class Beside:
    """The ground truth beside some predictions of a batch.

    truth [M] rows of the ground truth of `Located`, -1 for none; relation [M] indexes RELATIONS: its own (a true
    positive's, a duplicate's), what it could repair, or the nearest; iou_subject, iou_object [M] its boxes' IoU with
    that ground truth's by the protocol's convention, NaN where one of the two has no such box.
    """

    truth: Ints
    relation: NDArray[np.uint8]
    iou_subject: Floats
    iou_object: Floats


def truth_beside(batch: Batch, found: Located, types: ErrorTypes, protocol: Protocol, rows: Ints) -> Beside:
    """The ground truth beside the predictions `rows` [M]: its own; else what it could repair; else the nearest of its
    image.

    Nearest is a pair both of whose boxes it has; else one of its own class; of several the one with the largest
    min(IoU_subject, IoU_object), of equals the largest sum of the two, of these the first annotated; none where no box
    overlaps the ground truth's. A role without object, on both sides, is an IoU of 1, on one side 0.
    """
    relation = np.select([found.truth[rows] >= 0, types.repairs[rows] >= 0], [OWN, REPAIR], NONE).astype(np.uint8)
    truth = np.where(relation == OWN, found.truth[rows], types.repairs[rows])
    lone = np.flatnonzero(relation == NONE)
    key = np.zeros(len(lone), dtype=np.int64)  # predictions of one class on one pair of boxes have one nearest
    for column in (found.subject, found.object, found.interaction):
        key = key * (int(column.max(initial=0)) + 2) + column[rows[lone]] + 1
    _, first, group_of = np.unique(key, return_index=True, return_inverse=True)
    truth[lone] = _nearest(batch, found, protocol, rows[lone[first]])[group_of]
    relation[lone[truth[lone] >= 0]] = NEAREST
    iou_subject, iou_object = np.full((2, len(rows)), np.nan)
    shown = np.flatnonzero(truth >= 0)
    iou_subject[shown], iou_object[shown] = _overlaps(batch, found, protocol, rows[shown], truth[shown])
    return Beside(truth, relation, iou_subject, iou_object)


def _nearest(batch: Batch, found: Located, protocol: Protocol, row: Ints) -> Ints:
    """[M] the nearest ground truth of the predictions `row`, -1 for none; few pairs at a time are in memory."""
    nearest = np.full(len(row), -1, dtype=np.int64)
    annotated = np.bincount(found.truth_image, minlength=len(found.image_ids))
    for part in blocks_of(annotated[found.image[row]]):
        group, near = beside(found.image[row[part]], found.truth_image)
        predicted = row[part][group]
        subject, object_ = _overlaps(batch, found, protocol, predicted, near)
        neither = (found.object[predicted] < 0) & (found.truth_object[near] < 0)
        object_ = np.nan_to_num(object_)
        touches = (subject > 0) | (object_ > 0)
        object_[neither] = 1.0
        least, total = np.minimum(subject, object_), subject + object_
        same_class = found.interaction[predicted] == found.truth_interaction[near]
        order = np.lexsort((near, -total, -least, ~same_class, least < protocol.threshold, ~touches, group))
        best = order[run_starts(group[order])]
        best = best[touches[best]]
        nearest[part.start + group[best]] = near[best]
    return nearest


def _overlaps(batch: Batch, found: Located, protocol: Protocol, row: Ints, truth: Ints) -> tuple[Floats, Floats]:
    """(IoU of the subjects, of the objects) of predictions and ground truth; NaN where one has no object."""
    subject = batch.iou_of(protocol, found.subject[row], found.truth_subject[truth])
    object_ = np.full(len(row), np.nan)
    both = np.flatnonzero((found.object[row] >= 0) & (found.truth_object[truth] >= 0))
    object_[both] = batch.iou_of(protocol, found.object[row[both]], found.truth_object[truth[both]])
    return subject, object_
