"""A digest of ground truth, by which two papers can see whether they used the same annotations.

It is a sum over images, so that neither the order of the lines nor the shards they come in change it, and it is made of
what numbers depend on: image ids, boxes, labels, triplets, image-level labels and caveats, as a vocabulary reads them.
It tells copies apart; it is no protection against somebody who makes a collision on purpose.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from hoicli.arrays.scenes import Scenes

Hashes = NDArray[np.uint64]

_ODD = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""The constants of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""


def fingerprints(scenes: Scenes) -> Hashes:
    """[N] a 64-bit hash of each image. The numbers of boxes and triplets are their places within the image."""
    ids = [hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in scenes.image_ids]
    image = np.frombuffer(b"".join(ids), dtype="<u8").astype(np.uint64)
    total = _mixed(image + _number(scenes.caveats))
    first = scenes.box_start[:-1]
    of_box, of_hoi = scenes.image_of_box, scenes.image_of_hoi
    place = np.arange(len(of_box)) - first[of_box]
    boxes = _hashed(image[of_box], 1, place, scenes.labels, scenes.annotated, *(scenes.boxes + 0.0).T)
    place = np.arange(len(of_hoi)) - scenes.hoi_start[:-1][of_hoi]
    object_ = np.where(scenes.object < 0, -1, scenes.object - first[of_hoi])
    hois = _hashed(image[of_hoi], 2, place, scenes.subject - first[of_hoi], object_, scenes.verb, scenes.interaction)
    labelled, label = np.nonzero(scenes.known_object)
    labels = _hashed(image[labelled], 3, label)
    for rows, hashes in ((of_box, boxes), (of_hoi, hois), (labelled, labels)):
        np.add.at(total, rows, hashes)
    return total


def digest_of(hashes: Hashes) -> str:
    """Eight hexadecimal digits for the images with these hashes, in any order."""
    return f"{int(_mixed(np.add.reduce(hashes, keepdims=True))[0]) >> 32:08x}"


def _hashed(image: Hashes, kind: int, *columns: NDArray[np.generic]) -> Hashes:
    """A hash of each row of the columns; `kind` keeps rows of one table apart from those of another."""
    total = _mixed(image + np.uint64(kind))
    for column in columns:
        total = _mixed(total + _number(column))
    return total


def _number(column: NDArray[np.generic]) -> Hashes:
    """A column as 64-bit patterns."""
    wide = column.astype(np.float64 if column.dtype.kind == "f" else np.int64)
    return np.ascontiguousarray(wide).view(np.uint64)


def _mixed(values: Hashes) -> Hashes:
    """splitmix64's step, one-to-one and wrapping."""
    add, first, second = map(np.uint64, _ODD)
    z = values + add
    z = (z ^ (z >> np.uint64(30))) * first
    z = (z ^ (z >> np.uint64(27))) * second
    mixed: Hashes = z ^ (z >> np.uint64(31))
    return mixed
