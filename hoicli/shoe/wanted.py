"""The pairs of senses that a table needs, for a dataset or for an evaluation."""

from __future__ import annotations

from collections.abc import Iterable

from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.triplets import Triplets
from hoicli.shoe.backends import offline_backend
from hoicli.shoe.labels import TruthClasses
from hoicli.shoe.names import note_senseless
from hoicli.shoe.needed import Needed
from hoicli.shoe.rating import TableWork
from hoicli.shoe.table import SimilarityTable
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.senses import candidates, senses_of


def evaluation_pairs(
    gt: Stream, predictions: Stream, dataset: str, policy: ErrorPolicy, *, all_pairs: bool
) -> TableWork:
    """What `shoe-eval` looks up for these predictions."""
    vocabulary, needed = load(dataset), Needed(candidates)
    roles = bool(vocabulary.roles)
    needed.add_streams(gt, predictions, senses_of(vocabulary), policy, all_pairs=all_pairs, unlabelled=roles)
    note_senseless(needed.senseless)
    return TableWork(needed.pairs)


def dataset_pairs(dataset: str, *, all_pairs: bool) -> TableWork:
    """The senses of a dataset's classes among themselves, or all that predictions in its labels can need."""
    vocabulary = load(dataset)
    classes: Iterable[tuple[str, str]] = vocabulary.interactions
    if vocabulary.roles:  # the classes are verbs with roles; every verb may have every object
        classes = [(verb, name) for verb in vocabulary.verbs for name in vocabulary.objects]
    needed = Needed(candidates)
    needed.add_classes(classes, senses_of(load(dataset)), all_pairs=all_pairs)
    note_senseless(needed.senseless)
    return TableWork(needed.pairs)


def offline_table(
    backend: str, truth: Triplets, predictions: Triplets, classes: TruthClasses, policy: ErrorPolicy, *, all_pairs: bool
) -> SimilarityTable:
    """The table that `shoe-sim --backend` would write for these, of which classes are of the ground truth."""
    needed = Needed(candidates)
    needed.add_triplets(truth, predictions, classes, all_pairs=all_pairs)
    pairs = sorted(needed.pairs)
    return SimilarityTable.of(pairs, offline_backend(backend, policy).rate(pairs))
