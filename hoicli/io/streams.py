"""Streams of lines: files read one after another and unpacked, or split into shares for processes; and a spool, which
keeps what can be made only once.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, pairwise
from shutil import copyfileobj
from typing import IO, Any, cast

from hoicli.errors import DataError, Place
from hoicli.io.messages import Progress, display_name
from hoicli.io.opened_files import GZIP_MAGIC, MARK, open_input, packed_size
from hoicli.io.outputs import temporary_folder, writable

LONGEST_LINE, LONGEST_UNPACKED = 1 << 26, 1 << 24
"""Bytes of a line, hundreds of times an image record, as it is and out of a compressed file. Parsed it takes ten times
as much memory, and a decompression bomb may be one endless line."""

SECOND, SHARE = 2 << 20, 8 << 20
"""Bytes that justify a second process, and each further one: parsing half of the first takes five times as long as
starting a process, which the first waits for."""
BUFFER = 1 << 20


@dataclass(slots=True)
class Line:
    """One line of a stream, with its file and number for messages; number 0: the record of an image in a dump, which
    has no lines."""

    file: str
    number: int
    data: bytes

    @property
    def place(self) -> str:
        """Return `file:line`; for a dump, which has no lines, `file: image ID`."""
        return Place.in_file(self.file, self.number or f"image {json.loads(self.data)['image_id']}")

    @property
    def where(self) -> str:
        """Return what a message about another line calls this one."""
        return f"at {self.file}:{self.number}" if self.number else f"in {self.file}"


@dataclass(slots=True)
class Item(Line):
    """A record that a caller from Python gives, as a line: `file` is the argument, `index` how Python finds it there;
    `number` is 1."""

    index: str

    @property
    def place(self) -> str:
        """Return `argument[index]`."""
        return Place(f"{self.file}[{self.index}]")

    @property
    def where(self) -> str:
        """Return what a message about another record calls this one."""
        return f"at {self.place}"


@dataclass(frozen=True)
class File:
    """The lines of a path (`-`: stdin), unpacked. numbered: they are the lines of the file of its name."""

    path: str
    numbered: bool = True

    @property
    def name(self) -> str:
        """Return the path as messages show it."""
        return display_name(self.path)

    @property
    def size(self) -> int | None:
        """Return how many bytes a plain file has (compressed ones, if it is compressed); None for anything else."""
        return os.path.getsize(self.path) if self.path != "-" and os.path.isfile(self.path) else None

    @property
    def divisible(self) -> bool:
        """Return whether it can be opened several times and read from any line on: a plain file that is not
        compressed."""
        if not os.path.isfile(self.path):
            return False
        with open(self.path, "rb") as stream:
            return stream.read(2) != GZIP_MAGIC

    def open(self) -> AbstractContextManager[IO[bytes]]:
        """Open the lines at their beginning. Raises `DataError` as `open_input` does."""
        return open_input(self.path, self.name)


class Spool:
    """Lines in a temporary file without a name, so that nothing is left behind, however the process ends.

    name: what messages call the lines. numbered: whether they are the lines of a file of that name; the records of a
    converted dump are not.
    """

    divisible = True
    """It can be read from any line on."""

    def __init__(self, name: str, *, numbered: bool) -> None:
        self.name = name
        self.numbered = numbered
        with writable(temporary_folder()):
            file = tempfile.TemporaryFile(prefix="hoicli-", buffering=BUFFER)  # noqa: SIM115 (closed with the spool)
        self._file = cast("IO[bytes]", file)
        weakref.finalize(self, _close, file)  # not __del__: in a garbage cycle the file might go first

    @contextmanager
    def filling(self) -> Iterator[IO[bytes]]:
        """In the block lines are written to the file that it gives. Raises `DataError` if the disk is full."""
        with writable(temporary_folder()):
            yield self._file
            self._file.flush()

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the lines at their beginning. Several readers, in this process or in forks of it, do not disturb each
        other."""
        yield cast("IO[bytes]", io.BufferedReader(_Reader(self._file), BUFFER))

    @property
    def size(self) -> int:
        """Return how many bytes it holds."""
        return os.fstat(self._file.fileno()).st_size


def _close(file: IO[bytes]) -> None:
    """Close a file, whatever a full disk says about the bytes that it still holds."""
    with suppress(OSError):
        file.close()


class _Reader(io.RawIOBase):
    """An open file read from a position of its own: forks share the file's."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a byte, counted from the beginning or from here."""
        self._position = offset + (self._position if whence == os.SEEK_CUR else 0)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` and return how many bytes it got, 0 at the end."""
        if hasattr(os, "preadv"):
            count = os.preadv(self._file.fileno(), [buffer], self._position)
        else:  # Windows, where nothing is forked
            self._file.seek(self._position)
            data = self._file.read(len(buffer))
            count = len(data)
            buffer[:count] = data
        self._position += count
        return count


Input = File | Spool
"""Something with lines."""
Opener = Callable[[Sequence[str]], Sequence[Input]]
"""A function that says for the paths of a stream what is read from them."""


def files(paths: Sequence[str]) -> list[Input]:
    """Return each path as a file of lines."""
    return [File(path) for path in paths]


class Stream:
    """The non-blank lines of files (`-`: stdin), one file after another, with progress on a terminal. Each iteration
    reads from the beginning; stdin and pipes allow only one, unless they are `rereadable`. Raises `DataError` that
    names a file that cannot be read.
    """

    def __init__(
        self, paths: Sequence[str], label: str, opener: Opener = files, lines_held: Sequence[Line] | None = None
    ) -> None:
        """Describe the stream; nothing is read yet. label: what the lines are, for the progress bar and messages.
        opener: called when they are first needed. lines_held: the lines themselves, where they are in memory; `paths`
        is what messages call them then."""
        self.label = label
        self.paths = list(paths)
        self._opener: Opener = opener if lines_held is None else lambda _: []
        self._held = lines_held
        self._start, self._end = 0, math.inf
        self._begun: Iterator[Line] | None = None

    @cached_property
    def _inputs(self) -> list[Input]:
        """Return what the stream reads, one after another."""
        return list(self._opener(self.paths))

    @property
    def name(self) -> str:
        """Return what messages call the stream."""
        return ", ".join(map(display_name, self.paths))

    @cached_property
    def first(self) -> Line:
        """Return the first line; the next iteration yields it, too. Raises `DataError` if the stream is empty."""
        lines = self._read()
        first = next(lines, None)
        if first is None:
            raise DataError(f"no {self.label} in it", place=self.name, code="empty")
        self._begun = chain([first], lines)
        return first

    def refuse_empty(self) -> Stream:
        """Return the stream itself. Raises `DataError` if it is empty."""
        self.first  # noqa: B018
        return self

    def __iter__(self) -> Iterator[Line]:
        lines, self._begun = self._begun or self._read(), None
        return lines

    def _read(self) -> Iterator[Line]:
        """Yield the non-blank lines from the beginning, or of a share those from its first byte to its last."""
        if self._held is not None:
            yield from self._held
            return
        is_share = self._end < math.inf
        inputs = self._inputs
        total = int(self._end) - self._start if is_share else self.size
        with Progress(self.label, total=total, unit="B") as progress:
            bytes_before = -self._start
            for source in inputs:
                name, numbered = source.name, source.numbered
                with source.open() as stream:
                    position = stream.seek(self._start) if is_share else 0
                    for number, data in _number_lines(stream, name):
                        position += len(data)
                        data = data.removeprefix(MARK)  # not only on the first line: cat and shuf move it
                        if data and not data.isspace():
                            yield Line(name, number if numbered else 0, data)
                        if progress.shown:
                            progress.advance_to(bytes_before + _position(stream))
                        if position >= self._end:
                            return
                    bytes_before += _position(stream)
                if is_share:
                    problem = "changed while it was read: it has become shorter; run again"
                    raise DataError(problem, place=name, code="unreadable")

    @property
    def size(self) -> int | None:
        """Return how many bytes there are to read if that is known of every input; else None."""
        sizes = [source.size for source in self._inputs]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def processes(self) -> int:
        """Return how many processes can profitably read the stream at once. It is 1 for little data, for what can be
        read only once or must be decoded (pipes, compressed files), and on systems other than Linux."""
        size = self.size
        if sys.platform != "linux" or size is None or size < min(SECOND, 2 * SHARE):
            return 1
        if not all(source.divisible for source in self._inputs):
            return 1
        return min(len(os.sched_getaffinity(0)), max(2, size // SHARE))

    def shares(self) -> list[Stream]:
        """Return one large plain file split into about equal runs of lines, one for each of its `processes`; nothing if
        that is one, and for several files.

        Line numbers count from the start of a share, so the place of an error is wrong: to get it, read the file again
        in one piece, or add `lines_before`."""
        count = self.processes()
        if count < 2 or len(self._inputs) != 1:
            return []
        source = self._inputs[0]
        size = source.size or 0
        with source.open() as stream:
            cuts = [0]
            for part in range(1, count):
                stream.seek(size * part // count)
                stream.readline()
                cuts.append(stream.tell())
        return [self._share(start, end) for start, end in pairwise([*cuts, size]) if start < end]

    def again(self) -> Stream:
        """Return the same lines, opened anew for another process."""
        inputs = self._inputs
        return Stream(self.paths, self.label, lambda _: inputs)

    def lines_before(self) -> int:
        """Return how many lines of its file come before this share."""
        if self._start == 0:  # and it may be read only once
            return 0
        count, remaining = 0, self._start
        with self._inputs[0].open() as stream:
            while data := stream.read(min(remaining, 1 << 20)):
                count, remaining = count + data.count(b"\n"), remaining - len(data)
        return count

    def _share(self, start: int, end: int) -> Stream:
        """Return a stream of the lines from byte `start` to before byte `end` of the file."""
        share = self.again()
        share._start, share._end = start, end
        return share

    @contextmanager
    def rereadable(self) -> Iterator[None]:
        """In the block the stream can be iterated more than once: pipes and devices are copied to temporary files."""
        inputs = self._inputs
        try:
            self._inputs = list(map(_rereadable, inputs))
            yield
        finally:
            self._inputs = inputs


def _rereadable(source: Input) -> Input:
    """Return a spool with the unpacked content of stdin, a pipe or a device. Any other input is returned as it is, and
    so is a missing one, which the reader reports."""
    if isinstance(source, Spool) or os.path.isfile(source.path) or os.path.isdir(source.path):
        return source
    if source.path != "-" and not os.path.exists(source.path):
        return source
    copy = Spool(source.name, numbered=True)
    with source.open() as stream, copy.filling() as target:
        copyfileobj(stream, target)
    return copy


def _number_lines(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Yield (its number from 1, the line with its end) of a stream. Raises `DataError` for a line over LONGEST_LINE."""
    longest = LONGEST_LINE if packed_size(stream) is None else LONGEST_UNPACKED
    for number, data in enumerate(iter(partial(stream.readline, longest + 1), b""), start=1):
        if len(data) > longest:
            problem = f"a line of more than {longest >> 20} MiB; write one image a line (hoicli convert does)"
            raise DataError(problem, place=Place.in_file(name, number))
        yield number, data


def _position(stream: IO[bytes]) -> int:
    """Return how many bytes of the underlying file have been read, compressed or not."""
    file: Any = getattr(getattr(stream, "raw", None), "fileobj", stream)
    with suppress(OSError, ValueError):
        return int(file.tell())
    return 0
