"""How a process handles memory while it works on much of it: without garbage collection, or keeping what it frees."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from hoicli.io import process

KEPT = 1 << 28
"""Bytes of freed memory that a process keeps for the next array."""
LARGEST_KEPT = 1 << 25
"""Bytes of the largest array that is put there; glibc takes no more."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""glibc's numbers of its settings (malloc.h)."""


@lru_cache(maxsize=1)
def keep_memory() -> None:
    """Tell the C library (glibc) to keep freed memory for the next array instead of returning it to the system.

    Otherwise each large array gets new, zeroed pages: a fifth of the time of a corruption."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # TypeError: on Windows there is no library without a name
        return
    mallopt(_M_MMAP_THRESHOLD, LARGEST_KEPT)
    mallopt(_M_TRIM_THRESHOLD, KEPT)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn off garbage collection during the block, which reads files: that creates millions of objects without cycles.
    In hoicli's own process, the memory of one batch of lines is kept for the next."""
    if process.alone:
        keep_memory()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
