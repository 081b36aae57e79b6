"""Open-vocabulary records and what SHOE says of them."""

from __future__ import annotations

import json
from typing import Any

import orjson

from hoicli.arrays.triplets import Triplets, read_triplets
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from tests.support.project import FIXTURES

Record = dict[str, Any]
SHOE = FIXTURES / "shoe"


def as_lines(records: list[Record], file: str = "p.jsonl") -> list[Line]:
    return [Line(file, number, orjson.dumps(record)) for number, record in enumerate(records, start=1)]


def read(records: list[Record], batch: int = 256) -> Triplets:
    return read_triplets(as_lines(records), policy=ErrorPolicy(), batch=batch)


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


# --- the command ----------------------------------------------------------------------------------------------------

FILES = ("--gt", SHOE / "gt.jsonl", "--sim", SHOE / "sim.jsonl")


def rows_of(text: str) -> dict[str, Any]:
    return {row["metric"]: row for row in map(json.loads, text.splitlines())}
