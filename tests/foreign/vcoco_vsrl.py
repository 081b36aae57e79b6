"""vcoco_test.json of V-COCO: for each action the annotated people, whether they do it, and what fills its roles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load
from tests.foreign.vcoco_instances import annotation_id

FOLDER = "vcoco"
GROUND_TRUTH = "ground_truth.jsonl"
PLACE = "."
FILE = "vcoco_test.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """role_object_id goes role by role; the agent is the person, 0 is no object."""
    people = [
        (record, index)
        for record in truth
        for index, label in enumerate(record["labels"])
        if label == "person" and record["annotated"][index]
    ]
    path.write_text(json.dumps([_action(people, verb, roles) for verb, roles in load("vcoco").roles_of.items()]))


def _action(people: list[tuple[dict[str, Any], int]], verb: str, roles: tuple[str, ...]) -> dict[str, Any]:
    ids = [annotation_id(record, index) for record, index in people]
    deeds = [
        {hoi.get("role"): hoi["object"] for hoi in record["hois"] if (hoi["subject"], hoi["verb"]) == (index, verb)}
        for record, index in people
    ]
    fillers = [
        [
            0 if deed.get(role) is None else annotation_id(record, deed[role])
            for (record, _), deed in zip(people, deeds, strict=True)
        ]
        for role in roles
    ]
    return {
        "action_name": verb,
        "role_name": ["agent", *roles],
        "image_id": [record["image_id"] for record, _ in people],
        "ann_id": ids,
        "label": [int(bool(deed)) for deed in deeds],
        "role_object_id": [number for column in (ids, *fillers) for number in column],
        "include": [[]],
    }
