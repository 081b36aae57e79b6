"""preds.pkl as the INP-CC family saves it: scores, boxes and image numbers, each a dictionary by HOI id."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load

FILE = "preds.pkl"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path, dataset: str = "hico") -> None:
    """All ids, most of them without a prediction; nothing indexes the boxes, so equal ones are repeated. Images are
    named by `img_id`, else by the number at the end of their name."""
    interaction_ids = load(dataset).interaction_ids
    content: dict[str, dict[int, list[Any]]] = {
        name: {hoi: [] for hoi in range(len(interaction_ids))} for name in ("scores", "boxes", "keys")
    }
    for record in predictions:
        for hoi in record["hois"]:
            number = interaction_ids[hoi["verb"], record["labels"][hoi["object"]]]
            content["scores"][number].append(hoi["score"])
            content["boxes"][number].append([*record["boxes"][hoi["subject"]], *record["boxes"][hoi["object"]]])
            content["keys"][number].append(record.get("img_id", int(record["image_id"].rsplit("_", 1)[1])))
    path.write_bytes(pickle.dumps(content, protocol=4))
