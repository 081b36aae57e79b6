"""One of each kind that a package can add to hoicli. In hoicli itself each would be a row of the same kind of table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hoicli.converters.context import BoxTable, image_record
from hoicli.converters.formats import Format
from hoicli.corruption.catalogue import Corruption, Effect

# A protocol: the fields of a protocol's file (`hoicli eval --explain --protocol hico --format jsonl`).
HICO_75 = {"like": "hico", "threshold": 0.75}

# A dataset: the fields of a dataset's file (`hoicli doctor --schema dataset`).
SITE = {
    "subjects": ["worker"],
    "verbs": ["hold", "wear"],
    "objects": ["hammer", "helmet"],
    "interactions": [["hold", "hammer"], ["wear", "helmet"]],
}

# A format: a row of `hoicli convert --list`, whose module has `read`, `write` or both.
LINES = Format("lines", __name__, "predictions", "image, verb, object, score and eight numbers, a line", "hico")


def read(source: Any, context: Any) -> Iterator[dict[str, Any]]:
    """Yield a record for each image, of its lines `IMAGE VERB OBJECT SCORE x1 y1 x2 y2 x1 y1 x2 y2`, the person's box
    first."""
    images: dict[str, list[list[str]]] = {}
    for line in source.data.decode().splitlines():
        image, *rest = line.split()
        images.setdefault(image, []).append(rest)

    def build(image: str) -> dict[str, Any]:
        table = BoxTable()  # equal boxes become one
        for verb, label, score, *edges in images[image]:
            numbers = [float(edge) for edge in edges]
            table.pair(numbers[:4], numbers[4:], label, verb=verb, score=float(score))
        return image_record(image, **table.columns)

    yield from context.each(((f"image {image}", image) for image in images), build, source)


# A corruption: its description with the constants of five severities, and what it does to an image.
HAZE = (
    Corruption("haze", "other", "white over all", ("share",), ((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)), "ours"),
    Effect(lambda image, _, share: np.rint(image * (1 - share) + 255 * share).astype(np.uint8)),
)
