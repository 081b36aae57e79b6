"""Language models as raters: how close are two senses, 0 to 4, asked of any endpoint that speaks OpenAI's protocol.

As in SHOE (supplement, sections 1, 3 and 6): a model is given both glosses and answers with a whole number, 0 for
unrelated to 4 for interchangeable; one model may screen all pairs first, and what it rates 0 is not sent to the others.
The wording is ours. Answers go through `llm_cache`, so that nothing is asked or paid for twice.

The standard library's HTTP client in threads is all this needs: a request takes seconds, its overhead a millisecond.
Proxies are taken from the environment; redirects are refused, so that nothing goes anywhere but to the URL given.
"""

from __future__ import annotations

import hashlib
import json
import queue
import random
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPException, InvalidURL
from typing import Any, NoReturn

from hoicli.errors import DataError
from hoicli.semantics.endpoint import Endpoint
from hoicli.semantics.llm_cache import Answer, AnswerCache, Key, is_rating
from hoicli.streams import Progress, note

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

RETRIES = 8
"""Tries of a request that the server refuses for now or does not answer."""
ASKS = 3
"""Times a question is asked until the answer is a rating."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before the second try, doubled from try to try, and where the doubling ends."""
LONGEST_RETRY_AFTER = 900.0
"""Seconds a server may make us wait by Retry-After."""
TRUSTED_RETRY_AFTERS = 3
"""Times that Retry-After alone says how long to wait; a server that is still busy then gets the growing pauses too."""
LONGEST_ANSWER = 1 << 20
"""Bytes of a response; a rating takes a few hundred, a model that thinks aloud some thousands."""
LONGEST_ERROR = 1 << 13
"""Bytes of a response that says what is wrong."""

CHARACTERS_A_TOKEN, TOKENS_AN_ANSWER = 4, 8
"""For the estimate of a dry run: English text in current tokenizers, and `{"rating": 3}`."""


@dataclass(frozen=True)
class Question:
    """Two senses of one part of speech, `a` before `b`, with their glosses."""

    pos: str
    a: str
    b: str
    gloss_a: str
    gloss_b: str

    def messages(self) -> list[dict[str, str]]:
        """The conversation that asks it."""
        task = TASK.format(what=WHAT[self.pos], a=self.a, b=self.b, gloss_a=self.gloss_a, gloss_b=self.gloss_b)
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]

    def __str__(self) -> str:
        return f"{self.a} and {self.b}"


def parse_rating(text: str) -> int | None:
    """The rating in an answer, None where there is none that is plain to see.

    What a model thinks aloud is passed over (`<think>` to `</think>`), code fences and words around the object are
    borne with, and "3" or 3.0 is 3; two different ratings, or a number outside 0..4, are no answer.
    """
    text = text.rsplit("</think>", 1)[-1]
    if "<think>" in text:
        return None
    found = {match.group(1) or match.group(2) for match in _RATING.finditer(text)}
    if not found and re.fullmatch(r"\s*[0-4]\s*", text):
        return int(text)
    return int(float(found.pop())) if len(found) == 1 else None


_RATING = re.compile(r"""["']rating["']\s*:\s*(?:["']([0-4](?:\.0+)?)["']|([0-4](?:\.0+)?))(?=\s*[,}])""")


def setup_of(endpoint: Endpoint) -> str:
    """Eight letters for the wording and the extra fields: answers to other wordings are other answers."""
    text = json.dumps([SYSTEM, TASK, dict(endpoint.body)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Reply:
    """What the server sent for one request: the text, and the tokens where it counts them."""

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _LaterError(Exception):
    """The server wants the request again, after `seconds` (None: it does not say when)."""

    def __init__(self, reason: str, seconds: float | None = None) -> None:
        super().__init__(reason)
        self.seconds = seconds


class ServerError(DataError):
    """What an endpoint that refuses, or stays away, leaves to do."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Client:
    """Sends conversations to an `Endpoint` and sees to it that they are answered; used from many threads.

    `stop`: once set, nothing is sent or waited for any more, and `send` raises `StoppedError`.
    """

    def __init__(self, endpoint: Endpoint, stop: threading.Event) -> None:
        self._endpoint = endpoint
        self._stop = stop
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._not_before = 0.0

    def send(self, model: str, messages: Sequence[Mapping[str, str]]) -> Reply:
        """The model's reply, tried again with growing pauses while the server is busy, absent or broken.

        Raises `ServerError` when it refuses (a wrong key, an unknown model) or has failed `RETRIES` times.
        """
        wait = FIRST_WAIT
        for attempt in range(1, RETRIES + 1):
            self._pause_until(self._not_before)
            try:
                return self._request(model, messages)
            except _LaterError as later:
                if attempt == RETRIES:
                    raise self._error(f"{later}, {RETRIES} times") from None
                if later.seconds is not None:  # it speaks for all our requests
                    self._not_before = max(self._not_before, time.monotonic() + later.seconds)
                if later.seconds is None or attempt > TRUSTED_RETRY_AFTERS:
                    # The jitter only spreads the requests out; no result depends on it.
                    self._pause_until(time.monotonic() + wait * random.uniform(0.75, 1.25))  # noqa: S311
                    wait = min(2 * wait, LONGEST_WAIT)
        raise AssertionError("unreachable")

    def _error(self, problem: str) -> ServerError:
        return ServerError(problem, place=self._endpoint.shown(self._endpoint.chat))

    def _quoted(self, text: str) -> str:
        """What a server said, on one short line, without the key."""
        return _one_line(self._endpoint.shown(text))

    def _pause_until(self, moment: float) -> None:
        left = moment - time.monotonic()
        if (left > 0 and self._stop.wait(left)) or self._stop.is_set():
            raise StoppedError

    def _request(self, model: str, messages: Sequence[Mapping[str, str]]) -> Reply:
        """One request. Raises `_LaterError` for what may pass, `ServerError` for what will not."""
        body = {"model": model, "messages": list(messages), "temperature": 0, **self._endpoint.body}
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "hoicli"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        # The scheme is http or https: Endpoint has seen to that.
        data = json.dumps(body).encode()
        request = urllib.request.Request(self._endpoint.chat, data, headers, method="POST")  # noqa: S310
        deadline = time.monotonic() + self._endpoint.timeout
        try:
            with self._opener.open(request, timeout=self._endpoint.timeout) as response:
                return _reply(_body(response.read1, deadline))
        except urllib.error.HTTPError as error:
            with error:
                self._refused(error, model)
        except urllib.error.URLError as error:
            raise _LaterError(f"no connection ({self._quoted(str(error.reason))})") from None
        except TimeoutError:
            raise _LaterError(f"no answer within {self._endpoint.timeout:g} s") from None
        except (InvalidURL, ValueError):  # their text may hold the user and password of a proxy
            raise self._error("cannot be asked; check --base-url, and the proxies in HTTP_PROXY, HTTPS_PROXY") from None
        except (HTTPException, OSError) as error:
            raise _LaterError(f"the connection broke ({self._quoted(str(error)) or type(error).__name__})") from None

    def _refused(self, error: urllib.error.HTTPError, model: str) -> NoReturn:
        """Turn an HTTP status into an exception."""
        try:
            said = self._quoted(_message(error.read(LONGEST_ERROR)))
        except (HTTPException, OSError):
            said = ""
        reason = f"HTTP {error.code}{f' ({said})' if said else ''}"
        if error.code in (408, 409, 425, 429) or error.code >= 500:
            raise _LaterError(reason, _retry_after(error.headers.get("Retry-After")))
        mends = {
            401: f"put a valid key into {self._endpoint.key_name}, or name its variable with --key-env",
            403: f"put a valid key into {self._endpoint.key_name}, or name its variable with --key-env",
            404: f"check --base-url (usually it ends in /v1) and --model {model}",
        }
        if 300 <= error.code < 400:
            where = self._quoted(str(error.headers.get("Location")))
            mend = f"it redirects to {where}; give the final address as --base-url"
        else:
            mend = mends.get(error.code, f"the server does not take the request; check --model {model} and --body")
        raise self._error(f"{reason}: {mend}") from None


class StoppedError(Exception):
    """The run ends; whoever waits gives up."""


def _body(read: Callable[[int], bytes], deadline: float) -> bytes:
    """The whole response, within its time and size: a server that trickles is one that does not answer."""
    parts, size = [], 0
    while part := read(1 << 16):
        parts.append(part)
        size += len(part)
        if size > LONGEST_ANSWER:
            raise _LaterError(f"more than {LONGEST_ANSWER:,} bytes for an answer")
        if time.monotonic() > deadline:
            raise TimeoutError
    return b"".join(parts)


def _reply(data: bytes) -> Reply:
    """The text and the tokens of a chat completion. Raises `_LaterError` for anything that is none."""
    try:
        document = json.loads(data)
        text = document["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise _LaterError("an answer that is no chat completion") from None
    usage = document.get("usage")
    counts = [usage.get(name) if isinstance(usage, dict) else None for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (count if type(count) is int and 0 <= count < 1 << 40 else None for count in counts)
    return Reply(text if isinstance(text, str) else "", prompt, completion)


def _message(data: bytes) -> str:
    """What an error response says."""
    try:
        document = json.loads(data)
        said = document["error"]
        said = said["message"] if isinstance(said, dict) else said
    except (ValueError, KeyError, TypeError, RecursionError):
        said = data.decode("utf-8", "replace")
    return str(said)


def _one_line(text: str) -> str:
    """A text as it is quoted in a message."""
    line = " ".join(text[:1000].split())
    return line if len(line) <= 120 else line[:117] + "..."


def _retry_after(value: str | None) -> float | None:
    """Seconds of a Retry-After header, given as a number or a date; None without one that can be read."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError, OSError):
            return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER) if seconds == seconds else None


@dataclass(frozen=True)
class Failure:
    """A question without a usable answer, and why."""

    model: str
    question: Question
    reason: str

    def __str__(self) -> str:
        return f"{self.model} on {self.question} ({self.reason})"


@dataclass
class Usage:
    """Tokens that servers said they used in this run, and questions they answered."""

    answers: int = 0
    prompt: int = 0
    completion: int = 0


class Interview:
    """Asks models about pairs of senses, several at a time, and keeps every answer.

    `failures`: what got no rating after all, in the order of the questions; with `skip` a server that stays away is one
    of them, otherwise it ends the run. `usage`: what this run cost.
    """

    def __init__(self, endpoint: Endpoint, cache: AnswerCache, *, jobs: int = 8, skip: bool = False) -> None:
        self.failures: list[Failure] = []
        self.usage = Usage()
        self._endpoint = endpoint
        self._setup = setup_of(endpoint)
        self._cache = cache
        self._jobs = jobs
        self._skip = skip

    def ratings(
        self, questions: Sequence[Question], models: Sequence[str], screen: str | None = None
    ) -> list[dict[str, int]]:
        """For each question the ratings by model: of `screen` first, and where it says 0, of no other.

        The screening model is a rater like the others, whether `models` names it or not.
        """
        others = [model for model in models if model != screen]
        if screen is not None:
            self._ask([(screen, question) for question in questions], f"screening with {screen}")
            related = [question for question in questions if self._known(screen, question)]
        else:
            related = list(questions)
        self._ask([(model, question) for question in related for model in others], "asking")
        asked = [screen, *others] if screen is not None else others
        table = []
        for question in questions:
            known = {model: self._known(model, question) for model in sorted(asked)}
            scores = {model: rating for model, rating in known.items() if rating is not None}
            if screen is not None and scores.get(screen) == 0:
                scores = {screen: 0}  # another run may have asked the others; this one's table is the screened one
            table.append(scores)
        return table

    def plan(self, questions: Sequence[Question], models: Sequence[str], screen: str | None) -> Iterator[PlanRow]:
        """What `ratings` would ask, a row a model; questions that a screening may save are counted."""
        for model in dict.fromkeys([screen, *models] if screen is not None else models):
            rest = [question for question in questions if self._known(model, question) is None]
            if screen is not None and model != screen:
                rest = [question for question in rest if self._known(screen, question) != 0]
            characters = sum(len(message["content"]) for question in rest for message in question.messages())
            yield PlanRow(
                model, len(questions), len(rest), -(-characters // CHARACTERS_A_TOKEN), TOKENS_AN_ANSWER * len(rest)
            )

    def _key(self, model: str, question: Question) -> Key:
        return model, self._setup, question.pos, question.a, question.b

    def _known(self, model: str, question: Question) -> int | None:
        return self._cache.rating(self._key(model, question))

    def _ask(self, tasks: Sequence[tuple[str, Question]], label: str) -> None:
        """Put every question that has no answer yet. Raises the first `DataError` after all threads have ended."""
        tasks = [(model, question) for model, question in tasks if self._known(model, question) is None]
        stop = threading.Event()
        client = Client(self._endpoint, stop)
        waiting = iter(enumerate(tasks))
        taking = threading.Lock()
        done: queue.SimpleQueue[tuple[int, Failure | None] | BaseException | None] = queue.SimpleQueue()

        def work() -> None:
            try:
                while not stop.is_set():
                    with taking:
                        number, (model, question) = next(waiting, (-1, ("", None)))
                    if question is None:
                        break
                    done.put((number, self._rate(client, model, question)))
            except StoppedError:
                pass
            except BaseException as error:  # noqa: BLE001  raised again where it is waited for
                done.put(error)
            finally:
                done.put(None)

        # Daemons: a second Ctrl-C must not wait for a server.
        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(self._jobs, len(tasks)))]
        running = len(threads)
        failures: dict[int, Failure] = {}
        fault: BaseException | None = None
        for thread in threads:
            thread.start()
        with Progress(label, total=len(tasks), unit=" questions") as progress:
            while running:
                try:
                    result = done.get()
                except KeyboardInterrupt as interrupt:
                    if stop.is_set():
                        raise
                    note(f"stopping; waiting for {running} answers under way (Ctrl-C again leaves them)")
                    fault = interrupt
                    stop.set()
                    continue
                if result is None:
                    running -= 1
                elif isinstance(result, BaseException):
                    fault = fault or result
                    stop.set()
                else:
                    progress.advance()
                    if result[1] is not None:
                        failures[result[0]] = result[1]
        if isinstance(fault, ServerError):
            raise DataError(f"{fault.problem}; {self._what_is_left()}", place=fault.place)
        if fault is not None:
            raise fault
        self.failures += [failures[number] for number in sorted(failures)]

    def _what_is_left(self) -> str:
        """What became of the answers of a run that ends early."""
        if not self.usage.answers:
            return "nothing was answered"
        if self._cache.on_disk:
            return "what was answered is kept, run again to go on"
        return f"the answers so far ({self.usage.answers:,}) are lost, run again with --cache FILE"

    def _rate(self, client: Client, model: str, question: Question) -> Failure | None:
        """Ask until there is a rating; what keeps the model from giving one is the failure."""
        if self._known(model, question) is not None:  # another process was faster
            return None
        messages = question.messages()
        for _ in range(ASKS):
            try:
                reply = client.send(model, messages)
            except ServerError as error:
                if not self._skip:
                    raise
                return Failure(model, question, error.problem)
            rating = parse_rating(reply.text)
            self._keep(model, question, reply, rating)
            if rating is not None:
                return None
            # The same question would get the same answer: temperature is 0.
            text = self._endpoint.shown(reply.text)
            said = [{"role": "assistant", "content": text[:2000]}] if text.strip() else []
            messages = [*question.messages(), *said, {"role": "user", "content": REMINDER}]
        return Failure(model, question, f"said {_one_line(text)!r}")

    def _keep(self, model: str, question: Question, reply: Reply, rating: int | None) -> None:
        assert rating is None or is_rating(rating)
        self._cache.add(
            Answer(
                *self._key(model, question),
                rating,
                text=self._endpoint.shown(reply.text)[:2000] if rating is None else None,
                prompt_tokens=reply.prompt_tokens,
                completion_tokens=reply.completion_tokens,
            )
        )
        with _COUNTING:
            self.usage.answers += 1
            self.usage.prompt += reply.prompt_tokens or 0
            self.usage.completion += reply.completion_tokens or 0


_COUNTING = threading.Lock()


@dataclass(frozen=True)
class PlanRow:
    """Of one model: the pairs, those still to be asked, and the estimated tokens of asking them."""

    model: str
    pairs: int
    to_ask: int
    prompt_tokens: int
    completion_tokens: int

    def cost(self, price: tuple[float, float]) -> float:
        """In the currency of `price`, which is for a million tokens in and a million out."""
        return (self.prompt_tokens * price[0] + self.completion_tokens * price[1]) / 1e6


def failures_error(failures: Iterable[Failure], *, kept: bool) -> DataError:
    """The failures as one error. `kept`: whether the answers to other questions are on disk."""
    failures = list(failures)
    shown = "; ".join(map(str, failures[:10]))
    more = f"; and {len(failures) - 10:,} more" if len(failures) > 10 else ""
    again = "run again to ask them again" if kept else "run again with --cache FILE to ask all again once"
    return DataError(
        f"{len(failures):,} questions got no usable answer: {shown}{more}; {again}, or pass --on-error skip"
    )
