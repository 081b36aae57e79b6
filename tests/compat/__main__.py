"""`python -m tests.compat 1.0`: the files of tests/compat/1.0, written by the hoicli that is here, once a release."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import hoicli
from tests.compat.test_compat import HERE, numbers
from tests.support.project import FIXTURES, GT, OTHER, PREDICTIONS, VCOCO


def write(folder: Path) -> None:
    """One file of each kind, and the numbers that the commands make of them."""
    folder.mkdir()
    for name, source in {
        "gt.jsonl": GT,
        "predictions.jsonl": PREDICTIONS,
        "other.jsonl": OTHER,
        "vcoco_gt.jsonl": VCOCO / "ground_truth.jsonl",
        "vcoco_predictions.jsonl": VCOCO / "predictions.jsonl",
        "dataset.json": FIXTURES / "own/site.json",
        "dataset_gt.jsonl": FIXTURES / "own/gt.jsonl",
        "dataset_predictions.jsonl": FIXTURES / "own/predictions.jsonl",
        "shoe_gt.jsonl": FIXTURES / "shoe/gt.jsonl",
        "shoe_predictions.jsonl": FIXTURES / "shoe/predictions.jsonl",
        "similarity.jsonl": FIXTURES / "shoe/sim.jsonl",
        "rows.jsonl": FIXTURES / "robust/rows.jsonl",
    }.items():
        shutil.copyfile(source, folder / name)
    gt, predictions = folder / "gt.jsonl", folder / "predictions.jsonl"
    matched = hoicli.match(gt, predictions, protocol="hico")
    _write_lines(folder / "match.jsonl", matched)
    matched = hoicli.match(folder / "vcoco_gt.jsonl", folder / "vcoco_predictions.jsonl", protocol="vcoco-s1")
    _write_lines(folder / "vcoco_match.jsonl", matched)
    levels = [{"quality": quality} for quality in (60, 50, 40, 30, 20)]
    (folder / "recipe.json").write_text(json.dumps({"name": "mild", "corruptions": {"jpeg": levels}}) + "\n")
    (folder / "protocol.json").write_text('{"name": "strict", "like": "hico", "threshold": 0.75}\n')
    (folder / "numbers.json").write_text(json.dumps(numbers(folder), indent=1) + "\n")


def _write_lines(path: Path, records: Iterable[object]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


if __name__ == "__main__":
    write(HERE / sys.argv[1])
