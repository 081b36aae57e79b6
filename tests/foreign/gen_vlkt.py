"""results.json of GEN-VLKT and HOICLIP: as CDN's, but boxes have no class and an interaction is one of the 600."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load
from tests.foreign._lists import hois
from tests.foreign.cdn import Scalar

FILE = "results_gen_vlkt.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """The last box of an image is one that no interaction uses: the project writes all its queries' boxes."""
    ids = load("hico").interaction_ids
    preds = [
        {
            "filename": record["file_name"],
            "predictions": [{"bbox": [Scalar(float(x)) for x in box]} for box in [*record["boxes"], [0, 0, 8.5, 8.5]]],
            "hoi_prediction": hois(record, lambda *pair: ids[pair], Scalar),
        }
        for record in predictions
    ]
    path.write_text(json.dumps(str({"preds": preds, "gts": []})))
