"""The options that an answer chooses: letters, lists, options in words, prose with letters. Never guessed: an answer
that can be read in two ways is refused, and both ways are told.

Where an answer marks its conclusion (`<answer>`, `\\boxed{}`, `Answer:`), that alone is read; what stands in `<think>`
is not. Otherwise all of it is: letters alone, JSON, "none", or prose, in which options count that are named by a letter
with a mark (`A)`, `(A)`, `**A**`, `option A`) or by their own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from hoicli.errors import DataError
from hoicli.questions.bank import BETWEEN, NOTHING, PADDING

LONGEST = 100_000
"""Characters of an answer that are read."""

_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_THINKING = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_FENCED = re.compile(r"\A\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_CONCLUDED = (
    re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE),
    re.compile(r"\\boxed\{([^{}]*)\}"),
    re.compile(
        r"\banswers?\b\W{0,4}(?:is|are|:|=)\W{0,4}(?:options?\s+|choices?\s+)?"
        r"(\S(?:(?!\banswers?\b)[^\n])*(?:\n\s*(?:[-*•]|\(?[A-Z][).:,])[^\n]*)*)",
        re.IGNORECASE,
    ),
)
"""How an answer marks its conclusion; the last one takes the lines of a list that follow."""
_NONE = re.compile(
    r"\W*(?:(?:i (?:would )?(?:choose|select|pick) |there (?:is|are) )?"
    r"(?:none|nothing|no (?:options?|choices?|interactions?))"
    r"(?: of (?:the|these|them|those)(?: above| options| choices| listed)?(?: options| choices| interactions)?)?"
    r"(?: (?:apply|applies|is (?:correct|right)|are (?:correct|right)))?|n/?a|\[\s*\]|\{\s*\})\W*",
    re.IGNORECASE,
)
_ALL = re.compile(
    r"\W*all(?: of(?: the| these| them)?)?(?: the)?(?: above| options| choices)*(?: apply| are correct)?\W*",
    re.IGNORECASE,
)
_SEPARATED = re.compile(r"(?:[\s,;/&+|.:)\]}*\"'`-]|\band\b)+", re.IGNORECASE)
_JOINED = re.compile(r"[A-Z]{2,26}")
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[.;\n!?]|,|\bbut\b|\bwhile\b|\bwhereas\b|\balthough\b|\bhowever\b", re.IGNORECASE)
_DOUBT = re.compile(
    r"\b(?:not|no|never|neither|nor|cannot|incorrect|wrong|false|unlikely|except|excluding|eliminate|eliminated|without|"
    r"maybe|perhaps|possibly|might|unclear|unsure|either|or)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_MARKED = re.compile(
    r"\(\s*([A-Za-z]|\d{1,2})\s*\)"  # (A)
    r"|\*\*\s*\(?([A-Z]|\d{1,2})\)?[.):]?\s*\*\*"  # **A**
    r"|(?<![\w(*'\u2019.-])([A-Z]|\d{1,2})[).:](?=[\s*_\"'`]|$)"  # A) A. A:
    r"|\b(?:options?|choices?|letters?)\s+\W?([A-Z]|\d{1,2})(?![\w'\u2019])"  # option A
)
_LONE = re.compile(
    r"(?<!erson )(?<!ubject )(?<![\w'\u2019.-])"
    r"(?:([B-HJ-Z])(?![\w'\u2019-])|(A)(?=\s*(?:[,;&/]|$|\.\s|\b(?:and|or|is|are)\b)))"
)
"""A capital without a mark, which counts if it was offered. A is a word, too, but not before these; I always is."""


@dataclass(frozen=True)
class Choice:
    """What an answer chooses: `options` of those offered, each once, in their order there; `others`, what it names that
    was not offered, as it is written. silent: nothing in it is an answer. An answer that says that no option is right
    has neither options nor others."""

    options: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    silent: bool = False


Labels = Mapping[str, str]
"""The option that each letter or number stands for."""


def read_choice(answer: Any, labels: Labels, options: Sequence[str]) -> Choice:
    """The options that an answer chooses: a text, a list of texts, or an object with one of these. labels: what the
    letters stand for, empty where that is not known; options: those of the question. Raises `DataError` for an answer
    that can be read in two ways, and for letters without `labels`."""
    if isinstance(answer, dict):
        inner = [value for key, value in answer.items() if str(key).lower() in _KEYS]
        return read_choice(inner[0], labels, options) if len(inner) == 1 else Choice(silent=True)
    if isinstance(answer, list):
        return _of_items(answer, labels, options)
    if isinstance(answer, int) and not isinstance(answer, bool):
        answer = str(answer)
    if not isinstance(answer, str):
        return Choice(silent=True)
    return _of_text(answer[:LONGEST], _Reader(labels, options))


_KEYS = frozenset(
    {"answer", "answers", "choice", "choices", "letters", "letter", "options", "option", "selected", "final_answer"}
)


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


def spellings(option: str) -> list[str]:
    """The ways an option may be written out, in lower case and with single spaces; as the file has it, and as the
    benchmark shows it (`no_interaction with elephant`)."""
    verb, found, name = option.partition(BETWEEN)
    if not found:
        return [_plain(option)]
    if NOTHING in verb:
        forms = [
            f"{NOTHING} with {name}",
            f"{NOTHING} with a/an {name}",
            f"{NOTHING} {name}",
            f"no interaction with the {name}",
        ]
        forms += [f"no interaction with {article} {name}" for article in ("a", "an")]
    else:
        forms = [f"{verb} {article} {name}" for article in ("a/an", "a", "an", "the")] + [f"{verb} {name}"]
    return list(dict.fromkeys(map(_plain, (option, *forms))))


def shown(option: str) -> str:
    """An option as the benchmark shows it: as in the file, but for `no_interaction`."""
    verb, found, name = option.partition(BETWEEN)
    return f"{NOTHING} with {name}" if found and NOTHING in verb else option


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").lower().split())


class _Reader:
    """Finds options in text. named: the pattern of the options' own words, the longest first."""

    def __init__(self, labels: Labels, options: Sequence[str]) -> None:
        self.labels = {label.upper(): option for label, option in labels.items()}
        self.order = list(dict.fromkeys((*options, *labels.values())))
        self.none = PADDING in options  # three questions of SWIG-HOI have it among their own
        self.by_words: dict[str, str] = {}
        for option in self.order:
            for words in spellings(option) if option != PADDING or self.none else ():
                self.by_words.setdefault(words, option)
        longest = sorted(self.by_words, key=len, reverse=True)
        words = "|".join(re.escape(text).replace(r"\ ", r"[\s_]+") for text in longest)
        self.words = re.compile(rf"(?<!\w)(?:{words})(?!\w)" if words else r"(?!)", re.IGNORECASE)

    def choice(self, options: Iterable[str], others: Iterable[str] = ()) -> Choice:
        """The options in order; an option that only fills the list is a way to say that none is right."""
        chosen = set(options)
        listed = tuple(option for option in self.order if option in chosen and (option != PADDING or self.none))
        return Choice(listed, tuple(dict.fromkeys(others)))

    def lettered(self, labels: Iterable[str]) -> Choice:
        """What letters choose; those that were not offered are others. Raises `DataError` where it is not known what
        letters stand for."""
        known = [label.upper() for label in labels]
        if known and not self.labels:
            problem = "letters, and nothing says what they stand for"
            raise DataError(f"{problem}; keep `options` or `custom_id` of hoicli prompts in the line")
        found = [self.labels[label] for label in known if label in self.labels]
        return self.choice(found, [label for label in known if label not in self.labels])

    def is_label(self, text: str) -> bool:
        """Whether a text is a letter or number by which an option may be called, offered or not."""
        if any(label.isdigit() for label in self.labels):
            return text.isdecimal() and len(text) <= 2
        return len(text) == 1 and text.isascii() and text.isalpha()


def _of_items(items: list[Any], labels: Labels, options: Sequence[str]) -> Choice:
    """A list: each item a letter, an option, or something that was not offered."""
    reader = _Reader(labels, options)
    chosen: list[str] = []
    others: list[str] = []
    for item in items:
        if isinstance(item, dict | list):
            return Choice(silent=True)
        text = str(item).strip()
        found = reader.by_words.get(_plain(text))
        if item in reader.order or found is not None:
            chosen.append(item if item in reader.order else str(found))
        elif text:
            part = _of_text(text, reader)
            chosen += part.options
            others += part.others or ([text[:60]] if part.silent else [])
    return reader.choice(chosen, others)


def _of_text(text: str, reader: _Reader) -> Choice:
    text = _THOUGHT.sub("", text)
    if _THINKING.search(text):  # the thought does not end, so nothing was answered
        return Choice(silent=True)
    for pattern in _CONCLUDED:
        ends = [next(group for group in match.groups() if group is not None) for match in pattern.finditer(text)]
        found = [_of_segment(end, reader) for end in ends]
        found = [choice for choice in found if not choice.silent]
        if found:
            return _only(found)
    return _of_segment(text, reader)


def _only(found: Sequence[Choice]) -> Choice:
    different = list(dict.fromkeys(found))
    if len(different) > 1:
        _refuse(different[0], different[-1])
    return different[0]


def _refuse(first: Choice, second: Choice) -> None:
    """Raises `DataError` that tells both readings."""
    one, other = (", ".join((*map(shown, choice.options), *choice.others)) or "none" for choice in (first, second))
    raise DataError(f"can be read in two ways, {one!r} and {other!r}; ask again, or write the letters that are meant")


def _of_segment(text: str, reader: _Reader) -> Choice:
    fenced = _FENCED.match(text)
    text = (fenced[1] if fenced else text).strip()
    if text[:1] in ("[", "{", '"'):
        try:
            return read_choice(orjson.loads(text), reader.labels, reader.order)
        except orjson.JSONDecodeError:
            pass
    if not text:
        return Choice(silent=True)
    if _NONE.fullmatch(text):
        nothing = next((option for option in reader.order if NOTHING in option), None)
        if nothing is not None and "interaction" in text.lower():
            _refuse(Choice(), reader.choice([nothing]))
        return reader.choice([PADDING])
    if _ALL.fullmatch(text):
        return reader.choice(reader.labels.values() or reader.order)
    bare = [part for part in _SEPARATED.split(text.replace("(", " ").replace("[", " ").replace("*", " ")) if part]
    if bare and all(map(reader.is_label, bare)):
        return reader.lettered(bare)
    if _OR.search(text):
        either = [part for part in re.split(r"[\s,;()]+", _OR.sub(" ", text)) if part]
        if len(either) > 1 and all(map(reader.is_label, either)):
            _refuse(reader.lettered(either[:1]), reader.lettered(either[1:]))
    if _JOINED.fullmatch(text) and len(set(text)) == len(text) and all(letter in reader.labels for letter in text):
        return reader.lettered(text)
    return _of_prose(text, reader)


@dataclass(frozen=True)
class _Mention:
    """Where a text names an option: by a letter, `label`, or by the option's own words, `option`."""

    begin: int
    end: int
    label: str = ""
    option: str = ""


def _of_prose(text: str, reader: _Reader) -> Choice:
    mentions = _mentions(text, reader)
    letters = [mention for mention in mentions if mention.label]
    words = [mention for mention in mentions if mention.option]
    if words and not reader.labels:
        letters, mentions = [], words
    by_letter, by_words = reader.lettered(each.label for each in letters), reader.choice(each.option for each in words)
    if not mentions:
        return Choice(silent=True)
    for letter in letters:  # `A) ride an elephant`, where A is another option
        meant = reader.labels.get(letter.label)
        beside = next((word for word in words if 0 <= word.begin - letter.end <= 3), None)
        if meant is not None and beside is not None and meant != beside.option:
            _refuse(reader.choice([meant]), reader.choice([beside.option]))
    if by_letter.options and not set(by_words.options) <= set(by_letter.options):
        _refuse(by_letter, by_words)
    read = reader.choice((*by_letter.options, *by_words.options), by_letter.others)
    sure = _sure(text, mentions)
    if len(sure) < len(mentions):
        certain = reader.lettered(each.label for each in sure if each.label)
        _refuse(read, reader.choice((*certain.options, *(each.option for each in sure if each.option)), certain.others))
    return read


def _mentions(text: str, reader: _Reader) -> list[_Mention]:
    """Every place that names an option, in order. Letters inside an option's words are none."""
    found = [_Mention(*match.span(), option=reader.by_words[_plain(match[0])]) for match in reader.words.finditer(text)]
    taken = [(each.begin, each.end) for each in found]
    for pattern in (_MARKED, _LONE):
        for match in pattern.finditer(text):
            label = next(group for group in match.groups() if group is not None).upper()
            offered = label in reader.labels or (pattern is _MARKED and reader.is_label(label))
            if offered and not any(begin < match.end() and match.start() < end for begin, end in taken):
                found.append(_Mention(*match.span(), label=label))
                taken.append(match.span())
    return sorted(found, key=lambda each: each.begin)


def _sure(text: str, mentions: Sequence[_Mention]) -> list[_Mention]:
    """The mentions in clauses that neither deny nor doubt."""
    rest = list(text)
    for each in mentions:
        rest[each.begin : each.end] = " " * (each.end - each.begin)
    plain = "".join(rest)
    ends = [match.end() for match in _CLAUSE.finditer(plain)] + [len(plain) + 1]
    sure: list[_Mention] = []
    begin = 0
    for end in ends:
        named = [each for each in mentions if begin <= each.begin < end]
        if named and not _DOUBT.search(plain[begin:end]):
            sure += named
        begin = end
    return sure
