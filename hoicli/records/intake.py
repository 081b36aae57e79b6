"""Rules for reading a stream: what to do with a bad line, and that no image occurs twice."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cached_property

from hoicli.errors import DataError
from hoicli.io.messages import note
from hoicli.io.streams import Line
from hoicli.records.names import image_id_of, image_number

UNKNOWN_IMAGE, DUPLICATE_IMAGE = "unknown-image", "duplicate-image"
"""Codes of what `ImageRegister` finds."""


class ErrorPolicy:
    """What to do with a bad line: stop (the default), or drop, count and report it (`--on-error skip`)."""

    def __init__(self, *, skip: bool = False, unit: str = "line") -> None:
        self.skip = skip
        self._unit = unit
        self.skipped = 0
        self._first: DataError | None = None

    def handle(self, error: DataError) -> None:
        """Raise `error`, or count it."""
        if not self.skip:
            raise error
        self.skipped += 1
        self._first = self._first or error

    @property
    def summary(self) -> str:
        """How many lines were dropped, and the first; "" if none was."""
        units = self._unit if self.skipped == 1 else f"{self._unit}s"
        return "" if self._first is None else f"skipped {self.skipped:,} {units}; the first: {self._first}"

    def report(self) -> None:
        """Say how many lines were dropped, and show the first."""
        if self.summary:
            note(self.summary)


class ImageRegister:
    """Remembers where every image was seen: an image that occurs twice is an error that names both lines.

    `known`: the allowed images (those of the ground truth); None allows any. `unit`: what has one line; `field`: the
    field that names it.
    """

    def __init__(self, known: Container[str] | None = None, *, unit: str = "an image", field: str = "image_id") -> None:
        self._known = known
        self._unit, self._field = unit, field
        self._places: dict[str, str] = {}

    def add(self, image_id: str, line: Line) -> None:
        """Raises `DataError` if the image was added already, or is not a known one."""
        if self._known is not None and image_id not in self._known:
            advice = self.meant(image_id) or "give the set it belongs to, or pass --on-error skip"
            problem = f"{image_id!r} is not in the ground truth; {advice}"
            raise DataError(problem, place=line.place, field=self._field, code=UNKNOWN_IMAGE)
        first = self._places.setdefault(image_id, line.where)
        if first != line.where:
            problem = f"image {image_id!r} is {first} already; keep one line {self._unit}"
            raise DataError(problem, place=line.place, field=self._field, code=DUPLICATE_IMAGE)

    def meant(self, image_id: str) -> str:
        """A question that suggests the one known image with this file name or number, "" if there is not exactly
        one."""
        name = image_id_of(image_id)
        same_number = self._known_by.get(image_number(name), [])
        # one of the two is a bare number: HICO_train2015_00000001 does not mean HICO_test2015_00000001
        bare = [known for known in same_number if name.isdecimal() or known.isdecimal()]
        meant = self._known_by.get(name) or bare
        return f"did you mean {meant[0]!r}? name images as the ground truth does" if len(meant) == 1 else ""

    @cached_property
    def _known_by(self) -> dict[str | int | None, list[str]]:
        """The known images by name without extension, and by the number at the end of the name."""
        found: dict[str | int | None, list[str]] = {}
        images: Iterable[str] = self._known if isinstance(self._known, Iterable) else ()
        for known in images:
            name = image_id_of(known)
            number = image_number(name)
            for key in (name,) if number is None else (name, number):
                found.setdefault(key, []).append(known)
        return found

    def add_all(self, image_ids: list[str], lines: list[Line]) -> bool:
        """Add the images of many lines if all are new, known and different, and return True; else add none."""
        fresh = dict.fromkeys(image_ids)
        if len(fresh) != len(image_ids) or not self._places.keys().isdisjoint(fresh):
            return False
        if self._known is not None and not all(image_id in self._known for image_id in image_ids):
            return False
        self._places.update(zip(image_ids, (line.where for line in lines), strict=True))
        return True
