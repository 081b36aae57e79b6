"""Cells as they come from a detector: where a cell's predictions and its ground truth are, a line each.

    {"model": "cdn", "corruption": "jpeg", "severity": 3, "recipe": "hoicli-1", "gt": "truth/jpeg-3.jsonl",
     "gt_digest": "7f69d433", "predictions": "cdn/jpeg-3.jsonl"}

Files are named from the folder of the file that names them. Predictions may be match records, which need no `gt`.
`gt_digest` is what signatures say of the ground truth that the predictions are to be evaluated on (`gt:`).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from hoicli.errors import DataError
from hoicli.io.claims import reads
from hoicli.io.messages import display_name
from hoicli.io.streams import Line
from hoicli.records.parsing import Record

_DIGEST = re.compile(r"(?:.*-)?([0-9a-f]{8})")
"""What signatures say of a ground truth: the name of a published set, where it is one, and its digest."""


@dataclass(frozen=True)
class CellFiles:
    """A cell to evaluate: the tags of its rows, its files, the line that names them, and the digest that its ground
    truth must have, where the line says it."""

    tags: dict[str, str]
    gt: str | None
    predictions: str
    line: Line
    gt_digest: str | None = None

    def check_truth(self, signed: str) -> None:
        """signed: what signatures say of the ground truth. Raises `DataError` for another one than the line's."""
        found = _DIGEST.fullmatch(signed)
        if self.gt_digest is not None and (found is None or found[1] != self.gt_digest):
            name = "the match records'" if self.gt is None else f"that of {display_name(self.gt)}"
            text = f"{self.gt_digest}, but {name} is {signed or 'not known'}: predictions of other images or boxes?"
            advice = "give the ground truth that the cell was made with"
            raise DataError(f"{text} {advice}", place=self.line.place, field="gt_digest")


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
    digest = record.get("gt_digest")
    found = _DIGEST.fullmatch(digest) if type(digest) is str else None
    if digest is not None and found is None:
        raise DataError("must be the digits that signatures name after gt:", place=line.place, field="gt_digest")
    return CellFiles(tags, gt, predictions, line, None if found is None else found[1])


def _path(value: object, key: str, line: Line) -> str | None:
    if value is None:
        return None
    if type(value) is not str or not value or "\0" in value:
        raise DataError("must be the name of a file", place=line.place, field=key)
    path = os.path.join(os.path.dirname(line.file) or os.curdir, value)
    reads(path)  # before the work, which is minutes
    return path
