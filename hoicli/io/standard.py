"""The process and its standard streams: whose it is; stdin, stdout and stderr that are closed, or that nobody reads any
more."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

alone = False
"""True when this process runs the `hoicli` command, not a program that imports the package; `cli.main` sets it."""


def hold_standard_streams() -> None:
    """Open /dev/null in place of a closed standard stream (`2>&-`): otherwise the next opened file gets its number, and
    a library's messages to "stderr" go into that file. Python's own stream is None by then; for stdout it becomes one
    that raises an error when written to."""
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
