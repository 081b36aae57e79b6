"""The answers of language models on disk, one per line; neither a kill nor a full disk loses any.

A line is {"model", "setup", "pos", "a", "b", "rating", "answer", "date"}: `setup` identifies the wording; `rating` is
0..4, or null if the text in `answer` has none; `date` is the day of the answer (UTC); unknown values are left out.
Lines are only appended, and an answer counts once its line is on disk, so a repeated run asks only questions without a
line. A line that was cut off is ended before the next one is appended, and ignored: its question is asked again. One
run at a time has the file.
"""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import dataclass

import orjson

from hoicli.errors import DataError, Place, UsageError, arg
from hoicli.shoe.pairs import DATES, is_rating

Key = tuple[str, str, str, str, str]
"""(model, setup, pos, a, b)."""

_BEGINNING = b'{"model":'


@dataclass(frozen=True)
class Answer:
    """A model's answer about a pair of senses: `rating` 0..4, or None with the unusable `answer`."""

    model: str
    setup: str
    pos: str
    a: str
    b: str
    rating: int | None
    answer: str | None = None
    date: str | None = None

    @property
    def key(self) -> Key:
        """The question: two answers with one key answer the same question."""
        return self.model, self.setup, self.pos, self.a, self.b

    def line(self) -> bytes:
        """The answer as a line of the file."""
        known = {name: value for name, value in vars(self).items() if value is not None or name == "rating"}
        return orjson.dumps(known, option=orjson.OPT_APPEND_NEWLINE)


class AnswerCache:
    """The usable answers so far, in memory and, with a path, in a file; `add` may be called from any thread. Raises
    `UsageError` if the file cannot be created or another run has it, `DataError` if it holds anything else."""

    def __init__(self, path: str | None) -> None:
        self._answers: dict[Key, Answer] = {}
        self._adding = threading.Lock()
        self._path = path or os.devnull
        self._ends_inside_a_line = False
        self._open = True
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
            if path is not None:
                self._take()
        except OSError as error:
            raise UsageError(f"{arg('cache', path)}: {error.strerror}; give a file that can be written") from None

    def rating(self, key: Key) -> int | None:
        """The rating of a question, None if there is none yet; of two answers the first counts."""
        found = self._answers.get(key)
        return None if found is None else found.rating

    def days(self, model: str, setup: str) -> set[str]:
        """The days on which a model answered, where that is known."""
        known = self._answers.values()
        return {one.date for one in known if (one.model, one.setup) == (model, setup) and one.date is not None}

    def add(self, answer: Answer) -> None:
        """Store an answer; when this returns, it is on disk. Raises `DataError` if it cannot be written."""
        with self._adding:
            if not self._open:  # a thread that is later than the end of the run
                return
            self._know(answer)
            left = memoryview(b"\n" + answer.line() if self._ends_inside_a_line else answer.line())
            self._ends_inside_a_line = True
            try:
                while left:
                    left = left[os.write(self._file, left) :]
                if self._path != os.devnull:
                    os.fsync(self._file)
            except OSError as error:
                problem = f"cannot be written ({error.strerror}); make room and run again"
                raise DataError(problem, place=self._path) from None
            self._ends_inside_a_line = False

    def close(self) -> None:
        """Close the file."""
        with self._adding:
            self._open = False
            os.close(self._file)

    def _know(self, answer: Answer) -> None:
        if answer.rating is not None:
            self._answers.setdefault(answer.key, answer)

    def _take(self) -> None:
        """Take the file for this run, where the system can (Windows cannot), and read it."""
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            raise UsageError(f"{arg('cache', self._path)}: no regular file, so answers cannot be kept there")
        try:
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass  # Windows
        except BlockingIOError:
            problem = "another run has it; wait for that one, or give a file of its own (cat joins them later)"
            raise UsageError(f"{arg('cache', self._path)}: {problem}") from None
        with open(self._file, "rb", closefd=False) as file:
            data = file.read()
        for number, line in enumerate(data.split(b"\n"), start=1):
            try:
                if line.strip():
                    self._know(_parsed(line))
            except (KeyError, TypeError, ValueError) as error:
                if not isinstance(error, orjson.JSONDecodeError) or not line.startswith(_BEGINNING[: len(line)]):
                    problem = "no answer of a model (model, setup, pos, a, b, rating); is this the file for"
                    raise DataError(f"{problem} {arg('cache')}?", place=Place.of(self._path, number)) from None
        self._ends_inside_a_line = bool(data) and not data.endswith(b"\n")


def _parsed(line: bytes) -> Answer:
    """The question and the rating of a line. Raises `KeyError`, `TypeError` or ValueError for one that is no answer."""
    record = orjson.loads(line)
    model, setup, pos, a, b, rating = (record[name] for name in ("model", "setup", "pos", "a", "b", "rating"))
    if any(type(part) is not str for part in (model, setup, pos, a, b)) or not (rating is None or is_rating(rating)):
        raise ValueError
    date = record.get("date")
    if date is not None and (type(date) is not str or not DATES.fullmatch(date)):
        raise ValueError
    return Answer(model, setup, pos, a, b, rating, date=date)
