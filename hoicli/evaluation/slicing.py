"""Which images and triplets are in each part of a slice."""

from __future__ import annotations

import numpy as np

from hoicli.errors import DataError
from hoicli.evaluation.slices import FILE, Slice
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.records.scenes import Scenes
from hoicli.vocabulary.labels import Vocabulary


def image_parts(slice_: Slice, truth: Scenes, vocabulary: Vocabulary) -> Bools:
    """[parts, N] which images of the ground truth are in each part of a slice of images. Raises `DataError` for a FILE
    of other images."""
    if slice_.measure == FILE:
        members = np.zeros((len(slice_.parts), len(truth.image_ids)), dtype=bool)
        for image, image_id in enumerate(truth.image_ids):
            members[list(slice_.images.get(image_id, ())), image] = True
        if not members.any():
            raise DataError(
                f"names {min(slice_.images)!r} and others, but no image of the ground truth", place=slice_.name
            )
        return members
    if slice_.measure == "people":
        people = np.isin(truth.labels, sorted(vocabulary.subject_ids))
        counts = _distinct(truth.image_of_box[people], truth.boxes[people], len(truth.image_ids))
    else:
        paired = truth.object >= 0
        ends = np.stack([truth.subject[paired], truth.object[paired]], axis=1)
        counts = _distinct(truth.image_of_hoi[paired], ends, len(truth.image_ids))
    return _one_of(np.searchsorted(slice_.cuts, counts, side="right"), len(slice_.parts))


def triplet_parts(slice_: Slice, scenes: Scenes, vocabulary: Vocabulary) -> Bools:
    """[parts, T] which triplets, predicted or annotated, are in each part of a slice of triplets, by their boxes. One
    whose subject has no label of a subject is in no part of `subject`."""
    if slice_.measure == "subject":
        labels = scenes.labels[scenes.subject] if len(scenes.labels) else scenes.subject
        members: Bools = np.array([[vocabulary.object_ids[part]] for part in slice_.parts]) == labels
        return members
    if not len(scenes.boxes):
        return _one_of(np.full(len(scenes.subject), len(slice_.parts) - 1), len(slice_.parts))
    subject, object_ = scenes.boxes[scenes.subject], scenes.boxes[scenes.object]
    value = object_area(object_) if slice_.measure == "objects" else centre_distance(subject, object_)
    number = np.searchsorted(slice_.cuts, value, side="right")
    number[scenes.object < 0] = len(slice_.parts) - 1  # `no_object`, the last part in a dataset with roles
    return _one_of(number, len(slice_.parts))


def object_area(boxes: Floats) -> Floats:
    """[M] the area of boxes [M, 4] as edges, x2 - x1 times y2 - y1 in pixels; 0 for an inverted box."""
    with np.errstate(over="ignore"):
        area: Floats = np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0).prod(axis=1)
    return area


def centre_distance(subject: Floats, object_: Floats) -> Floats:
    """[M] how far apart the centres of two boxes are, in the mean of the boxes' diagonals; 0 for one place.

    So it does not depend on the size of the image: two equal squares side by side are 0.71 apart.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        apart = _length((subject[:, :2] + subject[:, 2:]) / 2 - (object_[:, :2] + object_[:, 2:]) / 2)
        size = (_length(subject[:, 2:] - subject[:, :2]) + _length(object_[:, 2:] - object_[:, :2])) / 2
        distance = np.where(apart > 0, np.inf, 0.0)
        np.divide(apart, size, out=distance, where=size > 0)
    return distance


def _length(vectors: Floats) -> Floats:
    length: Floats = np.sqrt(vectors[:, 0] ** 2 + vectors[:, 1] ** 2)
    return length


def _distinct(image: Ints, rows: Floats | Ints, images: int) -> Ints:
    """[images] how many different rows each image has."""
    keys = np.unique(np.column_stack([image, rows]), axis=0)
    return np.bincount(keys[:, 0].astype(np.int64), minlength=images)


def _one_of(number: Ints, parts: int) -> Bools:
    """[parts, M] each of M in the part of its number."""
    members: Bools = np.arange(parts)[:, np.newaxis] == number
    return members
