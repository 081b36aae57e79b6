"""From lines to arrays: many images' boxes and triplets as flat columns, checked on the way.

A `Scenes` holds a batch of images. Reading is columnar (one comprehension a field for hundreds of lines), because a
HICO-DET dump has three quarters of a million triplets; only a batch that fails a check is walked record by record.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError
from hoicli.records import Record, parse, problems
from hoicli.streams import Line, note
from hoicli.vocabulary import Vocabulary

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

BATCH = 256
"""Images a batch: large enough that NumPy's overhead per call vanishes, small enough to stay in cache."""


@dataclass(frozen=True)
class Scenes:
    """N images, B boxes and T triplets as columns.

    image_ids [N] text; boxes [B, 4] float64, pixels, 0-based x1 y1 x2 y2; labels [B] object ids of the vocabulary;
    subject, object [T] rows of `boxes`; verb [T] verb ids; interaction [T] interaction ids, -1 where the vocabulary
    has no such (verb, object); score [T] (NaN for ground truth). Image n owns boxes box_start[n]:box_start[n + 1]
    and triplets hoi_start[n]:hoi_start[n + 1]. known_object [N, objects] bool: some image-level label of the image
    names the object; `derived` counts the images where no image-level labels were given and the triplets stood in.
    """

    image_ids: list[str]
    boxes: Floats
    labels: Ints
    box_start: Ints
    subject: Ints
    object: Ints
    verb: Ints
    interaction: Ints
    score: Floats
    hoi_start: Ints
    known_object: Bools
    derived: int

    @property
    def image_of_hoi(self) -> Ints:
        """[T] the image each triplet belongs to."""
        return np.repeat(np.arange(len(self.image_ids)), np.diff(self.hoi_start))

    @property
    def image_of_box(self) -> Ints:
        """[B] the image each box belongs to."""
        return np.repeat(np.arange(len(self.image_ids)), np.diff(self.box_start))


class ErrorPolicy:
    """What to do with a bad line: stop (strict, the default), or drop, count and report it (`--on-error skip`)."""

    def __init__(self, *, skip: bool = False) -> None:
        self.skip = skip
        self.skipped = 0
        self._first: DataError | None = None

    def handle(self, error: DataError) -> None:
        """Raise `error`, or count it."""
        if not self.skip:
            raise error
        self.skipped += 1
        self._first = self._first or error

    def report(self) -> None:
        """Say how many lines were dropped, and show the first."""
        if self._first is not None:
            lines = "line" if self.skipped == 1 else "lines"
            note(f"skipped {self.skipped} {lines}; the first: {self._first}")


class ImageRegister:
    """Remembers where every image was seen: an image that occurs twice is an error that names both lines.

    `known`: the images there may be (those of the ground truth); None where any will do.
    """

    def __init__(self, known: Container[str] | None = None) -> None:
        self._known = known
        self._places: dict[str, tuple[str, int]] = {}

    def add(self, image_id: str, line: Line) -> None:
        """Raises `DataError` when the image is there already, or is none of the known ones."""
        if self._known is not None and image_id not in self._known:
            raise DataError(
                f"{image_id!r} is not in the ground truth; give the set it belongs to, or pass --on-error skip",
                place=line.place,
                field="image_id",
            )
        first = self._places.setdefault(image_id, (line.file, line.number))
        if first != (line.file, line.number):
            raise DataError(
                f"image {image_id!r} is at {first[0]}:{first[1]} already; keep one line an image",
                place=line.place,
                field="image_id",
            )


def read_scenes(
    lines: Iterable[Line],
    vocabulary: Vocabulary,
    *,
    scored: bool,
    policy: ErrorPolicy,
    known: Container[str] | None = None,
    batch: int = BATCH,
) -> Iterator[Scenes]:
    """The image records of a stream as batches of columns. `scored`: predictions, which need scores.

    Raises `DataError` naming file, line and field of the first bad record, or counts it in `policy` and goes on; a
    record whose image is not in `known` is bad too.
    """
    register = ImageRegister(known)
    lines = iter(lines)
    while chunk := list(islice(lines, batch)):
        good: list[tuple[Line, Record]] = []
        for line in chunk:
            try:
                good.append((line, parse(line)))
            except DataError as error:
                policy.handle(error)
        columns = _columns([record for _, record in good], vocabulary, scored=scored)
        if columns is None:
            good = list(_checked(good, vocabulary, scored=scored, policy=policy))
            columns = _columns([record for _, record in good], vocabulary, scored=scored)
            if columns is None:
                raise AssertionError("a record passed the careful check and failed the fast one")
        kept = _unregistered(columns.image_ids, good, register, policy)
        if len(kept) != len(good):
            columns = _columns(kept, vocabulary, scored=scored)
            assert columns is not None
        if columns.image_ids:
            yield columns


def _checked(
    items: list[tuple[Line, Record]], vocabulary: Vocabulary, *, scored: bool, policy: ErrorPolicy
) -> Iterator[tuple[Line, Record]]:
    """The good items; the first problem of each bad one goes to the policy."""
    for line, record in items:
        problem = next(problems(record, vocabulary, scored=scored), None)
        if problem is None:
            yield line, record
        else:
            policy.handle(DataError(problem.text, place=line.place, field=problem.field))


def _unregistered(
    image_ids: list[str], items: list[tuple[Line, Record]], register: ImageRegister, policy: ErrorPolicy
) -> list[Record]:
    kept = []
    for image_id, (line, record) in zip(image_ids, items, strict=True):
        try:
            register.add(image_id, line)
            kept.append(record)
        except DataError as error:
            policy.handle(error)
    return kept


def _typed(values: list[Any], *allowed: type) -> None:
    """Exact types, checked at C speed: JSON's true is no index, its "1" no number."""
    if not set(map(type, values)) <= set(allowed):
        raise TypeError


def _columns(records: list[Record], vocabulary: Vocabulary, *, scored: bool) -> Scenes | None:
    """The records as columns, or None if any of them has a problem that `records.problems` can name.

    The two agree on what a good record is: tests/test_scenes.py holds them together on thousands of broken records.
    """
    try:
        return _build(records, vocabulary, scored=scored)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _build(records: list[Record], vocabulary: Vocabulary, *, scored: bool) -> Scenes:
    ids = [record["image_id"] for record in records]
    _typed(ids, str, int)
    per_image = {key: [record[key] for record in records] for key in ("boxes", "labels", "hois")}
    for lists in per_image.values():
        _typed(lists, list)
    box_counts, label_counts, hoi_counts = ([len(items) for items in lists] for lists in per_image.values())
    if box_counts != label_counts:
        raise ValueError
    box_list = list(chain.from_iterable(per_image["boxes"]))
    hois = list(chain.from_iterable(per_image["hois"]))
    coordinates = list(chain.from_iterable(box_list))
    _typed(coordinates, int, float)
    if not {4}.issuperset(map(len, box_list)):
        raise ValueError
    boxes = np.array(coordinates, dtype=np.float64).reshape(-1, 4)
    subject, object_ = ([hoi[key] for hoi in hois] for key in ("subject", "object"))
    _typed(subject, int)
    _typed(object_, int)
    scores = [hoi["score"] for hoi in hois] if scored else []
    _typed(scores, int, float)
    score = np.array(scores, dtype=np.float64) if scored else np.full(len(hois), np.nan)
    if not np.isfinite(boxes).all() or (scored and not np.isfinite(score).all()):
        raise ValueError

    object_ids, verb_ids = vocabulary.object_ids, vocabulary.verb_ids
    labels = np.array([object_ids[label] for label in chain.from_iterable(per_image["labels"])], dtype=np.int64)
    verbs = np.array([verb_ids[hoi["verb"]] for hoi in hois], dtype=np.int64)
    box_start = _starts(box_counts)
    hoi_start = _starts(hoi_counts)
    image = np.repeat(np.arange(len(records)), hoi_counts)
    limit = np.diff(box_start)[image]
    rows = [np.array(column, dtype=np.int64) for column in (subject, object_)]
    if any(((column < 0) | (column >= limit)).any() for column in rows):
        raise ValueError
    subjects, objects = (column + box_start[image] for column in rows)
    known, derived = _known_objects(records, labels, objects, image, vocabulary)
    return Scenes(
        image_ids=[str(image_id) for image_id in ids],
        boxes=boxes,
        labels=labels,
        box_start=box_start,
        subject=subjects,
        object=objects,
        verb=verbs,
        interaction=interaction_table(vocabulary)[verbs, labels[objects]],
        score=score,
        hoi_start=hoi_start,
        known_object=known,
        derived=derived,
    )


def _starts(counts: list[int]) -> Ints:
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _known_objects(
    records: list[Record], labels: Ints, objects: Ints, image: Ints, vocabulary: Vocabulary
) -> tuple[Bools, int]:
    """[N, objects] which objects an image is known to hold, and for how many images the triplets had to tell.

    Image-level labels name the objects of any verb, `no_interaction` and invisible instances included; a record
    without them falls back on its own triplets, which know no invisible instances.
    """
    known = np.zeros((len(records), len(vocabulary.objects)), dtype=bool)
    known[image, labels[objects]] = True
    derived = 0
    for row, record in enumerate(records):
        pairs = record.get("image_hois")
        if pairs is None:
            derived += 1
            continue
        _typed([pairs], list)
        _typed(pairs, list)
        _typed(list(chain.from_iterable(pairs)), str)
        for _, name in pairs:
            known[row, vocabulary.object_ids[name]] = True
    return known, derived


def interaction_table(vocabulary: Vocabulary) -> Ints:
    """[verbs, objects] the interaction id of a (verb, object), -1 where the dataset has no such class."""
    table = np.full((len(vocabulary.verbs), len(vocabulary.objects)), -1, dtype=np.int64)
    for number, (verb, name) in enumerate(vocabulary.interactions):
        table[vocabulary.verb_ids[verb], vocabulary.object_ids[name]] = number
    return table


def concatenate(batches: Iterable[Scenes], vocabulary: Vocabulary) -> Scenes:
    """One `Scenes` of many, in their order; of none, an empty one."""
    parts = list(batches) or [_build([], vocabulary, scored=False)]
    box_offsets = _starts([len(part.boxes) for part in parts])
    hoi_offsets = _starts([len(part.verb) for part in parts])

    def joined(name: str, offsets: Ints | None = None) -> Any:
        columns = [getattr(part, name) for part in parts]
        if offsets is not None:
            columns = [column + offset for column, offset in zip(columns, offsets, strict=False)]
        return np.concatenate(columns)

    def joined_starts(name: str, offsets: Ints) -> Ints:
        columns = [getattr(part, name)[:-1] + offset for part, offset in zip(parts, offsets, strict=False)]
        return np.concatenate([*columns, offsets[-1:]])

    return Scenes(
        image_ids=list(chain.from_iterable(part.image_ids for part in parts)),
        boxes=joined("boxes"),
        labels=joined("labels"),
        box_start=joined_starts("box_start", box_offsets),
        subject=joined("subject", box_offsets),
        object=joined("object", box_offsets),
        verb=joined("verb"),
        interaction=joined("interaction"),
        score=joined("score"),
        hoi_start=joined_starts("hoi_start", hoi_offsets),
        known_object=joined("known_object"),
        derived=sum(part.derived for part in parts),
    )
