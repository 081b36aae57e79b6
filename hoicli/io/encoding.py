"""Text that is not plain UTF-8: byte order marks, and UTF-16 as Windows PowerShell's `>` writes it."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

from hoicli.errors import DataError

MARK = codecs.BOM_UTF8
"""UTF-8's byte order mark. It is ignored at the beginning of every line, because `cat` and `shuf` can move it there."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_WITHOUT_MARK = {
    "UTF-16LE": re.compile(rb"[\t\r\n -~]\0[\t\r\n -~]\0"),
    "UTF-16BE": re.compile(rb"\0[\t\r\n -~]\0[\t\r\n -~]"),
}
"""Two ASCII characters at the beginning of a file. No format that hoicli reads begins with such bytes."""
CHUNK = 1 << 16


class Pieces(io.RawIOBase):
    """A readable file over an iterator of pieces. fileobj: the file they come from; its position gives the progress."""

    def __init__(self, pieces: Iterator[bytes], fileobj: Any) -> None:
        self.fileobj = fileobj
        self._pieces = pieces
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer`; raises what the iterator of pieces raises."""
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._ready = memoryview(piece)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def peeked(stream: io.BufferedReader) -> tuple[bytes, io.BufferedReader]:
    """(the first four bytes, or all there are; a stream that still begins with them). What is first written into a pipe
    may be a single byte."""
    head = stream.peek(4)[:4]
    if len(head) == 4:
        return head, stream
    head = stream.read(4)
    pieces = chain([head], iter(partial(stream.read1, CHUNK), b""))
    return head, io.BufferedReader(Pieces(pieces, _below(stream)), 1 << 20)


def _below(stream: io.BufferedReader) -> Any:
    """The file that a stream reads from, whose position gives the progress."""
    return getattr(getattr(stream, "raw", None), "fileobj", stream)


def cuts_at_line_ends(head: bytes) -> bool:
    """Whether a file that begins with `head` can be split after any byte 10 into pieces of valid text."""
    return not head.startswith((*_UTF16, *_UTF32))


def as_utf8(stream: io.BufferedReader, name: str) -> io.BufferedReader:
    """The stream after its byte order mark, as UTF-8: UTF-16 is decoded on the fly.

    Raises `DataError` for UTF-32, and for UTF-16 that has no mark.
    """
    head, stream = peeked(stream)
    if head.startswith(MARK):
        stream.read(len(MARK))
    elif head in _UTF32:
        raise _other("UTF-32", name)
    elif head.startswith(_UTF16):
        return io.BufferedReader(Pieces(_from_utf16(stream, name), _below(stream)), 1 << 20)
    for encoding, pattern in _WITHOUT_MARK.items():
        if pattern.match(head):
            raise _other(encoding, name)
    return stream


def _other(encoding: str, name: str) -> DataError:
    return DataError(f"is {encoding}; make it UTF-8 first: iconv -f {encoding} -t UTF-8 FILE > NEW", place=name)


def _from_utf16(stream: io.BufferedReader, name: str) -> Iterator[bytes]:
    """A stream of UTF-16 as UTF-8. Raises `DataError` if it is not all UTF-16: cut off within a character, or two files
    of different encodings joined."""
    decoder = codecs.getincrementaldecoder("utf-16")()
    data = b"more"
    while data:
        data = stream.read1(CHUNK)
        try:
            yield decoder.decode(data, final=not data).encode()
        except UnicodeDecodeError as error:
            problem = f"begins as UTF-16 and does not go on so ({error.reason}); write it again, as UTF-8"
            raise DataError(problem, place=name) from None
