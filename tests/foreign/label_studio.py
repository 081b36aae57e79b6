"""Label Studio's JSON export of four images of fixtures/own that have all its verbs, and of one to be done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER, PLACE, FILE = "own", "", "label_studio.json"
DONE, OPEN = ("site_0004", "site_0005", "site_0007", "site_0010"), "site_0012"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """Boxes in per cent; a relation with all verbs of its pair. The last task has no annotation yet."""
    tasks = []
    for number, record in enumerate(filter(lambda record: record["image_id"] in DONE, truth), start=1):
        width, height = record["width"], record["height"]
        result: list[dict[str, Any]] = []
        for at, ((x1, y1, x2, y2), label) in enumerate(zip(record["boxes"], record["labels"], strict=True)):
            place = {"x": 100 * x1 / width, "y": 100 * y1 / height}
            size = {"width": 100 * (x2 - x1) / width, "height": 100 * (y2 - y1) / height}
            value = {**place, **size, "rotation": 0, "rectanglelabels": [label]}
            head = {"type": "rectanglelabels", "id": f"box{at}", "original_width": width, "original_height": height}
            result.append({**head, "value": value})
        pairs: dict[tuple[int, int], list[str]] = {}
        for hoi in record["hois"]:
            pairs.setdefault((hoi["subject"], hoi["object"]), []).append(hoi["verb"])
        for (subject, other), verbs in pairs.items():
            ends = {"from_id": f"box{subject}", "to_id": f"box{other}"}
            result.append({"type": "relation", **ends, "direction": "right", "labels": verbs})
        tasks.append(_task(number, record["file_name"], [{"updated_at": "2025-03-02T10:00:00Z", "result": result}]))
    tasks.append(_task(len(tasks) + 1, f"{OPEN}.jpg", []))
    path.write_text(json.dumps(tasks, separators=(",", ":")))


def _task(number: int, file_name: str, annotations: list[dict[str, Any]]) -> dict[str, Any]:
    upload = f"/data/upload/1/5f2c1a3{number}-{file_name}"
    return {"id": number, "data": {"image": upload}, "annotations": annotations, "predictions": []}
