"""Checks before a command starts: its outputs, inputs, counts and names, each marked where the option is declared.

    gt: str = option(None, "--gt FILE", "...", mark=READ)
    output: str = option("-", "-o --output FILE", "...", mark=OUTPUT)
    jobs: int = option(8, "--jobs N", "...", mark=Count(1, 1024))

The base class of all commands (manual.py) calls `check`, so a new option only needs a mark;
tests/commands/test_checks.py fails for an option without one.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hoicli.commands import choices
from hoicli.errors import UsageError
from hoicli.io import claims, destinations
from hoicli.io.inputs import parts_of
from hoicli.io.outputs import descriptor

Given = Mapping[str, Any]
"""The values given on the command line, by parameter name."""


@dataclass(frozen=True)
class Read:
    """Marks an option that names files to read. prefix: the text before the name (table:FILE). folder: the name is that
    of a folder. only_with: an omitted argument means stdin only if one of these parameters is given. named: the name
    may be that of ground truth (`hoicli data`), which stands for its file. besides: names that are no files."""

    prefix: str = ""
    folder: bool = False
    only_with: Collection[str] = ()
    named: bool = False
    besides: choices.Offer = ()

    def paths(self, value: str | Sequence[str] | None, values: Given, *, argument: bool) -> list[str]:
        """The files that a value names; an omitted argument means stdin."""
        read = argument and (not self.only_with or any(values.get(name) for name in self.only_with))
        words = [value] if isinstance(value, str) else value or (["-"] if read else [])
        others = {name for name, _ in choices.entries(self.besides)}
        return [word.removeprefix(self.prefix) for word in words if word.startswith(self.prefix) and word not in others]


@dataclass(frozen=True)
class ReadDataset(Read):
    """Marks an option that names a dataset, or a file with one."""

    def paths(self, value: str | Sequence[str] | None, values: Given, *, argument: bool) -> list[str]:
        """The file, if the value is no dataset's name. Raises `UsageError` for an empty one."""
        if value == "":
            raise UsageError("--dataset: the name is empty; give one (an unset variable?)")
        known = choices.table("vocabulary.datasets:DATASETS")
        return [value] if isinstance(value, str) and value not in known else []


@dataclass(frozen=True)
class ReadJson(Read):
    """Marks an option that takes a name, or a file whose name ends in .json."""

    def paths(self, value: str | Sequence[str] | None, values: Given, *, argument: bool) -> list[str]:
        """The value, if it is a file."""
        return [value] if isinstance(value, str) and value.endswith(".json") else []


@dataclass(frozen=True)
class Written:
    """Marks an option that names a file or a folder to write. check: raises `UsageError` if the path cannot be written.
    whole: it is a folder that is replaced as a whole, so nothing in it may be another's."""

    check: Callable[[str, str], None]
    whole: bool = False

    def refuse(self, path: str, option: str, values: Given) -> None:
        """Raises `UsageError` if `path` cannot be written. values: of all options, since another may set the file's
        kind."""
        self.check(path, option)


@dataclass(frozen=True)
class Count:
    """Marks a number that time or memory grows with, and limits it. or_zero: 0 is none of it."""

    least: int
    most: int
    or_zero: bool = False

    def refuse(self, value: int | None, option: str) -> None:
        """Raises `UsageError` for a number out of range."""
        if value is not None and not self.least <= value <= self.most and not (self.or_zero and value == 0):
            none = ", or 0 for none" if self.or_zero else ""
            raise UsageError(f"{option} {value}: give a whole number from {self.least:,} to {self.most:,}{none}")


@dataclass(frozen=True)
class OneOf:
    """Marks an option whose value must be one of the names in an offer (`choices`)."""

    offer: choices.Offer

    def refuse(self, value: str | None, option: str) -> None:
        """Raises `UsageError` for any other name."""
        known = [name for name, _ in choices.entries(self.offer)] if value is not None else []
        if value is not None and value not in known:
            choice = f"from {', '.join(known)}" if len(known) > 2 else " or ".join(known)
            raise UsageError(f"{option} {value}: choose {choice}")


def _check_page(path: str, option: str) -> None:
    from hoicli.explorer.folder import check_folder

    check_folder(path, option)


def _check_shown(path: str, option: str) -> None:
    from hoicli.figures.shown_files import check_shown

    check_shown(path, option)


Mark = Read | Written | Count | OneOf

READ = Read()
READ_NAMED = Read(only_with=("-",))
"""Of an argument: left out, it means nothing, not stdin."""
READ_DATASET = ReadDataset()
READ_JSON = ReadJson()
READ_FOLDER = Read(folder=True)
READ_TRUTH = Read(named=True)
OUTPUT = Written(destinations.check_output)
FIGURE = Written(destinations.check_figure)
PAGE_FOLDER = Written(_check_page, whole=True)
SHOWN = Written(_check_shown, whole=True)
FOLDER = Written(destinations.check_folder)
FOLDERS = Written(destinations.check_folders)
APPENDED = Written(destinations.check_appended)


def marks(callback: Callable[..., Any]) -> dict[str, Mark]:
    """The marks of a command's parameters, by their names."""
    parameters = inspect.signature(inspect.unwrap(callback)).parameters.values()
    found = {parameter.name: getattr(parameter.default, "mark", None) for parameter in parameters}
    return {name: mark for name, mark in found.items() if mark is not None}


def located(marked: Mapping[str, Mark], values: Given) -> dict[str, str]:
    """The files of the ground truth that options name (hico:test), by parameter name. Raises `UsageError` for one that
    was never added."""
    named = {name for name, mark in marked.items() if isinstance(mark, Read) and mark.named}
    found = {name: str(values[name]) for name in named if ":" in (values.get(name) or "")}
    if not found:
        return {}
    from hoicli.converters.store import located as file_of_set

    return {name: file_of_set(text) for name, text in found.items()}


def check(marked: Mapping[str, Mark], names: Mapping[str, str], values: Given) -> None:
    """Raises `UsageError` if a count is out of range, a name is unknown, two inputs are stdin, a folder to read does
    not exist, or an output cannot be written, is also an input, or is also another output (`claims`, which from here on
    knows them). Raises `DataError` if stdout is closed.

    names: how messages call each parameter: its option, or an argument's metavar.
    """
    for name, mark in sorted(marked.items(), key=lambda one: names[one[0]] != "-o"):
        value = values.get(name)
        if isinstance(mark, Count | OneOf):
            mark.refuse(value, names[name])
        elif isinstance(mark, Written) and value == "":
            raise UsageError(f"{names[name]}: the name is empty; give one (an unset variable?)")
        elif isinstance(mark, Written) and value is not None:
            mark.refuse(value, names[name], values)
            claims.writes(value, names[name], whole=mark.whole)
    inputs = list(_inputs(marked, names, values))
    if sum(path == "-" or descriptor(path) == 0 for _, path in inputs) > 1:
        raise UsageError("stdin (-) can be read only once: give the ground truth or the predictions as a file")
    for called, path in inputs:
        claims.reads(path, called)
    for name, mark in marked.items():
        if isinstance(mark, Read) and mark.folder and values.get(name) is not None and not os.path.isdir(values[name]):
            raise UsageError(f"{names[name]} {values[name]}: there is no such folder")


def _inputs(marked: Mapping[str, Mark], names: Mapping[str, str], values: Given) -> Iterator[tuple[str, str]]:
    """(how the user named it, path) of every input."""
    for name, mark in marked.items():
        if isinstance(mark, Read):
            argument = not names[name].startswith("-")
            for path in mark.paths(values.get(name), values, argument=argument):
                for part in parts_of(path):
                    yield "stdin" if part == "-" else part if argument else f"{names[name]} {part}", part
