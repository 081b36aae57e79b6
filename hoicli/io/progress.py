"""Progress on a terminal: a bar for one piece of work."""

from __future__ import annotations

import sys
from typing import Any

from hoicli.errors import visible
from hoicli.io.messages import quiet


class Progress:
    """A tqdm bar if stderr is a terminal and the caller does not keep the notes (`messages.quiet`); otherwise nothing.

    tqdm is imported only for a bar, which is gone when it is done, and does not come for work of half a second. With
    `total` None it shows a count.
    """

    def __init__(self, label: str, *, total: int | None = None, unit: str = "it") -> None:
        self.shown = _shown()
        self._bar: Any = None
        self._last = 0
        if self.shown:
            self._bar = _bar(total=total, unit=unit, unit_scale=unit == "B", desc=visible(label))

    def to(self, position: int) -> None:
        """Move to an absolute position within the current file."""
        if position > self._last:
            self.advance(position - self._last)
            self._last = position

    def advance(self, steps: int = 1) -> None:
        """Move on by `steps`."""
        if self._bar is not None:
            self._bar.update(steps)

    def file_done(self) -> None:
        """The next `to` counts from the start of another file."""
        self._last = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _shown() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and not quiet()


def _bar(**options: Any) -> Any:
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # no monitor thread: hoicli forks
    return tqdm(leave=False, delay=0.5, **options)
