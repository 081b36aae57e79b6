"""Hashes of ground truth, by whose digest two papers can see whether they used the same annotations.

The digest is of a sum over images, so that neither the order of the lines nor the shards they come in change it. A hash
is of an image's id and its triplets with an object: verb, object, and the boxes of both. What else numbers depend on
(image-level labels, actions without object, people nobody annotated) has settings of its own in signatures, so that one
file has one digest whatever reads it. It does not protect against somebody who makes two of one digest on purpose.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hoicli.arrays.images import Images
from hoicli.arrays.kit import Ints, runs_of
from hoicli.arrays.scenes import Scenes
from hoicli.arrays.triplets import Triplets
from hoicli.vocabulary.labels import Vocabulary

Hashes = NDArray[np.uint64]

_ADDED, _FIRST, _SECOND = (np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
"""The constants of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""


_AT_ONCE = 1 << 13
"""Images hashed at a time: some MB."""


def of_scenes(scenes: Scenes, vocabulary: Vocabulary) -> Hashes:
    """[N] a hash of each image of ground truth."""
    of_box = scenes.labels
    return _of_images(
        scenes, vocabulary.verbs, scenes.verb, vocabulary.objects, lambda rows: of_box[scenes.object[rows]]
    )


def of_triplets(triplets: Triplets) -> Hashes:
    """[N] a hash of each image of ground truth with free labels: the same as of `Scenes` with these labels."""
    verbs, objects = ([name or "" for name, _ in names] for names in (triplets.verbs, triplets.objects))
    return _of_images(triplets, verbs, triplets.verb, objects, triplets.label.__getitem__)


def total_of(hashes: Hashes) -> int:
    """The sum of hashes, modulo 2^64: totals of shards add up the same way."""
    return int(np.add.reduce(hashes, dtype=np.uint64))


def _of_images(
    images: Images, verbs: Sequence[str], verb: Ints, objects: Sequence[str], label: Callable[[Ints], Ints]
) -> Hashes:
    """verb [T]: numbers of names; label: that of the objects of some triplets, -1 for a box without one."""
    names = _texts(verbs), np.append(_texts(objects), np.uint64(0))
    hashes = np.zeros(len(images.image_ids), dtype=np.uint64)
    for start in range(0, len(hashes), _AT_ONCE):
        end = min(start + _AT_ONCE, len(hashes))
        own = hashes[start:end]
        own += _mixed(_texts(images.image_ids[start:end]))
        hoi, box = images.hoi_start[start : end + 1], images.box_start[[start, end]]
        pairs = np.flatnonzero(images.object[hoi[0] : hoi[-1]] >= 0)
        image, pairs = runs_of(hoi)[pairs], pairs + hoi[0]
        row = own[image]
        corners = (images.boxes[box[0] : box[1]] + 0.0).view(np.uint64)  # -0.0 is 0.0
        ends = (corners[rows[pairs] - box[0]].T for rows in (images.subject, images.object))
        for column in (*chain.from_iterable(ends), names[0][verb[pairs]], names[1][label(pairs)]):
            row = _mixed(row + column)
        np.add.at(own, image, row)
    return hashes


def _texts(texts: Iterable[str]) -> Hashes:
    """A hash of each text."""
    found = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(found), dtype="<u8").astype(np.uint64)


def _mixed(values: Hashes) -> Hashes:
    """splitmix64's step: one-to-one, and wrapping."""
    z = values + _ADDED
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    mixed: Hashes = z ^ (z >> np.uint64(31))
    return mixed
