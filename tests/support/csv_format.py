"""A format as a contributor would add it: a module with `sniff` and `read`, and one row in the table of formats."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from hoicli.converters.context import BoxTable, image_record
from hoicli.converters.formats import Format

COLUMNS = ["image", "verb", "object", "score", "px1", "py1", "px2", "py2", "ox1", "oy1", "ox2", "oy2"]
ROW = Format("rows", __name__, "predictions", "a triplet a row, as CSV", "hico", signs="sniff", owner="test 1")


def sniff(source: Any) -> bool:
    """Whether the first line names the columns."""
    return bool(source.data.startswith(",".join(COLUMNS).encode()))


def read(source: Any, context: Any) -> Iterator[dict[str, Any]]:
    """A record an image, of all its rows."""
    images: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(source.data.decode().splitlines(), strict=True):
        images.setdefault(row["image"], []).append(row)

    def build(rows: list[dict[str, str]]) -> dict[str, Any]:
        table = BoxTable(context.subject)
        for row in rows:
            numbers = [float(row[name]) for name in COLUMNS[4:]]
            table.pair(numbers[:4], numbers[4:], row["object"], verb=row["verb"], score=float(row["score"]))
        return image_record(rows[0]["image"], **table.columns)

    yield from context.each(((f"image {image}", rows) for image, rows in images.items()), build, source)
