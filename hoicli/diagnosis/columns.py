"""Every counted prediction with its type, its boxes and the ground truth beside it, as columns for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.errors import ERRORS, MISSED, NOT_COUNTED, Located, beside, counted_truth
from hoicli.diagnosis.gather import Placed
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import blocks_of
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.slices import Slice
from hoicli.evaluation.slicing import triplet_parts
from hoicli.records.kit import Floats, Growing, Ints, joined, rank_by_id, run_starts, starts_of

RELATIONS = ("own", "nearest", "none")
OWN, NEAREST, NONE = range(len(RELATIONS))
"""What the ground truth beside a prediction is to it, and their codes."""

STATES = (*ERRORS, MISSED)
"""What became of a ground truth: found (true_positive), missed, or the type of the prediction that could repair it."""
NEVER = len(STATES) - 1


@dataclass(frozen=True)
class TruthTable:
    """The ground truth that a protocol counts, by image id, then in annotation order, and its images' boxes.

    image_ids [N], sorted; box_start [N + 1], boxes [B, 4], label [B]; image, interaction [G]; subject, object [G] the
    place of the box in its image, -1 for no object. order [N] the images as places in the ground truth's Scenes, place
    the other way round; number [rows of Scenes] a triplet's place among G, -1 for one that is not counted. parts: of
    each slice of triplets, [G].
    """

    image_ids: list[str]
    order: Ints
    place: Ints
    box_start: Ints
    boxes: Floats
    label: Ints
    image: Ints
    interaction: Ints
    subject: Ints
    object: Ints
    number: Ints
    parts: list[Ints]


@dataclass(frozen=True)
class ErrorTable:
    """A model's T counted predictions, the best-scored first (equal scores: by image id, then place in the image).

    image, interaction, score, error (indexes ERRORS), relation (RELATIONS), iou_subject, iou_object (NaN: no such box)
    [T]; subject, object [T] the place of the box in its image, -1 for no object; truth [T] the ground truth beside it,
    a row of `TruthTable`, -1 for none. box_start [N + 1], boxes [B, 4], label [B] the predicted boxes. state [G]
    indexes STATES; by [G] the prediction that finds a ground truth or could repair it, -1 for none. uncounted: how many
    predictions the protocol drops. parts: of each slice of triplets, [T].
    """

    image: Ints
    interaction: Ints
    score: Floats
    error: NDArray[np.uint8]
    relation: NDArray[np.uint8]
    iou_subject: Floats
    iou_object: Floats
    subject: Ints
    object: Ints
    truth: Ints
    box_start: Ints
    boxes: Floats
    label: Ints
    state: NDArray[np.uint8]
    by: Ints
    uncounted: int
    parts: list[Ints]


def truth_table(truth: GroundTruth, protocol: Protocol, slices: Sequence[Slice] = ()) -> TruthTable:
    """The ground truth as a page has it. slices: of triplets."""
    scenes = truth.scenes
    order = np.argsort(rank_by_id(scenes.image_ids), kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    box_order, box_start, local = by_image(place[scenes.image_of_box], len(order))
    counted = np.flatnonzero(truth.counted(protocol))
    rows = counted[np.argsort(place[scenes.image_of_hoi[counted]], kind="stable")]
    number = np.full(len(scenes.interaction), -1, dtype=np.int64)
    number[rows] = np.arange(len(rows))
    return TruthTable(
        image_ids=[scenes.image_ids[row] for row in order.tolist()],
        order=order,
        place=place,
        box_start=box_start,
        boxes=scenes.boxes[box_order],
        label=scenes.labels[box_order],
        image=place[scenes.image_of_hoi[rows]],
        interaction=scenes.interaction[rows],
        subject=local[scenes.subject[rows]],
        object=np.append(local, -1)[scenes.object[rows]],
        number=number,
        parts=[triplet_parts(slice_, scenes, truth.vocabulary).argmax(axis=0)[rows] for slice_ in slices],
    )


class TypedPredictions:
    """Gathers the typed predictions of one model, batch by batch in any order (`gather.Collector`)."""

    def __init__(self, protocol: Protocol, slices: Sequence[Slice] = ()) -> None:
        """slices: of triplets, whose parts are wanted."""
        self._protocol, self._slices = protocol, slices
        self._uncounted = 0
        self._count = 0
        self._rows = Growing(
            **dict.fromkeys(("image", "place", "interaction", "subject", "object", "truth"), np.int64),
            **dict.fromkeys(("score", "iou_subject", "iou_object"), np.float64),
            **dict.fromkeys(("error", "relation"), np.uint8),
        )
        self._parts: list[list[Ints]] = [[] for _ in slices]
        self._boxes = Growing(image=np.int64, label=np.int64)
        self._coordinates: list[Floats] = []
        self._by = Growing(truth=np.int64, row=np.int64)

    def add(self, placed: Placed) -> None:
        """Add a batch."""
        batch, found, types = placed.batch, placed.found, placed.types
        scenes = batch.predictions
        rows = np.flatnonzero(types.error != NOT_COUNTED)
        truth, relation, iou_subject, iou_object = _beside(batch, found, self._protocol, rows)
        _, of_truth = counted_truth(batch, self._protocol)
        first = scenes.box_start[found.image[rows]]
        self._rows.add(
            image=batch.image[found.image[rows]],
            place=rows - scenes.hoi_start[found.image[rows]],
            interaction=found.interaction[rows],
            subject=found.subject[rows] - first,
            object=np.where(found.object[rows] < 0, -1, found.object[rows] - first),
            truth=np.append(of_truth, -1)[truth],
            score=found.score[rows],
            iou_subject=iou_subject,
            iou_object=iou_object,
            error=types.error[rows],
            relation=relation,
        )
        for slice_, parts in zip(self._slices, self._parts, strict=True):
            parts.append(triplet_parts(slice_, scenes, batch.truth.vocabulary).argmax(axis=0)[rows])
        self._boxes.add(image=batch.image[scenes.image_of_box], label=scenes.labels)
        self._coordinates.append(scenes.boxes)
        by = np.where(types.found >= 0, types.found, types.repair)
        self._by.add(truth=of_truth, row=np.where(by < 0, -1, np.searchsorted(rows, by) + self._count))
        self._uncounted += len(types.error) - len(rows)
        self._count += len(rows)

    def merge(self, other: TypedPredictions) -> None:
        """Add what was gathered from other images."""
        by = other._by["row"]
        self._by.add(truth=other._by["truth"], row=np.where(by < 0, -1, by + self._count))
        self._rows.merge(other._rows)
        self._boxes.merge(other._boxes)
        self._coordinates += other._coordinates
        for parts, theirs in zip(self._parts, other._parts, strict=True):
            parts += theirs
        self._uncounted += other._uncounted
        self._count += other._count

    def table(self, truth: TruthTable) -> ErrorTable:
        """What was gathered, beside the ground truth of the same protocol and slices."""
        rows = self._rows
        image = truth.place[rows["image"]]
        order = np.lexsort((rows["place"], image, -rows["score"]))
        column = {name: rows[name][order] for name in rows.names if name not in ("image", "place")}
        of_truth = np.append(truth.number, -1)[column.pop("truth")]
        box_order, box_start, _ = by_image(truth.place[self._boxes["image"]], len(truth.image_ids))
        number = np.full(len(order) + 1, -1, dtype=np.int64)
        number[order] = np.arange(len(order))
        by = np.full(len(truth.image), -1, dtype=np.int64)
        by[truth.number[self._by["truth"]]] = number[self._by["row"]]
        own = column["relation"] == OWN
        parts = [
            np.where(own, np.append(annotated, 0)[of_truth], joined(predicted, np.int64)[order])
            for annotated, predicted in zip(truth.parts, self._parts, strict=True)
        ]
        return ErrorTable(
            **column,
            image=image[order],
            truth=of_truth,
            box_start=box_start,
            boxes=np.concatenate([np.zeros((0, 4)), *self._coordinates])[box_order],
            label=self._boxes["label"][box_order],
            by=by,
            state=np.where(by < 0, NEVER, np.append(column["error"], 0)[by]).astype(np.uint8),
            uncounted=self._uncounted,
            parts=parts,
        )


def _beside(
    batch: Batch, found: Located, protocol: Protocol, rows: Ints
) -> tuple[Ints, NDArray[np.uint8], Floats, Floats]:
    """The ground truth beside the predictions `rows` [M]: its own (a true positive's, a duplicate's); else the nearest
    of its image, which explains the error; what an oracle turns it into may be elsewhere. (Rows of the ground truth of
    `Located`, -1 for none; [M] indexes RELATIONS; the IoU of the subjects' boxes, and of the objects', by the
    protocol's convention, NaN where one of the two has none.)

    Nearest is a pair both of whose boxes it has; else one of its own class; of several the one with the largest
    min(IoU_subject, IoU_object), of equals the largest sum of the two, of these the first annotated; none where no box
    overlaps the ground truth's. A role without object, on both sides, is an IoU of 1, on one side 0.
    """
    truth = found.truth[rows]
    relation = np.where(truth >= 0, OWN, NONE).astype(np.uint8)
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
    return truth, relation, iou_subject, iou_object


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
        kind = 4 * touches + 2 * (least >= protocol.threshold) + same_class
        starts, highest = run_starts(group), touches
        for key in (kind, least, total):
            most = np.maximum.reduceat(np.where(highest, key, -1), starts)
            highest = highest & (key == np.repeat(most, np.diff(starts, append=len(group))))
        best = np.flatnonzero(highest)
        first = best[run_starts(group[best])]  # of equal ones
        nearest[part.start + group[first]] = near[first]
    return nearest


def _overlaps(batch: Batch, found: Located, protocol: Protocol, row: Ints, truth: Ints) -> tuple[Floats, Floats]:
    """(IoU of the subjects, of the objects) of predictions and ground truth; NaN where one has no object."""
    subject = batch.iou_of(protocol, found.subject[row], found.truth_subject[truth])
    object_ = np.full(len(row), np.nan)
    both = np.flatnonzero((found.object[row] >= 0) & (found.truth_object[truth] >= 0))
    object_[both] = batch.iou_of(protocol, found.object[row[both]], found.truth_object[truth[both]])
    return subject, object_


def by_image(image: Ints, images: int) -> tuple[Ints, Ints, Ints]:
    """(rows sorted by their image, stably; [images + 1] where each image's begin; [rows] the place of each row in its
    image)."""
    order = np.argsort(image, kind="stable")
    start = starts_of(np.bincount(image, minlength=images))
    local = np.empty(len(image), dtype=np.int64)
    local[order] = np.arange(len(image)) - start[image[order]]
    return order, start, local
