"""What `hoicli.Evaluator.state()` gave, saved with `numpy.savez`: the predictions of a process of a training script.

Boxes, labels and scores stay as they were given to `update`; nothing is shifted. Another dataset's state is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from hoicli.converters.containers.npz import arrays
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.records.detections import Detections
from hoicli.records.parsing import Record
from hoicli.records.states import NAMES, images_of


def sniff(source: Source) -> bool:
    """An .npz file with the counts of a state."""
    return source.kind == "npz" and bool(arrays(source, ("triplet_counts",)))


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image."""

    def record(image: Detections) -> Record:
        return image.record(context.vocabulary, scored=True)

    images = images_of(arrays(source, NAMES), context.vocabulary, source.name)
    yield from context.each((("", image) for image in images), record, source)
