"""Hashes of ground truth, by whose digest two papers can see whether they used the same annotations.

The digest is of a sum over images, so that neither the order of the lines nor the shards they come in change it. An
image's hash is of all that any metric reads of its record: its id; every box with its label, its sense, whether its
actions were annotated and whether it is a crowd's; every triplet with its verb, role and sense; which triplets share a
box; the image-level labels, none being another thing than an empty list; and the caveats. Not of the order of boxes and
triplets: where released code reads it, `orders` tells two orders apart. Labels are hashed in one of their spellings
(`spelled`), so readers with and without a vocabulary agree. It does not protect against somebody who makes two of one
digest on purpose.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.records.kit import Floats, Ints, run_starts, runs_of
from hoicli.vocabulary.labels import normalise_spelling

Hashes = NDArray[np.uint64]

_ADDED, _FIRST, _SECOND = (np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
"""The constants of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""


_OF_IMAGES = "image_hois", "ambiguous_hois", "caveats"
_SELDOM = (*_OF_IMAGES, "synsets", "annotated", "iscrowd")
"""Fields that few records have, so that one look passes over all of them."""


class Stated:
    """Collects, record by record, what goes into the hashes of images but is not in the columns of `Images`."""

    def __init__(self) -> None:
        self._labels: list[Any] = []
        self._hois: list[dict[str, Any]] = []
        self._images = 0
        self._rare_fields: dict[int, dict[str, Any]] = {}

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record. Fields that its reader does not check may hold anything."""
        self._labels += record["labels"]
        self._hois += record["hois"]
        if not record.keys().isdisjoint(_SELDOM):
            self._rare_fields[self._images] = {key: record[key] for key in _SELDOM if key in record}
        self._images += 1

    def hashes(
        self,
        image_ids: Sequence[str],
        boxes: Floats,
        box_start: Ints,
        subject: Ints,
        object_: Ints,
        hoi_start: Ints,
    ) -> Hashes:
        """Return [N] the hash of each image. The arguments are columns of `Images`."""
        corners = (boxes + 0.0).view(np.uint64).T  # -0.0 is 0.0
        box_hash = _hash_rows(*corners, _texts(self._labels), *self._box_columns(box_start.tolist()))
        object_hash = np.where(object_ < 0, np.uint64(0), np.append(box_hash, np.uint64(0))[object_])
        texts = [_texts(list(map(dict.get, self._hois, repeat(key)))) for key in ("verb", "role", "verb_synset")]
        triplet_hash = _hash_rows(box_hash[subject], object_hash, *texts)
        np.add.at(box_hash, subject, triplet_hash)
        np.add.at(box_hash, object_[object_ >= 0], _mix_bits(triplet_hash[object_ >= 0]))
        content = np.zeros(len(image_ids), dtype=np.uint64)
        np.add.at(content, runs_of(box_start), _mix_bits(box_hash))
        labels = np.zeros((len(_OF_IMAGES), len(image_ids)), dtype=np.uint64)
        for image, rare_fields in self._rare_fields.items():
            labels[:, image] = [_hash_names(rare_fields.get(key)) for key in _OF_IMAGES]
        return _hash_rows(names(image_ids), content, *labels)

    def _box_columns(self, start: list[int]) -> tuple[Hashes, Hashes]:
        """Return ([B] a hash of the sense of each box; [B] its flags: 1 where its actions were not annotated, 2 where
        it is a crowd's, 3 where both hold). start: the first box of each image."""
        senses, flags = np.zeros((2, start[-1]), dtype=np.uint64)
        for image, rare_fields in self._rare_fields.items():
            own_boxes = slice(start[image], start[image + 1])
            for key, column in (("synsets", senses), ("annotated", flags), ("iscrowd", flags)):
                values = rare_fields.get(key)
                if type(values) is not list or len(values) != own_boxes.stop - own_boxes.start:
                    continue
                if key == "synsets":
                    column[own_boxes] = _texts(values)
                else:
                    column[own_boxes] += _column(
                        2 * (value is True) if key == "iscrowd" else value is False for value in values
                    )
        return senses, flags


def orders(owner: Ints, key: Ints, item: Hashes, images: Hashes) -> Hashes:
    """Return [N] a hash of the order in which each image lists its items; 0 where all items of the same key are equal.

    owner: [M] the image of each item. key: [M] what an item is compared with, a class or a label, from 0: order matters
    only within an image and key. item: [M] a hash of what makes items differ (`row_hashes`). images: [N] the hash of
    each image."""
    group = owner * (key.max(initial=0) + 1) + key
    order = np.argsort(group, kind="stable")
    owner, key, item, start = owner[order], key[order], item[order], run_starts(group[order])
    size = np.diff(np.append(start, len(item)))
    rank, first = np.arange(len(item)) - np.repeat(start, size), np.repeat(item[start], size)
    differs = np.repeat(np.add.reduceat(item != first, start) > 0, size) if len(start) else np.zeros(0, dtype=bool)
    counts, order_hash = np.bincount(owner[differs], minlength=len(images)), np.zeros(len(images), dtype=np.uint64)
    np.add.at(order_hash, owner[differs], row_hashes(item, key, rank)[differs])
    return np.where(counts > 0, row_hashes(images, order_hash), np.uint64(0))


def row_hashes(*columns: NDArray[Any]) -> Hashes:
    """Return [M] a hash of each row. columns: of integers, of floats (where -0.0 counts as 0.0), or of hashes."""
    as_bits = (
        (column + 0.0).view(np.uint64) if column.dtype == float else column.astype(np.uint64) for column in columns
    )
    return _hash_rows(*as_bits)


def names(image_ids: Iterable[str]) -> Hashes:
    """Return [N] a hash of each image's id."""
    return _column(map(_digest, image_ids))


def total_of(hashes: Hashes) -> int:
    """Return the sum of hashes, modulo 2^64: the totals of shards add up to the total of the whole."""
    return int(np.add.reduce(hashes, dtype=np.uint64))


def _hash_names(values: Any) -> int:
    """Return a hash of a list of names, or of lists of names, in any order; 0 for anything that is no such list."""
    if type(values) is not list:
        return 0
    try:
        texts = [value if type(value) is str else "\0".join(value) for value in values]
    except TypeError:
        return 0
    return (sum(map(_text, set(texts))) + 1) % (1 << 64)  # + 1: an empty list is not a missing one


def _texts(values: list[Any]) -> Hashes:
    """Return a hash of each text; 0 for a value that is no text."""
    types = set(map(type, values))
    if types <= {type(None)}:
        return np.zeros(len(values), dtype=np.uint64)
    if types != {str}:
        values = [value if type(value) is str else None for value in values]
    return _column(map(_text, values))


def _digest(text: str) -> int:
    """Return the first 64 bits of a text's BLAKE2b hash."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@lru_cache(maxsize=1 << 14)
def _text(text: str | None) -> int:
    """Return a hash of a label or a verb, the same in any spelling; 0 for None. Cached, as few texts recur."""
    return 0 if text is None else _digest(normalise_spelling(text))


def _column(values: Iterable[int]) -> Hashes:
    """Return hashes as an array."""
    return np.fromiter(values, dtype=np.uint64)


def _hash_rows(*columns: Hashes) -> Hashes:
    """Return a hash of each row. Equal values in different columns count differently."""
    rows = np.stack(columns)
    salts = np.arange(1, len(columns) + 1, dtype=np.uint64)[:, np.newaxis] * _SECOND
    return _mix_bits(np.add.reduce(_mix_bits(rows + salts), axis=0))


def _mix_bits(values: Hashes) -> Hashes:
    """Return the values after the mixing step of splitmix64, which keeps different values different."""
    z = values + _ADDED
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    mixed: Hashes = z ^ (z >> np.uint64(31))
    return mixed
