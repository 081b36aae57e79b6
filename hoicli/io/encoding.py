"""Text that is not plain UTF-8: byte order marks, and UTF-16 as Windows PowerShell's `>` writes it."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from typing import Any

from hoicli.errors import DataError

MARK = codecs.BOM_UTF8
"""UTF-8's byte order mark. At the beginning of a line it is not there: `cat` and `shuf` take it along anywhere."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_WITHOUT_MARK = {
    "UTF-16LE": re.compile(rb"[\t\r\n -~]\0[\t\r\n -~]\0"),
    "UTF-16BE": re.compile(rb"\0[\t\r\n -~]\0[\t\r\n -~]"),
}
"""How two characters of ASCII begin a file. No format that hoicli reads has such bytes there."""
CHUNK = 1 << 16


class Pieces(io.RawIOBase):
    """A file of the pieces that are made of another. fileobj: the other, which tells how much of it is read."""

    def __init__(self, pieces: Iterator[bytes], fileobj: Any) -> None:
        self.fileobj = fileobj
        self._pieces = pieces
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises what making the next piece does."""
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._ready = memoryview(piece)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def cuts_at_line_ends(head: bytes) -> bool:
    """Whether a file that begins so can be cut behind any byte 10 into pieces that are text by themselves."""
    return not head.startswith((*_UTF16, *_UTF32))


def as_utf8(stream: io.BufferedReader, name: str) -> io.BufferedReader:
    """The stream behind its byte order mark, decoded on the fly if that is UTF-16's; any other as it is.

    Raises `DataError` for UTF-32, and for UTF-16 that has no mark.
    """
    head = stream.peek(4)[:4]
    if head.startswith(MARK):
        stream.read(len(MARK))
    elif head in _UTF32:
        raise _other("UTF-32", name)
    elif head.startswith(_UTF16):
        file = getattr(getattr(stream, "raw", None), "fileobj", stream)
        return io.BufferedReader(Pieces(_from_utf16(stream, name), file), 1 << 20)
    for encoding, pattern in _WITHOUT_MARK.items():
        if pattern.match(head):
            raise _other(encoding, name)
    return stream


def _other(encoding: str, name: str) -> DataError:
    return DataError(f"is {encoding}; make it UTF-8 first: iconv -f {encoding} -t UTF-8 FILE > NEW", place=name)


def _from_utf16(stream: io.BufferedReader, name: str) -> Iterator[bytes]:
    """The UTF-8 of a stream of UTF-16. Raises `DataError` for what is none: a file that is cut off within a character,
    or is of two halves."""
    decoder = codecs.getincrementaldecoder("utf-16")()
    data = b"more"
    while data:
        data = stream.read1(CHUNK)
        try:
            yield decoder.decode(data, final=not data).encode()
        except UnicodeDecodeError as error:
            problem = f"begins as UTF-16 and does not go on so ({error.reason}); write it again, as UTF-8"
            raise DataError(problem, place=name) from None
