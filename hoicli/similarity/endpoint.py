"""The server that language models are asked at, and its key: checked before it is used, and shown to nobody.

A server, or a proxy before it, may send back what it was sent: in an error, in a header, in the answer itself. So
whatever a server said goes through `Endpoint.shown` before it is printed or kept.
"""

import base64
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

from hoicli.errors import UsageError

IN_ITS_PLACE = "[key]"
WITHHELD = "(not shown: it has the API key in it)"

LONGEST_SHOWN = 1 << 13
"""Characters of a server's text that are looked at; what is printed or kept of it is a part of them."""
FRAGMENT = 12
"""So many letters and digits of the key in a row are the key; fewer of a longer one are not."""
DISGUISED = 6
"""A key of fewer letters and digits (`x`, `none`: servers on one's own machine want some) is in too many words to be
looked for in disguise."""


@dataclass(frozen=True)
class Endpoint:
    """A server: `url` with or without its /chat/completions, the key if it wants one, seconds to wait for an answer.

    `body`: request fields beside model, messages and temperature. Raises `UsageError` for a URL that is none or that
    holds what belongs into the key's variable, and for a key that is none; neither is then quoted.
    """

    url: str
    key: str | None = field(default=None, repr=False)
    key_name: str = "OPENAI_API_KEY"
    timeout: float = 120.0
    body: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What RFC 6750 lets a bearer token hold, and more; a line break would be quoted by the HTTP client's error.
        if self.key is not None and not re.fullmatch(r"[!-~]+", self.key):
            raise UsageError(
                f"{self.key_name}: its key holds a line break, a space, a control character or one beyond ASCII (not "
                "shown here); put the key alone into the variable"
            )
        for mark, what in (("@", "a user or password"), ("?", "a query"), ("#", "a fragment")):
            if mark in self.url:
                raise UsageError(
                    f"--base-url: holds {what} ({mark}), which is not shown here; give http://HOST[:PORT]/v1 and put "
                    "the key into a variable (--key-env)"
                )
        if not _is_url(self.url):
            raise UsageError(f"--base-url {self.shown(self.url)}: give http://HOST[:PORT]/v1 or https://HOST/v1")

    @property
    def chat(self) -> str:
        """Where conversations go."""
        return self.url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"

    def shown(self, text: str) -> str:
        """A text as it may be printed or kept: without the key.

        The key as it is gives way to IN_ITS_PLACE. A text that has it in disguise (in capitals, spaced out, in pieces
        of FRAGMENT letters or more, escaped as in JSON, a URL or HTML, as base64 or hexadecimal digits) is WITHHELD.
        """
        text = text[:LONGEST_SHOWN]
        if not self.key:
            return text
        text = text.replace(self.key, IN_ITS_PLACE)
        return WITHHELD if any(part in view for view in _views(text) for part in self._parts) else text

    @cached_property
    def _parts(self) -> frozenset[str]:
        """What gives the key away: FRAGMENT letters of it in a row, in each of its disguises."""
        key = (self.key or "").encode()
        if len(_letters(key.decode())) < DISGUISED:
            return frozenset()
        forms = [key.decode(), key.hex()]
        for before in range(3):  # base64 depends on how many bytes come before, and its ends on what is around
            code = base64.b64encode(bytes(before) + key).decode()
            forms.append(code[-(-before * 8 // 6) : (before + len(key)) * 8 // 6])
        return frozenset(
            letters[start : start + FRAGMENT]
            for letters in map(_letters, forms)
            for start in range(max(1, len(letters) - FRAGMENT + 1))
        )


def _is_url(text: str) -> bool:
    """Whether a text is http://HOST[:PORT]/... or https://..., of plain characters."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises for what is no number
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and re.fullmatch(r"[!-~]+", text) is not None


_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|[abfnrtv])")


def _views(text: str) -> Iterator[str]:
    """The letters of a text, and of what it says once escapes are resolved, and those in it."""
    for _ in range(5):
        yield _letters(text)
        before = text
        text = _ESCAPE.sub(lambda found: chr(int(found[1] or found[2] or "20", 16)), text)
        text = html.unescape(unquote(text))
        if text == before:
            return


def _letters(text: str) -> str:
    """Letters and digits alone, and small: what is between them, and how large they are, makes no other key."""
    return "".join(filter(str.isalnum, text)).lower()
