"""The exceptions and the warning of hoicli: what went wrong, where, and what to do, in one line, and its code."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from json import JSONDecodeError

MALFORMED, BAD_CALL = "malformed", "bad-call"
"""The codes of errors without a more specific one: of the data, of the call."""

CODES = {
    1: {
        "no-such-file": "an input file does not exist",
        "unreadable": "the system does not allow reading the file, or it is a folder",
        "damaged": "a file is cut off, damaged or not what it should be: gzip, JSON, MATLAB, pickle, NumPy, a picture",
        "unknown-format": "the format is not in `hoicli convert --list`, or must be named with `--from`",
        "empty": "the input has no lines, no ground truth or no predictions",
        MALFORMED: "a line, a field or a value is not what it should be",
        "unknown-label": "a verb or an object is not in the dataset",
        "unknown-image": "an image is not in the ground truth",
        "unknown-protocol": "match records name a protocol that this version does not have",
        "duplicate-image": "an image occurs twice",
        "missing-picture": "the folder lacks the picture of an image",
        "swapped-files": "predictions were given in place of ground truth",
        "another-dataset": "most of the ground truth, or of the predictions, belongs to no class of the dataset",
        "inverted-box": "more than 1 % of the boxes have x2 < x1 or y2 < y1",
        "relative-box": "all boxes are parts of the image's sides (0-1), not pixels",
        "cannot-serve": "the ground truth lacks what a protocol needs",
        "mixed": "two inputs do not fit together, such as match records of two ground truths",
        "not-whole": "a stream ends early, or the command that wrote it failed",
        "untested": "`compare --fail-if-worse` cannot decide, since there is no interval",
        "unwritable": "the output could not be written completely, for example because the disk is full",
        "network": "a server did not answer, or not correctly",
        "out-of-memory": "the machine has too little memory",
        "internal": "a bug in hoicli, or a broken installation",
    },
    2: {
        BAD_CALL: "an option, value or command does not exist, or two exclude each other",
        "bad-output": "the output cannot be written, or is also an input",
        "no-such-folder": "an input folder does not exist",
        "missing-package": "a required package is not installed",
    },
    3: {"worse": "`compare --fail-if-worse`: a model is worse than the baseline"},
    130: {"interrupted": "ended by Ctrl-C (130) or a signal (143 for SIGTERM, 129 for SIGHUP)"},
}
"""What errors are about: exit code, code, meaning. docs/errors.md has an example of each."""

LONGEST = 1000
"""Characters of a message: a few lines of a terminal, even if the message quotes a bad label of a megabyte."""

IN_PYTHON = ContextVar("IN_PYTHON", default=False)
"""Whether the call came from Python: messages then name arguments, and not the shell's options."""


def arg(name: str, value: object = None, *, like: str = "") -> str:
    """An option as the caller wrote it: `--top-k 3` in the shell, `top_k=3` in Python. Without a value, its name alone.

    name: of the parameter (`top_k`; `from_`, since `from` is Python's own word). like: what the shell's help shows in
    place of a value (`FILE`).
    """
    number = write_number(value) if isinstance(value, float) else None
    if IN_PYTHON.get():
        return name if value is None else f"{name}={number or repr(value)}"
    option_name = "-o" if name == "output" else f"--{name.rstrip('_').replace('_', '-')}"
    if value is None:
        return f"{option_name} {like}".rstrip()
    return f"{option_name} {number or value}"


def write_number(value: float) -> str:
    """Return the shortest text that reads back as the same number: what signatures, tags and messages write of a
    setting. Whole numbers have no point, and zero has no sign."""
    return repr(float(value) + 0.0).removesuffix(".0")


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
    text = visible(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 310]} ... {text[-300:]}"  # the place, and what to do


MOST_LIKE, LONGEST_LIKE = 2_000, 60
"""Names among which, and the length up to which, `nearest` looks: difflib's time grows with their number and with the
square of their length."""


def nearest(name: str, names: Collection[str]) -> list[str]:
    """The known name that is most like this one, if one is alike and looking costs little; else nothing."""
    if len(name) > LONGEST_LIKE or len(names) > MOST_LIKE:
        return []
    from difflib import get_close_matches

    return get_close_matches(name, [candidate for candidate in names if len(candidate) <= LONGEST_LIKE], n=1)


def did_you_mean(name: str, names: Collection[str], otherwise: str = "") -> str:
    """The end of a message about an unknown name: a question with the most similar known one, if there is one."""
    near = nearest(name, names)
    return f"did you mean {near[0]!r}?" if near else otherwise


class Place(str):
    """Where an error is, as messages show it. file: the file, None if it is in none; line: its line, from 1."""

    file: str | None = None
    line: int | None = None

    @classmethod
    def in_file(cls, file: str, at: int | str) -> Place:
        """`file:line`, as compilers and editors write it; `file: at` in a file that has no lines."""
        place = cls(f"{file}: {at}" if isinstance(at, str) else f"{file}:{at}")
        place.file, place.line = file, at if isinstance(at, int) else None
        return place


_QUOTED = re.compile(r"""(?<!\w)(['"])(?:\\.|(?!\1).)*\1""", re.DOTALL)


class HoicliError(Exception):
    """Base of everything hoicli raises on purpose; `str()` is the one line a user sees.

    problem: what is wrong, and after its first semicolon what to do about it; place: where (file:line); field: of the
    record; code: the kind of error, one of CODES.
    """

    def __init__(self, problem: str, *, place: str = "", field: str = "", code: str = "internal") -> None:
        self.problem = problem
        self.place = place
        self.field = field
        self.code = code
        super().__init__(one_line(": ".join(part for part in (place, field, problem) if part)))

    @property
    def hint(self) -> str:
        """Return what to do about it; "" if the problem says only what is wrong."""
        unquoted = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), self.problem)
        at = unquoted.find("; ")
        return "" if at < 0 else self.problem[at + 2 :]

    def data(self) -> dict[str, object]:
        """Its parts, None where there is none, for programs (`--log json`)."""
        place = self.place
        return {
            "code": self.code,
            "file": place.file if isinstance(place, Place) else place or None,
            "line": place.line if isinstance(place, Place) else None,
            "field": self.field or None,
            "message": one_line(self.problem.removesuffix(f"; {self.hint}") if self.hint else self.problem),
            "hint": one_line(self.hint) or None,
        }


class DataError(HoicliError):
    """The data is wrong."""

    def __init__(self, problem: str, *, place: str = "", field: str = "", code: str = MALFORMED) -> None:
        super().__init__(problem, place=place, field=field, code=code)

    def add_place(self, place: str) -> DataError:
        """Return the same error, at `place` if it has none of its own."""
        return self if self.place else DataError(self.problem, place=place, field=self.field, code=self.code)


def not_json(error: JSONDecodeError, file: str, mend: str) -> DataError:
    """The error of a file that is one JSON document, at the line where it stops being JSON."""
    problem = f"not JSON ({error.msg}, column {error.colno}); {mend}"
    return DataError(problem, place=Place.in_file(file, error.lineno), code="damaged")


class UsageError(HoicliError):
    """The call is wrong: an option that does not exist, does not fit another, or has an impossible value."""

    def __init__(self, problem: str, *, place: str = "", code: str = BAD_CALL) -> None:
        super().__init__(problem, place=place, code=code)


class HoicliWarning(UserWarning):
    """Predictions are suspicious, as a network's before it has learnt anything: there is a number all the same."""
