"""Bytes in, bytes out: `-`, .gz, .zst, atomic files, progress, closed pipes.

The one module that owns stdout and stderr. Everything else hands it bytes and messages.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO, cast

from hoicli.errors import DataError, UsageError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
WRITE_CHUNK = 1 << 18
"""Bytes gathered before a write: large enough that a system call costs nothing, small enough to stream."""


def note(message: str) -> None:
    """Say something to the person, on stderr: a summary, an assumption, a count. Never part of the data."""
    with suppress(BrokenPipeError):
        print(f"hoicli: {message}", file=sys.stderr, flush=True)


def display_name(path: str) -> str:
    """How messages name a stream."""
    return "<stdin>" if path == "-" else path


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


def _zstd_reader(raw: IO[bytes], name: str) -> IO[bytes]:
    try:
        from compression import zstd  # Python 3.14 and later
    except ImportError:
        try:
            import zstandard
        except ImportError:
            raise DataError(
                "is zstd-compressed; pip install 'hoicli[zstd]', or pipe it in: zstd -dc FILE | hoicli ...", place=name
            ) from None
        return cast("IO[bytes]", io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw)))
    return cast("IO[bytes]", zstd.open(raw))


@contextmanager
def open_input(path: str) -> Iterator[IO[bytes]]:
    """A file or `-` (stdin), decompressed. Compression is known by its magic bytes, not the name.

    Raises `DataError` when there is no such file, it is a directory, its compressed data is damaged, or it needs zstd
    and none is installed.
    """
    with readable(path), ExitStack() as closing:
        if path == "-":
            raw = cast("io.BufferedReader", sys.stdin.buffer)
        elif Path(path).is_dir():
            raise IsADirectoryError
        else:
            raw = cast("io.BufferedReader", closing.enter_context(open(path, "rb", buffering=1 << 20)))
        magic = raw.peek(4)[:4]
        if magic.startswith(GZIP_MAGIC):
            unzipped = closing.enter_context(gzip.GzipFile(fileobj=raw, mode="rb"))
            yield cast("IO[bytes]", closing.enter_context(io.BufferedReader(cast("Any", unzipped), 1 << 20)))
        elif magic == ZSTD_MAGIC:
            yield closing.enter_context(_zstd_reader(raw, display_name(path)))
        else:
            yield raw


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
                for number, data in enumerate(stream, start=1):
                    if not data.isspace():
                        yield Line(name, number, data)
                    if progress.shown:
                        progress.to(position())
            progress.file_done()


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


class Progress:
    """A tqdm bar on stderr when a person is watching (stderr is a terminal); otherwise nothing at all.

    tqdm is imported only in the first case. With `total` None the bar counts without an end.
    """

    def __init__(self, label: str, *, total: int | None = None, unit: str = "it") -> None:
        self.shown = sys.stderr is not None and sys.stderr.isatty()
        self._bar: Any = None
        self._last = 0
        if self.shown:
            from tqdm import tqdm

            tqdm.monitor_interval = 0  # no thread of its own: hoicli forks
            self._bar = tqdm(total=total, unit=unit, unit_scale=unit == "B", desc=label, leave=False, delay=0.5)

    def to(self, position: int) -> None:
        """Move to an absolute position within the current file."""
        if self._bar is not None and position > self._last:
            self._bar.update(position - self._last)
            self._last = position

    def advance(self, steps: int = 1) -> None:
        """Move on by `steps`."""
        if self._bar is not None:
            self._bar.update(steps)

    def file_done(self) -> None:
        """The next `to` counts from the start of another file."""
        self._last = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


@contextmanager
def open_output(path: str) -> Iterator[Callable[[bytes], None]]:
    """A `write(bytes)` function for `-` (stdout) or a file that appears whole, under its name, or not at all.

    A file is written beside its destination and renamed at the end; an exception removes it. A name ending in .gz or
    .zst is compressed, the same bytes in giving the same bytes out. Raises `UsageError` for a folder that is not there.
    """
    if path == "-":
        chunks: list[bytes] = []
        size = 0
        stdout: BinaryIO = sys.stdout.buffer

        def write(data: bytes) -> None:
            nonlocal size
            chunks.append(data)
            size += len(data)
            if size >= WRITE_CHUNK:
                stdout.write(b"".join(chunks))
                chunks.clear()
                size = 0

        try:
            yield write
        finally:  # complete lines computed before an error are not lost
            stdout.write(b"".join(chunks))
            stdout.flush()
        return
    with (
        atomic_path(path) as temporary,
        open(temporary, "wb", buffering=WRITE_CHUNK) as raw,
        _compressor(path, raw) as stream,
    ):
        yield lambda data: cast("None", stream.write(data))


@contextmanager
def _compressor(path: str, raw: BinaryIO) -> Iterator[IO[bytes]]:
    if path.endswith(".gz"):
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6) as stream:
            yield cast("IO[bytes]", stream)
    elif path.endswith(".zst"):
        try:
            import zstandard
        except ImportError:
            raise UsageError(
                f"-o {path}: writing zstd needs pip install 'hoicli[zstd]'; or end the name in .gz"
            ) from None
        with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield raw


@contextmanager
def atomic_path(path: str, option: str = "-o") -> Iterator[str]:
    """A temporary path beside `path` that takes its name when the block ends well and is removed when it does not.

    Raises `UsageError`, in the name of `option`, where there can be no such file.
    """
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{option} {path}: is a directory; give a file name")
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except FileNotFoundError:
        raise UsageError(f"{option} {path}: there is no folder {target.parent}; make it first") from None
    except PermissionError:
        raise UsageError(f"{option} {path}: the folder {target.parent} is not writable") from None
    os.close(handle)
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def close_stdout_quietly() -> None:
    """After a broken pipe: keep the interpreter from complaining again when it flushes stdout at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
