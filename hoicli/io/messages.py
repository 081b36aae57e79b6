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
def kept_notes(notes: list[str] | None = None) -> Iterator[list[str]]:
    """Add the messages of `note` during the block to a list, and give it, instead of printing them."""
    notes = [] if notes is None else notes
    token = _KEPT.set(notes)
    try:
        yield notes
    finally:
        _KEPT.reset(token)


def are_notes_kept() -> bool:
    """Return whether notes go to a caller's list (`kept_notes`), so that nothing may be written to stderr."""
    return _KEPT.get() is not None


class Log:
    """What stderr gets. quiet: only errors (--quiet); as_json: each message as a JSON object on a line (--log json)."""

    quiet = as_json = False


@contextmanager
def set_log_options(arguments: Sequence[str]) -> Iterator[None]:
    """Set `Log` for the block as the arguments of a command line ask, before they are parsed."""
    Log.quiet = "--quiet" in arguments
    Log.as_json = "--log=json" in arguments or ("--log", "json") in pairwise(arguments)
    try:
        yield
    finally:
        Log.quiet = Log.as_json = False


def note(message: str, *, requested: bool = False) -> None:
    """Print a message for the user on stderr (a summary, an assumption, a count), or add it to the list of
    `kept_notes`. requested: whether the command is called for it, so that even --quiet prints it."""
    notes = _KEPT.get()
    if notes is not None:
        notes.append(one_line(message))
    elif Log.as_json and (requested or not Log.quiet):
        print_json("note", message=one_line(message))
    elif requested or not Log.quiet:
        print_line(f"hoicli: {message}")


def report(error: HoicliError) -> None:
    """Print an error on stderr, even with --quiet."""
    if Log.as_json:
        print_json("error", **error.data())
    else:
        print_line(str(error) if error.place else f"hoicli: {error}")


def print_json(level: str, **data: object) -> None:
    """Print a JSON object with `data` on a line of stderr. level: error, note or progress."""
    import json

    print_line(json.dumps({"level": level, **data}, separators=(",", ":")))


def print_line(line: str) -> None:
    """Print a line on stderr; nothing happens if stderr is closed."""
    if sys.stderr is None:  # `2>&-`; print would write to stdout, into the data
        return
    with suppress(OSError, ValueError):
        print(line if Log.as_json else one_line(line), file=sys.stderr, flush=True)


def display_name(path: str) -> str:
    """Return what messages call the input or output of this path: "<stdin>" for -, else the path."""
    return "<stdin>" if path == "-" else path


PROGRESS_SECONDS = 1.0
"""Seconds between two lines of progress (--log json)."""


class Progress:
    """Progress of a loop on stderr: a tqdm bar on a terminal, or lines of JSON (--log json). Nothing is shown with
    --quiet, if stderr is a file, or in a call from Python (`are_notes_kept`).

    A bar appears after half a second, and disappears at the end. shown: whether anything is shown."""

    def __init__(self, label: str, *, total: int | None = None, unit: str = "it") -> None:
        """Begin at 0. total: how many steps there are, None to show only a count; unit: B for bytes."""
        self.shown = (
            sys.stderr is not None and (Log.as_json or sys.stderr.isatty()) and not (Log.quiet or are_notes_kept())
        )
        self._about = {"label": visible(label), "total": total, "unit": unit.strip()}
        self._done = 0
        self._next = time.monotonic() + PROGRESS_SECONDS
        self._bar: Any = None
        if self.shown and not Log.as_json:
            from tqdm import tqdm

            tqdm.monitor_interval = 0  # no monitor thread: a process with threads cannot be forked safely
            scaled = unit == "B"
            self._bar = tqdm(total=total, unit=unit, unit_scale=scaled, desc=visible(label), leave=False, delay=0.5)

    def advance_to(self, position: int) -> None:
        """Advance to a position, the number of steps done so far; an earlier one than before changes nothing."""
        if position > self._done:
            self.advance(position - self._done)

    def advance(self, steps: int = 1) -> None:
        """Advance by `steps`."""
        self._done += steps
        if self._bar is not None:
            self._bar.update(steps)
        elif self.shown and time.monotonic() >= self._next:
            print_json("progress", done=self._done, **self._about)
            self._next = time.monotonic() + PROGRESS_SECONDS

    def __enter__(self) -> Progress:
        """Return the progress itself, for `with Progress(...) as progress`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
