"""From the claims of an answer to boxes of a record: persons and objects as boxes in pixels, or left out and
counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hoicli.converters.context import BoxTable, Context, Noticed
from hoicli.converters.vlm.claims import Claim, Claims
from hoicli.converters.vlm.frames import CONVENTIONS, Frame, Size, size_of
from hoicli.converters.vlm.keys import Place
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
    """Adds the claims of answers to their images. Indices refer to the boxes of --boxes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._spelling = Spelling(context.vocabulary) if context.to_vocabulary else None
        self._subjects = frozenset(context.vocabulary.subjects)
        self._boxes = 0
        self._outside = Noticed()

    def add_answer(self, image: AnsweredImage, claims: Claims, frame: Frame | None) -> None:
        """Add the triplets of an answer, or its boxes where it has none; what has no usable box is left out."""
        for claim in claims.triplets:
            try:
                self._add(image, claim, frame)
            except _NotPlacedError as error:
                self._drop(str(error))
        for box, name in claims.located if not claims.triplets else ():
            try:
                image.table.add(self._pixels(box, image, frame), self._box_name(label_of(name)))
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

    def _add(self, image: AnsweredImage, claim: Claim, frame: Frame | None) -> None:
        """Add one triplet for each verb of a claim."""
        label = None if claim.label is None else self._object_name(label_of(claim.label))
        acts = claim.acts if claim.acts in self._subjects else self._context.subject
        placed = [self._placed(image, *end, frame) for end in ((claim.subject, acts), (claim.object, label))]
        subject, object_ = (end if isinstance(end, int) else image.table.add(*end) for end in placed)
        for said in claim.verbs:
            verb = said if self._spelling is None else self._spelling.verb(said)
            if verb is None:
                self._drop("a verb outside the vocabulary")
            elif (subject, object_, verb) in image.hois:
                self._drop("a triplet that is said again")
            else:
                image.hois[subject, object_, verb] = claim.score

    def _drop(self, reason: str) -> None:
        self._context.drop(reason, self._context.place)

    def _object_name(self, label: str) -> str:
        spelled = label if self._spelling is None else self._spelling.object(label)
        if spelled is None:
            raise _NotPlacedError("an object outside the vocabulary")
        return spelled

    def _box_name(self, name: str) -> str:
        """The label of a box that is in no triplet; all names of persons become `person`."""
        if name in self._subjects and name != SUBJECT:
            return name
        return SUBJECT if name in PERSONS else self._object_name(name)

    def _placed(self, image: AnsweredImage, place: Place, label: str | None, frame: Frame | None) -> _Placed:
        """A claim's person or object, by its box, or by the index of one of --boxes (those of the answer itself are
        found by then)."""
        if isinstance(place, list):
            pixels = self._pixels(place, image, frame)
            if label is None:
                raise _NotPlacedError("a triplet whose object has no name")
            return pixels, label
        if isinstance(place, int):
            if self._context.boxes is None:
                shown = arg("boxes", like="FILE")
                raise DataError(f"names boxes by index; give the boxes that were shown with {shown}")
            if image.shown is None or not 0 <= place < len(image.shown["boxes"]):
                raise _NotPlacedError("a triplet with the index of a box that is not there")
            return place
        raise _NotPlacedError("a triplet without a person or an object, or with a box that is not four numbers")

    def _pixels(self, box: Sequence[float], image: AnsweredImage, frame: Frame | None) -> list[float]:
        """The box in pixels; raises `UsageError` if the convention of its numbers is unknown."""
        if len(box) != 4:
            raise _NotPlacedError("a box that is not four numbers")
        if frame is None:
            problem = f"nothing says what the boxes' numbers mean; tell it with {arg('coords')}: {CONVENTIONS}"
            raise UsageError(f"{self._context.place}: {problem}")
        x1, y1, x2, y2 = pixels = frame.to_pixels(box, image.size)
        if x2 < x1 or y2 < y1:
            raise _NotPlacedError("a box whose second corner lies before its first")
        self._boxes += 1
        width, height = image.size or (float("inf"), float("inf"))
        if x1 < -0.1 * width or y1 < -0.1 * height or x2 > 1.1 * width or y2 > 1.1 * height:
            self._outside.add(f"{self._context.place}: {list(box)}")
        return pixels
