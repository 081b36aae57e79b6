"""SIGTERM and SIGHUP end a run as Ctrl-C does: half-written files are removed, and workers are ended.

By default they kill a process where it stands. A scheduler, `timeout` or a closing terminal would then leave parts of
files behind. What ignores them (`nohup`) goes on ignoring them.
"""

import os
import signal
import time
from contextlib import ContextDecorator
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))

ECHO = 1.0
"""Seconds within which a second signal is the first one's echo: `timeout` sends it to the process, and then to its
group. It must not disturb the tidying up. Later ones are heard, in case something has swallowed the first."""


class EndedError(KeyboardInterrupt):
    """A signal has come. Whoever lets go at Ctrl-C lets go at this, and does not take it for a failure."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


class _State:
    heard = float("-inf")
    held = 0
    waiting = 0


def catch() -> None:
    """From now on raise `EndedError` in the main thread, from which this is to be called, when one of ENDING comes."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _came)


def let_go() -> None:
    """From now on die of them, where they have been caught: for a process with nothing to tidy up."""
    for number in ENDING:
        if signal.getsignal(number) is _came:
            signal.signal(number, signal.SIG_DFL)


def die(number: int) -> None:
    """End this process as the signal would have, so that a shell sees 128 + number and a scheduler what it did."""
    let_go()
    os.kill(os.getpid(), number)


def _came(number: int, _: FrameType | None) -> None:
    if _State.held:
        _State.waiting = number
        return
    now = time.monotonic()
    if now - _State.heard >= ECHO:
        _State.heard = now
        raise EndedError(number)


class held(ContextDecorator):  # noqa: N801 (a context manager that reads as a word: with held())
    """Keeps a signal waiting, for a moment, while something is made that must not be lost sight of: a process between
    its birth and its place in a list."""

    def __enter__(self) -> None:
        _State.held += 1

    def __exit__(self, *_: object) -> None:
        _State.held -= 1
        if not _State.held and _State.waiting:
            number, _State.waiting = _State.waiting, 0
            _came(number, None)
