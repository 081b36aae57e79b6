"""Reads strictly which options an answer chooses. An answer holds nothing but letters or options, JSON with letters or
options, "none", or a marked conclusion (`<answer>`, `\\boxed{}`, a last line "Answer: ...") that holds nothing else.
Every other answer is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from hoicli.errors import DataError
from hoicli.io.opened_files import repeated_key
from hoicli.vlm.bank import BETWEEN, NOTHING, PADDING
from hoicli.vocabulary.labels import replace_typography

LONGEST = 100_000
"""The most characters of an answer; a longer one is refused."""

_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_THINKING = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_FENCED = re.compile(r"```[a-zA-Z]*\s*\n(.*?)\n?\s*```", re.DOTALL)
_TAGGED = re.compile(r"<answer>(.*?)</answer>|\\boxed\{([^{}]*)\}", re.DOTALL | re.IGNORECASE)
_CONCLUDED = re.compile(r"[\s*_#]{0,4}(?:final )?answers?[*_]{0,3}:[*_\s]{0,5}(.*)", re.IGNORECASE)
_NONE = re.compile(r"\{\}|n/a|none(?: of (?:the|these|them)\b(?: above| options| choices)?)?", re.IGNORECASE)
_BETWEEN = re.compile(r"[,;&\n]|\band\b", re.IGNORECASE)
_LETTER = re.compile(r"(?:[-•]\s+)?[(\[]?([A-Za-z])(?!\w)[)\]]?[.)]?:?\s?(.*)")
"""A letter, and the words beside it."""
_JOINED = re.compile(r"[A-Z]{2,26}")
_KEYS = frozenset({"answer", "answers", "choice", "choices", "letters", "letter", "selected", "final_answer"})
_BESIDE = frozenset({"reasoning", "reason", "explanation", "rationale", "thought", "thoughts", "confidence"})
"""Keys that may stand beside the answer in an object."""

Labels = Mapping[str, str]
"""The option that each letter stands for."""


class RefusedError(Exception):
    """Raised for an answer that cannot be read; its text says why."""


@dataclass(frozen=True)
class Choice:
    """The options that an answer chooses. options: those of the question, each once, in their order there; others: what
    the answer names that was not offered, as it is written. An answer that says that no option is right has neither."""

    options: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def released_choice(answer: Any, labels: Labels) -> list[str]:
    """Return the options that the released scripts read in an answer, in its order and as often as named. They split a
    text at commas; each part, in capitals and without its last full stop, counts if it is a letter that was offered.
    They take a list as it is. labels: {letter: option}."""
    if isinstance(answer, list):
        return [item for item in answer if isinstance(item, str)]
    if not isinstance(answer, str):
        return []
    text = answer.split("</think>")[-1].strip()
    tagged = re.search(r"<answer>\s*([A-Za-z, ]+)\s*</answer>", text, re.IGNORECASE | re.DOTALL)
    if tagged:
        text = tagged[1].replace(" ", "")
    letters = [part.strip().upper().rstrip(".") for part in text.split(",") if part.strip()]
    return [labels[letter] for letter in letters if letter in labels]


def _spellings(option: str) -> Iterator[str]:
    """Yield the ways to write an option, in the form of `_plain`: the file's, the benchmark's, and with any article."""
    yield _plain(option)
    verb, separator, name = option.partition(BETWEEN)  # "ride a/an bicycle"
    if separator and NOTHING in verb:  # "no_interaction"
        yield _plain(f"{NOTHING} {name}")
        verb = f"{NOTHING} with"
    if separator:
        yield from (_plain(f"{verb}{article} {name}") for article in ("", " a/an", " a", " an", " the"))


def _plain(text: str) -> str:
    """Return a text in the form in which options are compared: lower case, single spaces for underscores and for all
    other space, no full stop at the end, typographic characters as a keyboard has them."""
    return " ".join(replace_typography(text).replace("_", " ").lower().rstrip(".").split())


class Reader:
    """Reads the answers to one question."""

    def __init__(self, labels: Labels, options: Sequence[str]) -> None:
        """Take the question's options, and {letter in capitals: its option}, {} if that is not known."""
        self.labels = labels
        self.order = list(dict.fromkeys((*options, *labels.values())))
        # PADDING, "None", fills short lists and says that none is right;
        self.padding_is_option = PADDING in options  # but three questions of SWIG-HOI have it among their own
        self.option_of_words: dict[str, str] = {}
        for option in self.order:
            for words in _spellings(option) if option != PADDING or self.padding_is_option else ():
                self.option_of_words.setdefault(words, option)

    def read(self, answer: Any) -> Choice:
        """Return the choice of an answer: a text, a list of texts, or an object with one of these under a key like
        "answer". Raises `RefusedError` for anything else, and `DataError` for letters of unknown meaning."""
        if isinstance(answer, dict):  # with one key of _KEYS, such as "answer", beside reasons (_BESIDE) alone
            inner = [value for key, value in answer.items() if str(key).lower() in _KEYS]
            strange = any(str(key).lower() not in _KEYS | _BESIDE for key in answer)
            if len(inner) != 1 or strange or isinstance(inner[0], dict):
                raise RefusedError("an object with other keys than an answer")
            answer = inner[0]
        if isinstance(answer, list):
            return self._read_items(answer)
        if not isinstance(answer, str):
            raise RefusedError("no text, list or object")
        if len(answer) > LONGEST:
            raise RefusedError(f"longer than {LONGEST:,} characters")
        return self._read_text(answer)

    def _read_items(self, items: list[Any]) -> Choice:
        """Return the choice of a list, each item of which is a letter, an option, or something that was not offered."""
        chosen: list[str] = []
        for item in items:
            if not isinstance(item, str):
                raise RefusedError("a list of other things than letters and options")
            try:
                part = self._make_choice([item]) if item in self.order else self._read_segment(item)
            except RefusedError:
                part = Choice(others=(item.strip()[:60],))
            chosen += (*part.options, *part.others)
        return self._make_choice(chosen)

    def _read_text(self, text: str) -> Choice:
        """Return the choice of a text: that of its conclusion if it marks one, else that of all of it."""
        text = _THOUGHT.sub("", text).strip()
        if _THINKING.search(text):  # the thought does not end, so nothing was answered
            raise RefusedError("a thought without an end")
        tagged = list(_TAGGED.finditer(text))
        if tagged:
            readings = {self._read_segment(match[1] or match[2] or "") for match in tagged}
            if len(readings) > 1 or text[tagged[-1].end() :].strip(" \n.$*`"):
                raise RefusedError("several conclusions, or more after it")
            return readings.pop()
        conclusions = [match[1] for match in map(_CONCLUDED.fullmatch, text.split("\n")) if match]
        if conclusions and (len(set(conclusions)) > 1 or not text.endswith(conclusions[-1])):
            raise RefusedError("several conclusions, or more after it")
        return self._read_segment(conclusions[-1] if conclusions else text)

    def _read_segment(self, text: str) -> Choice:
        """Return the choice of a text without reasoning or marks: JSON, "none", or a list of letters and options."""
        fenced = _FENCED.fullmatch(text.strip())
        text = replace_typography(fenced[1] if fenced else text).strip()
        if text[:1] in ("[", "{", '"'):
            try:
                items = orjson.loads(text)
                if repeated_key(text.encode(), items):
                    raise RefusedError("a key twice in one object")
                return self.read(items)
            except orjson.JSONDecodeError:
                pass
        text = text.replace("*", "").replace("`", "").strip(" \n\"'")
        says_none = _NONE.fullmatch(text.rstrip("."))
        return self._make_choice([PADDING] if says_none else self._list_options(text))

    def _list_options(self, text: str) -> list[str]:
        """Return the options that a text lists, by letter or written out; a letter that was not offered stands for
        itself. Raises `RefusedError` for a text with anything else, and `DataError` for letters of unknown meaning."""
        letters_differ = len(set(text)) == len(text)
        if _JOINED.fullmatch(text) and letters_differ and self.labels.keys() >= set(text):  # such as "ACD"
            return [self.labels[letter] for letter in text]
        options: list[str] = []
        any_written_out = False
        parts = [text] if _plain(text) in self.option_of_words else _BETWEEN.split(text)
        for part in filter(None, map(str.strip, parts)):
            option, words = self._read_part(part)
            if option is None or (words and self.option_of_words.get(_plain(words)) != option):
                raise RefusedError("more than letters and options")
            options.append(option)
            any_written_out = any_written_out or bool(words)
        if not options:
            raise RefusedError("nothing")
        if any_written_out and len(set(options)) == len(self.order) > 1:
            raise RefusedError("every option, written out: chosen or repeated")
        if not self.labels and not set(options) <= set(self.order):
            problem = "letters, and nothing says what they stand for"
            raise DataError(f"{problem}; keep `options` or `custom_id` of hoicli prompts in the line")
        return options

    def _read_part(self, part: str) -> tuple[str | None, str]:
        """Return the option that a part of a list names (None for none), and the words that write it out: all of the
        part, what stands behind a letter, or "" for a letter alone. A letter that was not offered is an option."""
        option, match = self.option_of_words.get(_plain(part)), _LETTER.fullmatch(part)
        if option is not None or match is None:
            return option, part
        letter, words = match[1].upper(), match[2]
        return self.labels.get(letter, None if words else letter), words

    def _make_choice(self, chosen: Sequence[str]) -> Choice:
        """Return the choice that a list of options and of other texts makes, with the options in the question's order.
        PADDING says that none is right; raise `RefusedError` if it is chosen beside others."""
        if PADDING in chosen and not self.padding_is_option and len(set(chosen)) > 1:
            raise RefusedError("none, and some")
        others = dict.fromkeys(text for text in chosen if text not in (*self.order, PADDING))
        options = [option for option in self.order if option in chosen]
        if not self.padding_is_option:
            options = [option for option in options if option != PADDING]
        return Choice(tuple(options), tuple(others))
