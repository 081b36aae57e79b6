"""How time and memory of each command grow: the rows of docs/scale.md.

    python -m tests.support.growth [images,classes,...] [--images 12500] [--only 'eval*'] [--folder bench-output]

Makes the inputs of each size, runs each command on them once, and prints a Markdown table for each thing that grows.
100,000 images take 0.15 GB for each model. Progress goes to stderr.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import orjson

from hoicli.corruption.catalogue import HOICLI_1, ROHOI
from tests.bench.measuring import HOICLI, PYTHON, Table, apart, machine, measure, say

FLOOR = "-mtests.bench.floor"
"""What only reads the lines: the module instead of a command."""
BLOCK = 5_000
"""Images made at a time; a smaller dump is the beginning of a larger one."""


@dataclass(frozen=True)
class Size:
    """What is made: records of so many images, and small files with a line for each `images`."""

    images: int = 1
    triplets: int = 10
    classes: int = 0
    """0: HICO-DET's."""
    models: int = 2
    pictures: bool = False
    """Whether there is a picture for each image."""


SIZES = {
    "images": [Size(images) for images in (1, 2, 4, 8)],
    "classes": [Size(classes=classes) for classes in (500, 10_000)],
    "triplets": [Size(triplets=1), Size(triplets=1_000)],
    "models": [Size(models=2), Size(models=20)],
    "pictures": [Size(images, pictures=True) for images in (1, 2, 4, 8)],
}
"""What grows; images are multiples of --images."""

COMMANDS = (
    (f"{FLOOR} lines {{found}}", "images classes triplets"),
    ("validate --gt {gt} {found}", "images classes triplets"),
    ("eval --protocol hico --gt {gt} {found}", "images classes triplets"),
    ("eval --gt {gt} {found}", "images classes triplets"),
    ("eval --bootstrap 100 --protocol hico --gt {gt} {found}", "images classes triplets"),
    ("match --protocol hico --gt {gt} {found} -o {folder}/matches.jsonl", "images classes triplets"),
    ("eval {folder}/matches.jsonl", "images classes triplets"),
    ("recall --gt {gt} {found}", "images classes triplets"),
    ("diagnose --gt {gt} {found}", "images classes triplets"),
    ("confusion --gt {gt} {found}", "images classes triplets"),
    ("curves --gt {gt} {models}", "images classes triplets models"),
    ("pairstats --gt {gt} {models}", "images classes triplets models"),
    ("compare --gt {gt} {models}", "images classes triplets models"),
    ("claim --gt {gt} {found} full=20", "images classes triplets"),
    ("audit --gt {gt} {models}", "images classes triplets models"),
    ("explore --gt {gt} {found} -o {folder}/page", "images classes triplets"),
    ("explore --gt {gt} {models} -o {folder}/pages", "images"),
    ("show --gt {gt} {models} --first 12 -o {folder}/sheet.png", "images classes triplets models"),
    ("shoe-sim --backend lexical --gt {gt} {found} -o {folder}/sim.jsonl", "images triplets"),
    ("shoe-eval --sim {folder}/sim.jsonl --gt {gt} {found}", "images triplets"),
    ("convert --to cdn-json --image-list {gt} {found} -o {folder}/cdn.json", "images triplets"),
    ("convert --image-list {gt} {folder}/cdn.json", "images triplets"),
    ("convert --to hoia {gt} -o {folder}/hoia.json", "images"),
    ("convert {folder}/hoia.json", "images"),
    ("mask --rectangles {gt}", "images"),
    ("prompts {gt}", "images"),
    ("corrupt --records-only --corruption zoom_blur --severity 3 {gt}", "images"),
    ("vlm-eval {folder}/grounded.json", "images"),
    ("agree {folder}/ratings.jsonl", "images models"),
    ("curriculum {folder}/epochs.jsonl", "images"),
    ("robust {folder}/rows.jsonl", "models"),
    ("corrupt --corruption elastic --severity 3 --images {folder} --save-images {folder}/out {gt}", "pictures"),
)
"""Each command, and what grows for it."""


def make_dump(truth: Path, predictions: Sequence[Path], size: Size) -> None:
    """Ground truth of two people with an object, two triplets an image; shifted boxes from each model."""
    of_object: dict[str, list[str]] = {}
    for verb, name in interactions(size.classes):
        of_object.setdefault(name, []).append(verb)
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, "wb")) for path in (truth, *predictions)]
        for start in range(0, size.images, BLOCK):
            for records in _block(start, min(BLOCK, size.images - start), size.triplets, len(predictions), of_object):
                for file, record in zip(files, records, strict=True):
                    file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))


def interactions(classes: int) -> Sequence[tuple[str, str]]:
    """(verb, object) of so many classes, ten for each object; HICO-DET's if 0."""
    from hoicli.vocabulary.datasets import load

    made = [(f"verb_{(i // 10 + i % 10 * 7) % 100}", f"object_{i // 10}") for i in range(classes)]
    return made or load("hico").interactions


def _block(start: int, count: int, triplets: int, models: int, of_object: dict[str, list[str]]) -> Any:
    rng = np.random.default_rng([17, start])
    names = list(of_object)
    corners = rng.uniform(0, 300, (BLOCK, 3, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(40, 300, (BLOCK, 3, 2))], axis=2)
    choice = rng.integers(0, len(names), BLOCK)
    first = rng.integers(0, 1000, BLOCK)
    # each model has each person and the object twice: once near, once astray
    shifts = rng.normal(0, 1, (models, count, 6, 4)) * np.tile([5, 40], 3)[:, None]
    scores = rng.random((models, count, triplets))
    for i in range(count):
        name, verb = names[choice[i]], int(first[i])
        verbs = of_object[name]
        image = {"image_id": f"image_{start + i:07}"}
        hois = [{"subject": s, "object": 2, "verb": verbs[(verb + s) % len(verbs)]} for s in (0, 1)]
        labels = ["person", "person", name]
        real = {"width": 640, "height": 640, "boxes": boxes[i].round().tolist(), "labels": labels, "hois": hois}
        records = [image | {"file_name": f"{image['image_id']}.jpg"} | real]
        for model in range(models):
            found = np.repeat(boxes[i], 2, axis=0) + shifts[model, i]
            found[:, 2:] = np.maximum(found[:, 2:], found[:, :2] + 1)
            # eight pairs, then the next verb
            hois = [
                {"subject": j & 3, "object": 4 + (j >> 2 & 1), "verb": verbs[(verb + j // 8) % len(verbs)], "score": s}
                for j, s in enumerate(scores[model, i].tolist())
            ]
            labels = ["person"] * 4 + [name] * 2
            records.append(image | {"boxes": found.round(2).tolist(), "labels": labels, "hois": hois})
        yield records


def make(folder: Path, size: Size) -> None:
    make_dump(folder / "gt.jsonl", [folder / f"model_{model}.jsonl" for model in range(size.models)], size)
    if size.classes:
        classes = interactions(size.classes)
        verbs, objects = (sorted(set(names)) for names in zip(*classes, strict=True))
        named = {"name": "many", "verbs": verbs, "objects": ["person", *objects], "interactions": classes}
        (folder / "dataset.json").write_bytes(orjson.dumps(named))
    if size.pictures:
        import cv2

        for i, noise in enumerate(np.random.default_rng(17).integers(0, 256, (size.images, 20, 15, 3), np.uint8)):
            cv2.imwrite(str(folder / f"image_{i:07}.jpg"), cv2.resize(noise, (640, 640)))
    pair = [{"person_bbox": [10, 20, 90, 200], "object_bbox": [15, 100, 120, 220]}]
    asked = {"action": "ride", "object_category": "horse", "predicted_pairs": pair, "gt_pairs": pair}
    grounded = [{"image_id": i, "image_path": f"{i}.jpg", "custom_id": f"{i}", **asked} for i in range(size.images)]
    (folder / "grounded.json").write_bytes(orjson.dumps(grounded))
    given = np.random.default_rng(17).integers(0, 5, (size.images, size.models)).tolist()
    rated = [{"item": f"{i}", "ratings": {f"r{m}": v for m, v in enumerate(row)}} for i, row in enumerate(given)]
    row = {"metric": "mAP", "subset": "full", "n": 5, "unit": "%", "protocol": "hico", "signature": "protocol:hico"}
    rows = [row | {"value": 50.0, "tags": {"model": f"m{m}", "corruption": "clean"}} for m in range(size.models)]
    for cell in itertools.product(range(size.models), ROHOI, range(1, 6)):
        tags = {"model": f"m{cell[0]}", "corruption": cell[1], "severity": f"{cell[2]}", "recipe": HOICLI_1.name}
        rows.append(row | {"value": 30.0 - cell[2], "tags": tags})
    epochs = [{"epoch": i, "severity": "clean", "score": 30 + i % 7} for i in range(size.images)]
    for name, lines in (("ratings", rated), ("rows", rows), ("epochs", epochs)):
        (folder / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.growth", description="Growth of time and memory.")
    parser.add_argument("grows", nargs="?", default=",".join(SIZES), help="what grows, with commas between")
    parser.add_argument("--images", type=int, default=12_500, help="of the smallest size")
    parser.add_argument("--only", default="*", help="commands that match this pattern")
    parser.add_argument("--folder", type=Path, default=Path("bench-output"), help="for the inputs")
    options = parser.parse_args()
    print(machine())
    for grows in options.grows.split(","):
        lines = [line for line, known in COMMANDS if grows in known.split() and fnmatch(line, options.only)]
        rows = {line: [re.sub(r" (--gt|--image-list|-o) \S+|[{}]|folder}/", "", line)] for line in lines}
        header = ["seconds / peak MiB"]
        for size in SIZES[grows]:
            size = replace(size, images=size.images * options.images // (250 if size.pictures else 1))
            header.append(f"{size.images if size.pictures else getattr(size, grows):,} {grows}")
            folder = options.folder / header[-1].replace(" ", "_")
            folder.mkdir(parents=True, exist_ok=True)
            say(f"making {header[-1]}")
            apart(make, folder, size)
            found = [str(folder / f"model_{model}.jsonl") for model in range(size.models)]
            for line, row in rows.items():
                paths = {"folder": folder, "gt": folder / "gt.jsonl", "found": found[0], "models": " ".join(found)}
                name, *given = line.format(**paths).split()
                command = (*(PYTHON if name == FLOOR else HOICLI), name, *given)
                if size.classes and name != FLOOR:
                    command += ("--dataset", str(folder / "dataset.json"))
                cost = measure(command)
                row.append(f"{cost.processor:.2f} / {cost.peak:.0f}")
                say(f"  {row[-1]}  {header[-1]}  {row[0]}")
            rmtree(folder)
        print(Table(tuple(header), [tuple(row) for row in rows.values()]).markdown())


if __name__ == "__main__":
    main()
