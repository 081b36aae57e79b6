"""`shoe-sim --export-batch` and `--import-batch`: the same table as asking live, and nothing lost or guessed."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.batches import FAILED, failed, prompt_in, result
from tests.support.llm_stub import rate, serving
from tests.support.project import Hoicli

PROVIDERS = ("openai", "anthropic", "gemini")
WORDS = [("v", "pet.v.01", "stroke.v.01"), ("v", "ride.v.01", "drive.v.01"), ("n", "cup.n.01", "mug.n.04")]
CALL = ("shoe-sim", "--backend", "llm", "--pairs")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(dict(zip(("pos", "a", "b"), pair, strict=True))) + "\n" for pair in WORDS))
    return path


def export(hoicli: Hoicli, pairs: Path, provider: str, model: str = "m1", *more: object) -> list[dict[str, Any]]:
    path = pairs.with_name("batch.jsonl")
    exported = hoicli(*CALL, pairs, "--model", model, "--export-batch", path, "--batch", provider, *more)
    assert (exported.code, exported.out) == (0, ""), exported.err
    return [json.loads(line) for line in path.read_text().splitlines()]


def answers(provider: str, requests: list[dict[str, Any]], model: str = "m1") -> list[dict[str, Any]]:
    """What the model of llm_stub says."""
    found = []
    for line in requests:
        custom_id, task = prompt_in(line)
        senses = dict(re.findall(r"^([AB])\. (\S+) -- ", task, re.MULTILINE))
        rating = rate(model, senses["A"], senses["B"])
        found.append(result(provider, custom_id, json.dumps({"rating": rating})))
    return found


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_imported_table_is_the_one_that_asking_gives(
    hoicli: Hoicli, pairs: Path, tmp_path: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as stub:
        live = hoicli(*CALL, pairs, "--model", "m1", "--model", "m2", "--base-url", stub.url)
    files = []
    for model in ("m1", "m2"):
        requests = export(hoicli, pairs, provider, model)
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", prompt_in(line)[0]) for line in requests)
        lines = answers(provider, requests, model)
        random.Random(0).shuffle(lines)
        files.append(written(tmp_path / f"{model}.jsonl", lines))
    models = ("--model", "m1", "--model", "m2")
    imported = hoicli(*CALL, pairs, *models, "--import-batch", files[0], "--import-batch", files[1])
    assert (imported.code, imported.out) == (0, live.out)
    assert "6 answers in this run: 1,200 tokens in, 42 out" in imported.err
    cache = tmp_path / "cache.jsonl"
    for model, path in zip(("m1", "m2"), files, strict=True):  # one by one, kept in a cache
        assert hoicli(*CALL, pairs, "--model", model, "--import-batch", path, "--cache", cache).code == 0
        assert export(hoicli, pairs, provider, model, "--cache", cache) == []
    kept = hoicli(*CALL, pairs, *models, "--cache", cache, "--base-url", "http://127.0.0.1:9/v1")
    assert (kept.code, kept.out) == (0, live.out)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_a_batch_did_not_answer_is_named(hoicli: Hoicli, pairs: Path, tmp_path: Path, provider: str) -> None:
    good = answers(provider, export(hoicli, pairs, provider))
    ids = [str(line.get("custom_id", line.get("key"))) for line in good]
    path = tmp_path / "results.jsonl"
    call = (*CALL, pairs, "--model", "m1", "--import-batch", path)

    written(path, good[:2])
    missing = hoicli(*call)
    assert (missing.code, missing.err.count("no result in the batch")) == (1, 1)
    assert "1 questions got no usable answer" in missing.err
    assert "ask them with --export-batch again" in missing.err

    written(path, [good[0], failed(provider, ids[1]), result(provider, ids[2], "They are alike.")])
    faulty = hoicli(*call)
    assert faulty.code == 1
    assert FAILED[provider] in faulty.err
    assert "said 'They are alike.'" in faulty.err
    skipped = hoicli(*call, "--on-error", "skip")
    assert skipped.code == 0
    assert sum(json.loads(line)["similarity"] is not None for line in skipped.out.splitlines()) == 1

    written(path, [*good, result(provider, "another", '{"rating": 4}'), good[0]])
    more = hoicli(*call)
    assert more.code == 0
    assert "results for questions that nobody asked: 1 (the first: 'another')" in more.err
    assert f"results for a question that has one: 1 (the first: {path}:5)" in more.err

    written(path, [*good[:2], result(provider, "another", '{"rating": 4}')])
    both = hoicli(*call)
    assert (both.code, both.err.count("\n")) == (1, 1)
    assert "no result in the batch" in both.err
    assert "results for questions that nobody asked: 1" in both.err
    written(path, good)
    other = hoicli(*CALL, pairs, "--model", "m2", "--import-batch", path)
    assert (other.code, other.out, other.err.count("\n")) == (1, "", 1)
    assert "none of the 3 results is for a question of this run" in other.err


def test_the_screening_model_is_exported_first(hoicli: Hoicli, pairs: Path, tmp_path: Path) -> None:
    cache, models = tmp_path / "cache.jsonl", ("--screen", "m1", "--cache", tmp_path / "cache.jsonl")
    first = export(hoicli, pairs, "openai", "m2", *models)
    assert {line["body"]["model"] for line in first} == {"m1"}
    lines = [result("openai", line["custom_id"], f'{{"rating": {min(at, 1)}}}') for at, line in enumerate(first)]
    path = written(tmp_path / "results.jsonl", lines)
    assert hoicli(*CALL, pairs, "--model", "m1", "--import-batch", path, "--cache", cache).code == 0
    second = export(hoicli, pairs, "openai", "m2", *models)
    assert [line["body"]["model"] for line in second] == ["m2", "m2"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--model", "a", "--model", "b", "--export-batch", "OUT"), "name one --model at a time (a, b)"),
        (("--model", "a", "--export-batch", "OUT", "--base-url", "http://x/v1"), "give one of them"),
        (("--model", "a", "--base-url", "http://x/v1", "--batch", "gemini"), "--batch names the provider of"),
    ],
)
def test_calls_that_cannot_be_meant(hoicli: Hoicli, pairs: Path, options: tuple[str, ...], words: str) -> None:
    refused = hoicli(*CALL, pairs, *(pairs.with_name("out") if word == "OUT" else word for word in options))
    assert (refused.code, refused.out) == (2, "")
    assert words in refused.err


@pytest.mark.parametrize("line", ["{}", "[1]", "{", '{"custom_id": 3, "response": {}}', '{"key": "a"}', '"x"', "null"])
def test_lines_that_are_no_results(hoicli: Hoicli, pairs: Path, tmp_path: Path, line: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(line + "\n")
    refused = hoicli(*CALL, pairs, "--model", "m1", "--import-batch", path)
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert f"{path}:1" in refused.err
