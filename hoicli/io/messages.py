"""What is said to the person: one line on stderr, and how a stream is called there."""

import sys
from contextlib import suppress

from hoicli.errors import one_line


def note(message: str) -> None:
    """Say something to the person, on stderr: a summary, an assumption, a count. Never part of the data."""
    say(f"hoicli: {message}")


def say(message: str) -> None:
    """A line on stderr, where there is one and somebody reads it."""
    if sys.stderr is None:  # `2>&-`; print would turn to stdout, into the data
        return
    with suppress(OSError, ValueError):
        print(one_line(message), file=sys.stderr, flush=True)


def display_name(path: str) -> str:
    """How messages name a stream."""
    return "<stdin>" if path == "-" else path
