"""Predictions read by several processes, of which the first does meanwhile what else takes long."""

from __future__ import annotations

from collections.abc import Container

from hoicli.evaluation.run import gathered, no_image_twice
from hoicli.io.streams import Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.records.triplets import Triplets, merged, read_triplets
from hoicli.shoe.labels import pool_of
from hoicli.shoe.table import SimilarityTable
from hoicli.wordnet.selection import open_wordnet
from hoicli.wordnet.senses import candidates

LOOKING_UP = 32 << 20
"""Bytes of predictions that are read in the time in which nltk is imported and looks up a vocabulary."""


def read_predictions(
    predictions: Stream,
    policy: ErrorPolicy,
    known: Container[str],
    tables: Stream | None = None,
    *,
    unlabelled: bool = False,
) -> tuple[Triplets, SimilarityTable | None]:
    """All predictions, about `known` images, and the table of similarities where it is still to be read. A large file
    is shared out; of what others wait for, the first process reads the table and looks up the names in its share.
    unlabelled: labels may be null.

    Raises `DataError` for a bad line, the table's before the predictions'.
    """
    size = 0 if tables is None else tables.size
    table = None
    if tables is not None and size is None:  # a pipe cannot be read again where a share fails
        table = SimilarityTable.read(tables, policy, open_wordnet().canonical)

    def gather(lines: Stream, own: ErrorPolicy) -> tuple[Triplets, SimilarityTable | None]:
        rated = table
        with no_garbage_collection():
            if lines.begins and tables is not None and rated is None:
                rated = SimilarityTable.read(tables, own, open_wordnet().canonical)
            found = read_triplets(lines, policy=own, known=known, unlabelled=unlabelled)
        if lines.begins:
            for pos, names in (("v", found.verbs), ("n", found.objects)):
                for name in names:
                    pool_of(name, pos, candidates)  # which are kept
        return found, rated

    parts = gathered(
        gather,
        predictions,
        policy,
        lambda parts: no_image_twice(found.image_ids for found, _ in parts),
        besides=LOOKING_UP + (size or 0),
    )
    return merged([found for found, _ in parts]), parts[0][1]
