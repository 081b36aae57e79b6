"""Image records that validate can look into, as columns: names as they are spelled, known to the vocabulary or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import orjson

from hoicli.io.streams import Line
from hoicli.records import caveats
from hoicli.records.columns import Images, raw_images, require, typed
from hoicli.records.image import problems_besides, seldom_problems
from hoicli.records.kit import Bools, Floats, Growing, Ints, distinct, starts_of
from hoicli.records.parsing import Record, is_number
from hoicli.records.triplets import Numbered
from hoicli.vocabulary.labels import Vocabulary

Size = tuple[float, float]
"""(width, height)."""
WITHOUT_BOXES = caveats.mask([caveats.WHOLE_IMAGE])


class TripletClass(NamedTuple):
    """The class of a triplet; no role is "", no object or no label None."""

    verb: str
    role: str = ""
    label: str | None = None


class Names(dict[str | None, int]):
    """Names and their numbers from 1: those of the vocabulary, in any spelling, then others as they appear; `spelled`
    by number. Number 0 is null, where `nulls` may stand for names. Raises `ValueError` for what is no name."""

    def __init__(self, known: Sequence[str], ids: Mapping[str, int], *, nulls: bool = False) -> None:
        """known: the vocabulary's; ids: their places by every spelling."""
        super().__init__({name: place + 1 for name, place in ids.items()})
        self.spelled: list[str | None] = [None, *known]
        self.known, self._ids = len(known), ids
        if nulls:
            self[None] = 0

    def __missing__(self, key: Any) -> int:
        require(type(key) is str)
        place = self._ids.get(key)
        if place is None:
            place = len(self.spelled) - 1
            self.spelled.append(key)
        self[key] = place + 1
        return place + 1


@dataclass(frozen=True)
class Checked(Images):
    """The records of `lines`, in which nothing is wrong but unknown labels.

    label [B], verb [T] numbers of `labels` and `verbs`; role [T] numbers of `roles`, 0 for none; sizes [N] of the image
    as the record gives it; whole [N] bool: its boxes are not to be looked at; unknown [N] how many of its labels the
    vocabulary does not have.
    """

    lines: Sequence[Line]
    label: Ints
    verb: Ints
    role: Ints
    labels: Names
    verbs: Names
    roles: list[str | None]
    sizes: list[Size | None]
    whole: Bools
    unknown: Ints

    def record(self, image: int) -> Record:
        """The record of an image, as it was read."""
        record: Record = orjson.loads(self.lines[image].data)
        return record

    @cached_property
    def object_label(self) -> Ints:
        """[T] the label of each triplet's object, 0 for none."""
        return np.append(self.label, 0)[self.object]  # no object is the last

    @cached_property
    def classes(self) -> tuple[list[TripletClass], Ints]:
        """(the classes that occur, [T] the place of each triplet's)."""
        labels, roles = len(self.labels.spelled), len(self.roles)
        code = (self.verb * labels + self.object_label) * roles + self.role
        found, place = np.unique(code, return_inverse=True)
        pair, role = np.divmod(found, roles)
        verbs, objects = self.verbs.spelled, self.labels.spelled
        names = [
            TripletClass(str(verbs[verb]), self.roles[role] or "", objects[label])
            for verb, label, role in zip(*(part.tolist() for part in (*np.divmod(pair, labels), role)), strict=True)
        ]
        return names, place


class Facts:
    """What a ground truth says of its images. rows: of each by id; by row: sizes, None where not known, and columns of
    the boxes and of the classes in it, which are numbers of `names`."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.sizes: list[Size | None] = []
        self.names: dict[TripletClass, int] = {}
        self.columns = Growing(boxes=np.float64, box_count=np.int64, classes=np.int64, class_count=np.int64)

    def add(self, batch: Checked) -> None:
        """The images of a batch; of one that occurs twice the later counts."""
        names, place = batch.classes
        self._extend(batch.image_ids, batch.sizes)
        self.columns.add(
            boxes=batch.boxes.ravel(),
            box_count=np.diff(batch.box_start),
            classes=self._numbers(names)[place],
            class_count=np.diff(batch.hoi_start),
        )

    def merge(self, other: Facts) -> None:
        """The images of the part that follows, which are others."""
        self._extend(other.rows, other.sizes)
        columns = {name: other.columns[name] for name in other.columns.names}
        self.columns.add(**columns | {"classes": self._numbers(other.names)[columns["classes"]]})

    def _extend(self, image_ids: Iterable[str], sizes: list[Size | None]) -> None:
        self.rows.update(zip(image_ids, count(len(self.sizes)), strict=False))
        self.sizes += sizes

    def _numbers(self, names: Iterable[TripletClass]) -> Ints:
        return np.array([self.names.setdefault(name, len(self.names)) for name in names], dtype=np.int64)

    @cached_property
    def classes(self) -> tuple[list[int], list[int]]:
        """([N + 1] where those of each row begin, the numbers of all), once all images are added."""
        return starts_of(self.columns["class_count"]).tolist(), self.columns["classes"].tolist()


def checked_images(lines: Sequence[Line], vocabulary: Vocabulary | None, *, scored: bool, sound: bool) -> Checked:
    """The lines as columns. sound: they are known to be good records. Otherwise an exception that `columns.attempt`
    expects is raised for any other line, and for an image record with a problem (`records.problems`) that is not an
    unknown label; and in a stream without scores for scores that are no numbers.
    """
    sizes: list[Size | None] = []
    masks: list[int] = []
    unknown: list[int] = []
    has_roles = vocabulary is not None and bool(vocabulary.roles)
    known = vocabulary or Vocabulary("", (), (), ())
    labels = Names(known.objects, known.object_ids, nulls=has_roles)
    verbs = Names(known.verbs, known.verb_ids)

    def add(record: Record) -> None:
        require("metric" not in record and not ("predictions" in record and "gt" in record))
        masks.append(caveats.of_record(record.get("caveats")))
        sizes.append(_size(record))
        if not sound:
            _check_besides(record, sizes[-1], vocabulary if has_roles else None, scored=scored)
        listed = () if vocabulary is None else (record.get("image_hois"), record.get("ambiguous_hois"))
        unknown.append(sum(name not in known.object_ids for pairs in listed if pairs for _, name in pairs))

    raw = raw_images(
        lines,
        check=add,
        scores=(int, float) if scored else (int, float, type(None)),
        nulls=has_roles,
        label=labels.__getitem__,
        verb=verbs.__getitem__,
        of_hoi={"role": None, "verb_score": 0.0},
    )
    if not sound:
        typed(raw.of_hoi["verb_score"], float, int)
        typed(raw.of_hoi["role"] if has_roles else (), str, type(None))
    roles = Numbered[str | None]({None: 0})
    named = [role if type(role) is str else None for role in raw.of_hoi["role"]]  # nothing but text is a role
    batch = Checked(
        **raw.images(),
        lines=lines,
        label=np.array(raw.labels, dtype=np.int64),
        verb=np.array(raw.verbs, dtype=np.int64),
        role=roles.of(named) if named else np.zeros(len(raw.verbs), dtype=np.int64),
        labels=labels,
        verbs=verbs,
        roles=list(roles),
        sizes=sizes,
        whole=np.array(masks, dtype=np.int64) & WITHOUT_BOXES != 0,
        unknown=np.array(unknown, dtype=np.int64),
    )
    if vocabulary is not None:
        for of_image, column, of in (
            (batch.image_of_box, batch.label, labels),
            (batch.image_of_hoi, batch.verb, verbs),
        ):
            if len(of.spelled) > of.known + 1:
                np.add.at(batch.unknown, of_image[column > of.known], 1)
        if has_roles and not sound:
            _check_roles(batch, vocabulary)
    return batch


def _size(record: Record) -> Size | None:
    """The image's size, if the record gives it in numbers."""
    width, height = record.get("width", 0), record.get("height", 0)
    return (width, height) if is_number(width) and is_number(height) and width > 0 < height else None


def _check_besides(record: Record, size: Size | None, vocabulary: Vocabulary | None, *, scored: bool) -> None:
    """Raises for a problem of the fields that `raw_images` does not read. size: as `_size` has it, which is sound.
    vocabulary: one with roles."""
    require(not any(seldom_problems(record, vocabulary, scored=scored)))
    for key in ("width", "height") if size is None else ():
        require(key not in record or (is_number(record[key]) and record[key] > 0))
    scores = record.get("scores")
    if scores is not None:
        typed([scores], list)
        typed(scores, int, float)
        require(len(scores) == len(record["boxes"]))
    if "pairs" in record:
        require(not any(problems_besides(record, ("pairs",))))


def _check_roles(batch: Checked, vocabulary: Vocabulary) -> None:
    """Raises `ValueError` for a role that a known verb does not have, and for an object without a role."""
    roles_of, roles = vocabulary.roles_of, len(batch.roles)
    pairs = distinct(batch.verb * roles + batch.role)
    for verb, role in zip(*(part.tolist() for part in np.divmod(pairs, roles)), strict=True):
        name = batch.verbs.spelled[verb]
        require(role == 0 or name not in roles_of or batch.roles[role] in roles_of[name])
    known = np.array([name in roles_of for name in batch.verbs.spelled], dtype=bool)
    require(not (known[batch.verb] & (batch.role == 0) & (batch.object >= 0)).any())


def pixels(sizes: Iterable[Size | None]) -> Floats:
    """[N, 2] width and height, NaN where not known."""
    return np.array([size or (np.nan, np.nan) for size in sizes], dtype=np.float64).reshape(-1, 2)
