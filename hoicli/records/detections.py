"""Predictions of one image given as arrays, checked; and many of them as `Scenes`.

What is wrong with an array is said in the sentences of `hoicli.records.image`, with the argument and the index in place
of a record's field: a fast check shows that something is wrong, then the arrays become a record, which has a problem.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError, UsageError
from hoicli.records.columns import NO_BOX, RawImages
from hoicli.records.foreign import as_array
from hoicli.records.image import problems, unknown_label
from hoicli.records.kit import Floats, Ints, starts_of
from hoicli.records.parsing import Record, short
from hoicli.records.reading import numbered_scenes
from hoicli.records.scenes import Scenes, class_table
from hoicli.vocabulary.labels import Spelled, Vocabulary

TRIPLET_COLUMNS = ("subject", "object", "verb", "score")
"""The arguments with a value for each triplet; also `role`, where the vocabulary has roles."""

NOISE = 1e-5
"""Two runs of a network in single precision differ by this part of the largest number, at most."""


@dataclass(frozen=True)
class Detections:
    """One image's B boxes and T triplets.

    boxes [B, 4] float32 or float64, pixels, 0-based x1 y1 x2 y2; labels [B] object ids, -1 for none; subject, object
    [T] rows of `boxes`, NO_BOX for no object; verb [T] verb ids; role [T] 0 for the action itself, else 1 + the role's
    place in the vocabulary (all 0 in a vocabulary without roles); score [T], NaN for ground truth.
    """

    image_id: str
    boxes: NDArray[np.floating[Any]]
    labels: Ints
    subject: Ints
    object: Ints
    verb: Ints
    role: Ints
    score: Floats

    def either(self, other: Detections) -> Detections | None:
        """One of two that are the same but for a network's noise, whichever is `self`; None if they are not."""
        for column in fields(self)[1:]:
            one, two = getattr(self, column.name), getattr(other, column.name)
            if one.shape != two.shape:
                return None
            measured = one.size and column.name in ("boxes", "score")
            within = NOISE * max(np.abs(one).max(), np.abs(two).max()) if measured else 0
            with np.errstate(over="ignore"):  # of numbers that are far apart
                if not (np.abs(one - two) <= within).all():
                    return None
        return min(self, other, key=lambda one: (one.score.tolist(), one.boxes.tolist()))

    def record(self, vocabulary: Vocabulary, *, scored: bool) -> Record:
        """The same as an image record, with scores or without."""
        names, roles = [*vocabulary.objects, None], [None, *vocabulary.roles]
        columns = (getattr(self, name).tolist() for name in (*TRIPLET_COLUMNS, "role"))
        hois: list[Record] = []
        for subject, object_, verb, score, role in zip(*columns, strict=True):
            no_object = bool(vocabulary.roles) and object_ == NO_BOX
            hois.append({"subject": subject, "object": None if no_object else object_, "verb": vocabulary.verbs[verb]})
            hois[-1] |= ({"role": roles[role]} if role else {}) | ({"score": score} if scored else {})
        labels = [names[label] for label in self.labels.tolist()]
        return {"image_id": self.image_id, "boxes": self.boxes.tolist(), "labels": labels, "hois": hois}


def detections(image_id: str, given: Mapping[str, Any], vocabulary: Vocabulary, *, scored: bool = True) -> Detections:
    """The arrays of one image, checked. given: by the names of `Detections`; labels, verbs and roles are names or
    numbers of the vocabulary; -1 or None is no label, no object and no role, where the vocabulary has roles. Also
    `box_format` and `size`, as `as_corners` takes them.

    Raises `DataError` with the argument and the index, without a place.
    """
    found = Detections(image_id, **_columns(given, vocabulary, scored=scored))
    if not _sound(found, vocabulary, scored=scored):
        for problem in problems(found.record(vocabulary, scored=scored), vocabulary, scored=scored, besides=()):
            text = problem.text.replace("the line has", "the image has")
            raise replace(problem, field=_argument(problem.field), told=text).error("")
        raise AssertionError("arrays failed the fast check and have no problem")
    return found


def scenes_of_detections(images: Sequence[Detections], vocabulary: Vocabulary) -> Scenes:
    """The predictions of some images, at least one, as columns, with what V-COCO's records imply."""
    names = [column.name for column in fields(Detections)[1:]]
    column = {name: np.concatenate([getattr(image, name) for image in images]) for name in names}
    box_start, hoi_start = (starts_of([len(getattr(image, of)) for image in images]) for of in ("boxes", "score"))
    first = np.repeat(box_start[:-1], np.diff(hoi_start))
    roles = [None, *vocabulary.roles]
    raw = RawImages(
        image_ids=[image.image_id for image in images],
        boxes=column["boxes"].astype(np.float64),
        box_start=box_start,
        subject=column["subject"] + first,
        object=np.where(column["object"] < 0, NO_BOX, column["object"] + first),
        score=column["score"],
        hoi_start=hoi_start,
        labels=column["labels"].tolist(),
        verbs=column["verb"].tolist(),
        of_hoi={"role": [roles[role] for role in column["role"].tolist()]},
    )
    return numbered_scenes(raw, vocabulary, scored=True)


BOX_FORMATS = ("xyxy", "xywh", "cxcywh")


def as_corners(boxes: NDArray[np.floating[Any]], box_format: str, size: Any) -> NDArray[np.floating[Any]]:
    """[B, 4] x1, y1, x2, y2 in pixels of boxes in one of BOX_FORMATS (x2 = x1 + width), as they are or in double
    precision. size: the image's height and width, of which the boxes are shares; None: they are in pixels.

    Raises `UsageError` for another format, `DataError` for what is no size.
    """
    if box_format not in BOX_FORMATS:
        raise UsageError(f"box_format={box_format!r}: choose {', '.join(BOX_FORMATS[:-1])} or {BOX_FORMATS[-1]}")
    if box_format != "xyxy":
        first, extent = boxes[:, :2].astype(np.float64), boxes[:, 2:].astype(np.float64)
        start = first - extent / 2 if box_format == "cxcywh" else first
        boxes = np.concatenate([start, first + (extent / 2 if box_format == "cxcywh" else extent)], axis=1)
    if size is None:
        return boxes
    sides = as_array(size, "size")
    if sides.shape != (2,) or sides.dtype.kind not in "fiu" or not ((sides > 0) & (sides < np.inf)).all():
        raise DataError(f"{short(sides.tolist())}; give the image's height and width in pixels", field="size")
    return boxes * sides.astype(np.float64)[[1, 0, 1, 0]]


def _columns(given: Mapping[str, Any], vocabulary: Vocabulary, *, scored: bool) -> dict[str, Any]:
    """The columns of `Detections`. Raises `DataError` with the argument for what no record could say: a wrong shape or
    type, a number that is no id."""
    nulls = bool(vocabulary.roles)
    _check_names(given, TRIPLET_COLUMNS if scored else TRIPLET_COLUMNS[:-1], nulls=nulls)
    boxes = as_corners(box_array(given["boxes"]), given.get("box_format") or "xyxy", given.get("size"))
    columns = {
        "boxes": boxes,
        "labels": _ids(given["labels"], "labels", "object", vocabulary),
        "subject": _whole(given["subject"], "subject"),
        "object": _whole(given["object"], "object"),
        "verb": _ids(given["verb"], "verb", "verb", vocabulary),
    }
    count = len(columns["subject"])
    columns["score"] = _numbers(given["score"], "score") if scored else np.full(count, np.nan)
    role = given.get("role")
    columns["role"] = np.zeros(count, dtype=np.int64) if role is None else 1 + _ids(role, "role", "role", vocabulary)
    counts = {name: len(columns[name]) for name in (*TRIPLET_COLUMNS, "role")}
    odd = [name for name, length in counts.items() if length != count]
    if odd:
        raise DataError(f"{counts[odd[0]]} values for {count} triplets (`subject` has {count})", field=odd[0])
    return columns


def _sound(found: Detections, vocabulary: Vocabulary, *, scored: bool) -> bool:
    """Whether a fast check finds nothing wrong with the values."""
    count = len(found.boxes)
    if len(found.labels) != count or not np.isfinite(found.boxes).all():
        return False
    if not len(found.subject):
        return True
    if scored and not np.isfinite(found.score).all():
        return False
    for rows, lowest in ((found.subject, 0), (found.object, NO_BOX if vocabulary.roles else 0)):
        if rows.min() < lowest or rows.max() >= count:
            return False
    if not vocabulary.roles:
        return True
    fits = (class_table(vocabulary)[found.verb, found.role] >= 0) & ((found.role > 0) | (found.object < 0))
    return bool(fits.all())


def _argument(field: str) -> str:
    """The argument and index of a record's field: subject[3] of hois[3].subject."""
    return re.sub(r"^hois(\[\d+\])\.(\w+)$", r"\2\1", field)


def _check_names(given: Mapping[str, Any], of_triplets: Sequence[str], *, nulls: bool) -> None:
    needed = ("boxes", "labels", *of_triplets)
    for name in needed:
        if given.get(name) is None:
            raise DataError(f"missing; an image has {', '.join(needed)}, empty where there are none", field=name)
    known = (*needed, "role") if nulls else needed
    for name, value in given.items():
        if value is not None and name not in (*known, "box_format", "size"):
            raise DataError(f"not of this ground truth or dataset; there are {', '.join(known)}", field=name)


def box_array(values: Any) -> NDArray[np.floating[Any]]:
    """[B, 4] a copy of boxes. Raises `DataError` for another shape or other things than numbers."""
    array = as_array(values, "boxes")
    if not array.size and array.ndim <= 2:
        return np.zeros((0, 4))
    if array.ndim != 2 or array.shape[1] != 4:
        raise DataError(f"has shape {array.shape}, wants (n, 4)", field="boxes")
    return _floats(array, "boxes")


def _numbers(values: Any, field: str) -> Floats:
    array = as_array(values, field)
    return _floats(_flat(array, field), field).astype(np.float64, copy=False)


def _floats(array: NDArray[Any], field: str) -> NDArray[np.floating[Any]]:
    """A copy in the smallest of float32 and float64 that holds the numbers exactly."""
    if array.dtype.kind not in "fiu" and array.size:
        raise DataError(f"has dtype {array.dtype}, wants numbers", field=field)
    return array.astype(np.float32 if array.dtype in (np.float32, np.float16) else np.float64, copy=True)


def _flat(array: NDArray[Any], field: str) -> NDArray[Any]:
    if array.ndim != 1:
        raise DataError(f"has shape {array.shape}, wants (n,)", field=field)
    return array


def _whole(values: Any, field: str) -> Ints:
    """A copy as integers; None is NO_BOX."""
    if isinstance(values, list | tuple) and None in values:
        values = [NO_BOX if value is None else value for value in values]
    array = _flat(as_array(values, field), field)
    if array.dtype.kind not in "iu" and array.size:
        raise DataError(f"has dtype {array.dtype}, wants integers: indices of boxes", field=field)
    return array.astype(np.int64, copy=True)


def _ids(values: Any, field: str, what: str, vocabulary: Vocabulary) -> Ints:
    """The ids of names, or of ids. Where the vocabulary has roles, a label or a role may be None or -1, which is -1."""
    known, count = _known(vocabulary, what)
    listed = isinstance(values, list | tuple) and bool(values)
    if not listed or not isinstance(values[0], str | None):
        array = _flat(as_array(values, field), field)
        if array.dtype.kind in "iu" or not array.size:
            ids, lowest = array.astype(np.int64, copy=True), -1 if None in known else 0
            if wrong := np.flatnonzero((ids < lowest) | (ids >= count)).tolist():
                problem = f"number {ids[wrong[0]]}, but {vocabulary.name} has {count} {what}s, numbered from 0"
                raise DataError(f"{problem} as `hoicli vocab` lists them", field=f"{field}[{wrong[0]}]")
            return ids
        if array.dtype.kind not in "UTO":
            raise DataError(f"has dtype {array.dtype}, wants names or integers", field=field)
        values = array.tolist()
    try:
        return np.array([known[value] for value in values], dtype=np.int64)
    except (KeyError, TypeError):
        index = next(at for at, value in enumerate(values) if not isinstance(value, str | None) or value not in known)
    name = values[index]
    if not isinstance(name, str):
        raise DataError(f"{short(name)} is no name; give names alone, or numbers alone", field=f"{field}[{index}]")
    if what == "role":
        raise DataError(f"unknown role {name!r}; choose from {', '.join(vocabulary.roles)}", field=f"{field}[{index}]")
    raise unknown_label(f"{field}[{index}]", what, name, vocabulary).error("")


@cache
def _known(vocabulary: Vocabulary, what: str) -> tuple[Mapping[str | None, int], int]:
    """(the ids of a vocabulary's verbs, objects or roles by name, None being -1 where that is allowed; how many)."""
    ids, count = {
        "verb": (vocabulary.verb_ids, len(vocabulary.verbs)),
        "object": (vocabulary.object_ids, len(vocabulary.objects)),
        "role": ({role: number for number, role in enumerate(vocabulary.roles)}, len(vocabulary.roles)),
    }[what]
    return Spelled({**ids, **({None: -1} if vocabulary.roles and what != "verb" else {})}), count
