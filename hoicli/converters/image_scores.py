"""HICO's image-level predictions: a score of each of 600 classes for each image, without boxes.

One matrix in a .npy or .mat file, images by classes (or classes by images, as anno_test is). Rows are images in the
order of --image-list, or of HICO's test list (list_test of anno.mat) if there are as many. Classes are in HICO's order.
Any finite number is a score, higher is better.

A record has a box for a person and one for each object, all alike: they stand for the whole image and mean nothing, as
the caveat `whole_image` says. Protocols that look at boxes refuse it; `hico-image` and `hico-image-ko` do not look.

`read` raises `DataError` naming the file and the place in the matrix, from [0][0].
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hoicli.converters.containers.matfile import load, variables
from hoicli.converters.containers.npz import npy
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.images import images_by_position
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
    """A matrix with a side of 600, by itself in its file."""
    return source.kind == "npy" or (source.kind == "mat" and _matrix_of(source) is not None)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image."""
    scores = _scores(source)
    names = images_by_position(len(scores), "rows", source, context)
    vocabulary = context.vocabulary
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


def _scores(source: Source) -> Floats:
    """[N, 600] the scores."""
    if source.kind == "mat":
        name = _matrix_of(source)
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


def _matrix_of(source: Source) -> str | None:
    """The name of the only matrix with a side of 600 in a MATLAB file; None without one, and for HICO's labels."""
    found = variables(source)
    fitting = [name for name, of in found.items() if of.kind == "numbers" and CLASSES in of.shape]
    return fitting[0] if len(fitting) == 1 and "list_action" not in found else None
