"""How work is run: a file's lines, or anything else that comes in pieces, shared out among processes, and no time spent
on looking for garbage.

Of streams only plain files on Linux are shared out, by byte ranges that end at line ends; pipes, compressed files and
other systems are read by one process. Workers are forks that send one pickled result back through a pipe.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from hoicli.errors import DataError
from hoicli.io.encoding import MARK, cuts_at_line_ends
from hoicli.io.progress import Progress
from hoicli.io.signals import held, let_go
from hoicli.io.streams import GZIP_MAGIC, Line, numbered_lines
from hoicli.io.zstd import begins_zstd

S = TypeVar("S")
T = TypeVar("T")

SHARE = 8 << 20
"""Bytes that are worth a process of their own: parsing them takes ten times as long as starting it."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Reading makes millions of small objects and no cycles; looking for cycles among them doubles the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True)
class ByteRange:
    """A run of whole lines of a file. Line numbers count from the range's start, so a message made from them is
    only good for saying that something is wrong; whoever needs the place reads the file again in one piece."""

    path: str
    start: int
    end: int

    def lines(self, label: str) -> Iterator[Line]:
        """The non-blank lines of the range, with progress on a terminal."""
        with (
            open(self.path, "rb", buffering=1 << 20) as stream,
            Progress(label, total=self.end - self.start, unit="B") as bar,
        ):
            stream.seek(self.start)
            left = self.end - self.start
            for number, data in numbered_lines(stream, self.path):
                left -= len(data)
                data = data.removeprefix(MARK)
                if data and not data.isspace():
                    yield Line(self.path, number, data)
                bar.to(self.end - self.start - left)
                if left <= 0:
                    return
        raise DataError("changed while it was read: it has become shorter; run again", place=self.path)


def byte_ranges(paths: Sequence[str]) -> list[ByteRange]:
    """The file cut into about equal ranges, one a processor; none where that is not possible or not worth it."""
    if sys.platform != "linux" or len(paths) != 1 or not Path(paths[0]).is_file():
        return []
    path = paths[0]
    size = Path(path).stat().st_size
    count = min(len(os.sched_getaffinity(0)), size // SHARE)
    if count < 2:
        return []
    with open(path, "rb") as stream:
        magic = stream.read(4)
        if magic.startswith(GZIP_MAGIC) or begins_zstd(magic):
            return []
        stream.seek(0)
        if not cuts_at_line_ends(stream.read(4)):
            return []
        cuts = [0]
        for part in range(1, count):
            stream.seek(size * part // count)
            stream.readline()
            cuts.append(stream.tell())
    return [ByteRange(path, start, end) for start, end in pairwise([*cuts, size]) if start < end]


def shared_out(work: Callable[[Sequence[S]], T], items: Sequence[S]) -> list[T]:
    """`work` on runs of the items, in order, one a processor where processes can be forked."""
    count = min(len(os.sched_getaffinity(0)), len(items)) if sys.platform == "linux" else 1
    runs = [items[len(items) * part // count : len(items) * (part + 1) // count] for part in range(count)]
    done = fork_map(work, runs) if count > 1 else None
    return done if done is not None else [work(items)]


def fork_map(work: Callable[[S], T], ranges: Sequence[S]) -> list[T] | None:
    """`work` on every range, the first in this process and the others in forks of it; None if any of them fails.

    A failure is not told from here: the caller does the work again in one piece, and that tells it with its place.
    """
    children: list[tuple[int, int]] = []
    results: list[T] | None = None
    try:
        for share in ranges[1:]:
            with held():
                children.append(_start(work, share))
        try:
            results = [work(ranges[0])]
        except Exception:  # noqa: BLE001 (told by the second, serial run; the children must be waited for)
            results = None
        while children:
            process, pipe = children[0]
            with os.fdopen(pipe, "rb", closefd=False) as stream:
                data = stream.read()
            del children[0]  # it has said what it has to say, and ends by itself
            os.close(pipe)
            _, status = os.waitpid(process, 0)
            if status != 0 or not data:
                results = None
            elif results is not None:
                results.append(pickle.loads(data))  # noqa: S301 (our own child wrote it)
        return results
    finally:  # Ctrl-C, SIGTERM: nobody is left to work for
        for process, pipe in children:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(pipe)


def _start(work: Callable[[S], T], share: S) -> tuple[int, int]:
    """(process id, pipe to read) of a fork that does one share."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    let_go()  # it has nothing to tidy up
    status = 1
    try:  # the child: nothing of the parent's may run here, neither its exit handlers nor its output buffers
        os.close(reading)
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (one voice on stderr, the parent's)
        data = pickle.dumps(work(share), protocol=pickle.HIGHEST_PROTOCOL)
        with os.fdopen(writing, "wb") as stream:
            stream.write(data)
        status = 0
    finally:
        os._exit(status)
