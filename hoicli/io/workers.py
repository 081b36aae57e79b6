"""How work is run: shared out among forks of this process, each of which sends one pickled result back through a pipe,
and without time spent on looking for garbage."""

from __future__ import annotations

import gc
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from hoicli.io.signals import held, let_go

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

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


def fork_map(work: Callable[[S], T], shares: Sequence[S]) -> list[T] | None:
    """`work` on every share, the first in this process and the others in forks of it; None if any of them fails.

    A failure is not told from here: the caller does the work again in one piece, and that tells it with its place.
    """
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
    except Exception:  # noqa: BLE001 (told by the second, serial run)
        return None
    finally:  # Ctrl-C, SIGTERM: nobody is left to work for
        for process, reading in children:
            process.kill()
            process.join()
            reading.close()


def _send(work: Callable[[S], T], share: S, pipe: Connection) -> None:
    """What a fork does."""
    let_go()  # it has nothing to tidy up
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (one voice on stderr, the parent's)
    pipe.send_bytes(pickle.dumps(work(share), protocol=pickle.HIGHEST_PROTOCOL))
