"""Parallel work in forks of this process, each of which sends back one pickled result through a pipe; and work without
garbage collection."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from hoicli.io.messages import quiet
from hoicli.io.signals import held, let_go

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

S = TypeVar("S")
T = TypeVar("T")


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


def shared_out(work: Callable[[Sequence[S]], T], items: Sequence[S]) -> list[T]:
    """`work` on consecutive runs of the items, one run for each processor if processes can be forked."""
    count = min(len(os.sched_getaffinity(0)), len(items)) if sys.platform == "linux" else 1
    runs = [items[len(items) * part // count : len(items) * (part + 1) // count] for part in range(count)]
    done = fork_map(work, runs) if count > 1 else None
    return done if done is not None else [work(items)]


def fork_map(work: Callable[[S], T], shares: Sequence[S]) -> list[T] | None:
    """`work` on every share, the first in this process and the others in forks of it; None if any of them fails, and
    in a program of somebody else's (`quiet`) that has threads, where a fork may hang.

    A failure is not reported here: the caller repeats the work in one process, which reports it with its place.
    """
    if quiet() and threading.active_count() > 1:
        return None
    import multiprocessing

    context = multiprocessing.get_context("fork")
    children = []
    try:
        for share in shares[1:]:
            reading, writing = context.Pipe(duplex=False)
            process = context.Process(target=_send, args=(work, share, writing))
            with held():
                process.start()
                children.append((process, reading))
            writing.close()
        results = [work(shares[0])]
        for _, reading in children:
            results.append(pickle.loads(reading.recv_bytes()))  # noqa: S301 (our own child wrote it)
        return results
    except Exception:  # noqa: BLE001 (the serial run reports it)
        return None
    finally:  # after Ctrl-C or SIGTERM no result is needed
        for process, reading in children:
            process.kill()
            process.join()
            reading.close()


def _send(work: Callable[[S], T], share: S, pipe: Connection) -> None:
    """Run `work` in a fork and send the result."""
    let_go()  # a fork has nothing to clean up
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (only the parent writes to stderr)
    pipe.send_bytes(pickle.dumps(work(share), protocol=pickle.HIGHEST_PROTOCOL))
