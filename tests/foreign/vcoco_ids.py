"""test.ids of V-COCO: one COCO image number a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = "vcoco"
GROUND_TRUTH = "ground_truth.jsonl"
PLACE = "."
FILE = "test.ids"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """In the order of the ground truth."""
    path.write_text("".join(f"{record['image_id']}\n" for record in truth))
