"""Streams of lines: files read one after another and unpacked, or split into shares for processes."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, pairwise
from pathlib import Path
from shutil import copyfileobj
from typing import IO, Any

from hoicli.errors import DataError
from hoicli.io.encoding import MARK, cuts_at_line_ends
from hoicli.io.inputs import is_packed, open_input, packed_size
from hoicli.io.messages import display_name
from hoicli.io.outputs import writable
from hoicli.io.progress import Progress
from hoicli.io.signals import held

LONGEST_LINE, LONGEST_UNPACKED = 1 << 26, 1 << 24
"""Bytes of a line, hundreds of times an image record, as it is and out of a compressed file. Parsed it takes ten times
as much memory, and a decompression bomb may be one endless line."""

SHARE = 8 << 20
"""Bytes that justify another process: parsing them takes ten times as long as starting it."""


@dataclass(frozen=True)
class Line:
    """One line of a stream, with its file and number for messages."""

    file: str
    number: int
    data: bytes

    @property
    def place(self) -> str:
        """`file:line`, as compilers and editors write it."""
        return f"{self.file}:{self.number}"


class Stream:
    """The non-blank lines of files (`-`: stdin), one file after another, with progress on a terminal. Each iteration
    reads from the beginning; stdin and pipes allow only one, unless they are `rereadable`. Raises `DataError` that
    names a file that cannot be read.
    """

    def __init__(self, paths: Sequence[str], label: str) -> None:
        """label: what the lines are, for the progress bar and messages."""
        self.label = label
        self._paths = list(paths)
        self._names = [display_name(path) for path in paths]
        self._start, self._end = 0, math.inf
        self._begun: Iterator[Line] | None = None

    @property
    def name(self) -> str:
        """Its name in messages."""
        return ", ".join(self._names)

    @cached_property
    def first(self) -> Line:
        """The first line; the next iteration yields it, too. Raises `DataError` if the stream is empty."""
        lines = self._read()
        first = next(lines, None)
        if first is None:
            raise DataError(f"no {self.label} in it", place=self.name)
        self._begun = chain([first], lines)
        return first

    def __iter__(self) -> Iterator[Line]:
        lines, self._begun = self._begun or self._read(), None
        return lines

    def _read(self) -> Iterator[Line]:
        shared = self._end < math.inf
        with Progress(self.label, total=int(self._end) - self._start if shared else self._size(), unit="B") as progress:
            for path, name in zip(self._paths, self._names, strict=True):
                with open_input(path, name) as stream:
                    at = stream.seek(self._start) if shared else 0
                    for number, data in _numbered(stream, name):
                        at += len(data)
                        data = data.removeprefix(MARK)  # not only on the first line: cat and shuf move it
                        if data and not data.isspace():
                            yield Line(name, number, data)
                        if progress.shown:
                            progress.to(_position(stream) - self._start)
                        if at >= self._end:
                            return
                if shared:
                    raise DataError("changed while it was read: it has become shorter; run again", place=name)
                progress.file_done()

    def _size(self) -> int | None:
        """Bytes to read if every path is a plain file (compressed size for compressed ones); else None."""
        if "-" in self._paths or not all(map(os.path.isfile, self._paths)):
            return None
        return sum(map(os.path.getsize, self._paths))

    def shares(self) -> list[Stream]:
        """A large plain file split into about equal runs of lines, one for each processor; empty if that is not
        possible (several files, pipes, compressed files, systems other than Linux) or not worth it.

        Line numbers count from the start of a share, so an error's place is wrong: for the place, read the file again
        in one piece.
        """
        if sys.platform != "linux" or len(self._paths) != 1 or not Path(self._paths[0]).is_file():
            return []
        path = self._paths[0]
        size = Path(path).stat().st_size
        count = min(len(os.sched_getaffinity(0)), size // SHARE)
        if count < 2:
            return []
        with open(path, "rb") as stream:
            head = stream.read(4)
            if is_packed(head) or not cuts_at_line_ends(head):
                return []
            cuts = [0]
            for part in range(1, count):
                stream.seek(size * part // count)
                stream.readline()
                cuts.append(stream.tell())
        return [self._share(start, end) for start, end in pairwise([*cuts, size]) if start < end]

    def _share(self, start: int, end: int) -> Stream:
        """The lines from byte `start` to before `end` of its file."""
        share = Stream(self._paths, self.label)
        share._start, share._end = start, end
        return share

    @contextmanager
    def rereadable(self) -> Iterator[None]:
        """In the block the stream can be iterated more than once: pipes and devices are copied to temporary files."""
        given, copies = self._paths, list[str]()
        try:
            self._paths = [_copy(path, copies) if _is_read_once(path) else path for path in given]
            yield
        finally:
            self._paths = given
            for copy in copies:
                Path(copy).unlink(missing_ok=True)


def _is_read_once(path: str) -> bool:
    """Whether a path is stdin, a pipe or a device. False for a missing file, which the reader reports."""
    return path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


def _copy(path: str, copies: list[str]) -> str:
    """A temporary file with the unpacked content of a path, added to `copies` as soon as it exists."""
    with held():
        handle, copy = tempfile.mkstemp(prefix="hoicli-")
        copies.append(copy)
    with os.fdopen(handle, "wb") as target, open_input(path) as source, writable(tempfile.gettempdir()):
        copyfileobj(source, target)
    return copy


def _numbered(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line with its end) of a stream. Raises `DataError` for a line over LONGEST_LINE."""
    longest = LONGEST_LINE if packed_size(stream) is None else LONGEST_UNPACKED
    for number, data in enumerate(iter(partial(stream.readline, longest + 1), b""), start=1):
        if len(data) > longest:
            problem = f"a line of more than {longest >> 20} MiB; write one image a line (hoicli convert does)"
            raise DataError(problem, place=f"{name}:{number}")
        yield number, data


def _position(stream: IO[bytes]) -> int:
    """How many bytes of the underlying file have been read, compressed or not."""
    file: Any = getattr(getattr(stream, "raw", None), "fileobj", stream)
    with suppress(OSError, ValueError):
        return int(file.tell())
    return 0
