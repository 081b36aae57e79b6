"""Near-duplicate boxes of the ground truth (one person or object drawn more than once), and changed annotations:
without near duplicates, or with the triplets that were missing.

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
    """D pairs of boxes with the same image and label (all labels that a subject may have are one), by image, then
    place. first, second [D]: rows of the boxes, first < second; iou [D]: their overlap."""

    first: Ints
    second: Ints
    iou: Floats

    def only(self, rows: Bools) -> Duplicates:
        """Return some of the pairs."""
        return Duplicates(self.first[rows], self.second[rows], self.iou[rows])


def near_duplicates(scenes: Scenes, vocabulary: Vocabulary, protocol: Protocol, threshold: float) -> Duplicates:
    """Return every two boxes of one image and label with an IoU of at least `threshold`, by the protocol's convention
    for boxes. Raises `DataError` for an image with thousands of boxes."""
    kinds = box_kinds(scenes.labels, vocabulary)
    place = np.arange(len(kinds))
    boxes_after = scenes.box_start[scenes.image_of_box + 1] - place - 1
    check_pairs(boxes_after, scenes.image_of_box, scenes.image_ids, "boxes")
    near_pairs = Growing(first=np.int64, second=np.int64, iou=np.float64)
    for first, second in counterparts(place + 1, boxes_after):
        same_kind = (kinds[first] == kinds[second]) & (kinds[first] >= 0)
        first, second = first[same_kind], second[same_kind]
        overlap = iou(scenes.boxes[first].T, scenes.boxes[second].T, inclusive=protocol.inclusive)
        enough = overlap >= threshold
        near_pairs.add(first=first[enough], second=second[enough], iou=overlap[enough])
    return Duplicates(near_pairs["first"], near_pairs["second"], near_pairs["iou"])


def kept_boxes(scenes: Scenes, duplicates: Duplicates) -> Ints:
    """Return for each box [B] the box that stands for it when duplicates, directly or through others, are one box: the
    one that overlaps the others most; among equal ones the one of the first class, in the order of official
    annotations, then the first by corners."""
    boxes, pair_boxes = len(scenes.boxes), (duplicates.first, duplicates.second)
    group = groups(*pair_boxes, boxes)
    boxes_of_pairs, weights = np.concatenate(pair_boxes), np.tile(duplicates.iou, 2)
    order = np.argsort(weights)  # a sum of floats depends on their order
    strength = np.bincount(boxes_of_pairs[order], weights=weights[order], minlength=boxes)
    first_class = np.full(boxes, np.iinfo(np.int64).max)
    for boxes_of_triplets in (scenes.subject, scenes.object):
        np.minimum.at(
            first_class, boxes_of_triplets[boxes_of_triplets >= 0], scenes.interaction[boxes_of_triplets >= 0]
        )
    order = np.lexsort((*scenes.corners(np.arange(boxes)), scenes.labels, first_class, -strength, group))
    best = order[run_starts(group[order])]
    kept_as = np.empty(boxes, dtype=np.int64)
    kept_as[group[best]] = best
    return kept_as[group]


def drawn_once(truth: GroundTruth, threshold: float) -> Bools:
    """Return which annotated boxes [B] are not near duplicates (`kept_boxes`) of another box of their label; a crowd is
    a duplicate only of a crowd. The main protocol says what an overlap is."""
    alike = near_duplicates(truth.scenes, truth.vocabulary, main_protocol(truth.vocabulary), threshold)
    is_same_thing = truth.scenes.labels[alike.first] == truth.scenes.labels[alike.second]
    is_same_thing &= truth.scenes.crowd[alike.first] == truth.scenes.crowd[alike.second]
    kept_once: Bools = kept_boxes(truth.scenes, alike.only(is_same_thing)) == np.arange(len(truth.scenes.boxes))
    return kept_once


def merge_duplicates(scenes: Scenes, duplicates: Duplicates) -> Scenes:
    """Return the images with each box replaced by the one that `kept_boxes` keeps for it. Among triplets that thereby
    become equal, the first is kept."""
    if not len(duplicates.first):
        return scenes
    kept_as = kept_boxes(scenes, duplicates)
    stays = kept_as == np.arange(len(kept_as))
    new_number = np.append(np.cumsum(stays) - 1, -1)
    moved = np.append(new_number[kept_as], -1)  # no object stays no object
    annotated = np.zeros(len(kept_as), dtype=bool)
    np.logical_or.at(annotated, kept_as, scenes.annotated)
    merged = replace(
        scenes,
        boxes=scenes.boxes[stays],
        labels=scenes.labels[stays],
        annotated=annotated[stays],
        box_start=starts_of(stays)[scenes.box_start],
        subject=moved[scenes.subject],
        object=moved[scenes.object],
    )
    return merged.only(_distinct(merged))


def _distinct(scenes: Scenes) -> Ints:
    """Return the triplets, ascending, without those that repeat an earlier one."""
    columns = np.stack([scenes.subject, scenes.object, scenes.verb, scenes.interaction])
    return np.sort(np.unique(columns, axis=1, return_index=True)[1])


def add_missing(scenes: Scenes, missing: Missing, vocabulary: Vocabulary, protocol: Protocol, same: float) -> Scenes:
    """Return the images with the missing triplets, on the annotated boxes that they belong to, else on new boxes, those
    of the surest model. New boxes that are near duplicates of each other, at the IoU `same`, become one."""
    strays = missing.of
    needs_box = (strays.near < 0) & ~np.isnan(strays.boxes[:, 0])
    image = np.broadcast_to(strays.image, needs_box.shape)[needs_box]
    order = np.argsort(image, kind="stable")
    new_boxes, label = strays.boxes.swapaxes(1, 2)[needs_box], strays.labels[needs_box]
    grown, added, moved = add_boxes(scenes, image[order], new_boxes[order], label[order])
    added_box = np.empty(len(order), dtype=np.int64)
    added_box[order] = added
    boxes_of_triplets = moved[strays.near]
    boxes_of_triplets[needs_box] = added_box
    grown = add_triplets(
        grown,
        strays.image,
        subject=boxes_of_triplets[0],
        object_=boxes_of_triplets[1],
        verb=class_columns(vocabulary)[0][strays.class_],
        interaction=strays.class_,
        score=np.full(len(strays.image), np.nan),
    )
    is_new = np.zeros(len(grown.boxes), dtype=bool)
    is_new[added] = True
    alike = near_duplicates(grown, vocabulary, protocol, same)
    return merge_duplicates(grown, alike.only(is_new[alike.first] & is_new[alike.second]))
