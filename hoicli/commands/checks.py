"""Checks before a command starts: its outputs, inputs, counts and names, each marked where the parameter is declared.

    ImageList = Annotated[Path | None, Option("FILE", "...", mark=READ)]
    jobs: Annotated[int, Option("N", "...", mark=Count(1, 1024))] = 8

Both doors of all commands call `check`, so a new parameter only needs a mark; tests/commands/test_checks.py fails for
one without.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hoicli.commands import choices
from hoicli.errors import IN_PYTHON, UsageError, arg
from hoicli.io import claims, outputs
from hoicli.io.inputs import parts_of
from hoicli.io.outputs import descriptor

Values = Mapping[str, Any]
"""The values of a call, by parameter name."""


@dataclass(frozen=True)
class Read:
    """Marks a parameter that names files to read. prefix: the text before the name (table:FILE). folder: the name is
    that of a folder. only_with: an argument that was left out means stdin only if one of these parameters is given.
    besides: names that are no files."""

    prefix: str = ""
    folder: bool = False
    only_with: Collection[str] = ()
    besides: choices.Offer = ()

    def paths(self, value: object, values: Values, *, piped: bool) -> list[str]:
        """The files that a value names. piped: stdin is read without one."""
        if value is None and piped and (not self.only_with or any(values.get(name) for name in self.only_with)):
            return ["-"]
        others = {name for name, _ in choices.entries(self.besides)}
        return [
            word.removeprefix(self.prefix)
            for word in _paths_in(value)
            if word.startswith(self.prefix) and word not in others
        ]


def _paths_in(value: object) -> list[str]:
    """The paths in a value, which may also be records or arrays. Raises `UsageError` for what can be no path."""
    several = value if isinstance(value, list | tuple) else [value]
    paths = [os.fspath(one) for one in several if isinstance(one, str | os.PathLike)]
    if wrong := [path for path in paths if "\0" in path]:
        raise UsageError(f"{wrong[0]!r}: no path has a NUL character; check it")
    return paths


@dataclass(frozen=True)
class ReadDataset(Read):
    """Marks a parameter that names a dataset, or a file with one."""

    def paths(self, value: object, values: Values, *, piped: bool) -> list[str]:
        """The file, if the value is no dataset's name. Raises `UsageError` for an empty one."""
        if value == "":
            raise UsageError(f"{arg('dataset')}: the name is empty; give one (an unset variable?)")
        known = choices.table("vocabulary.datasets:DATASETS")
        return [path for path in _paths_in(value) if path not in known]


@dataclass(frozen=True)
class ReadJson(Read):
    """Marks a parameter that takes a name, or a file whose name ends in .json."""

    def paths(self, value: object, values: Values, *, piped: bool) -> list[str]:
        """The value, if it is a file."""
        return [path for path in _paths_in(value) if path.endswith(".json")]


@dataclass(frozen=True)
class Written:
    """Marks an option that names a file or a folder to write. check: raises `UsageError` if the path cannot be written.
    whole: it is a folder that is replaced as a whole, so nothing in it may be another's."""

    check: Callable[[str, str], None]
    whole: bool = False

    def refuse(self, path: str, option: str, values: Values) -> None:
        """Raises `UsageError` if `path` cannot be written. values: of all options, since another may set the file's
        kind."""
        self.check(path, option)


@dataclass(frozen=True)
class Count:
    """Marks a number that time or memory grows with, and limits it. or_zero: 0 is none of it."""

    least: int
    most: int
    or_zero: bool = False

    def refuse(self, value: int | None, said: str) -> None:
        """Raises `UsageError` for a number out of range. said: the parameter with its value, in messages."""
        if value is not None and not self.least <= value <= self.most and not (self.or_zero and value == 0):
            none = ", or 0 for none" if self.or_zero else ""
            raise UsageError(f"{said}: give a whole number from {self.least:,} to {self.most:,}{none}")


@dataclass(frozen=True)
class OneOf:
    """Marks an option whose value must be one of the names in an offer (`choices`)."""

    offer: choices.Offer

    def refuse(self, value: str | None, said: str) -> None:
        """Raises `UsageError` for any other name. said: the parameter with its value, in messages."""
        known = [name for name, _ in choices.entries(self.offer)] if value is not None else []
        if value is not None and value not in known:
            choice = f"from {', '.join(known)}" if len(known) > 2 else " or ".join(known)
            raise UsageError(f"{said}: choose {choice}")


def _check_page(path: str, option: str) -> None:
    from hoicli.explorer.folder import check_folder

    check_folder(path, option)


def _check_shown(path: str, option: str) -> None:
    from hoicli.figures.shown_files import check_shown

    check_shown(path, option)


Mark = Read | Written | Count | OneOf

READ = Read()
READ_DATASET = ReadDataset()
READ_JSON = ReadJson()
READ_FOLDER = Read(folder=True)
OUTPUT = Written(outputs.check_output)
FIGURE = Written(outputs.check_figure)
PAGE_FOLDER = Written(_check_page, whole=True)
SHOWN = Written(_check_shown, whole=True)
FOLDER = Written(outputs.check_folder)
FOLDERS = Written(outputs.check_folders)
APPENDED = Written(outputs.check_appended)


@dataclass(frozen=True)
class Marked:
    """A parameter to be checked: its name, what messages call it, and its mark. argument: it has no option's name.
    piped: stdin is read without it."""

    name: str
    called: str
    mark: Mark | None
    argument: bool = False
    piped: bool = False


def check(parameters: Sequence[Marked], values: Values) -> None:
    """Raises `UsageError` if a count is out of range, a name is unknown, two inputs are stdin, a folder to read does
    not exist, or an output cannot be written, is also an input, or is also another output (`claims`, which from here on
    knows them). Raises `DataError` if stdout is closed."""
    marked = [one for one in parameters if one.mark is not None]
    for one in sorted(marked, key=lambda one: one.called != "-o"):
        value, mark = values.get(one.name), one.mark
        if isinstance(mark, Count | OneOf):
            word = one.argument and not IN_PYTHON.get()
            mark.refuse(value, f"{one.called} {value}" if word else arg(one.name, value))
        elif isinstance(mark, Written) and value == "":
            raise UsageError(f"{one.called}: the name is empty; give one (an unset variable?)")
        elif isinstance(mark, Written) and value is not None:
            path = os.fspath(value)
            mark.refuse(path, one.called, values)
            claims.writes(path, one.called, whole=mark.whole)
    inputs = list(_inputs(marked, values))
    if not IN_PYTHON.get() and sum(path == "-" or descriptor(path) == 0 for _, path in inputs) > 1:
        raise UsageError("stdin (-) can be read only once: give the ground truth or the predictions as a file")
    for called, path in inputs:
        claims.reads(path, called)
    for one in marked:
        folder = values.get(one.name)
        if isinstance(one.mark, Read) and one.mark.folder and folder is not None and not os.path.isdir(folder):
            raise UsageError(f"{arg(one.name, folder)}: there is no such folder")


def _inputs(marked: Sequence[Marked], values: Values) -> Iterator[tuple[str, str]]:
    """(how the user named it, path) of every input."""
    for one in marked:
        if isinstance(one.mark, Read):
            for path in one.mark.paths(values.get(one.name), values, piped=one.piped and not IN_PYTHON.get()):
                for part in parts_of(path):
                    yield "stdin" if part == "-" else part if one.argument else f"{one.called} {part}", part
