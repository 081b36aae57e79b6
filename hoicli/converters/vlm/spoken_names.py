"""The words of an answer as verbs, labels and persons in the records' spelling: "Sitting on the bench" is `sitting_on`
a `bench`. Only the spelling changes; the look-up of senses finds the base form and the meaning of a verb."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any

from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import SUBJECT, replace_typography
from hoicli.wordnet.lexicon import open_wordnet
from hoicli.wordnet.phrases import AUXILIARIES, LONGEST, PERFECT
from hoicli.wordnet.spoken_words import SpokenWords
from hoicli.wordnet.word_uses import denies_or_doubts, words_table

PERSONS = frozenset({
    "person", "human", "people", "man", "woman", "boy", "girl", "child", "kid", "baby", "adult", "player", "rider",
    "he", "she", "they", "someone", "somebody", "individual", "figure", "subject", "men", "women", "male", "female",
})  # fmt: skip
"""Names of a box that mean a person: the box becomes one of `person`."""
_FILLERS = frozenset(("are", "being", "is", "that", "who"))
"""Words of a label that say nothing: "a man who is riding a bike"."""
_ARTICLES = frozenset(("a", "an", "the", "a/an", "his", "her", "their", "its", "another"))
"""Words before a noun that are not part of its name."""
MOST_WORDS = 5
"""The most words of a verb, besides auxiliaries and articles: "going for a ride on". Anything longer is prose."""
MOST_WORDS_OF_NAME = 6
"""The most words of a name: "man in a red shirt"."""
_INTENTIONS = frozenset(("about", "attempting", "going", "preparing", "ready", "tries", "trying", "wanting", "wants"))
"""Words before "to" and a verb that says what is not done yet."""
_STATEMENTS = frozenset(("are", "false", "is", "true"))
"""Further words that are no part of a verb or a name."""


def label_of(text: str) -> str:
    """Return a name from an answer in the records' spelling, in lower case with underscores for spaces and without an
    article: "The Dining Table" is dining_table."""
    words = re.sub(r"[`*\"]+", "", replace_typography(text)).strip().strip(".!?,;:'").lower()
    words = re.sub(r"^(?:a/an|a|an|the)[\s_]+", "", words)
    return re.sub(r"[\s_]+", "_", words)


def verbs_of(value: Any, label: str | None = None) -> list[str]:
    """Return the verbs that a JSON value of an answer states, as records spell them: ["ride", "sit_on"] for the text
    "ride, sit on" or a list of the two. Any other value has none.

    label: the object's name, None if it is not known; it and articles are left off at the end of a phrase ("riding the
    bicycle"). A phrase of more than MOST_WORDS words gives no verb, nor does one that denies or doubts. Gerunds stay as
    they are, since the evaluation finds their base form."""
    if isinstance(value, list):
        return list(dict.fromkeys(chain.from_iterable(verbs_of(item, label) for item in value)))
    verbs = []
    for words in _phrases(value) if isinstance(value, str) else ():
        verb_words = words if label is None else _strip_object(words, label)
        verb_words = [word for word in verb_words if word not in _ARTICLES]
        if _is_plain(verb_words[_count_auxiliaries(verb_words) :]):
            verbs.append(_verb(verb_words))
    return list(dict.fromkeys(verbs))  # each once, in order


def split_phrase(phrase: str) -> tuple[list[str], str | None]:
    """Return (verbs, object) of a phrase that names both: "hold and ride a bicycle" gives (["hold", "ride"],
    "bicycle"). The object is what follows the article; without an article, what follows the first word and its
    prepositions ("sit on bench"). It is None for a phrase of one word, or of more than twice MOST_WORDS."""
    verbs = []
    label = None
    for words in _phrases(phrase):
        verb_start = _count_auxiliaries(words)
        verb_end = verb_start + 1
        while verb_end < len(words) and words[verb_end] in words_table()["prepositions"]:
            verb_end += 1
        article = next((index for index, word in enumerate(words) if index > verb_start and word in _ARTICLES), None)
        name_start = verb_end
        if article is not None:
            verb_end, name_start = article, article + 1
        if len(words) <= 2 * MOST_WORDS + verb_start and _is_plain(words[verb_start:verb_end]):
            verbs.append(_verb(words[:verb_end]))
            label = "_".join(words[name_start:]) or label
    return list(dict.fromkeys(verbs)), label


def is_name(label: str) -> bool:
    """Return whether a label, as records spell it, can be a name: it has at most MOST_WORDS_OF_NAME words, besides
    numbers, and none that denies or doubts."""
    words = [word for word in label.split("_") if not word.strip("#.").isdecimal()]
    return _is_plain(words, MOST_WORDS_OF_NAME)


def names_person(name: str) -> bool:
    """Return whether a name, as records spell it, means a person: its last word is one of PERSONS, or it is a kind of
    person in WordNet (surfer, chef; a tiger is none)."""
    words = [word for word in name.split("_") if word.strip("#().0123456789")]
    if not words or len(name) > 80:
        return False
    return words[-1].strip("#().0123456789") in PERSONS or _hico_words().look_up_object(name).label == SUBJECT


def names_verb(text: str) -> bool:
    """Return whether a text is a verb of HICO-DET."""
    return _hico_words().look_up_verb(text).label is not None


def split_statement(name: str) -> tuple[str, list[str], str] | None:
    """Return (who acts, the verbs, the object) of a box's label that says what somebody does, None for a name.

    "man_riding_a_bike" is ("man", ["riding"], "bike"); "" stands for what is not said ("riding_the_bike"), and a phrase
    without a verb has none ("man_on_horse"). A man with what no dataset has is a name ("man_in_a_red_shirt"), and so is
    a noun that begins or ends as a verb does ("dining_table", "sleeping_cat")."""
    words = [word for word in name.split("_") if word not in _FILLERS]
    for place, word in enumerate(words if len(words) <= LONGEST else ()):
        subject, rest = "_".join(words[:place]), words[place + 1 :]
        thing = "_".join(word for word in rest if word not in _ARTICLES)
        acts = bool(subject) and names_person("_".join(word for word in words[:place] if word not in _ARTICLES))
        if _is_act(words, place) and (acts or (rest and (subject or rest[0] in _ARTICLES))):
            verbs, label = split_phrase("_".join(words[place:]))
            return subject, verbs, "_".join(word for word in (label or "").split("_") if word not in _ARTICLES)
        if word in words_table()["prepositions"] and subject:
            is_phrase = acts and _hico_words().look_up_object(thing).label not in (None, SUBJECT)
            return (subject, [], thing) if is_phrase or (word == "by" and names_person(thing)) else None
    return None


def _is_act(words: list[str], place: int) -> bool:
    """Return whether the word at a place of a name is a verb: a gerund that makes no noun with the word before or after
    it, or behind a person and before other words a form in -s ("man rides bike")."""
    word, wordnet = words[place], open_wordnet()
    if not wordnet.forms(word, "v"):
        return False
    if not word.endswith("ing"):
        return 0 < place < len(words) - 1 and word.endswith("s") and names_person("_".join(words[:place]))
    nouns = ("_".join(words[max(place - 1, 0) : place + 1]), "_".join(words[place : place + 2]))
    return not any("_" in noun and wordnet.forms(noun, "n") for noun in nouns)


@cache
def _hico_words() -> SpokenWords:
    """Return the look-up by which persons and phrases are told from other names: that of HICO-DET's words."""
    return SpokenWords(load("hico"))


def _verb(words: list[str]) -> str:
    """Return a verb as records spell it, from its words; "no_interaction with" becomes no_interaction."""
    verb = "_".join(words)
    return "no_interaction" if verb.startswith("no_interaction") else verb


def _is_plain(words: list[str], limit: int = MOST_WORDS) -> bool:
    """Return whether words can be a verb or a name: at most `limit`, of which none denies, doubts or is odd."""
    if not 0 < len(words) <= limit:
        return False
    if words[1:2] == ["to"] and words[0] in _INTENTIONS:
        return False
    return words[0] == "no_interaction" or not (denies_or_doubts(words) or any(map(_is_strange, words)))


def _count_auxiliaries(words: list[str]) -> int:
    """Return how many auxiliaries a phrase begins with: two in "has been riding"."""
    return next((place for place, word in enumerate(words) if word not in AUXILIARIES | PERFECT), len(words))


def _is_strange(word: str) -> bool:
    """Return whether a word is no part of a name: it states something, is empty, begins with a digit, or has characters
    that words do not have."""
    if word in _STATEMENTS or not word or word[0].isdigit():
        return True
    # "M" are marks, such as accents that are characters of their own
    return not all(letter.isalnum() or letter in "-'&." or unicodedata.category(letter)[0] == "M" for letter in word)


def _phrases(text: str) -> Iterator[list[str]]:
    """Yield the words, in lower case, of each phrase of a text; commas, semicolons, line ends and "and" end one."""
    without_marks = re.sub(r"[`*\"]+", "", replace_typography(text))
    single_spaced = re.sub(r"[^\S\n]+", " ", without_marks).strip()  # long runs of spaces would make the split slow
    for part in re.split(r"\s*[,;\n]\s*|\s+and\s+", single_spaced):
        words = [word for word in re.split(r"[\s_]+", part.strip().strip(".!?,;:'").lower()) if word]
        if words[1:4] == ["on", "top", "of"] or words[2:5] == ["on", "top", "of"]:
            del words[words.index("top") : words.index("of") + 1]
        if words[:2] == ["no", "interaction"]:
            words[:2] = ["no_interaction"]
        if words:
            yield words


def _strip_object(words: list[str], label: str) -> list[str]:
    """Return the words of a phrase without the object's name (`label`, in any spelling or the plural) at their end."""
    name = label_of(label).split("_")
    for ending in (name, [*name[:-1], name[-1] + "s"], [*name[:-1], name[-1] + "es"]):
        if len(words) > len(ending) and words[-len(ending) :] == ending:
            return words[: -len(ending)]
    return words
