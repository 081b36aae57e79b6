"""The values in the text of a vision-language model's answer: JSON as models write it.

Accepted: prose around, code fences, `<think>` with or without its end, `<answer>`, single quotes, comments, trailing
or missing commas, Python's words for true and null, parentheses for brackets, and a text that is cut off, of which
every complete item is kept. Nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

DEEPEST = 40
"""Levels of brackets; answers have four."""
LONGEST = 1 << 20
"""Characters read of an answer; a model that repeats itself without end is cut off by its own limit long before."""


@dataclass
class Values:
    """The content of a text: the values in order; whether the last list was cut off, and whether a thought has no
    end."""

    values: list[Any] = field(default_factory=list)
    cut: bool = False
    unended_thought: bool = False


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
    """The part of an answer that counts: after its thoughts, within `<answer>`, and at most `LONGEST` characters."""
    start, end = 0, min(len(text), LONGEST)
    if (thought := text.rfind("</think>", 0, end)) >= 0:
        start = thought + len("</think>")
    if (answer := text.rfind("<answer>", start, end)) >= 0:
        start = answer + len("<answer>")
        close = text.find("</answer>", start, end)
        end = close if close >= 0 else end
    return Spoken.at(text[start:end], start)


def values_in(text: str) -> Values:
    """The objects and lists of an answer, in order. Without any, `values` is empty.

    Thoughts are ignored; if one has no end, its last value counts (later values replace drafts). If any code fence
    holds a value, only code fences count.
    """
    found = Values()
    part = final_part(text)
    found.unended_thought = "<think>" in text[:LONGEST] and not {"</think>", "<answer>"} & set(_ENDS.findall(text))
    effort = Effort(len(part))
    fenced = [_scan(fence.group(1), effort, part.start + fence.start(1)) for fence in _FENCE.finditer(part)]
    if any(values for values, _ in fenced):
        found.values, found.cut = [value for values, _ in fenced for value in values], any(cut for _, cut in fenced)
    else:
        found.values, found.cut = _scan(part, effort, part.start)
    found.cut |= len(text) > LONGEST
    if found.unended_thought:
        found.values = found.values[-1:]
    return found


_FENCE = re.compile(r"```[a-zA-Z0-9_]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_ENDS = re.compile("</think>|<answer>")


class _NoValueError(Exception):
    """There is no value at this place."""


class _TooDeepError(Exception):
    """No answer is nested like this."""


class _CutOffError(Exception):
    """The text ends within a value of which nothing complete is left."""


class Effort:
    """How much reading an answer is worth: twice its length, and 256 KiB for a short one, whose end is tried often."""

    def __init__(self, length: int) -> None:
        self.left = 2 * length + (1 << 18)


def _scan(text: str, effort: Effort, base: int) -> tuple[list[Any], bool]:
    """(values, cut): every object and list that starts outside another, and whether the last one was cut off, or some
    text was not read for want of `effort`. `base`: where the text begins in the answer."""
    values: list[Any] = []
    cut = False
    position, ends_seen = 0, 0
    while (found := _OPENING.search(text, position)) and ends_seen < MOST_ENDS:
        if effort.left <= 0:
            return values, True
        reader = _ValueReader(text, found.start(), base)
        try:
            value = reader.value(0)
        except _TooDeepError:
            position = reader.position
        except _NoValueError:
            position = found.end()
        except _CutOffError:  # an unclosed wrapper; values inside may be complete
            ends_seen += 1
            cut = True
            position = found.end()
        else:
            cut = reader.cut
            position = reader.position
            if value or not cut:
                values.append(value)
        effort.left -= reader.position - found.start()
    return values, cut


MOST_ENDS = 20
"""How often the end of the text may be reached: by wrappers that are not closed."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_OPENING = re.compile(r"[\[{]")
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

    def value(self, depth: int) -> Any:
        """The value at the position. Raises `_NoValueError`, or `_CutOffError` at the end of the text."""
        self._skip()
        head = self._head()
        if depth > DEEPEST:
            raise _TooDeepError
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
