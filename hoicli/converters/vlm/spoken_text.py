"""The text of a vision-language model's answer: its values, JSON as models write it; where it says a word, and how
probable that was.

The text is nothing but JSON, has it in one code fence, or has it after one sentence and before polite ones; after
`<think>`, within `<answer>`. Accepted are single and typographic quotes, comments, trailing or missing commas, Python's
words for true and null, parentheses for brackets, and a text that is cut off, of which every complete item is kept.
Nothing is guessed: words beside the JSON that may take it back refuse it ("There is no such interaction. The format
would be {...}")."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from hoicli.vocabulary.labels import replace_typography, strip_accents
from hoicli.wordnet.word_uses import denies, denies_or_doubts

DEEPEST = 40
"""The most levels of brackets; answers have four."""
LONGEST = 100_000
"""The most characters of an answer. A longer one is by a model that repeats itself without end, and is not read."""


class Spoken(str):
    """A string of an answer that knows its place. start: the index of its first character in the answer's text."""

    __slots__ = ("start",)
    start: int

    @classmethod
    def starting_at(cls, text: str, start: int) -> Spoken:
        """Return a text that begins at `start` of the answer."""
        spoken = cls(text)
        spoken.start = start
        return spoken


Span = tuple[int, int]
"""The first character of something in an answer's text, and the one after its last."""


def span_of(value: Any, words: str) -> Span | None:
    """Return where the text of an answer says a verb or a label (`words`, as records spell it): the place of its words
    in a string of the answer, or in the first item of a list that has them. Return None if no string has them, or the
    value is of JSON that came without its text."""
    if isinstance(value, list):
        spans = (span_of(item, words) for item in value)
        return next((span for span in spans if span is not None), None)
    if not isinstance(value, Spoken) or not re.search(r"[^\W_]", words):
        return None
    parts = (re.escape(part) for part in re.split(r"[\W_]+", words) if part)
    pattern = r"[\W_]+".join(parts)  # any separators between the words, and none of them the part of a longer one
    match = re.search(rf"(?<![^\W_]){pattern}(?![^\W_])", value, re.IGNORECASE)
    return (value.start + match.start(), value.start + match.end()) if match else None


def final_part(text: str) -> Spoken:
    """Return the part of an answer's text that counts: what follows its thoughts (`</think>`), and stands between
    `<answer>` and `</answer>` if these are there. Raises ValueError, whose text is the reason, for a text that is too
    long, a thought without an end, and several answers."""
    if len(text) > LONGEST:
        raise ValueError(f"an answer of more than {LONGEST:,} characters")
    final = text[text.rfind("</think>") + len("</think>") :] if "</think>" in text else text
    _, tag, answer = final.partition("<answer>")
    if tag:
        inner, end, after = answer.partition("</answer>")
        if not end or after.strip() or "<answer>" in inner:
            raise ValueError("an <answer> without an end, or with more after it")
        return Spoken.starting_at(inner, len(text) - len(answer))
    if "<think>" in final:
        raise ValueError("an answer whose thought has no end")
    return Spoken.starting_at(final, len(text) - len(final))


def values_in(part: Spoken) -> tuple[list[Any], bool]:
    """Return the JSON objects and lists in a text, in order, and whether the last one was cut off.

    part: the part of an answer that counts (`final_part`). It must be nothing but these values, or have them in its one
    code fence, or be one sentence with one value behind it; polite sentences may follow. For any other text the list is
    empty. Raises ValueError, whose text is the reason, for several fences, for words beside the JSON that may take it
    back, and for a key that occurs twice in an object: nothing says which of the two counts."""
    fences = list(_FENCE.finditer(part))
    if len(fences) > 1:
        raise ValueError("several code fences in one answer")
    if fences:
        (fence,) = fences
        _refuse_template(f"{part[: fence.start()]} {part[fence.end() :]}")
        return _read_values(Spoken.starting_at(fence[1], part.start + fence.start(1)))
    opening = _OPENING.search(part)
    begin = opening.start() if opening else 0
    end = len(part)
    for _ in range(3):  # at most so many polite sentences, each of at most 200 characters
        polite = _POLITE_END.search(part, max(begin, end - 200), end)
        end = polite.start() if polite and not denies(_words_of(polite[0])) else end
    before = part[:begin]
    empty = _EMPTY.fullmatch(part, begin, end)
    around = _words_of(f"{before} {empty[2]}") if empty else []
    if empty and denies(around) and (_TEMPLATES | _CONDITIONALS).isdisjoint(around):
        return _read_values(Spoken.starting_at(empty[1], part.start + begin))
    values, is_cut_off = _read_values(Spoken.starting_at(part[begin:end], part.start + begin))
    if not re.search(r"\w", before):
        return values, is_cut_off
    if len(values) != 1:
        return [], False
    if not _is_plain_sentence(before):
        raise ValueError(_TAKEN_BACK)
    return values, is_cut_off


def _read_values(part: Spoken) -> tuple[list[Any], bool]:
    """Return the JSON objects and lists of a text that has nothing else, in order, and whether the last one was cut
    off; for any other text no values. Raises ValueError if a comment before or after them may take them back."""
    values: list[Any] = []
    reader = _ValueReader(part)
    begin, end = None, 0
    try:
        while not reader.cut and reader.next_is_container():
            begin = reader.at if begin is None else begin
            value = reader.value(0)
            if value or not reader.cut:
                values.append(value)
            end = reader.at
    except _CutOffError:
        reader.cut = True
    except _NotJsonError:
        return [], False
    if not reader.cut and reader.peek():
        return [], False
    if values and not reader.cut and takes_back(_words_of(f"{part[:begin]} {part[end:]}")):
        raise ValueError(_TAKEN_BACK)
    return values, reader.cut


_TAKEN_BACK = "an answer with other words beside its JSON than one sentence that states something"
_OPENING = re.compile(r"[{\[]")
_EMPTY = re.compile(r"""(\{\s*["']?\w+["']?\s*:\s*\[\s*\]\s*\}|\[\s*\])([^\[\]{}]*)""")
"""An answer without interactions, which a sentence may say again: "[] There are none"."""
_SENTENCE_END = re.compile(r"[.!?]+(?:\s+|\Z)|\n+")
_COURTESY = re.compile(
    r"sure|certainly|absolutely|of course|ok|okay|yes|(?:sure )?(?:here (?:is|are)|here's|below (?:is|are))\b.*"
)
"""What may stand before the one sentence, as a sentence of its own: "Sure!", "Here is the JSON:"."""
_POLITE_END = re.compile(
    r"(?<![^\s\]}>])(?:(?:please )?let me know|feel free|(?:i )?hope (?:this|that|it)|is there anything else|"
    r"if you (?:need|have|want))\b[^.!?\[\]{}]{0,120}[.!?]*\s*\Z",
    re.IGNORECASE,
)
"""A sentence which is only polite, as the last of an answer: "Let me know if you need anything else!"."""
_TEMPLATES = frozenset(("example", "examples", "template", "templates"))
"""Words which say that the JSON beside them is none of the image."""
_CONDITIONALS = frozenset(("would", "could", "format", "formats"))
"""Words which say so in a sentence alone, or together with a denial."""
_UNCERTAIN = frozenset({
    "should", "hypothetical", "placeholder", "unable", "fail", "fails", "failed", "lack", "lacks", "lacking", "missing",
    "zero", "empty", "false", "wrong", "incorrect", "impossible", "unlikely", "sorry", "unfortunately", "instead",
    "isnt", "arent", "dont", "doesnt", "cant", "negative", "negated", "invalid", "rejected", "excluded",
})  # fmt: skip
"""Further words that may take back what stands beside them."""


def _words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents."""
    return re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*", strip_accents(replace_typography(text)).lower())


def takes_back(words: Sequence[str]) -> bool:
    """Return whether words may take back the JSON beside them, or make it an example."""
    return denies_or_doubts(words) or not (_TEMPLATES | _CONDITIONALS | _UNCERTAIN).isdisjoint(words)


def _is_plain_sentence(text: str) -> bool:
    """Return whether a text is one sentence at most, after courtesies ("Sure!"), that takes nothing back. It has only
    Latin letters, since no others are understood."""
    sentences = [" ".join(_words_of(sentence)) for sentence in _SENTENCE_END.split(replace_typography(text))]
    words = _words_of(text)
    is_one = sum(bool(sentence) and not _COURTESY.fullmatch(sentence) for sentence in sentences) <= 1
    return is_one and not takes_back(words) and "".join(words).isascii()


def _refuse_template(text: str) -> None:
    """Raise ValueError if the words around a code fence say that the JSON in it is an example, or deny something and
    speak of a format. Other words around a fence do not count."""
    words = _words_of(text)
    if _TEMPLATES.intersection(words) or (_CONDITIONALS.intersection(words) and denies(words)):
        raise ValueError(_TAKEN_BACK)


_FENCE = re.compile(r"```[a-zA-Z0-9_]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_SKIP = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*)*")
_TOKEN = re.compile(
    r"(?P<mark>[{}\[\](),:])|(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|"
    r'"(?P<double>(?:[^"\\]|\\.)*)"|'
    r'[\u201c-\u201e\u00ab](?P<typographic>(?:[^\u201c-\u201e\u00ab\u00bb"\\]|\\.)*)["\u201c\u201d\u00bb]|'
    r"['\u2018-\u201a](?P<single>(?:[^'\u2019\\]|\\.|['\u2019](?!\s*(?:[,:}\])]|\Z)))*)['\u2019]",
    re.DOTALL,
)
_QUOTES = frozenset(("", *"\"'\u2018\u2019\u201a\u201c\u201d\u201e\u00ab"))
"""What a text that is cut off ends with: nothing, or the first quote of a string without an end."""
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<one>.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class _NotJsonError(Exception):
    """No value begins at this position of the text."""


class _CutOffError(Exception):
    """The text ends within a value, and nothing complete is left of that value."""


class _ValueReader:
    """Reads the JSON values of a text one by one. cut: whether the last one lacks its end. at: the position so far."""

    def __init__(self, text: Spoken) -> None:
        """Begin at the start of the text."""
        self.cut = False
        self._text = text
        self.at = 0

    def peek(self) -> str:
        """Skip spaces and comments, and return the next character, "" at the end of the text."""
        self.at = _SKIP.match(self._text, self.at).end()  # type: ignore[union-attr]
        return self._text[self.at : self.at + 1]

    def next_is_container(self) -> bool:
        """Skip a comma if there is one, and return whether an object or a list begins next."""
        if self.peek() == ",":
            self.at += 1
        return self.peek() in ("{", "[")

    def value(self, depth: int) -> Any:
        """Read the next value and return it. depth: how many brackets are open around it. Raises `_NotJsonError` if no
        value begins here, and `_CutOffError` at the end of the text."""
        token = self._read_token()
        source, kind = token[0], token.lastgroup
        if source in _CLOSING and depth < DEEPEST:
            return self._object(depth + 1) if source == "{" else self._list(_CLOSING[source], depth + 1)
        if kind in ("double", "single", "typographic"):
            return self._string(token)
        if kind == "number":
            if token.end() == len(self._text):  # digits may be missing
                raise _CutOffError
            is_integer = source.lstrip("-").isdigit() and len(source) <= 15  # int() refuses thousands of digits
            return int(source) if is_integer else float(source)
        if source in _WORDS:
            return _WORDS[source]
        raise _NotJsonError

    def _list(self, closing: str, depth: int) -> list[Any]:
        """Read the items of a list up to its closing bracket and return them; of a list that is cut off, the complete
        items. depth: how many brackets are open inside it."""
        items: list[Any] = []
        try:
            while self.peek() != closing:
                if items and self.peek() == ",":
                    self.at += 1
                    continue
                items.append(self.value(depth))
                if self.cut:
                    return items
                if self.peek() not in {",", "{", "[", "", closing}:
                    raise _NotJsonError
            self.at += 1
        except _CutOffError:
            self.cut = True
        return items

    def _object(self, depth: int) -> dict[str, Any]:
        """Read the entries of an object up to its closing bracket and return them. depth: how many brackets are open
        inside it. An object that is cut off within its last value is kept if this value is an object, or a list of
        complete objects or lists; else raise `_CutOffError`."""
        entries: dict[str, Any] = {}
        while self.peek() != "}":
            if self.peek() == ",":
                self.at += 1
                continue
            token = self._read_token()
            if token.lastgroup in ("mark", "number"):
                raise _NotJsonError
            key = self._string(token)
            if self._read_token()[0] != ":":
                raise _NotJsonError
            if key in entries:
                raise ValueError("an answer with a key twice in one object")
            entries[key] = value = self.value(depth)
            if self.cut:
                whole_items = isinstance(value, list) and value and all(isinstance(item, dict | list) for item in value)
                if whole_items or isinstance(value, dict):
                    return entries
                raise _CutOffError
        self.at += 1
        return entries

    def _read_token(self) -> re.Match[str]:
        """Read the next token (a match of _TOKEN: a bracket, a string, a number, a word) and return it. Raises
        `_CutOffError` if the text ends before it does, and `_NotJsonError` for a character that begins no token."""
        mark = self.peek()
        token = _TOKEN.match(self._text, self.at)
        if token is None:
            raise _CutOffError if mark in _QUOTES else _NotJsonError
        self.at = token.end()
        return token

    def _string(self, token: re.Match[str]) -> str:
        """Return the content of a token that is a string or a word, with its place in the answer."""
        kind = token.lastgroup or ""
        return Spoken.starting_at(_unescape(token[kind]), self._text.start + token.start(kind))


def _unescape(text: str) -> str:
    """Return a JSON string with its escapes resolved; an unknown one means the character after its backslash."""
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        """Return the character that an escape stands for."""
        return chr(int(match["code"], 16)) if match["code"] else _ESCAPES.get(match["one"], match["one"])

    # The two halves of a surrogate pair, each with an escape of its own, become one character in UTF-16.
    return _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Tokens:
    """The tokens that a model wrote an answer with, and their log-probabilities. _ends: for each token the position
    after it, in the bytes of the answer's text. _logs: for each token the logarithm of its probability."""

    def __init__(self, answer: Any, logprobs: Any) -> None:
        """Join the tokens to the answer's text. logprobs: OpenAI's {content: [{token, logprob, bytes}]}, or only the
        list in it. Raises ValueError if the tokens do not spell the answer, or have no log-probabilities."""
        if isinstance(logprobs, dict):
            logprobs = logprobs.get("content")
        if not isinstance(answer, str) or not isinstance(logprobs, list) or not logprobs:
            raise ValueError
        pieces, self._logs = zip(*map(_piece, logprobs), strict=True)
        if not b"".join(pieces).startswith(_encode_text(answer)):  # an end token may follow
            raise ValueError
        self._ends = list(accumulate(map(len, pieces)))
        self._answer = answer

    def score(self, spans: Sequence[Span]) -> float:
        """Return the product of the probabilities of all tokens that have a character in one of the spans; a token
        counts once, also if only a part of it lies there."""
        token_indices: set[int] = set()
        for span in spans:
            first_byte, end_byte = (len(_encode_text(self._answer[:position])) for position in span)
            # from the token in which the first byte is to that in which the last one is
            token_indices.update(range(bisect_right(self._ends, first_byte), bisect_left(self._ends, end_byte) + 1))
        return math.exp(math.fsum(self._logs[index] for index in token_indices))


def _encode_text(text: str) -> bytes:
    """Return the bytes of a text in UTF-8. Half of a surrogate pair, which JSON's escapes can state, has some, too."""
    return text.encode("utf-8", "surrogatepass")


def _piece(item: Any) -> tuple[bytes, float]:
    """Return (bytes, log-probability) of a token. item: {token, logprob, bytes}, of which `bytes` may be missing; a
    token can be a part of a character, which only its bytes show. Raises ValueError for any other item."""
    if not isinstance(item, dict):
        raise ValueError
    token_bytes, text, log = item.get("bytes"), item.get("token"), item.get("logprob")
    # Rounding can make the logarithm of a probability of 1 a little more than 0.
    if isinstance(log, bool) or not isinstance(log, int | float) or not -math.inf < log <= 1e-3:
        raise ValueError
    if isinstance(token_bytes, list) and all(type(number) is int for number in token_bytes):
        return bytes(token_bytes), min(float(log), 0.0)
    if token_bytes is not None or not isinstance(text, str):
        raise ValueError
    return _encode_text(text), min(float(log), 0.0)
