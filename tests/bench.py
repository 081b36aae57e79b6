"""`make bench`: how long the commands take on a dump of HICO-DET's size, beside reading its bytes.

    python -m tests.bench [--truth instances_test2015.json --predictions cdn.json] [--repeat 3] [--folder DIR]

Without files it makes a dump of the size and shape of HICO-DET's test set (9,658 images, 80 triplets an image on
average), the same one every time. Every figure is the best of `--repeat` whole processes, start-up included; the floor
is a process that does nothing but `orjson.loads` on every line of the same file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import orjson

from hoicli.vocabulary import load

IMAGES = 9_658
FLOOR = "import orjson, sys\nfor line in open(sys.argv[1], 'rb'): orjson.loads(line)"
FLOOR_WHOLE = "import orjson, sys\norjson.loads(open(sys.argv[1], 'rb').read())"
REFERENCE = """
import orjson, sys
from hoicli.vocabulary import load
from tests import reference
truth, found = ([orjson.loads(line) for line in open(path, 'rb')] for path in sys.argv[1:])
reference.evaluate('hico', truth, found, list(load('hico').interactions))
"""

REFERENCE_TYPES = """
import orjson, sys
from hoicli.vocabulary import load
from tests import reference
truth, found = ([orjson.loads(line) for line in open(path, 'rb')] for path in sys.argv[1:])
by_id, interactions = {record['image_id']: record for record in truth}, set(load('hico').interactions)
for record in found:
    reference.error_types(by_id[record['image_id']], record, interactions)
"""


def make_dump(folder: Path) -> None:
    """Ground truth as pocket JSON, predictions as CDN's list: jittered boxes, all pairs, every verb of the object."""
    vocabulary = load("hico")
    objects = list(vocabulary.alphabetical_objects)
    verbs_of = {name: [verb for verb, other in vocabulary.interactions if other == name] for name in objects}
    annotations, names, sizes, predictions = [], [], [], []
    for image in range(IMAGES):
        rng = np.random.default_rng([7, image])
        name = vocabulary.test_images[image] + ".jpg"
        people = np.sort(rng.integers(1, 500, (int(rng.integers(1, 4)), 2, 2)), axis=1).reshape(-1, 4).astype(float)
        thing = objects[int(rng.integers(80))]
        box = np.sort(rng.integers(1, 500, (2, 2)), axis=0).reshape(4).astype(float)
        chosen = [str(verb) for verb in rng.choice(verbs_of[thing], size=min(2, len(verbs_of[thing])), replace=False)]
        pairs = [(person, verb) for person in people.tolist() for verb in chosen]
        annotations.append(
            {
                "boxes_h": [person for person, _ in pairs],
                "boxes_o": [box.tolist()] * len(pairs),
                "hoi": [vocabulary.interaction_ids[verb, thing] for _, verb in pairs],
                "object": [objects.index(thing)] * len(pairs),
                "verb": [vocabulary.verb_ids[verb] for _, verb in pairs],
            }
        )
        names.append(name)
        sizes.append([640, 480])
        subjects = np.repeat(people, 2, axis=0) + rng.normal(0, 8, (2 * len(people), 4))
        things = np.stack([box] * 3) + rng.normal(0, 8, (3, 4))
        labels = [thing, thing, objects[int(rng.integers(80))]]
        hois = [
            {
                "subject_id": subject,
                "object_id": len(subjects) + index,
                "category_id": vocabulary.verb_ids[verb],
                "score": float(rng.random()),
                "action_score": float(rng.random()),
            }
            for subject in range(len(subjects))
            for index, label in enumerate(labels)
            for verb in verbs_of[label]
        ]
        hois.sort(key=lambda hoi: -float(hoi["score"]))
        predictions.append(
            {
                "filename": name,
                "predictions": [{"bbox": row, "category_id": 0} for row in subjects.tolist()]
                + [
                    {"bbox": row, "category_id": vocabulary.object_ids[label]}
                    for row, label in zip(things.tolist(), labels, strict=True)
                ],
                "hoi_prediction": hois[:100],
            }
        )
    truth = {
        "annotation": annotations,
        "filenames": names,
        "size": sizes,
        "objects": objects,
        "verbs": list(vocabulary.verbs),
        "correspondence": [],
    }
    for path, content in zip(dump_paths(folder), (truth, predictions), strict=True):
        path.write_bytes(orjson.dumps(content))


def dump_paths(folder: Path) -> tuple[Path, Path]:
    """Where `make_dump` puts the ground truth and the predictions."""
    return folder / "instances_test2015.json", folder / "predictions_cdn.json"


def measure(command: Sequence[object], repeat: int) -> tuple[float, float]:
    """(seconds, peak MiB) of a whole process, the best of `repeat`; where it forks, the peak of the first process."""
    best, peak = float("inf"), 0.0
    arguments = [str(part) for part in command]
    for _ in range(repeat):
        start = time.perf_counter()
        process = os.posix_spawn(
            arguments[0],
            arguments,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
        _, status, usage = os.wait4(process, 0)
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit(f"{' '.join(arguments)} failed")
        best, peak = min(best, seconds), max(peak, usage.ru_maxrss / 1024)
    return best, peak


def main() -> None:
    """Print the table of the README."""
    parser = argparse.ArgumentParser(description="Measure hoicli beside reading the bytes.")
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--predictions", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("bench-output"))
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    if options.truth is None or options.predictions is None:
        # in a process of its own: a large parent would show in the peak memory of its children
        code = "import sys; from pathlib import Path; from tests.bench import make_dump; make_dump(Path(sys.argv[1]))"
        subprocess.run([sys.executable, "-c", code, str(options.folder)], check=True)
        options.truth, options.predictions = dump_paths(options.folder)
    truth, found = options.folder / "gt.jsonl", options.folder / "predictions.jsonl"
    python = sys.executable
    hoicli = [python, "-m", "hoicli"]
    rows: list[tuple[str, float, float, float | None]] = []

    def row(name: str, command: Sequence[object], floor: float | None = None, repeat: int = options.repeat) -> float:
        seconds, peak = measure(command, repeat)
        rows.append((name, seconds, peak, None if floor is None else seconds / floor))
        return seconds

    source = row("floor: orjson.loads of the CDN file", [python, "-c", FLOOR_WHOLE, options.predictions])
    row("convert (CDN JSON to records)", [*hoicli, "convert", options.predictions, "-o", found], source)
    row("convert (ground truth)", [*hoicli, "convert", options.truth, "-o", truth])
    floor = row("floor: orjson.loads of every line of the records", [python, "-c", FLOOR, found])
    row("eval --protocol all", [*hoicli, "eval", "--gt", truth, found], floor)
    row("eval --protocol hico", [*hoicli, "eval", "--gt", truth, "--protocol", "hico", found], floor)
    row("match --protocol hico", [*hoicli, "match", "--gt", truth, "--protocol", "hico", found], floor)
    row("diagnose", [*hoicli, "diagnose", "--gt", truth, found], floor)
    row("pairstats", [*hoicli, "pairstats", "--gt", truth, found], floor)
    row("validate", [*hoicli, "validate", "--gt", truth, found], floor)
    wup = [*hoicli, "shoe-sim", "--backend", "wordnet:wup"]
    row("shoe-sim --dataset hico (600 classes, cold)", [*wup, "--dataset", "hico"])
    similarities = options.folder / "similarities.jsonl"
    row("shoe-sim --gt (wordnet:wup)", [*wup, "--gt", truth, found, "-o", similarities], floor)
    row("shoe-eval", [*hoicli, "shoe-eval", "--gt", truth, "--sim", similarities, found], floor)
    row("plain-Python loops (hico only)", [python, "-c", REFERENCE, truth, found], floor, repeat=1)
    row("plain-Python error types (one pass)", [python, "-c", REFERENCE_TYPES, truth, found], floor, repeat=1)

    triplets = sum(len(orjson.loads(line)["hois"]) for line in found.open("rb"))
    size = found.stat().st_size / 1e6
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, orjson {orjson.__version__}"
    print(f"{triplets:,} triplets, {size:.0f} MB of records; {os.cpu_count()} processors, {versions}")
    print(f"best of {options.repeat}\n")
    print("| whole process | seconds | times its floor | peak MiB |\n| --- | ---: | ---: | ---: |")
    for name, seconds, peak, ratio in rows:
        print(f"| {name} | {seconds:.2f} | {'' if ratio is None else f'{ratio:.1f}'} | {peak:.0f} |")
    (options.folder / "bench.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
