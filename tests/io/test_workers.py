"""Forks are made where they may be made; elsewhere the work is done in one process."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys

import pytest

from hoicli.io.workers import fork_map, in_turns
from tests.support.project import ROOT

IN_TURNS = """
from hoicli.io.workers import in_turns
for _ in in_turns(lambda _: bytes(1_000_000), range(9), lambda: range(9), 3):
    print(flush=True)
    input()
"""


def inside() -> tuple[list[int] | None, list[tuple[int, int]]]:
    """What a worker of somebody's pool gets."""
    items = [1, 2, 3]
    return fork_map(abs, items), list(in_turns(abs, items, lambda: items, 2))


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_a_worker_of_a_pool_has_no_children() -> None:
    """multiprocessing refuses them, as in a DataLoader's worker."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(inside) == (None, [(1, 1), (2, 2), (3, 3)])
    assert inside() == ([1, 2, 3], [(1, 1), (2, 2), (3, 3)])


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_a_killed_process_leaves_no_forks() -> None:
    """They hold its stdout, which ends only with the last of them."""
    process = subprocess.Popen(
        [sys.executable, "-c", IN_TURNS], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.communicate(timeout=60)
