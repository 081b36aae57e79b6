"""Messages to the user: one line on stderr, and the names of streams in messages."""

from __future__ import annotations

import sys
from contextlib import suppress

from hoicli.errors import one_line


def note(message: str) -> None:
    """Print a message for the user on stderr: a summary, an assumption, a count. Never part of the data."""
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
