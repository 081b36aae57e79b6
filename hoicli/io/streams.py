"""Streams of lines: files read one after another and unpacked, or split into shares for several processes; and a
temporary file of lines (`Spool`) for what can be read or made only once."""

from __future__ import annotations

import io
import json
import math
import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, pairwise
from shutil import copyfileobj
from typing import IO, Any, cast

from hoicli.errors import DataError, Place
from hoicli.io.messages import Progress, display_name
from hoicli.io.opened_files import GZIP_MAGIC, MARK, RawReader, open_input, packed_size, wide_encoding
from hoicli.io.outputs import temporary_folder, writable

LONGEST_LINE, LONGEST_UNPACKED = 1 << 26, 1 << 24
"""The most bytes of a line, in a plain file and in a compressed one: hundreds of times those of an image's record. A
parsed line takes ten times as much memory, and a decompression bomb may be one endless line."""

BYTES_FOR_TWO, BYTES_PER_PROCESS = 2 << 20, 8 << 20
"""From how many bytes on two processes read a stream, and how many bytes justify each process beyond two. Parsing half
of BYTES_FOR_TWO takes five times as long as starting a process."""
BUFFER = 1 << 20
"""Bytes of a file that are read or written at once."""


@dataclass(slots=True)
class Line:
    """A line of a stream. data: its bytes; file, number: where it is, for messages. The number counts from 1; it is 0
    for the record of an image in a file without lines, such as a MATLAB file."""

    file: str
    number: int
    data: bytes

    @property
    def place(self) -> str:
        """Return where the line is, as messages write it: `file:line`; in a file without lines, `file: image ID`."""
        return Place.in_file(self.file, self.number or f"image {json.loads(self.data)['image_id']}")

    @property
    def where(self) -> str:
        """Return where the line is, as a message about another line mentions it: `at file:line`, or `in file`."""
        return f"at {self.file}:{self.number}" if self.number else f"in {self.file}"


@dataclass(slots=True)
class Item(Line):
    """A record in memory, given in a call from Python, as a line. file, index: its place, `argument[index]`."""

    index: str

    @property
    def place(self) -> str:
        """Return `argument[index]`."""
        return Place(f"{self.file}[{self.index}]")

    @property
    def where(self) -> str:
        """Return where the record is, as a message about another record mentions it: `at argument[index]`."""
        return f"at {self.place}"


@dataclass(frozen=True)
class File:
    """The lines of a file, or of stdin (`-`), unpacked. numbered: whether messages can give line numbers."""

    path: str
    numbered: bool = True

    @property
    def name(self) -> str:
        """Return the path as messages show it."""
        return display_name(self.path)

    @property
    def size(self) -> int | None:
        """Return how many bytes the file has on disk, compressed or not; None for stdin, a pipe or a device."""
        return os.path.getsize(self.path) if self.path != "-" and os.path.isfile(self.path) else None

    @property
    def divisible(self) -> bool:
        """Return whether several processes can each read a part of it: a file, not compressed, in UTF-8."""
        if not os.path.isfile(self.path):
            return False
        with open(self.path, "rb") as stream:
            head = stream.read(4)
        return not head.startswith(GZIP_MAGIC) and not wide_encoding(head)

    def open(self) -> AbstractContextManager[IO[bytes]]:
        """Open the file at its beginning, for reading bytes. Raises `DataError` as `open_input` does."""
        return open_input(self.path, self.name)

    def open_unbuffered(self) -> io.RawIOBase:
        """Open a file on disk, for reading at any position."""
        return open(self.path, "rb", buffering=0)


class Spool:
    """A temporary file of lines. It has no name in the file system, so nothing is left behind however the process ends.

    name: what messages call the lines. numbered: whether they have the line numbers of a file of that name."""

    divisible = True
    """Several processes can each read a part."""

    def __init__(self, name: str, *, numbered: bool) -> None:
        """Make an empty one. Raises `DataError` if there is no folder for temporary files."""
        self.name = name
        self.numbered = numbered
        with writable(temporary_folder()):
            file = tempfile.TemporaryFile(prefix="hoicli-", buffering=BUFFER)  # noqa: SIM115 (closed with the spool)
        self._file = cast("IO[bytes]", file)
        weakref.finalize(self, _close, file)  # not __del__: in a garbage cycle the file might go first

    @contextmanager
    def filling(self) -> Iterator[IO[bytes]]:
        """Give the file, for lines to be written to it in the block. Raises `DataError` if the disk is full."""
        with writable(temporary_folder()):
            yield self._file
            self._file.flush()

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Give the file, opened at its beginning for reading. Each reader has its own position, in forks, too."""
        yield cast("IO[bytes]", io.BufferedReader(_Reader(self._file), BUFFER))

    def open_unbuffered(self) -> io.RawIOBase:
        """Open the file for reading at any position, in forks, too."""
        return _Reader(self._file)

    @property
    def size(self) -> int:
        """Return how many bytes have been written to it."""
        return os.fstat(self._file.fileno()).st_size


def _close(file: IO[bytes]) -> None:
    """Close a file. If the disk is full, so that its last bytes cannot be written, ignore that."""
    with suppress(OSError):
        file.close()


class _Reader(RawReader):
    """A reader of an open file with a position of its own. The file's own position is shared by all forks."""

    def __init__(self, file: IO[bytes]) -> None:
        """Begin at the file's first byte."""
        self._file = file
        self._position = 0

    def seekable(self) -> bool:
        """Return True: `io.BufferedReader` asks."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to the byte at `offset`, counted from the beginning, or from here for SEEK_CUR; return its position."""
        self._position = offset + (self._position if whence == os.SEEK_CUR else 0)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into `buffer` and return how many, 0 at the end."""
        if hasattr(os, "preadv"):  # reads at a position, whatever the file's own
            count = os.preadv(self._file.fileno(), [buffer], self._position)
        else:  # Windows, where nothing is forked
            self._file.seek(self._position)
            data = self._file.read(len(buffer))
            count = len(data)
            buffer[:count] = data
        self._position += count
        return count


Input = File | Spool
"""A file with lines, which a stream reads."""
Opener = Callable[[Sequence[str]], Sequence[Input]]
"""A function that returns the files to read for the paths of a stream. For a path in another format than JSONL, that is
a `Spool` of the converted records."""


def files(paths: Sequence[str]) -> list[Input]:
    """Return a `File` for each path: the `Opener` of streams whose files have lines already."""
    return [File(path) for path in paths]


class Stream:
    """An iterable of the non-blank lines of files (`-`: stdin), one file after another, with a progress bar on a
    terminal. Each iteration reads from the beginning. Stdin and pipes allow only one, unless in a block of
    `rereadable`. Iterating raises `DataError` for a file that cannot be read."""

    def __init__(
        self, paths: Sequence[str], label: str, opener: Opener = files, lines_held: Iterable[Line] | None = None
    ) -> None:
        """Describe the stream; nothing is read yet. label: what the lines are (predictions). opener: returns the files
        to read, when lines are first needed. lines_held: the lines, if they are in memory already."""
        self.label = label
        self.paths = list(paths)
        self._opener: Opener = opener if lines_held is None else lambda _: []
        self.lines_held = lines_held
        self._start, self._end = 0, math.inf  # bytes of the file; a share has others (`shares`)
        self._begun: Iterator[Line] | None = None  # all lines, after `first` has read one of them

    @cached_property
    def _inputs(self) -> list[Input]:
        """Return the files that the stream reads, one after another."""
        return list(self._opener(self.paths))

    @property
    def name(self) -> str:
        """Return what messages call the stream: its paths."""
        return ", ".join(map(display_name, self.paths))

    @cached_property
    def first(self) -> Line:
        """Return the first line, which the next iteration yields, too. Raises `DataError` for an empty stream."""
        lines = self._read()
        first = next(lines, None)
        if first is None:
            raise DataError(f"no {self.label} in it", place=self.name, code="empty")
        self._begun = chain([first], lines)
        return first

    def refuse_empty(self) -> Stream:
        """Return the stream itself. Raises `DataError` if it is empty."""
        self.first  # noqa: B018 (raises)
        return self

    def __iter__(self) -> Iterator[Line]:
        """Return an iterator of all lines. If `first` has read one, it goes on with that reading."""
        lines, self._begun = self._begun or self._read(), None
        return lines

    def _read(self) -> Iterator[Line]:
        """Yield the non-blank lines from the beginning; of a share, those between its first byte and its last."""
        if self.lines_held is not None:
            yield from self.lines_held
            return
        is_share = self._end < math.inf
        inputs = self._inputs
        total = int(self._end) - self._start if is_share else self.size
        with Progress(self.label, total=total, unit="B") as progress:
            bytes_before = -self._start  # of earlier files; a share's progress begins at 0
            for source in inputs:
                name, numbered = source.name, source.numbered
                with source.open() as stream:
                    position = stream.seek(self._start) if is_share else 0
                    for number, data in number_lines(stream, name):
                        position += len(data)
                        data = data.removeprefix(MARK)  # on any line: cat and shuf move the byte order mark
                        if data and not data.isspace():
                            yield Line(name, number if numbered else 0, data)
                        if progress.shown:
                            progress.advance_to(bytes_before + _position(stream))
                        if position >= self._end:
                            return
                    bytes_before += _position(stream)
                if is_share:  # the file ended before the share did
                    problem = "changed while it was read: it has become shorter; run again"
                    raise DataError(problem, place=name, code="unreadable")

    @property
    def size(self) -> int | None:
        """Return how many bytes the files have together; None if that is unknown of one (stdin, a pipe)."""
        sizes = [source.size for source in self._inputs]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def processes(self) -> int:
        """Return how many processes should read the stream at once: one for each processor, but fewer for little data.
        It is 1 for pipes and compressed files, and on systems other than Linux."""
        size = self.size
        if sys.platform != "linux" or size is None or size < min(BYTES_FOR_TWO, 2 * BYTES_PER_PROCESS):
            return 1
        if not all(source.divisible for source in self._inputs):
            return 1
        return min(len(os.sched_getaffinity(0)), max(2, size // BYTES_PER_PROCESS))

    def shares(self) -> list[Stream]:
        """Return streams of about equally large parts of one large file, for `processes` to read. Return [] if one
        process should read it, and for a stream of several files.

        Line numbers in a share count from its start: add `lines_before`, or read the whole file again."""
        count = self.processes()
        if count < 2 or len(self._inputs) != 1:
            return []
        source = self._inputs[0]
        size = source.size or 0
        with source.open() as stream:
            cuts = [0]
            for number in range(1, count):
                stream.seek(size * number // count)
                stream.readline()  # a share begins with the next whole line
                cuts.append(stream.tell())
        return [self._share(start, end) for start, end in pairwise([*cuts, size]) if start < end]

    def again(self) -> Stream:
        """Return a stream of the same lines that opens its files anew, for another process."""
        inputs = self._inputs
        return Stream(self.paths, self.label, lambda _: inputs)

    def lines_before(self) -> int:
        """Return how many lines of its file come before this share; 0 for a stream that is no share."""
        if self._start == 0:  # do not read: it may be a pipe
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

    def seekable_inputs(self) -> list[Input]:
        """Return the files that the stream reads, with pipes and compressed files as temporary copies."""
        return [source if source.divisible else _copy_unpacked(source) for source in self._inputs]

    @contextmanager
    def rereadable(self) -> Iterator[None]:
        """Allow the block to iterate over the stream more than once: copy pipes and devices to temporary files."""
        inputs = self._inputs
        try:
            self._inputs = list(map(_rereadable, inputs))
            yield
        finally:
            self._inputs = inputs


def _rereadable(source: Input) -> Input:
    """Return a temporary copy of stdin, a pipe or a device; any other input, also a missing file, as it is."""
    if isinstance(source, Spool) or os.path.isfile(source.path) or os.path.isdir(source.path):
        return source
    if source.path != "-" and not os.path.exists(source.path):
        return source
    return _copy_unpacked(source)


def _copy_unpacked(source: Input) -> Spool:
    """Return a temporary file with the unpacked content of an input. Raises `DataError` if it cannot be read."""
    copy = Spool(source.name, numbered=source.numbered)
    with source.open() as stream, copy.filling() as target:
        copyfileobj(stream, target)
    return copy


def number_lines(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Yield (number from 1, line with its end) of an opened file. Raises `DataError` for too long a line."""
    longest = LONGEST_LINE if packed_size(stream) is None else LONGEST_UNPACKED
    for number, data in enumerate(iter(partial(stream.readline, longest + 1), b""), start=1):
        if len(data) > longest:
            problem = f"a line of more than {longest >> 20} MiB; write one image a line (hoicli convert does)"
            raise DataError(problem, place=Place.in_file(name, number))
        yield number, data


def _position(stream: IO[bytes]) -> int:
    """Return how many bytes on disk have been read through `stream`; 0 if the system does not tell (a pipe)."""
    # `opened_files.ChunkReader`, which unpacks, has the file behind it as `fileobj`
    file: Any = getattr(getattr(stream, "raw", None), "fileobj", stream)
    with suppress(OSError, ValueError):
        return int(file.tell())
    return 0
