"""`make bench`, V-COCO's part: convert and eval on a dump of the test set's size, beside the released algorithm.

    python -m tests.bench_vcoco [--repeat 3] [--folder DIR]

Makes official files of the size and shape of V-COCO's test set (4,946 images, 10,000 dictionaries that lack keys, as
UPT's cache writes them), the same ones every time. The slow evaluator reads what the released one does into plain
Python (tests/vcoco_reference.py), without its search through all detections for every image.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from hoicli.vocabulary import coco_objects, load
from tests.bench import FLOOR, measure

IMAGES = 4_946
FILES = ("vcoco_test.json", "instances.json", "test.ids", "vcoco_results.pkl")
REFERENCE = """
import orjson, sys
from hoicli.vocabulary import load
from tests import vcoco_reference
truth, found = ([orjson.loads(line) for line in open(path, 'rb')] for path in sys.argv[1:])
for name in ('vcoco-agent', 'vcoco-s1', 'vcoco-s2'):
    vcoco_reference.evaluate(name, truth, found, load('vcoco').roles_of)
"""

Record = dict[str, Any]


def make_dump(folder: Path) -> None:
    """VSRL, COCO's instances, the ids, and a cache of jittered people that do what they do, and other things."""
    roles_of = load("vcoco").roles_of
    annotations: list[Record] = []
    people: list[tuple[int, int, dict[str, list[int]]]] = []
    cache: list[Record] = []
    for number in range(1, IMAGES + 1):
        rng = np.random.default_rng([11, number])
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
        for number in range(1, IMAGES + 1)
    ]
    categories = [{"id": number, "name": name.replace("_", " ")} for name, number in coco_objects().items()]
    instances = {"images": images, "annotations": annotations, "categories": categories}
    paths = [folder / name for name in FILES]
    paths[0].write_bytes(orjson.dumps(vsrl))
    paths[1].write_bytes(orjson.dumps(instances))
    paths[2].write_text("".join(f"{number}\n" for number in range(1, IMAGES + 1)))
    paths[3].write_bytes(pickle.dumps(cache, protocol=4))


def _jittered(rng: np.random.Generator, box: Any) -> list[float]:
    moved: list[float] = (box + rng.normal(0, 20, 4)).tolist()
    return moved


def main() -> None:
    """Print the table of the README."""
    parser = argparse.ArgumentParser(description="Measure V-COCO's commands beside the released algorithm.")
    parser.add_argument("--folder", type=Path, default=Path("bench-output"))
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    # in a process of its own: a large parent would show in the peak memory of its children
    code = "import sys; from pathlib import Path; from tests.bench_vcoco import make_dump; make_dump(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(options.folder)], check=True)
    vsrl, instances, ids, cache = (options.folder / name for name in FILES)
    truth, found = options.folder / "vcoco_gt.jsonl", options.folder / "vcoco_predictions.jsonl"
    python = sys.executable
    hoicli = [python, "-m", "hoicli"]
    measured = [
        (name, *measure(command, repeat))
        for name, command, repeat in (
            (
                "convert (the three official files)",
                [*hoicli, "convert", vsrl, instances, ids, "-o", truth],
                options.repeat,
            ),
            ("convert (the pickled cache)", [*hoicli, "convert", cache, "-o", found], options.repeat),
            ("floor: orjson.loads of every line of the records", [python, "-c", FLOOR, found], options.repeat),
            ("eval --dataset vcoco", [*hoicli, "eval", "--dataset", "vcoco", "--gt", truth, found], options.repeat),
            ("plain-Python loops (agents, scenarios 1 and 2)", [python, "-c", REFERENCE, truth, found], 1),
        )
    ]
    people = len(pickle.loads(cache.read_bytes()))
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, orjson {orjson.__version__}"
    print(f"V-COCO: {IMAGES:,} images, {people:,} dictionaries; {os.cpu_count()} processors, {versions}")
    print(f"best of {options.repeat}\n")
    print("| whole process | seconds | peak MiB |\n| --- | ---: | ---: |")
    for name, seconds, peak in measured:
        print(f"| {name} | {seconds:.2f} | {peak:.0f} |")
    (options.folder / "bench_vcoco.json").write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
