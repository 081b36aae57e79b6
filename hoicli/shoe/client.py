"""The server of language models: its address and key, and the requests to it, with retries.

The key is checked before use and never shown. A server, or a proxy before it, may repeat it in an error, a header or an
answer, so every text from a server goes through `Endpoint.hide_key` before it is printed or stored."""

from __future__ import annotations

import json
import math
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
        """Check the key and the URL."""
        # Every printable ASCII character is allowed, which is more than the bearer tokens of RFC 6750 have. A key with
        # a line break must be refused here, since the HTTP client's error message would quote it.
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
        """Return the beginning of a text in a form that is safe to print or store: with IN_ITS_PLACE instead of the
        key. Return WITHHELD instead if the text may show the key in another form: in capitals, spaced out, in base64,
        as numbers of its bytes, in pieces of at least FRAGMENT letters of any of these, or spelt with escapes."""
        text = text[:LONGEST_SHOWN]
        if not self.key:
            return text
        without_key = text.replace(self.key, IN_ITS_PLACE)
        if len(_letters(self.key)) < DISGUISED:  # so short a key occurs by chance in any text
            return without_key
        other_letters = _letters(text.replace(self.key, " "))
        escapes = re.search(r"\\|%[0-9a-f]|&#|&\w+;", without_key, re.IGNORECASE)
        shows_key = escapes or any(piece in other_letters for piece in _telling_pieces(self.key))
        return WITHHELD if shows_key else without_key

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
def _telling_pieces(key: str) -> frozenset[str]:
    """Return every piece that no shown text may have among its letters and digits: each FRAGMENT consecutive ones of
    the key, of its bytes written as hexadecimal or decimal numbers, and of its base64 and base32 encodings. An encoding
    depends on how many bytes stand before the key (`Bearer `, `user:`), so each possible one is included."""
    data = key.encode()
    forms = [key, data.hex(), "".join(f"0x{byte:02x}" for byte in data), "".join(map(str, data))]
    for encode, bytes_in_group, bits_in_character in ((b64encode, 3, 6), (b32encode, 5, 5)):
        for bytes_before in range(bytes_in_group):
            encoded = encode(bytes(bytes_before) + data).decode()
            # Only the characters that consist of the key's own bits alone are the same behind all bytes.
            first = math.ceil(8 * bytes_before / bits_in_character)
            end = 8 * (bytes_before + len(data)) // bits_in_character
            forms.append(encoded[first:end])
    pieces = set[str]()
    for form in map(_letters, forms):
        if len(form) >= DISGUISED:
            pieces.update(form[start : start + FRAGMENT] for start in range(max(1, len(form) - FRAGMENT + 1)))
    return frozenset(pieces)


class StoppedError(Exception):
    """Raised in waiting threads when the run ends, so that they give up."""


class _TemporaryError(Exception):
    """Raised when a request failed but may succeed if it is repeated."""

    def __init__(self, reason: str, seconds: float = 0.0) -> None:
        """Set the reason to show, and the seconds that the server asks to wait before the next try."""
        super().__init__(reason)
        self.seconds = seconds


class _TimeoutError(_TemporaryError):
    """Raised when there was no complete answer within TIMEOUT."""


class Client:
    """Sends conversations to an `Endpoint`, with retries; used from many threads."""

    def __init__(self, endpoint: Endpoint, stop: threading.Event) -> None:
        """Make a client of a server. stop: once it is set, nothing more is sent, and `send` raises `StoppedError`."""
        self._endpoint = endpoint
        self._stop = stop
        self._opener = opener()
        self._not_before = 0.0  # no request is sent before this time of the monotonic clock
        self._told_of_timeout = False

    def send(self, model: str, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the model's reply to a conversation, a sequence of {"role", "content"}. A request that fails for a
        temporary reason is repeated after growing pauses.

        Raises `DataError` when the server refuses (a wrong key, an unknown model) or has failed `RETRIES` times."""
        wait, reason = FIRST_WAIT, ""
        for attempt in range(RETRIES):
            if attempt:  # the server's Retry-After (`_not_before`) holds for all threads, this pause for this one
                self._pause_until(time.monotonic() + wait * random.uniform(0.75, 1.25))  # noqa: S311
                wait = min(2 * wait, LONGEST_WAIT)
            self._pause_until(self._not_before)
            try:
                return self._request(model, messages)
            except _TemporaryError as error:
                reason = str(error)
                self._not_before = max(self._not_before, time.monotonic() + error.seconds)
                if isinstance(error, _TimeoutError) and not self._told_of_timeout:  # all tries take forty minutes
                    self._told_of_timeout = True
                    note(f"{self._endpoint.hide_key(self._endpoint.chat)}: {reason}; asking up to {RETRIES} times")
        raise self._error(f"{reason}, {RETRIES} times")

    def _error(self, problem: str) -> DataError:
        """Return the error for a server that cannot be used; it names the server's URL."""
        return DataError(problem, place=Place(self._endpoint.hide_key(self._endpoint.chat)), code="network")

    def _pause_until(self, moment: float) -> None:
        """Wait until a time of the monotonic clock. Raises `StoppedError` if the run ends before it."""
        remaining = moment - time.monotonic()
        if (remaining > 0 and self._stop.wait(remaining)) or self._stop.is_set():
            raise StoppedError

    def _request(self, model: str, messages: Sequence[Mapping[str, str]]) -> str:
        """Send one request and return the model's reply. Raises `_TemporaryError` for a failure that may pass,
        `DataError` for one that does not."""
        body = {"model": model, "messages": list(messages), "temperature": 0}
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "hoicli"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        timed_out = _TimeoutError(f"no answer within {TIMEOUT:g} s")
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
                raise timed_out from None
            raise _TemporaryError(f"no connection ({self._endpoint.quote(str(error.reason))})") from None
        except TimeoutError:
            raise timed_out from None
        except (InvalidURL, ValueError):  # their text may hold the user and password of a proxy
            problem = f"cannot be asked; check {arg('base_url')}, and the proxies in HTTP_PROXY, HTTPS_PROXY"
            raise self._error(problem) from None
        except (HTTPException, OSError) as error:
            words = self._endpoint.quote(str(error)) or type(error).__name__
            raise _TemporaryError(f"the connection broke ({words})") from None
        if len(data) > LONGEST_ANSWER:
            raise _TemporaryError(f"more than {LONGEST_ANSWER:,} bytes for an answer")
        return _reply(data)

    def _raise_for_status(self, error: urllib.error.HTTPError, model: str) -> NoReturn:
        """Raise the exception that an HTTP error stands for: `_TemporaryError` if the server is busy or broken,
        `DataError` with advice if it refuses."""
        try:
            server_text = self._endpoint.quote(_message(error.read(LONGEST_SHOWN)))
        except (HTTPException, OSError):
            server_text = ""
        reason = f"HTTP {error.code}{f' ({server_text})' if server_text else ''}"
        if error.code in (408, 409, 425, 429) or error.code >= 500:
            raise _TemporaryError(reason, _retry_after(error.headers.get("Retry-After")))
        if error.code in (401, 403):
            advice = f"put a valid key into {KEY_NAME}"
        elif 300 <= error.code < 400:
            where = self._endpoint.quote(str(error.headers.get("Location")))
            advice = f"it redirects to {where}; give the final address as {arg('base_url')}"
        else:
            advice = f"check {arg('base_url')} (usually it ends in /v1) and {arg('model', model)}"
        raise self._error(f"{reason}: {advice}") from None


def _reply(data: bytes) -> str:
    """Return the text in the JSON of a chat completion, "" if it has none. Raises `_TemporaryError` for others."""
    try:
        text = json.loads(data)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise _TemporaryError("an answer that is no chat completion") from None
    # Half a character (`"\\ud800"` in JSON), which no file can hold, becomes a question mark.
    return text.encode(errors="replace").decode() if isinstance(text, str) else ""


def _message(data: bytes) -> str:
    """Return the message in the body of an error response: its JSON's `error`, or all of the body."""
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
