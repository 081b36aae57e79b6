"""The server of language models and its API key, which is checked before use and never shown. A server, or a proxy
before it, may repeat the key in an error, a header or an answer. So every text from a server goes through
`Endpoint.shown` before it is printed or stored.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
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
"""A key with fewer letters and digits (`x`, `none`, for local servers) occurs in too many words to search for its
encoded forms."""


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
        """A text that is safe to print or store: without the key. The key itself is replaced by IN_ITS_PLACE. A text
        that contains it in another form (in capitals, spaced out, in pieces of FRAGMENT letters or more, escaped as in
        JSON, a URL or HTML, as base64 or hexadecimal digits) is WITHHELD."""
        text = text[:LONGEST_SHOWN]
        if not self.key:
            return text
        text = text.replace(self.key, IN_ITS_PLACE)
        return WITHHELD if any(part in view for view in _views(text) for part in self._parts) else text

    @cached_property
    def _parts(self) -> frozenset[str]:
        """The strings that would show the key: FRAGMENT consecutive letters of it, in each of its forms."""
        key = (self.key or "").encode()
        if len(_letters(key.decode())) < DISGUISED:
            return frozenset()
        forms = [key.decode(), key.hex()]
        for before in range(3):  # base64 depends on the number of bytes before it, and its ends on their neighbours
            code = base64.b64encode(bytes(before) + key).decode()
            forms.append(code[-(-before * 8 // 6) : (before + len(key)) * 8 // 6])
        return frozenset(
            letters[start : start + FRAGMENT]
            for letters in map(_letters, forms)
            for start in range(max(1, len(letters) - FRAGMENT + 1))
        )


def request_fields(text: str | None, shown: Callable[[str], str] = str) -> dict[str, Any]:
    """The value of `--body`. Raises `UsageError` for anything but a JSON object of finite numbers; `shown` makes its
    text fit to be printed."""
    try:
        value = json.loads("{}" if text is None else text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        line = " ".join(str(text)[:1000].split())
        line = line if len(line) <= 120 else line[:117] + "..."
        raise UsageError(f"{arg('body', shown(line))}: give a JSON object, for example '{{\"max_tokens\": 50}}'")
    return value


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


_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|[abfnrtv])")


def _views(text: str) -> Iterator[str]:
    """The letters of a text, and of the text after each round of resolving escapes."""
    for _ in range(5):
        yield _letters(text)
        before = text
        text = _ESCAPE.sub(lambda found: chr(int(found[1] or found[2] or "20", 16)), text)
        text = html.unescape(unquote(text))
        if text == before:
            return


def _letters(text: str) -> str:
    """The letters and digits of a text in lower case: other characters and capitals do not hide a key."""
    return "".join(filter(str.isalnum, text)).lower()
