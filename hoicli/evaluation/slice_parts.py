"""Which images and triplets are in each part of a slice.

Apart from `hoicli.evaluation.slices`, which declares the slices for `--help` and the Tab key, without loading NumPy."""

from __future__ import annotations

import numpy as np

from hoicli.errors import DataError
from hoicli.evaluation.slices import FILE, Slice
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.records.scenes import Scenes
from hoicli.vocabulary.labels import Vocabulary


def image_parts(slice_: Slice, truth: Scenes, vocabulary: Vocabulary) -> Bools:
    """Return a mask [parts, N] of the images in each part of a slice of images: by a file, or by how many annotated
    people or pairs the image has. Raises `DataError` for a slice file that names none of the images."""
    if slice_.measure == FILE:
        members = np.zeros((len(slice_.parts), len(truth.image_ids)), dtype=bool)
        for image, image_id in enumerate(truth.image_ids):
            members[list(slice_.images.get(image_id, ())), image] = True
        if not members.any():
            problem = f"names {min(slice_.images)!r} and others, but no image of the ground truth"
            raise DataError(problem, place=slice_.name)
        return members
    if slice_.measure == "people":
        people = np.isin(truth.labels, sorted(vocabulary.subject_ids))
        counts = _count_distinct(truth.image_of_box[people], truth.boxes[people], len(truth.image_ids))
    else:
        paired = truth.object >= 0
        pairs = np.stack([truth.subject[paired], truth.object[paired]], axis=1)
        counts = _count_distinct(truth.image_of_hoi[paired], pairs, len(truth.image_ids))
    part = np.searchsorted(slice_.cuts, counts, side="right")
    return _part_masks(part, len(slice_.parts))


def triplet_parts(slice_: Slice, scenes: Scenes, vocabulary: Vocabulary) -> Bools:
    """Return a mask [parts, T] of the triplets, predicted or annotated, in each part of a slice of triplets: by the
    label of the subject, the area of the object, or the distance between the two boxes. A triplet whose subject has no
    label of a subject is in no part of the slice `subject`."""
    if slice_.measure == "subject":
        labels = scenes.labels[scenes.subject] if len(scenes.labels) else scenes.subject  # both empty without boxes
        label_of_part = np.array([vocabulary.object_ids[part] for part in slice_.parts])
        members: Bools = label_of_part[:, np.newaxis] == labels
        return members
    last_part = len(slice_.parts) - 1
    if not len(scenes.boxes):
        return _part_masks(np.full(len(scenes.subject), last_part), len(slice_.parts))
    objects = scenes.boxes[scenes.object]
    if slice_.measure == "objects":
        value = object_area(objects)
    else:
        value = centre_distance(scenes.boxes[scenes.subject], objects)
    part = np.searchsorted(slice_.cuts, value, side="right")
    part[scenes.object < 0] = last_part  # `no_object`, which is the last part in a dataset with roles
    return _part_masks(part, len(slice_.parts))


def object_area(boxes: Floats) -> Floats:
    """Return [M] the area in pixels of each of the boxes [M, 4] (x1, y1, x2, y2), as (x2 - x1) * (y2 - y1); 0 for an
    inverted box. Corners near the largest float may give infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        width, height = (boxes[:, 2:] - boxes[:, :2]).T
        area: Floats = np.where((width > 0) & (height > 0), width * height, 0.0)
    return area


def centre_distance(subject: Floats, object_: Floats) -> Floats:
    """Return [M] the distance between the centres of two boxes, divided by the mean of their diagonals, so that it does
    not depend on the size of the image: two equal squares side by side are 0.71 apart. subject, object_ [M, 4]: the
    corners of the boxes. The distance is 0 for equal centres, and infinite between two boxes that are single points."""
    with np.errstate(over="ignore", invalid="ignore"):
        subject_centre = (subject[:, :2] + subject[:, 2:]) / 2
        object_centre = (object_[:, :2] + object_[:, 2:]) / 2
        apart = _length(subject_centre - object_centre)
        mean_diagonal = (_length(subject[:, 2:] - subject[:, :2]) + _length(object_[:, 2:] - object_[:, :2])) / 2
        distance = np.where(apart > 0, np.inf, 0.0)
        np.divide(apart, mean_diagonal, out=distance, where=mean_diagonal > 0)
    return distance


def _length(vectors: Floats) -> Floats:
    """Return [M] the Euclidean length of each vector [M, 2]."""
    length: Floats = np.sqrt(vectors[:, 0] ** 2 + vectors[:, 1] ** 2)
    return length


def _count_distinct(image: Ints, rows: Floats | Ints, images: int) -> Ints:
    """Return [images] how many different rows (boxes, for example) each image has. image [K]: the image of each row."""
    keys = np.unique(np.column_stack([image, rows]), axis=0)
    return np.bincount(keys[:, 0].astype(np.int64), minlength=images)


def _part_masks(part: Ints, parts: int) -> Bools:
    """Return a mask [parts, M] of the items in each part of a slice. part [M]: the number of each item's part."""
    members: Bools = np.arange(parts)[:, np.newaxis] == part
    return members
