"""Image records that validate can look into, as columns, and the faults in them that a metric would silently use. Names
are as they are spelled, known to the vocabulary or not.
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
    """The class of a triplet; role is "" where there is no role, label None where there is no object."""

    verb: str
    role: str = ""
    label: str | None = None


class Names(dict[str | None, int]):
    """Names and their numbers from 1: the vocabulary's in any spelling, then others as they appear. `spelled` has the
    name of each number. Number 0 is null, if `nulls` may stand for names. Raises `ValueError` for anything that is no
    name."""

    def __init__(self, vocabulary_names: Sequence[str], ids: Mapping[str, int], *, nulls: bool = False) -> None:
        """vocabulary_names: the vocabulary's own names; ids: the place of each of them by every spelling."""
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
    """The image records of `lines`, in which nothing is wrong but unknown labels, as columns. label [B], verb [T]:
    numbers of `labels` and `verbs`; role [T]: numbers of `roles`, 0 for none; sizes [N]: of the image as the record
    gives it; whole [N]: whether its boxes are not to be looked at; unknown [N]: how many of its labels the vocabulary
    does not have."""

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
        """The label [T] of each triplet's object, 0 for none."""
        return np.append(self.label, 0)[self.object]  # no object is -1: the last entry

    @cached_property
    def classes(self) -> tuple[list[TripletClass], Ints]:
        """(The different classes that occur, [T] the place of each triplet's class among them.)"""
        labels, roles = len(self.labels.spelled), len(self.roles)
        class_code = (self.verb * labels + self.object_label) * roles + self.role
        class_codes, place = np.unique(class_code, return_inverse=True)
        verb_and_label, role = np.divmod(class_codes, roles)
        verbs, objects = self.verbs.spelled, self.labels.spelled
        names = [
            TripletClass(str(verbs[verb]), self.roles[role] or "", objects[label])
            for verb, label, role in zip(
                *(part.tolist() for part in (*np.divmod(verb_and_label, labels), role)), strict=True
            )
        ]
        return names, place


class Facts:
    """What a ground truth says of its images. rows: the row of each image by id. By row, sizes: the image's size, None
    if it is not known; columns: its boxes and its classes, which are numbers of `names`."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.sizes: list[Size | None] = []
        self.names: dict[TripletClass, int] = {}
        self.columns = Growing(boxes=np.float64, box_count=np.int64, classes=np.int64, class_count=np.int64)

    def add(self, batch: Checked) -> None:
        """Add the images of a batch; of an image that occurs twice, the later record counts."""
        names, place = batch.classes
        self._extend(batch.image_ids, batch.sizes)
        self.columns.add(
            boxes=batch.boxes.ravel(),
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
        self.rows.update(zip(image_ids, count(len(self.sizes)), strict=False))
        self.sizes += sizes

    def _numbers(self, names: Iterable[TripletClass]) -> Ints:
        return np.array([self.names.setdefault(name, len(self.names)) for name in names], dtype=np.int64)

    @cached_property
    def classes(self) -> tuple[list[int], list[int]]:
        """([N + 1] where the classes of each row begin, the class numbers of all rows), once all images are added."""
        return starts_of(self.columns["class_count"]).tolist(), self.columns["classes"].tolist()


def checked_images(lines: Sequence[Line], vocabulary: Vocabulary | None, *, scored: bool, sound: bool) -> Checked:
    """Return image records as columns. sound: the records are known to be good. Otherwise an exception that
    `columns.attempt` expects is raised for a line that is no image record, or one with a problem (`records.problems`)
    other than an unknown label; and, in a stream without scores, for scores that are no numbers."""
    sizes: list[Size | None] = []
    masks: list[int] = []
    unknown: list[int] = []
    has_roles = vocabulary is not None and bool(vocabulary.roles)
    known_vocabulary = vocabulary or Vocabulary("", (), (), ())
    labels = Names(known_vocabulary.objects, known_vocabulary.object_ids, nulls=has_roles)
    verbs = Names(known_vocabulary.verbs, known_vocabulary.verb_ids)

    def check_record(record: Record) -> None:
        require("metric" not in record and not ("predictions" in record and "gt" in record))
        masks.append(caveats.read_caveats(record.get("caveats")))
        sizes.append(_size(record))
        if not sound:
            _check_besides(record, sizes[-1], vocabulary if has_roles else None, scored=scored)
        pair_lists = () if vocabulary is None else (record.get("image_hois"), record.get("ambiguous_hois"))
        unknown.append(
            sum(
                name not in known_vocabulary.object_ids
                for _, name in chain.from_iterable(pairs for pairs in pair_lists if pairs)
            )
        )

    raw = raw_images(
        lines,
        check=check_record,
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
        for image, column, names in (
            (batch.image_of_box, batch.label, labels),
            (batch.image_of_hoi, batch.verb, verbs),
        ):
            if len(names.spelled) > names.known + 1:
                np.add.at(batch.unknown, image[column > names.known], 1)
        if has_roles and not sound:
            _check_roles(batch, vocabulary)
    return batch


def _size(record: Record) -> Size | None:
    """Return the image's size, None unless the record gives it in numbers above 0."""
    width, height = record.get("width", 0), record.get("height", 0)
    return (width, height) if is_number(width) and is_number(height) and width > 0 < height else None


def _check_besides(record: Record, size: Size | None, vocabulary: Vocabulary | None, *, scored: bool) -> None:
    """Raise an error for a problem in the fields that `raw_images` does not read. size: what `_size` returned, known to
    be sound; vocabulary: None unless it has roles."""
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
    """Raise `ValueError` for a role that a known verb does not have, and for an object without a role."""
    roles_of, roles = vocabulary.roles_of, len(batch.roles)
    verb_and_role = distinct(batch.verb * roles + batch.role)
    for verb, role in zip(*(part.tolist() for part in np.divmod(verb_and_role, roles)), strict=True):
        name = batch.verbs.spelled[verb]
        require(role == 0 or name not in roles_of or batch.roles[role] in roles_of[name])
    verb_known = np.array([name in roles_of for name in batch.verbs.spelled], dtype=bool)
    require(not (verb_known[batch.verb] & (batch.role == 0) & (batch.object >= 0)).any())


def pixels(sizes: Iterable[Size | None]) -> Floats:
    """Return the sizes [N, 2] (width and height), NaN where a size is not known."""
    return np.array([size or (np.nan, np.nan) for size in sizes], dtype=np.float64).reshape(-1, 2)


Cases = tuple[str, Ints, Callable[[str], str]]
"""The cases of a check in a batch: (the check's code, [M] the image of each case, ascending, a function that describes
the first case, given the place of its line)."""


def faults(
    batch: Checked, vocabulary: Vocabulary | None, theirs: Sequence[Size | None], *, scored: bool
) -> Iterator[Cases]:
    """Yield the faults of a batch that a metric would silently use. theirs [N]: the sizes of the images in the ground
    truth, None where they are not known; scored: whether the records are predictions."""
    sizes = [own_size or other for own_size, other in zip(batch.sizes, theirs, strict=True)]
    yield from _label_faults(batch, vocabulary, scored=scored)
    yield from _size_faults(batch, theirs)
    yield from _box_faults(batch, sizes)
    yield from _triplet_faults(batch, vocabulary, scored=scored)


def _label_faults(batch: Checked, vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Cases]:
    """Yield the labels that the vocabulary does not have."""
    image = np.repeat(np.arange(len(batch.unknown)), batch.unknown)

    def first(place: str) -> str:
        problems_found = problems(batch.record(int(image[0])), vocabulary, scored=scored)
        return str(next(problem for problem in problems_found if problem.code == UNKNOWN_LABEL).error(place))

    yield UNKNOWN_LABEL, image, first


def _size_faults(batch: Checked, theirs: Sequence[Size | None]) -> Iterator[Cases]:
    """Yield the images that have another size in the ground truth."""
    both = zip(batch.sizes, theirs, strict=True)
    rows = [
        row
        for row, (own_size, other) in enumerate(both)
        if own_size is not None and other is not None and own_size != other
    ]

    def first(place: str) -> str:
        own_text, other = (" x ".join(map(str, sizes[rows[0]] or ())) for sizes in (batch.sizes, theirs))
        return f"{place}: {batch.image_ids[rows[0]]!r} has {own_text}, in the ground truth {other}"

    yield "another-image-size", np.array(rows, dtype=np.int64), first


def _box_faults(batch: Checked, sizes: Sequence[Size | None]) -> Iterator[Cases]:
    """Yield the boxes that are not in pixels of the image, corner by corner. sizes [N]: the images' sizes, None where
    not known."""
    image, boxes = batch.image_of_box, batch.boxes
    size = pixels(sizes)
    looked_at = ~batch.whole[image]

    def cases(check: str, rows: Ints, describe: Callable[[int], str] = lambda _: "") -> Cases:
        def text(record: Record, number: int, row: int) -> str:
            return f": {record['boxes'][row]}{describe(number)}"

        return _cases(check, batch, "boxes", rows, text)

    is_small = ((boxes >= 0) & (boxes <= 1)).all(axis=1) & looked_at
    if is_small.any():
        counts = np.diff(batch.box_start)
        relative = np.bincount(image[is_small], minlength=len(counts)) == counts
        yield cases("relative-box", np.flatnonzero(relative[image]))
    is_inverted = find_inverted(boxes) & looked_at
    rows = np.flatnonzero(is_inverted)
    yield cases("inverted-box", rows)
    with np.errstate(over="ignore"):
        # False where the size is not known (NaN)
        leaves_image = (boxes[rows, :2] + boxes[rows, 2:] > size[image[rows]] + 1).any(axis=1)
        yield cases("looks-like-xywh", rows[(boxes[rows] >= 0).all(axis=1) & ~leaves_image])
        overshoot = MARGIN * size
        lower_bound, upper_bound = -overshoot[image], (size + overshoot)[image]
    is_flat = (boxes[:, :2] == boxes[:, 2:]).any(axis=1) & looked_at & ~is_inverted
    yield cases("box-without-area", np.flatnonzero(is_flat))
    outside = (boxes[:, :2] < lower_bound).any(axis=1) | (boxes[:, 2:] > upper_bound).any(axis=1)
    rows = np.flatnonzero(outside & looked_at & ~is_inverted)
    yield cases(
        "box-outside-image", rows, lambda image_number: ", the image is {} x {}".format(*(sizes[image_number] or ()))
    )


def _triplet_faults(batch: Checked, vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Cases]:
    """Yield the triplets that count for nothing, or against the detector."""

    def cases(check: str, is_faulty: Bools, describe: Callable[[Record, list[str | None]], str]) -> Cases:
        rows = np.flatnonzero(is_faulty)
        return _cases(
            check, batch, "hois", rows, lambda record, _, row: describe(record["hois"][row], record["labels"])
        )

    if scored:
        outside = (batch.score < 0) | (batch.score > 1)
        yield cases("score-outside-range", outside, lambda hoi, _: f".score: {hoi['score']}")
    own_label = () if scored else (batch.label[batch.subject],)
    is_repeated = find_repeated(batch, *own_label, batch.object_label, batch.verb, batch.role)
    check = "duplicate-triplet" if scored else "doubled-annotation"
    yield cases(check, is_repeated, lambda hoi, labels: f": {_triplet_text(hoi, labels)} on the same two boxes")
    subjects = (SUBJECT,) if vocabulary is None else vocabulary.subjects
    can_act = np.zeros(len(batch.labels.spelled), dtype=bool)
    can_act[[batch.labels[label] for label in subjects if label in batch.labels]] = True
    is_other_subject = ~can_act[batch.label[batch.subject]]
    yield cases("subject-no-person", is_other_subject, lambda hoi, labels: f".subject: a {labels[hoi['subject']]}")
    if vocabulary is not None and not vocabulary.roles:
        is_no_class = _no_interactions(batch, vocabulary)
        yield cases("no-such-interaction", is_no_class, lambda hoi, labels: f": {_triplet_text(hoi, labels)}")


def _cases(check: str, batch: Checked, kind: str, rows: Ints, describe: Callable[[Record, int, int], str]) -> Cases:
    """Return the cases of a check that are some rows of boxes or triplets. kind: "boxes" or "hois"; describe(record,
    image, place in the image): says what the first case is."""
    is_boxes = kind == "boxes"
    image, start = (batch.image_of_box, batch.box_start) if is_boxes else (batch.image_of_hoi, batch.hoi_start)

    def first(place: str) -> str:
        image_number = int(image[rows[0]])
        index = int(rows[0] - start[image_number])
        return f"{place}: {kind}[{index}]{describe(batch.record(image_number), image_number, index)}"

    return check, image[rows], first


def _triplet_text(hoi: Record, labels: list[str | None]) -> str:
    """Return the verb and the object of a triplet as a text."""
    return hoi["verb"] if hoi["object"] is None else f"{hoi['verb']} {labels[hoi['object']]}"


def _no_interactions(batch: Checked, vocabulary: Vocabulary) -> Bools:
    """Return which triplets [T] have a verb and an object that the vocabulary knows, but not together as a class."""
    names, place = batch.classes
    return np.fromiter((_is_no_interaction(name, vocabulary) for name in names), dtype=bool)[place]


@lru_cache(maxsize=1 << 14)
def _is_no_interaction(name: TripletClass, vocabulary: Vocabulary) -> bool:
    pair = name.verb, name.label
    is_known = name.verb in vocabulary.verb_ids and name.label in vocabulary.object_ids
    return is_known and pair not in vocabulary.interaction_ids
