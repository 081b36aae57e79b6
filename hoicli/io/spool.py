"""What is read more than once, or by several processes, but can be made only once: kept in an unnamed file."""

from __future__ import annotations

import io
import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, cast

from hoicli.errors import DataError
from hoicli.io.outputs import writable

BUFFER = 1 << 20


def temporary_folder() -> str:
    """Where temporary files go. Raises `DataError` if none can be written anywhere."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        problem = "no folder takes temporary files, here or in /tmp; make room, or name one that can be written"
        raise DataError(problem, place="TMPDIR") from None


class Spool:
    """Lines in a temporary file without a name, so that nothing is left behind, however the process ends.

    name: what messages call the lines. numbered: whether they are the lines of a file of that name; the records of a
    converted dump are not.
    """

    def __init__(self, name: str, *, numbered: bool) -> None:
        self.name = name
        self.numbered = numbered
        with writable(temporary_folder()):
            file = tempfile.TemporaryFile(prefix="hoicli-", buffering=BUFFER)  # noqa: SIM115 (closed with the spool)
        self._file = cast("IO[bytes]", file)
        weakref.finalize(self, _close, file)  # not __del__: in a garbage cycle the file might go first

    @contextmanager
    def filling(self) -> Iterator[IO[bytes]]:
        """The file to write the lines to. Raises `DataError` if the disk is full."""
        with writable(temporary_folder()):
            yield self._file
            self._file.flush()

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The lines from the beginning. Several readers, in this process or in forks of it, do not disturb each
        other."""
        yield cast("IO[bytes]", io.BufferedReader(_Reader(self._file), BUFFER))

    @property
    def size(self) -> int:
        """Bytes in it."""
        return os.fstat(self._file.fileno()).st_size

    @property
    def divisible(self) -> bool:
        """Whether it can be read from any line on: always."""
        return True


def _close(file: IO[bytes]) -> None:
    """Close it, whatever a full disk says about the bytes it still holds."""
    with suppress(OSError):
        file.close()


class _Reader(io.RawIOBase):
    """An open file read from a position of its own: forks share the file's."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a byte, counted from the beginning or from here."""
        self._at = offset + (self._at if whence == os.SEEK_CUR else 0)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer`; the number of bytes, 0 at the end."""
        count = os.preadv(self._file.fileno(), [buffer], self._at)
        self._at += count
        return count
