"""Columns as the page reads them: typed arrays and JSON values as texts, which a script or the page itself can hold. A
page from disk may load nothing else."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from hoicli.diagnosis.columns import ErrorTable, TruthTable
from hoicli.explorer.measured import Numbers
from hoicli.records.kit import Floats, Ints

IOU_STEPS = 10_000
"""An IoU is a whole number of these steps, rounded down, so that `at least 0.5` stays what it is; -1 for none."""

_WHOLE: tuple[type[np.signedinteger[Any]], ...] = (np.int8, np.int16, np.int32)
Columns = dict[str, NDArray[Any]]


class Chunk(NamedTuple):
    """A column, or a JSON value, as the page reads it: its name, its type ("f8", "i2", ..., "json"), and its bytes,
    little-endian, compressed and in base64."""

    name: str
    kind: str
    text: bytes

    @classmethod
    def of_column(cls, name: str, column: NDArray[Any]) -> Chunk:
        """Whole numbers take the smallest type that holds them."""
        kind = column.dtype
        if kind.kind != "f":
            low, high = int(column.min(initial=0)), int(column.max(initial=0))
            kind = np.dtype(next(each for each in _WHOLE if np.iinfo(each).min <= low and high <= np.iinfo(each).max))
        return cls(name, kind.str[1:], _packed(column.astype(kind.newbyteorder("<")).tobytes()))

    @classmethod
    def of_value(cls, name: str, value: object) -> Chunk:
        """Anything that JSON holds."""
        return cls(name, "json", _packed(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)))


def _packed(data: bytes) -> bytes:
    """Compressed, with no time in it: same input, same bytes. Level 1, since scores are as good as random."""
    return base64.b64encode(gzip.compress(data, compresslevel=1, mtime=0))


def chunks(prefix: str, columns: Columns) -> Iterator[Chunk]:
    """A chunk of each column."""
    for name, column in columns.items():
        yield Chunk.of_column(f"{prefix}.{name}", column)


def truth_columns(truth: TruthTable) -> Columns:
    """The columns of the ground truth."""
    return {
        **{name: getattr(truth, name) for name in ("image", "interaction", "subject", "object")},
        "start": truth.box_start,
        "boxes": _drawn(truth.boxes),
        **{f"part{number}": part for number, part in enumerate(truth.parts)},
    }


def number_columns(numbers: Numbers) -> Columns:
    """The columns of the numbers of classes."""
    gains = {} if numbers.gains is None else {"gains": numbers.gains.reshape(-1)}
    return {"positives": numbers.positives, "ap": numbers.ap.reshape(-1), "counts": numbers.counts.reshape(-1), **gains}


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
