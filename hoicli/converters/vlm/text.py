"""The values in the text of a vision-language model's answer: JSON as models write it.

The text is nothing but JSON, or has it in one code fence; after `<think>`, within `<answer>`. Accepted are single
quotes, comments, trailing or missing commas, Python's words for true and null, parentheses for brackets, and a text
that is cut off, of which every complete item is kept. Nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

DEEPEST = 40
"""Levels of brackets; answers have four."""
LONGEST = 100_000
"""Characters of an answer; a longer one, by a model that repeats itself without end, is not read."""


@dataclass
class Values:
    """The content of a text: the values in order, and whether the last one was cut off."""

    values: list[Any] = field(default_factory=list)
    cut: bool = False


class Spoken(str):
    """A string of an answer with its place: `start`, the index of its first character in the answer's text."""

    __slots__ = ("start",)
    start: int

    @classmethod
    def at(cls, text: str, start: int) -> Spoken:
        """A text that begins at `start` of the answer."""
        made = cls(text)
        made.start = start
        return made


Span = tuple[int, int]
"""The first character of something in an answer's text, and the one after its last."""


def span_of(said: Any, words: str) -> Span | None:
    """Where in an answer a value says the words of a verb or a label, spaces for underscores; None for a value without
    a place, as in an answer that was parsed before. In a list it is the first item that has them."""
    if isinstance(said, list):
        return next((span for item in said if (span := span_of(item, words)) is not None), None)
    if not isinstance(said, Spoken) or not words:
        return None
    pattern = r"[\W_]+".join(map(re.escape, words.split("_")))
    found = re.search(pattern, said, re.IGNORECASE)
    return (said.start + found.start(), said.start + found.end()) if found else None


def final_part(text: str) -> Spoken:
    """The part of an answer that counts: after its thoughts, within `<answer>`. Raises `ValueError`, whose text is the
    reason, for a text that is too long, a thought without an end, and several answers."""
    if len(text) > LONGEST:
        raise ValueError(f"an answer of more than {LONGEST:,} characters")
    start, end = max(0, text.rfind("</think>") + len("</think>") if "</think>" in text else 0), len(text)
    if "<think>" in text[start:] and "<answer>" not in text[start:]:
        raise ValueError("an answer whose thought has no end")
    if text.count("<answer>", start) > 1:
        raise ValueError("several <answer> in one answer")
    if (answer := text.find("<answer>", start)) >= 0:
        start = answer + len("<answer>")
        end = text.find("</answer>", start)
        if end < 0 or text[end + len("</answer>") :].strip():
            raise ValueError("an <answer> without an end, or with more after it")
    return Spoken.at(text[start:end], start)


def values_in(part: Spoken) -> Values:
    """The objects and lists of a final part that is nothing but these, or of its one code fence, whatever stands around
    it. None of any other text. Raises `ValueError` for several fences."""
    fences = list(_FENCE.finditer(part))
    if len(fences) > 1:
        raise ValueError("several code fences in one answer")
    if fences:
        part = Spoken.at(fences[0][1], part.start + fences[0].start(1))
    found = Values()
    reader = _ValueReader(part, 0, part.start)
    try:
        while reader.opens():
            value = reader.value(0)
            if value or not reader.cut:
                found.values.append(value)
            if reader.cut:
                found.cut = True
                return found
        return found if reader.ended() else Values()
    except _CutOffError:
        found.cut = True
        return found
    except _NoValueError:
        return Values()


_FENCE = re.compile(r"```[a-zA-Z0-9_]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)


class _NoValueError(Exception):
    """There is no value at this place."""


class _CutOffError(Exception):
    """The text ends within a value of which nothing complete is left."""


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_SKIP = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_SINGLE = re.compile(r"'((?:[^'\\]|\\.|'(?!\s*(?:[,:}\])]|\Z)))*)'", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_CLOSING = {"[": "]", "(": ")"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class _ValueReader:
    """Reads one value from a place in a text; `cut` says that the text ended within it."""

    def __init__(self, text: str, position: int, base: int = 0) -> None:
        self.base = base
        self.text = text
        self.position = position
        self.cut = False

    def opens(self) -> bool:
        """Whether an object or a list comes next, after a comma if need be."""
        self._skip()
        if self.text[self.position : self.position + 1] == ",":
            self.position += 1
            self._skip()
        return self.text[self.position : self.position + 1] in ("{", "[")

    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.position >= len(self.text)

    def value(self, depth: int) -> Any:
        """The value at the position. Raises `_NoValueError`, or `_CutOffError` at the end of the text."""
        self._skip()
        head = self._head()
        if depth > DEEPEST:
            raise _NoValueError
        if head == "{":
            return self._object(depth)
        if head in _CLOSING:
            return self._list(depth, _CLOSING[head])
        if head in "\"'":
            return self._string()
        if number := _NUMBER.match(self.text, self.position):
            if number.end() == len(self.text):  # digits may be missing
                raise _CutOffError
            self.position = number.end()
            text = number.group()
            return float(text) if not text.lstrip("-").isdigit() or len(text) > 15 else int(text)
        word = _WORD.match(self.text, self.position)
        if word is not None and word.group() in _WORDS:
            self.position = word.end()
            return _WORDS[word.group()]
        raise _NoValueError

    def _list(self, depth: int, closing: str) -> list[Any]:
        self.position += 1
        items: list[Any] = []
        while True:
            try:
                self._skip()
                if self._head() == closing:
                    self.position += 1
                    return items
                if self._head() == "," and items:
                    self.position += 1
                    continue
                items.append(self.value(depth + 1))
                if self.cut:
                    return items
                self._skip()
                if self._head() not in ",{[" + closing:
                    raise _NoValueError
            except _CutOffError:
                self.cut = True
                return items

    def _object(self, depth: int) -> dict[str, Any]:
        self.position += 1
        entries: dict[str, Any] = {}
        while True:
            self._skip()
            head = self._head()
            if head == "}":
                self.position += 1
                return entries
            if head == ",":
                self.position += 1
                continue
            key = self._key()
            self._skip()
            if self._head() != ":":
                raise _NoValueError
            self.position += 1
            entries[key] = value = self.value(depth + 1)
            if self.cut:  # a list in it was cut off; whole items in that list are kept, half an item is not
                if isinstance(value, list) and value and all(isinstance(item, dict | list) for item in value):
                    return entries
                if isinstance(value, dict):
                    return entries
                raise _CutOffError

    def _key(self) -> str:
        if self._head() in "\"'":
            return self._string()
        word = _WORD.match(self.text, self.position)
        if word is None:
            raise _NoValueError
        self.position = word.end()
        return word.group()

    def _string(self) -> str:
        pattern = _DOUBLE if self._head() == '"' else _SINGLE
        match = pattern.match(self.text, self.position)
        if match is None:
            raise _CutOffError
        self.position = match.end()
        return Spoken.at(_unescaped(match.group(1)), self.base + match.start(1))

    def _skip(self) -> None:
        match = _SKIP.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def _head(self) -> str:
        """The character at the position. Raises `_CutOffError` at the end of the text."""
        if self.position >= len(self.text):
            raise _CutOffError
        return self.text[self.position]


def _unescaped(text: str) -> str:
    """A string's content with escapes resolved; an unknown escape means its character."""
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        if match["code"]:
            return chr(int(match["code"], 16))
        return _ESCAPES.get(match["one"], match["one"])

    return _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<one>.))", re.DOTALL)
