"""Forks are made where they may be made; elsewhere the work is done in one process."""

from __future__ import annotations

import multiprocessing
import sys

import pytest

from hoicli.io.workers import fork_map, in_turns


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
