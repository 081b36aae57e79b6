"""Which pairs of senses a table needs, for a dataset or for an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hoicli.errors import UsageError
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.similarity.pairs import Pair
from hoicli.similarity.rating import TableWork
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.senses import candidates, ground_truth_sense


def evaluation_pairs(
    gt: Stream, predictions: Stream, dataset: str, policy: ErrorPolicy, *, all_pairs: bool
) -> TableWork:
    """What `shoe-eval` looks up for these predictions."""
    from hoicli.shoe.needed import Needed
    from hoicli.shoe.run import DATASETS

    if dataset not in DATASETS:
        raise UsageError(f"--dataset {dataset}: choose from {', '.join(DATASETS)}")
    needed = Needed(candidates)
    needed.add_streams(
        gt,
        predictions,
        _senses(dataset),
        policy,
        all_pairs=all_pairs,
    )
    return _table(needed.pairs, needed.senseless)


def dataset_pairs(dataset: str, *, all_pairs: bool) -> TableWork:
    """The senses of a dataset's classes among themselves, or all that predictions in its labels can need."""
    from hoicli.shoe.needed import Needed

    vocabulary = load(dataset)
    classes: Iterable[tuple[str, str]] = vocabulary.interactions
    if vocabulary.roles:  # the classes are of verbs and roles; the objects are what a verb may be done to
        classes = [(verb, name) for verb in vocabulary.verbs for name in vocabulary.objects]
    needed = Needed(candidates)
    needed.add_classes(classes, _senses(dataset), all_pairs=all_pairs)
    return _table(needed.pairs, needed.senseless)


def _senses(dataset: str) -> Callable[[str, str | None], tuple[str | None, str | None]]:
    return lambda verb, name: ground_truth_sense(dataset, verb, name)


def _table(pairs: Iterable[Pair], senseless: set[str]) -> TableWork:
    if senseless:
        shown = ", ".join(sorted(senseless)[:5]) + (", ..." if len(senseless) > 5 else "")
        labels = "label" if len(senseless) == 1 else "labels"
        note(f"no WordNet sense for {len(senseless):,} {labels} ({shown}): similarity 1 to the same spelling, else 0")
    return TableWork(pairs)
