"""Raw outputs of an INP-CC model as numpy.savez writes them: logits that post-processing turns into the predictions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from hoicli.vocabulary.datasets import load

FILE = "logits.npz"
HIDDEN = -20.0
"""The logit of a class that is not predicted."""
BOX_SCORE = 6.0


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """One query a pair of boxes, in the order of the triplets; spare queries predict nothing."""
    interaction_ids = load("hico").interaction_ids
    sizes = {record["image_id"]: (record["height"], record["width"]) for record in truth}
    pairs = [list(dict.fromkeys((hoi["subject"], hoi["object"]) for hoi in record["hois"])) for record in predictions]
    queries = max(map(len, pairs))
    logits = np.full((len(predictions), queries, len(interaction_ids)), HIDDEN, dtype=np.float32)
    boxes = np.full((len(predictions), queries, 8), 0.5, dtype=np.float32)
    box_scores = np.full((len(predictions), queries, 1), BOX_SCORE, dtype=np.float32)
    probability = 1 / (1 + math.exp(-BOX_SCORE))
    for image, record in enumerate(predictions):
        height, width = sizes[record["image_id"]]
        for hoi in record["hois"]:
            query = pairs[image].index((hoi["subject"], hoi["object"]))
            for side, key in enumerate(("subject", "object")):
                x1, y1, x2, y2 = record["boxes"][hoi[key]]
                centre = [(x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height]
                boxes[image, query, 4 * side : 4 * side + 4] = centre
            score = hoi["score"] / probability
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
