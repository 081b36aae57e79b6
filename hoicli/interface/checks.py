"""The checks that are made before a command starts: of outputs, inputs, counts and names.

    ImageList = Annotated[Path | None, Option("FILE", "...", check=READ)]
    jobs: Annotated[int, Option("N", "...", check=Count(1, 1024))] = 8

A parameter's `Option` names its check. `command.check_arguments` makes them for calls from the shell and from Python.
tests/commands/test_checks.py fails for a new parameter that needs a check and has none.
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
"""The arguments of a call, by parameter name."""


@dataclass(frozen=True)
class Read:
    """The check of a parameter that names files to read: they must exist, and no output may overwrite them.

    ending: only values with this ending (.json) are files. names: values that are no files, such as a dataset's name
    (`choices`). folder: whether the parameter names a folder. only_with: other parameters; if this argument is left
    out, stdin is read only if one of them is given."""

    ending: str = ""
    names: choices.Offer = ()
    folder: bool = False
    only_with: Collection[str] = ()

    def paths(self, value: object, values: Values, *, piped: bool) -> list[str]:
        """Return the paths of the files that an argument names; "-" is stdin. value: the argument; values: all
        arguments of the call; piped: whether stdin is read if this one is None. Raises `UsageError` for an impossible
        path."""
        if value is None and piped and (not self.only_with or any(values.get(name) for name in self.only_with)):
            return ["-"]
        items = value if isinstance(value, list | tuple) else [value]
        # in a call from Python, items may also be records or arrays in memory: these are no files
        paths = [os.fspath(item) for item in items if isinstance(item, str | os.PathLike)]
        if impossible := [path for path in paths if "\0" in path]:
            raise UsageError(f"{impossible[0]!r}: no path has a NUL character; check it")
        names = {name for name, _ in choices.entries(self.names)}
        return [path for path in paths if path.endswith(self.ending) and path not in names]


@dataclass(frozen=True)
class Written:
    """The check of an option that names a file or a folder to write. function: the address, "module:name" inside
    hoicli, of the function that checks the path. whole: whether the path is a folder that is replaced as a whole, so
    that no input and no other output may lie in it."""

    function: str
    whole: bool = False

    def refuse(self, path: str, option: str) -> None:
        """Raise `UsageError` if `path` cannot be written. option: what the message calls the option, such as -o."""
        check_path = choices.load_object(self.function)
        check_path(path, option)


@dataclass(frozen=True)
class Count:
    """The check of a number that time or memory grows with: it must be from `minimum` to `maximum`. or_zero: whether 0,
    for none, is allowed, too."""

    minimum: int
    maximum: int
    or_zero: bool = False

    def refuse(self, value: int | None, option_text: str) -> None:
        """Raise `UsageError` for a number out of range; None (not given) is fine. option_text: what the message calls
        the parameter with its value: --jobs 0."""
        if value is not None and not self.minimum <= value <= self.maximum and not (self.or_zero and value == 0):
            none = ", or 0 for none" if self.or_zero else ""
            raise UsageError(f"{option_text}: give a whole number from {self.minimum:,} to {self.maximum:,}{none}")


@dataclass(frozen=True)
class OneOf:
    """The check of an option that must be one of the names in `offer` (`choices.Offer`)."""

    offer: choices.Offer

    def refuse(self, value: str | None, option_text: str) -> None:
        """Raise `UsageError` for a name that is not on offer; None (not given) is fine. The message suggests names
        whose meaning has the wrong name as a word. option_text: what the message calls the parameter with its value:
        --style poster."""
        if value is None:
            return
        offered = choices.entries(self.offer)
        names = [name for name, _ in offered]
        if value not in names:
            choice = f"from {', '.join(names)}" if len(names) > 2 else " or ".join(names)
            matched = [name for name, meaning in offered if value.lower() in re.findall(r"\w+", meaning.lower())]
            suggestion = f" (for {value}: {', '.join(matched)})" if matched else ""
            raise UsageError(f"{option_text}: choose {choice}{suggestion}")


Check = Read | Written | Count | OneOf

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
