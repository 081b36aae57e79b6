"""The fixtures in other people's formats: each function writes one as its project's own code would.

`python -m tests.foreign` writes them all anew; the tests convert each file back and compare.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import orjson

from hoicli.converters.formats import FORMATS
from tests.hostile.mutations import STRUCTURE
from tests.support.project import EIGHT, FIXTURES, Record

Records = list[Record]
Make = Callable[[Records, Records, Path], None]
"""Writes a file of the ground truth and the predictions."""


@dataclass(frozen=True)
class Fixture:
    """A file in fixtures/FOLDER/PLACE, of the ground truth `truth` and the predictions of FOLDER; without a folder, of
    those of tests/eight. images: those that it has, if not all. With a `format` and a `kind`, a key of
    tests.hostile.mutations.STRUCTURE, the format is also attacked."""

    make: Make
    file: str
    folder: str = ""
    place: str = "foreign"
    truth: str = "gt.jsonl"
    images: Collection[str] = ()
    format: str = ""
    kind: str = ""

    def __post_init__(self) -> None:
        if self.format or self.kind:
            where = f"@writes({self.file!r}) in tests/foreign"
            kinds = ", ".join(STRUCTURE)
            assert self.format in FORMATS, f"{where}: format {self.format!r} is no row of hoicli/converters/formats.py"
            assert self.kind in STRUCTURE, f"{where}: kind {self.kind!r}; choose {kinds} (tests/hostile/mutations.py)"

    @property
    def path(self) -> Path:
        return FIXTURES / self.folder / self.place / self.file

    def records(self) -> tuple[Records, Records]:
        folder = FIXTURES / self.folder if self.folder else EIGHT
        truth, predictions = (
            [orjson.loads(line) for line in (folder / name).read_bytes().splitlines()]
            for name in (self.truth, "predictions.jsonl")
        )
        return truth, predictions


_FIXTURES: dict[str, Fixture] = {}


def writes(file: str, **where: Any) -> Callable[[Make], Make]:
    """Marks the function that makes a file; where: the fields of `Fixture`."""

    def added(make: Make) -> Make:
        fixture = Fixture(make, file, **where)
        own = {make.__name__} & {*_FIXTURES}
        there = {name for name, other in _FIXTURES.items() if other.path == fixture.path} | own
        assert not there, f"@writes({file!r}) {make.__name__}: {there} of tests/foreign has that name or file already"
        _FIXTURES[make.__name__] = fixture
        return make

    return added


def fixtures() -> dict[str, Fixture]:
    for module in iter_modules(__path__):
        if module.name != "__main__":
            import_module(f"{__name__}.{module.name}")
    return _FIXTURES
