"""Columns, forks and all: what is found in thousands of broken records is what a plain check line by line finds."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from hoicli.io.streams import Line, Stream
from hoicli.validation import stream as stream_room
from hoicli.validation.checks import CHECKS
from hoicli.validation.stream import Checking, validate_images
from hoicli.vocabulary.datasets import load
from tests.support.project import FIXTURES
from tests.validation.twin import Twin

Record = dict[str, Any]
Breaker = Callable[[random.Random, Record], object]
VOCABULARIES = {name: load(name) for name in ("hico", "vcoco", "swig")}


def records(path: str) -> list[Record]:
    return [orjson.loads(line) for line in (FIXTURES / path).read_bytes().splitlines()]


SETS = {
    "hico": (records("gt.jsonl"), records("predictions.jsonl")),
    "vcoco": (records("vcoco/ground_truth.jsonl"), records("vcoco/predictions.jsonl")),
    "swig": (records("swig/gt.jsonl"), records("swig/predictions.jsonl")),
}
OTHER_LINES = [
    b'{"error": "match stopped: full"}\n',
    b"[1]", b'{"image_id":', b"null", b"  ", b'{"image_id": NaN}',
    b'{"metric":"mAP","subset":"full","value":"1"}', b'{"metric":"mAP","subset":"full","value":1.5}',
    b'{"image_id":"a","protocol":"hico-2030","settings":{},"predictions":[],"gt":[]}',
    b'{"image_id":"a","protocol":"hico","predictions":[],"gt":[{"verb":"fly","label":"kate"}]}',
]  # fmt: skip
ANYTHING = [
    None, True, 0, 1, -1, 1.5, 300.0, "", "person", [], {}, [1], [[1, 2]], [["ride", "horse"]], [["ride", "kate"]],
    [True, True], [0.1, 0.2], {"score": 0.1, "object": [0, 0, 1, 1]}, ["whole_image"], ["derived_labels"],
    [{"subject": 0, "object": 1}], [{"subject": 0, "verb": "hold", "role": "obj"}],
]  # fmt: skip
FIELDS = [
    "image_id", "boxes", "labels", "hois", "image_hois", "ambiguous_hois", "caveats", "caveats", "width", "height",
    "scores", "pairs", "annotated", "unstated", "left_out", "metric", "gt", "predictions",
]  # fmt: skip
OF_TRIPLET: dict[str, list[Any]] = {
    "subject": [0, 0, 1, 2, 99, True],
    "object": [0, 1, 2, None, -1, "1"],
    "verb": ["ride", "hold", "fly", "dance", 3, None],
    "score": [0, 1, 1.0, 0.5, -0.5, 1.5, "high", None],
    "role": ["obj", "instr", "", None, "kate", 1, True],
    "verb_score": [0.5, 1, None, "x"],
}


def listed(record: Record, key: str) -> list[Any]:
    values = record.get(key)
    return values if type(values) is list else []


def boxes_of(record: Record) -> list[list[Any]]:
    return [box for box in listed(record, "boxes") if type(box) is list and len(box) == 4]


def triplets_of(record: Record) -> list[Record]:
    return [hoi for hoi in listed(record, "hois") if type(hoi) is dict and hoi]


def a_box(rng: random.Random, record: Record) -> None:
    for box in boxes_of(record)[:: rng.randint(1, 3)]:
        box[rng.randrange(4)] = rng.choice([0, -0.0, 0.5, 1, -9, 5000, 70, box[0]])


def a_box_again(rng: random.Random, record: Record) -> None:
    if boxes := boxes_of(record):
        rng.choice(boxes)[:] = rng.choice(boxes)


def all_boxes(rng: random.Random, record: Record) -> None:
    scale = rng.choice([0.001, 0.5, 2.0])
    for box in boxes_of(record):
        box[:] = rng.choice(
            [[side * scale for side in box], [box[0], box[1], box[2] - box[0], box[3] - box[1]], [int(s) for s in box]]
        )


def a_triplet(rng: random.Random, record: Record) -> None:
    if hois := triplets_of(record):
        field = rng.choice(list(OF_TRIPLET))
        rng.choice(hois)[field] = rng.choice(OF_TRIPLET[field])


def a_triplet_again(rng: random.Random, record: Record) -> None:
    if hois := triplets_of(record):
        record["hois"].append({**rng.choice(hois), **rng.choice([{}, {"subject": 0}, {"object": 1}])})


def a_score(rng: random.Random, record: Record) -> None:
    for hoi in triplets_of(record)[:: rng.randint(1, 3)]:
        hoi["score"] = rng.choice([0, 1, 1.0, -0.0, 0.5, -0.5, 1.5])


def all_scores(rng: random.Random, record: Record) -> None:
    for hoi in triplets_of(record):
        hoi["score"] = 0.5
        if rng.random() < 0.1:
            del hoi["score"]


def a_label(rng: random.Random, record: Record) -> None:
    if labels := listed(record, "labels"):
        labels[rng.randrange(len(labels))] = rng.choice(["dragon", "person", "horse", "kite", None, 5])


def a_field(rng: random.Random, record: Record) -> None:
    record[rng.choice(FIELDS)] = copy.deepcopy(rng.choice(ANYTHING))


def a_size(rng: random.Random, record: Record) -> None:
    record["width"], record["height"] = rng.choice([(640, 480), (640.0, 480), (99, 50), (0, 1)])


def nothing_there(rng: random.Random, record: Record) -> None:
    record.pop(rng.choice(list(record)))


def nothing_found(rng: random.Random, record: Record) -> None:
    record["hois"] = []


MOSTLY_SOUND: list[Breaker] = [a_box, a_box_again, all_boxes, a_triplet_again, a_score, a_size, nothing_found]
BREAKERS: list[Breaker] = [*MOSTLY_SOUND, a_triplet, a_label, all_scores, a_field, nothing_there]


NEXT = {
    name: following
    for vocabulary in VOCABULARIES.values()
    for names in (vocabulary.verbs, vocabulary.objects)
    for name, following in pairwise([*names, names[0]])
}


def y_first(record: Record) -> None:
    record["boxes"] = [[y1, x1, y2, x2] for x1, y1, x2, y2 in record["boxes"]]


def parts(record: Record) -> None:
    record["boxes"] = [[side / 1000 for side in box] for box in record["boxes"]]


def other_objects(record: Record) -> None:
    record["labels"] = [NEXT.get(label, label) for label in record["labels"]]


def other_verbs(record: Record) -> None:
    for hoi in record["hois"]:
        hoi["verb"] = NEXT[hoi["verb"]]


MISREAD = [y_first, parts, other_objects, other_verbs]


def broken(rng: random.Random, whole: Sequence[Record], often: float) -> list[bytes]:
    """The records in another order, `often` broken; some of them twice, with lines of other kinds between."""
    breakers = rng.choice([MOSTLY_SOUND, BREAKERS])
    misread = rng.choice([*MISREAD, *[None] * 16])
    lines = []
    for record in rng.sample(whole, rng.choice([len(whole), rng.randint(0, len(whole))])):
        record = copy.deepcopy(record)
        if misread is not None:
            misread(record)
        while record and rng.random() < often:
            rng.choice(breakers)(rng, record)
        lines += [orjson.dumps(record)] * (2 if rng.random() < often / 10 else 1)
        lines += [rng.choice(OTHER_LINES)] * (rng.random() < often / 10)
    return lines


def pair(seed: int) -> tuple[str | None, list[bytes] | None, list[bytes]]:
    """(dataset, None for an open vocabulary; ground truth or None; lines to check)."""
    rng = random.Random(seed)
    dataset = rng.choice(["hico", "hico", "vcoco", "swig"])
    truth, found = rng.choice([SETS[dataset], SETS[dataset], SETS[dataset][::-1], SETS[dataset][:1] * 2])
    one = broken(rng, truth, rng.choice([0, 0, 0.1, 0.4])) if rng.random() < 0.8 else None
    other = broken(rng, found, rng.choice([0, 0.1, 0.3, 0.6]))
    return rng.choice([dataset] * 8 + [None, rng.choice(list(SETS))]), one, other


def numbered(lines: list[bytes], name: str) -> list[Line]:
    return [Line(name, number, data) for number, data in enumerate(lines, start=1) if not data.isspace()]


def twins(seed: int) -> list[list[Record]]:
    """The rows of the plain check."""
    dataset, truth, lines = pair(seed)
    vocabulary = None if dataset is None else VOCABULARIES[dataset]
    found = [] if truth is None else [Twin(numbered(truth, "gt"), vocabulary, "gt", facts=True)]
    found.append(Twin(numbered(lines, "p"), vocabulary, "p", found[0].images if found else None))
    return [[finding.row() for finding in each.findings] for each in found]


def ours(seed: int, read: Callable[[list[bytes], str], Any]) -> list[list[Record]]:
    dataset, truth, lines = pair(seed)
    vocabulary = None if dataset is None else VOCABULARIES[dataset]
    found: list[Checking] = []
    if truth is not None:
        found.append(validate_images(read(truth, "gt"), vocabulary, "gt", facts=True))
    found.append(validate_images(read(lines, "p"), vocabulary, "p", truth=found[0].facts if found else None))
    assert found[-1].lines == len(numbered(lines, "p"))
    return [[finding.row() for finding in each.findings] for each in found]


@pytest.mark.long
@pytest.mark.parametrize(("batch", "streams"), [(1, 40), (3, 60), (256, 200)])
def test_every_fault_is_found_as_line_by_line(monkeypatch: pytest.MonkeyPatch, batch: int, streams: int) -> None:
    monkeypatch.setattr(stream_room, "BATCH", batch)
    seen = set()
    for seed in range(1000 * batch, 1000 * batch + streams):
        expected = twins(seed)
        assert ours(seed, numbered) == expected, seed
        seen |= {row["check"] for rows in expected for row in rows}
    assert streams < 200 or len(CHECKS.keys() - seen) <= 2, CHECKS.keys() - seen  # so many kinds of faults are rare


@pytest.mark.long
def test_a_file_that_forks_share_is_found_to_have_the_same_faults(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hoicli.io.streams.SHARE", 256)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    merged = []
    independent = stream_room._independent

    def noted(parts: list[Checking]) -> bool:
        merged.append(independent(parts))
        return merged[-1]

    monkeypatch.setattr(stream_room, "_independent", noted)

    def read(lines: list[bytes], name: str) -> Stream:
        Path(name).write_bytes(b"\n".join(lines))
        return Stream([name], name)

    for seed in range(25):
        assert ours(seed, read) == twins(seed), seed
    assert {True, False} <= set(merged)  # both ways
