"""The pairs of senses that `shoe-sim` rates: those that an evaluation looks up, or those of a dataset.

`shoe-eval` compares, image by image, the sense of every ground-truth label with the senses that every predicted label
may have. The pairs are collected with the same code (`labels.Likeness`), so none is missing, and spelling decides the
same cases: if a label has the ground truth's spelling, or can have its sense, nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

import numpy as np

from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.triplets import Name, read_triplets
from hoicli.shoe.labels import Likeness, classes_of, every, likenesses, named_pairs
from hoicli.shoe.rating import TableWork
from hoicli.shoe.reading import read_predictions
from hoicli.vocabulary.datasets import load
from hoicli.wordnet.senses import candidates, senses_of


def evaluation_pairs(
    gt: Stream, predictions: Stream, dataset: str, policy: ErrorPolicy, *, all_pairs: bool
) -> TableWork:
    """What evaluating these predictions needs: within each image, or with `all_pairs` across all images.

    Raises `DataError` for a bad line, or a prediction whose image the ground truth does not have.
    """
    vocabulary = load(dataset)
    truth = read_triplets(gt, policy=policy, truth=True)
    found = read_predictions(predictions, policy, frozenset(truth.image_ids), unlabelled=bool(vocabulary.roles))
    classes = classes_of(truth, senses_of(vocabulary), candidates)
    verbs, objects = likenesses(truth, found, classes, candidates, everywhere=all_pairs)
    note_senseless(verbs.senseless | objects.senseless)
    return TableWork([*verbs.asked, *objects.asked])


def dataset_pairs(dataset: str, *, all_pairs: bool) -> TableWork:
    """The senses of a dataset's classes among themselves; with `all_pairs` also with every sense that its labels may
    have, which is all that predictions in these labels can need."""
    vocabulary = load(dataset)
    classes: Iterable[tuple[str, str]] = vocabulary.interactions
    if vocabulary.roles:  # the classes are verbs with roles; every verb may have every object
        classes = [(verb, name) for verb in vocabulary.verbs for name in vocabulary.objects]
    called: list[tuple[Name, Name]] = [((verb, None), (name, None)) for verb, name in classes]
    named, _ = named_pairs(called, senses_of(vocabulary), candidates)
    pairs, senseless = set(), set()
    for pos, names in zip("vn", (dict.fromkeys(side) for side in zip(*named, strict=True)), strict=True):
        own = sorted({sense for _, sense in names if sense is not None})
        pairs |= {(pos, a, b) for place, a in enumerate(own) for b in own[place + 1 :]}
        senseless |= {label for label, sense in names if sense is None and label}
        if all_pairs:
            labels: list[Name] = list(dict.fromkeys((label, None) for label, _ in names))
            met = every(np.arange(len(names)), np.arange(len(labels)))
            pairs.update(Likeness(pos, list(names), labels, candidates, met).asked)
    note_senseless(senseless)
    return TableWork(pairs)


def listed(labels: Set[str]) -> str:
    """`3 labels (a, b, c)`, the first five by name."""
    shown = ", ".join(sorted(labels)[:5]) + (", ..." if len(labels) > 5 else "")
    return f"{len(labels):,} label{'s' if len(labels) != 1 else ''} ({shown})"


def note_senseless(labels: Set[str]) -> None:
    """Say which labels have no sense, if any."""
    if labels:
        note(f"no WordNet sense for {listed(labels)}: similarity 1 to the same spelling, else 0")
