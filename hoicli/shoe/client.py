"""The server of language models: its address and key, and the requests to it, with retries.

The key is checked before use and never shown. A server, or a proxy before it, may repeat it in an error, a header or an
answer, so every text from a server goes through `Endpoint.hide_key` before it is printed or stored.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
import urllib.error
import urllib.request
from base64 import b32encode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http.client import HTTPException, InvalidURL
from typing import NoReturn
from urllib.parse import urlsplit

from hoicli.errors import DataError, Place, UsageError, arg
from hoicli.io.messages import note
from hoicli.io.web import opener

KEY_NAME = "OPENAI_API_KEY"
"""The environment variable with the key."""
TIMEOUT = 300.0
"""Seconds for a whole answer, from the connection to its last byte, before asking again."""
RETRIES = 8
"""Tries of a request that the server refuses temporarily or does not answer."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before the second try, doubled for each further try, and their maximum."""
LONGEST_RETRY_AFTER = 300.0
"""The most seconds that a server's Retry-After can make us wait at a time."""
LONGEST_ANSWER = 1 << 20
"""Bytes of a response; a rating takes a few hundred, a model that writes out its reasoning some thousands."""
LONGEST_SHOWN = 1 << 13
"""Characters of a server's text that are checked; only these may be printed or stored."""
IN_ITS_PLACE = "[key]"
WITHHELD = "(not shown: it may have the API key in it)"
FRAGMENT = 12
"""A text with this many consecutive letters and digits of the key counts as showing it."""
DISGUISED = 6
"""A key with fewer letters and digits (`x`, `none`, for local servers) occurs in too many words to be looked for in any
form but its own."""


@dataclass(frozen=True)
class Endpoint:
    """A server of language models: its `url`, with or without /chat/completions, and its key if it needs one. Raises
    `UsageError` for an invalid URL or key, or a URL that contains a secret; the message does not quote it."""

    url: str
    key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # RFC 6750's bearer tokens, and more; an HTTP client's error would quote a key with a line break.
        if self.key is not None and not re.fullmatch(r"[!-~]+", self.key):
            problem = "its key holds a space, a line break or another character that no key has (not shown here)"
            raise UsageError(f"{KEY_NAME}: {problem}; put the key alone into the variable")
        form = "http://HOST[:PORT]/v1 or https://HOST/v1"
        if re.search("[@?#]", self.url):
            problem = f"holds a user, a query or a fragment, which is not shown here; give {form}"
            raise UsageError(f"{arg('base_url')}: {problem}, and put the key into {KEY_NAME}")
        if not _is_url(self.url):
            raise UsageError(f"{arg('base_url', self.hide_key(self.url))}: give {form}")

    @property
    def chat(self) -> str:
        """Return the URL that conversations are sent to."""
        return self.url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"

    def hide_key(self, text: str) -> str:
        """Return the text in a form that is safe to print or store: with IN_ITS_PLACE instead of the key. Return
        WITHHELD if it has the key in capitals, spaced out, in base64, in numbers of its bytes, or in pieces of FRAGMENT
        letters or more of any of these, or if it has escapes that may spell the key."""
        text = text[:LONGEST_SHOWN]
        if not self.key:
            return text
        text, letters = text.replace(self.key, IN_ITS_PLACE), _letters(text.replace(self.key, " "))
        if len(_letters(self.key)) < DISGUISED:
            return text
        escapes = re.search(r"\\|%[0-9a-f]|&#|&\w+;", text, re.IGNORECASE)
        return WITHHELD if escapes or any(part in letters for part in _parts(self.key)) else text

    def quote(self, text: str) -> str:
        """Return a text as messages may quote it: safe to print, on one line, cut to 120 characters."""
        line = " ".join(self.hide_key(text)[:1000].split())
        return line if len(line) <= 120 else line[:117] + "..."


def _is_url(text: str) -> bool:
    """Return whether a text is http://HOST[:PORT]/... or https://..., of plain characters."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port  # raises for a bad number
        host.encode("idna")  # an empty part between dots, or one of more than 63 letters
    except ValueError:
        return False
    plain = re.fullmatch(r"[!-~]+", text) and re.fullmatch(r"[0-9A-Za-z._:-]+(%[0-9A-Za-z]+)?", host)
    return parts.scheme in ("http", "https") and port != 0 and plain is not None


def _letters(text: str) -> str:
    """Return the letters and digits of a text in lower case: other characters and capitals do not hide a key."""
    return "".join(filter(str.isalnum, text)).lower()


@lru_cache(maxsize=4)
def _parts(key: str) -> frozenset[str]:
    """Return every piece that no shown text may have among its letters: FRAGMENT letters in a row of the key, of its
    bytes in hexadecimal and decimal numbers, and of its base64 and base32 after any bytes before it (`Bearer `,
    `user:`)."""
    data = key.encode()
    forms = [key, data.hex(), "".join(f"0x{byte:02x}" for byte in data), "".join(map(str, data))]
    for encode, block, bits in ((b64encode, 3, 6), (b32encode, 5, 5)):
        for bytes_before in range(block):
            encoded = encode(bytes(bytes_before) + data).decode()
            # from the first character without bits of the bytes before (rounded up) to the last full one
            forms.append(encoded[-(-8 * bytes_before // bits) : 8 * (bytes_before + len(data)) // bits])
    letters = [form for form in map(_letters, forms) if len(form) >= DISGUISED]
    starts = ((form, start) for form in letters for start in range(max(1, len(form) - FRAGMENT + 1)))
    return frozenset(form[start : start + FRAGMENT] for form, start in starts)


class StoppedError(Exception):
    """Raised in waiting threads when the run ends, so that they give up."""


class _LaterError(Exception):
    """Raised when the request may succeed later, after `seconds` at least."""

    def __init__(self, reason: str, seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.seconds = seconds


class _LateError(_LaterError):
    """Raised when there was no complete answer within TIMEOUT."""


class Client:
    """Sends conversations to an `Endpoint`, with retries; used from many threads. stop: once it is set, nothing more is
    sent or waited for, and `send` raises `StoppedError`."""

    def __init__(self, endpoint: Endpoint, stop: threading.Event) -> None:
        self._endpoint = endpoint
        self._stop = stop
        self._opener = opener()
        self._not_before = 0.0
        self._late = False

    def send(self, model: str, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the model's reply, tried again with growing pauses while the server is busy, absent or broken.

        Raises `DataError` when the server refuses (a wrong key, an unknown model) or has failed `RETRIES` times.
        """
        wait, reason = FIRST_WAIT, ""
        for attempt in range(RETRIES):
            if attempt:  # the server's Retry-After holds for all requests, this pause for this one alone
                self._pause_until(time.monotonic() + wait * random.uniform(0.75, 1.25))  # noqa: S311
                wait = min(2 * wait, LONGEST_WAIT)
            self._pause_until(self._not_before)
            try:
                return self._request(model, messages)
            except _LaterError as later:
                reason = str(later)
                self._not_before = max(self._not_before, time.monotonic() + later.seconds)
                if isinstance(later, _LateError) and not self._late:  # eight tries take forty minutes
                    self._late = True
                    note(f"{self._endpoint.hide_key(self._endpoint.chat)}: {reason}; asking up to {RETRIES} times")
        raise self._error(f"{reason}, {RETRIES} times")

    def _error(self, problem: str) -> DataError:
        return DataError(problem, place=Place(self._endpoint.hide_key(self._endpoint.chat)), code="network")

    def _pause_until(self, moment: float) -> None:
        """Wait until a time of the monotonic clock. Raises `StoppedError` if the run ends before it."""
        remaining = moment - time.monotonic()
        if (remaining > 0 and self._stop.wait(remaining)) or self._stop.is_set():
            raise StoppedError

    def _request(self, model: str, messages: Sequence[Mapping[str, str]]) -> str:
        """Send one request. Raises `_LaterError` for a temporary failure, `DataError` for a permanent one."""
        body = {"model": model, "messages": list(messages), "temperature": 0}
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "hoicli"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        late = _LateError(f"no answer within {TIMEOUT:g} s")
        # The scheme is http or https: Endpoint checks it.
        request = urllib.request.Request(self._endpoint.chat, json.dumps(body).encode(), headers)  # noqa: S310
        try:
            with self._opener.open(request, timeout=TIMEOUT) as response:
                data = response.read(LONGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            with error:
                self._raise_for_status(error, model)
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise late from None
            raise _LaterError(f"no connection ({self._endpoint.quote(str(error.reason))})") from None
        except TimeoutError:
            raise late from None
        except (InvalidURL, ValueError):  # their text may hold the user and password of a proxy
            problem = f"cannot be asked; check {arg('base_url')}, and the proxies in HTTP_PROXY, HTTPS_PROXY"
            raise self._error(problem) from None
        except (HTTPException, OSError) as error:
            words = self._endpoint.quote(str(error)) or type(error).__name__
            raise _LaterError(f"the connection broke ({words})") from None
        if len(data) > LONGEST_ANSWER:
            raise _LaterError(f"more than {LONGEST_ANSWER:,} bytes for an answer")
        return _reply(data)

    def _raise_for_status(self, error: urllib.error.HTTPError, model: str) -> NoReturn:
        """Raise the exception that an HTTP status stands for."""
        try:
            server_text = self._endpoint.quote(_message(error.read(LONGEST_SHOWN)))
        except (HTTPException, OSError):
            server_text = ""
        reason = f"HTTP {error.code}{f' ({server_text})' if server_text else ''}"
        if error.code in (408, 409, 425, 429) or error.code >= 500:
            raise _LaterError(reason, _retry_after(error.headers.get("Retry-After")))
        if error.code in (401, 403):
            advice = f"put a valid key into {KEY_NAME}"
        elif 300 <= error.code < 400:
            where = self._endpoint.quote(str(error.headers.get("Location")))
            advice = f"it redirects to {where}; give the final address as {arg('base_url')}"
        else:
            advice = f"check {arg('base_url')} (usually it ends in /v1) and {arg('model', model)}"
        raise self._error(f"{reason}: {advice}") from None


def _reply(data: bytes) -> str:
    """Return the text of a chat completion. Raises `_LaterError` for anything else."""
    try:
        text = json.loads(data)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise _LaterError("an answer that is no chat completion") from None
    # Half a character (`"\\ud800"` in JSON), which no file can hold, becomes a question mark.
    return text.encode(errors="replace").decode() if isinstance(text, str) else ""


def _message(data: bytes) -> str:
    """Return the message of an error response."""
    try:
        message = json.loads(data)["error"]
        message = message["message"] if isinstance(message, dict) else message
    except (ValueError, KeyError, TypeError, RecursionError):
        message = data.decode("utf-8", "replace")
    return str(message)


def _retry_after(value: str | None) -> float:
    """Return the seconds that a Retry-After header asks to wait; 0 without one that is a number."""
    try:
        return min(max(0.0, float(value or 0)), LONGEST_RETRY_AFTER)  # nan becomes 0
    except ValueError:
        return 0.0
