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
from typing import TypeVar

from hoicli.io.signals import held, let_go

S = TypeVar("S")
T = TypeVar("T")


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
