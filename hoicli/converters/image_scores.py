"""HICO's image-level predictions: a score of each of 600 classes for each image, without boxes.

    .npy, .npz, .mat: one matrix, images by classes (or classes by images, as anno_test is)
    .csv:             a line an image: its scores, with the image's name before them or not

Rows are images in the order of --image-list, or of HICO's test list (list_test of anno.mat) if there are as many.
Classes are in HICO's order. Any finite number is a score, higher is better.

A record has a box for a person and one for each object, all alike: they stand for the whole image and mean nothing, as
the caveat `whole_image` says. Protocols that look at boxes refuse it; `hico-image` and `hico-image-ko` do not look.

`read` raises `DataError` naming the file and the place in the matrix, from [0][0].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hoicli.converters.containers.matfile import load, variables
from hoicli.converters.containers.npz import Archive, npy
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.imagelist import images_by_position
from hoicli.errors import DataError
from hoicli.records.caveats import WHOLE_IMAGE
from hoicli.records.kit import Floats
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT

CLASSES = 600
NOWHERE = [0.0, 0.0, 1.0, 1.0]
"""The box of every label: there is none."""
LARGEST = 1 << 26
"""Numbers in a matrix: ten times the scores of HICO's test images. More is damage."""


def sniff(source: Source) -> bool:
    """A matrix with a side of 600, by itself in its file, or lines of 600 numbers."""
    if source.kind == "mat":
        return _matrix_of(source) is not None
    if source.kind == "npz":
        with Archive(source) as archive:
            return len(archive.names) == 1 and CLASSES in archive.shape(archive.names[0])
    if source.kind != "unknown":
        return source.kind == "npy"
    return source.data[: 1 << 16].split(b"\n", 1)[0].count(b",") in (CLASSES - 1, CLASSES)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image."""
    names, scores = _scores(source)
    if names is None:
        names = images_by_position(len(scores), "rows", source, context)
    vocabulary = context.vocabulary
    if scores.shape[1] != len(vocabulary.interactions):
        problem = f"{scores.shape[1]} classes, but {vocabulary.name} has {len(vocabulary.interactions)}; HICO has 600"
        raise DataError(problem, place=source.name)
    labels = [SUBJECT, *vocabulary.objects]
    boxes = [NOWHERE] * len(labels)
    pairs = [
        {"subject": 0, "object": 1 + vocabulary.object_ids[label], "verb": verb}
        for verb, label in vocabulary.interactions
    ]

    def build(row: int) -> Record:
        bad = np.flatnonzero(~np.isfinite(scores[row]))
        if len(bad):
            raise DataError("is no finite number; every class of every image needs a score", field=f"[{int(bad[0])}]")
        hois = [{**pair, "score": score} for pair, score in zip(pairs, scores[row].tolist(), strict=True)]
        return {"image_id": names[row], "boxes": boxes, "labels": labels, "hois": hois, "caveats": [WHOLE_IMAGE]}

    yield from context.each(((f"[{row}]", row) for row in range(len(scores))), build, source)


def _scores(source: Source) -> tuple[Sequence[str] | None, Floats]:
    """(the images, if the file names them; [N, classes] scores)."""
    if source.kind == "mat":
        name = _matrix_of(source)
        if name is None:
            raise DataError("has no matrix with a side of 600; save one, images by classes", place=source.name)
        matrix = load(source, name).array()
    elif source.kind == "npz":
        with Archive(source) as archive:
            matrix = archive.whole(archive.names[0])
    elif source.kind == "npy":
        matrix = npy(source)
    else:
        return _lines(source)
    if matrix.ndim != 2 or CLASSES not in matrix.shape or matrix.dtype.kind not in "fiu" or matrix.size > LARGEST:
        problem = f"a {matrix.dtype} array of shape {list(matrix.shape)}; save a matrix of images by 600 classes"
        raise DataError(problem, place=source.name)
    return None, (matrix if matrix.shape[1] == CLASSES else matrix.T).astype(np.float64)


def _matrix_of(source: Source) -> str | None:
    """The name of the only matrix with a side of 600 in a MATLAB file; None without one, and for HICO's labels."""
    found = variables(source)
    fitting = [name for name, of in found.items() if of.kind == "numbers" and CLASSES in of.shape]
    return fitting[0] if len(fitting) == 1 and "list_action" not in found else None


def _lines(source: Source) -> tuple[Sequence[str] | None, Floats]:
    """The same from lines of comma-separated numbers."""
    from hoicli.records.names import image_id_of

    names: list[str] = []
    rows: list[list[float]] = []
    for number, line in enumerate(source.data.decode("utf-8", "replace").splitlines(), start=1):
        cells: list[Any] = line.split(",")
        if len(cells) not in (CLASSES, CLASSES + 1) or (rows and bool(names) != (len(cells) > CLASSES)):
            problem = f"{len(cells)} cells; every line has 600 scores, and all lines or none begin with the image"
            raise DataError(problem, place=f"{source.name}:{number}")
        if len(cells) > CLASSES:
            names.append(image_id_of(cells.pop(0).strip()))
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError as error:
            raise DataError(f"{error}; give 600 numbers", place=f"{source.name}:{number}") from None
    return names or None, np.array(rows, dtype=np.float64).reshape(-1, CLASSES)
