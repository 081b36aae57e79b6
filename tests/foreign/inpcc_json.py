"""The INP-CC family's predictions as one JSON dictionary of rows an image, keyed by image number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load

FILE = "inpcc.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """Rows [hoi, score, person, object]; json.dump turns the numbers of the images into text."""
    interaction_ids = load("hico").interaction_ids
    content = {
        int(record["image_id"].rsplit("_", 1)[1]): [
            [
                interaction_ids[hoi["verb"], record["labels"][hoi["object"]]],
                hoi["score"],
                *record["boxes"][hoi["subject"]],
                *record["boxes"][hoi["object"]],
            ]
            for hoi in record["hois"]
        ]
        for record in predictions
    }
    path.write_text(json.dumps(content))
