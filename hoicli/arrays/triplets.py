"""Image records whose labels are free text, as columns: what an open vocabulary needs and `hoicli.arrays.reading`
cannot hold.

A name is a label together with the WordNet sense that the record gives for it (`verb_synset` of a triplet, `synsets`
of the boxes), if it does. Names are numbered as they come; an action without an object has the name NOTHING. Scores
may be missing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import orjson

from hoicli.arrays.reading import BATCH, sound_lines
from hoicli.io.streams import Line
from hoicli.records.image import problems, score_problems
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.names import is_blank
from hoicli.records.parsing import Problem, is_number

if TYPE_CHECKING:
    from hoicli.arrays.kit import Bools, Floats, Ints

Name = tuple[str | None, str | None]
"""(label as it is spelled, sense as the record names it or None)."""

NOTHING: Name = (None, None)
"""The object of an action that has none."""

NO_BOX = -1


Key = TypeVar("Key")


class _Numbered(dict[Key, int]):
    """Numbers for what is asked for, given at first sight."""

    def __missing__(self, key: Key) -> int:
        number = self[key] = len(self)
        return number


class Names(_Numbered[Name]):
    """Numbers for names."""


@dataclass(frozen=True)
class Triplets:
    """N images, B boxes, T triplets.

    image_ids [N]; boxes [B, 4] float64 x1 y1 x2 y2; box_label [B] numbers of `labels`, as they are spelled; subject,
    object [T] rows of `boxes`, NO_BOX for an action without an object; verb, label [T] numbers of names in `verbs` and
    `objects`; score [T], NaN where there is none. Image n owns boxes box_start[n]:box_start[n + 1] and triplets
    hoi_start[n]:hoi_start[n + 1].
    """

    image_ids: list[str]
    boxes: Floats
    box_label: Ints
    box_start: Ints
    subject: Ints
    object: Ints
    verb: Ints
    label: Ints
    score: Floats
    hoi_start: Ints
    labels: list[str]
    verbs: list[Name]
    objects: list[Name]

    @property
    def image_of_hoi(self) -> Ints:
        """[T] the image each triplet belongs to."""
        return np.repeat(np.arange(len(self.image_ids)), np.diff(self.hoi_start))

    def of_images(self, keep: Bools) -> Triplets:
        """The same without the images that `keep` [N] leaves out; names and their numbers stay."""
        image_of_box = np.repeat(np.arange(len(self.image_ids)), np.diff(self.box_start))
        box, hoi = keep[image_of_box], keep[self.image_of_hoi]
        new_row = np.cumsum(box) - 1
        thing = self.object[hoi]
        return Triplets(
            image_ids=[image_id for image_id, kept in zip(self.image_ids, keep.tolist(), strict=True) if kept],
            boxes=self.boxes[box],
            box_label=self.box_label[box],
            box_start=_starts(np.diff(self.box_start)[keep].tolist()),
            subject=new_row[self.subject[hoi]],
            object=np.where(thing == NO_BOX, NO_BOX, new_row[thing]) if len(new_row) else thing,
            verb=self.verb[hoi],
            label=self.label[hoi],
            score=self.score[hoi],
            hoi_start=_starts(np.diff(self.hoi_start)[keep].tolist()),
            labels=self.labels,
            verbs=self.verbs,
            objects=self.objects,
        )


def read_triplets(
    lines: Iterable[Line],
    *,
    policy: ErrorPolicy,
    known: Container[str] | None = None,
    truth: bool = False,
    batch: int = BATCH,
) -> Triplets:
    """All image records of a stream; `truth`: ground truth, which has no scores.

    Raises `DataError` naming file, line and field of the first bad record, or counts it in `policy` and goes on; an
    image that occurs twice, or is not in `known`, is bad too.
    """
    register = ImageRegister(known)
    columns = _Columns()
    lines = iter(lines)
    while chunk := list(islice(lines, batch)):
        part = _part_of(chunk)
        if part is None or (truth and not np.isnan(part.score).all()) or not register.add_all(part.image_ids, chunk):
            good = list(sound_lines(chunk, register, open_truth_problems if truth else open_problems, policy))
            part = _part_of(good)
            if part is None:
                raise AssertionError("a record passed the careful check and failed the fast one")
        columns.add(part)
    return columns.joined()


def open_problems(record: dict[str, Any]) -> Iterator[Problem]:
    """Everything in a record that this module cannot read, in reading order: as `records.problems` has it for any
    vocabulary, but scores may be missing, an object may be null, and senses must be names."""
    hois = record.get("hois")
    listed = [hoi if type(hoi) is dict else {} for hoi in hois] if type(hois) is list else []
    without = {f"hois[{index}].object" for index, hoi in enumerate(listed) if hoi.get("object", 0) is None}
    for problem in problems(record, None, scored=False, besides=()):
        if problem.field not in without and not problem.field.startswith("image_hois"):
            yield problem
    for index, hoi in enumerate(listed):
        if hoi.get("score") is not None and not is_number(hoi["score"]):
            yield Problem(f"hois[{index}].score", "no finite number; give one, or leave the score out")
        if type(hoi.get("verb_synset")) not in (str, type(None)):
            yield Problem(f"hois[{index}].verb_synset", "no sense; name one, for example ride.v.10, or leave it out")
    synsets, boxes = record.get("synsets"), record.get("boxes")
    if synsets is None:
        return
    if type(synsets) is not list or not all(type(sense) in (str, type(None)) for sense in synsets):
        yield Problem("synsets", "must be an array of senses (or null), one a box, for example train.n.01")
    elif type(boxes) is list and len(synsets) != len(boxes):
        yield Problem("synsets", f"{len(synsets)} senses for {len(boxes)} boxes; give one a box, null where unknown")


def open_truth_problems(record: dict[str, Any]) -> Iterator[Problem]:
    """As `open_problems`, and scores, which are none of ground truth's."""
    yield from open_problems(record)
    yield from score_problems(record)


@dataclass(frozen=True)
class _Part:
    """Columns of some lines, box numbers counting from the image's own, names still as they are."""

    image_ids: list[str]
    box_counts: list[int]
    hoi_counts: list[int]
    boxes: Floats
    box_labels: list[str]
    subject: Ints
    object: Ints
    verbs: list[Name]
    labels: list[Name]
    score: Floats


def _part_of(lines: list[Line]) -> _Part | None:
    """The lines as columns, or None if any of them has a problem that `open_problems` can name."""
    try:
        return _build(lines)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _only(values: Iterable[Any], *allowed: type) -> None:
    """Exact types, checked at C speed: JSON's true is no index."""
    if not set(map(type, values)) <= set(allowed):
        raise TypeError


def _build(lines: list[Line]) -> _Part:
    """Raises one of the exceptions that `_part_of` expects for anything out of order."""
    ids: list[Any] = []
    box_counts: list[int] = []
    hoi_counts: list[int] = []
    coordinates: list[Any] = []
    box_labels: list[str] = []
    subject: list[Any] = []
    objects: list[Any] = []
    verbs: list[Any] = []
    verb_senses: list[Any] = []
    labels: list[Any] = []
    score: list[Any] = []
    for line in lines:
        record = orjson.loads(line.data)
        boxes, names, hois, senses = record["boxes"], record["labels"], record["hois"], record.get("synsets")
        _only((boxes, names, hois), list)
        _only(boxes, list)
        _only(names, str)
        if len(boxes) != len(names) or not {4}.issuperset(map(len, boxes)):
            raise ValueError
        if senses is None:
            box_names: list[Name] = [(name, None) for name in names]
        else:
            _only([senses], list)
            _only(senses, str, type(None))
            box_names = list(zip(names, senses, strict=True))
        ids.append(record["image_id"])
        box_counts.append(len(boxes))
        hoi_counts.append(len(hois))
        coordinates += chain.from_iterable(boxes)
        box_labels += names
        subject += [hoi["subject"] for hoi in hois]
        things = [hoi["object"] for hoi in hois]
        objects += things
        verbs += [hoi["verb"] for hoi in hois]
        verb_senses += [hoi.get("verb_synset") for hoi in hois]
        score += [hoi.get("score") for hoi in hois]
        # An index below 0 or a wrong type is caught by the checks below; one beyond the boxes is an IndexError here.
        try:
            labels += [NOTHING if thing is None else box_names[thing] for thing in things]
        except IndexError:
            raise ValueError from None
    _only(ids, str, int)
    if any(map(is_blank, ids)):
        raise ValueError
    _only(coordinates, int, float)
    _only(subject, int)
    _only(objects, int, type(None))
    _only(verbs, str)
    _only(verb_senses, str, type(None))
    _only(score, int, float, type(None))
    numbers = np.array(coordinates, dtype=np.float64)
    scores = np.array(score, dtype=np.float64)
    if not np.isfinite(numbers).all() or np.isinf(scores).any():
        raise ValueError
    limit = np.repeat(box_counts, hoi_counts)
    first = np.array(subject, dtype=np.int64)
    absent = np.fromiter((thing is None for thing in objects), dtype=bool, count=len(objects))
    second = np.array([0 if thing is None else thing for thing in objects], dtype=np.int64)
    if ((first < 0) | (first >= limit) | (second < 0) | ((second >= limit) & ~absent)).any():
        raise ValueError
    second[absent] = NO_BOX
    return _Part(
        image_ids=[str(image_id) for image_id in ids],
        box_counts=box_counts,
        hoi_counts=hoi_counts,
        boxes=numbers.reshape(-1, 4),
        box_labels=box_labels,
        subject=first,
        object=second,
        verbs=list(zip(verbs, verb_senses, strict=True)),
        labels=labels,
        score=scores,
    )


class _Columns:
    """Gathers parts, and numbers their names."""

    def __init__(self) -> None:
        self._labels: _Numbered[str] = _Numbered()
        self._verbs, self._objects = Names(), Names()
        self._parts: list[_Part] = []
        self._numbers: list[tuple[Ints, Ints, Ints]] = []

    def add(self, part: _Part) -> None:
        columns = (self._labels, part.box_labels), (self._verbs, part.verbs), (self._objects, part.labels)
        box_label, verb, label = (_numbers(known, names) for known, names in columns)
        for _, names in columns:
            names.clear()  # a million tuples would otherwise wait for the end
        self._parts.append(part)
        self._numbers.append((box_label, verb, label))

    def joined(self) -> Triplets:
        parts = self._parts
        box_start = _starts(chain.from_iterable(part.box_counts for part in parts))
        hoi_start = _starts(chain.from_iterable(part.hoi_counts for part in parts))
        first = np.repeat(box_start[:-1], np.diff(hoi_start))
        subject, thing = (
            np.concatenate([np.zeros(0, dtype=np.int64), *columns])
            for columns in ([part.subject for part in parts], [part.object for part in parts])
        )
        box_label, verb, label = (
            np.concatenate([np.zeros(0, dtype=np.int64), *(numbers[at] for numbers in self._numbers)])
            for at in range(3)
        )
        return Triplets(
            image_ids=list(chain.from_iterable(part.image_ids for part in parts)),
            boxes=np.concatenate([np.zeros((0, 4)), *(part.boxes for part in parts)]),
            box_label=box_label,
            box_start=box_start,
            subject=subject + first,
            object=np.where(thing == NO_BOX, NO_BOX, thing + first),
            verb=verb,
            label=label,
            score=np.concatenate([np.zeros(0), *(part.score for part in parts)]),
            hoi_start=hoi_start,
            labels=list(self._labels),
            verbs=list(self._verbs),
            objects=list(self._objects),
        )


def _numbers(known: _Numbered[Any], names: Sequence[Any]) -> Ints:
    """The numbers of names, in their order."""
    return np.fromiter(map(known.__getitem__, names), dtype=np.int64, count=len(names))


def _starts(counts: Iterable[int]) -> Ints:
    listed = list(counts)
    starts = np.zeros(len(listed) + 1, dtype=np.int64)
    np.cumsum(listed, out=starts[1:])
    return starts
