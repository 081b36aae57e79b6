"""Predictions read by several processes, of which the first looks up the names in its share meanwhile."""

from __future__ import annotations

from collections.abc import Container

from hoicli.evaluation.run import gathered, no_image_twice
from hoicli.io.streams import Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.records.triplets import Triplets, merged, read_triplets
from hoicli.shoe.labels import pool_of
from hoicli.wordnet.senses import candidates

LOOKING_UP = 32 << 20
"""Bytes of predictions that are read in the time in which nltk is imported and looks up a vocabulary."""


def read_predictions(
    predictions: Stream, policy: ErrorPolicy, known: Container[str], *, unlabelled: bool = False
) -> Triplets:
    """All predictions, about `known` images; a large file is shared out. unlabelled: labels may be null. Raises
    `DataError` for a bad line."""

    def gather(lines: Stream, own: ErrorPolicy) -> Triplets:
        with no_garbage_collection():
            found = read_triplets(lines, policy=own, known=known, unlabelled=unlabelled)
        if lines.begins:
            for pos, names in (("v", found.verbs), ("n", found.objects)):
                for name in names:
                    pool_of(name, pos, candidates)  # which are kept
        return found

    def disjoint(parts: list[Triplets]) -> bool:
        return no_image_twice(part.image_ids for part in parts)

    return merged(gathered(gather, predictions, policy, disjoint, besides=LOOKING_UP))
