"""Messages to the user: one line on stderr, and the names of streams in messages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from hoicli.errors import one_line

_KEPT: ContextVar[list[str] | None] = ContextVar("notes", default=None)


@contextmanager
def kept_notes() -> Iterator[list[str]]:
    """In the block, what `note` says goes to this list instead of stderr, and there are no progress bars."""
    notes: list[str] = []
    token = _KEPT.set(notes)
    try:
        yield notes
    finally:
        _KEPT.reset(token)


def quiet() -> bool:
    """Whether the caller keeps the notes (`kept_notes`), and stderr is not for this work."""
    return _KEPT.get() is not None


def note(message: str) -> None:
    """Print a message for the user on stderr: a summary, an assumption, a count. Never part of the data."""
    kept = _KEPT.get()
    if kept is not None:
        kept.append(one_line(message))
        return
    say(f"hoicli: {message}")


def say(message: str) -> None:
    """Print a line on stderr; nothing happens if stderr is closed."""
    if sys.stderr is None:  # `2>&-`; print would write to stdout, into the data
        return
    with suppress(OSError, ValueError):
        print(one_line(message), file=sys.stderr, flush=True)


def display_name(path: str) -> str:
    """The name of a stream in messages."""
    return "<stdin>" if path == "-" else path
