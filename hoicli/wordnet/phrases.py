"""The words of a label as people and models say it, without those that do not change its meaning: "the dogs", "dog 2",
"is sitting on". Both look-ups of labels begin here: that of senses (`senses.candidates`) and that of a dataset's
classes (`spoken_words.SpokenWords`)."""

from __future__ import annotations

import re

from hoicli.vocabulary.labels import replace_typography
from hoicli.wordnet.lexicon import Lexicon

LONGEST = 12
"""How many words of a label are looked at; WordNet's longest lemmas have nine."""

ARTICLES = frozenset({"a", "an", "the"})
DETERMINERS = ARTICLES | {
    "a/an", "another", "both", "each", "her", "his", "its", "many", "multiple", "my", "one", "other", "our", "several",
    "some", "that", "their", "these", "this", "those", "three", "two", "your",
}  # fmt: skip
"""Words before a noun that are not part of its name."""
AUXILIARIES = frozenset({"am", "are", "be", "been", "being", "is", "to", "was", "were"})
PERFECT = frozenset({"had", "has", "have", "having"})
PRONOUNS = frozenset({"he", "her", "him", "himself", "herself", "it", "itself", "she", "them", "they", "who"})
"""Words that stand for the person or the object."""
ADVERBS = frozenset({"also", "currently", "just", "now", "still"})
"""Adverbs that may stand before or after a verb, besides those on -ly."""

_WORD = re.compile(r"(?<![\s_/-])([\s_/-]*)([^\s_/-]+)")  # a run of separators is tried from its start alone
_CONTRACTION = re.compile(r"^(he|it|she|they|who)'(d|re|s|ve)(?=[\s_])")
_OPENING = re.compile(
    r"^((am|are|be|been|can|has|have|is|was|were)[\s_]+)*(busy|in[\s_]the[\s_](act|middle|midst|process)[\s_]of"
    r"|(appears?|seems?)[\s_]to[\s_]be|seen|shown|continues?|keeps?|kept)[\s_]+(?=[^\W_]+ing\b)"
)
"""What may stand before a verb on -ing and does not change it: "is in the middle of riding"."""
_PUNCTUATION = " \t\r\n.,;:!?\"'()[]"
_NUMBER = re.compile(r"[#(]*\d+\)*")
_NUMBERED = re.compile(r"([^\W\d_]{3,})[.#]?\d{1,3}")

SplitLabel = list[tuple[str, str]]
"""The words of a label, each with the separator before it: [("", "hot"), ("-", "dog")]."""


def split_label(label: str) -> SplitLabel:
    """Return the words of a label in lower case, without articles before them."""
    words: SplitLabel = _WORD.findall(replace_typography(label).lower().strip(_PUNCTUATION))[:LONGEST]
    while len(words) > 1 and words[0][1] in ARTICLES:
        del words[0]
    return words


def split_name(label: str) -> SplitLabel:
    """Return the words of a noun, without articles and the like before it and a number behind it ("dog 2", "dog2")."""
    words = split_label(label)
    while len(words) > 1 and words[0][1] in DETERMINERS:
        del words[0]
    while len(words) > 1 and _NUMBER.fullmatch(words[-1][1]):
        del words[-1]
    if words:
        separator, last_word = words[-1]
        if numbered := _NUMBERED.fullmatch(last_word):
            words[-1] = (separator, numbered[1])
    return words


def split_verb(wordnet: Lexicon, label: str) -> SplitLabel:
    """Return the words of a verb without auxiliaries and adverbs before it: "has been slowly riding" is riding."""
    words = split_label(_OPENING.sub("", _CONTRACTION.sub("is", replace_typography(label).lower())))
    while len(words) > 1 and (words[0][1] in PRONOUNS or _is_before_verb(wordnet, words[0][1], words[1][1])):
        del words[0]
    return words


def is_adverb(wordnet: Lexicon, word: str) -> bool:
    """Return whether a word beside a verb only says how: one of ADVERBS, or one on -ly that is no verb, as "fly" is."""
    return word in ADVERBS or (word.endswith("ly") and not wordnet.forms(word, "v"))


def _is_before_verb(wordnet: Lexicon, word: str, following: str) -> bool:
    """Return whether a word is an auxiliary or an adverb of a verb that follows it."""
    if word not in AUXILIARIES | PERFECT:
        return is_adverb(wordnet, word)
    forms = wordnet.forms(following, "v") or (["?"] if following.endswith("ing") else [])  # WordNet lacks some verbs
    continues = following in AUXILIARIES or is_adverb(wordnet, following)
    if word in PERFECT:  # "has been", "has ridden", but not "has bicycle"
        return continues or (bool(forms) and following not in forms and not following.endswith(("s", "ing")))
    return continues or bool(forms)


def spellings_of(words: SplitLabel) -> list[str]:
    """Return the spellings of consecutive words as one lemma: with the separators of the label, with underscores, with
    hyphens, and in one word."""
    plain = [word for _, word in words]
    as_in_label = words[0][1] + "".join(("-" if before == "-" else "_") + word for before, word in words[1:])
    return list(dict.fromkeys([as_in_label, "_".join(plain), "-".join(plain), "".join(plain)]))
