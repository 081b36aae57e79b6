"""The options that an answer chooses, read strictly: it is nothing but letters or options, JSON with these, "none", or
a marked conclusion (`<answer>`, `\\boxed{}`, a last line "Answer: ...") that is nothing but that. Every other answer is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from hoicli.errors import DataError
from hoicli.vlm.bank import BETWEEN, NOTHING, PADDING

LONGEST = 100_000
"""Characters of an answer; a longer one is refused."""

_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_THINKING = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_FENCED = re.compile(r"```[a-zA-Z]*\s*\n(.*?)\n?\s*```", re.DOTALL)
_TAGGED = re.compile(r"<answer>(.*?)</answer>|\\boxed\{([^{}]*)\}", re.DOTALL | re.IGNORECASE)
_CONCLUDED = re.compile(r"[\s*_#]{0,4}(?:final )?answers?[*_]{0,3}:[*_\s]{0,5}(.*)", re.IGNORECASE)
_NONE = re.compile(
    r"\{\}|n/a|none(?: of (?:(?:the|these|them)\b(?: above| options| choices)?|(?P<listed>.+)))?", re.IGNORECASE
)
_BETWEEN = re.compile(r"\s*(?:[,;&\n]|\band\b)[\s,;&]*(?:and\b\s*)?", re.IGNORECASE)
_LABEL = r"[(\[]?(?P<label>[A-Za-z]|\d{1,2})(?!\w)[)\]]?[.)]?"
_JOINED = re.compile(r"[A-Z]{2,26}")


class RefusedError(Exception):
    """An answer that is not read, and why."""


@dataclass(frozen=True)
class Choice:
    """What an answer chooses: `options` of those offered, each once, in their order there; `others`, what it names that
    was not offered, as it is written. An answer that says that no option is right has neither."""

    options: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


Labels = Mapping[str, str]
"""The option that each letter or number stands for."""


_KEYS = frozenset({"answer", "answers", "choice", "choices", "letters", "letter", "selected", "final_answer"})
_BESIDE = frozenset({"reasoning", "reason", "explanation", "rationale", "thought", "thoughts", "confidence"})
"""What may stand beside the answer in an object."""


def released_choice(answer: Any, labels: Labels) -> list[str]:
    """The options that the released scripts read in a text, in its order and as often as named: what stands between
    commas, in capitals and without its last full stop, if it is a letter that was offered. A list is taken as it is."""
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
    """The ways an option may be written out, as `_plain` leaves them: as the file has it, and as the benchmark shows it
    (`no_interaction with elephant`)."""
    yield _plain(option)
    verb, found, name = option.partition(BETWEEN)
    if found and NOTHING in verb:
        yield from (_plain(f"{NOTHING} with{article} {name}") for article in ("", " a/an", " a", " an", " the"))
        yield _plain(f"{NOTHING} {name}")
    elif found:
        yield from (_plain(f"{verb}{article} {name}") for article in ("", " a/an", " a", " an", " the"))


def shown(option: str) -> str:
    """An option as the benchmark shows it: as in the file, but for `no_interaction`."""
    verb, found, name = option.partition(BETWEEN)
    return f"{NOTHING} with {name}" if found and NOTHING in verb else option


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").lower().rstrip(".").split())


class _Reader:
    """Reads the answers to a question. by_words: the options by the ways to write them."""

    def __init__(self, labels: Labels, options: Sequence[str]) -> None:
        self.labels = {label.upper(): option for label, option in labels.items()}
        self.order = list(dict.fromkeys((*options, *labels.values())))
        self.none = PADDING in options  # three questions of SWIG-HOI have it among their own
        self.by_words: dict[str, str] = {}
        for option in self.order:
            for words in _spellings(option) if option != PADDING or self.none else ():
                self.by_words.setdefault(words, option)
        longest = sorted(self.by_words, key=len, reverse=True)
        texts = "|".join(re.escape(text).replace(r"\ ", r"[\s_]+") for text in longest)
        words = rf"(?:{texts})(?!\w)[.]?" if texts else "(?!)"
        item = rf"(?:[-*•]\s+)?(?:(?P<alone>{words})|{_LABEL}(?::?\s?(?P<beside>{words}))?)"
        self.item = re.compile(item, re.IGNORECASE)
        self.numbered = any(label.isdigit() for label in self.labels)

    def read(self, answer: Any) -> Choice:
        """What an answer chooses."""
        if isinstance(answer, dict):
            inner = [value for key, value in answer.items() if str(key).lower() in _KEYS]
            strange = any(str(key).lower() not in _KEYS | _BESIDE for key in answer)
            if len(inner) != 1 or strange or isinstance(inner[0], dict):
                raise RefusedError("an object with other keys than an answer")
            answer = inner[0]
        if isinstance(answer, list):
            return self._of_items(answer)
        if isinstance(answer, bool) or not isinstance(answer, str | int):
            raise RefusedError("no text, list or object")
        if len(text := str(answer)) > LONGEST:
            raise RefusedError(f"longer than {LONGEST:,} characters")
        return self._of_text(text)

    def _of_items(self, items: list[Any]) -> Choice:
        """A list: each item a letter, an option, or something that was not offered."""
        chosen: list[str] = []
        others: list[str] = []
        for item in items:
            if isinstance(item, bool) or not isinstance(item, str | int):
                raise RefusedError("a list of other things than letters and options")
            text = str(item).strip()
            found = item if item in self.order else self.by_words.get(_plain(text))
            try:
                part = self._of_segment(text) if found is None else self._chosen([str(found)])
            except RefusedError:
                part = Choice(others=(text[:60],))
            chosen += part.options
            others += part.others
        return self._chosen(chosen, others)

    def _of_text(self, text: str) -> Choice:
        """The conclusion of a text if it marks one, else all of it."""
        text = _THOUGHT.sub("", text).strip()
        if _THINKING.search(text):  # the thought does not end, so nothing was answered
            raise RefusedError("a thought without an end")
        tagged = list(_TAGGED.finditer(text))
        if tagged:
            found = {self._of_segment(next(filter(None, match.groups()), "")) for match in tagged}
            if len(found) > 1 or text[tagged[-1].end() :].strip(" \n.$*`"):
                raise RefusedError("several conclusions, or more after it")
            return found.pop()
        ends = [match[1] for match in map(_CONCLUDED.fullmatch, text.split("\n")) if match]
        if ends and (len(set(ends)) > 1 or not text.endswith(ends[-1])):
            raise RefusedError("several conclusions, or more after it")
        return self._of_segment(ends[-1] if ends else text)

    def _of_segment(self, text: str) -> Choice:
        fenced = _FENCED.fullmatch(text.strip())
        text = (fenced[1] if fenced else text).strip()
        if text[:1] in ("[", "{", '"'):
            try:
                return self.read(orjson.loads(text))
            except orjson.JSONDecodeError:
                pass
        text = text.replace("*", "").replace("`", "").strip(" \n\"'")
        none = _NONE.fullmatch(text.rstrip("."))
        if none is not None and none["listed"] and set(self._listed(none["listed"])) != set(self.labels):
            raise RefusedError("none of some options, and nothing about the others")
        if none is not None:
            return self._chosen([PADDING])
        if not text:
            raise RefusedError("nothing")
        return self._lettered(self._listed(text))

    def _listed(self, text: str) -> list[str]:
        """The letters that a text lists, and the letters of the options it writes out, or these themselves. Raises
        `RefusedError` where it has anything else."""
        if _JOINED.fullmatch(text) and len(set(text)) == len(text) and self.labels.keys() >= set(text):
            return list(text)
        text = text.removeprefix("[").removesuffix("]") if text[:1] == "[" and text[-1:] == "]" else text
        found: list[str] = []
        written, at = 0, 0
        while item := self.item.match(text, at):
            label, words = item["label"], item["alone"] or item["beside"]
            if label is not None and label.isdecimal() != self.numbered:
                break
            option = self.by_words[_plain(words)] if words else None
            if label is not None and words and self.labels.get(label.upper()) != option:
                raise RefusedError("a letter beside the words of another option")
            written += words is not None
            found.append(str(option) if label is None else label.upper())
            between = _BETWEEN.match(text, item.end())
            at = between.end() if between else item.end()
            if between is None:
                break
        if at < len(text):
            raise RefusedError("more than letters and options")
        if written and len(set(found)) == len(self.order) > 1:
            raise RefusedError("every option, written out: chosen or repeated")
        return found

    def _lettered(self, listed: Sequence[str]) -> Choice:
        """What letters and options choose; letters that were not offered are others. Raises `DataError` where it is not
        known what letters stand for."""
        letters = [one for one in listed if one not in self.order]
        if letters and not self.labels:
            problem = "letters, and nothing says what they stand for"
            raise DataError(f"{problem}; keep `options` or `custom_id` of hoicli prompts in the line")
        chosen = [self.labels.get(one, one) for one in listed]
        return self._chosen(chosen, [one for one in chosen if one not in self.order])

    def _chosen(self, options: Iterable[str], others: Iterable[str] = ()) -> Choice:
        """The options in order; an option that only fills the list is a way to say that none is right."""
        chosen = set(options)
        if PADDING in chosen and not self.none and (len(chosen) > 1 or others):
            raise RefusedError("none, and some")
        listed = tuple(option for option in self.order if option in chosen and (option != PADDING or self.none))
        return Choice(listed, tuple(dict.fromkeys(others)))


def read_choice(answer: Any, labels: Labels, options: Sequence[str]) -> Choice:
    """The options that an answer chooses: a text, a list of texts, or an object with one of these. labels: what the
    letters stand for, empty where that is not known; options: those of the question. Raises `RefusedError` for anything
    else, and `DataError` for letters without `labels`."""
    return _Reader(labels, options).read(answer)
