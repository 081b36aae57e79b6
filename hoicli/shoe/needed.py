"""The pairs of senses that `shoe-sim` rates: those that an evaluation looks up, or those of a dataset; and what a table
lacks of them.

`shoe-eval` compares, image by image, the sense of every ground-truth label with the senses that every predicted label
may have. The pairs are collected with the same code (`labels.Likeness`), so none is missing, and spelling decides the
same cases: if a label has the ground truth's spelling, or can have its sense, nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence, Set
from itertools import chain

import numpy as np

from hoicli.errors import DataError
from hoicli.evaluation.run import gathered
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record
from hoicli.records.triplets import Name, Triplets, merged, triplet_batches
from hoicli.shoe.labels import classes_of, likenesses, named_pairs
from hoicli.shoe.pairs import Pair
from hoicli.shoe.table import SimilarityTable
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.lexicon import open_wordnet
from hoicli.wordnet.senses import candidates, senses_of


def read_predictions(
    predictions: Stream, policy: ErrorPolicy, known: Container[str], *, unlabelled: bool = False
) -> Triplets:
    """All predictions, about `known` images; a large file is shared out. unlabelled: labels may be null. Raises
    `DataError` for a bad line."""

    def gather(lines: Stream, own: ErrorPolicy) -> list[Triplets]:
        with no_garbage_collection():
            return triplet_batches(lines, policy=own, known=known, unlabelled=unlabelled)

    parts = gathered(gather, predictions, policy, lambda part: chain.from_iterable(each.image_ids for each in part))
    return merged(list(chain.from_iterable(parts)))


def evaluation_pairs(gt: Stream, predictions: Stream, dataset: str, policy: ErrorPolicy) -> list[Pair]:
    """What evaluating these predictions needs.

    Raises `DataError` for a bad line, or a prediction whose image the ground truth does not have.
    """
    vocabulary = load(dataset)
    truth = merged(triplet_batches(gt, policy=policy, truth=True))
    found = read_predictions(predictions, policy, frozenset(truth.image_ids), unlabelled=bool(vocabulary.roles))
    classes = classes_of(truth, senses_of(vocabulary), candidates)
    verbs, objects = likenesses(truth, found, classes, candidates)
    note_senseless(verbs.senseless | objects.senseless)
    return [*verbs.asked, *objects.asked]


def dataset_pairs(dataset: str) -> set[Pair]:
    """The senses of a dataset's classes among themselves."""
    vocabulary = load(dataset)
    classes: Iterable[tuple[str, str]] = vocabulary.interactions
    if vocabulary.roles:  # the classes are verbs with roles; every verb may have every object
        classes = [(verb, name) for verb in vocabulary.verbs for name in vocabulary.objects]
    called: list[tuple[Name, Name]] = [((verb, None), (name, None)) for verb, name in classes]
    named = named_pairs(called, senses_of(vocabulary), candidates)
    pairs: set[Pair] = set()
    senseless: set[str] = set()
    for pos, names in zip("vn", (dict.fromkeys(side) for side in zip(*named, strict=True)), strict=True):
        own = sorted({sense for _, sense in names if sense is not None})
        pairs |= {(pos, a, b) for place, a in enumerate(own) for b in own[place + 1 :]}
        senseless |= {label for label, sense in names if sense is None and label}
    note_senseless(senseless)
    return pairs


def missing_rows(tables: Stream, pairs: Sequence[Pair], policy: ErrorPolicy) -> tuple[list[Record], DataError | None]:
    """The pairs that tables lack, as lines {pos, a, b}, and the error that says how many those are. A note says what
    the tables have, and where that is from."""
    table = SimilarityTable.read(tables, policy, open_wordnet().canonical)
    found = table.values([a for _, a, _ in pairs], [b for _, _, b in pairs])
    missing = [pair for pair, value in zip(pairs, np.isnan(found).tolist(), strict=True) if value]
    signed = ", ".join(f"{key} {value}" for key, value in table.signature().items())
    had = f"{len(pairs) - len(missing):,} of the {len(pairs):,} that are needed"
    note(f"{tables.name}: {len(table):,} pairs of senses, {had} ({signed})")
    rows: list[Record] = [dict(zip(("pos", "a", "b"), pair, strict=True)) for pair in missing]
    problem = f"lacks {len(missing):,} pairs; rate them with hoicli shoe-sim --pairs, and add the lines"
    return rows, DataError(problem, place=tables.name, code="not-whole") if missing else None


def note_senseless(labels: Set[str]) -> None:
    """Say which labels have no sense, if any."""
    if labels:
        shown = ", ".join(sorted(labels)[:5]) + (", ..." if len(labels) > 5 else "")
        which = f"{len(labels):,} label{'s' if len(labels) != 1 else ''} ({shown})"
        note(f"no WordNet sense for {which}: similarity 1 to the same spelling, else 0")
