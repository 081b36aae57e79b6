"""Which verb of a dataset a phrase means, as people and models say it ("is riding", "sits on the bench").

In this order: another form of a label with the same preposition; a preposition that changes nothing ("holding onto"),
or that the object makes needless ("sits", of a bench, is sit_on); a synonym, which has the class's sense in a good
share of its uses; what WordNet has in place of the class ("applies paint to" defines paint). A way of doing is another
verb ("gallop" is not ride) unless it has the class's preposition ("dines at" is eat_at), and so is a wider one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product

from hoicli.vocabulary.labels import Vocabulary, replace_typography
from hoicli.wordnet.lexicon import Lexicon
from hoicli.wordnet.phrases import AUXILIARIES, DETERMINERS, PRONOUNS, is_adverb, split_verb
from hoicli.wordnet.senses import base_forms, sense_of_verb
from hoicli.wordnet.word_uses import (
    KIND,
    OBJECT,
    SYNONYM,
    TABLE,
    Meaning,
    denies_or_doubts,
    form_of,
    group_by_sense,
    no_class,
    part_of,
    uses_of,
    words_table,
)

SHARE = 0.25
"""The least share of a verb's uses, as counted in WordNet's texts, that a synonym's sense must have."""

_PLACES = frozenset(("at", "in", "on", "under"))


@dataclass(frozen=True)
class _Phrase:
    """The parts of a verb's phrase. bases: the base forms that the verb may have; literal: the prepositions behind it,
    as they are said; particle: the same in their usual form, "" for none; nouns: the words after them."""

    bases: Sequence[str]
    literal: str
    particle: str
    nouns: str


class SpokenVerbs:
    """The look-up of phrases among a dataset's verbs."""

    def __init__(self, vocabulary: Vocabulary, wordnet: Lexicon, find_object: Callable[[str], Meaning]) -> None:
        """Take the dataset. find_object: the function that finds the class of an object's name."""
        self._vocabulary, self._wordnet, self._find_object = vocabulary, wordnet, find_object
        self._senses: dict[str | None, dict[str, list[str]]] = {}

    def find(self, text: str, object_: str | None) -> Meaning:
        """Return what a phrase means. object_: the label of the object that it is said of, None if it is not known."""
        lower_text = replace_typography(text).replace("_", " ").lower()
        words = [word for _, word in split_verb(self._wordnet, lower_text)]
        head = next((place for place, word in enumerate(words) if base_forms(self._wordnet, word, "v")), None)
        is_denied = denies_or_doubts(words)
        if is_denied and any(word.startswith("interact") for word in words) and self._vocabulary.no_interaction:
            return form_of(self._vocabulary.no_interaction)
        if head is None or is_denied:
            return no_class("no verb that WordNet has" if head is None else "denies or doubts")
        if any(word in _prepositions() or not self._wordnet.forms(word, "n") for word in words[:head]):
            return no_class("more than a verb")
        bases = base_forms(self._wordnet, words[head], "v")
        rest = [word for word in words[head + 1 :] if self._adds_meaning(word)]
        as_said = _split_phrase(bases, rest)
        if _is_passive(lower_text.split(), words[head], bases) and not self._is_posture(as_said):
            return self._find_whole(lower_text) or no_class("passive: the person is acted upon")
        phrase, why = self._replace_verb(self._name_act(as_said))
        meaning = self._decide(phrase, object_)
        if meaning.label is None:
            return self._find_whole(lower_text) or meaning
        if phrase.nouns and not self._names_object(phrase.nouns, meaning.label, object_):
            return no_class(f"speaks of {phrase.nouns}")
        return replace(meaning, how=TABLE, why=why) if why else meaning

    def _find_whole(self, text: str) -> Meaning | None:
        """Return the verb in whose place WordNet has a phrase as a whole, None without one."""
        keys = self._phrase_key(text), self._phrase_key(f"is {text}")  # "dressed in" may be a passive
        label = next((self._whole_phrases[key] for key in keys if key in self._whole_phrases), None)
        return None if label is None else Meaning(label, SYNONYM, f"WordNet has it in place of {label}")

    def _name_act(self, phrase: _Phrase) -> _Phrase:
        """Return a phrase with the verb of the act that it names last: "gives the dog a hug" is hug, "makes adjustments
        to" is adjust. Any other is unchanged."""
        light = words_table()["light"]
        noun = next(iter(self._wordnet.forms(phrase.nouns.rpartition(" ")[2], "n")), "")
        if not any(base in light and noun not in light[base] for base in phrase.bases) or self._find_object(noun).label:
            return phrase
        acts = [sense for sense in self._wordnet.senses(noun, "n")[:3] if part_of(self._wordnet, sense) == "act"]
        lemmas = chain.from_iterable(self._wordnet.reader.synset(sense).lemmas() for sense in acts)
        derived = chain.from_iterable(lemma.derivationally_related_forms() for lemma in lemmas if lemma.name() == noun)
        verbs = [noun, *(lemma.name() for lemma in derived)] if acts else [noun]
        verb = next((verb for verb in verbs if verb in (self._label_forms if acts else words_table()["verbs"])), None)
        if verb is None:
            return phrase
        particle = phrase.particle if not acts or phrase.particle in self._label_forms[verb] else ""
        return replace(phrase, bases=[verb], particle=particle, nouns="")

    @staticmethod
    def _replace_verb(phrase: _Phrase) -> tuple[_Phrase, str]:
        """Return (a phrase with the verb that words.json has in place of its own, the reason); the phrase itself and ""
        if there is none."""
        for base in phrase.bases:
            other, why, *only_with = words_table()["verbs"].get(base, (None, ""))
            if other is not None and (not only_with or phrase.particle in only_with):
                first, _, particle = other.partition("_")
                own = only_with or not phrase.particle
                return replace(phrase, bases=[first], particle=particle if own and particle else phrase.particle), why
        return phrase, ""

    def _decide(self, phrase: _Phrase, object_: str | None) -> Meaning:
        """Return the class of a phrase's verb."""
        for base in phrase.bases:
            labels = self._label_forms.get(base, {})  # {what follows the verb in a label: the label}
            label = labels.get(f"{phrase.particle} {phrase.nouns}".strip()) or labels.get(phrase.particle)
            if label is None and _adds_nothing(phrase.particle, base):
                label = labels.get("")
            if label is not None:
                return form_of(label)
        narrower = list(
            dict.fromkeys(chain.from_iterable(self._label_forms.get(base, {}).values() for base in phrase.bases))
        )
        if narrower and (not phrase.particle or any(_adds_nothing(phrase.particle, base) for base in phrase.bases)):
            fitting = [label for label in narrower if (label, object_) in self._vocabulary.interaction_ids]
            if len(fitting) == 1:
                return Meaning(fitting[0], OBJECT, f"with {object_} it is {fitting[0]}")
            return no_class(f"wider than {' and '.join(narrower)}")
        meaning = self._decide_by_senses(phrase, object_)
        return meaning or no_class(f"{' or '.join(narrower)} with other words" if narrower else "no class means this")

    def _decide_by_senses(self, phrase: _Phrase, object_: str | None) -> Meaning | None:
        """Return the class of which a phrase's verb has a sense, with its preposition ("put together") or without; None
        if there is none, and a meaning without a class for several."""
        endings = dict.fromkeys(text.replace(" ", "_") for text in (phrase.literal, phrase.particle) if text)
        phrasal = [f"{base}_{ending}" for base, ending in product(phrase.bases, endings)]
        for lemma in (*phrasal, *phrase.bases):
            uses = uses_of(self._wordnet, lemma, "v")
            if words_table()["verbs"].get(lemma):
                break
            share = 0 if lemma in phrasal and object_ else SHARE
            particle = "" if lemma in phrasal else phrase.particle
            synonyms = self._synonyms(uses, particle, object_, share)
            if synonyms:
                return self._choose(synonyms, lemma, object_)
            if lemma in phrasal and uses:
                break  # WordNet has the verb with its preposition, and it is no class
        return None

    def _synonyms(self, uses: Mapping[str, int], particle: str, object_: str | None, share: float) -> dict[str, str]:
        """Return {class: sense} of those senses of a verb that are a class's own and have a share of its uses, or are
        its first if nothing is counted; without any, of its first, if that is a way to do what a class with the same
        preposition is ("dines at")."""
        total, first = sum(uses.values()), next(iter(uses), None)
        class_senses = self._class_senses(object_)
        frequent = [
            sense for sense, count in uses.items() if (count >= share * total if total or not share else sense == first)
        ]
        synonyms: dict[str, str] = {}
        for sense in frequent:
            labels = class_senses.get(sense, ())
            synonyms |= {label: sense for label in labels if self._takes(label, sense, particle)}
        if not synonyms and first and particle:
            above = self._wordnet.reader.synset(first).hypernyms()
            classes = chain.from_iterable(class_senses.get(synset.name(), ()) for synset in above)
            synonyms = {label: first for label in classes if label.partition("_")[2].replace("_", " ") == particle}
        return synonyms

    def _choose(self, synonyms: Mapping[str, str], lemma: str, object_: str | None) -> Meaning:
        """Return the one class of which a verb has a sense; of several that which the dataset has with the object."""
        fitting = [label for label in synonyms if (label, object_) in self._vocabulary.interaction_ids]
        choices = list(synonyms) if len(synonyms) == 1 else fitting
        if len(choices) != 1:
            return no_class(f"may be {' or '.join(synonyms)}")
        label = choices[0]
        sense = synonyms[label]
        if sense not in self._class_senses(object_):
            return Meaning(label, KIND, f"{lemma} is a way to {label}", sense)
        return Meaning(label, SYNONYM, f"{lemma.replace('_', ' ')} and {label} mean the same", sense)

    def _takes(self, label: str, sense: str, particle: str) -> bool:
        """Return whether a verb of a class's sense, said with a preposition or "", is the class: the class has the same
        one, or the sense has it already ("mount" is hop_on), or it changes nothing."""
        head, _, own_particle = label.partition("_")
        if own_particle and not particle:
            return label in self._wordnet.reader.synset(sense).lemma_names()
        return particle == own_particle.replace("_", " ") or _adds_nothing(particle, head)

    def _names_object(self, nouns: str, label: str, object_: str | None) -> bool:
        """Return whether the nouns in a verb's phrase name its object ("riding a bike"), maybe by a wider word ("on the
        phone"); if the object is not known, any object of the dataset. label: the verb's."""
        if nouns in label.replace("_", " "):
            return True
        with_verb = {name for verb, name in self._vocabulary.interactions if verb == label}
        names = with_verb if object_ is None else {object_}
        meaning = self._find_object(nouns).label
        last_words = self._wordnet.forms(nouns.split()[-1], "n")
        is_named = meaning in names or (object_ is None and meaning is not None)
        is_part = label.endswith("_with") and any(name.startswith(word) for word, name in product(last_words, names))
        return is_named or is_part or any(name.split("_")[-1] in last_words for name in names)

    @cached_property
    def _label_forms(self) -> Mapping[str, Mapping[str, str]]:
        """Return {base form of a verb: {what follows it in a class's label, "" for nothing: the label}}."""
        forms: dict[str, dict[str, str]] = {}
        for label in self._vocabulary.verbs:
            first, _, rest = label.partition("_")
            for base in base_forms(self._wordnet, first, "v"):
                forms.setdefault(base, {}).setdefault(rest.replace("_", " "), label)
        return forms

    @cached_property
    def _whole_phrases(self) -> Mapping[tuple[str, ...], str]:
        """Return {words of a phrase: the one verb of the dataset in whose place WordNet has them}: lemmas of several
        words and definitions of the verb's curated and first senses."""
        labels: dict[tuple[str, ...], set[str]] = {}
        for label in self._vocabulary.verbs:
            head, _, particle = label.partition("_")
            curated = sense_of_verb(self._vocabulary, label, None)
            for sense in {curated, *self._wordnet.senses(head, "v")[:1]} - {None}:
                synset = self._wordnet.reader.synset(sense)
                lemmas = [name for name in synset.lemma_names() if self._wordnet.senses(name, "v")[:1] == [sense]]
                definitions = re.sub(r"\([^)]*\)", "", synset.definition()).split(";")
                for text in chain(lemmas, definitions):
                    labels.setdefault(self._phrase_key(f"{text} {particle}"), set()).add(label)
        undecided = {tuple(word.split("_")) for word in words_table()["verbs"]}
        return {
            words: classes.pop()
            for words, classes in labels.items()
            if len(words) > 1 and len(classes) == 1 and words not in undecided
        }

    def _phrase_key(self, text: str) -> tuple[str, ...]:
        """Return the base forms of a phrase's words, without those that add nothing; "be" before a passive."""
        words = [word for _, word in split_verb(self._wordnet, text)]
        bases = [[*self._wordnet.forms(word, "v"), *self._wordnet.forms(word, "n"), word] for word in words]
        is_passive = bool(words) and _is_passive(text.split(), words[0], bases[0][:1])
        key = (forms[0] for word, forms in zip(words, bases, strict=True) if self._adds_meaning(word))
        return ("be", *key) if is_passive else tuple(key)

    def _adds_meaning(self, word: str) -> bool:
        """Return whether a word beside a verb says more than how, of whom or which."""
        return word not in DETERMINERS | PRONOUNS and not is_adverb(self._wordnet, word)

    def _is_posture(self, phrase: _Phrase) -> bool:
        """Return whether a passive form says where the person is: "is sat on", as the British say it."""
        return phrase.particle in _PLACES and any(
            phrase.particle in self._label_forms.get(base, ()) for base in phrase.bases
        )

    def _class_senses(self, object_: str | None) -> Mapping[str, list[str]]:
        """Return {sense: the classes that have it}: of all verbs, as they are said of an object."""
        if object_ not in self._senses:
            senses = {label: sense_of_verb(self._vocabulary, label, object_) for label in self._vocabulary.verbs}
            self._senses[object_] = group_by_sense(senses)
        return self._senses[object_]


def _prepositions() -> Mapping[str, str]:
    """Return the prepositions, with the one in whose place each stands (words.json)."""
    prepositions: Mapping[str, str] = words_table()["prepositions"]
    return prepositions


def _adds_nothing(particle: str, base: str) -> bool:
    """Return whether a preposition behind a verb leaves its meaning as it is (words.json)."""
    particles = words_table()["particles"]
    return particle in particles["*"] or particle in particles.get(base, ())


def _is_passive(words: Sequence[str], head: str, bases: Sequence[str]) -> bool:
    """Return whether a phrase says that the person is acted upon: "is ridden by", but not "is seated"."""
    place = words.index(head) if head in words else 0
    after_be = place > 0 and words[place - 1] in AUXILIARIES - {"to"}
    return after_be and not head.endswith("ing") and head not in bases and head != "seated"


def _split_phrase(bases: Sequence[str], rest: Sequence[str]) -> _Phrase:
    """Return the parts of a phrase. bases: the base forms of its verb; rest: the words behind the verb, first the
    prepositions ("on bench in park": "on", "bench"); one at the end counts if none is before ("apple up")."""
    prepositions = _prepositions()
    start = next((place for place, word in enumerate(rest) if word not in prepositions), len(rest))
    if list(rest[start - 1 : start + 2]) == ["on", "top", "of"]:
        start += 2
    stop = next((place for place in range(start, len(rest)) if rest[place] in prepositions), len(rest))
    is_last = not start and stop == len(rest) - 1
    literal = rest[stop] if is_last else " ".join(rest[:start])
    particle = " ".join(prepositions.get(word, word) for word in literal.split())
    first, _, place = particle.partition(" ")
    if first in ("away", "back", "down", "out") and place in _PLACES:  # "sits back on"
        particle = place
    return _Phrase(bases, literal, prepositions.get(particle, particle), " ".join(rest[start:stop]))
