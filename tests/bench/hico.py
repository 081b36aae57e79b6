"""The page's HICO-DET part: a dump of the test set's size and shape, the same every time, or a real one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from hoicli.vocabulary.datasets import load
from tests.bench import released, updates
from tests.bench.measuring import HOICLI, PYTHON, Options, Process

IMAGES = 9_658
EVALUATOR = "Evaluator, protocol hico: arrays, image by image"
SOURCES = ("instances_test2015.json", "predictions_cdn.json")


def sources(options: Options) -> tuple[Path, Path]:
    """The annotations and the CDN dump that are converted: those asked for, or those that `prepare` makes."""
    made, found = (options.folder / name for name in SOURCES)
    return options.truth or made, options.predictions or found


def records(options: Options) -> tuple[Path, Path]:
    return options.folder / "gt.jsonl", options.folder / "predictions.jsonl"


def arrays(options: Options) -> Path:
    """The predictions as arrays, image by image, for `Evaluator`."""
    return options.folder / "predictions.npz"


def prepare(options: Options) -> None:
    """Make the dump, unless there is a real one, and the arrays it would have been made from."""
    if options.truth is None:
        make_dump(options.folder)
    updates.save(sources(options)[1], arrays(options))


def convert(options: Options) -> None:
    """The dump and its records, for parts of the page that begin with them."""
    prepare(options)
    for source, made in zip(sources(options), records(options), strict=True):
        subprocess.run([*HOICLI, "convert", source, "-o", made], check=True)


def processes(options: Options) -> list[Process]:
    """From the released files to every number about them."""
    truth, found = map(str, records(options))
    annotations, dump = map(str, sources(options))
    floor = "floor: every line of the records"
    rows = [
        Process("floor: the CDN file", (*PYTHON, "-m", "tests.bench.floor", "whole", dump)),
        Process("convert (predictions)", (*HOICLI, "convert", dump, "-o", found), floor="floor: the CDN file"),
        Process("convert (ground truth)", (*HOICLI, "convert", annotations, "-o", truth)),
        Process(floor, (*PYTHON, "-m", "tests.bench.floor", "lines", found)),
        *(
            Process(name, (*HOICLI, *name.split(), "--gt", truth, found), floor=floor)
            for name in ("eval --protocol all", "eval --protocol hico", "eval --protocol qpic",
                         "eval --protocol hico --bootstrap 1000", "match --protocol hico", "diagnose", "pairstats",
                         "validate", "audit")
        ),
        Process(EVALUATOR, (*PYTHON, "-m", "tests.bench.updates", truth, str(arrays(options))),
                ours="eval --protocol hico"),
        *(
            Process(name, (*HOICLI, *name.split(), "--gt", truth, found, found), floor=floor)
            for name in ("compare --name a,b --no-errors", "compare --name a,b")
        ),
        Process("plain-Python loops, one protocol", (*PYTHON, "-m", "tests.bench.loops", "hico", truth, found),
                floor, "eval --protocol hico", once=True),
        Process("plain-Python error types, no oracles", (*PYTHON, "-m", "tests.bench.loops", "types", truth, found),
                floor, "diagnose", once=True),
    ]  # fmt: skip
    if options.peers:
        command = (*PYTHON, "-m", "tests.bench.released", "cdn", str(options.peers), truth, found)
        rows.append(Process(released.CDN, command, floor, "eval --protocol qpic", once=True))
    return rows


def facts(options: Options) -> str:
    truth, found = records(options)
    with found.open("rb") as stream:
        triplets = sum(len(orjson.loads(line)["hois"]) for line in stream)
    with truth.open("rb") as stream:
        images = sum(1 for _ in stream)
    origin = "a made dump" if options.predictions is None else "a real dump"
    size = f"{images:,} images, {triplets:,} triplets, {found.stat().st_size / 1e6:.0f} MB of records"
    return f"{origin}: {size}; an update of `Evaluator` takes {updates.microseconds(truth, arrays(options)):.0f} us"


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
        subjects = upright(np.repeat(people, 2, axis=0) + rng.normal(0, 8, (2 * len(people), 4)))
        things = upright(np.stack([box] * 3) + rng.normal(0, 8, (3, 4)))
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
    for name, content in zip(SOURCES, (truth, predictions), strict=True):
        (folder / name).write_bytes(orjson.dumps(content))


def upright(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Boxes that end where they began, or later: jitter turns small ones inside out, which `eval` refuses."""
    return np.sort(boxes.reshape(-1, 2, 2), axis=1).reshape(-1, 4)
