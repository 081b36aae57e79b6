"""corre_hico.npy and its kind (QPIC, CDN, PPDM): which verbs go with which objects in a dataset.

A matrix [verbs, objects] of 0 and 1 as .npy, in the order of the dataset's numbers, as in the loaders' lists of valid
ids. It is only written (`--to corre`), beside ground truth in the HOI-A layout (`--to hoia`)."""

from __future__ import annotations

import io
from collections.abc import Iterable

import numpy as np

from hoicli.converters.context import Context
from hoicli.errors import Place
from hoicli.io.outputs import open_output
from hoicli.records.parsing import Record


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """Write the matrix of a dataset's interactions. Records are only read to count triplets that are none of them."""
    vocabulary = context.vocabulary
    for record in records:
        for hoi in record["hois"]:
            if (hoi["verb"], record["labels"][hoi["object"]]) not in vocabulary.interaction_ids:
                context.drop(f"triplets of no {vocabulary.name} interaction", Place(f"image {record['image_id']}"))
    verbs = sorted(vocabulary.verbs, key=context.choose_numbers("verbs", vocabulary.verb_ids).__getitem__)
    objects = sorted(vocabulary.objects, key=context.choose_numbers("objects", vocabulary.object_ids).__getitem__)
    matrix = [[(verb, name) in vocabulary.interaction_ids for name in objects] for verb in verbs]
    content = io.BytesIO()
    np.save(content, np.array(matrix, dtype=np.uint8))
    with open_output(path) as output:
        output(content.getvalue())
