"""What work costs, told so that a busy machine does not change it: by two sizes of input, never in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LARGER, ROOM = 32, 160
"""The larger of two inputs is 32 times as large and may take 160 times the work: where the work grows with the size it
takes 32 times as much, where it grows with the size's square a thousand times."""
TRIES = 5
LEAST = 1e-4
"""Seconds of the processor below which the work for the smaller one is all noise."""


def require_linear(work: Callable[[T], object], small: T, large: T) -> None:
    """Fails unless `large` takes at most ROOM times the processor's work of `small`, in one of TRIES: what else the
    machine does spoils a try now and then, a square spoils them all."""
    ratios: list[float] = []
    while len(ratios) < TRIES:
        ratios.append(_work(work, large) / max(_work(work, small), LEAST))
        if ratios[-1] < ROOM:
            return
    raise AssertionError(f"an input {LARGER} times as large takes {min(ratios):,.0f} times the work")


def _work(work: Callable[[T], object], given: T) -> float:
    started = time.process_time()
    work(given)
    return time.process_time() - started
