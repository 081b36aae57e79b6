"""The process: whose it is, its standard streams, and the signals that end it.

SIGTERM and SIGHUP end a run as Ctrl-C does: half-written files are removed, and workers are ended.

By default they kill a process at once, so a scheduler, `timeout` or a closing terminal would leave partial files. A
process that ignores them (`nohup`) still ignores them.
"""

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

ECHO = 1.0
"""Seconds within which a second signal is ignored as a copy of the first: `timeout` signals the process and then its
group. The copy must not interrupt the cleanup. Later signals count, in case a library caught the first."""


class EndedError(KeyboardInterrupt):
    """A signal arrived. Code that handles Ctrl-C handles it too, and does not report it as a failure."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


class _State:
    last_signal = float("-inf")
    is_held = False
    waiting = 0


def catch() -> None:
    """From now on make a signal of ENDING raise `EndedError` in the main thread, which must be the caller's."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _came)


def let_go() -> None:
    """Undo `catch`: from now on a signal kills the process, which has nothing to clean up."""
    for number in ENDING:
        if signal.getsignal(number) is _came:
            signal.signal(number, signal.SIG_DFL)


def _came(number: int, _: FrameType | None) -> None:
    """Handle a signal: raise `EndedError`, or remember the signal while signals are held."""
    if _State.is_held:
        _State.waiting = number
        return
    now = time.monotonic()
    if now - _State.last_signal >= ECHO:
        _State.last_signal = now
        raise EndedError(number)


@contextmanager
def hold_signals() -> Iterator[None]:
    """Delay signals during the block, in which a resource is created and registered for cleanup, such as a process
    between its start and its entry in a list."""
    _State.is_held = True
    try:
        yield
    finally:
        _State.is_held = False
        if _State.waiting:
            number, _State.waiting = _State.waiting, 0
            _came(number, None)


def hold_standard_streams() -> None:
    """Open /dev/null in place of a closed standard stream (`2>&-`). Otherwise the next opened file would get its
    number, and a library's messages to "stderr" would go into that file. Python's own stream is None by then; for
    stdout it becomes one that raises an error when it is written to."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # gets the lowest free number, which is this one
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 (open until the process ends)


def close_stdout_quietly() -> None:
    """After a broken pipe, or a full disk: keep the interpreter from complaining again when it flushes at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
