"""Predictions of UPT, PViC, SCG and their forks for the official MATLAB evaluation: a folder of 80 files.

    detections_01.mat .. detections_80.mat   all_boxes, a cell array (interactions of the object) x (test images)
    a cell    K x 9: human box, object box, score; 0 x 0 where there is none

The number in a file's name is that of the object in COCO order, from 1 (01 person, 02 bicycle). Row r is the r-th
interaction of that object in HICO order. Column c is the c-th image, by position only: `--image-list` gives the list
and its length must be the number of columns; without it 9,658 columns are taken as the HICO-DET test list. A note says
which list is used. Boxes are read unchanged. UPT and its relatives subtract 1 from x2 and y2 before they write them
(fredzzhang/upt utils.py, cache_hico), so x2, y2 are last pixels, as the MATLAB evaluation needs, and the records have
the caveat `last_pixels`; protocol `upt`, whose released code scores the detector's own edges, adds the 1 again.

There is one record for each column, also for empty ones, since the files have all images. The triplets of an image come
in HOI order, then in the order of their cell; equal boxes of one label are merged, subjects are persons. A cell that is
not K x 9 or holds a NaN stops the run, or is left out and counted (`--on-error skip`); a problem of the files
themselves always stops it. Single and double precision are read exactly. Only one file is open at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.containers.matfile import Numbers, load, variables
from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context
from hoicli.converters.images import images_by_position
from hoicli.errors import DataError
from hoicli.io.progress import Progress
from hoicli.records.caveats import LAST_PIXELS
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import Vocabulary

VARIABLE = "all_boxes"
WIDTH = 9
"""Numbers in a row: two boxes and a score."""


def sniff(source: Source) -> bool:
    """A folder with detections_*.mat, or one of these files (which `read` refuses by itself)."""
    if source.kind == "folder":
        return next(Path(source.path).glob("detections_*.mat"), None) is not None
    return source.kind == "mat" and Path(source.path).name.startswith("detections_")


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each column. Raises `DataError` that names the file if the folder is not valid."""
    if source.kind != "folder":
        raise DataError("is no folder; give the folder that holds detections_01.mat to _80.mat", place=source.name)
    vocabulary = context.vocabulary
    paths = _paths(source, vocabulary)
    if others := sorted({*os.listdir(source.path)} - {path.name for path in paths}):
        context.drop("other files of a folder", f"{source.name}/{others[0]}", len(others))
    columns = _columns(paths, vocabulary)
    images = images_by_position(columns, "columns", source, context)
    rows_of = [vocabulary.interactions_of(name) for name in vocabulary.objects]
    parts = []
    with Progress(source.name, total=len(paths), unit="file") as progress:
        for interactions, path in sorted(zip(rows_of, paths, strict=True)):
            parts.append(_read_file(path, interactions, images, context))
            progress.advance()
    context.announce(f"{source.name}: x2, y2 are taken for last pixels, as UPT writes them (caveat {LAST_PIXELS})")
    rows, interaction, column = map(np.concatenate, zip(*parts, strict=True))
    parts.clear()
    if not len(rows):
        context.announce(f"{source.name}: every cell is empty, there is no detection at all; did what wrote it fail?")
    order = np.lexsort((interaction, column))  # keeps the order within a cell
    start = np.searchsorted(column[order], np.arange(columns + 1)).tolist()
    for at, image_id in enumerate(images):
        own = order[start[at] : start[at + 1]]
        boxes = BoxTable()
        for number, row in zip(interaction[own].tolist(), rows[own].tolist(), strict=True):
            verb, label = vocabulary.interactions[number]
            boxes.pair(row[:4], row[4:8], label, verb=verb, score=row[8])
        yield {"image_id": image_id, **boxes.columns, "caveats": [LAST_PIXELS]}


# The files


def _paths(source: Source, vocabulary: Vocabulary) -> list[Path]:
    """The files in the order of the objects; raises `DataError` unless all are there."""
    paths = [Path(source.path) / f"detections_{at:02d}.mat" for at in range(1, len(vocabulary.objects) + 1)]
    missing = [path for path in paths if not path.is_file()]
    if missing:
        others = f" with {len(missing) - 1} others" if len(missing) > 1 else ""
        problem = f"is missing{others} of the {len(paths)} files; without all of them classes would silently score 0"
        raise DataError(problem, place=str(missing[0]), code="no-such-file")
    return paths


def _error(path: Path, problem: str) -> DataError:
    return DataError(problem, place=str(path), field=VARIABLE)


def _columns(paths: Sequence[Path], vocabulary: Vocabulary) -> int:
    """The number of images. Reads only the headers, so that a wrong set fails before the work. Raises `DataError` for a
    file without a cell array of the right number of rows, or with another number of columns."""
    widths = list[int]()
    for path, name in zip(paths, vocabulary.objects, strict=True):
        found = variables(Source(str(path)))
        if VARIABLE not in found:
            raise _error(path, f"is not in the file, which holds {', '.join(found) or 'nothing'}")
        _, _, kind, shape = found[VARIABLE]
        if kind != "cell" or len(shape) != 2:
            fix = "convert the predictions (results.json) of which GEN-VLKT's or PPDM's script made flat rows"
            raise _error(path, f"is no matrix of cells by image; {fix}")
        (rows, columns), count = shape, len(vocabulary.interactions_of(name))
        if rows != count:
            known = f"{name} (object {vocabulary.object_ids[name] + 1}) has {count} interactions"
            order = "files are numbered in COCO order (01 is person), and rows are its interactions"
            raise _error(path, f"has {rows:,} rows, but {known}; {order}")
        widths.append(columns)
        if columns != widths[0]:
            other = f"{paths[0].name} has {widths[0]:,}; the files are not of one set"
            raise _error(path, f"has {columns:,} columns, but {other}")
    return widths[0]


def _read_file(
    path: Path, interactions: Sequence[int], images: Sequence[str], context: Context
) -> tuple[NDArray[Any], NDArray[np.int16], NDArray[np.int32]]:
    """(rows [N, 9], interactions [N], columns [N]) of the detections of one object. Errors of bad cells and rows go to
    the policy, with MATLAB's name of the cell."""

    height = len(interactions)

    def refuse(problem: str, position: int) -> None:
        column, row = divmod(position, height)
        field = f"{VARIABLE}{{{row + 1},{column + 1}}} ({images[column]})"
        context.policy.handle(DataError(problem, place=str(path), field=field))

    kept, positions = [], []
    for position, cell in enumerate(load(Source(str(path)), VARIABLE).items):  # column by column, as MATLAB has them
        if isinstance(cell, Numbers) and not cell.data:
            continue
        if isinstance(cell, Numbers) and cell.shape[1:] == (WIDTH,):
            kept.append(cell.array())
            positions.append(position)
        else:
            size = " x ".join(map(str, cell.shape)) if isinstance(cell, Numbers) else "no numbers"
            refuse(f"{size}; a cell is K x {WIDTH} numbers (human box, object box, score)", position)
    place = np.repeat(np.array(positions, dtype=np.int64), [len(cell) for cell in kept])
    rows = np.concatenate([np.empty((0, WIDTH), dtype=np.float32), *kept])
    finite = np.isfinite(rows)
    good = finite.all(axis=1)
    for bad in np.flatnonzero(~good):
        problem = f"{rows[bad][~finite[bad]][0]} in a row; numbers must be finite: fix what wrote it"
        refuse(problem, int(place[bad]))
    column, row = np.divmod(place[good], height)
    return rows[good], np.array(interactions, dtype=np.int16)[row], column.astype(np.int32)
