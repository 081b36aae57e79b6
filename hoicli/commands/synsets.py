"""`hoicli synsets`: what a label may mean in WordNet, and what a benchmark's label does mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hoicli.commands import options
from hoicli.commands.manual import command
from hoicli.commands.options import argument, option
from hoicli.errors import DataError
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary, normalise

if TYPE_CHECKING:
    from hoicli.wordnet.senses import CuratedSense


@command(
    reads="labels, as arguments or a line each",
    writes="one row for each sense",
    examples=[
        ('hoicli synsets "ride motorcycle"', "the senses of a verb and an object"),
        ("hoicli synsets --pos v hopping_on", "a verb that is in no benchmark"),
        (
            "hoicli vocab --list verbs | jq -r .verb | hoicli synsets --pos v - | jq -r 'select(.chosen) | .sense'",
            "the sense of each of HICO-DET's verbs",
        ),
    ],
    see=["shoe-sim", "vocab"],
)
def synsets(
    labels: list[str] | None = argument(
        None, "LABEL...", "A verb, an object, or both, the verb first; - or nothing reads one per line of stdin."
    ),
    pos: str | None = option(None, "--pos", "Look only for objects (n) or only for verbs (v).", one_of=("n", "v")),
    dataset: str = options.dataset("The dataset whose labels have one sense: hico, vcoco or swig."),
    wordnet: str | None = options.WORDNET,
    *,
    out: options.Listing,
) -> None:
    """Show the WordNet senses a label may have, and which of them the benchmark's label has.

    A prediction's label keeps all its candidates: shoe-eval takes the one most similar to the ground truth's sense. A
    label of the dataset, as ground truth, has the one chosen in a curated table; `why` says so where it is not obvious.
    """
    from hoicli.wordnet.selection import choose

    vocabulary = load(dataset)
    choose(wordnet)
    rows: list[dict[str, Any]] = []
    unknown: list[str] = []
    for label in _labels(labels):
        found = list(_rows(label, pos, vocabulary))
        rows += found
        if not found:
            unknown.append(label)
    out.write(rows)
    if unknown:
        shown = ", ".join(repr(label) for label in unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        note(f"{len(unknown)} without a sense in WordNet: {shown}; such a label is similar only to an equal one")


def _labels(given: list[str] | None) -> Iterator[str]:
    for label in options.inputs(given, "labels"):
        if label != "-":
            yield label
            continue
        for line in Stream(["-"], "synsets"):
            try:
                yield line.data.decode().strip()
            except UnicodeDecodeError:
                raise DataError("not UTF-8; write one label a line", place=line.place) from None


def _rows(label: str, pos: str | None, vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    from hoicli.wordnet.senses import CURATED, object_choice, verb_choice

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
    from hoicli.wordnet.selection import open_wordnet
    from hoicli.wordnet.senses import resolve

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
