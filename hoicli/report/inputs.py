"""Streams that are read more than once: what is no plain file is kept in a temporary one while it is needed."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj

from hoicli.errors import DataError
from hoicli.io.messages import display_name
from hoicli.io.signals import held
from hoicli.records.intake import ErrorPolicy


class Kept:
    """Paths that can be read again and again, and what the user calls them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def path(self, path: str) -> str:
        """`path` itself, or for stdin, pipes and devices that of a copy. What is not there is left to its reader."""
        if path != "-" and (Path(path).is_file() or not Path(path).exists() or Path(path).is_dir()):
            return path
        with held():
            handle, copy = tempfile.mkstemp(prefix="hoicli-")
            self._names[copy] = display_name(path)
        with os.fdopen(handle, "wb") as target:
            if path == "-":
                copyfileobj(sys.stdin.buffer, target)
            else:
                with open(path, "rb") as source:
                    copyfileobj(source, target)
        return copy

    def named(self, error: DataError) -> DataError:
        """The error with the streams called as the user called them."""
        problem, place = error.problem, error.place
        for copy, name in self._names.items():
            problem, place = problem.replace(copy, name), place.replace(copy, name)
        return DataError(problem, place=place, field=error.field, code=error.code)

    def policy(self, *, skip: bool) -> ErrorPolicy:
        """An error policy that calls the streams so, too."""
        return _NamingPolicy(self, skip=skip)

    def remove(self) -> None:
        """Delete the copies."""
        for copy in self._names:
            Path(copy).unlink(missing_ok=True)


class _NamingPolicy(ErrorPolicy):
    def __init__(self, kept: Kept, *, skip: bool) -> None:
        super().__init__(skip=skip)
        self._kept = kept

    def handle(self, error: DataError) -> None:
        super().handle(self._kept.named(error))


@contextmanager
def kept_streams(paths: Sequence[str]) -> Iterator[tuple[list[str], Kept]]:
    """(paths that can be read several times, what to call them by); the copies are removed when the block ends."""
    kept = Kept()
    try:
        yield [kept.path(path) for path in paths], kept
    except DataError as error:
        raise kept.named(error) from None
    finally:
        kept.remove()
