"""`prompts --batch`, and its results read by `convert`: every image finds its answer, and what has none is counted."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hoicli.converters.vlm.batches import PROVIDERS, batch_id, image_id_in, over_limits, result_of
from hoicli.errors import DataError
from tests.support.batches import FAILED, failed, prompt_in, result
from tests.support.project import Hoicli

NAMES = {"a": "a.jpg", "street/é 7": "b b.png", "c": "c.webp"}
ANSWER = {
    "person_box": [100, 200, 300, 400],
    "object_box": [250, 300, 500, 450],
    "object": "bicycle",
    "verbs": ["ride"],
}


@pytest.fixture
def images(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    for name in NAMES.values():
        (tmp_path / "images" / name).write_bytes(name.encode())
    path = tmp_path / "gt.jsonl"
    lines = [{"image_id": one, "file_name": name, "width": 1000, "height": 500} for one, name in NAMES.items()]
    path.write_text("".join(json.dumps({**line, "boxes": [], "labels": [], "hois": []}) + "\n" for line in lines))
    return path


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_from_prompts_to_records(hoicli: Hoicli, images: Path, tmp_path: Path, provider: str) -> None:
    call = ("prompts", "--batch", provider, "--model", "m", "--images", tmp_path / "images", images)
    made = hoicli(*call)
    assert made.code == 0, made.err
    requests = lines_of(made.out)
    plain = {line["image_id"]: line["prompt"] for line in lines_of(hoicli("prompts", images).out)}
    found = dict(map(prompt_in, requests))
    assert {image_id_in(custom_id): text for custom_id, text in found.items()} == plain
    assert base64.b64encode(b"b b.png").decode() in made.out.splitlines()[1]
    text = json.dumps({"interactions": [ANSWER]})
    ids = list(found)
    path = tmp_path / "results.jsonl"
    results = [result(provider, ids[1], text), failed(provider, ids[0]), result(provider, "zzz", text)]
    path.write_text("".join(json.dumps(line) + "\n" for line in results))
    read = hoicli("convert", "--coords", "1000", "--image-list", images, path)
    assert read.code == 0, read.err
    (record,) = lines_of(read.out)
    assert (record["image_id"], record["hois"]) == ("street/é 7", [{"subject": 0, "object": 1, "verb": "ride"}])
    assert record["boxes"] == [[100, 100, 300, 200], [250, 150, 500, 225]]
    assert f"a batch result without an answer ({FAILED[provider]}" in read.err or FAILED[provider] in read.err
    assert "a batch result about an image that --image-list does not have: 1" in read.err
    assert "1 of 3 images of --image-list have no batch result (the first: c)" in read.err


def test_pictures_by_url(hoicli: Hoicli, images: Path) -> None:
    made = hoicli("prompts", "--batch", "gemini", "--model", "m", "--image-url", "gs://bucket/val/", images)
    parts = lines_of(made.out)[1]["request"]["contents"][0]["parts"]
    assert parts[0] == {"file_data": {"mime_type": "image/png", "file_uri": "gs://bucket/val/b%20b.png"}}


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--batch", "openai", "--model", "m"), 2, "give --images DIR, or --image-url URL"),
        (("--batch", "openai", "--image-url", "https://x/"), 2, "name the --model to ask"),
        (("--batch", "openai", "--model", "m", "--image-url", "/tmp"), 2, "--image-url /tmp: give https://"),
        (("--batch", "openai", "--model", "m", "--image-url", "https://x", "--body", "[]"), 2, "give a JSON object"),
        (("--model", "m"), 2, "go with --batch NAME"),
    ],
)
def test_calls_that_are_refused(hoicli: Hoicli, images: Path, options: tuple[str, ...], code: int, words: str) -> None:
    refused = hoicli("prompts", *options, images)
    assert (refused.code, refused.out) == (code, "")
    assert words in refused.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../secret.jpg", "'../secret.jpg' leads out of --images"),
        ("/etc/passwd.jpg", "leads out of --images"),
        ("none.jpg", "'none.jpg' cannot be read in --images (No such file or directory)"),
        ("a.txt", "is no picture that providers take"),
        (None, "missing; a batch request needs its picture"),
    ],
)
def test_pictures_that_are_not_sent(hoicli: Hoicli, images: Path, tmp_path: Path, name: str | None, words: str) -> None:
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    images.write_text(json.dumps({"image_id": "a", **({"file_name": name} if name else {})}) + "\n")
    refused = hoicli("prompts", "--batch", "openai", "--model", "m", "--images", tmp_path / "images", images)
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert words in refused.err
    assert f"{images}:1: file_name: " in refused.err


@given(st.text(min_size=1, max_size=30))
def test_an_image_id_survives_its_batch(image_id: str) -> None:
    try:
        custom_id = batch_id(image_id)
    except (DataError, UnicodeEncodeError):
        assert len(image_id.encode("utf-8", "replace")) > 20
        return
    assert len(custom_id) <= 64
    assert image_id_in(custom_id) == image_id


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "custom_id",
                    "key",
                    "response",
                    "result",
                    "error",
                    "body",
                    "choices",
                    "message",
                    "content",
                    "type",
                    "text",
                    "candidates",
                    "parts",
                    "status",
                    "request",
                    "status_code",
                    "output",
                    "usage",
                    "usageMetadata",
                    "promptFeedback",
                    "finish_reason",
                    "code",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(_JSON)
@example({"custom_id": None, "request": None, "status": {"custom_id": None}})
@example({"custom_id": "a", "error": {"why": "unknown"}})
def test_no_line_breaks_the_reader_of_results(row: Any) -> None:
    found = result_of(row)
    assert found is None or found.text is not None or found.problem


def test_files_that_are_too_large() -> None:
    assert over_limits("openai", 50_000, 10) is None
    assert over_limits("openai", 50_001, 10) == (
        "openai takes 50,000 requests and 200,000,000 bytes in a file; this has 50,001 and 10: split it by lines "
        "(split -l)"
    )
    assert over_limits("gemini", 10**6, 2 * 10**9 + 1)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"custom_id": "a", "response": {"status_code": 429, "body": {"error": {"message": "slow"}}}}, "HTTP 429 slow"),
        ({"custom_id": "a", "response": {"status_code": 200, "body": {}}}, "no text (empty)"),
        (
            {"custom_id": "a", "result": {"type": "errored", "error": {"type": "error", "error": {
                "type": "invalid_request_error", "message": "bad"}}}},
            "invalid_request_error: bad",
        ),
        ({"custom_id": "a", "result": {"type": "canceled"}}, "canceled"),
        ({"key": "a", "response": {"promptFeedback": {"blockReason": "SAFETY"}}}, "no text (SAFETY)"),
    ],
)  # fmt: skip
def test_why_a_result_has_no_answer(row: dict[str, Any], problem: str) -> None:
    found = result_of(row)
    assert found is not None
    assert (found.text, found.problem) == (None, problem)
