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
"""The codes of errors by exit code, each with its meaning. docs/errors.md has an example of each."""

LONGEST = 1000
"""The most characters of a message: a few lines of a terminal, even if it quotes a bad label of a megabyte."""

IN_PYTHON = ContextVar("IN_PYTHON", default=False)
"""Whether the call came from Python: messages then name arguments, and not the shell's options."""


def arg(name: str, value: object = None, *, like: str = "") -> str:
    """Return how a message writes an option: `--top-k 3` in the shell, `top_k=3` in a call from Python; without a
    value, its name alone.

    name: the parameter's (`top_k`; `from_`, since `from` is a keyword of Python). like: in the shell, what stands in
    place of a value (`--gt FILE`).
    """
    number = write_number(value) if isinstance(value, float) else None
    if IN_PYTHON.get():
        return name if value is None else f"{name}={number or repr(value)}"
    option_name = "-o" if name == "output" else f"--{name.rstrip('_').replace('_', '-')}"
    if value is None:
        return f"{option_name} {like}".rstrip()
    return f"{option_name} {number or value}"


def write_number(value: float) -> str:
    """Return the shortest text that reads back as the same number, for settings in signatures, tags and messages. A
    whole number has no decimal point, and zero has no sign."""
    return repr(float(value) + 0.0).removesuffix(".0")  # -0.0 + 0.0 is 0.0


def visible(text: str) -> str:
    """Return a text with every character that would not be seen written as Python does (`\\x1b`, `\\n`, `\\u202e`):
    control characters, line ends, marks that turn the direction of writing, invisible spaces, lone surrogates."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def one_line(text: str) -> str:
    """Return a message that is safe to print even if it quotes a file: one line of visible characters, at most LONGEST.
    A longer one keeps its beginning, which says where, and its end, which says what to do."""
    text = visible(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 310]} ... {text[-300:]}"


MOST_LIKE, LONGEST_LIKE = 2_000, 60
"""The most names that `nearest` compares, and the longest name: the time of difflib grows with their number and with
the square of their length."""


def nearest(name: str, names: Collection[str], *, lowest_ratio: float = 0.6) -> list[str]:
    """Return a list of the known name that is spelt most like `name`; [] if none is similar, or if there are too many
    or too long names to compare. names: the known ones. lowest_ratio: of difflib, from which names are similar."""
    if len(name) > LONGEST_LIKE or len(names) > MOST_LIKE:
        return []
    from difflib import get_close_matches

    candidates = [candidate for candidate in names if len(candidate) <= LONGEST_LIKE]
    spellings = dict.fromkeys((name, name.lower()))
    similar = (get_close_matches(spelling, candidates, n=1, cutoff=lowest_ratio) for spelling in spellings)
    return next(filter(None, similar), [])


def did_you_mean(name: str, names: Collection[str], otherwise: str = "") -> str:
    """Return the end of a message about an unknown name: "did you mean ...?" with the most similar known name, or the
    text `otherwise` if none is similar."""
    similar = nearest(name, names)
    return f"did you mean {similar[0]!r}?" if similar else otherwise


class Place(str):
    """Where an error is: a text, as messages show it, which knows its parts. file: the file's name, None if the error
    is in no file; line: the number of the line, from 1, None if the file has no lines."""

    file: str | None = None
    line: int | None = None

    @classmethod
    def in_file(cls, file: str, at: int | str) -> Place:
        """Return the place `at` in a file: `file:line` for a line's number, as compilers and editors write it; `file:
        at` for a text, in a file that has no lines."""
        place = cls(f"{file}: {at}" if isinstance(at, str) else f"{file}:{at}")
        place.file = file
        place.line = at if isinstance(at, int) else None
        return place


_QUOTED = re.compile(r"""(?<!\w)(['"])(?:\\.|(?!\1).)*\1""", re.DOTALL)
"""A quoted text in a message."""


class HoicliError(Exception):
    """The base class of all errors that hoicli raises on purpose. `str()` is the one line that a user sees.

    problem: what is wrong, then a semicolon and what to do about it; place: where, such as file:line; field: the
    record's field that is wrong; code: the kind of error, one of CODES.
    """

    def __init__(self, problem: str, *, place: str = "", field: str = "", code: str = "internal") -> None:
        """Make an error whose text is "place: field: problem", without the parts that are empty."""
        self.problem = problem
        self.place = place
        self.field = field
        self.code = code
        super().__init__(one_line(": ".join(part for part in (place, field, problem) if part)))

    @property
    def hint(self) -> str:
        """Return what to do about the error: the part of `problem` after its first semicolon; "" if there is none."""
        # a semicolon in a quoted name does not count
        without_quotes = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), self.problem)
        semicolon = without_quotes.find("; ")
        return "" if semicolon < 0 else self.problem[semicolon + 2 :]

    def data(self) -> dict[str, object]:
        """Return the parts of the error by name, None for an empty one: what --log json prints for programs."""
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
    """The error that input data is wrong, or that reading or writing fails."""

    def __init__(self, problem: str, *, place: str = "", field: str = "", code: str = MALFORMED) -> None:
        """Make an error; the parameters are those of `HoicliError`."""
        super().__init__(problem, place=place, field=field, code=code)

    def add_place(self, place: str) -> DataError:
        """Return the error itself if it says where it is, else one that is the same but is at `place`."""
        return self if self.place else DataError(self.problem, place=place, field=self.field, code=self.code)


def not_json(error: JSONDecodeError, file: str, mend: str) -> DataError:
    """Return the error that a file, which should be one JSON document, is not. error: of the JSON reader; its line is
    the error's place; mend: what to do, for the message."""
    problem = f"not JSON ({error.msg}, column {error.colno}); {mend}"
    return DataError(problem, place=Place.in_file(file, error.lineno), code="damaged")


class UsageError(HoicliError):
    """The error that a call is wrong: an option does not exist, does not fit another, or has an impossible value."""

    def __init__(self, problem: str, *, place: str = "", code: str = BAD_CALL) -> None:
        """Make an error; the parameters are those of `HoicliError`."""
        super().__init__(problem, place=place, code=code)


class DeclarationError(ValueError):
    """The error that a table in hoicli's code is not complete, or does not declare what is used. Its text says what to
    write in which file; who does not change hoicli never meets it."""


class HoicliWarning(UserWarning):
    """The warning that predictions are suspicious, such as those of a network that has learnt nothing yet. Results are
    computed all the same."""
