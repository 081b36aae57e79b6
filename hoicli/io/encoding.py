"""Text that is not plain UTF-8: byte order marks, and UTF-16 as Windows PowerShell's `>` writes it."""

from __future__ import annotations

import codecs
import io
import re
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
        return io.BufferedReader(_FromUtf16(stream, name), 1 << 20)
    for encoding, pattern in _WITHOUT_MARK.items():
        if pattern.match(head):
            raise _other(encoding, name)
    return stream


def _other(encoding: str, name: str) -> DataError:
    return DataError(f"is {encoding}; make it UTF-8 first: iconv -f {encoding} -t UTF-8 FILE > NEW", place=name)


class _FromUtf16(io.RawIOBase):
    """The UTF-8 of a stream of UTF-16, a piece at a time."""

    def __init__(self, stream: io.BufferedReader, name: str) -> None:
        self._stream = stream
        self._name = name
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._ready = memoryview(b"")
        self.fileobj = getattr(getattr(stream, "raw", None), "fileobj", stream)  # tells how much of the file is read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises `DataError` for what is no UTF-16: a file that is cut off within a character, or is of two halves."""
        while not self._ready:
            data = self._stream.read1(CHUNK)
            try:
                self._ready = memoryview(self._decoder.decode(data, final=not data).encode())
            except UnicodeDecodeError as error:
                problem = f"begins as UTF-16 and does not go on so ({error.reason}); write it again, as UTF-8"
                raise DataError(problem, place=self._name) from None
            if not data:
                break
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
