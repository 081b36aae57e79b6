"""Progress on a terminal: a bar for one piece of work, or one bar for all pieces of a job."""

from __future__ import annotations

import sys
from contextvars import ContextVar, Token
from typing import Any

from hoicli.errors import visible
from hoicli.io.messages import BEFORE_A_LINE, quiet

READING, READING_TRUTH = 1.0, 0.05
"""Weights of parts, in the time that reading and matching a file of predictions takes: of that, and of ground truth."""

_JOB: ContextVar[Job | None] = ContextVar("job", default=None)


class Job:
    """In the block, all work shows as one bar with the time left, and `Progress` as its parts.

    expected: the sum of the parts' weights, as far as it is known beforehand; `expect` adds to it. A job within a job,
    and one that no terminal shows, does nothing.
    """

    def __init__(self, label: str, expected: float = 0.0) -> None:
        self._label = label
        self._expected = expected
        self._done = 0.0
        self._bar: Any = None
        self._token: Token[Job | None] | None = None

    def __enter__(self) -> Job:
        if _shown() and _JOB.get() is None:
            self._token = _JOB.set(self)
            self._bar = _bar(
                total=self._expected,
                desc=visible(self._label),
                bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}, {remaining} left{postfix}",
                smoothing=0.05,
            )
            self._clearing = BEFORE_A_LINE.set(self._bar.clear)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _JOB.reset(self._token)
            BEFORE_A_LINE.reset(self._clearing)
            self._bar.close()

    def expect(self, weight: float) -> None:
        """More parts will come, of this weight together."""
        self._expected += weight
        if self._bar is not None:
            self._bar.total = self._expected

    def begin(self, label: str) -> None:
        """A part begins."""
        self._bar.set_postfix_str(visible(label), refresh=False)

    def advance(self, weight: float) -> None:
        """Some of a part is done. Parts that were not expected do not move the bar beyond its end."""
        step = min(weight, self._expected - self._done)
        if step > 0:
            self._done += step
            self._bar.update(step)


def expect(weight: float) -> None:
    """Tell the job, if there is one, that parts of this weight will come."""
    job = _JOB.get()
    if job is not None:
        job.expect(weight)


class Progress:
    """A tqdm bar if stderr is a terminal and the caller does not keep the notes (`messages.quiet`), in a `Job` a part
    of its bar; otherwise nothing.

    tqdm is imported only for a bar. With `total` None the bar shows a count, and a part is done when it ends. weight:
    how long the part takes in comparison with the job's others.
    """

    def __init__(self, label: str, *, total: int | None = None, unit: str = "it", weight: float = 0.0) -> None:
        self.shown = _shown()
        self._bar: Any = None
        self._last = 0
        self._job = _JOB.get() if self.shown else None
        self._total, self._weight, self._done, self._told = total, weight, 0, 0.0
        if self._job is not None:
            self._job.begin(label)
        elif self.shown:
            self._bar = _bar(total=total, unit=unit, unit_scale=unit == "B", desc=visible(label))

    def to(self, position: int) -> None:
        """Move to an absolute position within the current file."""
        if self.shown and position > self._last:
            self.advance(position - self._last)
            self._last = position

    def advance(self, steps: int = 1) -> None:
        """Move on by `steps`."""
        if self._bar is not None:
            self._bar.update(steps)
        elif self._job is not None and self._total:
            self._done += steps
            self._tell(min(self._done / self._total, 1.0))

    def _tell(self, share: float) -> None:
        """The job's bar moves to where this share of the part is done."""
        if self._job is not None:
            self._job.advance(self._weight * share - self._told)
            self._told = max(self._told, self._weight * share)

    def file_done(self) -> None:
        """The next `to` counts from the start of another file."""
        self._last = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        if kind is None:  # a stream that is left after its first line is read again elsewhere
            self._tell(1.0)


def _shown() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and not quiet()


def _bar(**options: Any) -> Any:
    """A bar that is gone when it is done, and does not come for work of half a second."""
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # no monitor thread: hoicli forks
    return tqdm(leave=False, delay=0.5, **options)
