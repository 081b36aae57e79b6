"""The answers of language models on disk: one a line, safe from a kill, from a full disk and from a second process.

A line is {"model", "setup", "pos", "a", "b", "rating", "prompt_tokens", "completion_tokens"}, `setup` standing for the
wording and the extra request fields that were used, `rating` 0..4 or null for an answer that was none (its text is in
`answer`). Lines are only ever added. They reach the disk before the answer counts as given, so whoever runs again asks
only what has no line.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import orjson

from hoicli.errors import DataError, UsageError

Key = tuple[str, str, str, str, str]
"""(model, setup, pos, a, b)."""

_TEXTS = ("model", "setup", "pos", "a", "b")
_BEGINNING = b'{"model":'


@dataclass(frozen=True)
class Answer:
    """What a model said of a pair of senses: `rating` 0..4, or None with the unusable `text`; tokens where told."""

    model: str
    setup: str
    pos: str
    a: str
    b: str
    rating: int | None
    text: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    @property
    def key(self) -> Key:
        """What makes two answers answers to one question."""
        return self.model, self.setup, self.pos, self.a, self.b

    def line(self) -> bytes:
        """The answer as a line of the file."""
        record: dict[str, Any] = {name: getattr(self, name) for name in (*_TEXTS, "rating")}
        if self.text is not None:
            record["answer"] = self.text
        for name in ("prompt_tokens", "completion_tokens"):
            if getattr(self, name) is not None:
                record[name] = getattr(self, name)
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


class AnswerCache:
    """The usable answers so far, in memory and, with a path, in a file; `add` may be called from any thread.

    Several processes may share a file: each locks it while it adds lines, and learns what the others added meanwhile.
    `mended`: what was done to a last line that a kill had cut off, else None.
    Raises `UsageError` when there can be no such file, `DataError` for a line that is no answer.
    """

    def __init__(self, path: str | None) -> None:
        self.mended: str | None = None
        self._ratings: dict[Key, int] = {}
        self._path = path or ""
        self._file = -1
        self._read_to = 0
        self._lines = 0
        self._pending: list[bytes] = []
        self._pending_lock = threading.Lock()
        self._file_lock = threading.Lock()
        if path is not None:
            try:
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            except OSError as error:
                raise UsageError(f"--cache {path}: {error.strerror}; give a file that can be written") from None
            with self._locked():
                self._learn()

    @property
    def on_disk(self) -> bool:
        """Whether there is a file that outlives the run."""
        return bool(self._path)

    def rating(self, key: Key) -> int | None:
        """The rating that was given, None when there is none yet; of two answers the first counts."""
        return self._ratings.get(key)

    def add(self, answer: Answer) -> None:
        """Keep an answer; when this returns, it is on disk. Raises `DataError` when the disk does not take it."""
        if answer.rating is not None:
            self._ratings.setdefault(answer.key, answer.rating)
        if self._file < 0:
            return
        with self._pending_lock:
            self._pending.append(answer.line())
        with self._file_lock:  # whoever comes first writes what all that wait have brought: one fsync for many
            with self._pending_lock:
                lines, self._pending = b"".join(self._pending), []
            if lines:
                self._write(lines)

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, lines: bytes) -> None:
        try:
            with self._locked():
                self._learn()
                left = memoryview(lines)
                while left:
                    left = left[os.write(self._file, left) :]
                os.fsync(self._file)
                self._read_to += len(lines)
                self._lines += lines.count(b"\n")
        except OSError as error:
            problem = f"cannot be written ({error.strerror}); make room and run again"
            raise DataError(problem, place=self._path) from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone with the file, among all processes."""
        import fcntl

        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _learn(self) -> None:
        """Read what the file holds beyond what is known. A last line without an end is a dead process's."""
        data = b""
        while part := os.pread(self._file, 1 << 24, self._read_to + len(data)):
            data += part
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            self._lines += 1
            if line.strip():
                self._take(line)
        self._read_to += len(whole)
        rest = data[len(whole) :]
        if rest:
            self._mend(rest)

    def _mend(self, rest: bytes) -> None:
        """What a kill left behind the last line end: a whole answer gets its line end, a part of one goes."""
        self._lines += 1
        if not rest.startswith(_BEGINNING[: len(rest)]):
            self._refuse()
        if rest.endswith(b"}"):
            self._take(rest)
            os.write(self._file, b"\n")
            self._read_to += len(rest) + 1
            return
        self._lines -= 1
        os.ftruncate(self._file, self._read_to)
        self.mended = f"{self._path}: the last line was cut off after {len(rest)} bytes: removed, to be asked again"

    def _take(self, line: bytes) -> None:
        answer = _answer(line)
        if answer is None:
            self._refuse()
        key, rating = answer
        if rating is not None:
            self._ratings.setdefault(key, rating)

    def _refuse(self) -> NoReturn:
        problem = "no answer of a model (model, setup, pos, a, b, rating); is this the file for --cache?"
        raise DataError(problem, place=f"{self._path}:{self._lines}")


def _answer(line: bytes) -> tuple[Key, int | None] | None:
    """What a line of the file says, None for a line that is no answer."""
    try:
        record = orjson.loads(line)
        model, setup, pos, a, b = (record[name] for name in _TEXTS)
        rating = record["rating"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    key = (model, setup, pos, a, b)
    sound = all(type(part) is str for part in key) and (rating is None or is_rating(rating))
    return (key, rating) if sound else None


@dataclass(frozen=True)
class Survey:
    """What a file of answers holds: lines that are answers, the questions they settle, the numbers of lines that are
    none, and whether the last line was cut off by a kill."""

    answers: int
    usable: int
    damaged: tuple[int, ...]
    unfinished: bool


def survey(path: str) -> Survey:
    """Look through a file of answers and leave it as it is. Raises `OSError` when it cannot be read."""
    with open(path, "rb") as file:
        lines = list(enumerate(file, start=1))
    unfinished = bool(lines) and not lines[-1][1].endswith(b"\n")
    found = [(number, _answer(line)) for number, line in (lines[:-1] if unfinished else lines) if line.strip()]
    known = [answer for _, answer in found if answer is not None]
    return Survey(
        answers=len(known),
        usable=len({key for key, rating in known if rating is not None}),
        damaged=tuple(number for number, answer in found if answer is None),
        unfinished=unfinished,
    )


def is_rating(value: object) -> bool:
    """A whole number from 0 to 4."""
    return type(value) is int and 0 <= value <= 4
