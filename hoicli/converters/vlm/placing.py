"""From the claims of an answer to boxes of a record: persons and objects as boxes in pixels, or left out and
counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hoicli.converters.context import BoxTable, Context, Noticed
from hoicli.converters.vlm.claims import Claim, Claims
from hoicli.converters.vlm.frames import CONVENTIONS, Frame, Size, size_of
from hoicli.converters.vlm.keys import Named, Place
from hoicli.converters.vlm.names import PERSONS, Spelling, label_of, names_person
from hoicli.errors import DataError, UsageError, arg
from hoicli.records.caveats import BY_TOKENS
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT

_Placed = int | tuple[Sequence[float], str]
"""A person or an object: the index of a box that the record has, or a box in pixels with its label."""


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


class _NotPlacedError(Exception):
    """There is no such box; the message is the reason that is counted."""


class Placer:
    """Adds the claims of answers to their images. `indexed`: --boxes was given, and indices refer to it."""

    def __init__(self, context: Context, *, indexed: bool) -> None:
        self._context = context
        self._indexed = indexed
        self._spelling = Spelling(context.vocabulary) if context.to_vocabulary else None
        self._subjects = frozenset(context.vocabulary.subjects)
        self._boxes = 0
        self._outside = Noticed()

    def add_answer(self, image: AnsweredImage, claims: Claims, frame: Frame | None) -> None:
        """Add the triplets of an answer, or its boxes where it has none; what has no usable box is left out."""
        for claim in claims.triplets:
            try:
                self._add(image, claim, claims, frame)
            except _NotPlacedError as error:
                self._drop(str(error))
        for box, name in claims.located if not claims.triplets else ():
            try:
                self._row(image, self._located(image, box, name, frame))
            except _NotPlacedError as error:
                self._drop(str(error))

    def acts(self, name: str) -> bool:
        """Whether a name is one of who acts: one of the dataset's subjects, or a person's where that is one of them."""
        return name in self._subjects or (SUBJECT in self._subjects and names_person(name))

    def announce(self) -> None:
        """Say how many boxes reach far out of their images."""
        if self._outside.count:
            many = f"{self._outside.count:,} of {self._boxes:,} boxes reach over a tenth of a side out of their image"
            self._context.announce(f"{many} (the first: {self._outside.first}): is it another {arg('coords')}?")

    def _add(self, image: AnsweredImage, claim: Claim, claims: Claims, frame: Frame | None) -> None:
        """Add one triplet for each verb of a claim."""
        if not self._indexed and int in map(type, (claim.subject, claim.object)):
            raise DataError(f"names boxes by index; give the boxes that were shown with {arg('boxes', like='FILE')}")
        label = None if claim.label is None else self._object_name(claim.label)
        acts = claim.acts if claim.acts in self._subjects else self._context.subject
        subject = self._placed(image, claim.subject, acts, claims, frame)
        object_ = self._placed(image, claim.object, label, claims, frame)
        ends = self._row(image, subject), self._row(image, object_)
        for said in claim.verbs:
            verb = said if self._spelling is None else self._spelling.verb(said)
            if verb is None:
                self._drop("a verb outside the vocabulary")
            elif (*ends, verb) in image.hois:
                self._drop("a triplet that is said again")
            else:
                image.hois[(*ends, verb)] = claim.score

    def _row(self, image: AnsweredImage, placed: _Placed) -> int:
        """The index of a box in the record, to which it is added if it is new."""
        return placed if isinstance(placed, int) else image.table.add(*placed)

    def _drop(self, reason: str) -> None:
        self._context.drop(reason, self._context.place)

    def _object_name(self, name: str) -> str:
        spelled: str | None = label_of(name)
        if self._spelling is not None and spelled is not None:
            spelled = self._spelling.object(spelled)
        if spelled is None:
            raise _NotPlacedError("an object outside the vocabulary")
        return spelled

    def _placed(
        self, image: AnsweredImage, place: Place, label: str | None, claims: Claims, frame: Frame | None
    ) -> _Placed:
        """A claim's person or object, by its box, by the index of one of --boxes (those of the answer itself are found
        by then), or by a name that one box has."""
        if isinstance(place, list):
            pixels = self._pixels(place, image, frame)
            if label is None:
                raise _NotPlacedError("a triplet whose object has no name")
            return pixels, label
        if isinstance(place, int):
            if image.shown is None or not 0 <= place < len(image.shown["boxes"]):
                raise _NotPlacedError("a triplet with the index of a box that is not there")
            return place
        if place is None:
            raise _NotPlacedError("a triplet without a person or an object, or with a box that is not four numbers")
        for name in filter(None, (label_of(place), label)):
            own, shown = claims.located_by_name.get(name, ()), image.shown_by_name.get(name, ())
            if len(own) == 1:
                return self._located(image, *own[0], frame)
            if len(shown) == 1 and not own:
                return shown[0]
        if not self._indexed and not claims.located:
            raise _NotPlacedError(f"a triplet without boxes ({arg('boxes', like='FILE')} gives a detector's)")
        raise _NotPlacedError("a triplet that names a label of no box, or of several")

    def _located(self, image: AnsweredImage, box: list[float], name: str, frame: Frame | None) -> _Placed:
        """A box with a name as a box of the record; all names of persons become `person`."""
        pixels, name = self._pixels(box, image, frame), label_of(name)
        if name in self._subjects and name != SUBJECT:
            return pixels, name
        return pixels, SUBJECT if name in PERSONS else self._object_name(name)

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
        width, height = image.size or (float("inf"), float("inf"))
        if x1 < -0.1 * width or y1 < -0.1 * height or x2 > 1.1 * width or y2 > 1.1 * height:
            self._outside.add(f"{self._context.place}: {list(box)}")
        return pixels


def _readings(box: Sequence[float], size: Size | None) -> str:
    """For a message: what a box is in pixels by several conventions, if the picture's size is known."""
    if size is None:
        return ""
    said = [f"{[round(number, 1) for number in Frame(kind).to_pixels(box, size)]} as {kind}" for kind in _SHOWN]
    return f"; the first, {[*box]}, is in pixels {', '.join(said)}"


_SHOWN = ("1000", "1000-yx", "pixels")
