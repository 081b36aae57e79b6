"""Hashes of ground truth, by whose digest two papers can see whether they used the same annotations.

The digest is of the sum of the images' hashes, so that neither the order of the lines nor the shards they come in
change it. An image's hash covers all that any metric reads of its record: its id; every box with its label, its
WordNet sense, whether its actions were annotated and whether it is around a crowd; every triplet with its verb, role
and sense; which triplets share a box; the image-level labels (a missing list differs from an empty one); and the
caveats. It does not cover the order of boxes and triplets: where released code reads it, `hash_order` tells two orders
apart. Labels are hashed in one of their spellings (`normalise_spelling`), so readers with and without a vocabulary
agree. It does not protect against somebody who makes two datasets of one digest on purpose."""

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


_LISTS_OF_NAMES = "image_hois", "ambiguous_hois", "caveats"
_RARE_FIELDS = (*_LISTS_OF_NAMES, "synsets", "annotated", "iscrowd")
"""Fields that few records have; a record without any of them is recognised by one comparison of sets."""


class ImageHasher:
    """Hashes the images of ground truth: call `add` with each record, then `hashes` with their columns."""

    def __init__(self) -> None:
        """Start without records. Of all records in turn: the labels of boxes; the triplets as parsed; the number of
        records; and, by a record's position, those of _RARE_FIELDS that it has."""
        self._labels: list[Any] = []
        self._hois: list[dict[str, Any]] = []
        self._images = 0
        self._rare_fields: dict[int, dict[str, Any]] = {}

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a parsed record. Its fields besides `labels` and `hois` may be unchecked and hold anything."""
        self._labels += record["labels"]
        self._hois += record["hois"]
        if not record.keys().isdisjoint(_RARE_FIELDS):
            self._rare_fields[self._images] = {key: record[key] for key in _RARE_FIELDS if key in record}
        self._images += 1

    def hashes(
        self, image_ids: Sequence[str], boxes: Floats, box_start: Ints, subject: Ints, object_: Ints, hoi_start: Ints
    ) -> Hashes:
        """Return [N] the hash of each image. The arguments are the columns of `Images` made of the added records."""
        corners = (boxes + 0.0).view(np.uint64).T  # the bits of each coordinate; + 0.0 makes -0.0 equal to 0.0
        box_hash = _hash_rows(*corners, _hash_texts(self._labels), *self._box_columns(box_start.tolist()))
        object_hash = np.where(object_ < 0, np.uint64(0), np.append(box_hash, np.uint64(0))[object_])
        # a triplet is its two boxes, its verb, and the role and the WordNet sense that it may have
        texts = [_hash_texts(list(map(dict.get, self._hois, repeat(key)))) for key in ("verb", "role", "verb_synset")]
        triplet_hash = _hash_rows(box_hash[subject], object_hash, *texts)
        # Each box takes up the hashes of its triplets, so that two boxes in one place are told apart by what each does.
        # Only the hash of an object is mixed, so that subject and object of a triplet cannot be exchanged.
        np.add.at(box_hash, subject, triplet_hash)
        np.add.at(box_hash, object_[object_ >= 0], _mix_bits(triplet_hash[object_ >= 0]))
        content_hash = np.zeros(len(image_ids), dtype=np.uint64)
        np.add.at(content_hash, runs_of(box_start), _mix_bits(box_hash))  # a sum: the order of boxes does not matter
        # image-level labels and caveats, which few records have
        list_hashes = np.zeros((len(_LISTS_OF_NAMES), len(image_ids)), dtype=np.uint64)
        for image, rare_fields in self._rare_fields.items():
            list_hashes[:, image] = [_hash_names(rare_fields.get(key)) for key in _LISTS_OF_NAMES]
        return _hash_rows(hash_ids(image_ids), content_hash, *list_hashes)

    def _box_columns(self, start: list[int]) -> tuple[Hashes, Hashes]:
        """Return ([B] a hash of the WordNet sense of each box; [B] its flags: 1 where the actions of the person in it
        were not annotated, 2 where it is around a crowd, 3 where both hold). start: the row of the first box of each
        image, and after them the number of boxes. A field that is no list of one value for each box is ignored."""
        senses, flags = np.zeros((2, start[-1]), dtype=np.uint64)
        for image, rare_fields in self._rare_fields.items():
            image_boxes = slice(start[image], start[image + 1])
            for key, column in (("synsets", senses), ("annotated", flags), ("iscrowd", flags)):
                values = rare_fields.get(key)
                if type(values) is not list or len(values) != image_boxes.stop - image_boxes.start:
                    continue
                if key == "synsets":
                    column[image_boxes] = _hash_texts(values)
                elif key == "annotated":
                    column[image_boxes] += _hash_array(value is False for value in values)
                else:
                    column[image_boxes] += _hash_array(2 * (value is True) for value in values)
        return senses, flags


def hash_order(image: Ints, key: Ints, item: Hashes, image_hashes: Hashes) -> Hashes:
    """Return [N] a hash of the order in which each image lists its items, such as its triplets; 0 for an image where
    order cannot matter, since all its items of the same key are equal.

    key: [M] such as the class of a triplet: order matters only among items of one image and key. item: [M] a hash of
    what makes items differ (`row_hashes`)."""
    group = image * (key.max(initial=0) + 1) + key
    order = np.argsort(group, kind="stable")
    image, key, item, start = image[order], key[order], item[order], run_starts(group[order])
    size = np.diff(np.append(start, len(item)))
    place_in_group = np.arange(len(item)) - np.repeat(start, size)
    first_of_group = np.repeat(item[start], size)
    # reduceat counts the items of each group that differ from its first; it cannot take an empty array
    is_mixed = np.add.reduceat(item != first_of_group, start) > 0 if len(start) else np.zeros(0, dtype=bool)
    matters = np.repeat(is_mixed, size)
    counts = np.bincount(image[matters], minlength=len(image_hashes))
    order_hash = np.zeros(len(image_hashes), dtype=np.uint64)
    np.add.at(order_hash, image[matters], row_hashes(item, key, place_in_group)[matters])
    return np.where(counts > 0, row_hashes(image_hashes, order_hash), np.uint64(0))


def row_hashes(*columns: NDArray[Any]) -> Hashes:
    """Return [M] a hash of each row of the columns [M]: integers, floats (-0.0 counts as 0.0) or hashes."""
    as_bits = (
        (column + 0.0).view(np.uint64) if column.dtype == float else column.astype(np.uint64) for column in columns
    )
    return _hash_rows(*as_bits)


def hash_ids(image_ids: Iterable[str]) -> Hashes:
    """Return [N] a hash of each image's id."""
    return _hash_array(map(_hash_bytes, image_ids))


def total_of(hashes: Hashes) -> int:
    """Return the sum of hashes, modulo 2^64. The sums of the shards of a dataset add up to the sum of the whole."""
    return int(np.add.reduce(hashes, dtype=np.uint64))


def _hash_names(values: Any) -> int:
    """Return a hash of a list of names or lists of names, whatever its order; 0 for anything else."""
    if type(values) is not list:
        return 0
    try:
        texts = [value if type(value) is str else "\0".join(value) for value in values]
    except TypeError:
        return 0
    return (sum(map(_hash_label, set(texts))) + 1) % (1 << 64)  # + 1 tells an empty list from a missing one


def _hash_texts(values: list[Any]) -> Hashes:
    """Return [M] a hash of each label or verb; 0 for a value that is no text."""
    if values.count(None) == len(values):  # few records have senses, or roles
        return np.zeros(len(values), dtype=np.uint64)
    return _hash_array(_hash_label(value) if type(value) is str else 0 for value in values)


def _hash_bytes(text: str) -> int:
    """Return a 64-bit BLAKE2b hash of a text's UTF-8 bytes (and of lone surrogates, which JSON can hold)."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@lru_cache(maxsize=1 << 14)
def _hash_label(text: str) -> int:
    """Return a hash of a label or a verb, the same in any of its spellings. Cached: few come often."""
    return _hash_bytes(normalise_spelling(text))


def _hash_array(values: Iterable[int]) -> Hashes:
    """Return integers from 0 to below 2^64 as an array of hashes."""
    return np.fromiter(values, dtype=np.uint64)


def _hash_rows(*columns: Hashes) -> Hashes:
    """Return [M] a hash of each row. columns: [M] each. Equal values in different columns count differently."""
    rows = np.stack(columns)
    salts = np.arange(1, len(columns) + 1, dtype=np.uint64)[:, np.newaxis] * _SECOND  # another one for each column
    return _mix_bits(np.add.reduce(_mix_bits(rows + salts), axis=0))


def _mix_bits(values: Hashes) -> Hashes:
    """Return each value with its 64 bits scrambled by splitmix64's step; different values stay different."""
    z = values + _ADDED
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    mixed: Hashes = z ^ (z >> np.uint64(31))
    return mixed
