"""Parallel work in forks of this process, which send back pickled results through pipes.

A fork begins with all that this process has read, so nothing is sent to it: ground truth of a whole test set would take
longer to send than to match. Only Linux has forks that are safe; elsewhere, and in a program with threads, this process
does all the work. Work that calls OpenCV, whose threads a fork would break, is for `hoicli.io.spawned_workers`."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import IO, NoReturn, TypeVar

from hoicli.io.messages import are_notes_kept
from hoicli.io.process import hold_signals, release_signals

S = TypeVar("S")
T = TypeVar("T")

_BROKEN = EOFError, OSError, pickle.UnpicklingError
"""The exceptions of reading a result if the fork has ended, perhaps while it wrote."""
_forked = False
"""Whether this process is one of our forks, which make no others: nobody would end those."""


def shared_out(
    work: Callable[[S], T], items: Sequence[S], *, worth: bool = True, tell: Callable[[int], object] = lambda _: None
) -> list[T]:
    """Return a list of the results of `work` on every item, computed by this process and forks of it, one for each
    further processor, in turns.

    worth: whether the items take so long that forks are worth making. tell: a function that is called with the number
    of each item whose result is there, for a progress bar."""
    processes = min(len(os.sched_getaffinity(0)), len(items)) if sys.platform == "linux" and worth else 1
    results = []
    for number, (_, result) in enumerate(work_in_turns(work, items, lambda: items, processes)):
        results.append(result)
        tell(number)
    return results


def fork_map(work: Callable[[S], T], shares: Sequence[S]) -> list[T] | None:
    """Return a list of the results of `work` on every share of some input: the first is done in this process, each
    other one in a fork. Return None if any of them fails, or if this process must not be forked.

    A failure is not reported here: the caller then does the work in one process, which reports it with its place."""
    if not _may_fork():
        return None
    try:
        return [result for _, result in work_in_turns(work, shares, lambda: shares, len(shares))]
    except Exception:  # noqa: BLE001 (the serial run reports it)
        return None


def work_in_turns(
    work: Callable[[S], T], items: Iterable[S], again: Callable[[], Iterable[S]], processes: int
) -> Iterator[tuple[S, T]]:
    """Yield (item, the result of `work` on it) for every item, in their order.

    again: a function that returns the same items for a fork, from a file that it opens anew: of an open file, forks
    share the position. processes: how many take turns, this one and forks of it; with three, each does every third
    item. Results are waited for in their order, so at most one result of each process is in memory."""

    def send_results(turn: int, pipe: IO[bytes]) -> None:
        """In a fork: do every item whose turn it is, and send its result."""
        for item in islice(again(), turn, None, processes):
            pickle.dump(work(item), pipe, protocol=5)  # which writes arrays from their memory, without a copy
            pipe.flush()

    with ExitStack() as stack:
        pipes: dict[int, IO[bytes]] = {}
        if processes > 1 and _may_fork():
            pipes = dict(enumerate(stack.enter_context(_forks(send_results, range(1, processes))), start=1))
        for number, item in enumerate(items):
            turn = number % processes
            if turn in pipes:
                try:
                    result: T = pickle.load(pipes[turn])  # noqa: S301 (our own fork wrote it)
                except _BROKEN:  # the fork has ended: from now on its items are done here
                    del pipes[turn]
                else:
                    yield item, result
                    continue
            yield item, work(item)


def _may_fork() -> bool:
    """Return whether a fork is allowed and safe: on Linux, not in a fork or a worker, and without threads."""
    if sys.platform != "linux" or _forked:
        return False
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.current_process().daemon:
        return False
    return not (are_notes_kept() and threading.active_count() > 1)


@contextmanager
def _forks(run: Callable[[S, IO[bytes]], None], tasks: Iterable[S]) -> Iterator[list[IO[bytes]]]:
    """Run a fork of this process for each task while the block runs; after the block no fork is left. A fork calls
    `run` with its task and a pipe to write to. Gives a list of the pipes' ends to read from, in the order of the tasks.
    If a fork has ended, or the system allowed none, reading from its pipe raises one of `_BROKEN`."""
    processes: list[int] = []
    readers: list[IO[bytes]] = []
    try:
        with suppress(OSError):  # no more processes are allowed
            for task in tasks:
                reading, writing = os.pipe()
                readers.append(open(reading, "rb"))  # noqa: SIM115 (closed below)
                with open(writing, "wb") as pipe, hold_signals():
                    process = os.fork()  # with signals held: no fork is left out of the list of those to kill
                    if not process:
                        _run_in_fork(run, task, pipe, readers)
                    processes.append(process)
        yield readers
    finally:  # after the block, or after Ctrl-C or SIGTERM in it, no result is needed
        for process in processes:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        for reader in readers:
            reader.close()


def _run_in_fork(run: Callable[[S, IO[bytes]], None], task: S, pipe: IO[bytes], ends: Sequence[IO[bytes]]) -> NoReturn:
    """Do a fork's task, then end the process. ends: the parent's ends of pipes, which a fork must close."""
    global _forked
    _forked = True
    try:
        release_signals()  # a fork has nothing to clean up
        for end in ends:  # with them open, it would wait forever to write what a killed parent will never read
            end.close()
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (only the parent writes to stderr)
        run(task, pipe)
    finally:
        os._exit(0)
