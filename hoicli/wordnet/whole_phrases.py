"""Phrases that stand as a whole for a verb of a dataset: lemmas of several words and definitions in WordNet ("applies
paint to" defines paint), and those that words.json decides."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain

from hoicli.vocabulary.labels import Vocabulary
from hoicli.wordnet.lexicon import Lexicon
from hoicli.wordnet.phrases import AUXILIARIES, DETERMINERS, PRONOUNS, is_adverb, split_verb
from hoicli.wordnet.senses import sense_of_verb
from hoicli.wordnet.word_uses import SYNONYM, Meaning, usual_prepositions, words_table

LINKS = frozenset(("at", "for", "from", "of", "on", "to", "with"))
"""Prepositions that may only lead to the object."""

Key = tuple[str, ...]
"""The base forms of a phrase's words, without those that add nothing."""


class WholePhrases:
    """The look-up of whole phrases among a dataset's verbs."""

    def __init__(self, vocabulary: Vocabulary, wordnet: Lexicon) -> None:
        """Take the dataset."""
        self._vocabulary, self._wordnet = vocabulary, wordnet

    def keys_of(self, text: str) -> list[Key]:
        """Return the keys under which a phrase may be found."""
        key, passive_key = self._key(text), self._key(f"is {text}")  # "dressed in" may be a passive
        shorter_key = key[:-1] if key and usual_prepositions().get(key[-1]) in LINKS else key  # "competes in a race on"
        return [key, passive_key, shorter_key]

    def find(self, keys: Sequence[Key], *, decided: bool = False) -> Meaning | None:
        """Return the verb that a phrase with these keys stands for, None without one. decided: look only among the
        phrases that words.json decides; otherwise only among WordNet's."""
        phrases = self._decided if decided else self._in_wordnet
        label = next((phrases[key] for key in keys if key in phrases), None)
        return None if label is None else Meaning(label, SYNONYM, f"another way to say {label}")

    def senses_of(self, label: str) -> list[str]:
        """Return the curated senses of a verb, and its first one."""
        objects = (object_ for verb, object_ in self._vocabulary.interactions if verb == label)
        curated = (sense_of_verb(self._vocabulary, label, object_) for object_ in (None, *objects))
        senses = (*curated, *self._wordnet.senses(label.partition("_")[0], "v")[:1])
        return list(dict.fromkeys(sense for sense in senses if sense is not None))

    @cached_property
    def _in_wordnet(self) -> Mapping[Key, str]:
        """Return {words of a phrase: the one verb of the dataset in whose place WordNet has them}: lemmas of several
        words and definitions of the verb's curated and first senses."""
        labels: dict[Key, set[str]] = {}
        for label in self._vocabulary.verbs:
            _, _, particle = label.partition("_")
            for sense in self.senses_of(label):
                synset = self._wordnet.reader.synset(sense)
                lemmas = [name for name in synset.lemma_names() if self._wordnet.senses(name, "v")[:1] == [sense]]
                definitions = re.sub(r"\([^)]*\)", "", synset.definition()).split(";")
                for text in chain(lemmas, definitions):
                    labels.setdefault(self._key(f"{text} {particle}"), set()).add(label)
        undecided = {tuple(word.split("_")) for word in words_table()["verbs"]}
        return {
            words: classes.pop()
            for words, classes in labels.items()
            if len(words) > 1 and len(classes) == 1 and words not in undecided
        }

    @cached_property
    def _decided(self) -> Mapping[Key, str]:
        """Return {words of a phrase: the verb of the dataset for which words.json has it}."""
        decided = words_table()["phrases"].items()
        return {self._key(text): label for text, label in decided if label in self._vocabulary.verbs}

    def _key(self, text: str) -> Key:
        """Return the base forms of a phrase's words, without those that add nothing; "be" before a passive."""
        words = [word for _, word in split_verb(self._wordnet, text)]
        while words and words[0] in AUXILIARIES:
            del words[0]
        bases = [[*self._wordnet.forms(word, "v"), *self._wordnet.forms(word, "n"), word] for word in words]
        key = [forms[0] for word, forms in zip(words, bases, strict=True) if adds_meaning(self._wordnet, word)]
        return ("be", *key) if words and is_passive(text.split(), words[0], bases[0][:1]) else tuple(key)


def adds_meaning(wordnet: Lexicon, word: str) -> bool:
    """Return whether a word beside a verb says more than how, of whom or which."""
    return word not in DETERMINERS | PRONOUNS and not is_adverb(wordnet, word)


def is_passive(words: Sequence[str], head: str, bases: Sequence[str]) -> bool:
    """Return whether a phrase says that the person is acted upon: "is ridden by", but not "is seated"."""
    place = words.index(head) if head in words else 0
    after_be = place > 0 and words[place - 1] in AUXILIARIES - {"to"}
    return after_be and not head.endswith("ing") and head not in bases and head != "seated"
