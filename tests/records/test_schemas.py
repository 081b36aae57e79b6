"""The JSON Schemas describe what the commands really write, and the code knows the same words."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from hoicli.commands.doctor import kinds, schema_text
from hoicli.evaluation.pairing import OUTCOMES
from tests.support.project import FIXTURES, GT, OTHER, PREDICTIONS, Hoicli


def check(kind: str, text: str) -> None:
    schema = json.loads(schema_text(kind))
    validator = jsonschema.Draft202012Validator(schema)
    lines = text.splitlines()
    assert lines
    for line in lines:
        validator.validate(json.loads(line))


def test_the_command_prints_the_schema_of_each_kind(hoicli: Hoicli) -> None:
    assert {"ground_truth", "prediction", "match", "result"} < set(kinds())
    for kind in kinds():
        jsonschema.Draft202012Validator.check_schema(json.loads(schema_text(kind)))
        assert hoicli("doctor", "--schema", kind).out == schema_text(kind)


def test_fixtures_fit() -> None:
    check("ground_truth", (GT).read_text())
    check("prediction", (PREDICTIONS).read_text())


def test_what_match_and_eval_write_fits(hoicli: Hoicli) -> None:
    pair = ("--gt", GT, PREDICTIONS)
    check("match", hoicli("match", "--protocol", "all", "--nms", "0.7", *pair).out)
    check("result", hoicli("eval", "--per-class", "--tag", "model=x", "--split", "uo", "--bootstrap", "50", *pair).out)
    check("result", hoicli("compare", "--per-class", "--bootstrap", "50", *pair, OTHER).out)


def test_what_shoe_sim_writes_fits(hoicli: Hoicli) -> None:
    check("similarity", (FIXTURES / "shoe" / "sim.jsonl").read_text())
    pair = ("--gt", FIXTURES / "shoe" / "gt.jsonl", FIXTURES / "shoe" / "predictions.jsonl")
    check("similarity", hoicli("shoe-sim", "--backend", "wordnet:res", *pair).out)
    check("similarity", hoicli("shoe-sim", "--merge", "median", FIXTURES / "shoe" / "sim.jsonl").out)


def test_the_outcomes_are_those_of_the_code() -> None:
    schema: dict[str, Any] = json.loads(schema_text("match"))
    outcomes = schema["properties"]["predictions"]["items"]["properties"]["outcome"]["enum"]
    assert outcomes == list(OUTCOMES)
