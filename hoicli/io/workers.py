"""Parallel work in forks of this process, which send back pickled results through pipes; and work without garbage
collection."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain, islice, takewhile
from typing import IO, NoReturn, TypeVar

from hoicli.io.messages import are_notes_kept
from hoicli.io.process import hold_signals, let_go

S = TypeVar("S")
T = TypeVar("T")

_BROKEN = EOFError, OSError, pickle.UnpicklingError
"""What reading a result raises if the fork has ended, perhaps amid it."""
_forked = False
"""Whether this process is one of our forks, which make no others: nobody would end those."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Reading creates millions of small objects without cycles; garbage collection would double the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def shared_out(
    work: Callable[[S], T], items: Sequence[S], *, worth: bool = True, tell: Callable[[int], object] = lambda _: None
) -> list[T]:
    """`work` on every item, of which there is one at least: the first in this process, each other one in whichever is
    free, of this process and, where they are `worth` it and can be made, forks of it, one for each processor.

    tell: gets the numbers of the items that this process has done. What a fork fails to do is done here at last.
    """
    count = min(len(os.sched_getaffinity(0)), len(items)) if sys.platform == "linux" and worth else 1
    remaining: Iterable[int] = range(1, len(items))
    pipes: list[IO[bytes]] = []
    done: dict[int, T] = {}
    parent = os.getpid()

    def send(_: int, pipe: IO[bytes]) -> None:
        _send(pipe, {number: work(items[number]) for number in takewhile(lambda _: os.getppid() == parent, remaining)})

    with ExitStack() as stack:
        if count > 1 and _may_fork():
            remaining = stack.enter_context(_queue(remaining))
            pipes = stack.enter_context(_forks(send, range(1, count)))
        for number in chain([0], remaining):
            done[number] = work(items[number])
            tell(number)
        for pipe in pipes:
            with suppress(*_BROKEN):
                done |= pickle.load(pipe)  # noqa: S301 (our own fork wrote it)
    return [done[number] if number in done else work(item) for number, item in enumerate(items)]


@contextmanager
def _queue(numbers: Iterable[int]) -> Iterator[Iterator[int]]:
    """Numbers, 16,384 at most, each of which goes to the process that asks next, of this one and its forks."""
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as stream:
        with open(writing, "wb") as filled:
            filled.write(array("i", numbers).tobytes())
        yield (int.from_bytes(number, sys.byteorder) for number in iter(partial(stream.read, 4), b""))


def fork_map(work: Callable[[S], T], shares: Sequence[S]) -> list[T] | None:
    """`work` on every share, the first in this process and the others in forks of it; None if any of them fails, and
    where this process `_may_fork` not.

    A failure is not reported here: the caller repeats the work in one process, which reports it with its place.
    """
    if not _may_fork():
        return None
    try:
        return [result for _, result in work_in_turns(work, shares, lambda: shares, len(shares))]
    except Exception:  # noqa: BLE001 (the serial run reports it)
        return None


def work_in_turns(
    work: Callable[[S], T], items: Iterable[S], again: Callable[[], Iterable[S]], processes: int
) -> Iterator[tuple[S, T]]:
    """(item, `work` on it) of every item, in their order; of several processes, this one and forks of it, each works on
    every so-manieth. Forks get the items from `again`, since a file that they share with this process has one position.

    What a fork fails to do is done here, and reported here. Results are waited for in their order, so that no more than
    one of each process is in memory.
    """

    def send(turn: int, pipe: IO[bytes]) -> None:
        for item in islice(again(), turn, None, processes):
            _send(pipe, work(item))

    with ExitStack() as stack:
        pipes: dict[int, IO[bytes]] = {}
        if processes > 1 and _may_fork():
            pipes = dict(enumerate(stack.enter_context(_forks(send, range(1, processes))), start=1))
        for number, item in enumerate(items):
            turn = number % processes
            if turn in pipes:
                try:
                    result: T = pickle.load(pipes[turn])  # noqa: S301 (our own fork wrote it)
                except _BROKEN:
                    del pipes[turn]
                else:
                    yield item, result
                    continue
            yield item, work(item)


def _may_fork() -> bool:
    """Whether a fork of this process is allowed, and safe: not on other systems than Linux (Windows has none, and in
    macOS's libraries a fork may crash), not in a fork, nor in a worker of somebody's pool, which may have no children,
    nor in somebody's program with threads."""
    if sys.platform != "linux" or _forked:
        return False
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.current_process().daemon:
        return False
    return not (are_notes_kept() and threading.active_count() > 1)


@contextmanager
def _forks(run: Callable[[S, IO[bytes]], None], tasks: Iterable[S]) -> Iterator[list[IO[bytes]]]:
    """`run` on each task and the end of a pipe, in a fork of this process; the other ends, from which to read. Where a
    fork has ended, or none was allowed, that raises one of `_BROKEN`. After the block no fork is left."""
    processes: list[int] = []
    ends: list[IO[bytes]] = []
    try:
        with suppress(OSError):  # no more processes are allowed
            for task in tasks:
                reading, writing = os.pipe()
                ends.append(open(reading, "rb"))  # noqa: SIM115 (closed below)
                with open(writing, "wb") as pipe, hold_signals():
                    process = os.fork()
                    if not process:
                        _run_in_fork(run, task, pipe, ends)
                    processes.append(process)
        yield ends
    finally:  # after Ctrl-C or SIGTERM no result is needed
        for process in processes:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        for end in ends:
            end.close()


def _run_in_fork(run: Callable[[S, IO[bytes]], None], task: S, pipe: IO[bytes], ends: Sequence[IO[bytes]]) -> NoReturn:
    """The whole life of a fork. How it fails nobody asks: the parent misses its results."""
    global _forked
    _forked = True
    try:
        let_go()  # a fork has nothing to clean up
        for end in ends:  # with them open, it would wait forever to write what a killed parent will never read
            end.close()
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (only the parent writes to stderr)
        run(task, pipe)
    finally:
        os._exit(0)


def _send(pipe: IO[bytes], result: object) -> None:
    """Write a result; its columns go from memory into the pipe, without a copy."""
    pickle.dump(result, pipe, protocol=5)
    pipe.flush()
