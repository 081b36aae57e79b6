"""Arrays: raw outputs, the state of an `Evaluator`, and the cells of the official evaluation."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import savemat

import hoicli
from hoicli.vocabulary.datasets import load
from tests.foreign import Records, writes
from tests.support.kernel import arrays

HIDDEN = -20.0
"""The logit of a class that is not predicted."""
BOX_SCORE = 0.9975


@writes("logits.npz")
def logits(truth: Records, predictions: Records, path: Path) -> None:
    """Raw outputs of an INP-CC model as numpy.savez writes them: logits that post-processing turns into the
    predictions. One query a pair of boxes, in the order of the triplets; spare queries predict nothing."""
    interaction_ids = load("hico").interaction_ids
    sizes = {record["image_id"]: (record["height"], record["width"]) for record in truth}
    pairs = [list(dict.fromkeys((hoi["subject"], hoi["object"]) for hoi in record["hois"])) for record in predictions]
    queries = max(map(len, pairs))
    logits = np.full((len(predictions), queries, len(interaction_ids)), HIDDEN, dtype=np.float32)
    boxes = np.full((len(predictions), queries, 8), 0.5, dtype=np.float32)
    box_scores = np.full((len(predictions), queries, 1), BOX_SCORE, dtype=np.float32)
    for image, record in enumerate(predictions):
        height, width = sizes[record["image_id"]]
        for hoi in record["hois"]:
            query = pairs[image].index((hoi["subject"], hoi["object"]))
            for side, key in enumerate(("subject", "object")):
                x1, y1, x2, y2 = record["boxes"][hoi[key]]
                centre = [(x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height]
                boxes[image, query, 4 * side : 4 * side + 4] = centre
            score = hoi["score"] / BOX_SCORE
            column = interaction_ids[hoi["verb"], record["labels"][hoi["object"]]]
            logits[image, query, column] = math.log(score / (1 - score))
    np.savez_compressed(
        path,
        pred_logits=logits,
        pred_boxes=boxes,
        box_scores=box_scores,
        sizes=np.array([sizes[record["image_id"]] for record in predictions], dtype=np.int64),
        image_ids=np.array([int(record["image_id"].rsplit("_", 1)[1]) for record in predictions], dtype=np.int64),
    )


@writes("state.npz", format="state", kind="npz")
def state(truth: Records, predictions: Records, path: Path) -> None:
    """The state of an `Evaluator`, as numpy.savez writes it. All images of one process."""
    evaluator = hoicli.Evaluator(truth, "hico")
    for record in predictions:
        evaluator.update(record["image_id"], **arrays(record))
    np.savez_compressed(path, **evaluator.state())


@writes("detections_mat")
def detections_mat(truth: Records, predictions: Records, path: Path) -> None:
    """detections_01.mat .. detections_80.mat of UPT and relatives, with a column for each image of gt.jsonl. As
    cache_hico of fredzzhang/upt writes them, 1 is taken off x2 and y2 of the detector's edges. One file an
    object in COCO order, a row an interaction of it, a column an image of the ground truth."""
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


@writes("rows_mat")
def rows_mat(truth: Records, predictions: Records, path: Path) -> None:
    """detections_01.mat .. detections_80.mat as tools/covert_annot_for_official_eval.py of YueLiao/gen-vlkt writes
    them: in each a list of rows of lists and numbers, which SciPy makes cells; of each interaction the best first."""
    vocabulary = load("hico")
    path.mkdir(exist_ok=True)
    for number, name in enumerate(vocabulary.objects, start=1):
        rows: list[list[Any]] = []
        for action, interaction in enumerate(vocabulary.interactions_of(name)):
            verb = vocabulary.interactions[interaction][0]
            found = [
                [*(record["boxes"][hoi[side]] for side in ("subject", "object")),
                 int(record["image_id"].rsplit("_", 1)[1]), action, hoi["score"] * 1000]
                for record in predictions for hoi in record["hois"]
                if (hoi["verb"], record["labels"][hoi["object"]]) == (verb, name)
            ]  # fmt: skip
            rows += sorted(found, key=lambda row: -row[-1])
        content: Any = np.array(rows, dtype=object) if rows else np.zeros((0, 0))
        (path / f"detections_{number:02d}.mat").write_bytes(matlab_file(content))


def _cell(records: Records, verb: str, name: str) -> NDArray[np.float64]:
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
