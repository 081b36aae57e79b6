"""The HTTP client that asks a language model, with retries."""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPException, InvalidURL
from typing import Any, NoReturn

from hoicli.errors import DataError, arg
from hoicli.io.messages import note
from hoicli.shoe.endpoint import Endpoint, one_line_of

RETRIES = 8
"""Tries of a request that the server refuses temporarily or does not answer."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before the second try, doubled for each further try, and their maximum."""
LONGEST_RETRY_AFTER = 300.0
"""The most seconds that a server's Retry-After can make us wait at a time."""
TOLD = 5.0
"""Seconds without an answer after which the user is told why nothing happens."""
LONGEST_ANSWER = 1 << 20
"""Bytes of a response; a rating takes a few hundred, a model that writes out its reasoning some thousands."""
LONGEST_ERROR = 1 << 13
"""Bytes of an error response that are looked at."""


class ServerError(DataError):
    """An endpoint refuses a request, or has not answered it after `RETRIES` tries."""


class StoppedError(Exception):
    """The run ends; waiting threads give up."""


class _LaterError(Exception):
    """The request may succeed later, after `seconds` at least."""

    def __init__(self, reason: str, seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.seconds = seconds


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, so that requests go only to the given URL."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Client:
    """Sends conversations to an `Endpoint`, with retries; used from many threads. `stop`: once set, nothing more is
    sent or waited for, and `send` raises `StoppedError`.
    """

    def __init__(self, endpoint: Endpoint, stop: threading.Event) -> None:
        self._endpoint = endpoint
        self._stop = stop
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._not_before = 0.0
        self._told = False

    def send(self, model: str, messages: Sequence[Mapping[str, str]]) -> str:
        """The model's reply, tried again with growing pauses while the server is busy, absent or broken.

        Raises `ServerError` when it refuses (a wrong key, an unknown model) or has failed `RETRIES` times.
        """
        wait, began = FIRST_WAIT, time.monotonic()
        for attempt in range(1, RETRIES + 1):
            self._pause_until(self._not_before)
            try:
                return self._request(model, messages)
            except _LaterError as later:
                now = time.monotonic()
                if attempt == RETRIES:
                    raise self._error(f"{later}, {RETRIES} times") from None
                if max(later.seconds, now + wait - began) >= TOLD and not self._told:
                    self._told = True  # what the user would otherwise wait for in silence
                    asked = f"waiting for {later.seconds:,.0f} s, as it asks (Retry-After)"
                    pause = asked if later.seconds >= TOLD else f"trying again, {RETRIES} times in all"
                    note(f"{self._endpoint.shown(self._endpoint.chat)}: {later}; {pause}")
                # The server's Retry-After holds for all requests; this request's own pause only spreads its tries.
                self._not_before = max(self._not_before, now + later.seconds)
                self._pause_until(time.monotonic() + wait * random.uniform(0.75, 1.25))  # noqa: S311
                wait = min(2 * wait, LONGEST_WAIT)
        raise AssertionError("unreachable")

    def _error(self, problem: str) -> ServerError:
        """The error of this endpoint."""
        return ServerError(problem, place=self._endpoint.shown(self._endpoint.chat))

    def _quoted(self, text: str) -> str:
        """A server's text on one short line, without the key."""
        return one_line_of(self._endpoint.shown(text))

    def _pause_until(self, moment: float) -> None:
        """Wait until a time of the monotonic clock. Raises `StoppedError` if the run ends before it."""
        left = moment - time.monotonic()
        if (left > 0 and self._stop.wait(left)) or self._stop.is_set():
            raise StoppedError

    def _request(self, model: str, messages: Sequence[Mapping[str, str]]) -> str:
        """Send one request. Raises `_LaterError` for a temporary failure, `ServerError` for a permanent one."""
        body = {"model": model, "messages": list(messages), "temperature": 0, **self._endpoint.body}
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "hoicli"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        late = _LaterError(f"no answer within {self._endpoint.timeout:g} s")
        latest = time.monotonic() + self._endpoint.timeout
        # The scheme is http or https: Endpoint checks it.
        request = urllib.request.Request(self._endpoint.chat, json.dumps(body).encode(), headers)  # noqa: S310
        try:
            with self._opener.open(request, timeout=self._endpoint.timeout) as response:
                data = _body(response.read1, latest)
        except urllib.error.HTTPError as error:
            with error:
                self._refused(error, model, latest)
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise late from None
            raise _LaterError(f"no connection ({self._quoted(str(error.reason))})") from None
        except TimeoutError:
            raise late from None
        except (InvalidURL, ValueError):  # their text may hold the user and password of a proxy
            problem = f"cannot be asked; check {arg('base_url')}, and the proxies in HTTP_PROXY, HTTPS_PROXY"
            raise self._error(problem) from None
        except (HTTPException, OSError) as error:
            words = self._quoted(str(error)) or type(error).__name__
            raise _LaterError(f"the connection broke ({words})") from None
        return _reply(data)

    def _refused(self, error: urllib.error.HTTPError, model: str, latest: float) -> NoReturn:
        """Turn an HTTP status into an exception."""
        try:
            said = self._quoted(_message(_body(error.read1, latest)[:LONGEST_ERROR]))
        except (HTTPException, OSError):
            said = ""
        reason = f"HTTP {error.code}{f' ({said})' if said else ''}"
        if error.code in (408, 409, 425, 429) or error.code >= 500:
            raise _LaterError(reason, _retry_after(error.headers.get("Retry-After")))
        if error.code in (401, 403):
            advice = f"put a valid key into {self._endpoint.key_name}, or name its variable with {arg('key_env')}"
        elif error.code == 404:
            advice = f"check {arg('base_url')} (usually it ends in /v1) and {arg('model', model)}"
        elif 300 <= error.code < 400:
            where = self._quoted(str(error.headers.get("Location")))
            advice = f"it redirects to {where}; give the final address as {arg('base_url')}"
        else:
            advice = f"the server does not take the request; check {arg('model', model)} and {arg('body')}"
        raise self._error(f"{reason}: {advice}") from None


def _body(read: Callable[[int], bytes], latest: float) -> bytes:
    """The whole response, within a limit of size. Raises TimeoutError after `latest`, by the monotonic clock: the
    socket's own timeout begins anew with every byte."""
    parts, size = [], 0
    while part := read(1 << 16):
        parts.append(part)
        size += len(part)
        if time.monotonic() > latest:
            raise TimeoutError
        if size > LONGEST_ANSWER:
            raise _LaterError(f"more than {LONGEST_ANSWER:,} bytes for an answer")
    return b"".join(parts)


def _reply(data: bytes) -> str:
    """The text of a chat completion. Raises `_LaterError` for anything else."""
    try:
        text = json.loads(data)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise _LaterError("an answer that is no chat completion") from None
    # Half a character (`"\\ud800"` in JSON), which no file can hold, becomes a question mark.
    return text.encode(errors="replace").decode() if isinstance(text, str) else ""


def _message(data: bytes) -> str:
    """The message of an error response."""
    try:
        document = json.loads(data)
        said = document["error"]
        said = said["message"] if isinstance(said, dict) else said
    except (ValueError, KeyError, TypeError, RecursionError):
        said = data.decode("utf-8", "replace")
    return str(said)


def _retry_after(value: str | None) -> float:
    """Seconds of a Retry-After header, which gives a number or a date; 0 without one that can be read."""
    for seconds_of in (float, lambda date: parsedate_to_datetime(date).timestamp() - time.time()):
        with suppress(TypeError, ValueError, OverflowError, OSError):
            return min(max(0.0, seconds_of(value or "")), LONGEST_RETRY_AFTER)  # nan becomes 0
    return 0.0
