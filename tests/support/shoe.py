"""Open-vocabulary records and what SHOE says of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hoicli.records.intake import ErrorPolicy
from hoicli.records.triplets import Triplets, merge, read_triplets
from hoicli.shoe.likenesses import classes_of, likenesses, normalise
from hoicli.shoe.scores import Scores, scores_of
from hoicli.shoe.settings import ShoeOptions
from hoicli.shoe.similarity_table import SimilarityTable
from hoicli.shoe.triplet_matching import UNIT, Matching, Shoe
from tests.support.kernel import lines
from tests.support.project import SHOE, Data, Record


def read(records: list[Record]) -> Triplets:
    return merge(read_triplets(lines(records), policy=ErrorPolicy()))


HUMAN, THING = [0, 0, 10, 10], [20, 0, 30, 10]
Hoi = tuple[Any, ...]


def image(*hois: Hoi, image_id: str = "a", **more: Any) -> Record:
    """(verb, object, score, its box) triplets, each with a box of its own; a score of None is left out."""
    record: Record = {"image_id": image_id, "boxes": [HUMAN], "labels": ["person"], "hois": []}
    for verb, label, *rest in hois:
        score, box, synset = (rest[at] if len(rest) > at else None for at in range(3))
        hoi: Record = {"subject": 0, "object": None, "verb": verb}
        if label is not None:
            hoi["object"] = len(record["boxes"])
            record["boxes"].append(box or THING)
            record["labels"].append(label)
        if score is not None:
            hoi["score"] = score
        if synset is not None:
            hoi["verb_synset"] = synset
        record["hois"].append(hoi)
    return {**record, **more}


AWAY = [50, 0, 60, 10]
"""A box that meets neither of them."""

SENSES = {"clean": ["clean.v.01", "clean.v.02"], "blob": [], "no_interaction": [], "set": ["set.n.01", "train.n.01"]}
SIMILAR = {
    ("pet.v.01", "touch.v.01"): 0.55, ("pet.v.01", "feed.v.01"): 0.2, ("ride.v.01", "sit_on.v.01"): 0.4,
    ("ride.v.01", "hold.v.01"): 0.1, ("sit_on.v.01", "hold.v.01"): 0.1, ("wash.v.01", "clean.v.01"): 0.1,
    ("wash.v.01", "clean.v.02"): 0.7, ("train.n.01", "bus.n.01"): 0.3, ("giraffe.n.01", "zebra.n.01"): 0.7,
}  # fmt: skip


def candidates(label: str, pos: str) -> list[str]:
    return [label] if "." in label else SENSES.get(label, [f"{label}.{pos}.01"])


def curated(verb: str, name: str | None) -> tuple[str | None, str | None]:
    verb, name = normalise(verb), name and normalise(name)
    return (None if verb == "no_interaction" else f"{verb}.v.01", f"{name}.n.01" if name else None)


def table_of(similar: dict[tuple[str, str], float]) -> SimilarityTable:
    rows = [{"pos": a.split(".")[1], "a": a, "b": b, "scores": {}, "similarity": s} for (a, b), s in similar.items()]
    return SimilarityTable.read(lines(rows), ErrorPolicy())


def shoe_of(
    truth: list[Record],
    predictions: list[Record],
    similar: dict[tuple[str, str], float] = SIMILAR,
    *,
    senses: Callable[[str, str], list[str]] = candidates,
    dataset: list[tuple[str, str]] | None = None,
    **options: Any,
) -> Shoe:
    truths, found = read(truth), read(predictions)
    asked = ShoeOptions(**options)
    classes = classes_of(truths, curated, senses, dataset)
    alike = likenesses(truths, found, classes, senses)
    for likeness in alike:
        likeness.rate(table_of(similar))
    return Shoe(truths, found, classes, alike, asked)


def scored(truth: list[Record], predictions: list[Record], **options: Any) -> Scores:
    shoe = shoe_of(truth, predictions, **options)
    return scores_of(shoe, shoe.match())


def pairs(shoe: Shoe, matching: Matching | None = None) -> list[tuple[int, float] | None]:
    """(prediction, similarity) of each ground truth."""
    matching = matching or shoe.match()
    rows = matching.prediction_of.tolist()
    return [
        None if row < 0 else (row, int(shoe.similarities(np.array([at]), np.array([row]))[0]) / UNIT)
        for at, row in enumerate(rows)
    ]


VERBS = ("pet", "touch", "Wash", "clean", "blob", "no_interaction")
LABELS = ("train", "bus", "set", "Sports Ball", "sports_ball", "blob")
RANDOM_SIMILAR = st.dictionaries(
    st.sampled_from(
        [(f"{a}.v.01", f"{b}.v.0{n}") for a, b, n in [("pet", "touch", 1), ("pet", "clean", 2), ("wash", "clean", 1)]]
        + [("wash.v.01", "pet.v.01"), ("train.n.01", "bus.n.01"), ("sports_ball.n.01", "set.n.01")]
    ),
    st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]),
)


@st.composite
def records(draw: st.DrawFn, image_id: str, *, scored: bool) -> Record:
    count = draw(st.integers(1, 3))
    record: Record = {"image_id": image_id, "boxes": [], "labels": [], "hois": []}
    for _ in range(count):
        x, y = draw(st.integers(0, 3)) * 5, draw(st.integers(0, 1)) * 5
        record["boxes"].append([x, y, x + draw(st.sampled_from([5, 10])), y + draw(st.sampled_from([0, 5, 10]))])
        record["labels"].append(draw(st.sampled_from(LABELS)))
    for _ in range(draw(st.integers(0, 5))):
        hoi: Record = {
            "subject": draw(st.integers(0, count - 1)),
            "object": draw(st.one_of(st.none(), st.integers(0, count - 1), st.integers(0, count - 1))),
            "verb": draw(st.sampled_from(VERBS)),
        }
        if scored:
            hoi["score"] = draw(st.one_of(st.sampled_from([0.0, 0.2, 0.5, 0.9]), st.floats(0, 1)))
            if draw(st.integers(0, 4)) == 0:
                hoi["verb_synset"] = draw(st.sampled_from(["pet.v.01", "clean.v.02"]))
        record["hois"].append(hoi)
    return record


@st.composite
def datasets(draw: st.DrawFn) -> Data:
    ids = [f"image_{number}" for number in range(draw(st.integers(1, 4)))]
    truth = [draw(records(image_id, scored=False)) for image_id in ids]
    return truth, [draw(records(image_id, scored=True)) for image_id in ids if draw(st.integers(0, 4)) > 0]


FILES = ("--gt", SHOE / "gt.jsonl", "--sim", SHOE / "sim.jsonl")


def rows_of(text: str) -> dict[str, Any]:
    return {row["metric"]: row for row in map(json.loads, text.splitlines())}
