"""What stderr gets: messages of one line and progress, as text or as JSON; and the names of streams in messages."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

from hoicli.errors import HoicliError, one_line, visible

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


def are_notes_kept() -> bool:
    """Return whether the caller keeps the notes (`kept_notes`), so that this work writes nothing to stderr."""
    return _KEPT.get() is not None


class Log:
    """What stderr gets, as a command line asks: only errors (`--quiet`); objects on lines of their own
    (`--log json`)."""

    quiet = as_json = False


@contextmanager
def log_as_asked(words: Sequence[str]) -> Iterator[None]:
    """In the block `Log` is what a command line asks for. words: that command line. It is searched before it is parsed,
    so that an error in it is already told in the way it asks for."""
    Log.quiet = "--quiet" in words
    Log.as_json = "--log=json" in words or ("--log", "json") in pairwise(words)
    try:
        yield
    finally:
        Log.quiet = Log.as_json = False


def note(message: str, *, requested: bool = False) -> None:
    """Print a message for the user on stderr: a summary, an assumption, a count. It is never part of the data.
    requested: whether the command is called for this message, so that `--quiet` does not leave it out."""
    notes = _KEPT.get()
    if notes is not None:
        notes.append(one_line(message))
    elif Log.as_json and (requested or not Log.quiet):
        say_data("note", message=one_line(message))
    elif requested or not Log.quiet:
        say(f"hoicli: {message}")


def report(error: HoicliError) -> None:
    """Print an error on stderr, with `--quiet`, too."""
    if Log.as_json:
        say_data("error", **error.data())
    else:
        say(str(error) if error.place else f"hoicli: {error}")


def say_data(level: str, **data: object) -> None:
    """Print an object on a line of stderr. level: error, note or progress."""
    import json

    say(json.dumps({"level": level, **data}, separators=(",", ":")))


def say(line: str) -> None:
    """Print a line on stderr; nothing happens if stderr is closed."""
    if sys.stderr is None:  # `2>&-`; print would write to stdout, into the data
        return
    with suppress(OSError, ValueError):
        print(line if Log.as_json else one_line(line), file=sys.stderr, flush=True)


def display_name(path: str) -> str:
    """Return what messages call a stream."""
    return "<stdin>" if path == "-" else path


EVERY = 1.0
"""Seconds between two lines of progress."""


class Progress:
    """A tqdm bar if stderr is a terminal, or lines of JSON (`--log json`); nothing with `--quiet`, or where the caller
    keeps the notes (`are_notes_kept`).

    tqdm is imported only for a bar, which is gone when it is done, and does not come for work of half a second. With
    `total` None it shows a count.
    """

    def __init__(self, label: str, *, total: int | None = None, unit: str = "it") -> None:
        self.shown = (
            sys.stderr is not None and (Log.as_json or sys.stderr.isatty()) and not (Log.quiet or are_notes_kept())
        )
        self._about = {"label": visible(label), "total": total, "unit": unit.strip()}
        self._done = 0
        self._next = time.monotonic() + EVERY
        self._bar: Any = None
        if self.shown and not Log.as_json:
            from tqdm import tqdm

            tqdm.monitor_interval = 0  # no monitor thread: hoicli forks
            scaled = unit == "B"
            self._bar = tqdm(total=total, unit=unit, unit_scale=scaled, desc=visible(label), leave=False, delay=0.5)

    def advance_to(self, position: int) -> None:
        """Advance to a position; an earlier one than before changes nothing."""
        if position > self._done:
            self.advance(position - self._done)

    def advance(self, steps: int = 1) -> None:
        """Advance by `steps`."""
        self._done += steps
        if self._bar is not None:
            self._bar.update(steps)
        elif self.shown and time.monotonic() >= self._next:
            say_data("progress", done=self._done, **self._about)
            self._next = time.monotonic() + EVERY

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
