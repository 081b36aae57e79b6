"""Results of OpenAI's batches, read by `convert`: every image finds its answer, and what has none is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.project import Hoicli, written
from tests.support.questions import batch_result

ANSWER = {
    "person_box": [100, 200, 300, 400],
    "object_box": [250, 300, 500, 450],
    "object": "bicycle",
    "verbs": ["ride"],
}


@pytest.mark.parametrize("first", ["answered", "failed"])
def test_from_results_to_records(hoicli: Hoicli, tmp_path: Path, first: str) -> None:
    sizes = tmp_path / "gt.jsonl"
    record = {"image_id": "b", "file_name": "b.png", "width": 1000, "height": 500}
    record |= {"boxes": [], "labels": [], "hois": []}
    sizes.write_text(json.dumps(record) + "\n")
    error = {"code": "batch_expired", "message": "This request could not be executed in time."}
    failed = {"id": "r", "custom_id": "a", "response": None, "error": error}
    slow = {"custom_id": "c", "response": {"status_code": 429, "body": {"error": {"message": "slow"}}}}
    lines = [batch_result("b", json.dumps({"interactions": [ANSWER]})), failed, slow]
    path = written(tmp_path / "results.jsonl", lines if first == "answered" else lines[::-1])
    read = hoicli("convert", "--coords", "1000", "--image-list", sizes, path)
    assert read.code == 0, read.err
    found = json.loads(read.out)
    assert (found["image_id"], found["hois"]) == ("b", [{"subject": 0, "object": 1, "verb": "ride"}])
    assert found["boxes"] == [[100, 100, 300, 200], [250, 150, 500, 225]]
    assert "a batch result without an answer (This request could not be executed in time.): 1" in read.err
    assert "a batch result without an answer (HTTP 429 slow): 1" in read.err
