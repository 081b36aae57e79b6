"""stdin, stdout and stderr where they were closed, or nobody reads them any more."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def hold_standard_streams() -> None:
    """Put /dev/null where a standard stream was closed (`2>&-`): the next file to be opened would get its number, and
    whatever a library writes to "stderr" would go into it. Python has noticed by then, and its own stream is None; in
    the place of stdout comes one that cannot be written to, and says so when it is."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # the lowest number that is free, which is this one
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 (for as long as the process lives)


def close_stdout_quietly() -> None:
    """After a broken pipe, or a full disk: keep the interpreter from complaining again when it flushes at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
