"""The words of an answer as verbs and labels in the records' spelling.

Only the spelling changes: "Sitting on the bench" is `sitting_on` a `bench`. The look-up of senses finds the base form
and the meaning of a verb.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

ARTICLES = frozenset(("a", "an", "the", "a/an", "his", "her", "their", "its", "another"))
"""Words before a noun that are not part of its name."""
PREPOSITIONS = frozenset(
    (
        *("about", "against", "along", "around", "at", "by", "down", "for", "from", "in", "into", "near"),
        *("of", "off", "on", "onto", "out", "over", "through", "to", "under", "up", "with"),
    )
)
"""Words that follow a verb and belong to it."""
MOST_WORDS = 3
"""Words of a verb, or of a name; what is longer is prose."""
_NO_WORDS = frozenset({
    "no", "not", "non", "none", "nobody", "nothing", "never", "neither", "nor", "cannot", "without",
    "absent", "except", "false", "hardly", "barely", "almost", "nearly", "or", "either", "if", "maybe",
    "perhaps", "possibly", "probably", "may", "might", "could", "would", "unknown", "unclear", "unsure", "is",
    "are", "true",
})  # fmt: skip
"""Words that are no part of a verb or a name: what they stand in denies or doubts."""


def label_of(text: str) -> str:
    """A name in the records' spelling: lower case, no article, underscores for spaces."""
    words = re.sub(r"[`*\"]+", "", text).strip().strip(".!?,;:").lower()
    words = re.sub(r"^(?:a/an|a|an|the)[\s_]+", "", words)
    return re.sub(r"[\s_]+", "_", words)


def verbs_of(said: Any, label: str | None = None) -> list[str]:
    """The verbs in a value of an answer: a list, or one text with several ("ride, sit on"), each as `sit_on`.

    Articles and the object's own name at the end ("riding the bicycle") are left off; a text of more than `MOST_WORDS`
    words, and one that denies or doubts, gives none. Gerunds stay as they are: the evaluation lemmatises.
    """
    if isinstance(said, list):
        return list(dict.fromkeys(verb for item in said for verb in verbs_of(item, label)))
    if not isinstance(said, str):
        return []
    verbs = []
    for part in _parts(said):
        words = _words(part)
        if label is not None:
            words = _without_object(words, label)
        words = [word for word in words if word not in ARTICLES]
        if _is_plain(words):
            verbs.append(_verb(words))
    return list(dict.fromkeys(verbs))


def split_phrase(said: str) -> tuple[list[str], str | None]:
    """(verbs, object) of a phrase that holds both, "riding a bicycle", "sit on bench" or "hold and ride bicycle".

    The object begins after the article; without one, after the first word and the prepositions that follow it. A phrase
    of one word, or of more than twice `MOST_WORDS`, names no object.
    """
    verbs, label = [], None
    for part in _parts(said):
        words = _words(part)
        if not words or len(words) > 2 * MOST_WORDS:
            continue
        article = next((place for place, word in enumerate(words) if place and word in ARTICLES), None)
        if article is not None:
            verb, name = words[:article], words[article + 1 :]
        else:
            end = 1
            while end < len(words) and words[end] in PREPOSITIONS:
                end += 1
            verb, name = words[:end], words[end:]
        if _is_plain(verb):
            verbs.append(_verb(verb))
            label = "_".join(name) or label
    return list(dict.fromkeys(verbs)), label


def _verb(words: list[str]) -> str:
    """`no_interaction with` is no_interaction, as the datasets spell it."""
    verb = "_".join(words)
    return "no_interaction" if verb.startswith("no_interaction") else verb


def _is_plain(words: list[str]) -> bool:
    """Whether words are a verb or a name, and nothing that denies, doubts or goes on."""
    if not 0 < len(words) <= MOST_WORDS:
        return False
    return words[0] == "no_interaction" or all(map(_is_word, words))


def _is_word(word: str) -> bool:
    """Whether a word is of letters, and neither denies nor doubts."""
    if word in _NO_WORDS or word.endswith(("n't", "n\N{RIGHT SINGLE QUOTATION MARK}t")) or word[0].isdigit():
        return False
    return all(letter.isalnum() or letter in "-'&." or unicodedata.category(letter)[0] == "M" for letter in word)


def is_name(label: str) -> bool:
    """Whether a label as records spell it is a name: a few words, none of which denies or doubts."""
    return _is_plain([word for word in label.split("_") if not word.strip("#.").isdecimal()])


def _parts(said: str) -> Iterator[str]:
    """The phrases of a text, separated by commas, semicolons, line ends and "and"."""
    text = re.sub(r"[^\S\n]+", " ", re.sub(r"[`*\"]+", "", said)).strip()  # a run of spaces is looked at once
    for part in re.split(r"\s*[,;\n]\s*|\s+and\s+", text):
        part = part.strip().strip(".!?,;:").strip()
        if part:
            yield part


def _words(part: str) -> list[str]:
    """The words of a phrase in lower case; "no interaction" stays one word."""
    words = re.split(r"[\s_]+", part.lower())
    if words[:2] == ["no", "interaction"]:
        words = ["no_interaction", *words[2:]]
    return [word for word in words if word]


def _without_object(words: list[str], label: str) -> list[str]:
    """The words without the object's name at their end, with the article before it."""
    name = label_of(label).split("_")
    for ending in (name, [*name[:-1], name[-1] + "s"], [*name[:-1], name[-1] + "es"]):
        if len(words) > len(ending) and words[-len(ending) :] == ending:
            return words[: -len(ending)]
    return words
