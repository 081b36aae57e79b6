"""One line, one image: the same bytes come out of lines that are shuffled, in shards, gzipped and piped, from every
command that reads streams of images, on every dataset."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hoicli.vocabulary import datasets
from tests.support.project import EIGHT, FIXTURES, GT, PREDICTIONS, Hoicli, MonkeyPatch, saved

OWN = FIXTURES / "own/site.json"
DATASETS = {
    "hico": (GT, PREDICTIONS, ()),
    "vcoco": (FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl", ("--dataset", "vcoco")),
    "swig": (FIXTURES / "swig/gt.jsonl", FIXTURES / "swig/predictions.jsonl", ("--dataset", "swig")),
    "own": (FIXTURES / "own/gt.jsonl", FIXTURES / "own/predictions.jsonl", ("--dataset", str(OWN))),
}
"""Name -> (ground truth, predictions, options)."""
SHIPPED = tuple(known for known in datasets.DATASETS if known not in DATASETS)
"""The datasets without fixtures: their records are made of their names (`made_of`)."""

SIM = str(FIXTURES / "shoe/sim.jsonl")


@dataclass(frozen=True)
class Call:
    """A command that reads images: `words` behind its name, `last` behind its files.

    gt: it takes --gt; labels: it takes --dataset; one: several files are one stream, else each is a model; models: how
    many it compares; truth: it reads the ground truth in place of predictions; alone: its lines come in the order of
    its input, one (or some) for an image; folder: it writes one; datasets: of which it has something to say; apart:
    what names the files and their lines, a pattern.
    """

    words: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    gt: bool = True
    labels: bool = True
    one: bool = True
    models: int = 1
    truth: bool = False
    alone: bool = False
    folder: bool = False
    datasets: tuple[str, ...] = tuple(DATASETS)
    apart: str = "^$"


CALLS = {
    "convert": Call(gt=False, alone=True),
    "match": Call(alone=True),
    "eval": Call(("--per-class",)),
    "pairstats": Call(one=False),
    "recall": Call(("--per-class",), datasets=("hico", "swig", "own")),
    "diagnose": Call(("--per-class",), one=False),
    "curves": Call(one=False),
    "confusion": Call(one=False),
    "explore": Call(one=False, folder=True),
    "audit": Call(("--same", "0.3", "--sure", "0"), one=False),
    "show": Call(("--images", str(EIGHT / "images"), "--size", "64"), one=False, folder=True),
    "compare": Call(("--bootstrap", "5"), one=False, models=2),
    "claim": Call(("--top", "all"), last=("76.2",)),
    "corrupt": Call(("--corruption", "jpeg", "--severity", "1", "--jobs", "1", "--images", str(EIGHT / "images")),
                    gt=False, labels=False, truth=True, alone=True, folder=True, datasets=("hico",)),
    "mask": Call(gt=False, labels=False, truth=True, alone=True),
    "prompts": Call(gt=False, labels=False, truth=True, alone=True, datasets=("hico", "swig", "own")),
    "shoe-sim": Call(("--backend", "wordnet:path"), datasets=("hico", "swig", "own")),
    "shoe-eval": Call(("--allow-missing", "--sim", SIM), datasets=("hico", "swig", "own")),
    "validate": Call(apart=r'"example":"([^"\\]|\\.)*"'),
}  # fmt: skip
EVERYWHERE = {"match", "eval", "pairstats", "diagnose", "validate"}
"""The commands that are held to it on the datasets without fixtures, too."""
NO_IMAGES = {
    "table", "robust", "curriculum",  # result rows
    "agree",  # ratings
    "vlm-eval",  # answers to questions
    "data", "vocab", "doctor",
}  # fmt: skip

CASES = [
    pytest.param(
        name, dataset, id=f"{name}-{dataset}", marks=pytest.mark.long if dataset in SHIPPED or name == "explore" else ()
    )
    for name, call in CALLS.items()
    for dataset in (*call.datasets, *(SHIPPED if name in EVERYWHERE else ()))
]


def made_of(dataset: str, folder: Path) -> tuple[Path, Path]:
    """(ground truth, predictions) of six images with a dataset's own names; predictions are near or far."""
    known = datasets.load(dataset)
    chance = random.Random(dataset)
    truth, found = [], []
    for number in range(6):
        pairs = chance.sample(known.interactions, 4)
        boxes = [sorted(chance.sample(range(200), 2)) for _ in range(2 * len(pairs) + 2)]
        corners = [[x1, y1, x2, y2] for (x1, x2), (y1, y2) in zip(boxes[::2], boxes[1::2], strict=True)]
        hois = [{"subject": 0, "object": row, "verb": verb} for row, (verb, _) in enumerate(pairs, start=1)]
        record = {"image_id": f"{number}.jpg", "width": 220, "height": 220, "boxes": corners,
                  "labels": ["person", *(name for _, name in pairs)], "hois": hois}  # fmt: skip
        moved = ([value + chance.choice([0, 1, 60]) for value in box] for box in corners)
        near = [[min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)] for x1, y1, x2, y2 in moved]
        guessed = [{**hoi, "score": chance.choice([0.25, 0.5, 0.75])} for hoi in hois for _ in range(2)]
        truth.append(record)
        found.append({**record, "boxes": near, "hois": guessed})
    for name, records in (("truth", truth), ("found", found)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder / "truth.jsonl", folder / "found.jsonl"


def second(lines: list[bytes]) -> list[bytes]:
    """Another model's predictions: what the first is sure of, it doubts."""
    records = [json.loads(line) for line in lines]
    for record in records:
        for hoi in record["hois"]:
            hoi["score"] = 1 - min(1, max(0, hoi["score"] or 0))
    return [json.dumps(record).encode() + b"\n" for record in records]


def result(call: Call, folder: Path, out: str) -> dict[str, bytes]:
    """What came out: the text, and the files of the folder; of lines that stand alone the order does not count."""
    lines = re.sub(call.apart, "", out, flags=re.MULTILINE).encode().splitlines(keepends=True)
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {**files, "": b"".join(sorted(lines) if call.alone else lines)}


@pytest.mark.parametrize(("name", "dataset"), CASES)
def test_lines_come_any_way(hoicli: Hoicli, tmp_path: Path, monkeypatch: MonkeyPatch, name: str, dataset: str) -> None:
    """The lines of each stream are shuffled and shared out: to two files, one of them gzipped, and to a pipe where a
    command reads them as one; else to a gzipped file, and to a pipe."""
    call = CALLS[name]
    if dataset in DATASETS:
        gt, predictions, options = DATASETS[dataset]
    else:
        (tmp_path / "made").mkdir()
        (gt, predictions), options = made_of(dataset, tmp_path / "made"), ("--dataset", dataset)
    chance = random.Random(f"{name} {dataset}")
    truth = gt.read_bytes().splitlines(keepends=True)
    streams = [truth if call.truth else predictions.read_bytes().splitlines(keepends=True)]
    streams += [second(streams[0]) for _ in range(call.models - 1)]

    def written(path: Path, lines: list[bytes]) -> Path:
        data = b"".join(lines)
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    def piped(lines: list[bytes]) -> str:
        reading, writing = os.pipe()
        data = b"".join(lines)
        assert len(data) < 1 << 16  # what a pipe takes
        os.write(writing, data)
        os.close(writing)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(open(reading, "rb")))  # noqa: SIM115
        return "-"

    def run(case: str, truth: Path, *inputs: object) -> dict[str, bytes]:
        words: list[object] = [name, *call.words]
        if call.gt:
            words += ["--gt", truth]
        if call.labels:
            words += options
        if not call.one:
            words += ["--name", ",".join("ab"[: call.models])]
        out = tmp_path / "out"
        if call.folder:
            words += ["--save-images" if name == "corrupt" else "-o", out]
        done = hoicli(*words, *inputs, *call.last)
        sys.stdin.close()
        assert done.code == 0, (case, done.err)
        made = result(call, out, done.out)
        if call.folder:
            out.rename(tmp_path / case)
        return made

    plain = [written(tmp_path / f"{number}.jsonl", lines) for number, lines in enumerate(streams)]
    expected = run("plain", written(tmp_path / "gt.jsonl", truth), *plain)
    assert len(expected) > 3 if call.folder else expected[""]
    for lines in (truth, *streams):
        chance.shuffle(lines)
    zipped = saved(tmp_path / "truth", gzip.compress(b"".join(truth)))
    if call.one:
        first, *_ = streams
        shards = [written(tmp_path / "x.jsonl", first[::3]), written(tmp_path / "y.jsonl.gz", first[1::3])]
        assert run("shards", zipped, shards[1], piped(first[2::3]), shards[0]) == expected
    else:
        rest = [written(tmp_path / f"{number}.jsonl.gz", lines) for number, lines in enumerate(streams)]
        assert run("gzipped", zipped, *rest) == expected
        assert run("piped", zipped, *rest[:-1], piped(streams[-1])) == expected
