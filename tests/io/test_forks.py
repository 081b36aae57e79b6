"""Forks are made where they may be made; elsewhere the work is done in one process."""

from __future__ import annotations

import errno
import multiprocessing
import os
import subprocess
import sys
from unittest.mock import Mock

import pytest

from hoicli.io.forks import fork_map, shared_out, work_in_turns
from tests.support.project import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")

IN_TURNS = """
from hoicli.io.forks import work_in_turns
for _ in work_in_turns(lambda _: bytes(1_000_000), range(9), lambda: range(9), 3):
    print(flush=True)
    input()
"""
SHARED_OUT = """
import os, time
from hoicli.io.forks import shared_out
os.sched_getaffinity = lambda _: range(3)
def work(item):
    os.write(1, b"\\n")
    time.sleep(0.1)
shared_out(work, range(10_000))
"""


def inside() -> tuple[list[int] | None, list[tuple[int, int]]]:
    """What a worker of somebody's pool gets."""
    items = [1, 2, 3]
    return fork_map(abs, items), list(work_in_turns(abs, items, lambda: items, 2))


def test_a_worker_of_a_pool_has_no_children() -> None:
    """multiprocessing refuses them, as in a DataLoader's worker."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(inside) == (None, [(1, 1), (2, 2), (3, 3)])
    assert inside() == ([1, 2, 3], [(1, 1), (2, 2), (3, 3)])


@pytest.mark.parametrize("code", [IN_TURNS, SHARED_OUT], ids=["in turns", "shared out"])
def test_a_killed_process_leaves_no_forks(code: str) -> None:
    """They hold its stdout, which ends only with the last of them."""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.communicate(timeout=60)


def test_items_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(3))
    told, forks = list[int](), Mock(wraps=os.fork)
    monkeypatch.setattr(os, "fork", forks)
    found = shared_out(lambda _: os.getpid(), range(40), tell=told.append)
    assert found[0] == os.getpid()
    assert len(set(found)) == 3
    assert forks.call_count == 2
    assert told == list(range(40))


def test_turns_go_round() -> None:
    items = range(6)
    processes = [process for _, process in work_in_turns(lambda _: os.getpid(), items, lambda: items, 3)]
    assert processes[0] == os.getpid()
    assert len(set(processes)) == 3
    assert processes[3:] == processes[:3]


def test_what_forks_do_not_do_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(3))
    here, items = os.getpid(), [1, 2, 3]

    def double(item: int) -> int:
        if os.getpid() != here:
            os._exit(1)
        return 2 * item

    def refused() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    assert shared_out(double, items) == [2, 4, 6]
    assert shared_out(double, items[:1]) == [2]
    monkeypatch.setattr(os, "fork", refused)  # no more processes are allowed
    assert shared_out(double, items) == [2, 4, 6]
    assert list(work_in_turns(double, items, lambda: items, 2)) == [(1, 2), (2, 4), (3, 6)]
    monkeypatch.setattr(os, "fork", None)
    assert shared_out(double, items, worth=False) == [2, 4, 6]
