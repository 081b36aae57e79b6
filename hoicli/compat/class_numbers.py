"""Classes by the numbers that released code gives them, and means over them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hoicli.records.kit import Ints
from hoicli.vocabulary.labels import Vocabulary


def verbs_and_objects(vocabulary: Vocabulary) -> tuple[Ints, Ints]:
    """Return the verb and the object number [C] of each interaction of a dataset without roles."""
    numbers = [(vocabulary.verb_ids[verb], vocabulary.object_ids[name]) for verb, name in vocabulary.interactions]
    verb, object_ = np.array(numbers, dtype=np.int64).T
    return verb, object_


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of the values, NaN of none."""
    listed = list(values)
    return float(np.mean(listed)) if listed else float("nan")
