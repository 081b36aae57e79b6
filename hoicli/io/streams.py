"""Bytes in, bytes out: `-`, .gz, .zst, atomic files, progress, closed pipes.

The one module that owns stdout and stderr. Everything else hands it bytes and messages.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from hoicli.errors import DataError, UsageError
from hoicli.io import zstd
from hoicli.io.encoding import MARK, as_utf8
from hoicli.io.messages import display_name
from hoicli.io.outputs import atomic_path, check_file, descriptor, writable
from hoicli.io.progress import Progress

GZIP_MAGIC = b"\x1f\x8b"
WRITE_CHUNK = 1 << 18
"""Bytes gathered before a write: large enough that a system call costs nothing, small enough to stream."""


LONGEST_LINE = 1 << 26
"""Bytes of a line: thousands of times an image's. A bomb of a few kilobytes unpacks to one line without an end."""
DENSE, DENSEST = 1 << 26, 200
"""Compressed data may unpack to this many bytes, and beyond them to so many times its size (dumps: 5 to 20 times)."""


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turn the operating system's and the decompressors' complaints into a `DataError` that names the file."""
    import zlib

    name = display_name(path)
    try:
        yield
    except FileNotFoundError:
        raise DataError("no such file; check the path", place=name) from None
    except IsADirectoryError:
        raise DataError("is a directory; give a file", place=name) from None
    except PermissionError:
        raise DataError("not readable; check its permissions", place=name) from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"damaged gzip data ({error}); fetch or compress it again", place=name) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error}); check the path", place=name) from None


@contextmanager
def open_input(path: str) -> Iterator[IO[bytes]]:
    """A file or `-` (stdin), decompressed, and as UTF-8 where it begins with another encoding's mark.

    Compression is known by its magic bytes, not the name. Raises `DataError` when there is no such file, it is a
    directory, its compressed data is damaged, it needs zstd and none is installed, or it is of another encoding.
    """
    with _opened(path) as stream:
        yield as_utf8(stream, display_name(path))


@contextmanager
def _opened(path: str) -> Iterator[io.BufferedReader]:
    name = display_name(path)
    with readable(path), ExitStack() as closing:
        if path == "-":
            if sys.stdin is None:  # `<&-`
                raise DataError("is closed; pipe something in, or name a file", place=name)
            raw = cast("io.BufferedReader", sys.stdin.buffer)
        elif Path(path).is_dir():
            raise IsADirectoryError
        else:
            raw = cast("io.BufferedReader", closing.enter_context(open(path, "rb", buffering=1 << 20)))
        magic = raw.peek(4)[:4]
        if magic.startswith(GZIP_MAGIC) or zstd.begins_zstd(magic):
            packed = _Packed(raw)
            if zstd.begins_zstd(magic):
                unpacked = cast("IO[bytes]", zstd.Unpacked(cast("IO[bytes]", packed), name))
            else:
                unzipped = closing.enter_context(gzip.GzipFile(fileobj=cast("Any", packed), mode="rb"))
                unpacked = cast("IO[bytes]", unzipped)
            yield closing.enter_context(io.BufferedReader(_Unpacked(unpacked, packed, name), 1 << 20))
        else:
            yield raw


class _Packed:
    """Compressed bytes, and how many of them have been taken."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self._taken = 0

    def read(self, size: int = -1) -> bytes:
        """As a file has it."""
        data = self._raw.read(size)
        self._taken += len(data)
        return data

    def tell(self) -> int:
        """Bytes taken so far; a pipe does not know it."""
        return self._taken


class _Unpacked(io.RawIOBase):
    """What compressed bytes hold, unless it is so much more than they are that only a bomb has it."""

    def __init__(self, unpacked: IO[bytes], packed: _Packed, name: str) -> None:
        self._unpacked = unpacked
        self.fileobj = packed
        self._name = name
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises `DataError` beyond DENSE bytes that are DENSEST times what they come from."""
        count: int = self._unpacked.readinto(buffer)  # type: ignore[attr-defined]
        self._given += count
        if self._given > max(DENSE, DENSEST * self.fileobj.tell()):
            raise DataError(
                f"unpacks to more than {DENSEST} times its size, as no dump does; if it is one, unpack it first",
                place=self._name,
            )
        return count


@dataclass(frozen=True)
class Line:
    """One line of a stream and where it stands, for messages."""

    file: str
    number: int
    data: bytes

    @property
    def place(self) -> str:
        """`file:line`, as compilers and editors write it."""
        return f"{self.file}:{self.number}"


def input_size(paths: Iterable[str]) -> int | None:
    """Bytes to be read, where every path is a plain file (compressed ones count compressed); else None."""
    total = 0
    for path in paths:
        if path == "-" or not Path(path).is_file():
            return None
        total += Path(path).stat().st_size
    return total


def read_lines(paths: Iterable[str], *, label: str) -> Iterator[Line]:
    """Every non-blank line of the named streams, one after another (a union), with progress on a terminal.

    `label` names the work beside the progress bar. Raises `DataError` naming the file when it cannot be read.
    """
    paths = list(paths)
    with Progress(label, total=input_size(paths), unit="B") as progress:
        for path in paths:
            name = display_name(path)
            with open_input(path) as stream:
                position = _position_reader(stream)
                for number, data in numbered_lines(stream, name):
                    data = data.removeprefix(MARK)  # behind the first line, too: cat and shuf move it there
                    if data and not data.isspace():
                        yield Line(name, number, data)
                    if progress.shown:
                        progress.to(position())
            progress.file_done()


def numbered_lines(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line with its end) of a stream. Raises `DataError` for a line beyond all measure."""
    for number, data in enumerate(iter(partial(stream.readline, LONGEST_LINE + 1), b""), start=1):
        if len(data) > LONGEST_LINE:
            problem = f"a line of more than {LONGEST_LINE >> 20} MiB; write one image a line (hoicli convert does)"
            raise DataError(problem, place=f"{name}:{number}")
        yield number, data


def _position_reader(stream: IO[bytes]) -> Callable[[], int]:
    """A function that tells how many bytes of the underlying file have been read, compressed or not."""
    inner: Any = getattr(stream, "raw", stream)
    compressed = getattr(inner, "fileobj", None)
    target = compressed if compressed is not None else stream

    def position() -> int:
        with suppress(OSError, ValueError):
            return int(target.tell())
        return 0

    return position


@contextmanager
def open_output(path: str) -> Iterator[Callable[[bytes], None]]:
    """A `write(bytes)` function for `-` (stdout) or a file that appears whole, under its name, or not at all.

    A file is written beside its destination and renamed at the end; an exception removes it. A name ending in .gz or
    .zst is compressed, the same bytes in giving the same bytes out. Raises `UsageError` for a folder that is not there,
    `DataError` where the bytes do not fit.
    """
    number = 1 if path == "-" else descriptor(path)
    if number not in (None, 1):  # an open stream goes on from where it stands, as it was opened
        with writable(path), open(os.dup(number), "wb", buffering=WRITE_CHUNK) as opened:
            yield lambda data: cast("None", opened.write(data))
        return
    if number == 1:
        chunks: list[bytes] = []
        size = 0
        stdout: BinaryIO = sys.stdout.buffer

        def write(data: bytes) -> None:
            nonlocal size
            chunks.append(data)
            size += len(data)
            if size >= WRITE_CHUNK:
                with writable("<stdout>"):
                    stdout.write(b"".join(chunks))
                chunks.clear()
                size = 0

        try:
            yield write
        finally:  # complete lines computed before an error are not lost
            with writable("<stdout>"):
                stdout.write(b"".join(chunks))
                stdout.flush()
        return
    with (
        atomic_path(path) as temporary,
        open(temporary, "wb", buffering=WRITE_CHUNK) as raw,
        _compressor(path, raw) as stream,
    ):
        yield lambda data: cast("None", stream.write(data))


def check_output(path: str, option: str = "-o") -> None:
    """Raises before the work what `open_output` would raise after it: `UsageError` where there can be no such file or
    no compressor for it, `DataError` where stdout is closed."""
    if path == "-":
        with writable("<stdout>"):
            os.write(sys.stdout.fileno(), b"")
        return
    check_file(path, option)
    with _compressor(path, io.BytesIO()):
        pass


@contextmanager
def _compressor(path: str, raw: BinaryIO) -> Iterator[IO[bytes]]:
    if path.endswith(".gz"):
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6) as stream:
            yield cast("IO[bytes]", stream)
    elif path.endswith(".zst"):
        module = zstd.module()
        if module is None:
            raise UsageError(f"-o {path}: writing zstd needs pip install 'hoicli[zstd]'; or end the name in .gz")
        with module.writer(raw) as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield raw


def hold_standard_streams() -> None:
    """Put /dev/null where a standard stream was closed (`2>&-`): the next file to be opened would get its number, and
    whatever a library writes to "stderr" would go into it. Python has noticed by then, and its own stream is None; in
    the place of stdout comes one that cannot be written to, and says so when it is."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # the lowest number that is free, which is this one
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 (for as long as the process lives)


def close_stdout_quietly() -> None:
    """After a broken pipe, or a full disk: keep the interpreter from complaining again when it flushes at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
