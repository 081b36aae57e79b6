"""How time and memory grow with the number of images.

    python -m tests.support.growth [--images 1000,10000,100000,1000000] [--triplets 10] [--folder bench-output]

Makes dumps of so many images (a million take 1.3 GB), runs each command on each (three times up to 10,000 images), and
prints a Markdown table. Progress goes to stderr.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from tests.bench.measuring import HOICLI, PYTHON, Table, apart, machine, measure, say

FLOOR = "floor: every line"
COMMANDS = ("eval --protocol hico", "eval --protocol all", "match --protocol hico", "diagnose", "pairstats", "validate")
BLOCK = 10_000
"""Images made at a time; a smaller dump is the beginning of a larger one."""


def make_dump(truth: Path, predictions: Path, images: int, triplets: int) -> None:
    """Ground truth of two people with an object, two triplets each image; `triplets` predictions of shifted boxes."""
    from hoicli.vocabulary.datasets import load

    interactions = load("hico").interactions
    of_object: dict[str, list[str]] = {}
    for verb, name in interactions:
        of_object.setdefault(name, []).append(verb)
    with open(truth, "wb") as truth_file, open(predictions, "wb") as predictions_file:
        for start in range(0, images, BLOCK):
            for annotated, found in _block(start, min(BLOCK, images - start), triplets, of_object):
                truth_file.write(orjson.dumps(annotated) + b"\n")
                predictions_file.write(orjson.dumps(found) + b"\n")


def _block(start: int, count: int, triplets: int, of_object: dict[str, list[str]]) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng([17, start])
    names = list(of_object)
    corners = rng.uniform(0, 300, (BLOCK, 3, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(40, 300, (BLOCK, 3, 2))], axis=2)
    # each person and the object twice: once near, once astray
    shifted = np.repeat(boxes, 2, axis=1) + rng.normal(0, 1, (BLOCK, 6, 4)) * np.tile([5, 40], 3)[:, None]
    shifted[..., 2:] = np.maximum(shifted[..., 2:], shifted[..., :2] + 1)
    choice = rng.integers(0, len(names), BLOCK).tolist()
    first = rng.integers(0, 1000, BLOCK).tolist()
    scores = rng.random((BLOCK, triplets)).tolist()
    rows = zip(boxes.round().tolist(), shifted.round(2).tolist(), choice, first, scores, strict=True)
    made = []
    for image, (real, found, thing, verb, ranks) in enumerate(rows, start=start):
        if image == start + count:
            break
        name = names[thing]
        verbs = of_object[name]
        image_id = f"image_{image:07}"
        people, wide = ("person", "person"), len(verbs)
        annotated = {
            "image_id": image_id,
            "width": 640,
            "height": 640,
            "boxes": real,
            "labels": [*people, name],
            "hois": [{"subject": s, "object": 2, "verb": verbs[(verb + s) % wide]} for s in (0, 1)],
        }
        # eight pairs, then the next verb
        hois = [
            {"subject": i & 3, "object": 4 + (i >> 2 & 1), "verb": verbs[(verb + (i >> 3)) % wide], "score": score}
            for i, score in enumerate(ranks)
        ]
        labels = [*people, *people, name, name]
        made.append((annotated, {"image_id": image_id, "boxes": found, "labels": labels, "hois": hois}))
    return made


def main() -> None:
    """Measure every command on a dump of each size, and print a row a command: seconds and MiB for each size."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.growth", description="Growth of time and memory.")
    parser.add_argument("--folder", type=Path, default=Path("bench-output"), help="for the dumps")
    parser.add_argument("--images", default="1000,10000,100000,1000000", help="sizes, with commas between")
    parser.add_argument("--triplets", type=int, default=10, help="predictions an image")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    sizes = [int(size) for size in options.images.split(",")]
    rows: dict[str, list[str]] = {name: [name] for name in (FLOOR, *COMMANDS)}
    for images in sizes:
        truth, found = (options.folder / f"growth_{images}_{name}.jsonl" for name in ("gt", "predictions"))
        say(f"making {images:,} images")
        apart(make_dump, truth, found, images, options.triplets)
        for name, row in rows.items():
            command: tuple[str, ...] = (*HOICLI, *name.split(), "--gt", str(truth), str(found))
            if name == FLOOR:
                command = (*PYTHON, "-m", "tests.bench.floor", "lines", str(found))
            cost = measure(command, 3 if images <= 10_000 else 1)
            row.append(f"{cost.seconds:.2f} / {cost.peak:.0f}")
            say(f"  {row[-1]}  {images:9,} images  {name}")
    header = ("seconds / peak MiB", *(f"{size:,} images" for size in sizes))
    print(f"{machine()}\n{Table(header, [tuple(row) for row in rows.values()]).markdown()}", end="")


if __name__ == "__main__":
    main()
