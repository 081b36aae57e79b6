"""Progress: a bar on a terminal, or lines of JSON, for one piece of work."""

from __future__ import annotations

import sys
import time
from typing import Any

from hoicli.errors import visible
from hoicli.io.messages import Log, kept, say_data

EVERY = 1.0
"""Seconds between two lines of progress."""


class Progress:
    """A tqdm bar if stderr is a terminal, or lines of JSON (`--log json`); nothing with `--quiet`, or where the caller
    keeps the notes (`messages.kept`).

    tqdm is imported only for a bar, which is gone when it is done, and does not come for work of half a second. With
    `total` None it shows a count.
    """

    def __init__(self, label: str, *, total: int | None = None, unit: str = "it") -> None:
        self.shown = sys.stderr is not None and (Log.as_json or sys.stderr.isatty()) and not (Log.quiet or kept())
        self._bar: Any = None
        self._last = 0
        if self.shown and Log.as_json:
            self._bar = _Lines(visible(label), total, unit)
        elif self.shown:
            from tqdm import tqdm

            tqdm.monitor_interval = 0  # no monitor thread: hoicli forks
            scaled = unit == "B"
            self._bar = tqdm(total=total, unit=unit, unit_scale=scaled, desc=visible(label), leave=False, delay=0.5)

    def to(self, position: int) -> None:
        """Move on to a position, never back."""
        if position > self._last:
            self.advance(position - self._last)
            self._last = position

    def advance(self, steps: int = 1) -> None:
        """Move on by `steps`."""
        if self._bar is not None:
            self._bar.update(steps)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


class _Lines:
    """A bar of `--log json`: every second a line."""

    def __init__(self, label: str, total: int | None, unit: str) -> None:
        self._about = {"label": label, "total": total, "unit": unit.strip()}
        self._done = 0
        self._next = time.monotonic() + EVERY

    def update(self, steps: int) -> None:
        """Move on by `steps`."""
        self._done += steps
        if time.monotonic() >= self._next:
            say_data("progress", done=self._done, **self._about)
            self._next = time.monotonic() + EVERY

    def close(self) -> None:
        """Nothing is left to do."""
