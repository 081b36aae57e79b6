"""Language models as raters of how close two senses are, 0 to 4, at any endpoint with OpenAI's protocol.

As in SHOE (supplement, sections 1, 3 and 6): a model is given both glosses and answers with a whole number, 0 for
unrelated to 4 for interchangeable; one model may screen all pairs first, and what it rates 0 is not sent to the others.
The wording is ours. Answers are stored (`answers`), so that nothing is asked or paid for twice.

The standard library's HTTP client in threads is all this needs: a request takes seconds, its overhead a millisecond.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hoicli.errors import DataError, arg
from hoicli.io.messages import note
from hoicli.io.progress import Progress
from hoicli.records.parsing import Record
from hoicli.shoe.answers import Answer, AnswerCache, Key
from hoicli.shoe.client import Client, ServerError
from hoicli.shoe.endpoint import Endpoint, one_line_of
from hoicli.shoe.questions import REMINDER, Question, parse_rating, setup_of

ASKS = 3
"""How often a question is asked if answers are not ratings."""

CHARACTERS_A_TOKEN, TOKENS_AN_ANSWER = 4, 8
"""For the estimate of a dry run: English text in current tokenizers, and `{"rating": 3}`."""


Task = tuple[str, Question]
"""A model, and what it is asked."""


@dataclass(frozen=True)
class Failure:
    """A question without a usable answer, and why."""

    model: str
    question: Question
    reason: str

    def __str__(self) -> str:
        return f"{self.model} on {self.question} ({self.reason})"


class Interview:
    """Asks models about pairs of senses, several at a time, and stores every answer. `failures`: the questions without
    a rating, in their order; with `skip` a server that does not answer is a failure, otherwise it ends the run.
    `answers`: how many there were in this run.
    """

    def __init__(self, endpoint: Endpoint, cache: AnswerCache, *, jobs: int = 8, skip: bool = False) -> None:
        self.failures: list[Failure] = []
        self.answers = 0
        self._endpoint = endpoint
        self._setup = setup_of(endpoint)
        self._cache = cache
        self._jobs = jobs
        self._skip = skip
        self._counting = threading.Lock()

    def ratings(
        self, questions: Sequence[Question], models: Sequence[str], screen: str | None = None
    ) -> list[dict[str, int]]:
        """The ratings of each question by model. If `screen` rates a question 0, the other models are not asked. The
        screening model is also a rater, even if `models` does not name it.
        """
        related = questions
        if screen is not None:
            self._ask([(screen, question) for question in questions], f"screening with {screen}")
            related = [question for question in questions if self._known(screen, question)]
        self._ask([(model, question) for question in related for model in models if model != screen], "asking")
        table = []
        for question in questions:
            known = {model: self._known(model, question) for model in sorted({*models, screen or models[0]})}
            scores = {model: rating for model, rating in known.items() if rating is not None}
            if screen is not None and scores.get(screen) == 0:
                scores = {screen: 0}  # another run may have asked the other models; this table is the screened one
            table.append(scores)
        return table

    def plan(self, questions: Sequence[Question], models: Sequence[str], screen: str | None) -> Iterator[Record]:
        """The questions that `ratings` would ask, one row for each model, including those that screening may save."""
        for model in dict.fromkeys([screen, *models] if screen is not None else models):
            rest = [question for question in questions if self._known(model, question) is None]
            if screen is not None and model != screen:
                rest = [question for question in rest if self._known(screen, question) != 0]
            characters = sum(len(message["content"]) for question in rest for message in question.messages())
            yield {
                "model": model,
                "pairs": len(questions),
                "questions": len(rest),
                "prompt_tokens": -(-characters // CHARACTERS_A_TOKEN),
                "completion_tokens": TOKENS_AN_ANSWER * len(rest),
            }

    def _key(self, model: str, question: Question) -> Key:
        return model, self._setup, question.pos, question.a, question.b

    def _known(self, model: str, question: Question) -> int | None:
        return self._cache.rating(self._key(model, question))

    def _ask(self, tasks: Sequence[Task], label: str) -> None:
        """Ask every question without an answer. Raises the first `DataError` after all threads have ended."""
        tasks = [(model, question) for model, question in tasks if self._known(model, question) is None]
        stop = threading.Event()
        client = Client(self._endpoint, stop)
        waiting: queue.SimpleQueue[tuple[int, Task]] = queue.SimpleQueue()
        for item in enumerate(tasks):
            waiting.put(item)
        failures: dict[int, Failure] = {}
        faults: list[BaseException] = []
        ended: queue.SimpleQueue[None] = queue.SimpleQueue()

        def work() -> None:
            with suppress(queue.Empty):
                while not stop.is_set():
                    number, task = waiting.get_nowait()
                    try:
                        failure = self._rate(client, *task)
                    except BaseException as error:  # noqa: BLE001  the main thread raises it
                        faults.append(error)
                        stop.set()  # what is under way ends with a `StoppedError`, after this error
                    else:
                        failures.update({} if failure is None else {number: failure})
                    with self._counting:
                        progress.advance()
            ended.put(None)

        # Not an executor: the process waits for its threads, but a second Ctrl-C must not wait for a server.
        left = min(self._jobs, len(tasks))
        with Progress(label, total=len(tasks), unit=" questions") as progress:
            for _ in range(left):
                threading.Thread(target=work, daemon=True).start()
            while left:
                try:
                    ended.get()
                    left -= 1
                except KeyboardInterrupt as interrupt:
                    if stop.is_set():
                        raise
                    note(f"stopping; waiting for {left} answers under way (Ctrl-C again leaves them)")
                    faults.insert(0, interrupt)
                    stop.set()
        fault = next(iter(faults), None)
        if isinstance(fault, ServerError):
            raise DataError(f"{fault.problem}; {self._what_is_left()}", place=fault.place)
        if fault is not None:
            raise fault
        self.failures += [failures[number] for number in sorted(failures)]

    def _what_is_left(self) -> str:
        """For messages: what happens to the answers of a run that ends early."""
        if not self.answers:
            return "nothing was answered"
        if self._cache.on_disk:
            return "what was answered is kept, run again to go on"
        return f"the answers so far ({self.answers:,}) are lost, run again with {arg('cache', like='FILE')}"

    def _rate(self, client: Client, model: str, question: Question) -> Failure | None:
        """Ask until there is a rating; returns the failure if there is none."""
        messages = question.messages()
        for _ in range(ASKS):
            try:
                reply = client.send(model, messages)
            except ServerError as error:
                if not self._skip:
                    raise
                return Failure(model, question, error.problem)
            rating, text = parse_rating(reply), self._endpoint.shown(reply)[:2000]
            unusable = text if rating is None else None
            today = time.strftime("%Y-%m-%d", time.gmtime())
            self._cache.add(Answer(*self._key(model, question), rating, unusable, today))
            with self._counting:
                self.answers += 1
            if rating is not None:
                return None
            # The same question would get the same answer at temperature 0, so a reminder is added.
            said = [{"role": "assistant", "content": text}] if text.strip() else []
            messages = [*question.messages(), *said, {"role": "user", "content": REMINDER}]
        return Failure(model, question, f"said {one_line_of(text)!r}")


def failures_error(failures: Iterable[Failure], *, kept: bool) -> DataError:
    """The failures as one error. `kept`: whether the answers to other questions are on disk."""
    failures = list(failures)
    shown = "; ".join(map(str, failures[:10]))
    more = f"; and {len(failures) - 10:,} more" if len(failures) > 10 else ""
    again = "run again to ask them again"
    if not kept:
        again = f"run again with {arg('cache', like='FILE')} to ask all again once"
    count = f"{len(failures):,} questions got no usable answer"
    return DataError(f"{count}: {shown}{more}; {again}, or pass {arg('on_error', 'skip')}")
