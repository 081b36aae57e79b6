"""Image records as columns, for the checks of `validate`. Labels and verbs that the vocabulary does not know are kept,
too, as they are spelled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import orjson

from hoicli.evaluation.box_evidence import roles_of_boxes
from hoicli.io.streams import Line
from hoicli.records import caveats
from hoicli.records.columns import Images, RawImages, check_types, raw_images, require
from hoicli.records.image import optional_field_problems, rare_field_problems
from hoicli.records.kit import Bools, Floats, Growing, Ints, distinct, starts_of
from hoicli.records.parsing import Record, is_number
from hoicli.records.triplets import Numbered
from hoicli.vocabulary.labels import Vocabulary

Size = tuple[float, float]
"""The width and height of an image in pixels."""
WITHOUT_BOXES = caveats.mask([caveats.WHOLE_IMAGE])
"""The caveats (as bits of a number) of records whose boxes are the whole image and say nothing."""


class TripletClass(NamedTuple):
    """The class of a triplet. role: "" where there is none; label: that of the object, None where there is none."""

    verb: str
    role: str = ""
    label: str | None = None


class Names(dict[str | None, int]):
    """The numbers of labels, or of verbs, from 1: first the names of the vocabulary in any spelling, then others, which
    get the next number when they are looked up for the first time.

    spelled: the name of each number (number 0 is null, no name); known: how many names are the vocabulary's. Looking up
    anything that is no text raises `ValueError`."""

    def __init__(self, vocabulary_names: Sequence[str], ids: Mapping[str, int], *, nulls: bool = False) -> None:
        """Start with the names of the vocabulary. ids: the place of each, from 0, by every spelling; nulls: whether
        null may be a name."""
        super().__init__({name: place + 1 for name, place in ids.items()})
        self.spelled: list[str | None] = [None, *vocabulary_names]  # the name of each number; 0 is no name
        self.known, self._ids = len(vocabulary_names), ids
        if nulls:
            self[None] = 0

    def __missing__(self, key: Any) -> int:
        """Return the number of a name that is looked up for the first time."""
        require(type(key) is str)
        place = self._ids.get(key)  # the vocabulary recognises other spellings, too
        if place is None:  # a name that the vocabulary does not have
            place = len(self.spelled) - 1
            self.spelled.append(key)
        self[key] = place + 1
        return place + 1


@dataclass(frozen=True)
class Checked(Images):
    """The image records in `lines`, in which nothing is wrong but unknown labels, as columns.

    label [B]: the number of each box's label, in `labels`; verb [T]: the number of each triplet's verb, in `verbs`;
    role [T]: the number of its role, in `roles`, 0 for none. sizes [N]: the size of each image as its record gives it;
    whole [N]: whether its boxes are the whole image, so that they are not checked; unknown [N]: how many of its labels
    and verbs the vocabulary does not have."""

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
        """Return the record of an image as it was read."""
        record: Record = orjson.loads(self.lines[image].data)
        return record

    @cached_property
    def object_label(self) -> Ints:
        """The number [T] of the label of each triplet's object, 0 for none."""
        return np.append(self.label, 0)[self.object]  # no object is -1: the last entry

    @cached_property
    def classes(self) -> tuple[list[TripletClass], Ints]:
        """The different classes that occur, and the place [T] of each triplet's class among them."""
        labels, roles = len(self.labels.spelled), len(self.roles)
        # Verb, object and role in one number, so that np.unique finds the different classes.
        class_code = (self.verb * labels + self.object_label) * roles + self.role
        class_codes, place = np.unique(class_code, return_inverse=True)
        verb_and_label, role_numbers = np.divmod(class_codes, roles)
        verb_numbers, label_numbers = np.divmod(verb_and_label, labels)
        columns = zip(verb_numbers.tolist(), role_numbers.tolist(), label_numbers.tolist(), strict=True)
        verbs, objects = self.verbs.spelled, self.labels.spelled
        names = [
            TripletClass(str(verbs[verb]), self.roles[role] or "", objects[label]) for verb, role, label in columns
        ]
        return names, place


class Facts:
    """What a ground truth says about its images, for checking predictions against it.

    rows: the row of each image, by its id. sizes: the size of the image in each row, None if it is not known. names:
    the number of each class that occurs. columns: `boxes`, all corners one after another, `roles`, what each box is in
    triplets (`roles_of_boxes`), and `box_count`, how many boxes each row has; `classes`, the class number of each
    triplet, and `class_count`, how many triplets each row has."""

    def __init__(self) -> None:
        """Start without images."""
        self.rows: dict[str, int] = {}  # the row of each image, by its id
        self.sizes: list[Size | None] = []
        self.names: dict[TripletClass, int] = {}
        self.columns = Growing(
            boxes=np.float64, roles=np.int64, box_count=np.int64, classes=np.int64, class_count=np.int64
        )

    def add(self, batch: Checked) -> None:
        """Add the images of a batch; of an image that occurs twice, the later record counts."""
        names, place = batch.classes
        self._extend(batch.image_ids, batch.sizes)
        self.columns.add(
            boxes=batch.boxes.ravel(),
            roles=roles_of_boxes(batch),
            box_count=np.diff(batch.box_start),
            classes=self._numbers(names)[place],
            class_count=np.diff(batch.hoi_start),
        )

    def merge(self, other: Facts) -> None:
        """Add the images of the part of the stream that follows; no image is in both."""
        self._extend(other.rows, other.sizes)
        columns = {name: other.columns[name] for name in other.columns.names}
        self.columns.add(**columns | {"classes": self._numbers(other.names)[columns["classes"]]})

    def _extend(self, image_ids: Iterable[str], sizes: list[Size | None]) -> None:
        """Add images and their sizes, in the next rows."""
        self.rows.update(zip(image_ids, count(len(self.sizes)), strict=False))
        self.sizes += sizes

    def _numbers(self, names: Iterable[TripletClass]) -> Ints:
        """Return the numbers of classes; a class that has none gets the next one."""
        return np.array([self.names.setdefault(name, len(self.names)) for name in names], dtype=np.int64)

    @cached_property
    def classes(self) -> tuple[list[int], list[int]]:
        """Where the classes of each row begin, [N + 1], and the class numbers of all. To be read once all are added."""
        return starts_of(self.columns["class_count"]).tolist(), self.columns["classes"].tolist()


def checked_images(lines: Sequence[Line], vocabulary: Vocabulary | None, *, scored: bool, sound: bool) -> Checked:
    """Return the image records in some lines as columns. scored: whether they are predictions; sound: whether they are
    known to be good.

    Unless they are, raise an exception that `columns.attempt` catches for a line that is no image record, that has a
    problem (`records.problems`) other than an unknown label, or that has a score which is no number."""
    has_roles = vocabulary is not None and bool(vocabulary.roles)
    vocabulary_or_empty = vocabulary or Vocabulary("", (), (), ())
    labels = Names(vocabulary_or_empty.objects, vocabulary_or_empty.object_ids, nulls=has_roles)
    verbs = Names(vocabulary_or_empty.verbs, vocabulary_or_empty.verb_ids)
    details = _RecordDetails(vocabulary, scored=scored, sound=sound)

    # Read the lines; `details` checks and gathers, record by record, what columns do not hold.
    raw = raw_images(
        lines,
        check=details.add,
        scores=(int, float) if scored else (int, float, type(None)),
        nulls=has_roles,
        label=labels.__getitem__,
        verb=verbs.__getitem__,
        of_hoi={"role": None, "verb_score": 0.0},
    )
    if not sound:  # of the optional fields of triplets
        check_types(raw.of_hoi["verb_score"], float, int)
        check_types(raw.of_hoi["role"] if has_roles else (), str, type(None))
    role, roles = _numbered_roles(raw)
    batch = Checked(
        **raw.images(),
        lines=lines,
        label=np.array(raw.labels, dtype=np.int64),
        verb=np.array(raw.verbs, dtype=np.int64),
        role=role,
        labels=labels,
        verbs=verbs,
        roles=roles,
        sizes=details.sizes,
        whole=(np.array(details.masks, dtype=np.int64) & WITHOUT_BOXES) != 0,  # masks: caveats as bits
        unknown=np.array(details.unknown, dtype=np.int64),
    )
    if vocabulary is not None:
        _count_unknown_names(batch)
        if has_roles and not sound:
            _check_roles(batch, vocabulary)
    return batch


class _RecordDetails:
    """Checks records, and collects what `raw_images` does not read of them: `sizes`, the size of each image; `masks`,
    its caveats as bits of a number; `unknown`, how many objects in its image-level labels the vocabulary lacks."""

    def __init__(self, vocabulary: Vocabulary | None, *, scored: bool, sound: bool) -> None:
        """Start without records. scored: whether they are predictions; sound: whether they are known to be good."""
        self.sizes: list[Size | None] = []
        self.masks: list[int] = []
        self.unknown: list[int] = []
        self._scored, self._sound = scored, sound
        self._vocabulary_with_roles = vocabulary if vocabulary is not None and vocabulary.roles else None
        self._object_ids: Mapping[str, int] = {} if vocabulary is None else vocabulary.object_ids
        self._image_label_keys = () if vocabulary is None else ("image_hois", "ambiguous_hois")

    def add(self, record: Record) -> None:
        """Add an image record. Raises an exception that `columns.attempt` catches if it is a result row, a match record
        or, unless all are sound, a bad image record."""
        require("metric" not in record and not ("predictions" in record and "gt" in record))
        self.masks.append(caveats.read_caveats(record.get("caveats")))
        size = _size(record)
        self.sizes.append(size)
        if not self._sound:
            _check_other_fields(record, size, self._vocabulary_with_roles, scored=self._scored)
        unknown = 0
        for key in self._image_label_keys:
            for _, object_ in record.get(key) or ():
                unknown += object_ not in self._object_ids
        self.unknown.append(unknown)


def _numbered_roles(raw: RawImages) -> tuple[Ints, list[str | None]]:
    """Return [T] the number of each triplet's role, and the role that each number stands for. Number 0 is no role."""
    numbered = Numbered[str | None]({None: 0})
    names = [role if type(role) is str else None for role in raw.of_hoi["role"]]  # nothing but text is a role
    role = numbered.numbers_of(names) if names else np.zeros(len(raw.verbs), dtype=np.int64)
    return role, list(numbered)


def _count_unknown_names(batch: Checked) -> None:
    """Add to `batch.unknown` how many labels and verbs of each image the vocabulary does not have."""
    for image, column, names in (
        (batch.image_of_box, batch.label, batch.labels),
        (batch.image_of_hoi, batch.verb, batch.verbs),
    ):
        if len(names.spelled) > names.known + 1:  # number 0 is no name
            np.add.at(batch.unknown, image[column > names.known], 1)


def _size(record: Record) -> Size | None:
    """Return the size of the image that a record gives, None unless it consists of two numbers above 0."""
    width, height = record.get("width", 0), record.get("height", 0)
    are_sides = is_number(width) and is_number(height) and width > 0 and height > 0
    return (width, height) if are_sides else None


def _check_other_fields(record: Record, size: Size | None, vocabulary: Vocabulary | None, *, scored: bool) -> None:
    """Raise an exception that `columns.attempt` catches for a problem in fields that `raw_images` does not read. size:
    of the record's image, None unless it is two numbers above 0; vocabulary: None unless it has roles."""
    require(not any(rare_field_problems(record, vocabulary, scored=scored)))
    for key in ("width", "height") if size is None else ():
        require(key not in record or (is_number(record[key]) and record[key] > 0))
    scores = record.get("scores")
    if scores is not None:
        check_types([scores], list)
        check_types(scores, int, float)
        require(len(scores) == len(record["boxes"]))
    if "pairs" in record:
        require(not any(optional_field_problems(record, ("pairs",))))


def _check_roles(batch: Checked, vocabulary: Vocabulary) -> None:
    """Raise `ValueError` for a role that a known verb does not have, and for an object without a role."""
    roles_of = [vocabulary.find_roles(name) for name in batch.verbs.spelled]  # None: an unknown verb
    roles = len(batch.roles)
    verbs, role_numbers = np.divmod(distinct(batch.verb * roles + batch.role), roles)  # each combination once
    for verb, role in zip(verbs.tolist(), role_numbers.tolist(), strict=True):
        known_roles = roles_of[verb]
        require(role == 0 or known_roles is None or batch.roles[role] in known_roles)
    verb_known = np.array([known_roles is not None for known_roles in roles_of], dtype=bool)
    require(not (verb_known[batch.verb] & (batch.role == 0) & (batch.object >= 0)).any())


def pixels(sizes: Iterable[Size | None]) -> Floats:
    """Return [N, 2] the width and height of images in pixels, NaN where a size is not known (None)."""
    return np.array([size or (np.nan, np.nan) for size in sizes], dtype=np.float64).reshape(-1, 2)
