"""The pairs of senses that a table needs, for a dataset or for an evaluation."""

from __future__ import annotations

from collections.abc import Iterable

from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.shoe.names import note_senseless
from hoicli.similarity.rating import TableWork
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.senses import candidates, senses_of


def evaluation_pairs(
    gt: Stream, predictions: Stream, dataset: str, policy: ErrorPolicy, *, all_pairs: bool
) -> TableWork:
    """What `shoe-eval` looks up for these predictions."""
    from hoicli.shoe.needed import Needed

    needed = Needed(candidates)
    needed.add_streams(gt, predictions, senses_of(load(dataset)), policy, all_pairs=all_pairs)
    note_senseless(needed.senseless)
    return TableWork(needed.pairs)


def dataset_pairs(dataset: str, *, all_pairs: bool) -> TableWork:
    """The senses of a dataset's classes among themselves, or all that predictions in its labels can need."""
    from hoicli.shoe.needed import Needed

    vocabulary = load(dataset)
    classes: Iterable[tuple[str, str]] = vocabulary.interactions
    if vocabulary.roles:  # the classes are verbs with roles; every verb may have every object
        classes = [(verb, name) for verb in vocabulary.verbs for name in vocabulary.objects]
    needed = Needed(candidates)
    needed.add_classes(classes, senses_of(load(dataset)), all_pairs=all_pairs)
    note_senseless(needed.senseless)
    return TableWork(needed.pairs)
