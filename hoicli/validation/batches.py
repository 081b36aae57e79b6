"""Image records that validate can look into, as columns, and what is wrong with them that a metric would use without a
word. Names are as they are spelled, known to the vocabulary or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, count
from typing import Any, NamedTuple

import numpy as np
import orjson

from hoicli.io.streams import Line
from hoicli.records import caveats
from hoicli.records.boxes import find_inverted, find_repeated
from hoicli.records.columns import Images, check_types, raw_images, require
from hoicli.records.image import UNKNOWN_LABEL, problems, problems_besides, seldom_problems
from hoicli.records.kit import Bools, Floats, Growing, Ints, distinct, starts_of
from hoicli.records.parsing import Record, is_number
from hoicli.records.triplets import Numbered
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

Size = tuple[float, float]
"""(width, height)."""
WITHOUT_BOXES = caveats.mask([caveats.WHOLE_IMAGE])
MARGIN = 0.1
"""Ours: detectors overshoot the image a little; a box over a tenth of its side outside is in another frame."""


class TripletClass(NamedTuple):
    """The class of a triplet; no role is "", no object or no label None."""

    verb: str
    role: str = ""
    label: str | None = None


class Names(dict[str | None, int]):
    """Names and their numbers from 1: those of the vocabulary, in any spelling, then others as they appear; `spelled`
    by number. Number 0 is null, where `nulls` may stand for names. Raises `ValueError` for what is no name."""

    def __init__(self, vocabulary_names: Sequence[str], ids: Mapping[str, int], *, nulls: bool = False) -> None:
        """vocabulary_names: the vocabulary's; ids: their places by every spelling."""
        super().__init__({name: place + 1 for name, place in ids.items()})
        self.spelled: list[str | None] = [None, *vocabulary_names]
        self.known, self._ids = len(vocabulary_names), ids
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
        codes, place = np.unique(code, return_inverse=True)
        pair, role = np.divmod(codes, roles)
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
    known_vocabulary = vocabulary or Vocabulary("", (), (), ())
    labels = Names(known_vocabulary.objects, known_vocabulary.object_ids, nulls=has_roles)
    verbs = Names(known_vocabulary.verbs, known_vocabulary.verb_ids)

    def add(record: Record) -> None:
        require("metric" not in record and not ("predictions" in record and "gt" in record))
        masks.append(caveats.read_caveats(record.get("caveats")))
        sizes.append(_size(record))
        if not sound:
            _check_besides(record, sizes[-1], vocabulary if has_roles else None, scored=scored)
        listed = () if vocabulary is None else (record.get("image_hois"), record.get("ambiguous_hois"))
        unknown.append(
            sum(
                name not in known_vocabulary.object_ids
                for _, name in chain.from_iterable(pairs for pairs in listed if pairs)
            )
        )

    raw = raw_images(
        lines,
        check=add,
        every_key=not sound,
        scores=(int, float) if scored else (int, float, type(None)),
        nulls=has_roles,
        label=labels.__getitem__,
        verb=verbs.__getitem__,
        of_hoi={"role": None, "verb_score": 0.0},
    )
    if not sound:
        check_types(raw.of_hoi["verb_score"], float, int)
        check_types(raw.of_hoi["role"] if has_roles else (), str, type(None))
    roles = Numbered[str | None]({None: 0})
    named = [role if type(role) is str else None for role in raw.of_hoi["role"]]  # nothing but text is a role
    batch = Checked(
        **raw.images(),
        lines=lines,
        label=np.array(raw.labels, dtype=np.int64),
        verb=np.array(raw.verbs, dtype=np.int64),
        role=roles.numbers_of(named) if named else np.zeros(len(raw.verbs), dtype=np.int64),
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
        check_types([scores], list)
        check_types(scores, int, float)
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
    verb_known = np.array([name in roles_of for name in batch.verbs.spelled], dtype=bool)
    require(not (verb_known[batch.verb] & (batch.role == 0) & (batch.object >= 0)).any())


def pixels(sizes: Iterable[Size | None]) -> Floats:
    """[N, 2] width and height, NaN where not known."""
    return np.array([size or (np.nan, np.nan) for size in sizes], dtype=np.float64).reshape(-1, 2)


Cases = tuple[str, Ints, Callable[[str], str]]
"""The cases of a check in a batch: (its code, [M] the image of each, ascending, what says what the first is, given the
place of its line)."""


def faults(
    batch: Checked, vocabulary: Vocabulary | None, theirs: Sequence[Size | None], *, scored: bool
) -> Iterator[Cases]:
    """Yield what a metric would use without a word. theirs [N]: the sizes of the images in the ground truth, None where
    not known; scored: predictions."""
    sizes = [own_size or other for own_size, other in zip(batch.sizes, theirs, strict=True)]
    yield from _label_faults(batch, vocabulary, scored=scored)
    yield from _size_faults(batch, theirs)
    yield from _box_faults(batch, sizes)
    yield from _triplet_faults(batch, vocabulary, scored=scored)


def _label_faults(batch: Checked, vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Cases]:
    """Labels that the vocabulary does not have."""
    image = np.repeat(np.arange(len(batch.unknown)), batch.unknown)

    def first(place: str) -> str:
        problems_found = problems(batch.record(int(image[0])), vocabulary, scored=scored)
        return str(next(problem for problem in problems_found if problem.code == UNKNOWN_LABEL).error(place))

    yield UNKNOWN_LABEL, image, first


def _size_faults(batch: Checked, theirs: Sequence[Size | None]) -> Iterator[Cases]:
    """Images of another size than the ground truth's."""
    both = zip(batch.sizes, theirs, strict=True)
    rows = [
        row
        for row, (own_size, other) in enumerate(both)
        if own_size is not None and other is not None and own_size != other
    ]

    def first(place: str) -> str:
        own_text, other = (" x ".join(map(str, of[rows[0]] or ())) for of in (batch.sizes, theirs))
        return f"{place}: {batch.image_ids[rows[0]]!r} has {own_text}, in the ground truth {other}"

    yield "another-image-size", np.array(rows, dtype=np.int64), first


def _box_faults(batch: Checked, sizes: Sequence[Size | None]) -> Iterator[Cases]:
    """Boxes that are not what they should be. sizes [N]: of the images, where known."""
    image, boxes = batch.image_of_box, batch.boxes
    size = pixels(sizes)
    looked_at = ~batch.whole[image]

    def cases(check: str, rows: Ints, describe: Callable[[int], str] = lambda _: "") -> Cases:
        return _cases(check, batch, "boxes", rows, lambda record, at, row: f": {record['boxes'][row]}{describe(at)}")

    small = ((boxes >= 0) & (boxes <= 1)).all(axis=1) & looked_at
    if small.any():
        counts = np.diff(batch.box_start)
        relative = np.bincount(image[small], minlength=len(counts)) == counts
        yield cases("relative-box", np.flatnonzero(relative[image]))
    ends_first = find_inverted(boxes) & looked_at
    rows = np.flatnonzero(ends_first)
    yield cases("inverted-box", rows)
    with np.errstate(over="ignore"):
        beyond = (boxes[rows, :2] + boxes[rows, 2:] > size[image[rows]] + 1).any(axis=1)  # not where no size is known
        yield cases("looks-like-xywh", rows[(boxes[rows] >= 0).all(axis=1) & ~beyond])
        spare = MARGIN * size
        lower_bound, upper_bound = -spare[image], (size + spare)[image]
    flat = (boxes[:, :2] == boxes[:, 2:]).any(axis=1) & looked_at & ~ends_first
    yield cases("box-without-area", np.flatnonzero(flat))
    outside = (boxes[:, :2] < lower_bound).any(axis=1) | (boxes[:, 2:] > upper_bound).any(axis=1)
    rows = np.flatnonzero(outside & looked_at & ~ends_first)
    yield cases("box-outside-image", rows, lambda at: ", the image is {} x {}".format(*(sizes[at] or ())))


def _triplet_faults(batch: Checked, vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Cases]:
    """Triplets that count for nothing, or against the detector."""

    def cases(check: str, bad: Bools, describe: Callable[[Record, list[str | None]], str]) -> Cases:
        rows = np.flatnonzero(bad)
        return _cases(
            check, batch, "hois", rows, lambda record, _, row: describe(record["hois"][row], record["labels"])
        )

    if scored:
        outside = (batch.score < 0) | (batch.score > 1)
        yield cases("score-outside-range", outside, lambda hoi, _: f".score: {hoi['score']}")
    own_label = () if scored else (batch.label[batch.subject],)
    twice = find_repeated(batch, *own_label, batch.object_label, batch.verb, batch.role)
    check = "duplicate-triplet" if scored else "doubled-annotation"
    yield cases(check, twice, lambda hoi, labels: f": {_triplet_text(hoi, labels)} on the same two boxes")
    subjects = (SUBJECT,) if vocabulary is None else vocabulary.subjects
    acts = np.zeros(len(batch.labels.spelled), dtype=bool)
    acts[[batch.labels[label] for label in subjects if label in batch.labels]] = True
    others = ~acts[batch.label[batch.subject]]
    yield cases("subject-no-person", others, lambda hoi, labels: f".subject: a {labels[hoi['subject']]}")
    if vocabulary is not None and not vocabulary.roles:
        none = _no_interactions(batch, vocabulary)
        yield cases("no-such-interaction", none, lambda hoi, labels: f": {_triplet_text(hoi, labels)}")


def _cases(check: str, batch: Checked, of: str, rows: Ints, describe: Callable[[Record, int, int], str]) -> Cases:
    """The cases that are some rows of boxes or triplets (of: boxes, hois). describe(record, image, place in it): what
    the first is."""
    boxes = of == "boxes"
    image, start = (batch.image_of_box, batch.box_start) if boxes else (batch.image_of_hoi, batch.hoi_start)

    def first(place: str) -> str:
        at = int(image[rows[0]])
        row = int(rows[0] - start[at])
        return f"{place}: {of}[{row}]{describe(batch.record(at), at, row)}"

    return check, image[rows], first


def _triplet_text(hoi: Record, labels: list[str | None]) -> str:
    """The verb and the object of a triplet."""
    return hoi["verb"] if hoi["object"] is None else f"{hoi['verb']} {labels[hoi['object']]}"


def _no_interactions(batch: Checked, vocabulary: Vocabulary) -> Bools:
    """[T] whether both names are known and the dataset, whose classes they make, has none of the two."""
    names, place = batch.classes
    return np.fromiter((_is_no_interaction(name, vocabulary) for name in names), dtype=bool)[place]


@lru_cache(maxsize=1 << 14)
def _is_no_interaction(name: TripletClass, vocabulary: Vocabulary) -> bool:
    pair = name.verb, name.label
    is_known = name.verb in vocabulary.verb_ids and name.label in vocabulary.object_ids
    return is_known and pair not in vocabulary.interaction_ids
