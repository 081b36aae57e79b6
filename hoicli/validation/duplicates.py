"""Near-duplicate boxes of the ground truth (one person or object drawn more than once), and changed ground truth: with
near duplicates merged, or with missing triplets added.

HICO-DET was annotated class by class, so that who rides a horse and also holds it often has two boxes. Authors merge
them before training: at IoU 0.6 (vt-vl-lab/iCAN#24) or 0.7 (Transferable-Interactiveness-Network#5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.pairing import check_pairs, iterate_pairs
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import main_protocol
from hoicli.records.boxes import iou
from hoicli.records.kit import Bools, Floats, Growing, Ints, join_groups, run_starts, starts_of
from hoicli.records.scenes import Scenes, add_boxes, add_triplets, box_kinds, class_columns
from hoicli.validation.candidates import Missing
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Duplicates:
    """D pairs of boxes of one image and label that overlap a lot, in the order of the boxes. All labels that a subject
    may have are taken for one. first, second [D]: rows of the boxes, first < second; iou [D]: their IoU."""

    first: Ints
    second: Ints
    iou: Floats

    def only(self, chosen: Bools) -> Duplicates:
        """Return the pairs that are chosen [D]."""
        return Duplicates(self.first[chosen], self.second[chosen], self.iou[chosen])


def near_duplicates(scenes: Scenes, vocabulary: Vocabulary, protocol: Protocol, threshold: float) -> Duplicates:
    """Return every two boxes of one image and label with an IoU of at least `threshold`, by the protocol's convention
    for boxes. Raises `DataError` for an image with thousands of boxes."""
    kinds = box_kinds(scenes.labels, vocabulary)  # labels, but one for all that a subject may have; -1 for none
    place = np.arange(len(kinds))
    boxes_after = scenes.box_start[scenes.image_of_box + 1] - place - 1  # each box is compared with those after it
    check_pairs(boxes_after, scenes.image_of_box, scenes.image_ids, "boxes")
    near_pairs = Growing(first=np.int64, second=np.int64, iou=np.float64)
    for first, second in iterate_pairs(place + 1, boxes_after):
        same_kind = (kinds[first] == kinds[second]) & (kinds[first] >= 0)
        first, second = first[same_kind], second[same_kind]
        overlap = iou(scenes.boxes[first].T, scenes.boxes[second].T, inclusive=protocol.inclusive)
        enough = overlap >= threshold
        near_pairs.add(first=first[enough], second=second[enough], iou=overlap[enough])
    return Duplicates(near_pairs["first"], near_pairs["second"], near_pairs["iou"])


def kept_boxes(scenes: Scenes, duplicates: Duplicates) -> Ints:
    """Return [B] the box that replaces each box if duplicates are merged. Boxes that are duplicates of each other,
    directly or through others, are replaced by the one of them that overlaps the others most; among equal ones by that
    of the lowest class, the order of official annotations, then by the first by corners."""
    boxes, pair_boxes = len(scenes.boxes), (duplicates.first, duplicates.second)
    group = join_groups(*pair_boxes, boxes)
    boxes_of_pairs, ious = np.concatenate(pair_boxes), np.tile(duplicates.iou, 2)  # the IoU counts for both boxes
    order = np.argsort(ious)  # a sum of floats depends on their order
    total_iou = np.bincount(boxes_of_pairs[order], weights=ious[order], minlength=boxes)
    first_class = np.full(boxes, np.iinfo(np.int64).max)  # the lowest class of each box's triplets
    for boxes_of_triplets in (scenes.subject, scenes.object):
        np.minimum.at(
            first_class, boxes_of_triplets[boxes_of_triplets >= 0], scenes.interaction[boxes_of_triplets >= 0]
        )
    # lexsort sorts by its last key first: by group, then by descending overlap
    order = np.lexsort((*scenes.corners(np.arange(boxes)), scenes.labels, first_class, -total_iou, group))
    best = order[run_starts(group[order])]
    best_of_group = np.empty(boxes, dtype=np.int64)
    best_of_group[group[best]] = best
    return best_of_group[group]


def drawn_once(truth: GroundTruth, threshold: float) -> Bools:
    """Return [B] whether each annotated box remains if near duplicates of one label are merged (`kept_boxes`). A box of
    a crowd is a duplicate only of another crowd. threshold: the lowest IoU, by the main protocol."""
    alike = near_duplicates(truth.scenes, truth.vocabulary, main_protocol(truth.vocabulary), threshold)
    is_same_thing = truth.scenes.labels[alike.first] == truth.scenes.labels[alike.second]
    is_same_thing &= truth.scenes.crowd[alike.first] == truth.scenes.crowd[alike.second]
    kept_once: Bools = kept_boxes(truth.scenes, alike.only(is_same_thing)) == np.arange(len(truth.scenes.boxes))
    return kept_once


def merge_duplicates(scenes: Scenes, duplicates: Duplicates) -> Scenes:
    """Return the images with each box replaced by its one of `kept_boxes`. Of equal triplets, the first is kept."""
    if not len(duplicates.first):
        return scenes
    replacement = kept_boxes(scenes, duplicates)
    stays = replacement == np.arange(len(replacement))
    row_after = np.cumsum(stays) - 1  # where each box that stays will be
    moved = np.append(row_after[replacement], -1)  # index -1, no object, reads the last entry and stays -1
    annotated = np.zeros(len(replacement), dtype=bool)  # whether the actions of the person in a box were annotated
    np.logical_or.at(annotated, replacement, scenes.annotated)
    merged = replace(
        scenes,
        boxes=scenes.boxes[stays],
        labels=scenes.labels[stays],
        annotated=annotated[stays],
        box_start=starts_of(stays)[scenes.box_start],
        subject=moved[scenes.subject],
        object=moved[scenes.object],
    )
    columns = np.stack([merged.subject, merged.object, merged.verb, merged.interaction])
    _, first = np.unique(columns, axis=1, return_index=True)
    return merged.select_triplets(np.sort(first))


def add_missing(scenes: Scenes, missing: Missing, vocabulary: Vocabulary, protocol: Protocol, same: float) -> Scenes:
    """Return the images with the missing triplets added. They are put on the annotated boxes that they belong to, or
    else on new boxes, those that the surest model predicts. New boxes with an IoU of at least `same` become one."""
    predictions = missing.predictions
    needs_box = (predictions.near < 0) & ~np.isnan(predictions.boxes[:, 0])  # [2, M], for subjects and objects
    image = np.broadcast_to(predictions.image, needs_box.shape)[needs_box]
    order = np.argsort(image, kind="stable")  # add_boxes wants them image by image
    new_boxes, label = predictions.boxes.swapaxes(1, 2)[needs_box], predictions.labels[needs_box]
    grown, added, moved = add_boxes(scenes, image[order], new_boxes[order], label[order])
    added_box = np.empty(len(order), dtype=np.int64)
    added_box[order] = added
    boxes_of_triplets = moved[predictions.near]  # moved: where each annotated box stands now
    boxes_of_triplets[needs_box] = added_box
    grown = add_triplets(
        grown,
        predictions.image,
        subject=boxes_of_triplets[0],
        object_=boxes_of_triplets[1],
        verb=class_columns(vocabulary)[0][predictions.class_],
        interaction=predictions.class_,
        score=np.full(len(predictions.image), np.nan),
    )
    is_new = np.zeros(len(grown.boxes), dtype=bool)
    is_new[added] = True
    alike = near_duplicates(grown, vocabulary, protocol, same)
    return merge_duplicates(grown, alike.only(is_new[alike.first] & is_new[alike.second]))
