"""From the claims of an answer to boxes of a record: persons and objects as boxes in pixels, or left out and
counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hoicli.converters.context import BoxTable, Context, Noticed
from hoicli.converters.vlm.claims import Claim, Claims
from hoicli.converters.vlm.frames import CONVENTIONS, Frame, parse_frame
from hoicli.converters.vlm.keys import Named, Place
from hoicli.converters.vlm.names import label_of
from hoicli.converters.vlm.persons import PERSONS, names_person
from hoicli.converters.vlm.spelling import Spelling
from hoicli.errors import DataError, UsageError, arg
from hoicli.records.caveats import BY_TOKENS
from hoicli.records.parsing import Record, is_number
from hoicli.vocabulary.labels import SUBJECT

Size = tuple[float, float]
"""(width, height)."""


@dataclass
class AnsweredImage:
    """An image while its answers are read: its triplets with their scores, and the record of --boxes that was `shown`.
    `read`: some answer about it could be read. `token_scores`: scores are those of `logprobs`.
    """

    image_id: str | int
    file_name: str | None
    size: Size | None
    table: BoxTable = field(default_factory=BoxTable)
    hois: dict[tuple[int, int, str], float | None] = field(default_factory=dict)
    shown: Record | None = None
    read: bool = False
    token_scores: bool = False

    def show(self, record: Record) -> None:
        """Begin with the boxes of a record of --boxes, so that indices mean them."""
        self.shown = record
        self.size = self.size or size_of(record)
        self.file_name = self.file_name or record.get("file_name")
        self.table.boxes += record["boxes"]
        self.table.labels += record["labels"]

    @cached_property
    def shown_by_name(self) -> dict[str, list[int]]:
        """The indices of the boxes that were shown, by name; asked for after `show`."""
        found: dict[str, list[int]] = {}
        for index, label in enumerate(self.shown["labels"] if self.shown is not None else ()):
            found.setdefault(label_of(label), []).append(index)
        return found

    def record(self) -> Record:
        """The image as a record."""
        record: Record = {"image_id": self.image_id}
        if self.file_name is not None:
            record["file_name"] = self.file_name
        if self.size is not None:
            record["width"], record["height"] = self.size
        record |= {"boxes": self.table.boxes, "labels": self.table.labels}
        if self.shown is not None and len(self.shown.get("scores") or ()) == len(self.table.boxes):
            record["scores"] = self.shown["scores"]
        record["hois"] = [
            {"subject": subject, "object": object_, "verb": verb, **({} if score is None else {"score": score})}
            for (subject, object_, verb), score in self.hois.items()
        ]
        return {**record, "caveats": [BY_TOKENS]} if self.token_scores else record


def size_of(record: Record) -> Size | None:
    """Width and height of a row or a record, None unless both are positive numbers."""
    width, height = (record[key] if is_number(record.get(key)) else 0 for key in ("width", "height"))
    return (width, height) if width > 0 and height > 0 else None


@dataclass(frozen=True)
class _Placed:
    """A person or an object: a box in pixels with its label; its `index` if the record has it already."""

    box: Sequence[float]
    label: str
    index: int | None = None

    def row(self, table: BoxTable) -> int:
        """The index of the box in the record, added if it is new."""
        return table.add(self.box, self.label) if self.index is None else self.index


class _NotPlacedError(Exception):
    """There is no such box; the message is the reason that is counted."""


class Placer:
    """Adds the claims of answers to their images. `indexed`: --boxes was given, and indices refer to it."""

    def __init__(self, context: Context, *, indexed: bool) -> None:
        self._context = context
        self._indexed = indexed
        self._spelling = Spelling(context.vocabulary) if context.to_vocabulary else None
        self._subject, self._subjects = context.subject, frozenset(context.vocabulary.subjects)
        self._boxes = 0
        self._outside = Noticed()

    def add_claim(self, image: AnsweredImage, claim: Claim, claims: Claims, frame: Frame | None) -> None:
        """Add one triplet for each verb, with its boxes; a claim without usable boxes is left out."""
        label = self._object_name(claim.label) if claim.label is not None else None
        if claim.label is not None and label is None:
            self._drop("an object outside the vocabulary")
            return
        acts = self._subject if claim.acts is None else self._subject_name(claim.acts)
        subject = self._placed(image, claim.subject, acts, claims, frame)
        object_ = self._placed(image, claim.object, label, claims, frame)
        if subject is None or object_ is None:
            return
        ends = subject.row(image.table), object_.row(image.table)
        for said in claim.verbs:
            verb = said if self._spelling is None else self._spelling.verb(said)
            if verb is None:
                self._drop("a verb outside the vocabulary")
            elif (*ends, verb) in image.hois:
                self._drop("a triplet that is said again")
            else:
                image.hois[(*ends, verb)] = claim.score

    def add_box(self, image: AnsweredImage, box: list[float], name: str, frame: Frame | None) -> None:
        """Add a box that no triplet uses."""
        try:
            self._located(image, box, name, frame).row(image.table)
        except _NotPlacedError as error:
            self._drop(str(error))

    def acts(self, name: str) -> bool:
        """Whether a name is one of who acts: one of the dataset's subjects, or a person's where that is one of them."""
        return name in self._subjects or (SUBJECT in self._subjects and names_person(name))

    def _subject_name(self, name: str) -> str:
        """The label of a subject: its own among the dataset's, else that of all."""
        return name if name in self._subjects else self._subject

    def announce(self) -> None:
        """Say how many boxes reach far out of their images."""
        if self._outside.count:
            many = f"{self._outside.count:,} of {self._boxes:,} boxes reach over a tenth of a side out of their image"
            self._context.announce(f"{many} (the first: {self._outside.first}): is it another {arg('coords')}?")

    def _drop(self, reason: str) -> None:
        self._context.drop(reason, self._context.place)

    def _object_name(self, name: str) -> str | None:
        spelled = label_of(name)
        return spelled if self._spelling is None else self._spelling.object(spelled)

    def _placed(
        self, image: AnsweredImage, place: Place, label: str | None, claims: Claims, frame: Frame | None
    ) -> _Placed | None:
        """A claim's person or object; None for one that is left out."""
        try:
            if isinstance(place, list):
                pixels = self._pixels(place, image, frame)
                if label is None:
                    raise _NotPlacedError("a triplet whose object has no name")
                return _Placed(pixels, label)
            if isinstance(place, int):
                return self._of_index(image, place)
            if isinstance(place, str):
                return self._of_name(image, [label_of(place), *([label] if label is not None else [])], claims, frame)
            raise _NotPlacedError("a triplet without a person or an object, or with a box that is not four numbers")
        except _NotPlacedError as error:
            self._drop(str(error))
            return None

    def _of_index(self, image: AnsweredImage, index: int) -> _Placed:
        """A box of --boxes by its number (those of the answer itself are found by then)."""
        if not self._indexed:
            raise DataError(f"names boxes by index; give the boxes that were shown with {arg('boxes', like='FILE')}")
        if image.shown is not None and 0 <= index < len(image.shown["boxes"]):
            return _Placed(image.shown["boxes"][index], image.shown["labels"][index], index)
        raise _NotPlacedError("a triplet with the index of a box that is not there")

    def _of_name(self, image: AnsweredImage, names: Sequence[str], claims: Claims, frame: Frame | None) -> _Placed:
        """The one box with this name (the first of `names` that any has) in the answer itself, or in --boxes."""
        for name in names:
            own = claims.located_by_name.get(name, ())
            if len(own) == 1:
                return self._located(image, *own[0], frame)
            indices = image.shown_by_name.get(name, ())
            if len(indices) == 1 and not own and image.shown is not None:
                return _Placed(image.shown["boxes"][indices[0]], name, indices[0])
        if not self._indexed and not claims.located:
            raise _NotPlacedError(f"a triplet without boxes ({arg('boxes', like='FILE')} gives a detector's)")
        raise _NotPlacedError("a triplet that names a label of no box, or of several")

    def _located(self, image: AnsweredImage, box: list[float], name: str, frame: Frame | None) -> _Placed:
        """A box with a name as a box of the record; all names of persons become `person`."""
        pixels = self._pixels(box, image, frame)
        own = label_of(name) in self._subjects - {SUBJECT}
        label = label_of(name) if own else SUBJECT if label_of(name) in PERSONS else self._object_name(name)
        if label is None:
            raise _NotPlacedError("an object outside the vocabulary")
        return _Placed(pixels, label)

    def _pixels(self, box: Sequence[float], image: AnsweredImage, frame: Frame | None) -> list[float]:
        """The box in pixels; raises `UsageError` if the convention of its numbers is unknown."""
        if len(box) != 4:
            raise _NotPlacedError("a box that is not four numbers")
        if frame is None:
            problem = f"nothing says what the boxes' numbers mean; tell it with {arg('coords')}: {CONVENTIONS}"
            raise UsageError(f"{self._context.place}: {problem}{_readings(box, image.size)}")
        if isinstance(box, Named) and frame.kind == "1000-yx":
            frame = Frame("1000")
        x1, y1, x2, y2 = pixels = frame.to_pixels(box, image.size)
        if x2 < x1 or y2 < y1:
            raise _NotPlacedError("a box whose second corner lies before its first")
        self._boxes += 1
        if image.size is not None:
            width, height = image.size
            if x1 < -0.1 * width or y1 < -0.1 * height or x2 > 1.1 * width or y2 > 1.1 * height:
                self._outside.add(f"{self._context.place}: {list(box)}")
        return pixels


def _readings(box: Sequence[float], size: Size | None) -> str:
    """For a message: what a box is in pixels by several conventions, if the picture's size is known."""
    if size is None:
        return ""
    said = [f"{[round(number, 1) for number in parse_frame(name).to_pixels(box, size)]} as {name}" for name in _SHOWN]
    return f"; the first, {[*box]}, is in pixels {', '.join(said)}"


_SHOWN = ("1000", "1000-yx", "pixels")
