"""What a word may mean in a dataset, for `spoken_words`: the answer, the senses that a word is used in, and the words
that WordNet alone does not decide (data/words.json)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from hoicli.wordnet.lexicon import Lexicon
from hoicli.wordnet.senses import senses_in

SPELLING, USER, LEMMA, TABLE = "spelling", "user", "form", "table"
"""How a word is mapped: it is spelled as the class; the user says so; another form of its name; words.json says so."""
SYNONYM, KIND, OBJECT, NONE = "synonym", "kind", "object", "none"
"""It has the class's sense; it is a kind of it; the object decides between verbs. Or it is not mapped."""
SAME_WORD = frozenset((SPELLING, USER, LEMMA))
"""How a word may be mapped that is the class's own name."""


@dataclass(frozen=True)
class Meaning:
    """What a word means in a dataset: its class, None for none, and why. how: how it was mapped, one of SPELLING to
    NONE. sense: the word's sense by which it is the class, None where no sense was looked at."""

    label: str | None
    how: str
    why: str
    sense: str | None = None


def no_class(why: str) -> Meaning:
    """Return the meaning of a word that is no class."""
    return Meaning(None, NONE, why)


def form_of(label: str) -> Meaning:
    """Return the meaning of a word that is another form of a class's name."""
    return Meaning(label, LEMMA, f"a form of {label}")


@cache
def words_table() -> dict[str, Any]:
    """Return data/words.json, whose "about" says what is in it."""
    table: dict[str, Any] = json.loads(files(__package__).joinpath("data", "words.json").read_text(encoding="utf-8"))
    return table


def usual_prepositions() -> Mapping[str, str]:
    """Return the prepositions, with the one in whose place each stands (words.json)."""
    usual: Mapping[str, str] = words_table()["prepositions"]
    return usual


def denies(words: Iterable[str]) -> bool:
    """Return whether one of the words, which are in lower case, denies something: "no", "never", "isn't"."""
    denials = words_table()["denials"]
    return any(word in denials or word.endswith(("n't", "n\N{RIGHT SINGLE QUOTATION MARK}t")) for word in words)


def denies_or_doubts(words: Collection[str]) -> bool:
    """Return whether one of the words denies something (`denies`), or doubts it: "maybe", "or"."""
    return denies(words) or not set(words_table()["doubts"]).isdisjoint(words)


def part_of(wordnet: Lexicon, sense: str) -> str:
    """Return the part of WordNet that has a sense: "animal" for noun.animal."""
    part: str = wordnet.reader.synset(sense).lexname()
    return part.partition(".")[2]


def uses_of(wordnet: Lexicon, lemma: str, pos: str) -> dict[str, int]:
    """Return {sense: how often WordNet's texts have the lemma in it}, in WordNet's order, 0 where nothing is counted.
    Names (Colt) are left out if the word is a common one, too."""
    lemmas = {sense: _lemma_in(wordnet, sense, lemma) for sense in senses_in(wordnet, lemma, pos)}
    common = {sense: form for sense, form in lemmas.items() if form is None or form.name().islower()}
    counted = wordnet.graph.counted
    return {sense: form.count() if form and counted else 0 for sense, form in (common or lemmas).items()}


def _lemma_in(wordnet: Lexicon, sense: str, word: str) -> Any:
    """Return nltk's lemma of a word in a sense, which has its spelling and its count; None if there is none."""
    lemmas = wordnet.reader.synset(sense).lemmas()
    return next((lemma for lemma in lemmas if lemma.name().lower() == word.lower()), None)


def group_by_sense(senses: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return {sense: the labels that have it}, given the sense of each label. Labels whose sense is only the nearest
    one (words.json) have none."""
    labels: dict[str, list[str]] = {}
    for label, sense in senses.items():
        if sense is not None and label not in words_table()["no_sense"]:
            labels.setdefault(sense, []).append(label)
    return labels
