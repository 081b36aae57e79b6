"""V-COCO's files: the official annotations, and the official list of people."""

from __future__ import annotations

import json
import math
import pickle
import sys
import types
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hoicli.vocabulary.dataset_content import coco_objects
from hoicli.vocabulary.datasets import load
from tests.foreign import Records, writes
from tests.support.project import Record


@writes("test.ids", folder="vcoco", place="", truth="ground_truth.jsonl")
def vcoco_ids(truth: Records, predictions: Records, path: Path) -> None:
    """test.ids of V-COCO: one COCO image number a line. In the order of the ground truth."""
    path.write_text("".join(f"{record['image_id']}\n" for record in truth))


def annotation_id(record: Record, index: int) -> int:
    """COCO's number of a box."""
    return int(record["image_id"]) * 100 + index + 1


@writes("instances.json", folder="vcoco", place="", truth="ground_truth.jsonl")
def vcoco_instances(truth: Records, predictions: Records, path: Path) -> None:
    """instances.json of COCO for V-COCO's images: boxes as [x, y, w, h], with some that its evaluator does not take. A
    box at the image's edge reaches beyond it; after the last box of an image come a crowd without area, a box
    one pixel wide, and one marked `ignore`."""
    images = [{key: record[key] for key in ("file_name", "width", "height")} | _id(record) for record in truth]
    annotations = [
        {
            "id": annotation_id(record, index),
            "image_id": record["image_id"],
            "category_id": coco_objects()[label],
            "bbox": _xywh(box, record),
            "area": (box[2] - box[0]) * (box[3] - box[1]) / 2,
            "iscrowd": 0,
        }
        for record in truth
        for index, (box, label) in enumerate(zip(record["boxes"], record["labels"], strict=True))
    ]
    last = truth[-1]
    mistakes: tuple[Record, ...]
    mistakes = ({"area": 0, "iscrowd": 1}, {"bbox": [4.0, 4.0, 1.0, 20.0]}, {"ignore": 1})
    for number, wrong in enumerate(mistakes):
        row = {"id": annotation_id(last, 90 + number), "image_id": last["image_id"], "category_id": 1}
        annotations.append(row | {"bbox": [4.0, 4.0, 30.0, 40.0], "area": 600.0, "iscrowd": 0} | wrong)
    categories = [{"id": number, "name": name.replace("_", " ")} for name, number in coco_objects().items()]
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))


def _id(record: Record) -> Record:
    return {"id": record["image_id"]}


def _xywh(box: list[float], record: Record) -> list[float]:
    """A box that ends at the image's last column or row is written three pixels longer, to be clipped again."""
    x1, y1, x2, y2 = box
    right, bottom = x2 == record["width"] - 1, y2 == record["height"] - 1
    return [float(x1), float(y1), x2 - x1 + 1.0 + 3 * right, y2 - y1 + 1.0 + 3 * bottom]


@writes("vcoco_test.json", folder="vcoco", place="", truth="ground_truth.jsonl")
def vcoco_vsrl(truth: Records, predictions: Records, path: Path) -> None:
    """vcoco_test.json of V-COCO: for each action the annotated people, whether they do it, and what fills its roles.
    role_object_id goes role by role; the agent is the person, 0 is no object."""
    marked = [(record, list(zip(record["labels"], record["annotated"], strict=True))) for record in truth]
    people = [(record, at) for record, boxes in marked for at, box in enumerate(boxes) if box == ("person", True)]
    path.write_text(json.dumps([_action(people, verb, roles) for verb, roles in load("vcoco").roles_of.items()]))


def _action(people: list[tuple[Record, int]], verb: str, roles: tuple[str, ...]) -> Record:
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


@writes("predictions.json", folder="vcoco", place="", truth="ground_truth.jsonl")
def vcoco_official(truth: Records, predictions: Records, path: Path) -> None:
    """predictions.json: the official list of people, as JSON with Python's NaN. Whoever is in a record with `unstated`
    states some keys only (UPT's cache), everybody else all (QPIC)."""
    path.write_text(json.dumps([person for record in predictions for person in people(record)]))


def people(record: Record) -> Iterator[Record]:
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


class CacheTemplate(defaultdict):  # type: ignore[type-arg]
    """A dictionary that fills in what is missing, known to a reader by its name alone."""


CacheTemplate.__module__ = "utils"


@writes("vcoco_results.pkl", folder="vcoco", truth="ground_truth.jsonl")
def vcoco_cache(truth: Records, predictions: Records, path: Path) -> None:
    """vcoco_results.pkl: the official list as UPT pickles it, dictionaries of a class of its own that lack keys. Scores
    are NumPy's, role boxes arrays, person boxes lists, as UPT's code makes them."""
    content = []
    for record in predictions:
        for person in people(record):
            template = CacheTemplate()
            for key, value in person.items():
                if isinstance(value, float):
                    template[key] = np.float64(value)
                else:
                    template[key] = value if key in ("image_id", "person_box") else np.array(value)
            content.append(template)
    path.write_bytes(_pickled(content))


def _pickled(content: list[CacheTemplate]) -> bytes:
    """As if CacheTemplate lived in UPT's utils.py."""
    module = types.ModuleType("utils")
    module.CacheTemplate = CacheTemplate  # type: ignore[attr-defined]
    before = sys.modules.get("utils")
    sys.modules["utils"] = module
    try:
        return pickle.dumps(content, protocol=4)
    finally:
        if before is None:
            del sys.modules["utils"]
        else:
            sys.modules["utils"] = before
