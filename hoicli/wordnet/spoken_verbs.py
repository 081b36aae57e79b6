"""Which verb of a dataset a phrase means, as people and models say it ("is riding", "sits on the bench").

In this order: another form of a label with the same preposition; a preposition that changes nothing ("holding onto"),
or that the object makes needless ("sits", of a bench, is sit_on); a synonym, which has the class's sense in a good
share of its uses; what WordNet has in place of the class ("applies paint to" defines paint). A way of doing is another
verb ("gallop" is not ride) unless it has the class's preposition ("dines at" is eat_at), and so is a wider one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise, product

from hoicli.vocabulary.labels import SUBJECT, Vocabulary, replace_typography
from hoicli.wordnet.lexicon import Lexicon
from hoicli.wordnet.phrases import DETERMINERS, split_verb
from hoicli.wordnet.senses import base_forms, sense_of_verb
from hoicli.wordnet.whole_phrases import WholePhrases, adds_meaning, is_passive
from hoicli.wordnet.word_uses import (
    KIND,
    LEMMA,
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
    usual_prepositions,
    words_table,
)

SHARE = 0.25
"""The least share of a verb's uses, as counted in WordNet's texts, that a synonym's sense must have."""

_ACTS = frozenset(("act", "event"))
_PLACES = frozenset(("at", "in", "on", "under"))
_DIRECTIONS = frozenset(("along", "around", "away", "back", "down", "out"))
"""Prepositions that say little before another one: "sits back on"."""
_AWAY = frozenset(("about", "after", "for", "like", "of", "toward", "towards"))
"""Prepositions before what a verb is about, which is no place."""
_SAYS_LITTLE = re.compile(
    r" (?:behind|with|around) (?:him|her|them)(?:self|selves)?(?= (?:at|from|in|of|on|to)\b|$)"
    r"|(?:(?<=^)|(?<=^is )|(?<=^are ))(?:go|goes|going|out) (?=\w+ing\b)"
)
"""What says only where somebody is: "drags behind him", "is out riding"."""

_Parts = list[tuple[list[str], list[str]]]
"""The words behind a verb, as prepositions with the nouns after them: "apple off tree" is [([], ["apple"]), (["off"],
["tree"])]."""


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
        self._wholes = WholePhrases(vocabulary, wordnet)
        self._senses: dict[str | None, dict[str, list[str]]] = {}

    def find(self, text: str, object_: str | None) -> Meaning:
        """Return what a phrase means. object_: the label of the object that it is said of, None if it is not known. A
        verb with another name than its class's must be one that the dataset has with the object."""
        lower_text = replace_typography(text).replace("_", " ").lower().replace(" on top of", " atop")
        words = [word for _, word in split_verb(self._wordnet, _SAYS_LITTLE.sub("", lower_text))]
        if denies_or_doubts(words):
            interacts = self._vocabulary.no_interaction and any(word.startswith("interact") for word in words)
            return form_of(self._vocabulary.no_interaction or "") if interacts else no_class("denies or doubts")
        keys = self._wholes.keys_of(lower_text)
        meaning = self._wholes.find(keys, decided=True) or self._find_by_head(words, lower_text, object_)
        if meaning.label is None:
            meaning = self._wholes.find(keys) or meaning
        if meaning.label is None or meaning.how == LEMMA or self._may_have(meaning.label, object_):
            return meaning
        return no_class(f"may be {meaning.label}, but not with {object_}")

    def _find_by_head(self, words: Sequence[str], text: str, object_: str | None) -> Meaning:
        """Return what a phrase means by its first verb. words: without auxiliaries; text: the whole phrase."""
        head = next((place for place, word in enumerate(words) if base_forms(self._wordnet, word, "v")), None)
        if head is None:
            return no_class("no verb that WordNet has")
        bases = base_forms(self._wordnet, words[head], "v")
        parts = self._split_parts(words[head:])
        if any(word in usual_prepositions() or not self._wordnet.forms(word, "n") for word in words[:head]):
            return no_class("more than a verb")
        if is_passive(text.split(), words[head], bases) and not self._is_posture(_make_phrase(bases, parts)):
            return no_class("passive: the person is acted upon")
        meaning = self._find_parts(bases, parts, object_)
        if meaning.label is not None or (shorter_parts := self._leave_asides(parts, object_)) == parts:
            return meaning
        shorter = self._find_parts(bases, shorter_parts, object_)
        is_class = shorter.label is not None and shorter.how != OBJECT
        return shorter if is_class and self._may_have(shorter.label, object_) else meaning

    def _split_parts(self, words: Sequence[str]) -> _Parts:
        """Return the words behind a verb, the first of the words, as prepositions with the nouns after them."""
        parts: _Parts = []
        for before, word in pairwise(words):
            # "on her back" and "on back", but "sits back on"
            is_noun = before in DETERMINERS or (word == "back" and before in usual_prepositions())
            is_preposition = word in usual_prepositions() and not is_noun
            if adds_meaning(self._wordnet, word):
                if not parts or (is_preposition and parts[-1][1]):
                    parts.append(([], []))
                parts[-1][0 if is_preposition else 1].append(word)
        return parts

    def _find_parts(self, bases: Sequence[str], parts: _Parts, object_: str | None) -> Meaning:
        """Return what a verb means with the words behind it: the act that it names ("gives a hug"), or itself."""
        for phrase in (*self._named_acts(bases, parts), _make_phrase(bases, parts)):
            phrase, why = self._replace_verb(phrase)
            meaning = self._decide(phrase, object_)
            if meaning.label is not None:
                if phrase.nouns and not self._names_object(phrase, meaning.label, object_):
                    return no_class(f"speaks of {phrase.nouns}")
                return replace(meaning, how=TABLE, why=why) if why else meaning
        return meaning

    def _named_acts(self, bases: Sequence[str], parts: _Parts) -> Iterator[_Phrase]:
        """Yield the phrases in which another verb stands for a light one, which says little itself, and its noun:
        "makes adjustments to" is adjust, "goes for a walk with" is walk. Yield each also without the words behind."""
        prepositions, nouns = parts[0] if parts else ([], [])
        noun = next(iter(self._wordnet.forms(nouns[-1], "n")), "") if nouns else ""
        table = words_table()
        # acts: a verb, the light verbs and the nouns for which it stands
        verbs = [verb for verb, lights, names in table["acts"] if noun in names and not set(bases).isdisjoint(lights)]
        if not verbs and noun:
            # light: a verb with its prepositions, and the nouns with which it is not light
            not_light_with = [table["light"].get("_".join([base, *prepositions])) for base in bases]
            if any(exceptions is not None and noun not in exceptions for exceptions in not_light_with):
                verbs = self._verbs_of_act(noun)
        for verb in verbs:
            yield _make_phrase([verb], parts[1:])
            yield _Phrase([verb], "", "", "")

    def _verbs_of_act(self, noun: str) -> list[str]:
        """Return the verbs from which a noun is derived that names an act in a good share of its uses, first the one
        that is spelled so: adjust for "adjustment"."""
        uses = uses_of(self._wordnet, noun, "n")
        acts = [sense for sense in uses if part_of(self._wordnet, sense) in _ACTS]
        total = sum(uses.values())
        if sum(uses[sense] for sense in acts) < SHARE * total or (not total and set(acts).isdisjoint([*uses][:3])):
            return []
        lemmas = chain.from_iterable(self._wordnet.reader.synset(sense).lemmas() for sense in acts)
        derived = chain.from_iterable(lemma.derivationally_related_forms() for lemma in lemmas if lemma.name() == noun)
        verbs = dict.fromkeys(lemma.name() for lemma in derived if lemma.synset().pos() == "v")
        return sorted(verbs, key=lambda verb: verb != noun)

    def _leave_asides(self, parts: _Parts, object_: str | None) -> _Parts:
        """Return the words behind a verb without those that say only with which part of the body, by what means or
        where in the air something is done: "scratches behind the ears of", "dries with a towel"."""
        parts_left: _Parts = []
        is_aside = False
        for prepositions, nouns in parts:
            prepositions = prepositions[1:] if is_aside and prepositions[:1] == ["of"] else prepositions
            is_aside = bool(prepositions and nouns) and self._is_aside(prepositions[-1], nouns, object_)
            if is_aside:  # "up off the ground" leaves "up"
                prepositions, nouns = prepositions[:-1], []
            if prepositions or nouns:
                parts_left.append((prepositions, nouns))
        return parts_left

    def _is_aside(self, preposition: str, nouns: Sequence[str], object_: str | None) -> bool:
        """Return whether a preposition and nouns behind a verb change nothing: a part of the body, "in the air", "with"
        a thing that is none of the dataset, or another one than the object; of a known object, any place that is none
        of the dataset's objects ("down the street")."""
        if nouns[-1] in words_table()["nowhere"] or self._is_of_body(nouns[-1]):
            return True
        thing = self._find_object(" ".join(nouns)).label
        if object_ is not None and thing is None:
            return preposition not in _AWAY
        is_other = thing is None or (object_ is not None and thing not in (object_, SUBJECT))
        return is_other and usual_prepositions()[preposition] == "with"

    def _is_of_body(self, noun: str) -> bool:
        """Return whether a noun is a part of the body by its first sense."""
        bases = self._wordnet.forms(noun, "n")
        senses = self._wordnet.senses(bases[0], "n") if bases else []
        return bool(senses) and part_of(self._wordnet, senses[0]) == "body"

    def _may_have(self, label: str | None, object_: str | None) -> bool:
        """Return whether the dataset has a verb with an object; so it may with one that none of its interactions has,
        or that is not known."""
        return (label, object_) in self._vocabulary.interaction_ids or object_ not in self._objects_of_interactions

    @cached_property
    def _objects_of_interactions(self) -> frozenset[str]:
        """Return the objects that the dataset's interactions have."""
        return frozenset(object_ for _, object_ in self._vocabulary.interactions)

    @staticmethod
    def _replace_verb(phrase: _Phrase) -> tuple[_Phrase, str]:
        """Return (a phrase with the verb that words.json has in place of its own, the reason); the phrase itself and ""
        if there is none. An entry may be a verb with its preposition ("drink_from")."""
        verbs = words_table()["verbs"]
        for base in phrase.bases:
            endings = (phrase.literal, phrase.particle) if phrase.particle else ()
            with_particle = next((key for end in endings if (key := f"{base}_{end}") in verbs), None)
            other, why = verbs.get(with_particle or base, (None, ""))
            if other is not None:
                first, _, entry_particle = other.partition("_")
                particles = (entry_particle, phrase.particle) if with_particle else (phrase.particle, entry_particle)
                particle = next(filter(None, particles), "")
                is_same = (first, particle) == (base, phrase.particle)  # "typing on" is type_on by itself
                return replace(phrase, bases=[first], particle=particle), "" if is_same else why
        return phrase, ""

    def _decide(self, phrase: _Phrase, object_: str | None) -> Meaning:
        """Return the class of a phrase's verb."""
        for base in phrase.bases:
            labels = self._label_forms.get(base, {})  # {what follows the verb in a label: the label}
            label = labels.get(f"{phrase.particle} {phrase.nouns}".strip()) or labels.get(phrase.particle)
            if label is None and "" in labels:
                is_plain = _adds_nothing(phrase.particle, base) or self._implies(labels[""], phrase)
                label = labels[""] if is_plain else None
            if label is not None:
                return form_of(label)
        of_bases = (self._label_forms.get(base, {}).values() for base in phrase.bases)
        narrower = list(dict.fromkeys(chain.from_iterable(of_bases)))
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
        is_phrasal = any(self._wordnet.senses(lemma, "v") for lemma in phrasal)
        for lemma in phrasal if is_phrasal else phrase.bases:  # a verb with its preposition may be no class, as it is
            if words_table()["verbs"].get(lemma):
                break
            share = 0 if lemma in phrasal and object_ else SHARE
            particle = "" if lemma in phrasal else phrase.particle
            synonyms = self._synonyms(uses_of(self._wordnet, lemma, "v"), particle, object_, share)
            if synonyms:
                return self._choose(synonyms, lemma, object_)
        return None

    def _synonyms(self, uses: Mapping[str, int], particle: str, object_: str | None, share: float) -> dict[str, str]:
        """Return {class: sense} of those senses of a verb that are a class's own and have a share of its uses, or are
        its first if nothing is counted; without any, of its first, if that is a way to do what a class with the same
        preposition is ("dines at")."""
        total, first = sum(uses.values()), next(iter(uses), None)
        class_senses = self._class_senses(object_)
        is_counted = total or not share
        frequent = [sense for sense in uses if (uses[sense] >= share * total if is_counted else sense == first)]
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

    def _names_object(self, phrase: _Phrase, label: str, object_: str | None) -> bool:
        """Return whether the nouns in a verb's phrase name its object ("riding a bike"), maybe by a wider word ("on the
        phone"); if the object is not known, any object of the dataset. They may also be what the verb implies ("peels
        the skin off"), or is done to with the object ("cuts paper with", "pours wine from"). label: the verb's."""
        nouns, last_words = phrase.nouns, self._wordnet.forms(phrase.nouns.split()[-1], "n")
        with_verb = (name for verb, name in self._vocabulary.interactions if verb == label)
        names = set(with_verb) if object_ is None else {object_}
        meaning = self._find_object(nouns).label
        if meaning in names or (object_ is None and meaning is not None) or self._implies(label, phrase):
            return True
        if any(name.split("_")[-1] in last_words for name in names) or nouns in label.replace("_", " "):
            return True
        if label.endswith("_with"):
            is_part = any(name.startswith(word) for word, name in product(last_words, names))
            return is_part or (meaning is None and (object_ is not None or not self._is_of_body(nouns.split()[-1])))
        return False

    def _implies(self, label: str, phrase: _Phrase) -> bool:
        """Return whether the nouns of a phrase are only what a verb does to its object: a definition of it has them
        ("signs his name on"), or they are none of the dataset, and the object holds them ("pours wine from")."""
        if not phrase.nouns or phrase.particle in ("", "with"):
            return False
        if phrase.particle == "of" and phrase.nouns in ("piece", "slice"):
            return True
        if phrase.particle in words_table()["holders"].get(label, ()) and not self._find_object(phrase.nouns).label:
            return True
        definition = " ".join(
            self._wordnet.reader.synset(sense).definition() for sense in self._wholes.senses_of(label)
        )
        bases = self._wordnet.forms(phrase.nouns.split()[-1], "n")
        return any(re.search(rf"\b{re.escape(base)}\b", definition) for base in bases)

    @cached_property
    def _label_forms(self) -> Mapping[str, Mapping[str, str]]:
        """Return {base form of a verb: {what follows it in a class's label, "" for nothing: the label}}."""
        forms: dict[str, dict[str, str]] = {}
        for label in self._vocabulary.verbs:
            first, _, rest = label.partition("_")
            for base in base_forms(self._wordnet, first, "v"):
                forms.setdefault(base, {}).setdefault(rest.replace("_", " "), label)
        return forms

    def _is_posture(self, phrase: _Phrase) -> bool:
        """Return whether a passive form says where the person is: "is sat on", as the British say it."""
        labels = (self._label_forms.get(base, {}) for base in phrase.bases)
        return phrase.particle in _PLACES and any(phrase.particle in endings for endings in labels)

    def _class_senses(self, object_: str | None) -> Mapping[str, list[str]]:
        """Return {sense: the classes that have it}: of all verbs, as they are said of an object."""
        if object_ not in self._senses:
            senses = {label: sense_of_verb(self._vocabulary, label, object_) for label in self._vocabulary.verbs}
            self._senses[object_] = group_by_sense(senses)
        return self._senses[object_]


def _adds_nothing(particle: str, base: str) -> bool:
    """Return whether a preposition behind a verb leaves its meaning as it is (words.json)."""
    particles = words_table()["particles"]
    return particle in particles["*"] or particle in particles.get(base, ())


def _make_phrase(bases: Sequence[str], parts: _Parts) -> _Phrase:
    """Return the phrase of a verb and the first words behind it ("on bench in park": "on", "bench"); a preposition at
    the end counts if none is before ("apple up"). bases: the base forms of the verb."""
    words, nouns = parts[0] if parts else ([], [])
    if not words and len(parts) == 2 and not parts[1][1]:
        words = parts[1][0]
    usual = usual_prepositions()
    literal, particle = " ".join(words), " ".join(usual[word] for word in words)
    first, _, place = particle.partition(" ")
    if first in _DIRECTIONS and place:
        particle = usual.get(particle, place)
    return _Phrase(bases, literal, usual.get(particle, particle), " ".join(nouns))
