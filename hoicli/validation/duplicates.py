"""Near-duplicate boxes of the ground truth, one person or object drawn more than once; and annotations without them,
and with triplets that were missing.

HICO-DET was annotated class by class, so that who rides a horse and also holds it often has two boxes. Authors merge
them before training: at IoU 0.6 (vt-vl-lab/iCAN#24) or 0.7 (Transferable-Interactiveness-Network#5).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.pairing import check_pairs, counterparts
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import main_protocol
from hoicli.records.boxes import iou
from hoicli.records.kit import Bools, Floats, Growing, Ints, groups, run_starts, starts_of
from hoicli.records.scenes import Scenes, add_boxes, add_triplets, box_kinds, class_columns
from hoicli.validation.candidates import Missing
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Duplicates:
    """D pairs of boxes of one image and label (labels that a subject may have are one), by image, then place.

    first, second [D] rows of the boxes, first < second; iou [D].
    """

    first: Ints
    second: Ints
    iou: Floats

    def only(self, rows: Bools) -> Duplicates:
        """Some of the pairs."""
        return Duplicates(self.first[rows], self.second[rows], self.iou[rows])


def near_duplicates(scenes: Scenes, vocabulary: Vocabulary, protocol: Protocol, threshold: float) -> Duplicates:
    """Every two boxes of one image and label with an IoU of at least `threshold`, by the protocol's convention.

    Raises `DataError` for an image with thousands of boxes.
    """
    kinds = box_kinds(scenes.labels, vocabulary)
    place = np.arange(len(kinds))
    after = scenes.box_start[scenes.image_of_box + 1] - place - 1
    check_pairs(after, scenes.image_of_box, scenes.image_ids, "boxes")
    near_pairs = Growing(first=np.int64, second=np.int64, iou=np.float64)
    for first, second in counterparts(place + 1, after):
        alike = (kinds[first] == kinds[second]) & (kinds[first] >= 0)
        first, second = first[alike], second[alike]
        overlap = iou(scenes.boxes[first].T, scenes.boxes[second].T, inclusive=protocol.inclusive)
        enough = overlap >= threshold
        near_pairs.add(first=first[enough], second=second[enough], iou=overlap[enough])
    return Duplicates(near_pairs["first"], near_pairs["second"], near_pairs["iou"])


def kept_boxes(scenes: Scenes, duplicates: Duplicates) -> Ints:
    """[B] the box that each box is when duplicates of each other, directly or through others, are one: the one that
    overlaps the others most, of equals the one of the first class, as official annotations are listed, then by
    corners."""
    boxes, ends = len(scenes.boxes), (duplicates.first, duplicates.second)
    group = groups(*ends, boxes)
    both, weights = np.concatenate(ends), np.tile(duplicates.iou, 2)
    order = np.argsort(weights)  # a sum of floats depends on their order
    strength = np.bincount(both[order], weights=weights[order], minlength=boxes)
    first = np.full(boxes, np.iinfo(np.int64).max)
    for end in (scenes.subject, scenes.object):
        np.minimum.at(first, end[end >= 0], scenes.interaction[end >= 0])
    order = np.lexsort((*scenes.corners(np.arange(boxes)), scenes.labels, first, -strength, group))
    best = order[run_starts(group[order])]
    kept_as = np.empty(boxes, dtype=np.int64)
    kept_as[group[best]] = best
    return kept_as[group]


def drawn_once(truth: GroundTruth, threshold: float) -> Bools:
    """[B] the annotated boxes without the near duplicates (`kept_boxes`) of others with their label (of crowds: of
    crowds); the main protocol says what an overlap is."""
    alike = near_duplicates(truth.scenes, truth.vocabulary, main_protocol(truth.vocabulary), threshold)
    same = truth.scenes.labels[alike.first] == truth.scenes.labels[alike.second]
    same &= truth.scenes.crowd[alike.first] == truth.scenes.crowd[alike.second]
    kept_once: Bools = kept_boxes(truth.scenes, alike.only(same)) == np.arange(len(truth.scenes.boxes))
    return kept_once


def merge_duplicates(scenes: Scenes, duplicates: Duplicates) -> Scenes:
    """The images with each box as `kept_boxes` has it. Of triplets that are then the same the first is kept."""
    if not len(duplicates.first):
        return scenes
    kept_as = kept_boxes(scenes, duplicates)
    stays = kept_as == np.arange(len(kept_as))
    number = np.append(np.cumsum(stays) - 1, -1)
    moved = np.append(number[kept_as], -1)  # no object stays no object
    annotated = np.zeros(len(kept_as), dtype=bool)
    np.logical_or.at(annotated, kept_as, scenes.annotated)
    new = replace(
        scenes,
        boxes=scenes.boxes[stays],
        labels=scenes.labels[stays],
        annotated=annotated[stays],
        box_start=starts_of(stays)[scenes.box_start],
        subject=moved[scenes.subject],
        object=moved[scenes.object],
    )
    return new.only(_distinct(new))


def _distinct(scenes: Scenes) -> Ints:
    """The triplets without those that repeat an earlier one, ascending."""
    columns = np.stack([scenes.subject, scenes.object, scenes.verb, scenes.interaction])
    return np.sort(np.unique(columns, axis=1, return_index=True)[1])


def add_missing(scenes: Scenes, missing: Missing, vocabulary: Vocabulary, protocol: Protocol, same: float) -> Scenes:
    """The images with the missing triplets: on the annotated boxes that they belong to, else on new ones, which are
    those of the surest model; new boxes that are near duplicates of each other (`same`) are one."""
    strays = missing.of
    fresh = (strays.near < 0) & ~np.isnan(strays.boxes[:, 0])
    image = np.broadcast_to(strays.image, fresh.shape)[fresh]
    order = np.argsort(image, kind="stable")
    new, label = strays.boxes.swapaxes(1, 2)[fresh], strays.labels[fresh]
    grown, added, moved = add_boxes(scenes, image[order], new[order], label[order])
    where = np.empty(len(order), dtype=np.int64)
    where[order] = added
    ends = moved[strays.near]
    ends[fresh] = where
    grown = add_triplets(
        grown,
        strays.image,
        subject=ends[0],
        object_=ends[1],
        verb=class_columns(vocabulary)[0][strays.class_],
        interaction=strays.class_,
        score=np.full(len(strays.image), np.nan),
    )
    is_used = np.zeros(len(grown.boxes), dtype=bool)
    is_used[added] = True
    alike = near_duplicates(grown, vocabulary, protocol, same)
    return merge_duplicates(grown, alike.only(is_used[alike.first] & is_used[alike.second]))
