"""From lines to arrays: many images' boxes and triplets as flat columns, checked on the way.

A `Scenes` holds a batch of images. Reading is columnar (one comprehension a field for hundreds of lines), because a
HICO-DET dump has three quarters of a million triplets; only a batch that fails a check is walked record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import chain, islice
from typing import Any

import numpy as np
import orjson

from hoicli.arrays.kit import Bools, Ints, starts_of
from hoicli.arrays.roles import RoleColumns
from hoicli.arrays.scenes import Scenes
from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records import caveats
from hoicli.records.image import problems, truth_problems
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.names import is_blank
from hoicli.records.parsing import Problem, Record, parse
from hoicli.vocabulary.labels import Vocabulary

BATCH = 256
"""Images a batch: large enough that NumPy's overhead per call vanishes, small enough to stay in cache."""


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

    The two agree on what a good record is: tests/arrays/test_reading.py holds them together on thousands of broken
    records.
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

    box_start, hoi_start = starts_of(counts["boxes"]), starts_of(counts["hois"])
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
    box_offsets = starts_of([len(part.boxes) for part in parts])
    hoi_offsets = starts_of([len(part.verb) for part in parts])

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
