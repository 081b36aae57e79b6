"""Predictions in matrices whose images have no names: the n-th column or row is the n-th image of --image-list, or of
HICO's test list (list_test of anno.mat) if there are as many; a note says which.

mat: the files of UPT, PViC, SCG and their forks for the official MATLAB evaluation, a folder of 80.

    detections_01.mat .. detections_80.mat   all_boxes, a cell array (interactions of the object) x (test images)
    a cell    K x 9: human box, object box, score; 0 x 0 where there is none

The number in a file's name is that of the object in COCO order, from 1 (01 person, 02 bicycle). Row r is the r-th
interaction of that object in HICO order. Boxes are read unchanged. UPT and its relatives subtract 1 from x2 and y2
before they write them (fredzzhang/upt utils.py, cache_hico), so x2, y2 are last pixels, as the MATLAB evaluation needs,
and the records have the caveat `last_pixels`; protocol `upt`, whose released code scores the detector's own edges, adds
the 1 again. The triplets of an image come in HOI order, then in the order of their cell; equal boxes of one label are
merged, subjects are persons. A cell that is not K x 9, or a row of one that holds a NaN, stops the run, or is left out
and counted (`--on-error skip`); a problem of the files themselves always stops it. Single and double precision are read
exactly. Only one file is open at a time.

ppdm-mat: the same folder as iCAN, PPDM, GEN-VLKT and HOICLIP write it for their copies of the official evaluation
(YueLiao/gen-vlkt tools/covert_annot_for_official_eval.py).

    detections_01.mat .. detections_80.mat   all_boxes, a cell array [N, 5]; 0 x 0 where there is none
    a row     human box, object box (4 numbers each), image number, interaction of the object (from 0), score x 1000

Image numbers are those at the end of the files' names. Boxes are read unchanged, and the evaluation adds 1 to all their
sides, as protocol `hico` does; the score is divided by 1000. The writers keep the best 19,999 of each interaction.

image-scores: HICO's image-level predictions, a score of each of 600 classes for each image in one matrix of a .npy or
.mat file, images by classes (or classes by images, as anno_test is). Classes are in HICO's order. Any finite number is
a score, higher is better. A record has a box for a person and one for each object, all alike: they stand for the whole
image (caveat `whole_image`). Protocols that look at boxes refuse it; `hico-image` and `hico-image-ko` do not look."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.containers.matfile import Cells, Numbers, load, variables
from hoicli.converters.containers.npz import npy
from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context
from hoicli.converters.image_ids import NumberedImages, images_by_position
from hoicli.errors import DataError, arg
from hoicli.io.messages import Progress
from hoicli.records.caveats import LAST_PIXELS, WHOLE_IMAGE
from hoicli.records.kit import Floats
from hoicli.records.parsing import Record
from hoicli.vocabulary.datasets import load as load_dataset
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

VARIABLE = "all_boxes"
WIDTH = 9
"""How many numbers a row of a cell has: two boxes and a score."""
WIDTHS = (4, 4, 1, 1, 1)
"""How many numbers each of the five cells of a flat row has: two boxes, image, interaction, score."""


def is_cells(source: Source) -> bool:
    """Return whether a path is a folder with detections_*.mat, or one of these files (which `read_cells` refuses)."""
    if source.kind == "folder":
        return next(Path(source.path).glob("detections_*.mat"), None) is not None
    return source.kind == "mat" and Path(source.path).name.startswith("detections_")


def is_rows(source: Source) -> bool:
    """Return whether a path is a folder of detections_*.mat with a row of five cells for each detection."""
    if source.kind != "folder":
        return False
    vocabulary, all_by_image = load_dataset("hico"), True
    for path in sorted(Path(source.path).glob("detections_[0-9][0-9].mat")):
        variable = variables(Source(str(path))).get(VARIABLE)
        if variable is None or (variable.shape[-1] != len(WIDTHS) and 0 not in variable.shape):
            return False
        number = int(path.stem[-2:]) - 1
        interactions = vocabulary.interactions_of(vocabulary.objects[number]) if number in range(80) else []
        all_by_image = all_by_image and variable.shape[0] == len(interactions)
    return not all_by_image


def read_cells(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image, also for one without detections, from a folder of detections_01.mat to _80.mat.
    Each file is about one object: a cell array [its interactions, images]. All are read before the first record."""
    if source.kind != "folder":
        raise DataError("is no folder; give the folder that holds detections_01.mat to _80.mat", place=source.name)
    vocabulary = context.vocabulary
    paths = _paths(source, vocabulary)
    if other_files := sorted({*os.listdir(source.path)} - {path.name for path in paths}):
        context.drop("other files of a folder", f"{source.name}/{other_files[0]}", len(other_files))
    images = images_by_position(_count_columns(paths, vocabulary), "columns", source, context)
    detections = _read_files(paths, source, context, partial(_read_file, images=images, context=context))
    context.announce(f"{source.name}: x2, y2 are taken for last pixels, as UPT writes them (caveat {LAST_PIXELS})")
    heads = [{"image_id": image_id} for image_id in images]
    yield from _records(detections, heads, source, context, caveats=[LAST_PIXELS])


def read_rows(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image with a detection, by ascending number, from a folder of files of flat rows."""
    numbered_images = NumberedImages(source, context)
    paths = _paths(source, context.vocabulary)
    rows, interaction, image_number = _read_files(paths, source, context, partial(_read_flat_file, context=context))
    numbers, image = np.unique(image_number, return_inverse=True)
    context.announce(f"{source.name}: scores are divided by 1000, by which PPDM's and GEN-VLKT's scripts multiply them")
    heads: list[Record | None] = []
    for number in numbers.tolist():
        heads.append(None)
        with context.policy.item(source.name):
            heads[-1] = numbered_images.record(number)
    yield from _records((rows, interaction, image), heads, source, context)


Detections = tuple[NDArray[Any], NDArray[np.int16], NDArray[Any]]
"""N detections: rows [N, 9] of two boxes and a score, the interaction's id of each [N], and its image's number [N]."""


def _read_files(
    paths: Sequence[Path], source: Source, context: Context, read_file: Callable[[Path, list[int]], Detections]
) -> Detections:
    """Return the detections of all objects, by interaction. read_file: gets a path, and ids of interactions."""
    interactions_of_objects = [context.vocabulary.interactions_of(name) for name in context.vocabulary.objects]
    parts = []
    with Progress(source.name, total=len(paths), unit="file") as progress:
        for interactions, path in sorted(zip(interactions_of_objects, paths, strict=True)):
            parts.append(read_file(path, interactions))
            progress.advance()
    rows, interaction, image = map(np.concatenate, zip(*parts, strict=True))
    return rows, interaction, image


def _records(
    detections: Detections, heads: Sequence[Record | None], source: Source, context: Context, **further_keys: Any
) -> Iterator[Record]:
    """Yield the record of each image, by interaction. heads: keys of each record, None to leave it out."""
    rows, interaction, image = detections
    if not len(rows):
        context.announce(f"{source.name}: every cell is empty, there is no detection at all; did what wrote it fail?")
    by_image = np.lexsort((interaction, image))  # by image, then interaction; else in the file's order
    starts = np.searchsorted(image[by_image], np.arange(len(heads) + 1)).tolist()  # of each image in `by_image`
    for index, head in enumerate(heads):
        if head is None:
            continue
        rows_of_image = by_image[starts[index] : starts[index + 1]]
        boxes = BoxTable()
        for number, row in zip(interaction[rows_of_image].tolist(), rows[rows_of_image].tolist(), strict=True):
            verb, label = context.vocabulary.interactions[number]
            boxes.pair(row[:4], row[4:8], label, verb=verb, score=row[8])
        yield {**head, **boxes.columns, **further_keys}


def _paths(source: Source, vocabulary: Vocabulary) -> list[Path]:
    """Return the paths of detections_01.mat to _80.mat in a folder. Raises `DataError` unless all are there."""
    paths = [Path(source.path) / f"detections_{number:02d}.mat" for number in range(1, len(vocabulary.objects) + 1)]
    missing = [path for path in paths if not path.is_file()]
    if missing:
        more = f" with {len(missing) - 1} others" if len(missing) > 1 else ""
        problem = f"is missing{more} of the {len(paths)} files; without all of them classes would silently score 0"
        raise DataError(problem, place=str(missing[0]), code="no-such-file")
    return paths


def _error(path: Path, problem: str) -> DataError:
    """Return the error about a problem with the cell array in a file of detections."""
    return DataError(problem, place=str(path), field=VARIABLE)


def _count_columns(paths: Sequence[Path], vocabulary: Vocabulary) -> int:
    """Return how many columns the cell array of each file has, which is the number of images. Only headers are read.
    Raises `DataError` for a file whose cell array does not have the shape of its object's."""
    widths = list[int]()
    for path, name in zip(paths, vocabulary.objects, strict=True):
        variables_here = variables(Source(str(path)))
        if VARIABLE not in variables_here:
            raise _error(path, f"is not in the file, which holds {', '.join(variables_here) or 'nothing'}")
        variable = variables_here[VARIABLE]
        if variable.kind != "cell" or len(variable.shape) != 2:
            fix = f"rows of five cells, as GEN-VLKT's script writes, are {arg('from_', 'ppdm-mat')}"
            raise _error(path, f"is no matrix of cells by image; {fix}")
        (rows, columns), count = variable.shape, len(vocabulary.interactions_of(name))
        if rows != count:
            expected = f"{name} (object {vocabulary.object_ids[name] + 1}) has {count} interactions"
            numbering = "files are numbered in COCO order (01 is person), and rows are its interactions"
            raise _error(path, f"has {rows:,} rows, but {expected}; {numbering}")
        widths.append(columns)
        if columns != widths[0]:
            difference = f"{paths[0].name} has {widths[0]:,}; the files are not of one set"
            raise _error(path, f"has {columns:,} columns, but {difference}")
    return widths[0]


def _read_file(path: Path, interactions: Sequence[int], images: Sequence[str], context: Context) -> Detections:
    """Return the N detections in one object's file: rows [N, 9] of two boxes and a score, the interaction's id of each
    [N], and the column of its image [N]. An error in a cell names the cell as MATLAB does, all_boxes{row,column}, and
    goes to the context's policy."""

    row_count = len(interactions)

    def report_cell(problem: str, position: int) -> None:
        """Report a problem of the cell at a position, which counts down the columns as MATLAB stores cells."""
        column, row = divmod(position, row_count)
        field = f"{VARIABLE}{{{row + 1},{column + 1}}} ({images[column]})"
        context.policy.handle(DataError(problem, place=str(path), field=field))

    cells, positions = [], []
    for position, cell in enumerate(load(Source(str(path)), VARIABLE).items):
        if isinstance(cell, Numbers) and not cell.data:
            continue
        if isinstance(cell, Numbers) and cell.shape[1:] == (WIDTH,):
            cells.append(cell.array())
            positions.append(position)
        else:
            size = " x ".join(map(str, cell.shape)) if isinstance(cell, Numbers) else "no numbers"
            report_cell(f"{size}; a cell is K x {WIDTH} numbers (human box, object box, score)", position)
    cell_position = np.repeat(np.array(positions, dtype=np.int64), [len(cell) for cell in cells])  # of each detection
    rows = np.concatenate([np.empty((0, WIDTH), dtype=np.float32), *cells])  # the empty one for a file without any
    finite = np.isfinite(rows)
    good = finite.all(axis=1)
    for bad in np.flatnonzero(~good):
        problem = f"{rows[bad][~finite[bad]][0]} in a row; numbers must be finite: fix what wrote it"
        report_cell(problem, int(cell_position[bad]))
    column, row = np.divmod(cell_position[good], row_count)
    return rows[good], np.array(interactions, dtype=np.int16)[row], column.astype(np.int32)


def _read_flat_file(path: Path, interactions: Sequence[int], context: Context) -> Detections:
    """Return the N detections in one object's file of flat rows: rows [N, 9] of two boxes and a score, the
    interaction's id of each [N], and the number of its image [N]. An error in a row names its cell as MATLAB does,
    all_boxes{row,column}, and goes to the context's policy."""
    source = Source(str(path))
    if VARIABLE not in variables(source):
        raise _error(path, "is missing; each file of the folder has it")
    content = load(source, VARIABLE)
    if not isinstance(content, Cells | Numbers):
        raise _error(path, "is neither a cell array nor empty")
    cells = content.items if isinstance(content, Cells) and 0 not in content.shape else []
    count = len(cells) // len(WIDTHS)  # without detections it is 0 x 0 numbers
    if 0 not in content.shape and content.shape != (count, len(WIDTHS)):
        raise _error(path, f"is {' x '.join(map(str, content.shape))}, not a cell array of {len(WIDTHS)} columns")
    rows: list[list[float]] = []
    for row in range(count):
        numbers: list[float] = []
        with context.policy.item():
            for column, width in enumerate(WIDTHS):
                cell = cells[column * count + row]  # MATLAB stores cells column by column
                numbers += map(float, _flat_cell(cell, width, path, f"{VARIABLE}{{{row + 1},{column + 1}}}"))
            if not numbers[8].is_integer() or abs(numbers[8]) > LARGEST:
                field = f"{VARIABLE}{{{row + 1},3}}"
                raise DataError(f"{numbers[8]:g} is no image number", place=str(path), field=field)
            if numbers[9] not in range(len(interactions)):
                problem = f"interaction {numbers[9]:g}, but the object has {len(interactions)}, counted from 0"
                raise DataError(problem, place=str(path), field=f"{VARIABLE}{{{row + 1},4}}")
            rows.append(numbers)
    table = np.array(rows, dtype=np.float64).reshape(-1, sum(WIDTHS))
    table[:, 10] /= 1000
    action = table[:, 9].astype(np.int64)
    return table[:, [*range(8), 10]], np.array(interactions, dtype=np.int16)[action], table[:, 8].astype(np.int64)


def _flat_cell(cell: Any, width: int, path: Path, field: str) -> tuple[float, ...]:
    """Return the numbers of a cell of a flat row. Raises `DataError` unless it holds `width` finite numbers."""
    numbers = cell.flat() if isinstance(cell, Numbers) else ()
    if len(numbers) != width or not all(map(math.isfinite, numbers)):
        expected = "four finite numbers (x1, y1, x2, y2)" if width == 4 else "one finite number"
        actual = ", ".join(f"{number:g}" for number in numbers[:9]) or "no numbers"
        raise DataError(f"holds {actual}, not {expected}", place=str(path), field=field)
    return numbers


CLASSES = 600
NOWHERE = [0.0, 0.0, 1.0, 1.0]
"""The box of every label, which means nothing: the scores are of whole images."""
LARGEST = 1 << 26
"""The most numbers in a matrix: ten times the scores of HICO's test images. More is damage."""


def is_scores(source: Source) -> bool:
    """Return whether a file may hold scores of whole images: .npy, or a MATLAB file with one fitting matrix."""
    return source.kind == "npy" or (source.kind == "mat" and _score_matrix_name(source) is not None)


def read_scores(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image in a matrix of scores, with a triplet for each of HICO's 600 classes."""
    scores = _scores(source)
    names = images_by_position(len(scores), "rows", source, context)
    vocabulary = context.vocabulary
    labels = [SUBJECT, *vocabulary.objects]
    boxes = [NOWHERE] * len(labels)  # box 0 is the person's, box 1 + i that of object i
    pairs = [
        {"subject": 0, "object": 1 + vocabulary.object_ids[label], "verb": verb}
        for verb, label in vocabulary.interactions
    ]

    def build(row: int) -> Record:
        """Return the record of the image in a row of the matrix. Raises `DataError` if a score is not finite."""
        bad = np.flatnonzero(~np.isfinite(scores[row]))
        if len(bad):
            raise DataError("is no finite number; every class of every image needs a score", field=f"[{int(bad[0])}]")
        hois = [{**pair, "score": score} for pair, score in zip(pairs, scores[row].tolist(), strict=True)]
        return {"image_id": names[row], "boxes": boxes, "labels": labels, "hois": hois, "caveats": [WHOLE_IMAGE]}

    yield from context.each(((f"[{row}]", row) for row in range(len(scores))), build, source)


def _scores(source: Source) -> Floats:
    """Return the scores [N, 600] in a file, which may be [600, N] there. Raises `DataError` for other arrays."""
    if source.kind == "mat":
        name = _score_matrix_name(source)
        if name is None:
            raise DataError("has no matrix with a side of 600; save one, images by classes", place=source.name)
        matrix = load(source, name).array()
    else:
        matrix = npy(source)
    if matrix.ndim != 2 or CLASSES not in matrix.shape or matrix.dtype.kind not in "fiu" or matrix.size > LARGEST:
        problem = f"a {matrix.dtype} array of shape {list(matrix.shape)}; save a matrix of images by 600 classes"
        raise DataError(problem, place=source.name)
    scores: Floats = (matrix if matrix.shape[1] == CLASSES else matrix.T).astype(np.float64)
    return scores


def _score_matrix_name(source: Source) -> str | None:
    """Return the name of the only matrix in a MATLAB file with a side of 600, None for anno.mat or others."""
    variables_here = variables(source)
    matrices = [name for name, variable in variables_here.items() if variable.kind == "numbers"]
    fitting = [name for name in matrices if CLASSES in variables_here[name].shape]
    return fitting[0] if len(fitting) == 1 and "list_action" not in variables_here else None
