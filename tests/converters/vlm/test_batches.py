"""Results of OpenAI's batches, read by `convert`: every image finds its answer, and what has none is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import Hoicli

ANSWER = {
    "person_box": [100, 200, 300, 400],
    "object_box": [250, 300, 500, 450],
    "object": "bicycle",
    "verbs": ["ride"],
}


def result(custom_id: str, text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    body = {"object": "chat.completion", "choices": [choice], "usage": {"prompt_tokens": 200}}
    return {"id": "r", "custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None}


@pytest.mark.parametrize("first", ["answered", "failed"])
def test_from_results_to_records(hoicli: Hoicli, tmp_path: Path, first: str) -> None:
    sizes = tmp_path / "gt.jsonl"
    record = {"image_id": "b", "file_name": "b.png", "width": 1000, "height": 500}
    record |= {"boxes": [], "labels": [], "hois": []}
    sizes.write_text(json.dumps(record) + "\n")
    error = {"code": "batch_expired", "message": "This request could not be executed in time."}
    failed = {"id": "r", "custom_id": "a", "response": None, "error": error}
    slow = {"custom_id": "c", "response": {"status_code": 429, "body": {"error": {"message": "slow"}}}}
    lines = [result("b", json.dumps({"interactions": [ANSWER]})), failed, slow]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (lines if first == "answered" else lines[::-1])))
    read = hoicli("convert", "--coords", "1000", "--image-list", sizes, path)
    assert read.code == 0, read.err
    found = json.loads(read.out)
    assert (found["image_id"], found["hois"]) == ("b", [{"subject": 0, "object": 1, "verb": "ride"}])
    assert found["boxes"] == [[100, 100, 300, 200], [250, 150, 500, 225]]
    assert "a batch result without an answer (This request could not be executed in time.): 1" in read.err
    assert "a batch result without an answer (HTTP 429 slow): 1" in read.err
