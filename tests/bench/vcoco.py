"""The page's V-COCO part: official files of the size and shape of the test set, the same every time.

The predictions are dictionaries that lack keys, as UPT's cache writes them. The slow evaluator does what the released
one does in plain Python (tests/support/vcoco_reference.py), without its search through all detections for every image.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from hoicli.vocabulary.dataset_content import coco_objects
from hoicli.vocabulary.datasets import load
from tests.bench import released
from tests.bench.hico import upright
from tests.bench.measuring import HOICLI, PYTHON, Options, Process
from tests.support.project import Record

IMAGES = 4_946
FILES = ("vcoco_test.json", "instances.json", "test.ids", "vcoco_results.pkl")


def prepare(options: Options) -> None:
    make_dump(options.folder)


def processes(options: Options) -> list[Process]:
    vsrl, instances, ids, cache = (str(options.folder / name) for name in FILES)
    names = ("vcoco_gt.jsonl", "vcoco_predictions.jsonl", "vcoco_full.pkl")
    truth, found, full = (str(options.folder / name) for name in names)
    floor = "floor: every line of the records"
    rows = [
        Process("convert (the three official files)", (*HOICLI, "convert", vsrl, instances, ids, "-o", truth)),
        Process("convert (the pickled cache)", (*HOICLI, "convert", cache, "-o", found)),
        Process("convert --to vcoco-pkl", (*HOICLI, "convert", found, "--to", "vcoco-pkl", "-o", full)),
        Process(floor, (*PYTHON, "-m", "tests.bench.floor", "lines", found)),
        Process("eval --dataset vcoco", (*HOICLI, "eval", "--dataset", "vcoco", "--gt", truth, found), floor),
        Process("diagnose --dataset vcoco", (*HOICLI, "diagnose", "--dataset", "vcoco", "--gt", truth, found), floor),
        Process("plain-Python loops, agents and both scenarios",
                (*PYTHON, "-m", "tests.bench.loops", "vcoco", truth, found), floor, "eval --dataset vcoco", once=True),
    ]  # fmt: skip
    if options.peers:
        command = (*PYTHON, "-m", "tests.bench.released", "vcoco", str(options.peers), vsrl, instances, ids, full)
        rows.append(Process(released.VCOCO, command, floor, "eval --dataset vcoco", once=True))
    return rows


def facts(options: Options) -> str:
    people = len(pickle.loads((options.folder / FILES[3]).read_bytes()))
    return f"a made cache: {IMAGES:,} images, {people:,} dictionaries"


def make_dump(folder: Path, size: int = IMAGES, seed: int = 11) -> None:
    """VSRL, COCO's instances, the ids, and a cache of jittered people that do what they do, and other things."""
    roles_of = load("vcoco").roles_of
    annotations: list[Record] = []
    people: list[tuple[int, int, dict[str, list[int]]]] = []
    cache: list[Record] = []
    for number in range(1, size + 1):
        rng = np.random.default_rng([seed, number])
        corners = rng.uniform(0, 300, (3, 2))
        boxes = np.hstack([corners, corners + rng.uniform(30, 300, (3, 2))])
        ids = [10 * number + place for place in range(3)]
        for ann_id, category, (x1, y1, x2, y2) in zip(ids, (1, 1, coco_objects()["cup"]), boxes.tolist(), strict=True):
            row = {"id": ann_id, "image_id": number, "category_id": category, "iscrowd": 0}
            annotations.append(row | {"bbox": [x1, y1, x2 - x1, y2 - y1], "area": (x2 - x1) * (y2 - y1)})
        for place in range(2):
            verbs = [str(verb) for verb in rng.choice(list(roles_of), size=3, replace=False)]
            if place == 0 or rng.random() < 0.5:  # the others nobody annotated
                fillers = {verb: [ids[2] if rng.random() < 0.8 else 0 for _ in roles_of[verb]] for verb in verbs}
                people.append((number, ids[place], fillers))
            person: Record = {"image_id": number, "person_box": _jittered(rng, boxes[place])}
            for verb in [*verbs, *map(str, rng.choice(list(roles_of), size=4, replace=False))]:
                person[f"{verb}_agent"] = float(rng.random())
                person |= {
                    f"{verb}_{role}": [*_jittered(rng, boxes[2]), float(rng.random())] for role in roles_of[verb]
                }
            cache.append(person)
    vsrl = [
        {
            "action_name": verb,
            "role_name": ["agent", *roles],
            "image_id": [image for image, _, _ in people],
            "ann_id": [person for _, person, _ in people],
            "label": [int(verb in deeds) for _, _, deeds in people],
            "role_object_id": [person for _, person, _ in people]
            + [deeds[verb][place] if verb in deeds else 0 for place in range(len(roles)) for _, _, deeds in people],
        }
        for verb, roles in roles_of.items()
    ]
    images = [
        {"id": number, "file_name": f"COCO_val2014_{number:012d}.jpg", "width": 640, "height": 640}
        for number in range(1, size + 1)
    ]
    categories = [{"id": number, "name": name.replace("_", " ")} for name, number in coco_objects().items()]
    instances = {"images": images, "annotations": annotations, "categories": categories}
    paths = [folder / name for name in FILES]
    paths[0].write_bytes(orjson.dumps(vsrl))
    paths[1].write_bytes(orjson.dumps(instances))
    paths[2].write_text("".join(f"{number}\n" for number in range(1, size + 1)))
    paths[3].write_bytes(pickle.dumps(cache, protocol=4))


def _jittered(rng: np.random.Generator, box: Any) -> list[float]:
    moved: list[float] = upright(box + rng.normal(0, 20, 4))[0].tolist()
    return moved
