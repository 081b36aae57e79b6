"""What a label may mean in WordNet, and what a benchmark's label does mean, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.vocabulary.labels import Vocabulary, normalise
from hoicli.wordnet.selection import open_wordnet
from hoicli.wordnet.senses import CURATED, CuratedSense, object_choice, resolve, verb_choice


def sense_rows(label: str, pos: str | None, vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """A row for each sense that a verb, an object or both (the verb first) may have; of a label of the dataset, as
    ground truth, the one that it has in a curated table is `chosen`, and `why` says so where it is not obvious."""
    if vocabulary.name not in CURATED:  # no label has one sense
        verb, rest = _parts(label, vocabulary)
        words = ((verb or label, "v"), (rest if verb else label, "n"))
        for word, kind in words:
            if word and pos in (None, kind):
                yield from _candidates(word, kind, None)
        return
    verb, rest = _parts(label, vocabulary)
    object_ = label if pos == "n" or verb is None else rest
    if verb == label and object_choice(vocabulary.name, label):  # train, tie: both a verb and an object
        object_ = label
    of_object = object_ and object_choice(vocabulary.name, object_)
    if pos == "v" or (pos is None and (verb is not None or not of_object)):
        yield from _candidates(verb or label, "v", verb_choice(vocabulary.name, verb or label, rest))
    if object_ and pos != "v":
        yield from _candidates(object_, "n", of_object or None)


def _parts(label: str, vocabulary: Vocabulary) -> tuple[str | None, str | None]:
    """(the longest verb of the dataset that a label begins with, the rest); (None, None) if it begins with none."""
    words = normalise(label).split("_")
    for stop in range(len(words), 0, -1):
        if "_".join(words[:stop]) in vocabulary.verb_ids:
            return "_".join(words[:stop]), "_".join(words[stop:]) or None
    return None, None


def _candidates(label: str, pos: str, choice: CuratedSense | None) -> Iterator[dict[str, Any]]:
    wordnet = open_wordnet()
    for candidate in resolve(label, pos):
        synset = wordnet.synset(candidate.sense)
        chosen = choice is not None and candidate.sense == choice.sense
        why = None if candidate.lemma == normalise(label) else f"from {candidate.lemma!r}"
        if choice is not None and chosen:
            why = choice.why if choice.better is None else f"{choice.why}; {choice.better} would fit better"
        yield {
            "label": label,
            "pos": pos,
            "sense": candidate.sense,
            "gloss": synset.definition(),
            "lemmas": synset.lemma_names(),
            "chosen": chosen,
            "why": why,
        }
