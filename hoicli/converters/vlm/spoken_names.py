"""The words of an answer as verbs, labels and persons in the records' spelling: "Sitting on the bench" is `sitting_on`
a `bench`. Only the spelling changes; the look-up of senses finds the base form and the meaning of a verb.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from hoicli.vocabulary.labels import Vocabulary, replace_typography, strip_accents

PREPOSITIONS = frozenset(
    (
        *("about", "against", "along", "around", "at", "by", "down", "for", "from", "in", "into", "near"),
        *("of", "off", "on", "onto", "out", "over", "through", "to", "under", "up", "with"),
    )
)
"""Words that follow a verb and belong to it."""
PERSONS = frozenset(
    (
        *("person", "human", "people", "man", "woman", "boy", "girl", "child", "kid", "baby", "adult", "player"),
        *("rider", "he", "she", "they", "someone", "somebody", "individual", "figure", "subject", "men", "women"),
        *("male", "female"),
    )
)
"""Names of a box that mean a person: the box becomes one of `person`."""
_ARTICLES = frozenset(("a", "an", "the", "a/an", "his", "her", "their", "its", "another"))
"""Words before a noun that are not part of its name."""
MOST_WORDS = 3
"""The most words of a verb or of a name; anything longer is prose."""
_DENIALS = frozenset(("no", "not", "never", "nobody", "nothing", "none", "neither", "nor", "cannot", "without"))
_DOUBTS = frozenset({
    "non", "absent", "except", "false", "hardly", "barely", "almost", "nearly", "or", "either", "if", "maybe",
    "perhaps", "possibly", "probably", "may", "might", "could", "would", "unknown", "unclear", "unsure", "is", "are",
    "true",
})  # fmt: skip
"""Further words that are no part of a verb or a name."""


def denies(words: Iterable[str]) -> bool:
    """Whether one of the words, which are in lower case, says that something is not so."""
    return any(word in _DENIALS or word.endswith(("n't", "n\N{RIGHT SINGLE QUOTATION MARK}t")) for word in words)


def label_of(text: str) -> str:
    """Return a name in the records' spelling: lower case, no article, underscores for spaces."""
    words = re.sub(r"[`*\"]+", "", replace_typography(text)).strip().strip(".!?,;:'").lower()
    words = re.sub(r"^(?:a/an|a|an|the)[\s_]+", "", words)
    return re.sub(r"[\s_]+", "_", words)


def verbs_of(value: Any, label: str | None = None) -> list[str]:
    """Return the verbs in a value of an answer: a list, or one text with several ("ride, sit on"), each as `sit_on`.
    Articles and the object's name (`label`) at the end, as in "riding the bicycle", are left off. A text of more than
    `MOST_WORDS` words gives no verb, nor does one that denies or doubts. Gerunds stay; the evaluation lemmatises."""
    if isinstance(value, list):
        return list(dict.fromkeys(chain.from_iterable(verbs_of(item, label) for item in value)))
    verbs = []
    for words in _phrases(value) if isinstance(value, str) else ():
        if label is not None:
            words = _strip_object(words, label)
        words = [word for word in words if word not in _ARTICLES]
        if _is_plain(words):
            verbs.append(_verb(words))
    return list(dict.fromkeys(verbs))


def split_phrase(phrase: str) -> tuple[list[str], str | None]:
    """Return (verbs, object) of a phrase that has both, "riding a bicycle", "sit on bench" or "hold and ride bicycle".
    The object begins after the article; without one, after the first word and the prepositions that follow it. A phrase
    of one word, or of more than twice `MOST_WORDS`, names no object."""
    verbs, label = [], None
    for words in _phrases(phrase):
        end = 1
        while end < len(words) and words[end] in PREPOSITIONS:
            end += 1
        article = next((index for index, word in enumerate(words) if index and word in _ARTICLES), None)
        verb, name = (words[:end], words[end:]) if article is None else (words[:article], words[article + 1 :])
        if len(words) <= 2 * MOST_WORDS and _is_plain(verb):
            verbs.append(_verb(verb))
            label = "_".join(name) or label
    return list(dict.fromkeys(verbs)), label


def is_name(label: str) -> bool:
    """Whether a label, as records spell it, is a name: it has few words, and no word that denies or doubts."""
    return _is_plain([word for word in label.split("_") if not word.strip("#.").isdecimal()])


def names_person(name: str) -> bool:
    """Whether a name as records spell it means a person: one of PERSONS, or a word whose first sense in WordNet is a
    person's (surfer, chef). Of several words the last counts ("young_woman"), and numbers do not ("person_2")."""
    words = [word for word in name.split("_") if word.strip("#().0123456789")]
    return bool(words) and _is_person(words[-1].strip("#().0123456789"))


@lru_cache(maxsize=4096)
def _is_person(word: str) -> bool:
    """Whether a word is one of PERSONS, or its first sense in WordNet is a person's."""
    if word in PERSONS:
        return True
    if not word.isalpha() or len(word) > 40:
        return False
    from hoicli.wordnet.lexicon import open_embedded

    wordnet = open_embedded()
    senses = wordnet.word_senses(word, "n")
    return bool(senses) and wordnet.reader.synset(wordnet.graph.names[senses[0]]).lexname() == "noun.person"


def _verb(words: list[str]) -> str:
    """Return the words of a verb as records spell it; `no_interaction with` becomes no_interaction."""
    verb = "_".join(words)
    return "no_interaction" if verb.startswith("no_interaction") else verb


def _is_plain(words: list[str]) -> bool:
    """Whether words are a verb or a name: not too many of them, and none that denies, doubts or is strange."""
    if not 0 < len(words) <= MOST_WORDS:
        return False
    return words[0] == "no_interaction" or not (denies(words) or any(map(_is_strange, words)))


def _is_strange(word: str) -> bool:
    """Whether a word expresses doubt, is empty, begins with a digit, or has characters that words do not have."""
    if word in _DOUBTS or not word or word[0].isdigit():
        return True
    return not all(letter.isalnum() or letter in "-'&." or unicodedata.category(letter)[0] == "M" for letter in word)


def _phrases(text_said: str) -> Iterator[list[str]]:
    """Yield the words, in lower case, of each phrase of a text. Phrases are separated by commas, semicolons, line ends
    and "and". "no interaction" is one word."""
    text = re.sub(
        r"[^\S\n]+", " ", re.sub(r"[`*\"]+", "", replace_typography(text_said))
    ).strip()  # a run of spaces is looked at once
    for part in re.split(r"\s*[,;\n]\s*|\s+and\s+", text):
        words = [word for word in re.split(r"[\s_]+", part.strip().strip(".!?,;:'").lower()) if word]
        if words[:2] == ["no", "interaction"]:
            words[:2] = ["no_interaction"]
        if words:
            yield words


def _strip_object(words: list[str], label: str) -> list[str]:
    """Return the words of a phrase without the object's name (or its plural) at their end."""
    name = label_of(label).split("_")
    for ending in (name, [*name[:-1], name[-1] + "s"], [*name[:-1], name[-1] + "es"]):
        if len(words) > len(ending) and words[-len(ending) :] == ending:
            return words[: -len(ending)]
    return words


class Spelling:
    """The look-up of a model's words among a dataset's names (`--to-vocabulary`), by spelling only. Case and spaces do
    not matter, nor do accents unless two names differ by them alone; a gerund is also looked up as its base form."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._verbs, self._objects = _index_spellings(vocabulary.verbs), _index_spellings(vocabulary.objects)

    def object(self, name: str) -> str | None:
        """Return the vocabulary's spelling of an object, or None if it does not have the object."""
        return next((self._objects[form] for form in _forms(name) if form in self._objects), None)

    def verb(self, name: str) -> str | None:
        """Return the vocabulary's spelling of a verb, or None if it does not have the verb: "riding" is ride."""
        first, *rest = name.split("_")
        spelled = chain.from_iterable(_forms("_".join((form, *rest))) for form in (first, *_base_forms(first)))
        return next((self._verbs[form] for form in spelled if form in self._verbs), None)


def _index_spellings(names: Sequence[str]) -> dict[str, str]:
    """Return each name by the spellings under which it is found; of two names, the one spelled exactly so."""
    # Spellings with accents come second, so that they override equal ones without.
    return {_forms(name)[1]: name for name in names} | {_forms(name)[0]: name for name in names}


def _forms(name: str) -> tuple[str, str]:
    """Return two spellings of a name, its letters and digits in lower case: with accents, and without."""
    return _fold_spelling(replace_typography(name)), _fold_spelling(strip_accents(replace_typography(name)))


def _fold_spelling(name: str) -> str:
    """Return the letters and digits of a name in lower case."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _base_forms(word: str) -> list[str]:
    """Return the base forms that a gerund may have: riding -> rid, ride; sitting -> sitt, sitte, sit; lying -> lie."""
    stem = word[:-3]
    if not word.endswith("ing") or len(stem) < 2:
        return []
    forms = [stem, stem + "e"]
    if len(stem) > 2 and stem[-1] == stem[-2]:
        forms.append(stem[:-1])
    return [*forms, stem[:-1] + "ie"] if stem.endswith("y") else forms
