"""The process of hoicli: whether it is hoicli's alone, its standard streams, and the signals that end it.

SIGTERM and SIGHUP end a run as Ctrl-C does: half-written files are removed, and workers are ended.

A process that ignores them (`nohup`) still ignores them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

alone = False
"""True when this process runs the `hoicli` command, not a program that imports the package; `cli.main` sets it."""

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The numbers of the signals that end a process; Windows has no SIGHUP."""

ECHO = 1.0
"""Seconds within which a second signal is ignored as a copy of the first: `timeout` signals the process and then its
group. The copy must not interrupt the cleanup. Later signals count, in case a library caught the first."""


class EndedError(KeyboardInterrupt):
    """A signal that ends the process has arrived. Code that handles Ctrl-C handles it, too. number: the signal's."""

    def __init__(self, number: int) -> None:
        """Make the error of a signal; its text is the signal's name (SIGTERM)."""
        self.number = number
        super().__init__(signal.Signals(number).name)


class _State:
    """The signals of this process. last_signal: when the last one was handled, by the monotonic clock; is_held: whether
    signals are delayed; waiting: the number of a delayed one, 0 for none."""

    last_signal = float("-inf")
    is_held = False
    waiting = 0


def catch_signals() -> None:
    """Make the signals in ENDING raise `EndedError` in the main thread, except those that the process ignores."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _handle_signal)


def release_signals() -> None:
    """Undo `catch_signals`: from now on a signal kills the process at once, so there must be nothing to clean up."""
    for number in ENDING:
        if signal.getsignal(number) is _handle_signal:
            signal.signal(number, signal.SIG_DFL)


def _handle_signal(number: int, _: FrameType | None) -> None:
    """Raise `EndedError` for a signal; only remember it while signals are held, and ignore a second one."""
    if _State.is_held:
        _State.waiting = number
        return
    now = time.monotonic()
    if now - _State.last_signal >= ECHO:
        _State.last_signal = now
        raise EndedError(number)


@contextmanager
def hold_signals() -> Iterator[None]:
    """Delay signals during the block, which must not be torn apart, such as starting and listing a process."""
    _State.is_held = True
    try:
        yield
    finally:
        _State.is_held = False
        if _State.waiting:
            number, _State.waiting = _State.waiting, 0
            _handle_signal(number, None)


def hold_standard_streams() -> None:
    """Open /dev/null in place of each standard stream that is closed (`2>&-`). Otherwise the next opened file would get
    its descriptor (0, 1 or 2), and a library's messages to stderr would go into that file.

    sys.stdout is replaced: writing to it raises an error."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # open gives the lowest free descriptor, which is this one; stdout is read-only, so that no result vanishes
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 (open until the process ends)


def close_stdout_quietly() -> None:
    """Lead stdout to /dev/null, so that Python does not print another error when it flushes at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
