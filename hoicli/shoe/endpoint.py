"""The server of language models and its API key, which is checked before use and never shown. A server, or a proxy
before it, may repeat the key in an error, a header or an answer. So every text from a server goes through
`Endpoint.shown` before it is printed or stored.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

from hoicli.errors import UsageError, arg

IN_ITS_PLACE = "[key]"
WITHHELD = "(not shown: it has the API key in it)"

LONGEST_SHOWN = 1 << 13
"""Characters of a server's text that are checked; only these may be printed or stored."""
FRAGMENT = 12
"""A text with this many consecutive letters and digits of the key counts as showing it."""
DISGUISED = 6
"""A key with fewer letters and digits (`x`, `none`, for local servers) occurs in too many words to be looked for in any
form but its own."""


@dataclass(frozen=True)
class Endpoint:
    """A server: `url` with or without /chat/completions, the key if it needs one, seconds to wait for an answer.
    `body`: request fields besides model, messages and temperature. Raises `UsageError` for an invalid URL or key, or a
    URL that contains a secret; the message does not quote it.
    """

    url: str
    key: str | None = field(default=None, repr=False)
    key_name: str = "OPENAI_API_KEY"
    timeout: float = 120.0
    body: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The characters of RFC 6750's bearer tokens, and more; an HTTP client's error would quote a key with a line
        # break.
        if self.key is not None and not re.fullmatch(r"[!-~]+", self.key):
            raise UsageError(
                f"{self.key_name}: its key holds a line break, a space, a control character or one beyond ASCII (not "
                "shown here); put the key alone into the variable"
            )
        for mark, what in (("@", "a user or password"), ("?", "a query"), ("#", "a fragment")):
            if mark in self.url:
                raise UsageError(
                    f"{arg('base_url')}: holds {what} ({mark}), which is not shown here; give http://HOST[:PORT]/v1 "
                    "and put "
                    f"the key into a variable ({arg('key_env')})"
                )
        if not _is_url(self.url):
            raise UsageError(f"{arg('base_url', self.shown(self.url))}: give http://HOST[:PORT]/v1 or https://HOST/v1")

    @property
    def chat(self) -> str:
        """The URL for conversations."""
        return self.url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"

    def shown(self, text: str) -> str:
        """A text that is safe to print or store: without the key, which is replaced by IN_ITS_PLACE. WITHHELD if it has
        the key in capitals, spaced out, escaped as in JSON, a URL or HTML, or in pieces of FRAGMENT letters or more."""
        text = text[:LONGEST_SHOWN]
        if not self.key:
            return text
        text = text.replace(self.key, IN_ITS_PLACE)
        plain = _ESCAPE.sub(lambda found: chr(int(found[1] or "20", 16)), text)
        views = _letters(text), _letters(html.unescape(unquote(plain)))
        return WITHHELD if any(part in view for part in self._parts for view in views) else text

    @cached_property
    def _parts(self) -> frozenset[str]:
        """The strings that would show the key: FRAGMENT consecutive letters of it."""
        letters = _letters(self.key or "")
        starts = range(max(1, len(letters) - FRAGMENT + 1)) if len(letters) >= DISGUISED else ()
        return frozenset(letters[start : start + FRAGMENT] for start in starts)


def request_fields(text: str | None, shown: Callable[[str], str] = str) -> dict[str, Any]:
    """The value of `--body`. Raises `UsageError` for anything but a JSON object of finite numbers; `shown` makes its
    text fit to be printed."""
    try:
        value = json.loads("{}" if text is None else text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        given = arg("body", shown(one_line_of(str(text))))
        raise UsageError(f"{given}: give a JSON object, for example '{{\"max_tokens\": 50}}'")
    return value


def one_line_of(text: str) -> str:
    """A text on one line, cut to 120 characters, for a message."""
    line = " ".join(text[:1000].split())
    return line if len(line) <= 120 else line[:117] + "..."


def _is_url(text: str) -> bool:
    """Whether a text is http://HOST[:PORT]/... or https://..., of plain characters."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port  # raises for a bad number
        host.encode("idna")  # an empty part between dots, or one of more than 63 letters
    except ValueError:
        return False
    plain = re.fullmatch(r"[!-~]+", text) and re.fullmatch(r"[0-9A-Za-z._:-]+(%[0-9A-Za-z]+)?", host)
    return parts.scheme in ("http", "https") and port != 0 and plain is not None


_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[abfnrtv])")


def _letters(text: str) -> str:
    """The letters and digits of a text in lower case: other characters and capitals do not hide a key."""
    return "".join(filter(str.isalnum, text)).lower()
