"""Sentences with boxes beside their nouns: "A man [10, 20, 30, 40] is riding a bicycle [25, 30, 50, 45].", with plain
brackets or with the tokens of a family.

Between two boxes of a sentence stand the verb and the second noun. The verb is the first word after auxiliaries, with
the prepositions that follow it; a clause that has more to it is left out. Its subject is the one person named before it
in the sentence. With two persons there, or none, it is left out and both readings are named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from hoicli.converters.vlm.claims import EITHER, NO_PERSON, Claim, Claims
from hoicli.converters.vlm.keys import Place, Report, shown
from hoicli.converters.vlm.names import ARTICLES, PREPOSITIONS, label_of
from hoicli.converters.vlm.persons import names_person
from hoicli.converters.vlm.text import Spoken, span_of


@dataclass
class Mention:
    """A named place in a text: its `label` ("" without one), its boxes or the number of a region, the place of its
    characters, what wrote it (a key of CONVENTIONS, "roi" or "plain"), and whether its noun is in tokens, too."""

    label: str
    places: list[Place]
    start: int
    end: int
    kind: str
    tagged: bool = False


CONVENTIONS = {"box": "1000", "loc": "1000", "patch": "relative"}
"""The convention of the boxes that a family's tokens hold: <box> and <|box_start|> (InternVL, Qwen-VL, Qwen2-VL),
<loc_> (Florence-2), <patch_index_> (Kosmos-2)."""

_N = r"-?\d{1,9}(?:\.\d{0,18})?(?:[eE][-+]?\d{1,3})?"
_FOUR = rf"{_N}(?:\s{{0,3}}[,\s]\s{{0,3}}{_N}){{3}}"
_ONE = rf"[\[(]\s{{0,3}}{_FOUR}(?:\s{{0,3}};\s{{0,3}}{_FOUR}){{0,50}}\s{{0,3}}[\])]"
_TWO = rf"[\[(]\s?{_N}\s?,\s?{_N}\s?[\])]\s?(?:,|to|and|-)?\s?[\[(]\s?{_N}\s?,\s?{_N}\s?[\])]"
_TAG = (
    r"(?:<(?:ref|p|phrase)>(?P<tag>[^<]{0,200})</(?:ref|p|phrase)>\s{0,4}|"
    r"<\|object_ref_start\|>(?P<qwen>[^<]{0,200})<\|object_ref_end\|>\s{0,4})?"
)
_TOKENS = (
    r"<box>(?P<box>[^<]{0,20000})</box>|<\|box_start\|>(?P<points>[^<]{0,20000})<\|box_end\|>|"
    r"<roi>\s{0,4}(?:<r(?P<region>\d{1,4})>|(?P<roi>[^<]{0,200}))\s{0,4}</roi>|"
    r"(?P<loc>(?:<loc_\d{1,4}>){1,400})|"
    r"<object>(?P<patch>(?:<patch_index_\d{1,4}>|</?delimiter_of_multi_objects/?>){1,400})</object>"
)
_TOKEN = re.compile(_TAG + f"(?:{_TOKENS})")
_PLAIN = re.compile(rf"(?P<plain>[\[(]?(?:{_ONE}|{_TWO})[\])]?)")
_NUMBER = re.compile(_N)

BINS = 32
"""Kosmos-2's patches along each side of the picture."""


def token_mentions(text: str) -> list[Mention]:
    """The places that tokens name. A reference with several boxes has several `places`."""
    mentions: list[Mention] = []
    for match in _TOKEN.finditer(text):
        label = match["tag"] or match["qwen"] or ""
        tagged = bool(label)
        kind = next(name for name in ("box", "points", "region", "roi", "loc", "patch") if match[name] is not None)
        kind = {"points": "box", "region": "roi"}.get(kind, kind)
        last = mentions[-1] if mentions else None
        if not label and last is not None and not text[last.end : match.start()].strip(" ,;"):
            last.places += _places(match)
            last.end = match.end()
            continue
        if not label:
            label = _noun_before(text, match.start(), mentions)
        mentions.append(Mention(label_of(label), _places(match), match.start(), match.end(), kind, tagged))
    return mentions


def plain_mentions(text: str) -> list[Mention]:
    """The boxes in brackets; boxes that follow one another belong to one noun."""
    mentions: list[Mention] = []
    for match in _PLAIN.finditer(text):
        numbers = [float(found) for found in _NUMBER.findall(match["plain"])]
        boxes: list[Place] = [numbers[at : at + 4] for at in range(0, len(numbers), 4)]
        last = mentions[-1] if mentions else None
        if last is not None and not text[last.end : match.start()].strip(" ,;"):
            last.places += boxes
            last.end = match.end()
            continue
        label = _noun_before(text, match.start(), mentions)
        mentions.append(Mention(label_of(label), boxes, match.start(), match.end(), "plain"))
    return mentions


def _places(match: re.Match[str]) -> list[Place]:
    if match["region"] is not None:
        return [int(match["region"])]
    if match["patch"] is not None:
        parts = match["patch"].split("delimiter_of_multi_objects")
        return [_of_patches([int(found) for found in re.findall(r"\d+", part)]) for part in parts]
    if match["loc"] is not None:  # the middle of a thousandth, as the model's processor has it
        bins = [int(found) + 0.5 for found in re.findall(r"\d+", match["loc"])]
        return [bins[at : at + 4] for at in range(0, len(bins), 4)]
    written = match["box"] or match["points"] or match["roi"] or ""
    numbers = [float(found) for found in _NUMBER.findall(written)]
    return [numbers[at : at + 4] for at in range(0, len(numbers), 4)] or [[]]


def _of_patches(corners: list[int]) -> Place:
    """Kosmos-2's box of two patches as fractions: from middle to middle, or whole patches in one row or column."""
    if len(corners) != 2 or max(corners) >= BINS * BINS:
        return []
    (top, left), (bottom, right) = (divmod(corner, BINS) for corner in corners)
    inset = 0.0 if left == right or top == bottom else 0.5
    return [(left + inset) / BINS, (top + inset) / BINS, (right + 1 - inset) / BINS, (bottom + 1 - inset) / BINS]


_SENTENCE = re.compile(r"[.!?](?=\s|$)|[\n;]")
_SCENE = re.compile(
    r"(?:(?:in|on|at)\s+(?:the|this)\s+(?:image|picture|photo|photograph|scene)\b[^,]{0,40},\s*)?"
    r"(?:(?:the|this)\s+(?:image|picture|photo|photograph|scene)\s+(?:shows|depicts|contains|features|has)\s+|"
    r"there\s+(?:is|are)\s+|(?:i|we|you)\s+(?:can\s+)?see\s+|here\s+(?:is|are)\s+)?",
    re.IGNORECASE,
)
_MARKER = re.compile(r"\s{0,20}(?:(?:[-*+•]|\d{1,3}[.)])\s+)?")
_LOCATORS = frozenset(
    (
        *("located", "positioned", "situated", "found", "seen", "shown", "marked", "at", "in"),
        *("within", "with", "box", "boxes", "bbox", "bounding", "coordinates", "coords", "coordinate"),
        *("location", "position", "region", "area", "of", "is", "are", "the", "its"),
        *("from", "whose"),
    )
)
_STOPS = PREPOSITIONS | frozenset(
    (
        *("who", "that", "which", "while", "and", "or", "wearing", "holding", "next"),
        *("as", "is", "are", "was", "located"),
    )
)
_AUXILIARIES = frozenset(
    (
        *("is", "are", "was", "were", "be", "being", "been", "who", "which"),
        *("that", "appears", "appear", "seems", "to", "also", "currently", "he", "she"),
        "they",
    )
)
_NO_VERBS = PREPOSITIONS | frozenset(
    (
        *("and", "or", "next", "beside", "behind", "above", "below", "between", "there"),
        *("here", "also", "has", "have", "a", "an", "the", "near", "while"),
        *("but", "another", "not", "never", "no", "without", "may", "might", "could"),
        *("would", "can", "cannot", "will", "does", "do", "did", "doesn't", "don't"),
        *("isn't", "probably", "possibly", "both", "than"),
    )
)
"""First words of what is no verb, or of a verb that is denied or only possible."""
MOST_BETWEEN = 300
"""Characters between two boxes of one clause."""
_DASHES = "\N{EN DASH}\N{EM DASH}"
_ARROW = rf"(?:^|(?<=\s))[-{_DASHES}]+>?(?=\s|$)|[\N{{RIGHTWARDS ARROW}}{_DASHES}]|=>|\|"
_WORD = re.compile(r"[^\s,;:()\[\]<>]+")


def _noun_before(text: str, end: int, before: Sequence[Mention]) -> str:
    """The noun before a place: at the start of a sentence its first, within one that of the clause."""
    floor = max(before[-1].end if before else 0, end - MOST_BETWEEN)
    piece = text[floor:end]
    start = 0
    for found in _SENTENCE.finditer(piece):
        start = found.end()
    if before and not start:
        clause = _clause(piece, tagged=False)
        return " ".join(clause.noun) if clause is not None else ""
    for opening in (_MARKER, _SCENE):
        match = opening.match(piece, start)
        start = match.end() if match else start
    colon = piece.rfind(":", start)
    start = colon + 1 if colon >= 0 and _WORD.search(piece, colon + 1) else start
    words = [found.group().strip("*`_\"'").lower() for found in _WORD.finditer(piece, start)]
    return " ".join(_chunk(_without_locators([word for word in words if word])))


def _without_locators(words: list[str]) -> list[str]:
    """The words without "located at", "with bounding box" and the like at their end; "a box" is a thing."""
    end = len(words)
    while end and words[end - 1] in _LOCATORS and not (end > 1 and words[end - 2] in ("a", "an")):
        end -= 1
    return words[:end]


def _chunk(words: list[str]) -> list[str]:
    """The noun at the beginning of a clause: "the man in a red shirt" is man, "Person 1" person."""
    while words and words[0] in ARTICLES:
        words = words[1:]
    noun: list[str] = []
    for word in words:
        if word in _STOPS or word in ARTICLES:
            break
        noun.append(word)
    noun = [word for word in noun if not word.strip("#.").isdecimal()]
    return noun if len(noun) <= 3 else []


@dataclass(frozen=True)
class _Clause:
    """The words between two places: `joined` by "and" or a comma, the `verbs`, whether `passive`, and the `noun`."""

    joined: bool
    verbs: list[str]
    noun: list[str]
    passive: bool = False


def _clause(between: str, *, tagged: bool) -> _Clause | None:
    """The clause between two places; None for one that is longer than a clause, or where a sentence ends. `tagged`: its
    noun is in tokens and not in it; otherwise words without a noun after them are the noun."""
    text = re.sub(r"</?p>|[*`_\"']", " ", between[: MOST_BETWEEN + 1])
    if len(text) > MOST_BETWEEN or _SENTENCE.search(text):
        return None
    words = [found.group().lower() for found in _WORD.finditer(re.sub(_ARROW, " , ", text))]
    joined = text.lstrip().startswith(",") or words[:1] in (["and"], ["while"], ["but"])
    words = _without_locators(words)
    fields = [part.split() for part in re.split(rf"{_ARROW}|,", text) if part.strip(" :()")]
    if len(fields) == 2 and not _joined(fields) and re.match(rf"\s*(?:{_ARROW}|,)", text):
        verb, noun = ([word.lower() for word in part] for part in fields)
        noun = _without_locators([word.strip(":(") for word in noun])
        return _Clause(False, ["_".join(verb)] if len(verb) <= 3 else [], _chunk(noun))
    size = len(words)
    while words and words[0] in ("and", "while", "but", *_AUXILIARIES):
        words.pop(0)
    if words and words[0].endswith("ly") and len(words[0]) > 5:
        words.pop(0)
    bare = len(words) == size and not ARTICLES & set(words)
    if not tagged and words and (len(words) == 1 or (bare and not _is_verb(words))):
        return _Clause(joined, [], words if words[0] not in _NO_VERBS else [])
    verbs, noun = _verbs_and_noun(words)
    passive = len(verbs) == 1 and verbs[0].endswith("_by") and not verbs[0].endswith("ing_by")
    if not verbs or len(noun) > 3 or any(word in _STOPS or word in ARTICLES for word in noun):
        return _Clause(joined, [], _last_noun(words))
    return _Clause(joined, [verbs[0].removesuffix("_by")] if passive else verbs, noun, passive)


def _verbs_and_noun(words: list[str]) -> tuple[list[str], list[str]]:
    """The verbs at the start of a clause, each with its prepositions, and the words after them."""
    verbs: list[str] = []
    while words and words[0] not in _NO_VERBS and words[0] not in ARTICLES:
        size = 1
        while size < len(words) and words[size] in PREPOSITIONS:
            size += 1
        verbs.append("_".join(words[:size]))
        words = words[size:]
        if words[:1] == ["or"]:  # which of the two is not said
            return [], []
        if words[:1] != ["and"]:
            break
        words = words[1:]
    return verbs, words[1:] if words and words[0] in ARTICLES else words


def _last_noun(words: list[str]) -> list[str]:
    """The noun after the last article of a clause without a verb that can be read."""
    last = max((at for at, word in enumerate(words) if word in ARTICLES), default=-1)
    noun = words[last + 1 :] if last >= 0 else []
    return noun if len(noun) <= 3 and not any(word in _STOPS for word in noun) else []


def _is_verb(words: list[str]) -> bool:
    """Whether words without an auxiliary or an article are a verb and its object (riding horse), not one noun (dining
    table, red bicycle)."""
    nouns, verbs = _known()
    return "_".join(words) not in nouns and (words[0].endswith(("ing", "s")) or words[0] in verbs)


@lru_cache(maxsize=1)
def _known() -> tuple[frozenset[str], frozenset[str]]:
    """HICO-DET's objects, and the first words of its verbs."""
    from hoicli.vocabulary.datasets import load

    known = load("hico")
    return frozenset(known.objects), frozenset(verb.split("_")[0] for verb in known.verbs)


def _joined(fields: list[list[str]]) -> bool:
    """Whether one of two fields begins like a clause, not like a verb or a noun alone."""
    return any(part[0].lower() in _AUXILIARIES | {"and", "while", "but"} for part in fields)


def claims_of_sentences(
    text: Spoken, mentions: Sequence[Mention], report: Report, verbs: Sequence[str], label: str | None
) -> Claims:
    """The claims of sentences with these mentions; `verbs`, `label`: those of the question, for boxes in pairs without
    a word between them."""
    reader = _Sentences(text, mentions, report, label)
    for number in range(1, len(mentions)):
        reader.read(number, list(verbs) if label is not None and number % 2 else [])
    reader.finish()
    return reader.claims


class _Sentences:
    """Collects the claims of sentences. `persons`: the mentions of persons in the clause under way; `told`: whether it
    has a triplet."""

    def __init__(self, text: Spoken, mentions: Sequence[Mention], report: Report, asked: str | None) -> None:
        self.claims = Claims(understood=True)
        self._text, self._mentions, self._report, self._asked = text, mentions, report, asked
        self._used: set[int] = set()
        self._begin(0)

    def _begin(self, number: int) -> None:
        self.persons = [number] if names_person(self._mentions[number].label) else []
        self.told = False

    def read(self, number: int, verbs: list[str]) -> None:
        """Read the words before a mention; without one between two of a pair, `verbs` are those of the question."""
        start, end = self._mentions[number - 1].end, self._mentions[number].start
        clause = _clause(self._text[start:end], tagged=self._mentions[number].tagged or bool(self._asked))
        if clause is None:
            self._begin(number)
            return
        if not clause.verbs and verbs:
            clause = _Clause(False, verbs, [])
        if clause.verbs:
            self._used |= {number - 1, number}
            self._tell(number, clause, start)
            if names_person(self._mentions[number].label) and not clause.passive:
                self.persons.append(number)
        elif clause.joined and self.told:
            self._begin(number)
        elif names_person(self._mentions[number].label):
            self.persons.append(number)

    def _tell(self, number: int, clause: _Clause, start: int) -> None:
        """Add the triplet of a clause that begins at `start`, or report why there is none."""
        before, mention = self._mentions[number - 1], self._mentions[number]
        label = mention.label or label_of(" ".join(clause.noun)) or self._asked
        verbs = ", ".join(clause.verbs)
        subject, object_ = before, mention
        if clause.passive:
            subject, object_, label = mention, before, before.label
        elif len(self.persons) > 1:
            ends = [self._mentions[at] for at in (self.persons[0], self.persons[-1])]
            readings = [f"{shown(one.label, one.places[0])} {verbs} {label}" for one in ends]
            self._report("two persons before a verb, of whom either may act", *readings)
            return
        elif self.persons:
            subject = self._mentions[self.persons[0]]
            self._used.add(self.persons[0])
        if not names_person(subject.label):
            if subject.label and label is not None and names_person(label) and not clause.passive:
                ends_ = shown(subject.label, subject.places[0]), shown(label, object_.places[0])
                readings = [f"{ends_[0]} {verbs} {ends_[1]}", f"{ends_[1]} {verbs} {ends_[0]}"]
                self._report(EITHER, *readings)
            else:
                self._report(NO_PERSON)
            return
        if len(subject.places) > 1 or len(object_.places) > 1:
            many = subject if len(subject.places) > 1 else object_
            readings = [f"{verbs}: {shown(many.label or label or '', place)}" for place in many.places[:2]]
            self._report("a noun with several boxes in a triplet, of which any may be meant", *readings)
            return
        self.told = True
        said = self._spoken(start, mention.start)
        spans = tuple(span_of(said, verb) for verb in clause.verbs)
        named = self._spoken(object_.start if clause.passive else start, object_.end)
        claim = Claim(subject.places[0], object_.places[0], label or None, tuple(clause.verbs), spans=spans)
        self.claims.triplets.append(replace(claim, label_span=span_of(named, label) if label else None))

    def _spoken(self, start: int, end: int) -> Spoken:
        """A part of the text, with its place in the answer."""
        return Spoken.at(self._text[start:end], self._text.start + start)

    def finish(self) -> None:
        """Keep the boxes that no clause has."""
        for number, mention in enumerate(self._mentions):
            for place in mention.places if number not in self._used else ():
                if isinstance(place, list) and len(place) == 4 and mention.label:
                    self.claims.located.append((place, mention.label))
                else:
                    self._report("a box without a name, or that is not four numbers")
