"""The senses that a label may have as rows, for `vocab --senses`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.vocabulary.labels import Vocabulary, normalise
from hoicli.wordnet.lexicon import open_wordnet
from hoicli.wordnet.senses import CURATED, CuratedSense, candidates_with_lemmas, object_choice, verb_choice
from hoicli.wordnet.spoken_words import SpokenWords
from hoicli.wordnet.word_uses import KIND, SAME_WORD, Meaning


def sense_rows(label: str, vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """Yield a row for each sense that a label may have: a verb, an object, or a verb and its object ("ride bicycle",
    the verb's senses first). `class` is the dataset's verb or object that the label means (`SpokenWords`), as `convert
    --to-vocabulary` maps it. The sense that the dataset's curated table has for it is `chosen`, and `why` says the
    reason, where it is not obvious."""
    words = SpokenWords(vocabulary)
    curated = vocabulary.name if vocabulary.name in CURATED else None
    verb, rest = _split_verb(label, vocabulary)  # no verb: an object alone, or what the dataset does not have
    object_ = label if verb is None else rest
    if curated and verb == label and object_choice(curated, label):  # train, tie: both a verb and an object
        object_ = label
    of_object = words.look_up_object(object_) if object_ else None
    object_label = of_object.label if of_object else None
    of_verb = words.look_up_verb(verb or label, object_label)
    is_phrase = of_object is not None and of_object.how == KIND and of_verb.label is not None  # "riding motorcycles"
    if verb is not None or object_label is None or is_phrase:
        choice = verb_choice(curated, of_verb.label, object_label) if curated and of_verb.label else None
        yield from _candidate_rows(verb or label, "v", choice, of_verb)
    if object_ and of_object:
        choice = object_choice(curated, object_label) if curated and object_label else None
        yield from _candidate_rows(object_, "n", choice, of_object)


def _split_verb(label: str, vocabulary: Vocabulary) -> tuple[str | None, str | None]:
    """Return (the dataset's longest verb that a label begins with, the rest of the label or None); (None, None) if it
    begins with none."""
    words, longest = normalise(label).split("_"), max(len(normalise(verb).split("_")) for verb in vocabulary.verbs)
    for stop in range(min(len(words), longest), 0, -1):
        if "_".join(words[:stop]) in vocabulary.verb_ids:
            return "_".join(words[:stop]), "_".join(words[stop:]) or None
    return None, None


def _candidate_rows(label: str, pos: str, choice: CuratedSense | None, meaning: Meaning) -> Iterator[dict[str, Any]]:
    """Yield a row for each candidate sense of a label. choice: its class's curated sense, None without one. meaning:
    its class. The `why` of another sense names the lemma that has it, if that is only a part of the label."""
    wordnet = open_wordnet()
    chosen_sense = meaning.sense or (choice.sense if choice else None)
    for sense, lemma in candidates_with_lemmas(wordnet, label, pos).items():
        synset = wordnet.reader.synset(sense)
        why = None if lemma == normalise(label) else f"from {lemma!r}"
        if sense == chosen_sense:
            why = choice.why if choice and meaning.how in SAME_WORD else meaning.why
        yield {
            "label": label,
            "pos": pos,
            "sense": sense,
            "gloss": synset.definition(),
            "lemmas": synset.lemma_names(),
            "chosen": sense == chosen_sense,
            "class": meaning.label,
            "why": why,
        }
