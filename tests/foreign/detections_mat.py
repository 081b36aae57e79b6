"""detections_01.mat .. detections_80.mat of UPT and relatives, with a column for each image of gt.jsonl.

As cache_hico of fredzzhang/upt writes them, 1 is taken off x2 and y2 of the detector's edges.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import savemat

from hoicli.vocabulary.datasets import load

FILE = "detections_mat"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """One file an object in COCO order, a row an interaction of it, a column an image of the ground truth."""
    vocabulary = load("hico")
    columns = [record["image_id"] for record in truth]
    path.mkdir(exist_ok=True)
    for number, name in enumerate(vocabulary.objects, start=1):
        interactions = vocabulary.interactions_of(name)
        cells = np.empty((len(interactions), len(columns)), dtype=object)
        for row, interaction in enumerate(interactions):
            verb = vocabulary.interactions[interaction][0]
            for column, image_id in enumerate(columns):
                cells[row, column] = _cell([r for r in predictions if r["image_id"] == image_id], verb, name)
        (path / f"detections_{number:02d}.mat").write_bytes(matlab_file(cells))


def _cell(records: list[dict[str, Any]], verb: str, name: str) -> NDArray[np.float64]:
    rows = [
        [*last_pixels(record["boxes"][hoi["subject"]]), *last_pixels(record["boxes"][hoi["object"]]), hoi["score"]]
        for record in records
        for hoi in record["hois"]
        if (hoi["verb"], record["labels"][hoi["object"]]) == (verb, name)
    ]
    return np.array(rows) if rows else np.zeros((0, 0))


def last_pixels(box: list[float]) -> list[float]:
    """A box of edges as one that ends in its last pixels."""
    x1, y1, x2, y2 = box
    return [x1, y1, x2 - 1, y2 - 1]


def matlab_file(cells: NDArray[Any], name: str = "all_boxes", *, compress: bool = True) -> bytes:
    """What SciPy writes, without the time in its header: the fixtures stay the same when nothing has changed."""
    stream = io.BytesIO()
    savemat(stream, {name: cells}, do_compression=compress)
    return b"MATLAB 5.0 MAT-file".ljust(116) + stream.getvalue()[116:]
