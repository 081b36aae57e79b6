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
from hoicli.records.result_rows import Row, also_signed

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
        """Raise `error`, or count it if bad lines are skipped. A stream that is not whole is always an error."""
        if not self.skip or error.code == "not-whole":
            raise error
        self.skipped += 1
        self._first = self._first or error

    @contextmanager
    def item(self, place: str = "") -> Iterator[None]:
        """In the block one item is read; `handle` gets its `DataError`. place: of an error without one of its own."""
        try:
            yield
        except DataError as error:
            self.handle(error.add_place(place))

    @property
    def summary(self) -> str:
        """Return a text that says how many lines were dropped, and shows the first; "" if none was."""
        units = self._unit if self.skipped == 1 else f"{self._unit}s"
        return "" if self._first is None else f"skipped {self.skipped:,} {units}; the first: {self._first}"

    def report(self, *, some_left: bool = True) -> None:
        """Say once how many lines were dropped, and show the first. some_left: whether any good line was read; if not,
        and lines were dropped, it raises `DataError`, since a number would be about something else."""
        if self.summary and not some_left:
            raise DataError(f"nothing is left: {self.summary}")
        if self.summary and not self._told:
            note(self.summary)
            self._told = True

    def sign_skipped(self, rows: Sequence[Row]) -> list[Row]:
        """Make a `report`, and return the rows; their signatures say how many lines were dropped, if any."""
        self.report()
        dropped = self.skipped + self.earlier
        return [also_signed(row, "skipped", f"{dropped}") if dropped else row for row in rows]

    def report_at_end(self, items: Iterable[T], *, some_left: bool = False) -> Iterator[T]:
        """Yield the items, which were made from good lines, and `report` at the end. some_left: whether it is no error
        if there were no items."""
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
        """Remember that an image is on this line. Raises `DataError` for one that was added already or is unknown."""
        if self._known is not None and image_id not in self._known:
            renaming = _otherwise_named(image_id, self._known)
            mend = renaming or f"give the set it belongs to, or pass {arg('on_error', 'skip')}"
            problem = f"{unknown_image(image_id, self._known)}; {mend}"
            raise DataError(problem, place=line.place, field=self._field, code=UNKNOWN_IMAGE)
        own_place = _spot(line)
        first = self._seen.setdefault(image_id, own_place)
        if first != own_place:
            file, number_there = first
            where = str(number_there) if file is None else Line(file, int(number_there), b"").where
            problem = f"image {image_id!r} is {where} already; keep one line {self._unit}"
            if file != own_place[0]:
                problem += " in all files, which are read as one; for two models: hoicli compare, or one run each"
            raise DataError(problem, place=line.place, field=self._field, code=DUPLICATE_IMAGE)

    def add_all(self, image_ids: Sequence[str], lines: Sequence[Line]) -> bool:
        """Add the images of many lines if all are new, known and different, and return True; else add none and return
        False."""
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
    """Return what is wrong with an image that is not a known one. It quotes one of the known ids, as the names may be
    of another kind, or tells that the name differs in its Unicode form alone."""
    for form in ("NFC", "NFD"):
        if (in_form := normalize(form, image_id)) in known_ids:
            written = f"{ascii(image_id)[1:-1]} and {ascii(in_form)[1:-1]}"
            return f"{image_id!r} is in the ground truth in Unicode's form {form} ({written}), which is another name"
    example = next(iter(known_ids), None) if isinstance(known_ids, Iterable) else None
    as_there = "" if example is None else f" (which names images as {example!r})"
    return f"{image_id!r} is not in the ground truth{as_there}"


def _otherwise_named(image_id: str, known_ids: Container[str]) -> str:
    """Return what to do where the ids of the ground truth are of another kind (paths, numbers); "" where both look
    alike and no change of the id makes it known."""
    for form in ("NFC", "NFD"):
        if normalize(form, image_id) in known_ids:
            return f"write both in one form: unicodedata.normalize({form!r}, name) in Python"
    for rule, rewrite in ID_RULES.items():
        if (other_name := str(rewrite(image_id))) in known_ids:
            return f"hoicli convert {arg('id_', rule)} makes it {other_name!r}"
    example = next(iter(known_ids), image_id) if isinstance(known_ids, Iterable) else image_id
    if image_id + PurePosixPath(example).suffix in known_ids:
        return f"make one kind of both with hoicli convert {arg('id_', 'name')}"
    # (whether it is a path, whether it is a number) of this id, and of one of the ground truth
    own_kind, known_kind = ("/" in image_id, image_id.isdecimal()), ("/" in example, example.isdecimal())
    if own_kind == known_kind:
        prefixes = (example[:length] for length in range(1, len(example)) if not example[length - 1].isalnum())
        missing = next((start for start in prefixes if start + image_id in known_ids), "")
        advice = f"ids there end in it, and {missing!r} is missing in front: jq -c '.image_id |= \"{missing}\" + .'"
        return advice if missing else ""
    rule = "name" if own_kind[0] else "path" if known_kind[0] else "number"
    return f"make one kind of both with hoicli convert {arg('id_', rule)}"


def _spot(line: Line) -> tuple[str | None, int | str]:
    """Return where a line is, in few bytes: its file and number, or None and the place of a record from Python."""
    return (line.file, line.number) if type(line) is Line else (None, line.where)
