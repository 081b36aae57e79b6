"""From lines to arrays: many images' boxes and triplets as flat columns, checked on the way.

A `Scenes` holds a batch of images. Reading is columnar (one comprehension a field for hundreds of lines), because a
HICO-DET dump has three quarters of a million triplets; only a batch that fails a check is walked record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from hoicli import caveats
from hoicli.errors import DataError
from hoicli.records import (
    Problem,
    Record,
    image_id_of,
    image_number,
    is_blank,
    parse,
    problems,
    truth_problems,
)
from hoicli.roles import RoleColumns
from hoicli.streams import Line, note
from hoicli.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
else:  # numpy.typing takes longer to import than a small file takes to evaluate
    Floats = Ints = Bools = np.ndarray

UNKNOWN_IMAGE, DUPLICATE_IMAGE = "unknown-image", "duplicate-image"
"""Codes of what `ImageRegister` finds."""

BATCH = 256
"""Images a batch: large enough that NumPy's overhead per call vanishes, small enough to stay in cache."""


@dataclass(frozen=True)
class Scenes:
    """N images, B boxes and T triplets as columns.

    image_ids [N] text; boxes [B, 4] float64, pixels, 0-based x1 y1 x2 y2; labels [B] object ids of the vocabulary, -1
    for a box that does not say; annotated [B] whether somebody looked at what the box's person does; subject, object
    [T] rows of `boxes`, -1 for no object; verb [T] verb ids; interaction [T] interaction ids, -1 where the vocabulary
    has no such (verb, object); score [T] (NaN for ground truth). Image n owns boxes box_start[n]:box_start[n + 1]
    and triplets hoi_start[n]:hoi_start[n + 1]. known_object [N, objects] bool: some image-level label of the image
    names the object. caveats [N] masks of `hoicli.caveats`: what each record says of itself, and for ground truth
    without image-level labels that its triplets stand in for them.
    """

    image_ids: list[str]
    boxes: Floats
    labels: Ints
    annotated: Bools
    box_start: Ints
    subject: Ints
    object: Ints
    verb: Ints
    interaction: Ints
    score: Floats
    hoi_start: Ints
    known_object: Bools
    caveats: Ints

    @property
    def derived(self) -> int:
        """How many images have no image-level labels but those of their triplets."""
        return int(np.count_nonzero(self.caveats & caveats.mask([caveats.DERIVED_LABELS])))

    @cached_property
    def every_caveat(self) -> int:
        """The mask of the caveats of any image."""
        return int(np.bitwise_or.reduce(self.caveats, initial=0))

    @cached_property
    def image_of_hoi(self) -> Ints:
        """[T] the image each triplet belongs to."""
        return np.repeat(np.arange(len(self.image_ids)), np.diff(self.hoi_start))

    @cached_property
    def object_label(self) -> Ints:
        """[T] the label of each triplet's object, -1 where there is none or it does not say."""
        if not len(self.labels):
            return np.full(len(self.object), -1, dtype=np.int64)
        return np.where(self.object < 0, -1, self.labels[self.object])

    @cached_property
    def image_of_box(self) -> Ints:
        """[B] the image each box belongs to."""
        return np.repeat(np.arange(len(self.image_ids)), np.diff(self.box_start))


class ErrorPolicy:
    """What to do with a bad line: stop (strict, the default), or drop, count and report it (`--on-error skip`)."""

    def __init__(self, *, skip: bool = False, unit: str = "line") -> None:
        self.skip = skip
        self._unit = unit
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
            units = self._unit if self.skipped == 1 else f"{self._unit}s"
            note(f"skipped {self.skipped:,} {units}; the first: {self._first}")


class ImageRegister:
    """Remembers where every image was seen: an image that occurs twice is an error that names both lines.

    `known`: the images there may be (those of the ground truth); None where any will do. `unit`: what has one line.
    """

    def __init__(self, known: Container[str] | None = None, *, unit: str = "an image") -> None:
        self._known = known
        self._unit = unit
        self._places: dict[str, tuple[str, int]] = {}

    def add(self, image_id: str, line: Line) -> None:
        """Raises `DataError` when the image is there already, or is none of the known ones."""
        if self._known is not None and image_id not in self._known:
            mend = self._meant(image_id) or "give the set it belongs to, or pass --on-error skip"
            problem = f"{image_id!r} is not in the ground truth; {mend}"
            raise DataError(problem, place=line.place, field="image_id", code=UNKNOWN_IMAGE)
        first = self._places.setdefault(image_id, (line.file, line.number))
        if first != (line.file, line.number):
            raise DataError(
                f"image {image_id!r} is at {first[0]}:{first[1]} already; keep one line {self._unit}",
                place=line.place,
                field="image_id",
                code=DUPLICATE_IMAGE,
            )

    def _meant(self, image_id: str) -> str:
        """The known image that an unknown id may mean, as a question: named by its file, or by its number alone."""
        name = image_id_of(image_id)
        same_number = self._known_by.get(image_number(name), [])
        # one of the two is a bare number: HICO_train2015_00000001 does not mean HICO_test2015_00000001
        bare = [known for known in same_number if name.isdecimal() or known.isdecimal()]
        meant = self._known_by.get(name) or bare
        return f"did you mean {meant[0]!r}? name images as the ground truth does" if len(meant) == 1 else ""

    @cached_property
    def _known_by(self) -> dict[str | int | None, list[str]]:
        """The known images by their names without extension, and by the numbers at the end of these."""
        found: dict[str | int | None, list[str]] = {}
        images: Iterable[str] = self._known if isinstance(self._known, Iterable) else ()
        for known in images:
            name = image_id_of(known)
            number = image_number(name)
            for key in (name,) if number is None else (name, number):
                found.setdefault(key, []).append(known)
        return found

    def add_all(self, image_ids: list[str], lines: list[Line]) -> bool:
        """Add the images of many lines at once if all are new, known and different; else add none and say so."""
        fresh = dict.fromkeys(image_ids)
        if len(fresh) != len(image_ids) or not self._places.keys().isdisjoint(fresh):
            return False
        if self._known is not None and not all(image_id in self._known for image_id in image_ids):
            return False
        self._places.update(zip(image_ids, ((line.file, line.number) for line in lines), strict=True))
        return True


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
    check = partial(problems, scored=True, besides=()) if scored else truth_problems
    check = partial(check, vocabulary=vocabulary)
    lines = iter(lines)
    while chunk := list(islice(lines, batch)):
        columns = columns_of(chunk, vocabulary, scored=scored)
        if columns is None or not register.add_all(columns.image_ids, chunk):
            good = list(sound_lines(chunk, register, check, policy))
            columns = columns_of(good, vocabulary, scored=scored)
            if columns is None:
                raise AssertionError("a record passed the careful check and failed the fast one")
        if columns.image_ids:
            yield columns


def sound_lines(
    lines: list[Line], register: ImageRegister, check: Callable[[Record], Iterable[Problem]], policy: ErrorPolicy
) -> Iterator[Line]:
    """The good lines, registered; the first thing that `check` says of each of the others goes to the policy."""
    for line in lines:
        try:
            record = parse(line)
            for problem in check(record):
                raise problem.error(line.place)
            register.add(str(record["image_id"]), line)
        except DataError as error:
            policy.handle(error)
        else:
            yield line


def columns_of(lines: list[Line], vocabulary: Vocabulary, *, scored: bool) -> Scenes | None:
    """The lines as columns, or None if any of them has a problem that `records.problems` can name.

    The two agree on what a good record is: tests/test_scenes.py holds them together on thousands of broken records.
    """
    try:
        return _build(lines, vocabulary, scored=scored)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _typed(values: Iterable[Any], *allowed: type) -> None:
    """Exact types, checked at C speed: JSON's true is no index, its "1" no number."""
    if not set(map(type, values)) <= set(allowed):
        raise TypeError


def _build(lines: Iterable[Line], vocabulary: Vocabulary, *, scored: bool) -> Scenes:
    """Raises one of the exceptions that `columns_of` expects for anything out of order."""
    verb_ids = vocabulary.verb_ids
    object_ids: Mapping[str | None, int] = vocabulary.object_ids  # type: ignore[assignment]
    extras = RoleColumns(vocabulary) if vocabulary.roles else None
    if extras is not None:
        object_ids = {**object_ids, None: -1}
    ids: list[Any] = []
    image_hois: list[Any] = []
    masks: list[int] = []
    counts: dict[str, list[int]] = {"boxes": [], "hois": []}
    coordinates: list[Any] = []
    labels: list[int] = []
    subject: list[Any] = []
    object_: list[Any] = []
    verb: list[int] = []
    score: list[Any] = []
    containers: set[type] = set()
    lengths: set[int] = set()
    for line in lines:  # a record is taken apart while it is in cache, and gone before the next is parsed
        record = orjson.loads(line.data)
        boxes, names, hois = record["boxes"], record["labels"], record["hois"]
        containers.update((type(boxes), type(names), type(hois)))
        if len(boxes) != len(names):
            raise ValueError
        ids.append(record["image_id"])
        image_hois.append(record.get("image_hois"))
        masks.append(caveats.of_record(record.get("caveats")))
        counts["boxes"].append(len(boxes))
        counts["hois"].append(len(hois))
        lengths.update(map(len, boxes))
        coordinates += chain.from_iterable(boxes)
        labels += [object_ids[name] for name in names]
        subject += [hoi["subject"] for hoi in hois]
        object_ += [hoi["object"] for hoi in hois]
        verb += [verb_ids[hoi["verb"]] for hoi in hois]
        if scored:
            score += [hoi["score"] for hoi in hois]
        elif any(hoi.get("score") is not None for hoi in hois):  # predictions, given as ground truth
            raise ValueError
        if extras is not None:
            extras.add(record, scored=scored)
    _typed(ids, str, int)
    if any(map(is_blank, ids)):
        raise ValueError
    _typed(coordinates, int, float)
    _typed(subject, int)
    if extras is not None:
        object_ = extras.without_object(object_)
    _typed(object_, int)
    _typed(score, int, float)
    if not (containers <= {list} and lengths <= {4}):
        raise ValueError

    box_start, hoi_start = _starts(counts["boxes"]), _starts(counts["hois"])
    image = np.repeat(np.arange(len(ids)), counts["hois"])
    limit = np.diff(box_start)[image]
    rows = [np.array(column, dtype=np.int64) for column in (subject, object_)]
    numbers = [np.array(column, dtype=np.float64) for column in (coordinates, score)]
    absent = np.zeros(len(image), dtype=bool) if extras is None else extras.absent
    if any(((column < 0) | (column >= limit)).any() for column in rows):
        raise ValueError
    if not all(np.isfinite(column).all() for column in numbers):
        raise ValueError
    subjects, objects = (column + box_start[image] for column in rows)
    label, verbs = np.array(labels, dtype=np.int64), np.array(verb, dtype=np.int64)
    if extras is not None:
        objects[absent] = -1
        interaction = extras.interactions(verbs)
    else:
        interaction = interaction_table(vocabulary)[verbs, label[objects]]
    known, derived = _known_objects(image_hois, label, objects, image, vocabulary)
    scenes = Scenes(
        image_ids=[str(image_id) for image_id in ids],
        boxes=numbers[0].reshape(-1, 4),
        labels=label,
        annotated=np.ones(len(label), dtype=bool) if extras is None else extras.annotated(counts["boxes"]),
        box_start=box_start,
        subject=subjects,
        object=objects,
        verb=verbs,
        interaction=interaction,
        score=numbers[1] if scored else np.full(len(verbs), np.nan),
        hoi_start=hoi_start,
        known_object=known,
        caveats=np.array(masks, dtype=np.int64) | (0 if scored else derived),
    )
    return scenes if extras is None else extras.completed(scenes)


def _starts(counts: list[int]) -> Ints:
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _known_objects(
    image_hois: list[Any], labels: Ints, objects: Ints, image: Ints, vocabulary: Vocabulary
) -> tuple[Bools, Ints]:
    """([N, objects] which objects an image is known to hold, [N] the mask that says where the triplets had to tell).

    Image-level labels name the objects of any verb, `no_interaction` and invisible instances included; a record
    without them falls back on its own triplets (objects [T], of images [T]), which know no invisible instances.
    """
    known = np.zeros((len(image_hois), len(vocabulary.objects)), dtype=bool)
    if not vocabulary.roles:  # where objects may be absent there is no Known Object setting
        known[image, labels[objects]] = True
    without = caveats.mask([caveats.DERIVED_LABELS])
    derived = np.array([without if pairs is None else 0 for pairs in image_hois], dtype=np.int64)
    for row, pairs in enumerate(image_hois):
        if pairs is None:
            continue
        _typed([pairs], list)
        _typed(pairs, list)
        _typed(chain.from_iterable(pairs), str)
        for _, name in pairs:
            known[row, vocabulary.object_ids[name]] = True
    return known, derived


def expanded(start: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Runs laid end to end: (run, position) of each of the sum(count) places, run r being start[r], start[r] + 1, ...

    How everything here meets what it belongs to without a loop: a run per row, `count` of it possibly zero.
    """
    run = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count)
    return run, start[run] + within


def rank_by_id(image_ids: list[str]) -> Ints:
    """[N] each image's place among all images sorted by id: what breaks ties, whatever order the lines came in."""
    rank = np.empty(len(image_ids), dtype=np.int64)
    rank[sorted(range(len(rank)), key=image_ids.__getitem__)] = np.arange(len(rank))
    return rank


@cache
def interaction_table(vocabulary: Vocabulary) -> Ints:
    """[verbs, objects] the interaction id of a (verb, object), -1 where the dataset has no such class."""
    table = np.full((len(vocabulary.verbs), len(vocabulary.objects)), -1, dtype=np.int64)
    for number, (verb, name) in enumerate(vocabulary.interactions):
        table[vocabulary.verb_ids[verb], vocabulary.object_ids[name]] = number
    return table


def concatenate(batches: Iterable[Scenes], vocabulary: Vocabulary) -> Scenes:
    """One `Scenes` of many, in their order; of none, an empty one."""
    parts = list(batches) or [_build((), vocabulary, scored=False)]
    box_offsets = _starts([len(part.boxes) for part in parts])
    hoi_offsets = _starts([len(part.verb) for part in parts])

    def joined(name: str, offsets: Ints | None = None) -> Any:
        columns = [getattr(part, name) for part in parts]
        if offsets is not None:  # -1, for no object, stays
            columns = [
                np.where(column < 0, -1, column + offset) for column, offset in zip(columns, offsets, strict=False)
            ]
        return np.concatenate(columns)

    def joined_starts(name: str, offsets: Ints) -> Ints:
        columns = [getattr(part, name)[:-1] + offset for part, offset in zip(parts, offsets, strict=False)]
        return np.concatenate([*columns, offsets[-1:]])

    return Scenes(
        image_ids=list(chain.from_iterable(part.image_ids for part in parts)),
        boxes=joined("boxes"),
        labels=joined("labels"),
        annotated=joined("annotated"),
        box_start=joined_starts("box_start", box_offsets),
        subject=joined("subject", box_offsets),
        object=joined("object", box_offsets),
        verb=joined("verb"),
        interaction=joined("interaction"),
        score=joined("score"),
        hoi_start=joined_starts("hoi_start", hoi_offsets),
        known_object=joined("known_object"),
        caveats=joined("caveats"),
    )
