"""Work on many images in several new processes, on any system; results come in the order of the tasks.

A worker begins with nothing but the function to call. So it may use OpenCV and its threads, which a fork must not. (For
work on what this process has read already, forks are better: `hoicli.io.forks`.) Each worker gets its tasks through a
pipe of its own, one at a time. When this process dies, even by kill -9, the pipe closes and the worker ends; when a
worker dies, an error says so. `concurrent.futures` does neither without threads in the workers, needs shared
semaphores, and starts the next task after a SIGTERM."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from hoicli.errors import DataError, arg
from hoicli.io.process import EndedError, catch_signals

Task = TypeVar("Task")
Result = TypeVar("Result")

AHEAD = 4
"""Tasks per worker that may finish before their turn: a slow image does not block the others, and memory is limited."""


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ordered_map(work: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """Yield the result of `work` on every task, in their order. work: a function that can be pickled. jobs: how many
    worker processes may be started; with 1, this process does all the work.

    Raises `DataError` if a worker dies, and `RuntimeError` for an exception in one."""
    if jobs <= 1 or len(tasks) <= 1:
        yield from map(work, tasks)
        return
    # spawn, not fork: the parent may have threads; loading NumPy and OpenCV again takes a fraction of a second
    context = multiprocessing.get_context("spawn")
    workers: dict[Connection, Any] = {}
    finished = False
    try:
        for _ in range(min(jobs, len(tasks))):
            our_end, worker_end = context.Pipe()
            process = context.Process(target=_serve, args=(work, worker_end), daemon=True)
            process.start()
            worker_end.close()
            workers[our_end] = process
        yield from _distribute(tasks, list(workers))
        finished = True
    finally:
        for connection, process in workers.items():
            if not finished:  # a worker may be busy with one image for minutes
                process.terminate()
            # only now: a worker whose pipe closes is ending, and a signal would make it print a traceback
            connection.close()
        for process in workers.values():
            process.join(timeout=5)
            if process.is_alive():
                process.kill()


def _distribute(tasks: Sequence[Any], idle: list[Connection]) -> Iterator[Any]:
    """Send the tasks to workers, one at a time to each; yield the results in order. idle: pipes to all of them."""
    limit = AHEAD * len(idle)
    busy: dict[Connection, int] = {}  # the number of the task that each worker does
    results: dict[int, Any] = {}  # by number of the task: those that came before their turn
    sent = done = 0  # how many tasks were sent, and how many results yielded
    while done < len(tasks):
        while idle and sent < min(len(tasks), done + limit):
            connection = idle.pop()
            connection.send(tasks[sent])
            busy[connection] = sent
            sent += 1
        for ready in wait(list(busy)):
            assert isinstance(ready, Connection)
            try:
                result = ready.recv()
            except (EOFError, ConnectionResetError):
                problem = f"a worker process was killed (out of memory?); try fewer {arg('jobs')}"
                raise DataError(problem, code="out-of-memory") from None
            if isinstance(result, RuntimeError):
                raise result
            results[busy.pop(ready)] = result
            idle.append(ready)
        while done in results:
            yield results.pop(done)
            done += 1


def _serve(work: Callable[[Any], Any], connection: Connection) -> None:
    """Run a worker process: read tasks from the pipe and write their results into it, until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    try:
        catch_signals()
        while True:
            task = connection.recv()
            try:
                result = work(task)
            except Exception as error:  # noqa: BLE001 (sent to the parent, which raises it)
                result = RuntimeError(f"{type(error).__name__}: {error}")
            connection.send(result)
    except (EOFError, BrokenPipeError, ConnectionResetError, EndedError):
        return
