"""Files opened to be read: `-` (stdin), gzip and zstd unpacked, UTF-16 decoded, and what fails named."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, cast

from hoicli.errors import DataError
from hoicli.io import zstd
from hoicli.io.encoding import Pieces, as_utf8
from hoicli.io.messages import display_name

GZIP_MAGIC = b"\x1f\x8b"
DENSE, DENSEST = 1 << 26, 200
"""Compressed data may unpack to this many bytes, and beyond them to so many times its size (dumps: 5 to 20 times)."""


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn the operating system's and the decompressors' complaints into a `DataError` that names the file."""
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


def is_packed(head: bytes) -> bool:
    """Whether data that begins with these four bytes is compressed."""
    return head.startswith(GZIP_MAGIC) or zstd.begins_zstd(head)


@contextmanager
def open_input(path: str, name: str = "") -> Iterator[IO[bytes]]:
    """A file or `-` (stdin), decompressed, and as UTF-8 where it begins with another encoding's mark.

    name: what messages call it, if not by its path. Compression is known by its magic bytes, not the name. Raises
    `DataError` when there is no such file, it is a directory, its compressed data is damaged, it needs zstd and none is
    installed, or it is of another encoding.
    """
    name = name or display_name(path)
    with readable(name), ExitStack() as closing:
        if path == "-":
            if sys.stdin is None:  # `<&-`
                raise DataError("is closed; pipe something in, or name a file", place=name)
            raw = cast("io.BufferedReader", sys.stdin.buffer)
        elif Path(path).is_dir():
            raise IsADirectoryError
        else:
            raw = cast("io.BufferedReader", closing.enter_context(open(path, "rb", buffering=1 << 20)))
        magic = raw.peek(4)[:4]
        if is_packed(magic):
            packed = _Packed(raw)
            raw = closing.enter_context(io.BufferedReader(Pieces(_unpacked(packed, magic, name), packed), 1 << 20))
        yield as_utf8(raw, name)


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


def _unpacked(packed: _Packed, magic: bytes, name: str) -> Iterator[bytes]:
    """What compressed bytes hold, piece by piece. Raises `DataError` when it is more than DENSE bytes and DENSEST times
    what they are, as only a bomb has it."""
    file = cast("IO[bytes]", packed)
    unzipped = partial(gzip.GzipFile(fileobj=file, mode="rb").read1, 1 << 16)
    given = 0
    for piece in zstd.unpacked(file, name) if zstd.begins_zstd(magic) else iter(unzipped, b""):
        given += len(piece)
        if given > max(DENSE, DENSEST * packed.tell()):
            problem = f"unpacks to more than {DENSEST} times its size, as no dump does; if it is one, unpack it first"
            raise DataError(problem, place=name)
        yield piece
