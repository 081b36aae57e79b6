"""What is checked before a command starts: outputs, inputs, counts and names, each marked where its parameter is
declared.

    ImageList = Annotated[Path | None, Option("FILE", "...", mark=READ)]
    jobs: Annotated[int, Option("N", "...", mark=Count(1, 1024))] = 8

Both doors of all commands check them (`command.check`), so a new parameter only needs a mark;
tests/commands/test_checks.py fails for one without.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hoicli.errors import UsageError
from hoicli.interface import choices

Values = Mapping[str, Any]
"""The values of a call, by parameter name."""


@dataclass(frozen=True)
class Read:
    """Marks a parameter that names files to read. ending: of the values that are files (.json). names: values that are
    no files (`choices`). folder: whether a folder is named. only_with: other parameters; if the argument is left out,
    stdin is read only if one of them is given."""

    ending: str = ""
    names: choices.Offer = ()
    folder: bool = False
    only_with: Collection[str] = ()

    def paths(self, value: object, values: Values, *, piped: bool) -> list[str]:
        """Return the files that a value names. values: of the whole call; piped: whether stdin is read if there is no
        value. Raises `UsageError` for what can be no path."""
        if value is None and piped and (not self.only_with or any(values.get(name) for name in self.only_with)):
            return ["-"]
        several = value if isinstance(value, list | tuple) else [value]  # which may also be records or arrays
        words = [os.fspath(path) for path in several if isinstance(path, str | os.PathLike)]
        if wrong := [word for word in words if "\0" in word]:
            raise UsageError(f"{wrong[0]!r}: no path has a NUL character; check it")
        names = {name for name, _ in choices.entries(self.names)}
        return [word for word in words if word.endswith(self.ending) and word not in names]


@dataclass(frozen=True)
class Written:
    """Marks an option that names a file or a folder to write. check: where in hoicli the function is that checks it
    (`choices.table`). whole: it is a folder that is replaced as a whole, so nothing in it may be another's."""

    check: str
    whole: bool = False

    def refuse(self, path: str, option: str) -> None:
        """Raise `UsageError` if `path` cannot be written."""
        choices.table(self.check)(path, option)


@dataclass(frozen=True)
class Count:
    """Marks a number that time or memory grows with, and limits it. or_zero: 0 is none of it."""

    minimum: int
    maximum: int
    or_zero: bool = False

    def refuse(self, value: int | None, option_text: str) -> None:
        """Raise `UsageError` for a number out of range. option_text: the parameter with its value, in messages."""
        if value is not None and not self.minimum <= value <= self.maximum and not (self.or_zero and value == 0):
            none = ", or 0 for none" if self.or_zero else ""
            raise UsageError(f"{option_text}: give a whole number from {self.minimum:,} to {self.maximum:,}{none}")


@dataclass(frozen=True)
class OneOf:
    """Marks an option whose value must be one of the names in an offer (`choices`)."""

    offer: choices.Offer

    def refuse(self, value: str | None, option_text: str) -> None:
        """Raise `UsageError` for a name that is not on offer. option_text: as for `Count`."""
        offered = choices.entries(self.offer) if value is not None else []
        names = [name for name, _ in offered]
        if value is not None and value not in names:
            choice = f"from {', '.join(names)}" if len(names) > 2 else " or ".join(names)
            matched = ", ".join(name for name, about in offered if value.lower() in re.findall(r"\w+", about.lower()))
            raise UsageError(f"{option_text}: choose {choice}{f' (for {value}: {matched})' if matched else ''}")


Mark = Read | Written | Count | OneOf

READ = Read()
READ_DATASET = Read(names="vocabulary.datasets:DATASETS")
READ_JSON = Read(ending=".json")
READ_FOLDER = Read(folder=True)
OUTPUT = Written("io.outputs:check_output")
LINES = Written("tables.notations:check_lines")
FIGURE = Written("io.outputs:check_figure")
PAGE = Written("explorer.folder:check_page", whole=True)
SHOWN = Written("figures.showing:check_shown", whole=True)
FOLDER = Written("io.outputs:check_folder")
APPENDED = Written("io.outputs:check_appended")
