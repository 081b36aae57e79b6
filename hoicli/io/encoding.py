"""The beginning of a stream: what its first bytes say of its encoding, and how they are looked at and put back."""

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

_OTHERS = {
    "UTF-32": re.compile(b"|".join((codecs.BOM_UTF32_LE, re.escape(codecs.BOM_UTF32_BE)))),
    "UTF-16": re.compile(b"|".join((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))),
    "UTF-16LE": re.compile(rb"[\t\r\n -~]\0[\t\r\n -~]\0"),
    "UTF-16BE": re.compile(rb"\0[\t\r\n -~]\0[\t\r\n -~]"),
}
"""How text in another encoding begins: with its mark, or with two ASCII characters, as no format that hoicli reads
does. (Windows PowerShell's `>` writes UTF-16.)"""
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
    below = getattr(getattr(stream, "raw", None), "fileobj", stream)
    return head, io.BufferedReader(Pieces(pieces, below), 1 << 20)


def as_utf8(stream: io.BufferedReader, name: str) -> io.BufferedReader:
    """The stream after its byte order mark. Raises `DataError` for UTF-16 and UTF-32."""
    head, stream = peeked(stream)
    for encoding, beginning in _OTHERS.items():
        if beginning.match(head):
            advice = f"make it UTF-8 first: iconv -f {encoding} -t UTF-8 FILE > NEW"
            raise DataError(f"is {encoding}; {advice}", place=name)
    if head.startswith(MARK):
        stream.read(len(MARK))
    return stream
