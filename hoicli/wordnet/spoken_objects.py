"""Which object of a dataset a name means, as people and models say it ("two dogs", "sofa", "man in a hat").

In this order: another form of a label; words.json; the first sense of the name that can be seen, which is a class's own
or a kind of one. A wider word is none ("table" of dining_table), nor is one that may as well be an animal, a plant or
another thing ("tiger" is a person in its first sense).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain

from hoicli.vocabulary.labels import Vocabulary
from hoicli.wordnet.lexicon import Lexicon
from hoicli.wordnet.phrases import DETERMINERS, SplitLabel, spellings_of, split_name
from hoicli.wordnet.senses import base_forms, sense_of_object
from hoicli.wordnet.word_uses import (
    KIND,
    NONE,
    SAME_WORD,
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

RIVAL = 4
"""How many times as frequent as any other thing a word's first sense must be, to make the word a class."""
_THINGS = frozenset(("Tops", "animal", "artifact", "body", "food", "object", "person", "plant", "substance"))
"""The parts of WordNet's nouns that have what can be seen."""
_RIVALS = frozenset(("animal", "artifact", "food", "plant"))


class SpokenObjects:
    """The look-up of names among a dataset's objects."""

    def __init__(
        self, vocabulary: Vocabulary, wordnet: Lexicon, find_spelling: Callable[[str, str], Meaning | None]
    ) -> None:
        """Take the dataset. find_spelling: the function (word, "n") that finds a class by its spelling."""
        self._vocabulary, self._wordnet, self._find_spelling = vocabulary, wordnet, find_spelling
        self._classes_above: dict[str, str | None] = {}

    def find(self, name: str) -> Meaning:
        """Return what a name means: the whole name, else its last words ("red mountain bike": mountain bike). Of "X of
        Y" and the like X counts, unless it is a part, as in "a slice of pizza"."""
        words = split_name(name)
        plain = [word for _, word in words]
        if not words or denies_or_doubts(plain):
            return no_class("denies or doubts" if words else "no word")
        if plain[1:2] == ["of"] and not set(words_table()["parts"]).isdisjoint(self._wordnet.forms(plain[0], "n")):
            return _make_kind(self.find(" ".join(plain[2:])))
        prepositions = usual_prepositions()
        stops = (
            place for place, (before, word) in enumerate(words) if place and before != "-" and word in prepositions
        )
        stop = next(stops, len(words))
        if plain[stop : stop + 1] in (["of"], ["for"]) or plain[stop : stop + 2] in (["in", "a"], ["in", "an"]):
            turned = [*words[stop + 1 :], *words[:stop]]  # "plant in a pot", "cover for a bed"
            compound = self._find_exactly([pair for pair in turned if pair[1] not in DETERMINERS])
            if compound is not None and compound.label and compound.how != KIND:
                return _make_kind(compound)
        words = words[:stop]
        for begin in range(len(words)):
            if begin and words[begin - 1][1] in words_table()["imitations"] and not self._is_toy(words[begin:]):
                return no_class("an imitation")
            meaning = self._find_exactly(words[begin:])
            if meaning is not None:
                return _make_kind(meaning) if begin or len(words) < len(plain) else meaning
        return no_class("nothing that WordNet has, or that is seen")

    def _find_exactly(self, words: SplitLabel) -> Meaning | None:
        """Return what consecutive words mean as one noun, None if WordNet and words.json know nothing visible of it."""
        spellings = spellings_of(words)
        forms = list(dict.fromkeys(chain.from_iterable(base_forms(self._wordnet, text, "n") for text in spellings)))
        forms = forms or self._compounds_of("".join(word for _, word in words))
        for form in (*forms, *spellings):
            spelled = self._find_spelling(form, "n")
            label = spelled.label if spelled else self._label_forms.get(form)
            if label:
                return form_of(label)
        for form in (*forms, *spellings):
            label, why = words_table()["nouns"].get(form.replace("-", "_"), (None, ""))
            if why and (label is None or label in self._vocabulary.objects):
                return Meaning(label, TABLE if label else NONE, why)
        _, last_word = words[-1]
        for lemma in forms:
            if uses := self._seen_uses(lemma):
                return self._decide_by_senses(lemma, uses, last_word)
        return None

    def _compounds_of(self, joined: str) -> list[str]:
        """Return the lemmas of several words that are a word if they are written as one: "hairdryers" is hair dryer."""
        endings = self._wordnet.reader.MORPHOLOGICAL_SUBSTITUTIONS["n"]
        singulars = (joined[: -len(old)] + new for old, new in endings if joined.endswith(old))
        return [self._compounds[word] for word in (joined, *singulars) if word in self._compounds]

    @cached_property
    def _compounds(self) -> Mapping[str, str]:
        """Return {the letters of a lemma of several words: the lemma}."""
        lemmas = [lemma for lemma in self._wordnet.graph.lemmas if "_" in lemma or "-" in lemma]
        return {lemma.replace("_", "").replace("-", ""): lemma for lemma in lemmas}

    def _is_toy(self, words: SplitLabel) -> bool:
        """Return whether words are a class of toys, which no word makes an imitation: "stuffed teddy"."""
        meaning = self._find_exactly(words)
        sense = sense_of_object(self._vocabulary, meaning.label) if meaning and meaning.label else None
        return sense is not None and "plaything.n.01" in self._above(sense)

    def _decide_by_senses(self, lemma: str, uses: Mapping[str, int], head: str) -> Meaning:
        """Return what a noun means by its first sense: the class that has it, or of which it is a kind. Of a name that
        has a class as its last word, any sense may be the kind. uses: the senses that can be seen, with their counts;
        head: the last word."""
        first, count = next(iter(uses.items()))
        is_same = first in self._senses
        label = self._senses[first][0] if is_same else self._class_above(first)
        if label is None:
            heads = {head, *base_forms(self._wordnet, head, "n")} - {lemma}
            kinds = [sense for sense in uses if self._class_above(sense) in heads]
            if kinds:
                label = self._class_above(kinds[0])
                return Meaning(label, KIND, f"a kind of {label}", kinds[0])
            narrower = next((self._classes_below[sense] for sense in uses if sense in self._classes_below), None)
            return no_class(f"wider than {narrower}" if narrower else "no class means this")
        for sense, other_count in uses.items():
            if sense != first and self._is_rival(first, sense, label) and count < (RIVAL * other_count or 2):
                return no_class(f"may be {label} ({first}), or else {sense}")
        if is_same:
            return Meaning(label, SYNONYM, f"{lemma.replace('_', ' ')} and {label} mean the same", first)
        return Meaning(label, KIND, f"a kind of {label}", first)

    def _is_rival(self, first: str, other: str, label: str) -> bool:
        """Return whether another sense than the first, which means a class, may be what is seen instead."""
        first_part, part = part_of(self._wordnet, first), part_of(self._wordnet, other)
        is_meat = first_part == "animal" and part == "food"
        return part in _RIVALS and part != first_part and not is_meat and self._class_above(other) != label

    def _seen_uses(self, lemma: str) -> dict[str, int]:
        """Return {sense: how often it is used} for the senses of a noun that can be seen, or that mean a class."""
        uses = uses_of(self._wordnet, lemma, "n")
        return {
            sense: count
            for sense, count in uses.items()
            if sense in self._senses or part_of(self._wordnet, sense) in _THINGS or self._class_above(sense)
        }

    @cached_property
    def _senses(self) -> Mapping[str, list[str]]:
        """Return {sense: [the class that has it]}."""
        return group_by_sense({label: sense_of_object(self._vocabulary, label) for label in self._vocabulary.objects})

    @cached_property
    def _classes_below(self) -> Mapping[str, str]:
        """Return {sense: a class that is a kind of it}."""
        classes: dict[str, str] = {}
        for sense, labels in self._senses.items():
            classes |= dict.fromkeys(self._above(sense), labels[0])
        return classes

    @cached_property
    def _kinds(self) -> Mapping[str, str]:
        """Return {sense: the class of which words.json says that it is a kind}."""
        kinds: Mapping[str, str] = words_table()["kinds"]
        return {sense: label for sense, label in kinds.items() if label in self._vocabulary.objects}

    @cached_property
    def _class_of_sense(self) -> Mapping[str, str]:
        """Return {sense: the class that has it, or of which words.json says that it is a kind}."""
        return {**{name: labels[0] for name, labels in self._senses.items()}, **self._kinds}

    @cached_property
    def _label_forms(self) -> Mapping[str, str]:
        """Return {base form: label} for the labels that are other forms (ski: skis)."""
        forms = {label: base_forms(self._wordnet, label, "n") for label in self._vocabulary.objects}
        label_of_form: dict[str, str] = {}
        for label, bases in forms.items():
            label_of_form |= dict.fromkeys(bases, label)
        return label_of_form

    def _class_above(self, sense: str) -> str | None:
        """Return the class of which a sense is a kind, the nearest above it; None without one, and for several."""
        if sense not in self._classes_above:
            senses_of_classes = self._class_of_sense.keys()
            levels = chain([{sense} & self._kinds.keys()], self._levels(sense))  # words.json may name the sense itself
            nearest = next((level for level in levels if level & senses_of_classes), set())
            labels = {self._class_of_sense[name] for name in nearest & senses_of_classes}
            # WordNet files a driver under persons, but below causal_agent, not below person. It files unicorns there,
            # too, but not below causal_agent.
            if not labels and part_of(self._wordnet, sense) == "person" and "causal_agent.n.01" in self._above(sense):
                labels = set(self._senses.get("person.n.01", ()))
            self._classes_above[sense] = labels.pop() if len(labels) == 1 else None
        return self._classes_above[sense]

    def _levels(self, sense: str) -> Iterator[set[str]]:
        """Yield the senses above a sense, those that are one step above it first. Nothing is above a sense that
        words.json counts as no kind of anything."""
        not_kinds = words_table()["not_kinds"].keys()
        level = {sense} - not_kinds
        while level:
            synsets = [self._wordnet.reader.synset(name) for name in sorted(level)]
            above = chain.from_iterable(synset.hypernyms() + synset.instance_hypernyms() for synset in synsets)
            level = {synset.name() for synset in above} - not_kinds
            yield level

    def _above(self, sense: str) -> set[str]:
        """Return all senses above a sense."""
        return set[str]().union(*self._levels(sense))


def _make_kind(meaning: Meaning) -> Meaning:
    """Return the meaning of a name that has more words: a red bicycle is a kind of bicycle."""
    if meaning.how not in SAME_WORD:
        return meaning
    return replace(meaning, how=KIND, why=f"a kind of {meaning.label}: it has more words")
