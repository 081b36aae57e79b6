"""Labels and verbs in another case, or with spaces for underscores, give the numbers and files of the dataset's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.project import VCOCO, Hoicli, Record, records, refusal, written

TRUTH, PREDICTIONS = VCOCO / "ground_truth.jsonl", VCOCO / "predictions.jsonl"


def spelled_otherwise(source: Path, target: Path) -> Path:
    """The records of V-COCO with persons as Person and verbs as WORK ON COMPUTER."""
    found = records(source)
    for record in found:
        record["labels"] = [label and label.replace("person", "Person") for label in record["labels"]]
        for hoi in (*record["hois"], *(record.get("left_out") or ())):
            hoi["verb"] = hoi["verb"].replace("_", " ").upper()
    return written(target, found)


@pytest.mark.parametrize("command", ["eval", "diagnose", "pairstats", "match", "validate", "shoe-eval --sim lexical"])
def test_the_numbers_are_those_of_the_datasets_spelling(hoicli: Hoicli, tmp_path: Path, command: str) -> None:
    of_files = re.compile(r'"gt_\w+":"\w+"|gt:\w+|\blisted:\w+|"example":"[^"]*"')  # digests and places
    gt, predictions = (
        spelled_otherwise(source, tmp_path / source.name) for source in (TRUTH, PREDICTIONS)
    )  # fmt: skip
    call = (*command.split(), "--dataset", "vcoco", "--gt")
    usual, other = (hoicli(*call, *files) for files in ((TRUTH, PREDICTIONS), (gt, predictions)))
    assert usual.code == other.code == 0
    assert of_files.sub("", usual.out) == of_files.sub("", other.out) != ""


def test_the_official_list_has_all_values(hoicli: Hoicli, tmp_path: Path) -> None:
    """All were lost: keys such as "WORK ON COMPUTER_agent" are none of the list's."""
    files = PREDICTIONS, spelled_otherwise(PREDICTIONS, tmp_path / "p.jsonl")
    for number, path in enumerate(files):
        target = tmp_path / f"{number}.pkl"
        assert hoicli("convert", "--dataset", "vcoco", "--to", "vcoco-pkl", path, "-o", target).code == 0
    assert (tmp_path / "0.pkl").read_bytes() == (tmp_path / "1.pkl").read_bytes()


def test_a_role_is_checked_of_a_verb_in_any_spelling(hoicli: Hoicli, tmp_path: Path) -> None:
    """It was an internal error."""
    record: Record = {"image_id": 1, "boxes": [[0, 0, 9, 9]] * 2, "labels": ["person", "laptop"]}
    record["hois"] = [{"subject": 0, "object": 1, "verb": "work_on_computEr"}]
    path = written(tmp_path / "gt.jsonl", [record])
    said = refusal(hoicli("eval", "--dataset", "vcoco", "--gt", path, PREDICTIONS))
    assert "gt.jsonl:1: hois[0].role: missing; say which role the object has (work_on_computEr has instr)" in said
    checks = [json.loads(line) for line in hoicli("validate", "--dataset", "vcoco", path).out.splitlines()]
    assert any("hois[0].role" in row["example"] for row in checks)
