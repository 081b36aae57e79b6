"""Which names of an answer mean a person."""

from __future__ import annotations

from functools import lru_cache

PERSONS = frozenset(
    ("person", "human", "people", "man", "woman", "boy", "girl", "child", "kid", "baby", "adult", "player", "rider")
)
"""Names of a box that mean a person: the box becomes one of `person`."""

_MORE = frozenset(
    ("he", "she", "they", "someone", "somebody", "individual", "figure", "subject", "men", "women", "male", "female")
)


def names_person(name: str) -> bool:
    """Whether a name as records spell it means a person: one of PERSONS, or a word whose first sense in WordNet is a
    person's (surfer, chef). Of several words the last counts ("young_woman"), and numbers do not ("person_2")."""
    words = [word for word in name.split("_") if word.strip("#().0123456789")]
    return bool(words) and _is_person(words[-1].strip("#().0123456789"))


@lru_cache(maxsize=4096)
def _is_person(word: str) -> bool:
    if word in PERSONS or word in _MORE:
        return True
    if not word.isalpha() or len(word) > 40:
        return False
    from hoicli.wordnet.lexicon import embedded

    wordnet = embedded()
    senses = wordnet.word_senses(word, "n")
    return bool(senses) and wordnet.synset(wordnet.name(senses[0])).lexname() == "noun.person"
