"""From lines to columns: many lines at a time, and one by one if a line is bad. A HICO-DET dump has three quarters of a
million triplets, so each field of some hundred lines becomes one column, checked as a whole. That only shows *that*
some line is bad. Then each line is checked alone to say *what* is wrong and *where*, and the good lines become columns:
`Images`, the part that all image records share, whatever their labels are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import orjson

from hoicli.io.inputs import repeated_key
from hoicli.io.streams import Line, Stream
from hoicli.io.workers import work_in_turns
from hoicli.records.fingerprint import Hashes, Stated
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import Floats, Ints, runs_of, starts_of
from hoicli.records.names import is_blank
from hoicli.records.parsing import Problem, Record, parse

BATCH = 256
"""Images in a batch: enough to make NumPy's overhead per call small, few enough to stay in cache."""

NUMBERS = (float, int)
"""The types of JSON's numbers, the more frequent first."""

NO_BOX = -1
_NO_FIELDS: Mapping[str, Any] = {}
_SUBJECT, _OBJECT, _VERB, _SCORE = map(itemgetter, ("subject", "object", "verb", "score"))

Part = TypeVar("Part")


def read_columns(
    lines: Iterable[Line],
    build: Callable[[list[Line]], Part | None],
    check: Callable[[Record], Iterable[Problem]],
    policy: ErrorPolicy,
    *,
    register: ImageRegister,
    processes: int = 1,
) -> Iterator[Part]:
    """The result of `build` on each batch of lines, without bad lines. build: the fast pass; for a bad record it raises
    any exception that `attempt` expects, and gives None for an image that the register does not know. check: the
    careful pass, which yields the problems of exactly those records. register: remembers the `image_ids` of the parts.
    Several `processes` share the work: each reads all lines of the stream and takes its turn with a batch.

    Raises `DataError` for the first bad record, or counts it in `policy` and goes on, and at the end if all were bad;
    an image that the register refuses is bad too.
    """
    before, any_left = policy.skipped, False

    def again() -> Iterator[list[Line]]:
        return _batches(lines.again() if isinstance(lines, Stream) else lines)

    for batch_lines, result in work_in_turns(partial(attempt, build), _batches(lines), again, processes):
        built: Any = result
        if built is None or not register.add_all(built.image_ids, batch_lines):
            chunk = list(sound(batch_lines, check, policy, register))
            built = build(chunk) if chunk else None
        if built is not None:
            any_left = True
            yield built
    if policy.skipped > before and not any_left:
        policy.report(some_left=False)


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    lines = iter(lines)
    return iter(lambda: list(islice(lines, BATCH)), [])


def attempt(build: Callable[[list[Line]], Part | None], lines: list[Line]) -> Part | None:
    """The result of the fast pass; None if any line is bad."""
    try:
        return build(lines)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def sound(
    lines: list[Line], check: Callable[[Record], Iterable[Problem]], policy: ErrorPolicy, register: ImageRegister
) -> Iterator[Line]:
    """The good lines, registered; the first problem of each bad line goes to the policy."""
    for line in lines:
        with policy.item():
            record = parse(line)
            for problem in check(record):
                raise problem.error(line.place)
            register.add(str(record["image_id"]), line)
            yield line


def require(sound: bool | np.bool_) -> None:
    """Raises `ValueError` if a check of a record fails."""
    if not sound:
        raise ValueError


def check_types(values: Iterable[Any], *allowed: type) -> None:
    """Raises `ValueError` for a value of another type: JSON's true is not an index, "1" is not a number. The most
    frequent type should come first."""
    types = list(map(type, values))
    others = len(types)
    for kind in allowed:
        if others:
            others -= types.count(kind)
    require(not others)


def image_ids(values: list[Any]) -> list[str]:
    """Ids as text. Raises `ValueError` for an id that is blank, or neither text nor an integer."""
    check_types(values, str, int)
    require(not any(map(is_blank, values)))
    return [str(value) for value in values]


def numbers(values: list[Any], *types: type) -> Floats:
    """Finite numbers of the `types` (default: float and int); NaN for a missing one. Missing is None, if NoneType is
    among the types, or NaN, which only a reader can set, since JSON has none. Raises `ValueError` for anything else.
    """
    types = types or NUMBERS
    check_types(values, *types)
    if type(None) in types:
        column = np.array(values, dtype=np.float64)
    else:
        column = np.fromiter(values, dtype=np.float64, count=len(values))
    require(not np.isinf(column).any())
    return column


def indices(values: list[Any], limit: Ints, *, nulls: bool = False) -> Ints:
    """Indices, each from 0 to below its limit; with `nulls`, None becomes -1. Raises `ValueError` for anything else."""
    check_types(values, int, *((type(None),) if nulls else ()))
    missing = values.count(None) if nulls else 0
    column = integers([-1 if value is None else value for value in values] if missing else values)
    require(np.count_nonzero((column < 0) | (column >= limit)) == missing)
    return column


def integers(values: list[int]) -> Ints:
    """The integers as a column; the small ones, which most are, in half of the time."""
    try:
        return np.frombuffer(bytes(values), dtype=np.uint8).astype(np.int64)
    except ValueError:
        return np.fromiter(values, dtype=np.int64, count=len(values))


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

    def corners(self, boxes: Ints) -> list[Floats]:
        """Keys for `numpy.lexsort` that order some boxes by their corners, no box (-1) last."""
        return list(np.append(self.boxes, np.full((1, 4), np.inf), axis=0)[boxes].T[::-1])

    def ends(self, rows: Ints) -> list[Floats]:
        """Keys for `numpy.lexsort` that order some triplets by the corners of the subject's box, then of the object's:
        by values, so that the order of a record's boxes does not matter."""
        return [*self.corners(self.object[rows]), *self.corners(self.subject[rows])]


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

    def box_values(self, key: str, missing: Any) -> list[Any]:
        """[B] the values of a field that lists one for each box; `missing` where a record has none. Raises `ValueError`
        for anything else."""
        box_list: list[Any] = []
        for values, count in zip(self.each(key), np.diff(self.box_start).tolist(), strict=True):
            require(values is None or (type(values) is list and len(values) == count))
            box_list += [missing] * count if values is None else values
        return box_list


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
    every_key: bool = False,
) -> RawImages:
    """The lines as columns: the one way from JSON to arrays.

    scores: the types that a score may have, NoneType for a missing one. nulls: whether an action may have no object.
    truth: whether images get `hashes`. label, verb: functions that convert a name; without them it is unchanged.
    of_image, of_hoi: the other fields that are wanted, unchecked; of triplets with the value that stands for a missing
    one, and an empty list where all are missing. check: called with each record, raises for a bad one. every_key:
    look for a key that occurs twice in every line, which would cost 8 % of `eval`, not in the first alone. Raises
    `ValueError`, or another exception that `attempt` expects, for a bad record.
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
        if every_key or (not ids and type(line) is Line):
            require(repeated_key(line.data, record) is None)
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


def join_columns(parts: Iterable[Columns]) -> Columns:
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
