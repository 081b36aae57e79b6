"""The exceptions and the warning of hoicli: what went wrong, where, and what to do, in one line.

Library code raises them; only `hoicli.cli` knows exit codes (1 for `DataError`, 2 for `UsageError`).
"""

from __future__ import annotations

import copyreg
from contextvars import ContextVar
from typing import Any

LONGEST = 1000
"""Characters of a message: a few lines of a terminal, even if the message quotes a bad label of a megabyte."""

IN_PYTHON = ContextVar("IN_PYTHON", default=False)
"""Whether the call came from Python: messages then name arguments, and not the shell's options."""


def arg(name: str, value: object = None, *, like: str = "") -> str:
    """An option as the caller wrote it: `--top-k 3` in the shell, `top_k=3` in Python. Without a value, its name alone.

    name: of the parameter (`top_k`; `from_`, since `from` is Python's own word). like: what the shell's help shows in
    place of a value (`FILE`).
    """
    number = f"{value:g}" if isinstance(value, float) else None
    if IN_PYTHON.get():
        return name if value is None else f"{name}={number or repr(value)}"
    called = "-o" if name == "output" else f"--{name.rstrip('_').replace('_', '-')}"
    if value is None:
        return f"{called} {like}".rstrip()
    return f"{called} {number or value}"


def visible(text: str) -> str:
    """A text that shows all it holds: control characters, line ends, marks that turn the direction of writing,
    invisible spaces and lone surrogates stand as Python writes them (`\\x1b`, `\\n`, `\\u202e`)."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def one_line(text: str) -> str:
    """A message that is safe to show even if it quotes a file: visible, and cut to a readable length."""
    if len(text) > LONGEST:  # keep both ends: the place, and what to do
        text = f"{text[: LONGEST - 310]} ... {text[-300:]}"
    return visible(text)


class HoicliError(Exception):
    """Base of everything hoicli raises on purpose; `str()` is the one line a user sees."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: as it is, not made anew of its message."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


MALFORMED = "malformed"
"""The code of an error without a more specific one."""


class DataError(HoicliError):
    """The data is wrong: `place` (file:line), `field` and `problem`, the problem ending in what to do about it.

    `code` names the kind of error, so that errors can be counted by kind (`hoicli.validation.checks.CHECKS`).
    """

    def __init__(self, problem: str, *, place: str = "", field: str = "", code: str = MALFORMED) -> None:
        self.problem = problem
        self.place = place
        self.field = field
        self.code = code
        super().__init__(": ".join(part for part in (place, field, problem) if part))

    def at(self, place: str) -> DataError:
        """The same error, at `place` if it has none of its own."""
        return DataError(self.problem, place=self.place or place, field=self.field, code=self.code)


class StoppedError(DataError):
    """The command that wrote a stream failed. `--on-error skip` does not pass over it: what is lost is not one line."""


class UsageError(HoicliError):
    """The call is wrong: an option that does not exist, does not fit another, or has an impossible value."""


class HoicliWarning(UserWarning):
    """Predictions are suspicious, as a network's before it has learnt anything: there is a number all the same."""
