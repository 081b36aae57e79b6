"""The same records in another order: of their boxes, of their triplets across classes, and of the triplets of a class;
and small worlds full of ties, where such an order would show."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from tests.support.project import Data, Record

ORDERS = ("boxes", "across", "within")
"""boxes: triplets stay as they are, and name the boxes' new places; across: those of one class stay in their order;
within: those of one class change places among themselves."""
PER_BOX = ("boxes", "labels", "scores", "synsets", "annotated")


def class_of(record: Record, hoi: Record) -> tuple[Any, ...]:
    """What makes two triplets of a record one class."""
    label = None if hoi.get("object") is None else record["labels"][hoi["object"]]
    return hoi["verb"], hoi.get("role"), label


def reordered(record: Record, order: str, chance: random.Random) -> Record:
    """The record in another order, one of ORDERS."""
    if order == "boxes":
        places = list(range(len(record["boxes"])))
        chance.shuffle(places)  # the new record's boxes are the old one's of these places
        moved = {old: new for new, old in enumerate(places)} | {None: None}
        lists = {key: [record[key][place] for place in places] for key in PER_BOX if key in record}
        ends = ("subject", "object")
        hois = [{**hoi, **{end: moved[hoi[end]] for end in ends if end in hoi}} for hoi in record["hois"]]
        return {**record, **lists, "hois": hois}
    classes = defaultdict(list)
    for hoi in record["hois"]:
        classes[class_of(record, hoi)].append(hoi)
    slots = [class_of(record, hoi) for hoi in record["hois"]]
    if order == "across":
        chance.shuffle(slots)
    else:
        for members in classes.values():
            chance.shuffle(members)
    return {**record, "hois": [classes[name].pop(0) for name in slots]}


def tied_world(
    seed: int, interactions: tuple[tuple[str, str], ...], images: int = 3, boxes: int = 6, hois: int = 9
) -> Data:
    """(ground truth, predictions) of interactions (verb, object): few places for many boxes, some of them twice and
    others near each other, triplets that repeat, and scores of which many are equal."""
    chance = random.Random(seed)
    labels = ["person", *sorted({name for _, name in interactions})]
    spots = [(0, 0, 40, 40), (0, 0, 40, 44), (4, 0, 44, 40), (0, 4, 40, 44), (8, 0, 48, 40), (100, 0, 140, 40)]

    def record(image: int, *, scored: bool) -> Record:
        named = [*labels, *(chance.choice(labels) for _ in range(boxes - 1)), "person"]
        at = defaultdict(list)
        for place, label in enumerate(named):
            at[label].append(place)
        listed = []
        for _ in range(hois):
            verb, name = chance.choice(interactions)
            hoi = {"subject": chance.choice(at["person"]), "object": chance.choice(at[name]), "verb": verb}
            listed.append(hoi | ({"score": chance.choice([0.25, 0.5, 0.5, 0.75])} if scored else {}))
        placed = [list(map(float, chance.choice(spots))) for _ in named]
        return {"image_id": f"{image}", "width": 200, "height": 100, "boxes": placed, "labels": named, "hois": listed}

    truth, found = ([record(image, scored=scored) for image in range(images)] for scored in (False, True))
    return truth, found
