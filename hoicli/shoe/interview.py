"""Language models as raters of how close two senses are, 0 to 4, at any endpoint with OpenAI's protocol.

As in SHOE (supplement, sections 1, 3 and 6): a model is given both glosses and answers with a whole number, 0 for
unrelated to 4 for interchangeable; one model may screen all pairs first, and what it rates 0 is not sent to the others.
The wording is ours. Answers are kept on disk, one per line, so that nothing is asked or paid for twice.

A line is {"model", "setup", "pos", "a", "b", "rating", "answer", "date"}: `setup` identifies the wording; `rating` is
0..4, or null if the text in `answer` has none; `date` is the day of the answer (UTC); unknown values are left out.
Lines are only appended, and an answer counts once its line is on disk. A line that was cut off is ended before the next
one is appended, and ignored: its question is asked again. One run at a time has the file."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from itertools import chain, product

import orjson

from hoicli.errors import DataError, Place, UsageError, arg
from hoicli.io.messages import Progress, note
from hoicli.io.opened_files import refuse_repeated_key
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record
from hoicli.records.result_rows import Row
from hoicli.shoe.client import Client, Endpoint
from hoicli.shoe.rating import TableWork, synsets_of
from hoicli.shoe.similarity_table import DATES, SCALE, Pair, Rated, days_of, is_rating
from hoicli.wordnet.lexicon import open_wordnet

ASKS = 3
"""How often a question is asked at most while the answers are not ratings."""
CHARACTERS_A_TOKEN, TOKENS_AN_ANSWER = 4, 8
"""What a dry run assumes: characters in a token of English text, and tokens of the answer `{"rating": 3}`."""

WHAT = {"n": "objects", "v": "actions"}

SYSTEM = (
    "You compare word meanings for the evaluation of systems that describe photographs of people. "
    "Your whole reply is one JSON object and nothing else."
)
TASK = """\
Two {what} as WordNet defines them:

A. {a} -- {gloss_a}
B. {b} -- {gloss_b}

Think of a photograph that shows A. How well would B name the same thing? Go by the definitions, not by the words.
4: one can stand for the other
3: nearly the same, a small shade apart
2: clearly related, yet a careful observer keeps them apart
1: something in common, no more
0: nothing to do with each other

Reply with {{"rating": N}}, where N is 0, 1, 2, 3 or 4."""
REMINDER = 'That was not the format. Reply with {"rating": N} alone, N being a whole number from 0 to 4.'
SETUP = hashlib.sha256(json.dumps([SYSTEM, TASK, {}], sort_keys=True).encode()).hexdigest()[:8]
"""Eight letters that identify the wording, so that answers to another one are not reused."""


@dataclass(frozen=True)
class Question:
    """A question about two senses of one part of speech, `a` before `b` alphabetically, with WordNet's definitions."""

    pos: str
    a: str
    b: str
    gloss_a: str
    gloss_b: str

    def messages(self) -> list[dict[str, str]]:
        """Return the conversation that asks the question, as a chat completion takes it."""
        task = TASK.format(what=WHAT[self.pos], a=self.a, b=self.b, gloss_a=self.gloss_a, gloss_b=self.gloss_b)
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]


def parse_rating(text: str) -> int | None:
    """Return the rating (0 to 4) in a model's answer, {"rating": N} or a bare number; None without just one.

    A model's reasoning (`<think>` to `</think>`), code fences and words around the object are ignored."""
    text = text.rsplit("</think>", 1)[-1]
    if "<think>" in text:  # the reasoning was cut off before an answer
        return None
    ratings = {match.group(1) or match.group(2) for match in _RATING.finditer(text)}
    if not ratings and re.fullmatch(r"\s*[0-4]\s*", text):
        return int(text)
    return int(float(ratings.pop())) if len(ratings) == 1 else None


_RATING = re.compile(r"""["']rating["']\s*:\s*(?:["']([0-4](?:\.0+)?)["']|([0-4](?:\.0+)?))(?=\s*[,}])""")


def questions(pairs: Sequence[Pair]) -> list[Question]:
    """Return a question for each pair of senses. Raises `DataError` for a sense that WordNet does not have."""
    wordnet = open_wordnet()
    canonical_names = {sense: wordnet.graph.names[row] for sense, row in synsets_of(pairs).items()}
    gloss = {sense: wordnet.reader.synset(name).definition() for sense, name in canonical_names.items()}
    return [Question(pos, a, b, gloss[a], gloss[b]) for pos, a, b in pairs]


Key = tuple[str, str, str, str, str]
"""What identifies an asked question: (model, setup, pos, a, b)."""

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
        """Return what identifies the question: answers with the same key answer the same question."""
        return self.model, self.setup, self.pos, self.a, self.b

    def line(self) -> bytes:
        """Return the answer as a line (JSON) of the file of answers."""
        fields = {name: value for name, value in vars(self).items() if value is not None or name == "rating"}
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


class AnswerCache:
    """The usable answers so far, in memory and, with a path, in a file; `add` may be called from any thread. Raises
    `UsageError` if the file cannot be created or another run has it, `DataError` if it holds anything else."""

    def __init__(self, path: str | None) -> None:
        """Open the file, creating it if need be, lock it and read its answers. path: None to keep nothing on disk."""
        self._answers: dict[Key, Answer] = {}
        self._adding = threading.Lock()
        self._path = path or os.devnull
        self._ends_inside_a_line = False
        self._open = True
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
            if path is not None:
                self._lock_and_read()
        except OSError as error:
            raise UsageError(f"{arg('cache', path)}: {error.strerror}; give a file that can be written") from None

    def rating(self, key: Key) -> int | None:
        """Return the rating of a question, None if there is none yet; of two answers the first counts."""
        answer = self._answers.get(key)
        return None if answer is None else answer.rating

    def days(self, model: str, setup: str) -> set[str]:
        """Return the days on which a model answered, as far as they are known."""
        answers = [answer for answer in self._answers.values() if (answer.model, answer.setup) == (model, setup)]
        return {answer.date for answer in answers if answer.date is not None}

    def add(self, answer: Answer) -> None:
        """Store an answer; when this returns, it is on disk. Raises `DataError` if it cannot be written."""
        with self._adding:
            if not self._open:  # a thread that is later than the end of the run
                return
            self._remember(answer)
            unwritten = memoryview(b"\n" + answer.line() if self._ends_inside_a_line else answer.line())
            self._ends_inside_a_line = True  # until all of the line is written
            try:
                while unwritten:
                    unwritten = unwritten[os.write(self._file, unwritten) :]
                if self._path != os.devnull:
                    os.fsync(self._file)
            except OSError as error:
                problem = f"cannot be written ({error.strerror}); make room and run again"
                raise DataError(problem, place=self._path) from None
            self._ends_inside_a_line = False

    def close(self) -> None:
        """Close the file; answers that threads bring later are dropped."""
        with self._adding:
            self._open = False
            os.close(self._file)

    def _remember(self, answer: Answer) -> None:
        """Keep an answer in memory if it has a rating, unless its question has one already."""
        if answer.rating is not None:
            self._answers.setdefault(answer.key, answer)

    def _lock_and_read(self) -> None:
        """Lock the file for this run, where the system can (Windows cannot), and read its answers."""
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
                    self._remember(_parse_answer(line))
            except DataError as error:
                raise error.add_place(Place.in_file(self._path, number)) from None
            except (KeyError, TypeError, ValueError) as error:
                # A line that was cut off (invalid JSON, but it begins like an answer) is ignored.
                if not isinstance(error, orjson.JSONDecodeError) or not line.startswith(_BEGINNING[: len(line)]):
                    problem = "no answer of a model (model, setup, pos, a, b, rating); is this the file for"
                    raise DataError(f"{problem} {arg('cache')}?", place=Place.in_file(self._path, number)) from None
        self._ends_inside_a_line = bool(data) and not data.endswith(b"\n")


def _parse_answer(line: bytes) -> Answer:
    """Return the answer in a line. Raises `KeyError`, `TypeError`, `ValueError` or `DataError` if it holds none."""
    record = orjson.loads(line)
    refuse_repeated_key(line, record, "")
    model, setup, pos, a, b, rating = (record[name] for name in ("model", "setup", "pos", "a", "b", "rating"))
    if any(type(part) is not str for part in (model, setup, pos, a, b)) or not (rating is None or is_rating(rating)):
        raise ValueError
    date = record.get("date")
    if date is not None and (type(date) is not str or not DATES.fullmatch(date)):
        raise ValueError
    return Answer(model, setup, pos, a, b, rating, date=date)


class Interview:
    """Asks models about pairs of senses and stores every answer. models: the raters' names, the screening one first;
    failures: the questions that got no rating, each with the reason."""

    def __init__(
        self,
        endpoint: Endpoint,
        cache: AnswerCache,
        models: Sequence[str],
        screen: str | None = None,
        *,
        jobs: int = 8,
        skip: bool = False,
    ) -> None:
        """Set who is asked and how. screen: a model that rates all pairs first; if it rates a pair 0, the others are
        not asked about it. jobs: how many questions are asked at a time. skip: whether a server that does not answer
        only costs a rating; otherwise it ends the run."""
        self.models = tuple(dict.fromkeys([*([screen] if screen else []), *models]))
        self.failures: list[tuple[Question, str]] = []
        self._endpoint, self._cache, self._screen, self._jobs, self._skip = endpoint, cache, screen, jobs, skip

    def ratings(self, questions_asked: Sequence[Question]) -> list[dict[str, int]]:
        """Return, for each question, {model: its rating} of the models that gave one; ask those that are still to be
        asked. What the screening model rates 0 (unrelated) is not asked of the others, and keeps that rating alone;
        what it gives no rating is."""
        screen, related = self._screen, questions_asked
        if screen is not None:
            self._ask([(screen, question) for question in questions_asked], f"screening with {screen}")
            related = [question for question in questions_asked if self._cached_rating(screen, question) != 0]
        self._ask([(model, question) for question, model in product(related, self.models) if model != screen], "asking")
        table = []
        for question in questions_asked:
            cached = {model: self._cached_rating(model, question) for model in sorted(self.models)}
            scores = {model: rating for model, rating in cached.items() if rating is not None}
            if screen is not None and scores.get(screen) == 0:
                scores = {screen: 0}  # another run may have asked the other models; this table is the screened one
            table.append(scores)
        return table

    def rate_pairs(self, work: TableWork, policy: ErrorPolicy) -> Iterator[Record]:
        """Ask the models, and yield the lines of the rated pairs. If questions have no usable answer, raise `DataError`
        after the last line: stdout then has the lines of the other pairs, an output file is not written, and the cache
        has all answers. Only a note says so if the policy skips such questions."""
        ratings = self.ratings(questions(work.pairs))
        # SETUP is the digest of the wording: answers to another one do not count
        days = {model: self._cache.days(model, SETUP) for model in self.models}
        failed = {(question.pos, question.a, question.b) for question, _ in self.failures}

        def mean_rating(pair: Pair, scores: dict[str, int]) -> Rated:
            """Return the mean of the models' scores {model: 0 to 4} of a pair, scaled to [0, 1]."""
            if not scores or (pair in failed and not policy.skip):  # a mean over only some of the models would mislead
                return Rated(None)
            date = days_of(chain.from_iterable(days[model] for model in scores))
            return Rated(sum(scores.values()) / (SCALE * len(scores)), scores, prompt=SETUP, date=date)

        yield from work.rows([mean_rating(*row) for row in zip(work.pairs, ratings, strict=True)])
        if failed:
            problem = f"{len(self.failures):,} questions got no usable answer, the first: {self.failures[0][1]}"
            if not policy.skip:
                raise DataError(f"{problem}; run again to ask them again, or pass {arg('on_error', 'skip')}")
            note(f"{problem}; the other models' ratings stand")
        policy.report()

    def plan_rows(self, work: TableWork, price: tuple[float, float] | None = None) -> Iterator[Row]:
        """Yield one row for each model with what `rate_pairs` would cost, without asking anything: the number of
        questions, including those that screening may save, the estimated tokens, and their cost. price: of a million
        tokens (sent, received); None for rows without the cost."""
        questions_asked = questions(work.pairs)
        for model in self.models:
            unanswered = [question for question in questions_asked if self._cached_rating(model, question) is None]
            if self._screen is not None and model != self._screen:
                unanswered = [question for question in unanswered if self._cached_rating(self._screen, question) != 0]
            characters = sum(
                len(message["content"])
                for message in chain.from_iterable(question.messages() for question in unanswered)
            )
            tokens_in, tokens_out = math.ceil(characters / CHARACTERS_A_TOKEN), TOKENS_AN_ANSWER * len(unanswered)
            row = {"model": model, "pairs": len(questions_asked), "questions": len(unanswered)}
            row |= {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}
            cost = {} if price is None else {"cost": round((tokens_in * price[0] + tokens_out * price[1]) / 1e6, 4)}
            yield {**row, **cost}
        note(f"asked nothing. Estimates: {CHARACTERS_A_TOKEN} characters a token, {TOKENS_AN_ANSWER} tokens an answer")

    def _key(self, model: str, question: Question) -> Key:
        """Return the key under which the cache has a model's answer to a question."""
        return model, SETUP, question.pos, question.a, question.b

    def _cached_rating(self, model: str, question: Question) -> int | None:
        """Return the rating that a model has already given to a question, None if it has given none."""
        return self._cache.rating(self._key(model, question))

    def _ask(self, tasks: Sequence[tuple[str, Question]], label: str) -> None:
        """Ask each (model, question) that has no rating yet, in threads; store the answers, and the failures. Raises
        the first error after all threads have ended; Ctrl-C waits for none of them, as a request may take minutes."""
        tasks = [(model, question) for model, question in tasks if self._cached_rating(model, question) is None]
        stop = threading.Event()
        client = Client(self._endpoint, stop)
        queue, reasons = deque(enumerate(tasks)), [""] * len(tasks)
        errors: list[BaseException] = []
        progress_lock = threading.Lock()

        def work() -> None:
            """Take tasks from the queue and ask them, until the queue is empty or the run stops."""
            while not stop.is_set():
                try:
                    number, task = queue.popleft()
                except IndexError:
                    return
                try:
                    reasons[number] = self._rate(client, *task)
                except BaseException as error:  # noqa: BLE001  the main thread raises it
                    errors.append(error)
                    stop.set()  # what is under way ends with a `StoppedError`, after this error
                with progress_lock:
                    progress.advance()

        with Progress(label, total=len(tasks), unit=" questions") as progress:
            threads = []
            for _ in range(min(self._jobs, len(tasks))):
                own_context = copy_context()  # it says where notes go
                threads.append(threading.Thread(target=own_context.run, args=(work,), daemon=True))
            try:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            finally:
                stop.set()
        if errors:
            raise errors[0]
        for (model, question), reason in zip(tasks, reasons, strict=True):
            if reason:
                self.failures.append((question, f"{model} on {question.a} and {question.b} ({reason})"))

    def _rate(self, client: Client, model: str, question: Question) -> str:
        """Ask a model one question, up to ASKS times, until there is a rating. Return why there is none, else ""."""
        messages, text = question.messages(), ""
        for _ in range(ASKS):
            try:
                reply = client.send(model, messages)
            except DataError as error:
                if not self._skip:
                    problem = f"{error.problem}; run again to go on"
                    raise DataError(problem, place=error.place, code=error.code) from None
                return error.problem
            rating, text = parse_rating(reply), self._endpoint.hide_key(reply)[:2000]
            today = time.strftime("%Y-%m-%d", time.gmtime())
            self._cache.add(Answer(*self._key(model, question), rating, text if rating is None else None, today))
            if rating is not None:
                return ""
            # The same question would get the same answer at temperature 0, so a reminder is added.
            assistant_turn = [{"role": "assistant", "content": text}] if text.strip() else []
            messages = [*question.messages(), *assistant_turn, {"role": "user", "content": REMINDER}]
        return f"said {self._endpoint.quote(text)!r}"
