"""Columns as files of the page: typed arrays in base64 inside scripts, for a page from disk may load nothing else."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.columns import ErrorTable, TruthTable
from hoicli.records.kit import Floats, Ints

IOU_STEPS = 10_000
"""An IoU is a whole number of these steps, rounded down, so that `at least 0.5` stays what it is; -1 for none."""

_WHOLE: tuple[type[np.signedinteger[Any]], ...] = (np.int8, np.int16, np.int32)
Columns = dict[str, NDArray[Any]]


def chunk(name: str, column: NDArray[Any]) -> bytes:
    """A column as a script: whole numbers in the smallest type that holds them, little-endian."""
    kind = column.dtype
    if kind.kind != "f":
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        kind = np.dtype(next(each for each in _WHOLE if np.iinfo(each).min <= low and high <= np.iinfo(each).max))
    code = base64.b64encode(column.astype(kind.newbyteorder("<")).tobytes())
    return b'explorer.chunk("%s","%s","%s");\n' % (name.encode(), kind.str[1:].encode(), code)


def chunks(prefix: str, columns: Columns) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of each column."""
    for name, column in columns.items():
        yield f"data/{prefix}.{name}.js", chunk(f"{prefix}.{name}", column)


def truth_columns(truth: TruthTable) -> Columns:
    """The columns of the ground truth."""
    return {
        **{name: getattr(truth, name) for name in ("image", "interaction", "subject", "object")},
        "start": truth.box_start,
        "boxes": _drawn(truth.boxes),
        **{f"part{number}": part for number, part in enumerate(truth.parts)},
    }


def model_columns(table: ErrorTable) -> Columns:
    """The columns of a model."""
    whole = ("image", "interaction", "error", "relation", "subject", "object", "truth", "state", "by")
    return {
        **{name: getattr(table, name) for name in whole},
        "score": table.score,
        "iou_subject": _steps(table.iou_subject),
        "iou_object": _steps(table.iou_object),
        "start": table.box_start,
        "boxes": _drawn(table.boxes),
        **{f"part{number}": part for number, part in enumerate(table.parts)},
    }


def _drawn(boxes: Floats) -> NDArray[np.float32]:
    """[4 B] coordinates to draw; no screen shows what is beyond these, nor what float32 rounds."""
    drawn: NDArray[np.float32] = np.clip(boxes, -1e9, 1e9).astype(np.float32).reshape(-1)
    return drawn


def _steps(iou: Floats) -> Ints:
    steps = np.floor(np.clip(np.nan_to_num(iou), 0, 1) * IOU_STEPS + 1e-9)  # 0.57 * 10000 is a little less than 5700
    return np.where(np.isnan(iou), -1, steps).astype(np.int64)
