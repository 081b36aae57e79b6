"""Writes predictions as the folder of 80 files that the official MATLAB evaluation reads (`--to mat -o DIR`).

The layout is that of `detections_mat`. The folder is written whole or not at all, and the same records always give the
same bytes. Columns are in the order of `--image-list`, else of the HICO-DET test list if it has all images. The format
cannot hold these, which are left out and counted: verb scores, boxes that no triplet uses, triplets beyond the 600
interactions and those whose subject is no person.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.context import VERB_SCORES, Context, require_scores
from hoicli.errors import DataError, UsageError, arg
from hoicli.io.destinations import check_new_folder
from hoicli.io.outputs import atomic_folder
from hoicli.io.progress import Progress
from hoicli.records.caveats import LAST_PIXELS
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT

VARIABLE = "all_boxes"

OUTSIDE = "triplets outside the 600 interactions"
NOT_PERSON = "triplets whose subject is no person"
UNUSED = "boxes that no triplet uses"


def file_name(index: int) -> str:
    """The file of an object, by its 0-based place in COCO's order."""
    return f"detections_{index + 1:02d}.mat"


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """Write the folder `path`, which is new or empty. Raises `UsageError` for another `path` and if the column order is
    unknown, `DataError` for an image that is not in `--image-list`, a triplet without a score, and if only some records
    have the caveat `last_pixels`."""
    vocabulary = context.vocabulary
    known = None if context.images is None else set(context.images)
    cells: list[dict[str, bytes]] = [{} for _ in vocabulary.interactions]
    found = set()
    last_pixels: dict[bool, str] = {}
    check_new_folder(path, "-o")
    with atomic_folder(path) as folder:
        for record in records:
            image_id = str(record["image_id"])
            if known is not None and image_id not in known:
                problem = f"is not among the images of {arg('image_list')}; give the ground truth of all images"
                raise DataError(problem, place=f"image {image_id}", field="image_id")
            found.add(image_id)
            if record["hois"]:
                last_pixels.setdefault(LAST_PIXELS in (record.get("caveats") or ()), image_id)
            for interaction, rows in _held(record, context).items():
                cells[interaction][image_id] = _cell(np.array(rows, dtype="<f8"))
        if len(last_pixels) > 1:
            problem = f"has the caveat {LAST_PIXELS}, which image {last_pixels[False]} has not; write them as two sets"
            raise DataError(problem, place=f"image {last_pixels[True]}", field="caveats")
        text = OF_LAST_PIXELS if True in last_pixels else AS_THEY_ARE
        columns = _column_order(found, context)
        with Progress(path, total=len(vocabulary.objects), unit="file") as progress:
            for index, name in enumerate(vocabulary.objects):
                rows_of = [cells[interaction] for interaction in vocabulary.interactions_of(name)]
                (folder / file_name(index)).write_bytes(_matlab_file(rows_of, columns, text))
                progress.advance()


def _held(record: Record, context: Context) -> dict[int, list[list[float]]]:
    """Interaction id -> rows of a record; what the format cannot hold is counted."""
    require_scores(record, "mat")
    boxes, labels, ids = record["boxes"], record["labels"], context.vocabulary.interaction_ids
    held: dict[int, list[list[float]]] = {}
    unused = set(range(len(boxes)))
    for index, hoi in enumerate(record["hois"]):
        place = f"image {record['image_id']}: hois[{index}]"
        subject, object_ = hoi["subject"], hoi["object"]
        unused -= {subject, object_}
        interaction = ids.get((hoi["verb"], labels[object_]))
        if interaction is None:
            context.drop(OUTSIDE, place)
        elif labels[subject] != SUBJECT:
            context.drop(NOT_PERSON, place)
        else:
            held.setdefault(interaction, []).append([*boxes[subject], *boxes[object_], hoi["score"]])
            if "verb_score" in hoi:
                context.drop(VERB_SCORES, place)
    if unused:
        context.drop(UNUSED, f"image {record['image_id']}: boxes[{min(unused)}]", len(unused))
    return held


def _column_order(found: set[str], context: Context) -> dict[str, int]:
    """Image id -> column."""
    if context.images is not None:
        columns = {image_id: column for column, image_id in enumerate(context.images)}
        if len(columns) != len(context.images):
            raise DataError("names an image twice; a column is one image", place=arg("image_list"))
        return columns
    images = context.vocabulary.test_images
    others = found.difference(images)
    if others:
        raise UsageError(
            f"{arg('to', 'mat')}: columns are images by position, and {min(others)} is no HICO-DET test image; "
            f"give all images in order with {arg('image_list')}"
        )
    context.announce(
        f"columns are the {len(images):,} HICO-DET test images in their order ({arg('image_list')} for others)"
    )
    return {image_id: column for column, image_id in enumerate(images)}


# MATLAB 5 files. SciPy's writer takes ten times as long for six million mostly empty cells, and writes the time into
# the file; tests compare these bytes with SciPy's.

MATRIX, COMPRESSED, UINT32, INT32, INT8, DOUBLE = 14, 15, 6, 5, 1, 9
CELL_CLASS, DOUBLE_CLASS = 1, 6
WRITER = b"MATLAB 5.0 MAT-file, written by hoicli"
AS_THEY_ARE, OF_LAST_PIXELS = (text.ljust(116) for text in (WRITER, WRITER + b"; x2, y2 are last pixels"))
"""The headers of hoicli's files: without or with the caveat `last_pixels` in the records."""
VERSION = b" " * 8 + b"\x00\x01IM"


def _cell(rows: NDArray[np.float64]) -> bytes:
    """A matrix of doubles without a name, as an element of a file."""
    data = rows.tobytes("F")
    head = (UINT32, 8, DOUBLE_CLASS, 0, INT32, 8, *rows.shape, INT8, 0, DOUBLE, len(data))
    return struct.pack("<14I", MATRIX, 48 + len(data), *head) + data


def _matlab_file(rows_of: Sequence[dict[str, bytes]], columns: dict[str, int], text: bytes) -> bytes:
    """A file whose header begins with `text`: all_boxes with a row for each of `rows_of` (image id -> cell) and the
    given columns, column by column."""
    cells = [_cell(np.empty((0, 0)))] * (len(rows_of) * len(columns))
    for row, found in enumerate(rows_of):
        for image_id, cell in found.items():
            cells[columns[image_id] * len(rows_of) + row] = cell
    head = (UINT32, 8, CELL_CLASS, 0, INT32, 8, len(rows_of), len(columns), INT8, len(VARIABLE))
    content = struct.pack("<10I", *head) + VARIABLE.encode().ljust(16, b"\0") + b"".join(cells)
    packed = zlib.compress(struct.pack("<2I", MATRIX, len(content)) + content)
    return text + VERSION + struct.pack("<2I", COMPRESSED, len(packed)) + packed
