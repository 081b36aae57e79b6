"""What `hoicli.Evaluator.state()` gave, saved with `numpy.savez`: the predictions of a process of a training script.

Boxes, labels and scores stay as they were given to `update`; nothing is shifted. Another dataset's state is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.npz import arrays
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.records.detections import detections
from hoicli.records.parsing import Record, short
from hoicli.records.states import NAMES, given_of


def sniff(source: Source) -> bool:
    """An .npz file with the counts of a state."""
    return source.kind == "npz" and bool(arrays(source, ("triplet_counts",)))


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image."""

    def record(image: tuple[str, dict[str, Any]]) -> Record:
        return detections(*image, context.vocabulary).record(context.vocabulary, scored=True)

    images = given_of(arrays(source, NAMES), context.vocabulary, source.name)
    yield from context.each(((f"image {short(image[0])}.", image) for image in images), record, source)
