"""`convert --scores tokens`: the score of a triplet is the probability with which the model said its words."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest

from hoicli.converters.vlm.forms import read_answer
from hoicli.converters.vlm.spoken_text import Tokens
from tests.support.project import Hoicli, dumped, saved

ANSWER = (
    '<think>é</think>[{"person_bbox": [10, 20, 30, 40], "object_bbox": [25, 30, 50, 45], "object": "Dining table", '
    '"verb": ["sit at", "clean"], "score": 0.9}]'
)


def tokens_of(text: str, seed: int = 0) -> list[dict[str, Any]]:
    """Pieces of one to four bytes, so that some hold half a character, with probabilities."""
    chance, data, at, found = random.Random(seed), text.encode(), 0, []
    while at < len(data):
        piece = data[at : at + chance.randint(1, 4)]
        found.append({"token": "?", "bytes": list(piece), "logprob": -chance.random() / 10})
        at += len(piece)
    return [*found, {"token": "<end>", "bytes": None, "logprob": -3.0}]


def twin(text: str, tokens: list[dict[str, Any]], words: list[str]) -> float:
    """The product over the tokens that hold a byte of the words' first places, byte by byte."""
    data, held, end = text.encode(), set(), 0
    owner = []
    for number, token in enumerate(tokens):
        owner += [number] * len(token["bytes"] or ())
    for word in words:
        start = data.index(word.encode())
        end = start + len(word.encode())
        held |= set(owner[start:end])
    return math.prod(math.exp(tokens[number]["logprob"]) for number in held)


@pytest.mark.parametrize("seed", range(8))
def test_a_score_is_the_product_of_the_tokens_of_its_words(seed: int) -> None:
    tokens = tokens_of(ANSWER, seed)
    (claim,) = read_answer(ANSWER).triplets
    assert (claim.verbs, claim.label) == (("sit_at", "clean"), "dining_table")
    for span, verb in zip(claim.spans, ("sit at", "clean"), strict=True):
        assert span is not None
        assert claim.label_span is not None
        score = Tokens(ANSWER, {"content": tokens}).score([span, claim.label_span])
        assert score == pytest.approx(twin(ANSWER, tokens, [verb, "Dining table"]), rel=1e-12)


@pytest.mark.parametrize("example", [
    '{"interactions": [{"person_box": [1, 2, 3, 4], "object_box": [2, 3, 5, 4], "object": "bicycle", '
    '"verbs": ["ride"]}]}',
    '[{"subject": {"label": "person", "box_2d": [1, 2, 3, 4]}, "predicate": "ride", '
    '"object": {"label": "bicycle", "box_2d": [2, 3, 5, 4]}}]',
    '[{"bbox_2d": [1, 2, 3, 4], "label": "person"}, '
    '{"bbox_2d": [2, 3, 5, 4], "label": "bicycle", "action": "ride"}]',
])  # fmt: skip
def test_forms_tell_where_their_words_are(example: str) -> None:
    prefix = "<think>é riding a bicycle?</think>"
    text = prefix + example
    (claim,) = read_answer(text).triplets
    assert claim.label_span is not None
    assert re.fullmatch("rid(e|ing)", text[slice(*claim.spans[0])])  # type: ignore[misc]
    assert text[slice(*claim.label_span)] == "bicycle"
    assert claim.label_span[0] > len(prefix)


def rows(answer: str, logprobs: Any) -> dict[str, Any]:
    """The same answer in each of the places where log-probabilities are."""
    completion = {"choices": [{"message": {"content": answer}, "logprobs": {"content": logprobs}}]}
    return {
        "row": {"file_name": "a.jpg", "response": answer, "logprobs": {"content": logprobs}},
        "completion": {"file_name": "a.jpg", "response": completion},
        "batch": {"custom_id": "a", "response": {"status_code": 200, "body": completion}, "error": None},
    }


@pytest.mark.parametrize("name", ["row", "completion", "batch"])
def test_log_probabilities_are_found(hoicli: Hoicli, tmp_path: Path, name: str) -> None:
    answer = ANSWER.replace("é", "e")
    tokens = tokens_of(answer)[:-1]
    path = saved(tmp_path / "answers.jsonl", json.dumps(rows(answer, tokens)[name]) + "\n")
    read = hoicli("convert", "--from", "vlm", "--coords", "pixels", "--scores", "tokens", path)
    assert read.code == 0, read.err
    record = json.loads(read.out)
    expected = [twin(answer, tokens, [verb, "Dining table"]) for verb in ("sit at", "clean")]
    assert [hoi["score"] for hoi in record["hois"]] == pytest.approx(expected)
    assert record["caveats"] == ["token_scores"]
    assert "the score of a triplet is the product of the probabilities of the tokens of its verb" in read.err
    said = json.loads(hoicli("convert", "--from", "vlm", "--coords", "pixels", path).out)
    assert ([hoi["score"] for hoi in said["hois"]], "caveats" in said) == ([0.9, 0.9], False)


@pytest.mark.parametrize(
    "logprobs",
    [None, {}, [], {"content": []}, {"content": [{"token": "other", "logprob": -1}]}, [{"token": 3}], "x",
     {"content": [{"token": ANSWER, "logprob": 0.5}]}, {"content": [{"token": ANSWER, "logprob": float("nan")}]},
     {"content": [{"token": ANSWER, "bytes": [300], "logprob": -1}]}, {"content": [{"token": ANSWER}]}],
)  # fmt: skip
def test_without_them_there_is_no_score(hoicli: Hoicli, tmp_path: Path, logprobs: Any) -> None:
    path = dumped(tmp_path / "answers.json", [{"file_name": "a.jpg", "response": ANSWER, "logprobs": logprobs}])
    read = hoicli("convert", "--from", "vlm", "--coords", "pixels", "--scores", "tokens", path)
    assert read.code == 0 or "nan" in read.err.lower() or "NaN" in path.read_text(), read.err
    if read.code == 0:
        assert all("score" not in hoi for hoi in json.loads(read.out)["hois"])
        assert "the scores of an answer without log-probabilities of its tokens (its triplets are kept): 1" in read.err


@pytest.mark.parametrize("command", [("eval",), ("shoe-eval", "--sim", "lexical")])
@pytest.mark.parametrize("caveat", ["token_scores", None])
def test_every_number_says_that_its_scores_are_of_tokens(
    hoicli: Hoicli, tmp_path: Path, command: tuple[str, ...], caveat: str | None
) -> None:
    record = {"image_id": "a", "boxes": [[10, 20, 30, 40], [25, 30, 50, 45]], "labels": ["person", "bicycle"]}
    truth, predicted = tmp_path / "gt.jsonl", tmp_path / "preds.jsonl"
    truth.write_text(json.dumps({**record, "hois": [{"subject": 0, "object": 1, "verb": "ride"}]}) + "\n")
    hois = [{"subject": 0, "object": 1, "verb": "ride", "score": 0.5}]
    predicted.write_text(json.dumps({**record, "hois": hois, "caveats": [caveat] if caveat else []}) + "\n")
    numbers = hoicli(*command, "--gt", truth, predicted, "--format", "jsonl")
    assert numbers.code == 0, numbers.err
    lines = numbers.out.splitlines()
    assert lines
    signed = ["scores:verb_and_object_tokens" in json.loads(line)["signature"] for line in lines]
    assert signed == [caveat is not None] * len(lines)
