"""Rules for reading a stream: what to do with a bad line, and that no image occurs twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import PurePosixPath
from typing import TypeVar
from unicodedata import normalize

from hoicli.errors import DataError, arg
from hoicli.io.messages import note
from hoicli.io.streams import Line
from hoicli.records.names import ID_RULES
from hoicli.records.result_rows import Row, add_to_setting

T = TypeVar("T")

UNKNOWN_IMAGE, DUPLICATE_IMAGE = "unknown-image", "duplicate-image"
"""Codes of what `ImageRegister` finds."""

_CELL_FIELDS = "corruption,severity"
_OF_A_CELL = re.compile(rb'"corruption"|"file_name": ?"\w+/[0-5]/')
"""Finds what records of `hoicli corrupt`, or predictions on its files, have: the fields of a cell, or its folder."""
_OF_CALL: ContextVar[list[ErrorPolicy] | None] = ContextVar("policies", default=None)


class ErrorPolicy:
    """What to do with a bad line: stop (the default), or drop, count and report it (`--on-error skip`).

    skip: whether to drop bad lines; unit: what messages call a line; skipped: how many were dropped so far; earlier:
    how many an earlier command dropped, which converted a dump or matched the records of a match stream; on_skip: a
    function that is given each error that is skipped."""

    def __init__(self, *, skip: bool = False, unit: str = "line") -> None:
        """Start with nothing dropped."""
        self.skip = skip
        self.skipped = 0
        self.earlier = 0
        self.on_skip: Callable[[DataError], object] | None = None
        self._unit = unit
        self._first_error: DataError | None = None
        self._is_reported = False

    def handle(self, error: DataError) -> None:
        """Raise the error of a bad line or, if bad lines are skipped, count it. An error about the whole stream
        (not-whole) is always raised."""
        if not self.skip or error.code == "not-whole":
            raise error
        self.skipped += 1
        self._first_error = self._first_error or error
        if self.on_skip is not None:
            self.on_skip(error)

    @contextmanager
    def item(self, place: str = "") -> Iterator[None]:
        """Pass a `DataError` that the block raises to `handle`. place: for an error that does not say where it is."""
        try:
            yield
        except DataError as error:
            self.handle(error.add_place(place))

    @property
    def summary(self) -> str:
        """A text that says how many lines were dropped, with the error of the first; "" if none was dropped."""
        if self._first_error is None:
            return ""
        units = self._unit if self.skipped == 1 else f"{self._unit}s"
        return f"skipped {self.skipped:,} {units}; the first: {self._first_error}"

    def report(self, *, some_left: bool = True) -> None:
        """Print the `summary`, once, if lines were dropped. Raises `DataError` instead if no line is left
        (`some_left`)."""
        if self.summary and not some_left:
            raise DataError(f"nothing is left: {self.summary}")
        if self.summary and not self._is_reported:
            note(self.summary)
            self._is_reported = True

    def sign_skipped(self, rows: Sequence[Row]) -> list[Row]:
        """Report the dropped lines, and return the rows with their number in the signatures. A number that a signature
        has already, of the lines dropped in a group, is raised by it."""
        self.report()
        dropped = self.skipped + self.earlier
        if not dropped:
            return list(rows)
        return [add_to_setting(row, "skipped", dropped) for row in rows]

    def report_at_end(self, items: Iterable[T], *, some_left: bool = False) -> Iterator[T]:
        """Yield the items, then `report` the dropped lines. some_left: whether good lines came before."""
        for item in items:
            some_left = True
            yield item
        self.report(some_left=some_left)


@contextmanager
def policies_of_call() -> Iterator[list[ErrorPolicy]]:
    """Give the block, the call of a command, a list to which every policy that `policy_of` makes in it is added."""
    policies: list[ErrorPolicy] = []
    token = _OF_CALL.set(policies)  # where `policy_of` finds the list
    try:
        yield policies
    finally:
        _OF_CALL.reset(token)


def policy_of(on_error: str, unit: str = "line") -> ErrorPolicy:
    """Return the policy that --on-error asks for. It is one of the call's policies (`policies_of_call`), whose rows are
    signed with the number of dropped lines. unit: what messages call a line."""
    policy = ErrorPolicy(skip=on_error == "skip", unit=unit)
    if (policies := _OF_CALL.get()) is not None:
        policies.append(policy)
    return policy


class ImageRegister:
    """Remembers the line of every image: an image that occurs twice is an error that names both lines."""

    def __init__(
        self, known_ids: Container[str] | None = None, *, unit: str = "an image", field: str = "image_id"
    ) -> None:
        """Start without images. known_ids: the ids that images may have, None for any. unit, field: for messages: what
        has one line each, and the field that names the image."""
        self._known_ids = known_ids
        self._unit = unit
        self._field = field
        self._locations: dict[str, tuple[str | None, int | str]] = {}

    def add(self, image_id: str, line: Line) -> None:
        """Remember that an image is on this line. Raises `DataError` for one that was added already or is unknown."""
        if self._known_ids is not None and image_id not in self._known_ids:
            renaming = _advise_renaming(image_id, self._known_ids)
            advice = renaming or f"give the set it belongs to, or pass {arg('on_error', 'skip')}"
            problem = f"{unknown_image(image_id, self._known_ids)}; {advice}"
            raise DataError(problem, place=line.place, field=self._field, code=UNKNOWN_IMAGE)
        location = _location(line)
        first_location = self._locations.setdefault(image_id, location)
        if first_location != location:
            first_file, first_number = first_location
            where = str(first_number)  # a line of no file has its place in words here (`_location`)
            if first_file is not None:
                where = Line(first_file, int(first_number), b"").where
            problem = f"image {image_id!r} is {where} already; keep one line {self._unit}"
            if first_file != location[0]:
                problem += " in all files, which are read as one; for two models: hoicli compare, or one run each"
            if _OF_A_CELL.search(line.data):
                problem += f"; cells of hoicli corrupt: give its records as ground truth, {arg('by', _CELL_FIELDS)}"
            raise DataError(problem, place=line.place, field=self._field, code=DUPLICATE_IMAGE)

    def add_all(self, image_ids: Sequence[str], lines: Sequence[Line]) -> bool:
        """Add the images of many lines and return True if all of them are new and known; otherwise add none and return
        False."""
        if len(image_ids) != len(lines):  # several processes read the file, and it has changed between them
            raise DataError("changed while it was read; run again", place=lines[0].place if lines else "")
        different_ids = set(image_ids)
        if len(different_ids) != len(image_ids) or not self._locations.keys().isdisjoint(different_ids):
            return False
        if self._known_ids is not None and not all(map(self._known_ids.__contains__, image_ids)):
            return False
        self._locations.update(zip(image_ids, map(_location, lines), strict=True))
        return True


def unknown_image(image_id: str, known_ids: Container[str]) -> str:
    """Return a message that an image is not in the ground truth, with one of its ids for comparison."""
    for form in ("NFC", "NFD"):
        if (in_form := normalize(form, image_id)) in known_ids:
            written = f"{ascii(image_id)[1:-1]} and {ascii(in_form)[1:-1]}"
            return f"{image_id!r} is in the ground truth in Unicode's form {form} ({written}), which is another name"
    rewritten = (str(rewrite(image_id)) for rewrite in ID_RULES.values())
    any_id = next(iter(known_ids), None) if isinstance(known_ids, Iterable) else None
    example = next((other for other in rewritten if other in known_ids), any_id)
    comparison = "" if example is None else f" (which names images as {example!r})"
    return f"{image_id!r} is not in the ground truth{comparison}"


def _advise_renaming(image_id: str, known_ids: Container[str]) -> str:
    """Return how to rename images so that an unknown id becomes one of the known ones; "" if nothing helps."""
    for form in ("NFC", "NFD"):
        if normalize(form, image_id) in known_ids:
            return f"write both in one form: unicodedata.normalize({form!r}, name) in Python"
    for rule, rewrite in ID_RULES.items():
        if (other_name := str(rewrite(image_id))) in known_ids:
            return f"hoicli convert {arg('id_', rule)} makes it {other_name!r}"
    example = next(iter(known_ids), image_id) if isinstance(known_ids, Iterable) else image_id
    if image_id + PurePosixPath(example).suffix in known_ids:
        return f"make one kind of both with hoicli convert {arg('id_', 'name')}"
    is_path = "/" in image_id
    known_is_path = "/" in example
    if is_path == known_is_path and image_id.isdecimal() == example.isdecimal():
        # both ids look alike: perhaps the known ones have a prefix that ends in a separator
        prefixes = (example[:length] for length in range(1, len(example)) if not example[length - 1].isalnum())
        missing = next((prefix for prefix in prefixes if prefix + image_id in known_ids), "")
        if not missing:
            return ""
        return f"ids there end in it, and {missing!r} is missing in front: jq -c '.image_id |= \"{missing}\" + .'"
    if is_path:
        rule = "name"
    elif known_is_path:
        rule = "path"
    else:
        rule = "number"
    return f"make one kind of both with hoicli convert {arg('id_', rule)}"


def _location(line: Line) -> tuple[str | None, int | str]:
    """Return (file, number) of a line, or (None, its place in words) if it is of no file. That takes less memory than
    the line with its text."""
    if type(line) is Line:
        return line.file, line.number
    return None, line.where
