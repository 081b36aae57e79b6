"""anno_list.json as no_frills_hoi_det writes it: 0-based boxes, ids as text, the train split first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load

FILE = "anno_list.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """A train image (the first of `truth` under another name), then all of `truth`."""
    train = {**truth[0], "image_id": "HICO_train2015_00000001", "file_name": "HICO_train2015_00000001.jpg"}
    content = [_item(train, "train")] + [_item(record, "test") for record in truth]
    path.write_text(json.dumps(content))


def _item(record: dict[str, Any], split: str) -> dict[str, Any]:
    ids = load("hico").interaction_ids
    hois: dict[str, dict[str, Any]] = {}
    for hoi in record["hois"]:
        number = f"{ids[hoi['verb'], record['labels'][hoi['object']]] + 1:03}"
        entry = hois.setdefault(number, _entry(number, invis=0))
        humans, things = entry["human_bboxes"], entry["object_bboxes"]
        for index, boxes in ((hoi["subject"], humans), (hoi["object"], things)):
            if record["boxes"][index] not in boxes:
                boxes.append(record["boxes"][index])
        ends = (humans, hoi["subject"]), (things, hoi["object"])
        entry["connections"].append([boxes.index(record["boxes"][index]) for boxes, index in ends])
    positive = [f"{ids[verb, name] + 1:03}" for verb, name in record["image_hois"]]
    for number in positive:
        hois.setdefault(number, _entry(number, invis=1))
    return {
        "global_id": record["image_id"],
        "image_path_postfix": f"{split}2015/{record['file_name']}",
        "image_size": [record["height"], record["width"], 3],
        "hois": list(hois.values()),
        "pos_hoi_ids": positive,
        "neg_hoi_ids": ["600"],
    }


def _entry(number: str, *, invis: int) -> dict[str, Any]:
    return {"id": number, "human_bboxes": [], "object_bboxes": [], "connections": [], "invis": invis}
