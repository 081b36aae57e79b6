"""A format as a contributor would add it: a module with `sniff` and `read`, and one row in the table of formats."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from hoicli.converters.formats import Format

COLUMNS = ["image", "verb", "object", "score", "px1", "py1", "px2", "py2", "ox1", "oy1", "ox2", "oy2"]
ROW = Format("rows", __name__, "predictions", "a triplet a row, as CSV", "hico", signs="sniff", owner="test 1")


def sniff(source: Any) -> bool:
    """Whether the first line names the columns."""
    return bool(source.data.startswith(",".join(COLUMNS).encode()))


def read(source: Any, context: Any) -> Iterator[dict[str, Any]]:
    """A record a triplet."""

    def build(row: dict[str, str]) -> dict[str, Any]:
        numbers = [float(row[name]) for name in COLUMNS[4:]]
        hoi = {"subject": 0, "object": 1, "verb": row["verb"], "score": float(row["score"])}
        labels = ["person", row["object"]]
        return {"image_id": row["image"], "boxes": [numbers[:4], numbers[4:]], "labels": labels, "hois": [hoi]}

    rows = csv.DictReader(source.data.decode().splitlines())
    yield from context.each(((f"line {number}", row) for number, row in enumerate(rows, start=2)), build, source)
