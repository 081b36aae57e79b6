"""Rules for reading a stream: what to do with a bad line, and that no image occurs twice."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from hoicli.errors import DataError, StoppedError, arg
from hoicli.io.messages import note
from hoicli.io.streams import Line
from hoicli.records.ids import MISSING, ImageIds
from hoicli.records.names import image_id_of, image_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNKNOWN_IMAGE, DUPLICATE_IMAGE = "unknown-image", "duplicate-image"
"""Codes of what `ImageRegister` finds."""

_NUMBER_BITS = 44
"""Of a line's number: more lines than bytes on any disk."""


class ErrorPolicy:
    """What to do with a bad line: stop (the default), or drop, count and report it (`--on-error skip`)."""

    def __init__(self, *, skip: bool = False, unit: str = "line") -> None:
        self.skip = skip
        self._unit = unit
        self.skipped = 0
        self._first: DataError | None = None

    def handle(self, error: DataError) -> None:
        """Raise `error`, or count it."""
        if not self.skip or isinstance(error, StoppedError):
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
    field that names it. `dumps`: whether the lines may be of predictions, as those with `known` are. `ids`: the images
    by their places, which are those in `known` if that has places.
    """

    def __init__(
        self,
        known: Container[str] | None = None,
        *,
        unit: str = "an image",
        field: str = "image_id",
        dumps: bool = False,
    ) -> None:
        self._known = known
        self._dumps = dumps or known is not None
        self._unit, self._field = unit, field
        self.ids = known if isinstance(known, ImageIds) else ImageIds()
        self._lines = array("q", bytes(8 * len(self.ids)))
        """Where each image was seen: the line's number, and above it that of its file; 0 for not yet."""
        self._files: dict[str | None, int] = {}
        """The number of each file, and of all records from Python (None), which `_items` numbers."""
        self._items: dict[str, int] = {}

    def add(self, image_id: str, line: Line) -> None:
        """Raises `DataError` if the image was added already, or is not a known one."""
        if self._known is not None and image_id not in self._known:
            advice = self.meant(image_id) or f"give the set it belongs to, or pass {arg('on_error', 'skip')}"
            problem = f"{image_id!r} is not in the ground truth; {advice}"
            raise DataError(problem, place=line.place, field=self._field, code=UNKNOWN_IMAGE)
        place, where = self.ids.add(image_id), self._mark(line)
        if place == len(self._lines):
            self._lines.append(0)
        first = self._lines[place] = self._lines[place] or where
        if first != where:
            problem = f"image {image_id!r} is {self._where(first)} already; {self._advice(first, where)}"
            raise DataError(problem, place=line.place, field=self._field, code=DUPLICATE_IMAGE)

    def _advice(self, first: int, second: int) -> str:
        """What to do about two lines of one image: in two files they are likely two models'."""
        one, other = (list(self._files)[(mark >> _NUMBER_BITS) - 1] for mark in (first, second))
        if one == other or not self._dumps:
            return f"keep one line {self._unit}"
        compare = f"hoicli compare {one} {other}, or " if self._unit == "an image" else ""  # it takes no matches
        models = f"{compare}evaluate each with a {arg('tag')}"
        return f"files are read as one stream, so keep one line {self._unit} in all of them; for two models: {models}"

    def _mark(self, line: Line) -> int:
        """A number for a line, by which `_where` knows it again."""
        of_file = type(line) is Line
        number = line.number if of_file else self._items.setdefault(line.where, len(self._items))
        file = self._files.setdefault(line.file if of_file else None, len(self._files) + 1)
        return file << _NUMBER_BITS | number

    def _marks(self, lines: list[Line]) -> array[int]:
        """`_mark` of each line."""
        if len({(type(line), line.file) for line in lines}) != 1 or type(lines[0]) is not Line:
            return array("q", map(self._mark, lines))
        before = self._mark(lines[0]) - lines[0].number
        return array("q", [before + line.number for line in lines])

    def _where(self, mark: int) -> str:
        """`Line.where` of a line by its number."""
        name = list(self._files)[(mark >> _NUMBER_BITS) - 1]
        number = mark & (1 << _NUMBER_BITS) - 1
        return list(self._items)[number] if name is None else Line(name, number, b"").where

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

    def add_all(self, image_ids: Sequence[str], lines: list[Line]) -> bool:
        """Add the images of many lines if all are new, known and different, and return True; else add none."""
        if len(set(image_ids)) != len(image_ids):
            return False
        marks = self._marks(lines)
        places = self.ids.places(image_ids)
        if self.ids is self._known:
            return self._see(places, marks)
        if (places != MISSING).any() or not (self._known is None or all(map(self._known.__contains__, image_ids))):
            return False
        self.ids.extend(image_ids)
        self._lines += marks
        return True

    def _see(self, places: NDArray[np.int64], marks: array[int]) -> bool:
        """Note where known images are seen if all are known and new, and return True; else note nothing."""
        import numpy as np

        lines = np.frombuffer(self._lines, dtype=np.int64)
        if (places == MISSING).any() or lines[places].any():
            return False
        lines[places] = marks
        return True
