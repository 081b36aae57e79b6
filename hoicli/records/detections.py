"""Predictions of one image given as arrays, checked; and many of them as `Scenes`, or as plain arrays (`State`).

What is wrong with an array is said in the sentences of `hoicli.records.image`, with the argument and the index in place
of a record's field: a fast check shows that something is wrong, then the arrays become a record, which has a problem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError
from hoicli.io.streams import Item
from hoicli.records.arrays import (
    all_within,
    box_array,
    box_corners,
    check_range,
    flat_array,
    read_array,
    read_integers,
    to_floats,
)
from hoicli.records.columns import NO_BOX
from hoicli.records.image import problems, unknown_label
from hoicli.records.interaction_arrays import check_objects, replace_interactions
from hoicli.records.kit import Floats, Ints, join_parts, starts_of
from hoicli.records.parsing import Record, short
from hoicli.records.scenes import class_table
from hoicli.vocabulary.labels import Spelled, Vocabulary

TRIPLET_COLUMNS = ("subject", "object", "verb", "score")
"""The arguments with a value for each triplet; also `role`, where the vocabulary has roles."""

State = dict[str, Any]
"""The predictions of many images as arrays by name; typed so that `numpy.savez(path, **state)` passes type checkers.

Per image: `dataset` (a fingerprint), `id_counts`, `box_counts` and `triplet_counts`; and the rows of all images: `ids`
(UTF-8 bytes), boxes, labels, subject, object, verb, role, score, as `Detections` has them. Several states concatenated
along the first axis, array by array, are the state of all their images."""
_OF_BOXES = ("boxes", "labels")
_OF_TRIPLETS = (*TRIPLET_COLUMNS, "role")
_RUNS = {"ids": "id_counts", **dict.fromkeys(_OF_BOXES, "box_counts"), **dict.fromkeys(_OF_TRIPLETS, "triplet_counts")}
"""The arrays of a state that have some rows for each image, with the array that says how many."""
_COUNTS = tuple(dict.fromkeys(_RUNS.values()))
NAMES = (*_COUNTS, "dataset", *_RUNS)

NOISE = 1e-5
"""Two runs of a network in single precision differ by this part of the largest number, at most."""


@dataclass(frozen=True)
class Detections:
    """The boxes [B] and the triplets [T] of one image, as arrays.

    boxes [B, 4]: x1, y1, x2, y2 in pixels from 0, float32 or float64; labels [B]: object ids, -1 for no label;
    subject, object [T]: rows of `boxes`, NO_BOX (-1) for no object; verb [T]: verb ids; role [T]: 0 for the verb alone,
    else 1 + the number of the role in the vocabulary (all 0 if it has no roles); score [T]: NaN for ground truth."""

    image_id: str
    boxes: NDArray[np.floating[Any]]
    labels: Ints
    subject: Ints
    object: Ints
    verb: Ints
    role: Ints
    score: Floats

    def either(self, other: Detections) -> Detections | None:
        """Return one of the two if they are the same but for rounding, None if not. Which one does not depend on their
        order."""
        for column in fields(self)[1:]:  # all but the image's id
            values, others = getattr(self, column.name), getattr(other, column.name)
            if values.shape != others.shape:
                return None
            is_measured = values.size and column.name in ("boxes", "score")
            tolerance = NOISE * max(np.abs(values).max(), np.abs(others).max()) if is_measured else 0
            with np.errstate(over="ignore"):  # of numbers that are far apart
                if not (np.abs(values - others) <= tolerance).all():
                    return None
        return min(self, other, key=lambda image: (image.score.tolist(), image.boxes.tolist()))

    def to_record(self, vocabulary: Vocabulary, *, scored: bool) -> Record:
        """Return the detections as an image record, with names for the numbers. scored: with the triplets' scores."""
        names = [*vocabulary.objects, None]  # a label of -1 finds the last one
        roles = [None, *vocabulary.roles]  # a role of 0 is the verb alone
        columns = (getattr(self, name).tolist() for name in _OF_TRIPLETS)
        hois: list[Record] = []
        for subject, object_, verb, score, role in zip(*columns, strict=True):
            lacks_object = bool(vocabulary.roles) and object_ == NO_BOX
            hoi = {"subject": subject, "object": None if lacks_object else object_, "verb": vocabulary.verbs[verb]}
            if role:
                hoi["role"] = roles[role]
            if scored:
                hoi["score"] = score
            hois.append(hoi)
        labels = [names[label] for label in self.labels.tolist()]
        return {"image_id": self.image_id, "boxes": self.boxes.tolist(), "labels": labels, "hois": hois}


def check_detections(
    image_id: str, arrays: Mapping[str, Any], vocabulary: Vocabulary, *, scored: bool = True
) -> Detections:
    """Check the arrays of one image, and return them as `Detections`.

    arrays: of any library, by the names of the fields of `Detections`; also `box_format` and `size`, as `box_corners`
    takes them. Labels, verbs and roles may be names or numbers of the vocabulary; if it has roles, -1 or None stands
    for no label, no object and no role. `interaction` may stand for `verb`, and then the labels may be left out (see
    `replace_interactions`). scored: whether they are predictions, which need scores.

    Raises `DataError` that names the argument and the index, but not the image."""
    numbers = arrays.get("interaction")
    if numbers is not None:
        arrays_with_verbs = replace_interactions(arrays, vocabulary)
        image = check_detections(image_id, arrays_with_verbs, vocabulary, scored=scored)
        check_objects(numbers, image.labels[image.object], vocabulary)
        return image
    image = Detections(image_id, **_read_columns(arrays, vocabulary, scored=scored))
    if not _is_sound(image, vocabulary, scored=scored):
        record = image.to_record(vocabulary, scored=scored)
        for problem in problems(record, vocabulary, scored=scored, optional_fields=()):  # the first of these is raised
            text = problem.text.replace("the line has", "the image has")
            field = re.sub(r"^hois(\[\d+\])\.(\w+)$", r"\2\1", problem.field)  # hois[3].subject is subject[3]
            raise replace(problem, field=field, message=text).error("")
        raise AssertionError("arrays failed the fast check and have no problem")
    return image


class ArrayLine(Item):
    """An image given as arrays, which stands in for a line. `data` is made only if it is needed."""

    __slots__ = ("_data", "_record", "image")

    def __init__(self, name: str, index: str, image: Detections, record: Callable[[], bytes]) -> None:
        """Set the image. name, index: of the argument; record: returns the image's line of JSON."""
        self.file = name
        self.number = 1
        self.index = index
        self.image = image
        self._record = record
        self._data = b""  # made by `data`

    @property
    def data(self) -> bytes:  # type: ignore[override]
        """Return the record of the image as a line of JSON."""
        self._data = self._data or self._record()
        return self._data


def _read_columns(arrays: Mapping[str, Any], vocabulary: Vocabulary, *, scored: bool) -> dict[str, Any]:
    """Return the fields of `Detections`, except the image's id, by name. arrays: what the caller gave, names or ids,
    and perhaps `box_format` and `size`. Raises `DataError` that names the argument for a wrong shape or type, or a
    number that is no id. `_is_sound` checks values."""
    has_roles = bool(vocabulary.roles)  # V-COCO: labels, objects and roles may be missing
    names = TRIPLET_COLUMNS if scored else TRIPLET_COLUMNS[:-1]  # the last is `score`
    _check_names(arrays, names, has_roles=has_roles)
    boxes = box_corners(box_array(arrays["boxes"]), arrays.get("box_format") or "xyxy", arrays.get("size"))
    columns = {
        "boxes": boxes,
        "labels": _read_ids(arrays["labels"], "labels", "object", vocabulary),
        "subject": read_integers(arrays["subject"], "subject"),
        "object": read_integers(arrays["object"], "object"),
        "verb": _read_ids(arrays["verb"], "verb", "verb", vocabulary),
    }
    count = len(columns["subject"])
    columns["score"] = _read_floats(arrays["score"], "score") if scored else np.full(count, np.nan)
    columns["role"] = np.zeros(count, dtype=np.int64)
    if arrays.get("role") is not None:
        columns["role"] = 1 + _read_ids(arrays["role"], "role", "role", vocabulary)
    for name in _OF_TRIPLETS:
        if len(columns[name]) != count:
            problem = f"{len(columns[name])} values for {count} triplets (`subject` has {count})"
            raise DataError(problem, field=name)
    return columns


def _is_sound(image: Detections, vocabulary: Vocabulary, *, scored: bool) -> bool:
    """Return whether the values of detections make sense: finite numbers, indices of boxes that there are, and roles
    that fit their verbs. This is faster than to check them as a record, but does not say what is wrong."""
    count = len(image.boxes)
    if len(image.labels) != count or not _all_finite(image.boxes):
        return False
    if not len(image.subject):
        return True
    if scored and not _all_finite(image.score):
        return False
    lowest_object = NO_BOX if vocabulary.roles else 0
    if not (all_within(image.subject, 0, count) and all_within(image.object, lowest_object, count)):
        return False
    if not vocabulary.roles:
        return True
    verb_has_role = class_table(vocabulary)[image.verb, image.role] >= 0
    role_if_object = (image.role > 0) | (image.object < 0)
    return bool((verb_has_role & role_if_object).all())


def _all_finite(array: NDArray[np.floating[Any]]) -> bool:
    """Return whether all numbers of an array are finite. On small arrays `all()` takes twice as long."""
    return bool(np.count_nonzero(np.isfinite(array)) == array.size)


def _check_names(arrays: Mapping[str, Any], of_triplets: Sequence[str], *, has_roles: bool) -> None:
    """Raise `DataError` for an argument that is missing or unknown. has_roles: whether there may be a `role`."""
    needed = ("boxes", "labels", *of_triplets)
    for name in needed:
        if arrays.get(name) is None:
            raise DataError(f"missing; an image has {', '.join(needed)}, empty where there are none", field=name)
    known_names = (*needed, "role") if has_roles else needed
    allowed = (*known_names, "box_format", "size")
    for name, value in arrays.items():
        if value is not None and name not in allowed:
            raise DataError(f"not of this ground truth or dataset; there are {', '.join(known_names)}", field=name)


def _read_floats(values: Any, field: str) -> Floats:
    """Return an array of any library with one dimension as float64. field: what errors call it. Raises `DataError`."""
    array = read_array(values, field)
    return to_floats(flat_array(array, field), field).astype(np.float64, copy=False)


def _read_ids(values: Any, field: str, what: str, vocabulary: Vocabulary) -> Ints:
    """Return the ids of verbs, object labels or roles that are given as names, or as ids already.

    field: what errors call the values; what: "verb", "object" or "role". If the vocabulary has roles, a label or a role
    may also be None or -1, and its id is -1. Raises `DataError` for a value that is no name or id."""
    ids_by_name, limits = _number_names(vocabulary, what)
    is_list_of_names = isinstance(values, list | tuple) and bool(values) and isinstance(values[0], str | None)
    if not is_list_of_names:
        array = flat_array(read_array(values, field), field)
        if array.dtype.kind in "iu" or not array.size:
            ids = array.astype(np.int64, copy=True)
            check_range(ids, field=field, **limits)
            return ids
        if array.dtype.kind not in "UTO":
            raise DataError(f"has dtype {array.dtype}, wants names or integers", field=field)
        values = array.tolist()
    try:
        return np.array([ids_by_name[value] for value in values], dtype=np.int64)
    except (KeyError, TypeError):
        are_wrong = (not isinstance(value, str | None) or value not in ids_by_name for value in values)
        index = next(row for row, is_wrong in enumerate(are_wrong) if is_wrong)
    name = values[index]
    place = f"{field}[{index}]"
    if not isinstance(name, str):
        raise DataError(f"{short(name)} is no name; give names alone, or numbers alone", field=place)
    if what == "role":
        raise DataError(f"unknown role {name!r}; choose from {', '.join(vocabulary.roles)}", field=place)
    raise unknown_label(place, what, name, vocabulary).error("")


@cache
def _number_names(vocabulary: Vocabulary, what: str) -> tuple[Mapping[str | None, int], dict[str, Any]]:
    """Return (ids by name, the limits of ids as arguments of `check_range`) for `what`: "verb", "object" or "role". In
    a dataset with roles, None stands for no label and no role, and has the id -1."""
    ids, count = {
        "verb": (vocabulary.verb_ids, len(vocabulary.verbs)),
        "object": (vocabulary.object_ids, len(vocabulary.objects)),
        "role": ({role: number for number, role in enumerate(vocabulary.roles)}, len(vocabulary.roles)),
    }[what]
    no_name = {None: -1} if vocabulary.roles and what != "verb" else {}
    meaning = f"{what}s in {vocabulary.name} (see `hoicli vocab`)"
    limits = {"count": count, "meaning": meaning, "lowest": -1 if no_name else 0}
    return Spelled({**ids, **no_name}), limits


def make_state(images: Sequence[Detections], vocabulary: Vocabulary) -> State:
    """Return the predictions of these images as a `State`."""
    # surrogatepass: an id that Python made of a file name may hold a lone surrogate
    ids = [image.image_id.encode("utf-8", "surrogatepass") for image in images]
    state: State = {
        "dataset": np.full(len(images), _fingerprint(vocabulary), dtype=np.int64),
        "id_counts": np.array([len(image_id) for image_id in ids], dtype=np.int64),
        "box_counts": np.array([len(image.boxes) for image in images], dtype=np.int64),
        "triplet_counts": np.array([len(image.score) for image in images], dtype=np.int64),
        "ids": np.frombuffer(b"".join(ids), dtype=np.uint8).copy(),
    }
    for name in (*_OF_BOXES, *_OF_TRIPLETS):
        dtype_if_empty = np.float64 if name in ("boxes", "score") else np.int64
        state[name] = join_parts([getattr(image, name) for image in images], dtype_if_empty)
    state["boxes"] = state["boxes"].reshape(-1, 4)
    return state


def read_state(state: Mapping[str, Any], vocabulary: Vocabulary, place: str) -> Iterator[Detections]:
    """Yield the images of a state, each checked as arrays from a network are. Raises `DataError` for a bad image, and
    for what is no state. place: what errors call the state."""
    for image_id, arrays in images_of_state(state, vocabulary, place):
        try:
            yield check_detections(image_id, arrays, vocabulary)
        except DataError as error:
            raise error.add_place(f"{place}: image {short(image_id)}") from None


def images_of_state(
    state: Mapping[str, Any], vocabulary: Vocabulary, place: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (id, arrays by the fields of `Detections`, not yet checked) of each image of a state. Raises `DataError`
    for what is no state. place: what errors call it."""
    missing = [key for key in NAMES if key not in state]
    if missing:
        raise DataError(f"no {missing[0]!r} in it; give what state() returned", place=place)
    # _RUNS: the arrays that hold the rows of all images in turn, each with the array of how many rows an image has
    arrays = {key: read_array(state[key], key) for key in ("dataset", *_RUNS)}
    try:
        whole_numbers = [arrays[key] for key in arrays if key not in ("boxes", "score")]
        if any(array.ndim != 1 or (array.size and array.dtype.kind not in "iu") for array in whole_numbers):
            raise ValueError
        starts = {key: starts_of(_check_counts(read_array(state[key], key))) for key in _COUNTS}
        image_count = len(arrays["dataset"])
        fits = all(len(each_start) == image_count + 1 for each_start in starts.values())
        fits &= all(len(arrays[key]) == starts[counts_key][-1] for key, counts_key in _RUNS.items())
        text = bytes(arrays["ids"].tolist())  # ValueError for a number that is no byte
        id_bounds = pairwise(starts["id_counts"].tolist()) if fits else ()
        ids = [text[start:end].decode("utf-8", "surrogatepass") for start, end in id_bounds]
    except (ValueError, TypeError, OverflowError):
        fits = False
    if not fits:
        raise DataError("its arrays do not fit together; give what state() returned, whole", place=place)
    if (arrays["dataset"] != _fingerprint(vocabulary)).any():
        raise DataError(f"is of another dataset than {vocabulary.signed}; give its dataset", place=place)
    arrays["role"] = arrays["role"] - 1  # `Detections` has 0 for the action itself, callers give -1
    starts_by_key = {
        key: starts[_RUNS[key]] for key in (*_OF_BOXES, *_OF_TRIPLETS) if key != "role" or vocabulary.roles
    }
    for image, image_id in enumerate(ids):
        yield image_id, {key: arrays[key][start[image] : start[image + 1]] for key, start in starts_by_key.items()}


def _check_counts(counts: NDArray[Any]) -> Ints:
    """Return counts of rows as int64. Raises `ValueError` for what are no plausible counts."""
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 0).any() or (counts > 1 << 40).any():
        raise ValueError
    return counts.astype(np.int64)


def _fingerprint(vocabulary: Vocabulary) -> int:
    """Return a number of 48 bits that tells datasets apart: a hash of the vocabulary's name in signatures."""
    return int.from_bytes(sha256(vocabulary.signed.encode()).digest()[:6], "big")
