"""preds.pkl of the INP-CC family on SWIG-HOI: 14,130 keys, images by img_id."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load

FOLDER = "swig"
FILE = "preds.pkl"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """All ids, as the released evaluator writes them."""
    interaction_ids = load("swig").interaction_ids
    content: dict[str, dict[int, list[Any]]] = {
        name: {hoi: [] for hoi in range(len(interaction_ids))} for name in ("scores", "boxes", "keys")
    }
    for record in predictions:
        for hoi in record["hois"]:
            number = interaction_ids[hoi["verb"], record["labels"][hoi["object"]]]
            content["scores"][number].append(hoi["score"])
            content["boxes"][number].append([*record["boxes"][hoi["subject"]], *record["boxes"][hoi["object"]]])
            content["keys"][number].append(record["img_id"])
    path.write_bytes(pickle.dumps(content, protocol=4))
