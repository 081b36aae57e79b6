"""Columns for the explorer's page: every counted prediction with its type of error, its boxes, and the ground truth
that is shown with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.diagnosed_models import Placed
from hoicli.diagnosis.error_types import ERRORS, MISSED, NOT_COUNTED, join_by_image
from hoicli.diagnosis.located import Located, counted_truth
from hoicli.evaluation.ground_truth import GroundTruth, TripletIndex
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import blocks_of
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import order_by_score
from hoicli.evaluation.slices import Slice
from hoicli.records.kit import Bools, Floats, Growing, Ints, join_parts, rank_by_id, run_starts, starts_of

RELATIONS = ("own", "nearest", "none")
OWN, NEAREST, NONE = range(len(RELATIONS))
"""How the ground truth that is shown with a prediction relates to it, and the numbers of these relations."""

STATES = (*ERRORS, MISSED)
"""The states of a ground truth: found (true_positive), missed, or the error type of what finds it once repaired."""
NEVER = len(STATES) - 1

IOU_STEPS = 10_000
"""An IoU is stored as a whole number of these steps, rounded down, so that `at least 0.5` stays true; -1 for none."""


@dataclass(frozen=True)
class TruthTable:
    """The G ground-truth triplets that a protocol counts, by image id, then in annotation order, and the B boxes of all
    N images.

    - image_ids [N]: sorted. order [N]: each image's number in the ground truth as it was read (`Scenes`); place [N]:
      the reverse, from that number to the number here.
    - box_start [N + 1]: where each image's boxes begin; boxes [B, 4]; label [B].
    - image, interaction [G]: numbers; subject, object [G]: the number of the box in its image, -1 for no object.
    - number [triplets of `Scenes`]: a triplet's number among the G, -1 for one that is not counted.
    - parts: for each slice of triplets, the number of each triplet's part [G].
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
    """A model's T counted predictions, best score first (equal scores: by image id, then by position in the image).

    - image, interaction, score [T]; error [T]: a place in ERRORS; subject, object [T]: the number of the box in its
      image, -1 for no object.
    - truth [T]: the ground truth that is shown with it, a row of `TruthTable`, -1 for none; relation [T]: a place in
      RELATIONS; iou_subject, iou_object [T]: the IoU of the boxes of both, in IOU_STEPS.
    - box_start [N + 1]: where each image's boxes begin; boxes [B, 4], label [B]: of the predicted boxes.
    - state [G]: of each ground truth, a place in STATES; by [G]: the prediction that finds the ground truth, or would
      once it is repaired, -1 for none.
    - uncounted: how many predictions the protocol drops. parts: for each slice of triplets, the number of each
      prediction's part [T].
    """

    image: Ints
    interaction: Ints
    score: Floats
    error: NDArray[np.uint8]
    relation: NDArray[np.uint8]
    iou_subject: Ints
    iou_object: Ints
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
    """Return the ground truth that a protocol counts, as columns for the page. slices: of triplets, for `parts`."""
    scenes = truth.scenes
    order = np.argsort(rank_by_id(scenes.image_ids), kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    box_order, box_start, box_in_image = sort_by_image(place[scenes.image_of_box], len(order))
    counted = np.flatnonzero(truth.counted_triplets(protocol))
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
        subject=box_in_image[scenes.subject[rows]],
        object=np.append(box_in_image, -1)[scenes.object[rows]],  # no object is -1, the place of the appended -1
        number=number,
        parts=[truth.slice_members(slice_)[:, rows].argmax(axis=0) for slice_ in slices],
    )


class TypedPredictions:
    """Gathers the predictions of one model with their types of error, batch by batch in any order (a `Collector`)."""

    def __init__(self, protocol: Protocol, slices: Sequence[Slice] = ()) -> None:
        """Start without predictions: columns that grow with each batch. slices: of triplets, whose parts are wanted."""
        self._protocol, self._slices = protocol, slices
        self._uncounted = 0  # predictions that the protocol drops
        self._count = 0  # counted ones, which are the rows
        self._rows = Growing(
            **dict.fromkeys(("image", "interaction", "subject", "object", "truth"), np.int32),
            **dict.fromkeys(("iou_subject", "iou_object"), np.int16),
            **dict.fromkeys(("error", "relation"), np.uint8),
            score=np.float64,
        )
        self._parts: list[list[Ints]] = [[] for _ in slices]
        self._boxes = Growing(image=np.int32, label=np.int32)
        self._coordinates: list[Floats] = []
        self._by = Growing(truth=np.int64, row=np.int64)  # each ground truth, and the prediction that finds it

    def add(self, placed: Placed) -> None:
        """Add the counted predictions of a batch."""
        batch, located, types = placed.batch, placed.located, placed.types
        scenes = batch.predictions
        rows = np.flatnonzero(types.error != NOT_COUNTED)
        truth, relation, iou_subject, iou_object = _find_truth_to_show(batch, located, self._protocol, rows)
        _, of_truth = counted_truth(batch, self._protocol)  # from rows of `located` to rows of the ground truth
        first_box = scenes.box_start[located.image[rows]]
        self._rows.add(
            image=batch.image[located.image[rows]],
            interaction=located.interaction[rows],
            subject=located.subject[rows] - first_box,
            object=np.where(located.object[rows] < 0, -1, located.object[rows] - first_box),
            truth=np.append(of_truth, -1)[truth],
            score=located.score[rows],
            iou_subject=_steps(iou_subject),
            iou_object=_steps(iou_object),
            error=types.error[rows],
            relation=relation,
        )
        for slice_, parts in zip(self._slices, self._parts, strict=True):
            parts.append(batch.parts(slice_)[:, rows].argmax(axis=0))
        self._boxes.add(image=batch.image[scenes.image_of_box], label=scenes.labels)
        self._coordinates.append(scenes.boxes)
        # of each ground truth, the prediction that finds it, else the one that would once it is repaired
        by = np.where(types.true_positive >= 0, types.true_positive, types.repair)
        self._by.add(truth=of_truth, row=np.where(by < 0, -1, np.searchsorted(rows, by) + self._count))
        self._uncounted += len(types.error) - len(rows)
        self._count += len(rows)

    def merge(self, other: TypedPredictions) -> None:
        """Add the predictions that another process gathered, which are about other images."""
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
        """Return all gathered predictions as a table. truth: the ground truth by the same protocol and slices."""
        rows = self._rows
        image = truth.place[rows["image"]]
        order = order_by_score(rows["score"], lambda tied: [image[tied]])
        column = {name: rows[name][order] for name in rows.names if name != "image"}
        of_truth = np.append(truth.number, -1)[column.pop("truth")]
        box_order, box_start, _ = sort_by_image(truth.place[self._boxes["image"]], len(truth.image_ids))
        new_row = np.full(len(order) + 1, -1, dtype=np.int64)  # the last place is where -1, no row, is looked up
        new_row[order] = np.arange(len(order))
        # for each ground truth the row of the prediction that finds it, or would once it is repaired
        by = np.full(len(truth.image), -1, dtype=np.int64)
        by[truth.number[self._by["truth"]]] = new_row[self._by["row"]]
        is_own = column["relation"] == OWN  # then a prediction is in the part of its ground truth
        parts = [
            np.where(is_own, np.append(annotated, 0)[of_truth], join_parts(predicted, np.int64)[order])
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


def _find_truth_to_show(
    batch: Batch, located: Located, protocol: Protocol, rows: Ints
) -> tuple[Ints, NDArray[np.uint8], Floats, Floats]:
    """Return the ground truth to show with the predictions `rows` [M], as four columns [M]: its row in `Located`, -1
    for none; its relation, a place in RELATIONS; the IoU of the two subject boxes, and that of the object boxes, by the
    protocol's convention, NaN where one of the two has none.

    A true positive or a duplicate has its own ground truth. Any other prediction has the nearest of its image, which
    explains the error; the ground truth that an oracle makes it find may be another. Nearest is a ground truth both of
    whose boxes it matches, else one of its own class; of several the one with the largest min(IoU_subject, IoU_object),
    then with the largest sum of the two, then the first annotated; none if no box overlaps the ground truth's. Two
    triplets without an object have an object IoU of 1; if only one is without, it is 0."""
    has_own = located.truth[rows] >= 0
    truth, iou = np.empty(len(rows), dtype=np.int64), np.empty((2, len(rows)))
    truth_count = np.bincount(located.truth_image, minlength=len(located.image_ids))
    for part in blocks_of(truth_count[located.image[rows]]):  # so that few pairs at a time are in memory
        truth[part], iou[:, part] = _nearest(batch, located, protocol, rows[part])
    return truth, np.select([has_own, truth >= 0], [OWN, NEAREST], NONE).astype(np.uint8), *iou


class _Combinations(NamedTuple):
    """K combinations of a predicted pair of boxes and a ground truth of its image, sorted by pair.

    pair, truth [K]: the number of the pair, and the row of the ground truth; subject, object [K]: the IoU of the two
    subjects and of the two objects, NaN where one has no object; lower_overlap, total [K]: the lower of the two IoUs,
    and their sum, where two without an object have an IoU of 1; touches [K]: whether any of the two IoUs is above 0;
    both_match [K]: whether both reach the threshold."""

    pair: Ints
    truth: Ints
    subject: Floats
    object: Floats
    lower_overlap: Floats
    total: Floats
    touches: Bools
    both_match: Bools

    def nearest(self, group: Ints, place: Ints) -> tuple[Ints, Ints]:
        """Return two columns: the groups in which any combination touches, and for each the place of the combination
        with the nearest ground truth. place: combinations, as places among the K; group: of each one, ascending."""
        # Of those that touch, keep the ones with the highest value of one criterion after the other.
        starts, is_best = run_starts(group), self.touches[place]
        for criterion in (self.both_match[place], self.lower_overlap[place], self.total[place]):
            highest = np.maximum.reduceat(np.where(is_best, criterion, -1), starts)
            is_best &= criterion == np.repeat(highest, np.diff(starts, append=len(group)))
        best = np.flatnonzero(is_best)
        first = best[run_starts(group[best])]  # the first annotated of equally near ones
        return group[first], place[first]


def _combinations(batch: Batch, located: Located, protocol: Protocol, pair_row: Ints) -> _Combinations:
    """Return every combination of a predicted pair of boxes and a ground truth of its image. pair_row: the row of some
    prediction of each pair, in `Located`."""
    pair, truth = join_by_image(located.image[pair_row], located.truth_image)
    subject, object_ = _overlaps(batch, located, protocol, pair_row[pair], truth)
    no_objects = (located.object[pair_row] < 0)[pair] & (located.truth_object[truth] < 0)
    with_object = np.where(no_objects, 1.0, np.nan_to_num(object_))
    lower_overlap, total = np.minimum(subject, with_object), subject + with_object
    return _Combinations(
        pair,
        truth,
        subject=subject,
        object=object_,
        lower_overlap=lower_overlap,
        total=total,
        touches=(subject > 0) | (object_ > 0),
        both_match=lower_overlap >= protocol.threshold,
    )


def _nearest(batch: Batch, located: Located, protocol: Protocol, row: Ints) -> tuple[Ints, Floats]:
    """Return [M]: the row of the ground truth to show with each prediction (own or nearest), -1 for none; and [2, M]:
    the IoU of the subjects and of the objects. row [M]: the predictions, in `Located`."""
    # Boxes are compared once for each predicted pair of boxes, not for each of its verbs. A pair's number is one number
    # for (subject, object), where no object is -1.
    pair_number = located.subject[row] * (int(located.object.max(initial=0)) + 2) + located.object[row] + 1
    _, first_of_pair, pair = np.unique(pair_number, return_index=True, return_inverse=True)
    pair_row = row[first_of_pair]
    combinations = _combinations(batch, located, protocol, pair_row)
    place_of_pair = np.full(len(pair_row), -1, dtype=np.int64)
    pairs, place = combinations.nearest(combinations.pair, np.arange(len(combinations.pair)))
    place_of_pair[pairs] = place
    chosen = place_of_pair[pair]  # the place among the combinations of each prediction's ground truth, -1 for none
    # Added to a row of the ground truth, `offset` gives its place among the combinations of a pair.
    offset = np.searchsorted(combinations.pair, np.arange(len(pair_row))) - np.searchsorted(
        located.truth_image, located.image[pair_row]
    )
    prediction, truth = _truth_of_class(batch, located, row)
    prediction, place = combinations.nearest(prediction, offset[pair[prediction]] + truth)
    # The nearest ground truth of its own class takes precedence, unless only the other one matches both boxes.
    as_good = combinations.both_match[place] == combinations.both_match[chosen[prediction]]
    chosen[prediction[as_good]] = place[as_good]
    rows_with_own = np.flatnonzero(located.truth[row] >= 0)
    chosen[rows_with_own] = offset[pair[rows_with_own]] + located.truth[row[rows_with_own]]
    overlaps = [np.append(iou, np.nan)[chosen] for iou in (combinations.subject, combinations.object)]
    return np.append(combinations.truth, -1)[chosen], np.stack(overlaps)


def _truth_of_class(batch: Batch, located: Located, row: Ints) -> tuple[Ints, Ints]:
    """Return two columns: the predictions, as numbers among `row`, with the row of each ground truth of their class and
    image."""
    classes = len(batch.truth.vocabulary.interactions)
    truth_row = np.arange(len(located.truth_image))
    annotations = TripletIndex(located.truth_image, truth_row, located.truth_interaction, classes)
    return annotations.join_rows(*annotations.find(located.image[row], located.interaction[row]))


def _overlaps(batch: Batch, located: Located, protocol: Protocol, row: Ints, truth: Ints) -> tuple[Floats, Floats]:
    """Return the IoU of the subjects, and that of the objects, of each prediction (`row`) and ground truth (`truth`);
    the latter is NaN if one of them has no object."""
    subject = batch.iou_of(protocol, located.subject[row], located.truth_subject[truth])
    object_ = np.full(len(row), np.nan)
    both = np.flatnonzero((located.object[row] >= 0) & (located.truth_object[truth] >= 0))
    object_[both] = batch.iou_of(protocol, located.object[row[both]], located.truth_object[truth[both]])
    return subject, object_


def _steps(iou: Floats) -> Ints:
    """Return IoUs as whole numbers of IOU_STEPS, rounded down; -1 for NaN."""
    steps = np.floor(np.clip(np.nan_to_num(iou), 0, 1) * IOU_STEPS + 1e-9)  # 0.57 * 10000 is a little less than 5700
    return np.where(np.isnan(iou), -1, steps).astype(np.int64)


def sort_by_image(image: Ints, images: int) -> tuple[Ints, Ints, Ints]:
    """Return three arrays: the rows sorted stably by image; where each image's rows begin in that order [images + 1];
    and each row's number within its image. image: the image number of each row; images: how many images there are."""
    order = np.argsort(image, kind="stable")
    start = starts_of(np.bincount(image, minlength=images))
    number_in_image = np.empty(len(image), dtype=np.int64)
    number_in_image[order] = np.arange(len(image)) - start[image[order]]
    return order, start, number_in_image
