"""The words of an answer as verbs and labels in the records' spelling.

Only the spelling changes: "Sitting on the bench" is `sitting_on` a `bench`. The look-up of senses finds the base form
and the meaning of a verb.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_PREFIX = re.compile(
    r"(?:(?:final[\s_]+)?(?:action|answer|interaction|verb)\s*:\s*)?"
    r"(?:(?:(?:the|a|an)\s+)?(?:first\s+)?(?:person|human|man|woman|boy|girl|child|he|she|they|people|subject)\s+"
    r"(?:is|are|appears\s+to\s+be)\s+|(?:is|are)\s+)?",
    re.IGNORECASE,
)
ARTICLES = frozenset(("a", "an", "the", "a/an", "his", "her", "their", "its", "another"))
"""Words before a noun that are not part of its name."""
PREPOSITIONS = frozenset(
    (
        *("about", "against", "along", "around", "at", "by", "down", "for", "from", "in", "into", "near"),
        *("of", "off", "on", "onto", "out", "over", "through", "to", "under", "up", "with"),
    )
)
"""Words that follow a verb and belong to it."""
MOST_WORDS = 6
"""Words of a phrase that may still be "verb object"; no rule finds the verb of a longer sentence."""


def label_of(text: str) -> str:
    """A name in the records' spelling: lower case, no article, underscores for spaces."""
    words = re.sub(r"[`*\"]+", "", text).strip().strip(".!?,;:").lower()
    words = re.sub(r"^(?:a/an|a|an|the)[\s_]+", "", words)
    return re.sub(r"[\s_]+", "_", words)


def verbs_of(said: Any, label: str | None = None) -> list[str]:
    """The verbs in a value of an answer: a list, or one text with several ("ride, sit on"), each as `sit_on`.

    Articles, "the person is" and the object's own name at the end ("riding the bicycle") are left off; a text of
    more than `MOST_WORDS` words gives none. Gerunds stay as they are: the evaluation lemmatises.
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
        if words and len(words) <= MOST_WORDS:
            verbs.append(_verb(words))
    return list(dict.fromkeys(verbs))


def split_phrase(said: str) -> tuple[list[str], str | None]:
    """(verbs, object) of a phrase that holds both, "riding a bicycle", "sit on bench" or "hold and ride bicycle".

    The object begins after the article; without one, after the first word and the prepositions that follow it. A phrase
    of one word, or of more than `MOST_WORDS`, names no object.
    """
    verbs, label = [], None
    for part in _parts(said):
        words = _words(part)
        if not words or len(words) > MOST_WORDS:
            continue
        article = next((place for place, word in enumerate(words) if place and word in ARTICLES), None)
        if article is not None:
            verb, name = words[:article], words[article + 1 :]
        else:
            end = 1
            while end < len(words) and words[end] in PREPOSITIONS:
                end += 1
            verb, name = words[:end], words[end:]
        verbs.append(_verb(verb))
        label = "_".join(name) or label
    return list(dict.fromkeys(verbs)), label


def _verb(words: list[str]) -> str:
    """`no_interaction with` is no_interaction, as the datasets spell it."""
    verb = "_".join(words)
    return "no_interaction" if verb.startswith("no_interaction") else verb


def _parts(said: str) -> Iterator[str]:
    """The phrases of a text, separated by commas, semicolons, slashes (except a/an), bars, line ends and "and"."""
    text = re.sub(r"[^\S\n]+", " ", re.sub(r"[`*\"]+", "", said)).strip()  # a run of spaces is looked at once
    text = text[_prefix_end(text) :]
    for part in re.split(r"\s*[,;|\n]\s*|\s+and\s+|(?<!\ba)\s*/\s*", text):
        part = part.strip().strip(".!?,;:").strip()
        if part:
            yield part


def _prefix_end(text: str) -> int:
    match = _PREFIX.match(text)
    return match.end() if match else 0


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
