"""However a stream is read, as columns of any number of lines, line by line or in forks, the same faults are found."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from hoicli.evaluation.evaluating import gather_in_parallel
from hoicli.io.streams import Line, Stream
from hoicli.validation import stream as stream_room
from hoicli.validation import truth_evidence
from hoicli.validation.findings import CHECKS
from hoicli.validation.stream import Checking, validate_images
from hoicli.vocabulary.datasets import load
from tests.support.kernel import share_out
from tests.support.project import FIXTURES, GT, PREDICTIONS, MonkeyPatch, Record, parsed
from tests.support.strategies import parts_of

VOCABULARIES = {name: load(name) for name in ("hico", "vcoco", "swig")}
FILES = {
    "hico": (GT, PREDICTIONS),
    "vcoco": (FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl"),
    "swig": (FIXTURES / "swig/gt.jsonl", FIXTURES / "swig/predictions.jsonl"),
}
SETS = {name: [parsed(path.read_text()) for path in paths] for name, paths in FILES.items()}
OTHER_LINES = [
    b'{"error": "match stopped: full"}\n',
    b"[1]", b'{"image_id":', b"null", b"  ", b'{"image_id": NaN}',
    b'{"metric":"mAP","subset":"full","value":"1"}', b'{"metric":"mAP","subset":"full","value":1.5}',
    b'{"image_id":"a","protocol":"hico-2030","settings":{},"predictions":[],"gt":[]}',
    b'{"image_id":"a","protocol":"hico","predictions":[],"gt":[{"verb":"fly","label":"kate"}]}',
]  # fmt: skip
NUMBERS = [0, 1, 1.0, -0.0, 0.5, -0.5, 1.5, -9, 70, 5000]
WORDS = ["ride", "hold", "fly", "dance", "dragon", "person", "horse", "obj", "instr"]
ANYTHING = [
    *NUMBERS, *WORDS, None, True, "", [], {}, [[1, 2]], [["ride", "horse"]], [["ride", "kate"]], [0.1, 0.2],
    {"score": 0.1, "object": [0, 0, 1, 1]}, ["whole_image"], [{"subject": 0, "verb": "hold", "role": "obj"}],
]  # fmt: skip
FIELDS = ["image_hois", "ambiguous_hois", "caveats", "width", "height", "scores", "pairs", "annotated", "unstated",
          "left_out", "metric", "gt", "verb_score", "role"]  # fmt: skip
NEXT = {
    name: following
    for vocabulary in VOCABULARIES.values()
    for names in (vocabulary.verbs, vocabulary.objects)
    for name, following in pairwise([*names, names[0]])
}


@pytest.fixture(autouse=True)
def few_images_are_enough(monkeypatch: MonkeyPatch) -> None:
    """Lets the checks that need many images speak of the few here."""
    monkeypatch.setattr(stream_room, "MANY_IMAGES", 2)
    monkeypatch.setattr(truth_evidence, "ENOUGH_COPIES", 1)
    monkeypatch.setattr(truth_evidence, "ENOUGH_RANKED", 2)


def damage(rng: random.Random, record: Record, *, mostly_sound: bool) -> None:
    """Another value somewhere, most often one of its kind; or something twice, gone, or more than there was."""
    node, key = rng.choice(list(parts_of(record)))
    value, kind = node[key], rng.random()
    if isinstance(value, list | dict) and value:
        if kind < 0.4 and isinstance(value, list):
            value.append(copy.deepcopy(rng.choice(value)))
        elif kind < 0.6 and not mostly_sound:
            value.pop(rng.choice(list(value)) if isinstance(value, dict) else -1)
        elif not mostly_sound:
            record[rng.choice(FIELDS)] = copy.deepcopy(rng.choice(ANYTHING))
        elif isinstance(node, list) and len(value) == 4:  # a box
            node[key] = copy.deepcopy(rng.choice(node))
    elif kind < 0.8 or mostly_sound:
        plain = type(value) in (int, float) and key not in ("subject", "object", "image_id")
        node[key] = rng.choice(NUMBERS) if plain else value if mostly_sound else rng.choice(WORDS)
    else:
        node[key] = copy.deepcopy(rng.choice(ANYTHING))


def misread(way: str, record: Record) -> None:
    """A whole file read in the wrong way."""
    if way == "y first":
        record["boxes"] = [[y1, x1, y2, x2] for x1, y1, x2, y2 in record["boxes"]]
    elif way in ("1000", "2"):
        record["boxes"] = [[side / int(way) for side in box] for box in record["boxes"]]
    elif way == "xywh":
        record["boxes"] = [[x1, y1, x2 - x1, y2 - y1] for x1, y1, x2, y2 in record["boxes"]]
    elif way == "objects":
        record["labels"] = [NEXT.get(label, label) for label in record["labels"]]
    elif way in ("verbs", "scores"):
        for hoi in record["hois"]:
            hoi |= {"verb": NEXT[hoi["verb"]]} if way == "verbs" else {"score": 0.5}
    elif way == "itself":  # ground truth that claims to be predictions
        for number, hoi in enumerate(record["hois"], start=1):
            hoi["score"] = 1 / number


WAYS = ["y first", "1000", "2", "xywh", "objects", "verbs", "scores", "itself"]


def broken(rng: random.Random, whole: list[Record], often: float) -> list[bytes]:
    """The records in another order, `often` broken; with lines of other kinds between, and at times the first again."""
    way, mostly_sound, lines = rng.choice([*WAYS, *[""] * 14]), rng.random() < 0.5, []
    for record in copy.deepcopy(rng.sample(whole, rng.choice([len(whole), rng.randint(0, len(whole))]))):
        misread(way, record)
        while record and rng.random() < often:
            damage(rng, record, mostly_sound=mostly_sound)
        lines.append(orjson.dumps(record))
        lines += [rng.choice(OTHER_LINES)] * (rng.random() < often / 10)
    return lines + lines[:1] * (rng.random() < often)


def numbered(lines: list[bytes], name: str) -> Stream:
    held = [Line(name, number, data) for number, data in enumerate(lines, start=1) if not data.isspace()]
    return Stream([name], name, lines_held=held)


def faults(seed: int, read: Callable[[list[bytes], str], Stream] = numbered) -> list[list[Record]]:
    """The rows of a stream, and of a ground truth beside it or none, of a dataset, another one or any labels."""
    rng = random.Random(seed)
    dataset = rng.choice(["hico", "hico", "vcoco", "swig"])
    truth, found = rng.choice([SETS[dataset], SETS[dataset], SETS[dataset][::-1], SETS[dataset][:1] * 2])
    one = broken(rng, truth, rng.choice([0, 0, 0.1, 0.4])) if rng.random() < 0.8 else None
    other = broken(rng, found, rng.choice([0, 0.1, 0.3, 0.6]))
    named = rng.choice([dataset] * 8 + [None, rng.choice(list(SETS))])
    vocabulary = None if named is None else VOCABULARIES[named]
    checked: list[Checking] = []
    if one is not None:
        checked.append(validate_images(read(one, "gt"), vocabulary, facts=True))
    checked.append(validate_images(read(other, "p"), vocabulary, truth=checked[0].facts if checked else None))
    assert checked[-1].lines == len(list(numbered(other, "p")))
    return [[finding.row() for finding in each.findings] for each in checked]


def line_by_line(seed: int) -> list[list[Record]]:
    """As `faults`, where the columns are refused and a batch is one line: each record by the careful check."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_room, "attempt", lambda _build, _lines: None)
        patch.setattr(stream_room, "BATCH", 1)
        return faults(seed)


@pytest.mark.long
@pytest.mark.parametrize(("batch", "streams"), [(1, 40), (3, 60), (256, 200)])
def test_every_fault_is_found_as_line_by_line(monkeypatch: MonkeyPatch, batch: int, streams: int) -> None:
    monkeypatch.setattr(stream_room, "BATCH", batch)
    seen = set()
    for seed in range(1000 * batch, 1000 * batch + streams):
        expected = line_by_line(seed)
        assert faults(seed) == expected, seed
        seen |= {row["check"] for rows in expected for row in rows}
    assert streams < 200 or len(CHECKS.keys() - seen) <= 2, CHECKS.keys() - seen  # so many kinds of faults are rare


@pytest.mark.long
def test_a_file_that_forks_share_is_found_to_have_the_same_faults(monkeypatch: MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    share_out(monkeypatch)
    merged: set[bool] = set()

    def noted(*arguments: Any, **options: Any) -> list[Checking]:
        parts: list[Checking] = gather_in_parallel(*arguments, **options)
        merged.add(len(parts) > 1)
        return parts

    monkeypatch.setattr(stream_room, "gather_in_parallel", noted)

    def read(lines: list[bytes], name: str) -> Stream:
        Path(name).write_bytes(b"\n".join(lines))
        return Stream([name], name)

    for seed in range(25):
        assert faults(seed, read) == line_by_line(seed), seed
    assert merged == {True, False}  # both ways
