"""The lines of a stream, to be read again by number, some at a time and in any order."""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterable, Iterator
from itertools import groupby

from hoicli.errors import DataError
from hoicli.io.messages import Progress
from hoicli.io.opened_files import MARK
from hoicli.io.streams import BUFFER, Input, Line, Stream, number_lines


class StoredLines:
    """All lines of a stream. Of files, only their positions are kept in memory (20 bytes a line); pipes and compressed
    files are copied to temporary files. Iterate once over all lines, then `read` some by their numbers from 0."""

    def __init__(self, stream: Stream) -> None:
        """Prepare to read a stream; nothing is read yet, but pipes and compressed files are copied."""
        self._label, self._held = stream.label, None if stream.lines_held is None else list(stream.lines_held)
        self._inputs: list[Input] = [] if self._held is not None else stream.seekable_inputs()
        self._file, self._number = array("I"), array("I")  # of each line: its input, and its number there
        self._start, self._length = array("q"), array("I")  # of each line: its first byte, and how many there are

    def __iter__(self) -> Iterator[Line]:
        """Yield every line. Raises `DataError` for a file that cannot be read."""
        if self._held is not None:
            yield from self._held
            return
        with Progress(self._label, total=sum(source.size or 0 for source in self._inputs), unit="B") as progress:
            for index in range(len(self._inputs)):
                yield from self._iterate_file(index, progress)

    def _iterate_file(self, index: int, progress: Progress) -> Iterator[Line]:
        """Yield the lines of an input, and remember where they are. Raises `DataError` if it cannot be read."""
        source = self._inputs[index]
        with source.open():
            pass  # raises for what is no text, or cannot be read
        start = 0
        with io.BufferedReader(source.open_unbuffered(), BUFFER) as stream:
            for number, data in number_lines(stream, source.name):
                text = data.removeprefix(MARK)
                if text and not text.isspace():
                    self._add(index, number if source.numbered else 0, start, len(data))
                    yield Line(source.name, self._number[-1], text)
                start += len(data)
                progress.advance(len(data))

    def _add(self, file: int, number: int, start: int, length: int) -> None:
        """Remember where a line is. file, start: the index of its input, and its first byte there."""
        self._file.append(file)
        self._number.append(number)
        self._start.append(start)
        self._length.append(length)

    def read(self, numbers: Iterable[int]) -> Iterator[Line]:
        """Yield the lines with these numbers, after an iteration over all. Raises `DataError` for a changed file."""
        if self._held is not None:
            yield from map(self._held.__getitem__, numbers)
            return
        for file, of_file in groupby(numbers, key=self._file.__getitem__):
            source = self._inputs[file]
            with source.open_unbuffered() as opened:
                yield from (self._read_line(opened, source.name, number) for number in of_file)

    def _read_line(self, opened: io.RawIOBase, name: str, number: int) -> Line:
        """Return the line with a number. opened, name: its input."""
        opened.seek(self._start[number])
        data = opened.read(self._length[number]) or b""
        if len(data) < self._length[number]:
            problem = "changed while it was read: it has become shorter; run again"
            raise DataError(problem, place=name, code="unreadable")
        return Line(name, self._number[number], data.removeprefix(MARK))
