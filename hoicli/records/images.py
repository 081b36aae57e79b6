"""The common part of image records as columns, for any kind of labels: images, boxes and triplets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import orjson

from hoicli.io.streams import Line
from hoicli.records.columns import image_ids, indices, integers, numbers, require
from hoicli.records.fingerprint import Hashes, Stated
from hoicli.records.kit import Floats, Ints, runs_of, starts_of
from hoicli.records.parsing import Record

NO_BOX = -1
_NO_FIELDS: Mapping[str, Any] = {}
_SUBJECT, _OBJECT, _VERB, _SCORE = map(itemgetter, ("subject", "object", "verb", "score"))


@dataclass(frozen=True)
class Images:
    """N images, B boxes and T triplets as columns.

    image_ids [N] text; boxes [B, 4] float64, pixels, 0-based x1 y1 x2 y2; subject, object [T] rows of `boxes`, NO_BOX
    for no object; score [T], NaN if missing. Image n has boxes box_start[n]:box_start[n + 1] and triplets
    hoi_start[n]:hoi_start[n + 1]. hashes [N] of ground truth (`records.fingerprint`), none of predictions.
    """

    image_ids: Sequence[str]
    boxes: Floats
    box_start: Ints
    subject: Ints
    object: Ints
    score: Floats
    hoi_start: Ints
    hashes: Hashes = field(default_factory=lambda: np.zeros(0, dtype=np.uint64), kw_only=True)

    @cached_property
    def image_of_hoi(self) -> Ints:
        """[T] the image each triplet belongs to."""
        return runs_of(self.hoi_start)

    @cached_property
    def image_of_box(self) -> Ints:
        """[B] the image each box belongs to."""
        return runs_of(self.box_start)


@dataclass(frozen=True)
class RawImages(Images):
    """Images with the labels [B] and verbs [T] as `raw_images` converted them, and other fields by name: a value for
    each image, and for each triplet."""

    labels: list[Any]
    verbs: list[Any]
    of_image: dict[str, list[Any]] = field(default_factory=dict)
    of_hoi: dict[str, list[Any]] = field(default_factory=dict)

    def images(self) -> dict[str, Any]:
        """The columns of `Images` by name."""
        return {field.name: getattr(self, field.name) for field in fields(Images)}

    def each(self, key: str) -> list[Any]:
        """[N] a field of the records, None where there is none or nobody asked for it."""
        return self.of_image.get(key) or [None] * len(self.image_ids)

    def each_list(self, key: str, counts: Ints) -> list[list[Any] | None]:
        """As `each`, of lists. counts [N]: how many values each must have. Raises `ValueError` for anything else."""
        found = self.each(key)
        for values, count in zip(found, counts.tolist(), strict=True):
            require(values is None or (type(values) is list and len(values) == count))
        return found


def raw_images(
    lines: Sequence[Line],
    *,
    scores: Sequence[type],
    nulls: bool,
    truth: bool = False,
    label: Callable[[Any], Any] | None = None,
    verb: Callable[[Any], Any] | None = None,
    of_image: Sequence[str] = (),
    of_hoi: Mapping[str, Any] = _NO_FIELDS,
    check: Callable[[Record], None] | None = None,
) -> RawImages:
    """The lines as columns: the one way from JSON to arrays.

    scores: the types that a score may have, NoneType for a missing one. nulls: whether an action may have no object.
    truth: whether images get `hashes`. label, verb: functions that convert a name; without them it is unchanged.
    of_image, of_hoi: the other fields that are wanted, unchecked; of triplets with the value that stands for a missing
    one, and an empty list where all are missing. check: called with each record, raises for a bad one. Raises
    `ValueError`, or another exception that `columns.attempt` expects, for a bad record.
    """
    ids: list[Any] = []
    box_counts: list[int] = []
    hoi_counts: list[int] = []
    coordinates: list[Any] = []
    labels: list[Any] = []
    subject: list[Any] = []
    objects: list[Any] = []
    verbs: list[Any] = []
    score: list[Any] = []
    images: dict[str, list[Any]] = {key: [] for key in of_image}
    triplets: dict[str, list[Any]] = {key: [] for key in of_hoi}
    lengths: set[int] = set()
    missing = type(None) in scores
    stated = Stated() if truth else None
    for line in lines:  # only one parsed record is in memory at a time
        record = orjson.loads(line.data)
        boxes, names, hois = record["boxes"], record["labels"], record["hois"]
        require(type(boxes) is type(names) is type(hois) is list and len(boxes) == len(names))
        ids.append(record["image_id"])
        box_counts.append(len(boxes))
        hoi_counts.append(len(hois))
        lengths.update(map(len, boxes))
        coordinates += chain.from_iterable(boxes)
        # every loop over triplets is in C: there are hundreds of thousands
        labels += names if label is None else map(label, names)
        subject += map(_SUBJECT, hois)
        objects += map(_OBJECT, hois)
        verbs += map(_VERB, hois) if verb is None else map(verb, map(_VERB, hois))
        score += map(dict.get, hois, repeat("score")) if missing else map(_SCORE, hois)
        for key, values in images.items():
            values.append(record.get(key))
        for key, default in of_hoi.items():
            triplets[key] += map(dict.get, hois, repeat(key), repeat(default))
        if stated is not None:
            stated.add(record)
        if check is not None:
            check(record)
    require(lengths <= {4})
    for key, default in of_hoi.items():
        if triplets[key].count(default) == len(triplets[key]):
            triplets[key] = []
    box_start, hoi_start = starts_of(box_counts), starts_of(hoi_counts)
    image = runs_of(hoi_start)
    first, limit = box_start[image], integers(box_counts)[image]
    first_object = indices(objects, limit, nulls=nulls)
    raw = RawImages(
        image_ids=image_ids(ids),
        boxes=numbers(coordinates).reshape(-1, 4),
        box_start=box_start,
        subject=indices(subject, limit) + first,
        object=np.where(first_object < 0, NO_BOX, first_object + first),
        score=numbers(score, *scores),
        hoi_start=hoi_start,
        labels=labels,
        verbs=verbs,
        of_image=images,
        of_hoi=triplets,
    )
    if stated is None:
        return raw
    columns = raw.image_ids, raw.boxes, raw.box_start, raw.subject, raw.object, raw.hoi_start
    return replace(raw, hashes=stated.hashes(*columns))


Columns = TypeVar("Columns", bound=Images)


def concatenated(parts: Iterable[Columns]) -> Columns:
    """The images of all parts (at least one), in their order; other fields than arrays are the first part's. A part
    that nobody else holds is let go at once, and its columns as soon as they are joined."""
    first: Columns | None = None
    columns: dict[str, list[Any]] = {}
    ids: list[str] = []
    boxes = triplets = 0
    for part in parts:
        if first is None:
            first = part
            columns = {each.name: [] for each in fields(part) if isinstance(getattr(part, each.name), np.ndarray)}
            columns |= {"box_start": [np.zeros(1, dtype=np.int64)], "hoi_start": [np.zeros(1, dtype=np.int64)]}
        rows = {name: getattr(part, name) for name in columns}
        rows |= {name: np.where(rows[name] < 0, NO_BOX, rows[name] + boxes) for name in ("subject", "object")}
        rows |= {"box_start": part.box_start[1:] + boxes, "hoi_start": part.hoi_start[1:] + triplets}
        for name, column in columns.items():
            column.append(rows[name])
        ids += part.image_ids
        boxes, triplets = boxes + len(part.boxes), triplets + len(part.score)
    assert first is not None
    return replace(first, image_ids=ids, **{name: np.concatenate(columns.pop(name)) for name in list(columns)})
