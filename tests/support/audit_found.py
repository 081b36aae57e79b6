"""What does `hoicli audit` find of errors that are known? They are made in the annotations of invented images.

    python -m tests.support.audit_found [--images 300] [--errors 25] [--rounds 10]

Images and detectors are made as those of fixtures/sample: about all its classes, and about the 30 most common ones and
what goes with them, as a small data set of one's own is. Annotated is what is done in an image, without a fault; then
in so many images each a verb is wrong, an object has another label, a box is drawn twice (its edges off by 3 % of its
sides), or a triplet is missing. A candidate that is of none of these errors is a false alarm. Printed are means over
rounds of other errors.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import sys
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.validation.candidates import Rules
from hoicli.validation.ground_truth_audit import CONTRADICTED, DUPLICATE, MISSING, Audit
from tests.support.kernel import Given, ground_truth, lines
from tests.support.project import FIXTURES, Record

sys.path.append(str(FIXTURES / "sample"))
scenes, detectors = (importlib.import_module(name) for name in ("scenes", "detectors"))
THIRD = detectors.Detector("third", sees=1.5, sees_rare=1.3, prior=0.4, prior_rare=0.4, off=0.8)
ERRORS = ("wrong verb", "wrong object", "box twice", "missing triplet")
SHOWN = (
    *((CONTRADICTED, what) for what in ("wrong verb", "wrong object", "false")),
    *((MISSING, what) for what in ("wrong verb", "wrong object", "missing triplet", "false")),
)
DUPLICATES = ((DUPLICATE, "box twice"), (DUPLICATE, "false"))
COMMON = 30


class World(NamedTuple):
    """Records of images whose annotations have no fault, and of three models' predictions for them."""

    truth: list[Record]
    models: list[list[Record]]


def world(images: int, common: int | None) -> World:
    made = [scene for scene, _ in scenes.scenes()[:images]]
    if common:
        classes, made = sorted(scenes.FREQUENCY, key=scenes.FREQUENCY.__getitem__)[-common:], []
        for number in range(images):
            random = Random(f"common {number}")
            pair = random.choice(classes)
            scene = scenes.Scene(f"common_{number}", scenes.THINGS[pair[1]].place, *random.choice(scenes.SIZES))
            scenes.acted(random, scene, pair)
            scenes.bystanders(random, scene)
            made.append(scene)
    truth = [
        {"image_id": scene.name, "boxes": [list(map(round, box)) for box in scene.boxes], "labels": list(scene.labels),
         "hois": [{"subject": s, "object": o, "verb": verb} for s, o, verb in dict.fromkeys(scene.done)]}
        for scene in made
    ]  # fmt: skip
    models = (detectors.BASELINE, detectors.OURS, THIRD)
    return World(truth, [[detectors.predicted(scene, model) for scene in made] for model in models])


class Error(NamedTuple):
    """A kind; the places of both boxes; the classes that the pair had before and has wrongly now."""

    kind: str
    boxes: list[int]
    gone: set[tuple[str, str]]
    new: set[tuple[str, str]]


NONE = Error("", [], set(), set())


def classes_of(record: Record, boxes: list[int]) -> set[tuple[str, str]]:
    hois = [hoi for hoi in record["hois"] if [hoi["subject"], hoi["object"]] == boxes]
    return {(hoi["verb"], record["labels"][boxes[1]]) for hoi in hois}


def spoilt(truth: Sequence[Record], errors: int, seed: int) -> tuple[list[Record], dict[str, Error]]:
    """The annotations with so many errors of each kind, one an image, and the error of each such image."""
    random, made, known = Random(seed), copy.deepcopy(list(truth)), {}
    left = dict.fromkeys(ERRORS, errors)
    for record in random.sample(made, len(made)):
        hoi = random.choice(record["hois"])
        boxes, label = [hoi["subject"], hoi["object"]], record["labels"][hoi["object"]]
        before = classes_of(record, boxes)
        verbs = {each["verb"] for each in record["hois"] if each["object"] == boxes[1]}
        others = [verb for verb in scenes.VERBS[label] if verb not in {*verbs, "no_interaction"}]
        labels = [name for name, may in scenes.VERBS.items() if label not in (name, "person") and verbs <= set(may)]
        fits = zip(ERRORS, (others, labels, True, True), strict=True)
        possible = [kind for kind, fit in fits if left[kind] and fit and hoi["verb"] != "no_interaction"]
        if not possible:
            continue
        kind = random.choice(possible)
        left[kind] -= 1
        if kind == "wrong verb":
            hoi["verb"] = random.choice(others)
        elif kind == "wrong object":
            record["labels"][boxes[1]] = random.choice(labels)
        elif kind == "missing triplet":
            record["hois"].remove(hoi)
        else:
            box = record["boxes"][boxes[1]]
            sides = (box[2] - box[0], box[3] - box[1]) * 2
            record["boxes"].append([at + random.gauss(0, 0.03) * side for at, side in zip(box, sides, strict=True)])
            record["labels"].append(label)
            boxes = [boxes[1], len(record["boxes"]) - 1]
            record["hois"].append({**hoi, "object": boxes[1]})
            before = classes_of(record, boxes)
        after = classes_of(record, boxes)
        known[record["image_id"]] = Error(kind, boxes, before - after, after - before)
    return made, known


def found(world: World, rules: Rules, models: int, errors: int, seed: int) -> Counter[tuple[str, str]]:
    """By the kind of candidate: how many errors of each kind it finds, and how many candidates are "false"."""
    truth, known = spoilt(world.truth, errors, seed)
    streams = [(str(number), Given(lines(world.models[number]))) for number in range(models)]
    made = Audit(ground_truth(truth), PROTOCOLS["hico"], rules, streams)
    hits, counts = set(), Counter[tuple[str, str]]()
    for row in made.candidates(None):
        if row["metric"] == "candidate":
            kind, error = row["kind"], known.get(row["image_id"], NONE)
            if kind == DUPLICATE:
                right = error.kind == "box twice" and row["boxes"] == error.boxes
            else:
                right = (row["verb"], row["object"]) in (error.new if kind == CONTRADICTED else error.gone)
                right = right and row["boxes"][0] == error.boxes[0]
            if right:
                hits.add((kind, error.kind, row["image_id"]))
            else:
                counts[kind, "false"] += 1
    counts.update((kind, error) for kind, error, _ in hits)
    return counts


def means(world: World, rules: Rules, models: int, options: argparse.Namespace) -> dict[tuple[str, str], str]:
    every = [found(world, rules, models, options.errors, seed) for seed in range(options.rounds)]
    return {key: f"{sum(of[key] for of in every) / len(every):.0f}" for key in (*SHOWN, *DUPLICATES)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.audit_found")
    for name, default in (("images", 300), ("errors", 25), ("rounds", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    usual, worlds = Rules().sure, {}
    for made in (world(options.images, COMMON), world(options.images, None)):
        worlds[len({(hoi["verb"], each["labels"][hoi["object"]]) for each in made.truth for hoi in each["hois"]})] = (
            made
        )
    print("| classes | models | `--votes` | `--sure` |", *(f"{kind}: {what} |" for kind, what in SHOWN))
    print(f"| --- |{' ---: |' * 10}")
    for classes, made in worlds.items():
        for models in (1, 2, 3):
            for votes, sure in [*((votes, usual) for votes in range(1, models + 1)), (1, usual / 2)]:
                of = means(made, Rules(votes=votes, sure=sure), models, options)
                mark = " (default)" if (votes, sure) == (Rules().set_votes(models).votes, usual) else ""
                print(f"| {classes} | {models} | {votes}{mark} | {sure:g} |", *(f"{of[key]} |" for key in SHOWN))
    print("\n| classes | `--same` | box twice | false |\n| --- | ---: | ---: | ---: |")
    for classes, made in worlds.items():
        for same in (0.6, 0.7, 0.8, 0.9):
            of = means(made, Rules(same=same), 0, options)
            print(f"| {classes} | {same} |", *(f"{of[key]} |" for key in DUPLICATES))


if __name__ == "__main__":
    main()
