"""Cells as they come from a detector: where a cell's predictions and its ground truth are, a line each.

    {"model": "cdn", "corruption": "jpeg", "severity": 3, "recipe": "hoicli-1", "gt": "truth/jpeg-3.jsonl",
     "predictions": "cdn/jpeg-3.jsonl"}

Files are named from the folder of the file that names them. Predictions may be match records, which need no `gt`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.parsing import Record


@dataclass(frozen=True)
class CellFiles:
    """A cell to evaluate: the tags of its rows, its files, and the line that names them."""

    tags: dict[str, str]
    gt: str | None
    predictions: str
    line: Line


def is_cell(record: Record) -> bool:
    """Whether a line names a cell's files, and is no result row."""
    return "predictions" in record and "metric" not in record


def cell_of(record: Record, line: Line, *, model_tag: str) -> CellFiles:
    """Raises `DataError` for what is missing or no text; the tags are checked as those of rows are, when there are
    rows."""
    tags = {}
    for key in (model_tag, "corruption", "severity", "recipe"):
        value = record.get(key)
        if value is None and key != "corruption":
            continue
        if type(value) is int and key == "severity":
            value = str(value)
        if type(value) is not str:
            raise DataError("missing or no string; a cell says which it is", place=line.place, field=key)
        tags[key] = value
    gt, predictions = (_path(record.get(key), key, line) for key in ("gt", "predictions"))
    if predictions is None:
        raise DataError("names no file; give that of the cell's predictions", place=line.place, field="predictions")
    return CellFiles(tags, gt, predictions, line)


def _path(value: object, key: str, line: Line) -> str | None:
    if value is None:
        return None
    if type(value) is not str or not value or "\0" in value:
        raise DataError("must be the name of a file", place=line.place, field=key)
    return os.path.join(os.path.dirname(line.file) or os.curdir, value)
