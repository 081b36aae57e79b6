"""Where rules of several commands meet: open streams as outputs, caveats on the way through match records, what
--emit predictions leaves out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import ROOT, VCOCO, Hoicli, records, written
from tests.support.vcoco import with_labels

TRUTH = records(VCOCO / "ground_truth.jsonl")
FOUND = {record["image_id"] for record in records(VCOCO / "predictions.jsonl")}
SILENT = next(record["image_id"] for record in TRUTH if record["image_id"] not in FOUND)
"""An image without predictions."""


def marked(path: Path, caveat: str, *, alone: str | None = None) -> Path:
    """V-COCO's ground truth with a caveat on every record, or on that of one image."""
    return written(path, ({**row, "caveats": [caveat]} if alone in (None, row["image_id"]) else row for row in TRUTH))


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="looks at open streams by their names")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/dev/fd/6"])
def test_an_open_stream_is_written_to_and_not_replaced(tmp_path: Path, name: str) -> None:
    """The shell goes on writing to the file that it has open."""
    out = tmp_path / "out"
    script = f'exec >> "$1" 6>&1; echo before; "$2" -m hoicli vocab --list splits -o {name}; echo after'
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(["sh", "-c", script, "sh", out, sys.executable], check=True, env=env)
    lines = out.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert len(lines) > 3


def test_ground_truth_given_with_matches_is_asked_what_it_serves(hoicli: Hoicli, tmp_path: Path) -> None:
    """What the shards do not have is the ground truth's, and so are its caveats."""
    truth, matches = tmp_path / "gt.jsonl", tmp_path / "m.jsonl"
    options = ("--dataset", "vcoco", "--gt", VCOCO / "ground_truth.jsonl")
    found = with_labels(tmp_path / "p.jsonl", VCOCO / "predictions.jsonl")
    assert hoicli("match", *options, "--only-predicted", found, "-o", matches).code == 0
    marked(truth, "pairs_only", alone=SILENT)
    result = hoicli("eval", "--dataset", "vcoco", "--gt", truth, matches)
    assert {json.loads(line)["protocol"] for line in result.out.splitlines()} == {"vcoco-qpic"}
    assert "left out: vcoco-agent, vcoco-s1, vcoco-s2" in result.err
    assert hoicli("eval", "--protocol", "vcoco-s1", "--gt", truth, matches).code == 1


def test_a_diagnosis_of_shards_is_signed_for_all_images(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, matches = marked(tmp_path / "gt.jsonl", "unmarked_people", alone=SILENT), tmp_path / "m.jsonl"
    options = ("--gt", truth, "--only-predicted", "--protocol", "vcoco-s1")
    assert hoicli("match", *options, VCOCO / "predictions.jsonl", "-o", matches).code == 0
    whole = hoicli("diagnose", "--dataset", "vcoco", "--gt", truth, VCOCO / "predictions.jsonl").out
    assert "|people:unmarked|" in whole
    assert hoicli("diagnose", "--gt", truth, matches).out == whole
    asked = ("--dataset", "vcoco", "--gt", truth, "--emit", "predictions")
    emitted = hoicli("diagnose", *asked, VCOCO / "predictions.jsonl")
    assert json.loads(emitted.out.splitlines()[0])["settings"].items() >= {("people", "unmarked")}


def test_predictions_of_no_class_are_not_emitted_in_silence(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, strange = tmp_path / "gt.jsonl", tmp_path / "preds.jsonl"
    boxes = {"boxes": [[0, 0, 9, 9], [20, 20, 39, 39]], "labels": ["person", "cup"]}
    for path, verb, score in ((truth, "hold", {}), (strange, "ride", {"score": 0.5})):
        hoi = {"subject": 0, "object": 1, "verb": verb, **score}
        written(path, ({"image_id": f"i{number}", **boxes, "hois": [hoi]} for number in range(9)))
    for more in ((), ("--emit", "predictions")):
        assert hoicli("diagnose", "--gt", truth, *more, strange).code == 1
        assert hoicli("diagnose", "--gt", truth, *more, "--allow-uncounted", strange).code == 0
