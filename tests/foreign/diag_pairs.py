"""pair_pred_wscore.pkl as Diag-HOI has it: the person-object pairs of each image with a score, without verbs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load

FILE = "pairs.pkl"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """Each pair of boxes with a triplet once, its score that of the best triplet; box_pairs may be empty."""
    object_ids = load("hico").object_ids
    content = []
    for record in predictions:
        best: dict[tuple[int, int], float] = {}
        for hoi in record["hois"]:
            pair = hoi["subject"], hoi["object"]
            best[pair] = max(hoi["score"], best.get(pair, 0.0))
        pairs = [
            {
                "h_box": record["boxes"][subject],
                "o_box": record["boxes"][thing],
                "o_label": object_ids[record["labels"][thing]],
                "hoi_score_inter": score,
            }
            for (subject, thing), score in best.items()
        ]
        content.append({"filename": record["file_name"], "box_pairs": pairs})
    path.write_bytes(pickle.dumps(content, protocol=4))
