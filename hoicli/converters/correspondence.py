"""corre_hico.npy and its kind (QPIC, CDN, PPDM): [verbs, objects], 1 where the two are an interaction of the dataset.

Verbs and objects stand in the order of their numbers, as in the loaders' lists of valid ids. It is only written, and
made of the dataset; the records show what it would leave out.
"""

from __future__ import annotations

import io
from collections.abc import Iterable

import numpy as np

from hoicli.converters.context import Context
from hoicli.errors import Place
from hoicli.io.outputs import open_output
from hoicli.records.parsing import Record


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """Write the matrix, and count the triplets that it has a 0 for."""
    known = context.vocabulary
    for record in records:
        for hoi in record["hois"]:
            if (hoi["verb"], record["labels"][hoi["object"]]) not in known.interaction_ids:
                context.drop(f"triplets of no {known.name} interaction", Place(f"image {record['image_id']}"))
    verbs = sorted(known.verbs, key=context.numbered("verbs", known.verb_ids).__getitem__)
    objects = sorted(known.objects, key=context.numbered("objects", known.object_ids).__getitem__)
    matrix = np.array([[(verb, name) in known.interaction_ids for name in objects] for verb in verbs], dtype=np.uint8)
    content = io.BytesIO()
    np.save(content, matrix)
    with open_output(path) as output:
        output(content.getvalue())
