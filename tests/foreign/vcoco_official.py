"""predictions.json: the official list of people, as JSON with Python's NaN."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load

FOLDER = "vcoco"
GROUND_TRUTH = "ground_truth.jsonl"
PLACE = "."
FILE = "predictions.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """Whoever is in a record with `unstated` states some keys only (UPT's cache), everybody else all (QPIC)."""
    path.write_text(json.dumps([person for record in predictions for person in people(record)]))


def people(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One dictionary a person. A missing object is NaN, a missing statement of a complete dictionary a NaN score."""
    for index, label in enumerate(record["labels"]):
        if label != "person":
            continue
        person = {"image_id": record["image_id"], "person_box": record["boxes"][index]}
        for hoi in record["hois"]:
            if hoi["subject"] == index:
                key = f"{hoi['verb']}_{hoi.get('role', 'agent')}"
                box = [math.nan] * 4 if hoi["object"] is None else record["boxes"][hoi["object"]]
                person[key] = [*box, hoi["score"]] if "role" in hoi else hoi["score"]
        if "unstated" not in record:
            for verb, roles in load("vcoco").roles_of.items():
                person.setdefault(f"{verb}_agent", math.nan)
                for role in roles:
                    person.setdefault(f"{verb}_{role}", [math.nan] * 5)
        yield person
