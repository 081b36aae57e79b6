"""From lines to columns: many lines at a time, and one by one if a line is bad. A HICO-DET dump has three quarters of a
million triplets, so each field of some hundred lines becomes one column, checked as a whole. That only shows *that*
some line is bad. Then each line is checked alone to say *what* is wrong and *where*, and the good lines become columns:
`Images`, the part that all image records share, whatever their labels are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import orjson

from hoicli.io.forks import work_in_turns
from hoicli.io.opened_files import repeated_key
from hoicli.io.streams import Line, Stream
from hoicli.records.fingerprint import Hashes, ImageHasher
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import Floats, Ints, runs_of, starts_of
from hoicli.records.names import is_blank
from hoicli.records.parsing import Problem, Record, parse

BATCH = 256
"""Images in a batch: enough to make NumPy's overhead per call small, few enough to stay in cache."""

NUMBERS = (float, int)
"""The types of JSON's numbers."""

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
    """Yield what `build` makes of each batch of lines, such as `Images`, without the bad lines.

    build: the fast pass over a batch. It raises for a bad record, and returns None for an image that the register does
    not know. check: yields the problems of one record, for exactly those that `build` refuses. processes: how many take
    turns with the batches.

    Raises `DataError` for the first bad record, or counts it in `policy` and goes on, and raises at the end if all were
    bad."""
    skipped_before, any_left = policy.skipped, False

    def reread() -> Iterator[list[Line]]:
        """Yield all batches from the beginning, in another process."""
        return _batches(lines.again() if isinstance(lines, Stream) else lines)

    for batch_lines, result in work_in_turns(partial(attempt, build), _batches(lines), reread, processes):
        built: Any = result
        if built is None or not register.add_all(built.image_ids, batch_lines):  # some line of the batch is bad
            good_lines = list(keep_good(batch_lines, check, policy, register))
            built = build(good_lines) if good_lines else None
        if built is not None:
            any_left = True
            yield built
    if policy.skipped > skipped_before and not any_left:
        policy.report(some_left=False)


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Yield the lines in lists of BATCH, the last of which may be shorter."""
    lines = iter(lines)
    return iter(lambda: list(islice(lines, BATCH)), [])  # calls the function until it returns an empty list


def attempt(build: Callable[[list[Line]], Part | None], lines: list[Line]) -> Part | None:
    """Return what `build` (see `read_columns`) makes of the lines; None if any line is bad."""
    try:
        return build(lines)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def keep_good(
    lines: list[Line], check: Callable[[Record], Iterable[Problem]], policy: ErrorPolicy, register: ImageRegister
) -> Iterator[Line]:
    """Yield the lines without problems and add their images to the register. Raises `DataError` as the policy says."""
    for line in lines:
        with policy.item():  # takes a `DataError` of the block: raises or counts it
            record = parse(line)
            for problem in check(record):  # the first of these is raised
                raise problem.error(line.place)
            register.add(str(record["image_id"]), line)
            yield line


def require(passed: bool | np.bool_) -> None:
    """Raise `ValueError` if a check has not `passed`; `read_columns` then says what is wrong."""
    if not passed:
        raise ValueError


def check_types(values: Iterable[Any], *allowed: type) -> None:
    """Raise `ValueError` unless each value has an `allowed` type, the first of which is the usual one, and no subclass:
    true is not an integer."""
    types = list(map(type, values))
    require(types.count(allowed[0]) == len(types) or set(types) <= set(allowed))


def image_ids(values: list[Any]) -> list[str]:
    """Return image ids as text. Raises `ValueError` for an id that is blank, or neither text nor an integer."""
    check_types(values, str, int)
    require(not any(map(is_blank, values)))
    return [str(value) for value in values]


def numbers(values: list[Any], *types: type) -> Floats:
    """Return the values as a column of floats, NaN where a number is missing. types: those of the values, by default
    float and int; with NoneType, None is a missing number. Raises `ValueError` for others and for an infinity."""
    types = types or NUMBERS
    check_types(values, *types)
    column = np.array(values, dtype=np.float64)  # turns None into NaN
    require(not np.isinf(column).any())
    return column


def indices(values: list[Any], limit: Ints, *, nulls: bool = False) -> Ints:
    """Return the values as a column of indices below `limit` [T], -1 for None (`nulls`). Raises `ValueError`
    for values of other types and out of range."""
    check_types(values, int, *((type(None),) if nulls else ()))
    missing = values.count(None) if nulls else 0
    column = integers([-1 if value is None else value for value in values] if missing else values)
    # only the missing ones may be out of range: they are -1 now, which as an unsigned number is beyond every limit
    out_of_range = np.count_nonzero(column.view(np.uint64) >= limit.view(np.uint64))
    require(out_of_range == missing)
    return column


def integers(values: list[int] | Ints) -> Ints:
    """Return the integers as a column."""
    return values if isinstance(values, np.ndarray) else np.fromiter(values, dtype=np.int64, count=len(values))


@dataclass(frozen=True)
class Images:
    """N images, B boxes and T triplets as columns.

    image_ids [N] text; boxes [B, 4] float64, pixels, 0-based x1 y1 x2 y2; subject, object [T] rows of `boxes`, NO_BOX
    for no object; score [T], NaN if missing. Image n has boxes box_start[n]:box_start[n + 1] and triplets
    hoi_start[n]:hoi_start[n + 1]. hashes [N] of ground truth (`records.fingerprint`), none of predictions."""

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
        """Return [T] the row of the image that each triplet belongs to."""
        return runs_of(self.hoi_start)

    @cached_property
    def image_of_box(self) -> Ints:
        """Return [B] the row of the image that each box belongs to."""
        return runs_of(self.box_start)

    def corners(self, boxes: Ints) -> list[Floats]:
        """Return [M] keys for `numpy.lexsort` by x1, y1, x2 and y2 of these boxes; -1, no box, comes last."""
        with_no_box = np.append(self.boxes, np.full((1, 4), np.inf), axis=0)  # the last row is what -1 looks up
        return list(with_no_box[boxes].T[::-1])  # lexsort sorts by its last key first

    def ends(self, rows: Ints) -> list[Floats]:
        """Return keys for `numpy.lexsort` by the coordinates of these triplets' boxes, whatever their order."""
        return [*self.corners(self.object[rows]), *self.corners(self.subject[rows])]


@dataclass(frozen=True)
class RawImages(Images):
    """Images with the labels [B] of boxes and the verbs [T] of triplets as `raw_images` converted them.

    of_image, of_hoi: other fields by name, with a value for every image [N], or triplet [T] (or empty)."""

    labels: list[Any] | Ints
    verbs: list[Any] | Ints
    of_image: dict[str, list[Any]] = field(default_factory=dict)
    of_hoi: dict[str, list[Any]] = field(default_factory=dict)

    def images(self) -> dict[str, Any]:
        """Return the columns of `Images` by name, as arguments for a class derived from `Images`."""
        return {field.name: getattr(self, field.name) for field in fields(Images)}

    def each(self, key: str) -> list[Any]:
        """Return [N] each record's value of the field `key`; None where it is missing, or if it was not read."""
        return self.of_image.get(key) or [None] * len(self.image_ids)

    def box_values(self, key: str, missing: Any) -> list[Any]:
        """Return [B] the values of a field with one for each box, or `missing`. Raises `ValueError` for others."""
        values_of_all: list[Any] = []
        for values, count in zip(self.each(key), np.diff(self.box_start).tolist(), strict=True):
            require(values is None or (type(values) is list and len(values) == count))
            values_of_all += [missing] * count if values is None else values
        return values_of_all


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
    """Parse image records and return them as columns. Every reader of records from JSON goes through here.

    scores: the types that a score may have, with NoneType where it may be missing. nulls: whether an object may be
    null, for an action without an object. truth: whether images get `hashes`. label, verb: functions that convert each
    label and each verb; without them names are unchanged. of_image: names of further fields to keep. of_hoi: those of
    triplets, with the value for one that lacks it.

    Raises `ValueError`, or another exception that `attempt` expects, for a bad record."""
    ids: list[Any] = []
    box_counts: list[int] = []
    hoi_counts: list[int] = []
    coordinates: list[Any] = []
    labels: list[Any] = []
    subject: list[Any] = []
    objects: list[Any] = []
    verbs: list[Any] = []
    score: list[Any] = []
    image_fields: dict[str, list[Any]] = {key: [] for key in of_image}
    triplet_fields: dict[str, list[Any]] = {key: [] for key in of_hoi}
    box_lengths: set[int] = set()
    may_lack_score = type(None) in scores
    hasher = ImageHasher() if truth else None
    texts: list[bytes] = []
    keys_in_texts = 0
    for line in lines:  # only one parsed record is in memory at a time
        record = orjson.loads(line.data)
        boxes, box_names, hois = record["boxes"], record["labels"], record["hois"]
        require(type(boxes) is type(box_names) is type(hois) is list and len(boxes) == len(box_names))
        key_count = sum(map(len, hois))
        if type(line) is Line:  # of a file, and not made by hoicli itself
            texts.append(line.data)
            keys_in_texts += len(record) + key_count
        ids.append(record["image_id"])
        box_counts.append(len(boxes))
        hoi_counts.append(len(hois))
        box_lengths.update(map(len, boxes))
        coordinates += chain.from_iterable(boxes)
        # every loop over triplets is in C: there are hundreds of thousands
        labels += box_names if label is None else map(label, box_names)
        subject += map(_SUBJECT, hois)
        objects += map(_OBJECT, hois)
        verbs += map(_VERB, hois) if verb is None else map(verb, map(_VERB, hois))
        scores_of_hois = list(map(dict.get, hois, repeat("score")) if may_lack_score else map(_SCORE, hois))
        score += scores_of_hois
        for key, values in image_fields.items():
            values.append(record.get(key))
        # without further keys, no triplet has one of `of_hoi`
        has_further = key_count > 4 * len(hois) - (scores_of_hois.count(None) if may_lack_score else 0)
        for key, default in of_hoi.items():
            triplet_fields[key] += (
                map(dict.get, hois, repeat(key), repeat(default)) if has_further else repeat(default, len(hois))
            )
        if hasher is not None:
            hasher.add(record)
        if check is not None:
            check(record)
    require(box_lengths <= {4})
    refuse_repeated_keys(texts, keys_in_texts)
    box_start, hoi_start = starts_of(box_counts), starts_of(hoi_counts)
    subject_rows, object_rows = _box_rows(subject, objects, box_start, hoi_start, nulls=nulls)
    raw = RawImages(
        image_ids=image_ids(ids),
        boxes=numbers(coordinates).reshape(-1, 4),
        box_start=box_start,
        subject=subject_rows,
        object=object_rows,
        score=numbers(score, *scores),
        hoi_start=hoi_start,
        labels=labels,
        verbs=verbs,
        of_image=image_fields,
        # a field that every triplet lacks is empty
        of_hoi={
            key: [] if values.count(of_hoi[key]) == len(values) else values for key, values in triplet_fields.items()
        },
    )
    if hasher is None:
        return raw
    columns = raw.image_ids, raw.boxes, raw.box_start, raw.subject, raw.object, raw.hoi_start
    return replace(raw, hashes=hasher.hashes(*columns))


def refuse_repeated_keys(texts: Sequence[bytes], key_count: int) -> None:
    """Raise `ValueError` if a key occurs twice in one of the JSON texts.

    key_count: how many keys the parsed records have, and triplets in them. No text has fewer colons than keys, so if
    all have as many together, no key occurs twice. Otherwise there are colons in strings, or other objects: then each
    text is looked at alone."""
    colons = np.count_nonzero(np.frombuffer(b"".join(texts), dtype=np.uint8) == ord(":"))  # faster than text by text
    if colons != key_count:
        require(not any(repeated_key(text, orjson.loads(text)) for text in texts))


def _box_rows(
    subject: list[Any], objects: list[Any], box_start: Ints, hoi_start: Ints, *, nulls: bool
) -> tuple[Ints, Ints]:
    """Return ([T] the subject, [T] the object) of each triplet as rows in the boxes of all records; NO_BOX where there
    is no object.

    subject, objects: [T] indices of boxes in the triplet's own record; nulls: whether an object may be None. box_start,
    hoi_start: [N + 1] where each record's begin."""
    first_box, box_limit = (np.repeat(column, np.diff(hoi_start)) for column in (box_start[:-1], np.diff(box_start)))
    object_in_record = indices(objects, box_limit, nulls=nulls)
    object_rows: Ints = np.where(object_in_record < 0, NO_BOX, object_in_record + first_box)
    return indices(subject, box_limit) + first_box, object_rows


Columns = TypeVar("Columns", bound=Images)


def join_columns(parts: Iterable[Columns]) -> Columns:
    """Return the images of all parts (at least one) joined in their order. Fields other than arrays and `image_ids` are
    taken from the first part. To save memory, the references to parts and columns are dropped as soon as possible."""
    first: Columns | None = None
    columns: dict[str, list[Any]] = {}
    ids: list[str] = []
    box_count = triplet_count = 0
    for part in parts:
        if first is None:
            first = part
            columns = {each.name: [] for each in fields(part) if isinstance(getattr(part, each.name), np.ndarray)}
            columns |= {"box_start": [np.zeros(1, dtype=np.int64)], "hoi_start": [np.zeros(1, dtype=np.int64)]}
        added = {name: getattr(part, name) for name in columns}
        # what points to boxes or triplets is moved behind those of the parts before; where a part's first ones begin is
        # where the last part's ended, so the starts lose their first entry
        added |= {name: np.where(added[name] < 0, NO_BOX, added[name] + box_count) for name in ("subject", "object")}
        added |= {"box_start": part.box_start[1:] + box_count, "hoi_start": part.hoi_start[1:] + triplet_count}
        for name, column in columns.items():
            column.append(added[name])
        ids += part.image_ids
        box_count, triplet_count = box_count + len(part.boxes), triplet_count + len(part.score)
    assert first is not None
    return replace(first, image_ids=ids, **{name: np.concatenate(columns.pop(name)) for name in list(columns)})
