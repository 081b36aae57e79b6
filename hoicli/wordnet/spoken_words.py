"""Which class of a dataset a verb or an object means, as people and models say it ("is riding", "sofa", "the dogs").

Every command that takes words for classes asks here. First come the user's synonyms, the dataset's aliases and the
spelling, without WordNet; then `spoken_objects` and `spoken_verbs`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from functools import cached_property

from hoicli.vocabulary.labels import Vocabulary, normalise, replace_typography, strip_accents
from hoicli.wordnet.lexicon import open_wordnet
from hoicli.wordnet.spoken_objects import SpokenObjects
from hoicli.wordnet.spoken_verbs import SpokenVerbs
from hoicli.wordnet.word_uses import SPELLING, USER, Meaning, form_of, no_class

MOST_CHARACTERS = 300
"""The longest text that is looked up in WordNet."""
_TOO_LONG = no_class(f"longer than {MOST_CHARACTERS} characters")


class SpokenWords:
    """The look-up of words among a dataset's verbs and objects. WordNet, the one in use, is opened for the first word
    that is not spelled as a class. Each word is looked up once, however often it occurs."""

    def __init__(self, vocabulary: Vocabulary, synonyms: Mapping[str, str] | None = None) -> None:
        """Index the dataset's labels by their spellings. synonyms: the user's own, {word: label}."""
        self._vocabulary = vocabulary
        self._spellings = {"v": _index_spellings(vocabulary.verbs), "n": _index_spellings(vocabulary.objects)}
        users_words = {**vocabulary.aliases, **(synonyms or {})}
        self._users: dict[str, str] = {}
        for word, label in users_words.items():
            self._users |= dict.fromkeys(_fold_spellings(word), label)
        self._meanings: dict[tuple[str, str | None, str], Meaning] = {}

    def look_up_object(self, name: str) -> Meaning:
        """Return what an object that somebody names is in the dataset: "two dogs" is a dog."""
        key = ("n", None, name)
        if key not in self._meanings:
            self._meanings[key] = self._find_spelling(name, "n") or (
                _TOO_LONG if len(name) > MOST_CHARACTERS else self._objects.find(name)
            )
        return self._meanings[key]

    def look_up_verb(self, phrase: str, object_: str | None = None) -> Meaning:
        """Return what a verb that somebody says is in the dataset: "is riding" is ride. object_: the dataset's label of
        the object that it is said of, which may decide between verbs (sit_on, sit_at); None if it is not known."""
        key = ("v", object_, phrase)
        if key not in self._meanings:
            self._meanings[key] = self._find_spelling(phrase, "v") or (
                _TOO_LONG if len(phrase) > MOST_CHARACTERS else self._verbs.find(phrase, object_)
            )
        return self._meanings[key]

    @cached_property
    def _objects(self) -> SpokenObjects:
        """Return the look-up of objects in WordNet."""
        return SpokenObjects(self._vocabulary, open_wordnet(), self._find_spelling)

    @cached_property
    def _verbs(self) -> SpokenVerbs:
        """Return the look-up of verbs in WordNet."""
        return SpokenVerbs(self._vocabulary, open_wordnet(), self.look_up_object)

    def _find_spelling(self, word: str, pos: str) -> Meaning | None:
        """Return the class that the user says a word means, or that is spelled so, None for neither. Case, spaces and
        hyphens do not matter, nor do accents unless two labels differ by them alone. pos: "v" or "n"."""
        labels = self._vocabulary.verbs if pos == "v" else self._vocabulary.objects
        if normalise(word) in labels:  # as it stands: SWIG-HOI has crown and Crown
            return Meaning(normalise(word), SPELLING, "the same word")
        nothing = _fold(self._vocabulary.no_interaction or "") if pos == "v" else ""
        for form in _fold_spellings(word):
            if form and self._users.get(form) in labels:
                return Meaning(self._users[form], USER, "a synonym of yours, or an alias of the dataset")
            if form in self._spellings[pos]:
                return Meaning(self._spellings[pos][form], SPELLING, "the same word")
            if nothing and form.startswith(nothing):  # "no interaction with"
                return form_of(self._spellings[pos][nothing])
        return None


def _index_spellings(labels: Iterable[str]) -> dict[str, str]:
    """Return a dataset's labels by the spellings under which each is found. A label is found without its accents, too,
    unless another one is spelled so."""
    with_accents, without_accents = {}, {}
    for label in labels:
        accented_form, plain_form = _fold_spellings(label)
        with_accents[accented_form] = without_accents[plain_form] = label
    return without_accents | with_accents


def _fold_spellings(word: str) -> tuple[str, str]:
    """Return two spellings under which a word is looked up: its letters and digits in lower case, with the accents and
    without them."""
    plain_word = replace_typography(word)
    return _fold(plain_word), _fold(strip_accents(plain_word))


def _fold(word: str) -> str:
    """Return a word's letters and digits in lower case, with marks that are characters (Hindi's vowel signs)."""
    return "".join(letter for letter in word.lower() if letter.isalnum() or unicodedata.category(letter)[0] == "M")
