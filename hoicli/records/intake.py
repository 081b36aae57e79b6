"""Rules for reading a stream: what to do with a bad line, and that no image occurs twice."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TypeVar
from unicodedata import normalize

from hoicli.errors import DataError, arg
from hoicli.io.messages import note
from hoicli.io.streams import Line
from hoicli.records.names import ID_RULES
from hoicli.records.results import Row, also_signed

T = TypeVar("T")

UNKNOWN_IMAGE, DUPLICATE_IMAGE = "unknown-image", "duplicate-image"
"""Codes of what `ImageRegister` finds."""


class ErrorPolicy:
    """What to do with a bad line: stop (the default), or drop, count and report it (`--on-error skip`)."""

    def __init__(self, *, skip: bool = False, unit: str = "line") -> None:
        self.skip = skip
        self._unit = unit
        self.skipped = 0
        self.earlier = 0
        """What was dropped when a dump was converted, or the records of a match stream were matched."""
        self._first: DataError | None = None
        self._told = False

    def handle(self, error: DataError) -> None:
        """Raise `error`, or count it; a stream that is not whole lacks more than one line."""
        if not self.skip or error.code == "not-whole":
            raise error
        self.skipped += 1
        self._first = self._first or error

    @contextmanager
    def item(self, place: str = "") -> Iterator[None]:
        """A block about one item: `handle` gets its `DataError`, with this place if it has none of its own."""
        try:
            yield
        except DataError as error:
            self.handle(error.add_place(place))

    @property
    def summary(self) -> str:
        """Return how many lines were dropped, and the first; "" if none was."""
        units = self._unit if self.skipped == 1 else f"{self._unit}s"
        return "" if self._first is None else f"skipped {self.skipped:,} {units}; the first: {self._first}"

    def report(self, *, some_left: bool = True) -> None:
        """Say once how many lines were dropped, and show the first. Raises `DataError` if some were and nothing is
        `some_left`: a number would be about something else."""
        if self.summary and not some_left:
            raise DataError(f"nothing is left: {self.summary}")
        if self.summary and not self._told:
            note(self.summary)
            self._told = True

    def sign_skipped(self, rows: Sequence[Row]) -> list[Row]:
        """`report`, and the rows with signatures that say how many lines were dropped, which no value shows."""
        self.report()
        lost = self.skipped + self.earlier
        return [also_signed(row, "skipped", f"{lost}") if lost else row for row in rows]

    def report_at_end(self, items: Iterable[T], *, some_left: bool = False) -> Iterator[T]:
        """Yield all that was made of the good lines; at the end `report`, which raises if that is nothing, unless
        `some_left`."""
        for item in items:
            some_left = True
            yield item
        self.report(some_left=some_left)


class ImageRegister:
    """Remembers where every image was seen: an image that occurs twice is an error that names both lines.

    `known_ids`: the allowed images (those of the ground truth); None allows any. `unit`: what has one line; `field`:
    the field that names it."""

    def __init__(
        self, known_ids: Container[str] | None = None, *, unit: str = "an image", field: str = "image_id"
    ) -> None:
        self._known, self._unit, self._field = known_ids, unit, field
        self._seen: dict[str, tuple[str | None, int | str]] = {}
        """Where each image was seen: its file and line, or no file and the place of a record from Python."""

    def add(self, image_id: str, line: Line) -> None:
        """Raises `DataError` if the image was added already, or is not a known one."""
        if self._known is not None and image_id not in self._known:
            other = _otherwise_named(image_id, self._known)
            mend = other or f"give the set it belongs to, or pass {arg('on_error', 'skip')}"
            problem = f"{unknown_image(image_id, self._known)}; {mend}"
            raise DataError(problem, place=line.place, field=self._field, code=UNKNOWN_IMAGE)
        own_place = _spot(line)
        first = self._seen.setdefault(image_id, own_place)
        if first != own_place:
            file, at = first
            where = str(at) if file is None else Line(file, int(at), b"").where
            problem = f"image {image_id!r} is {where} already; keep one line {self._unit}"
            if file != own_place[0]:
                problem += " in all files, which are read as one; for two models: hoicli compare, or one run each"
            raise DataError(problem, place=line.place, field=self._field, code=DUPLICATE_IMAGE)

    def add_all(self, image_ids: Sequence[str], lines: Sequence[Line]) -> bool:
        """Add the images of many lines if all are new, known and different, and return True; else add none."""
        if len(image_ids) != len(lines):  # by a process that read them earlier
            raise DataError("changed while it was read; run again", place=lines[0].place if lines else "")
        new = set(image_ids)
        if len(new) != len(image_ids) or not self._seen.keys().isdisjoint(new):
            return False
        if self._known is not None and not all(map(self._known.__contains__, image_ids)):
            return False
        self._seen.update(zip(image_ids, map(_spot, lines), strict=True))
        return True


def unknown_image(image_id: str, known_ids: Container[str]) -> str:
    """Return what is wrong with an image that is not a known one; and one of these, as names may be spelt otherwise."""
    for form in ("NFC", "NFD"):
        if (same := normalize(form, image_id)) in known_ids:
            written = f"{ascii(image_id)[1:-1]} and {ascii(same)[1:-1]}"
            return f"{image_id!r} is in the ground truth in Unicode's form {form} ({written}), which is another name"
    example = next(iter(known_ids), None) if isinstance(known_ids, Iterable) else None
    as_there = "" if example is None else f" (which names images as {example!r})"
    return f"{image_id!r} is not in the ground truth{as_there}"


def _otherwise_named(image_id: str, known_ids: Container[str]) -> str:
    """Return what to do where the ids of the ground truth are of another kind (paths, numbers); "" where they look
    alike."""
    for form in ("NFC", "NFD"):
        if normalize(form, image_id) in known_ids:
            return f"write both in one form: unicodedata.normalize({form!r}, name) in Python"
    for rule, named in ID_RULES.items():
        if (other_name := str(named(image_id))) in known_ids:
            return f"hoicli convert {arg('id_', rule)} makes it {other_name!r}"
    example = next(iter(known_ids), image_id) if isinstance(known_ids, Iterable) else image_id
    if image_id + PurePosixPath(example).suffix in known_ids:
        return f"make one kind of both with hoicli convert {arg('id_', 'name')}"
    kinds = ("/" in image_id, image_id.isdecimal()), ("/" in example, example.isdecimal())
    if kinds[0] == kinds[1]:
        fronts = (example[:at] for at in range(1, len(example)) if not example[at - 1].isalnum())
        front = next((front_tried for front_tried in fronts if front_tried + image_id in known_ids), "")
        missing = f"ids there end in it, and {front!r} is missing in front: jq -c '.image_id |= \"{front}\" + .'"
        return missing if front else ""
    rule = "name" if kinds[0][0] else "path" if kinds[1][0] else "number"
    return f"make one kind of both with hoicli convert {arg('id_', rule)}"


def _spot(line: Line) -> tuple[str | None, int | str]:
    """Where a line is, in few bytes."""
    return (line.file, line.number) if type(line) is Line else (None, line.where)
