"""Columns as files of the page: typed arrays in base64 inside scripts, for a page from disk may load nothing else."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.arrays.kit import Floats, Ints, runs_of
from hoicli.diagnosis.columns import ErrorTable, TruthTable, by_image

IOU_STEPS = 10_000
"""An IoU is a whole number of these steps, rounded down, so that `at least 0.5` stays what it is; -1 for none."""

FOUND = 0
"""The number in `ErrorTable.state` of a ground truth that a true positive finds."""

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


def best_of_each(table: ErrorTable, missed: int, limit: int) -> tuple[Ints, Ints]:
    """(the first `limit` errors of each type, the first of the missed ground truth), ascending; missed: its state."""
    kinds = range(1, missed)  # 0 is no error
    rows = [np.flatnonzero(table.error == kind)[:limit] for kind in kinds]
    return np.sort(np.concatenate(rows)), np.flatnonzero(table.state == missed)[:limit]


def differing(tables: Sequence[ErrorTable]) -> tuple[Ints, Ints]:
    """(the ground truth that only the first of two models finds, that only the second finds), each by the rank of the
    prediction that finds it."""
    first, second = (table.state == FOUND for table in tables)
    alone = (np.flatnonzero(first & ~second), np.flatnonzero(second & ~first))
    by_rank = [rows[np.argsort(table.by[rows], kind="stable")] for table, rows in zip(tables, alone, strict=True)]
    return by_rank[0], by_rank[1]


def about(table: ErrorTable, annotated: Ints) -> Ints:
    """The predictions, ascending, that find, could repair or lie nearest to some ground truth."""
    by = table.by[annotated]
    return np.union1d(by[by >= 0], np.flatnonzero(np.isin(table.truth, annotated)))


def subset(
    truth: TruthTable, tables: Sequence[ErrorTable], rows: Sequence[Ints], annotated: Ints
) -> tuple[TruthTable, list[ErrorTable]]:
    """Some predictions of each table (`rows`), some ground truth, that beside the predictions, and their images
    only."""
    beside = [table.truth[chosen] for table, chosen in zip(tables, rows, strict=True)]
    annotated = np.unique(np.concatenate([annotated, *(near[near >= 0] for near in beside)]))
    predicted = [table.image[chosen] for table, chosen in zip(tables, rows, strict=True)]
    images = np.unique(np.concatenate([*predicted, truth.image[annotated]]))
    image_of, truth_of = _renumbered(images, len(truth.image_ids)), _renumbered(annotated, len(truth.image))
    small_truth = replace(
        truth,
        image_ids=[truth.image_ids[image] for image in images.tolist()],
        order=truth.order[images],
        **_boxes_of(truth, image_of, len(images)),
        **_rows_of(truth, annotated, ("interaction", "subject", "object")),
        image=image_of[truth.image[annotated]],
        parts=[part[annotated] for part in truth.parts],
    )
    of_rows = ("interaction", "score", "error", "relation", "iou_subject", "iou_object", "subject", "object")
    small = [
        replace(
            table,
            **_boxes_of(table, image_of, len(images)),
            **_rows_of(table, chosen, of_rows),
            image=image_of[table.image[chosen]],
            truth=truth_of[table.truth[chosen]],
            state=table.state[annotated],
            by=_renumbered(chosen, len(table.image))[table.by[annotated]],
            parts=[part[chosen] for part in table.parts],
        )
        for table, chosen in zip(tables, rows, strict=True)
    ]
    return small_truth, small


def _renumbered(kept: Ints, count: int) -> Ints:
    """[count + 1] the new number of each row, -1 for those that are not kept, and at -1 for none."""
    number = np.full(count + 1, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    return number


def _rows_of(table: TruthTable | ErrorTable, rows: Ints, names: Sequence[str]) -> Mapping[str, Any]:
    return {name: getattr(table, name)[rows] for name in names}


def _boxes_of(table: TruthTable | ErrorTable, image_of: Ints, images: int) -> Mapping[str, Any]:
    """The boxes of the kept images."""
    image = image_of[runs_of(table.box_start)]
    kept = np.flatnonzero(image >= 0)
    order, start, _ = by_image(image[kept], images)
    return {"box_start": start, "boxes": table.boxes[kept[order]], "label": table.label[kept[order]]}
