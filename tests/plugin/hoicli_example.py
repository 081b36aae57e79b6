"""One of each kind that a package can add to hoicli. In hoicli itself each would be a row of the same kind of table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

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
    """A record a line: `IMAGE VERB OBJECT SCORE x1 y1 x2 y2 x1 y1 x2 y2`, the person's box first."""

    def built(line: str) -> dict[str, Any]:
        image, verb, label, score, *edges = line.split()
        numbers = [float(edge) for edge in edges]
        hoi = {"subject": 0, "object": 1, "verb": verb, "score": float(score)}
        return {"image_id": image, "boxes": [numbers[:4], numbers[4:]], "labels": ["person", label], "hois": [hoi]}

    lines = source.data.decode().splitlines()
    yield from context.each(((f"line {number}", line) for number, line in enumerate(lines, start=1)), built, source)


# A corruption: its description with the constants of five severities, and what it does to an image.
HAZE = (
    Corruption("haze", "other", "white over all", ("share",), ((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)), "ours"),
    Effect(lambda image, _, share: np.rint(image * (1 - share) + 255 * share).astype(np.uint8)),
)
