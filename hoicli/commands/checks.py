"""What is checked before a command's work: its outputs, its inputs and its counts, each marked where it is declared.

    gt: Annotated[str, typer.Option("--gt", metavar="FILE", help="..."), READ]
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="..."), OUTPUT]
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", help="..."), Count(1, 1024)]

The class of all commands (manual.py) calls `check`, so that a new option only needs its mark;
tests/commands/test_checks.py fails for one that has none.
"""

from __future__ import annotations

import inspect
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hoicli.errors import UsageError
from hoicli.io.destinations import (
    check_appended,
    check_figure,
    check_folder,
    check_folders,
    check_output,
    check_page_folder,
)
from hoicli.io.outputs import descriptor

Values = Mapping[str, Any]
"""What was given, by the parameters' names."""


@dataclass(frozen=True)
class Read:
    """Marks what names files to be read. prefix: what stands before the name (table:FILE). besides: words that are no
    files here. only_with: the parameters without which an argument that is not given is not read."""

    prefix: str = ""
    besides: Collection[str] = ()
    only_with: Collection[str] = ()

    def paths(self, value: str | Sequence[str] | None, values: Values, *, argument: bool) -> list[str]:
        """The files of a value; an argument that is not given is stdin."""
        read = argument and (not self.only_with or any(values.get(name) for name in self.only_with))
        words = [value] if isinstance(value, str) else value or ("-",) * read
        return [word.removeprefix(self.prefix) for word in words if word.startswith(self.prefix)
                and word not in self.besides]  # fmt: skip


@dataclass(frozen=True)
class Written:
    """Marks what names a file or a folder to be written. check: raises `UsageError` for (path, option) that cannot be.
    inside: the file that is written in a folder of that name."""

    check: Callable[[str, str], None]
    inside: str = ""

    def refuse(self, path: str, option: str, values: Values) -> None:
        """Raises `UsageError` for what cannot be written. values: of all options, for a kind that another one says."""
        self.check(path, option)

    def file(self, path: str) -> object:
        """Which file is written (`file_of`)."""
        return file_of(os.path.join(path, self.inside) if self.inside else path, standard=1)


@dataclass(frozen=True)
class Count:
    """Marks a number that time or memory grows with, and says how large it may be."""

    least: int
    most: int

    def refuse(self, value: int | None, option: str) -> None:
        """Raises `UsageError` for a number that is out of range."""
        if value is not None and not self.least <= value <= self.most:
            raise UsageError(f"{option} {value}: give a whole number from {self.least:,} to {self.most:,}")


Mark = Read | Written | Count

READ = Read()
OUTPUT = Written(check_output)
FIGURE = Written(check_figure)
PAGE_FOLDER = Written(check_page_folder, inside="index.html")
FOLDER = Written(check_folder)
FOLDERS = Written(check_folders)
APPENDED = Written(check_appended)


def marks(callback: Callable[..., Any]) -> dict[str, Mark]:
    """The marks of a command's parameters, by their names; of several the last, which is put around the others."""
    found = {}
    for parameter in inspect.signature(inspect.unwrap(callback), eval_str=True).parameters.values():
        for mark in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(mark, Mark):
                found[parameter.name] = mark
    return found


def check(marked: Mapping[str, Mark], names: Mapping[str, str], values: Values) -> None:
    """Raises `UsageError` where a count is out of range, where two inputs are stdin, and where an output cannot be
    written (`DataError`: stdout is closed), is an input or is another output, whatever the names: links and ./ are
    followed.

    names: how messages call each parameter: its option, or an argument's metavar.
    """
    outputs: list[tuple[str, str, object]] = []
    for name, mark in sorted(marked.items(), key=lambda one: names[one[0]] != "-o"):
        value = values.get(name)
        if isinstance(mark, Count):
            mark.refuse(value, names[name])
        elif isinstance(mark, Written) and value == "":
            raise UsageError(f"{names[name]}: the name is empty; give one (an unset variable?)")
        elif isinstance(mark, Written) and value is not None:
            mark.refuse(value, names[name], values)
            outputs.append((names[name], value, mark.file(value)))
    inputs = list(_inputs(marked, names, values))
    if sum(path == "-" or descriptor(path) == 0 for _, path in inputs) > 1:
        raise UsageError("stdin (-) can be read only once: give the ground truth or the predictions as a file")
    taken: dict[object, str] = {}
    for option, path, file in outputs:
        for given, read in inputs:
            if file is not None and file_of(read) == file:
                shown = "stdout" if path == "-" else f"{option} {path}"
                raise UsageError(f"{shown}: is an input, too ({given}); give another name")
        key = "stdout" if path == "-" else file
        if key is not None and taken.setdefault(key, option) != option:
            raise UsageError(f"{option} {path}: is the output of {taken[key]} already; give another file")


def _inputs(marked: Mapping[str, Mark], names: Mapping[str, str], values: Values) -> Iterator[tuple[str, str]]:
    """(how it was given, its path) of every input."""
    for name, mark in marked.items():
        if isinstance(mark, Read):
            argument = not names[name].startswith("-")
            for path in mark.paths(values.get(name), values, argument=argument):
                yield "stdin" if path == "-" else path if argument else f"{names[name]} {path}", path


def file_of(path: str, *, standard: int = 0) -> object:
    """What tells a file from others, however it is named; None for what many may use: a pipe, a device, a folder.

    standard: the number of the stream that - is.
    """
    try:
        found = os.fstat(standard) if path == "-" else os.stat(path)
    except OSError:
        return None if path == "-" else os.path.realpath(path)
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
