"""Rows: their signatures; metrics, kinds of rows and oracles are declared once, and no row of hoicli's own is anything
else; and the JSON Schemas describe what the commands really write."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.commands.doctor import kinds, schema_text
from hoicli.errors import DataError, DeclarationError, write_number
from hoicli.evaluation.pairing import OUTCOMES
from hoicli.interface.results import Result
from hoicli.records import oracles
from hoicli.records.image import RECORD_FIELDS
from hoicli.records.kinds import COMMON
from hoicli.records.metrics import METRICS, Metric, kind_of, metrics_named
from hoicli.records.oracles import ORACLES
from hoicli.records.result_rows import SIGNATURE_KEYS, check_row, result_row, settings_of, signature, write_setting
from tests.support.project import FIXTURES, GT, OTHER, PREDICTIONS, ROOT, Hoicli, parsed
from tests.support.readme import RESULTS, schema_with_metrics


def test_no_value_of_a_signature_is_two() -> None:
    assert settings_of({"signature": signature({"data": "hico", "slice": "own@1/a:b"})})["slice"] == "own@1/a:b"
    with pytest.raises(DataError, match=r"^slice: 'x\|gt:0' would read as two settings in a signature"):
        signature({"data": "hico", "slice": "x|gt:0"})


def test_numbers_of_settings_keep_every_digit() -> None:
    texts = ("0", "1", "0.5", "0.7", "0.05", "1e-05", "0.5000001", "-3.25", "100000", "1234567", "123456.123456789012")
    assert [write_number(float(text)) for text in texts[:-1]] == [*texts[:-1]]
    assert write_number(-0.0) == "0"
    bits = random.Random(0)
    for number in (struct.unpack("d", bits.randbytes(8))[0] for _ in range(1000)):
        assert number != number or float(write_number(number)) == number


@pytest.mark.parametrize(("command", "option", "key", "one", "other"), [
    ("eval", "--nms", "nms", "0.7", "0.7000004"),
    ("eval", "--nms", "nms", "0.7/1/0.5", "0.7/1.0000001/0.5"),
    ("eval", "--slice", "slice", "distance:0.5:1", "distance:0.5:1.000000000001"),
    ("audit", "--sure", "audit", "0.2", "0.2000004"),
    ("audit", "--same", "audit", "0.7", "0.7000004"),
    ("pairstats", "--nms-sweep", "pairnms", "0.7", "0.7000004"),
    ("pairstats", "--det-threshold", "det", "0.2", "0.2000004"),
    ("shoe-eval", "--delta", "delta", "0.5", "0.5000001"),
    ("shoe-eval", "--verb-weight", "verb", "0.5", "0.5000001"),
    ("shoe-eval", "--min-similarity", "minsim", "0.5", "0.5000001"),
    ("shoe-eval", "--min-score", "minscore", "0.5", "0.5000001"),
    ("shoe-eval", "--min-rank", "minrank", "0.5", "0.5000001"),
])  # fmt: skip
def test_two_settings_are_never_signed_alike(
    command: str, option: str, key: str, one: str, other: str, hoicli: Hoicli, tmp_path: Path
) -> None:
    person, thing = [10, 10, 60, 60], [50, 20, 90, 80]
    truth: dict[str, Any] = {"image_id": "a", "width": 100, "height": 100, "boxes": [person, thing, [51, 20, 90, 80]]}
    truth |= {"labels": ["person", "bicycle", "bicycle"]}
    truth["hois"] = [{"subject": 0, "object": at, "verb": "ride"} for at in (1, 2)]
    found = {**truth, "scores": [0.9, 0.8, 0.7], "hois": [{**hoi, "score": 0.9} for hoi in truth["hois"]]}
    files = {"gt": tmp_path / "gt.jsonl", "found": tmp_path / "found.jsonl"}
    for name, record in (("gt", truth), ("found", found)):
        files[name].write_text(json.dumps(record) + "\n")
    sim = ("--sim", "lexical") if command == "shoe-eval" else ()
    signed = []
    for value in (one, other):
        result = hoicli(command, "--format", "jsonl", *sim, option, value, "--gt", files["gt"], files["found"])
        assert result.code == 0, result.err
        settings = [settings_of(json.loads(line)) for line in result.out.splitlines()]
        signed.append({each[key] for each in settings if key in each})
        assert any(value in text for text in signed[-1])
    assert signed[0] != signed[1]


ROW = {"subset": "full", "value": 31.2, "n": 600, "unit": "%", "protocol": "hico", "tags": {}}
SIGNED = {**ROW, "signature": "protocol:hico|data:hico|gt:0000abcd|version:1.0.0"}
BIN = {**SIGNED, "bin_low": 0.1, "bin_high": 0.2}


def test_a_row_that_is_complete() -> None:
    assert result_row("mAP", **SIGNED) == {"metric": "mAP", **SIGNED}
    check_row({"metric": "mAP", **SIGNED, "note": "said"})


@pytest.mark.parametrize(("metric", "change", "said"), [
    ("of_nobody", {}, "is of no declared metric; declare it in hoicli/records/metrics.py"),
    ("mAP", {"value": 100.1}, "is 100.1 %; if it is no share, say its `units` in hoicli/records/metrics.py"),
    ("mAP", {"subset": ...}, "lacks subset"),
    ("mAP", {"signature": ...}, "lacks signature"),
    ("mAP", {"signature": "protocol:hico|gt:0"}, "is not signed with data"),
    ("mAP", {"bin_low": 0.1, "bin_high": 0.2}, "has bin_low, which no mean of it has"),
    ("mAP", {"unit": "points"}, "is in points, not in %"),
    ("max_recall", {}, "is no class"),
    ("R@50", {}, "lacks constraint"),
    ("delta_mAP", {}, "lacks oracle"),
    ("ece", {}, "is not signed with bins"),
    ("mAP_diff", {"from": 1.0, "to": 2.0}, "lacks ci_low"),
])  # fmt: skip
def test_a_row_that_is_not(metric: str, change: dict[str, Any], said: str) -> None:
    row = {key: value for key, value in {**SIGNED, **change}.items() if value is not ...}
    with pytest.raises(ValueError, match=said):
        result_row(metric, **row)
    with pytest.raises(ValueError, match=said):  # made by hand
        Result([{"metric": metric, **row}])


def test_rows_of_others_are_not_asked() -> None:
    assert Result([{"metric": "of_nobody", **BIN}], others=True).rows[0]["metric"] == "of_nobody"


def test_every_metric_says_what_it_is() -> None:
    for name, metrics in METRICS.items():
        for metric in metrics:
            assert metric.says.endswith("."), name
            assert metric.commands, name
            assert set(metric.settings) >= {"protocol"}, name
    assert [metric.name for metric in metrics_named("R@20")] == ["R@{k}"]
    assert metrics_named("R@k") == metrics_named("of_nobody") == ()


def test_a_metric_says_which_values_are_better() -> None:
    with pytest.raises(DeclarationError, match=r"^new in hoicli/records/metrics.py: say better=HIGHER or"):
        Metric("new", "It.", "", ("eval",))


def test_a_difference_is_no_share() -> None:
    chance = {"p": None, "p_bootstrap": None, "ci_low": None, "ci_high": None}
    row = {**SIGNED, **chance, "value": 150.0, "from": -60.0, "to": 90.0, "oracle": "duplicate"}
    assert result_row("delta_mAP_diff", **row)["value"] == 150.0
    assert result_row("mAP", **{**SIGNED, "value": 100.0000000001})["value"] > 100


def test_a_row_is_of_a_kind_of_its_metric() -> None:
    row = {"metric": "precision", **SIGNED}
    assert kind_of({**row, "threshold": 0.5, "rank": 3}).name == "point"
    assert kind_of({**row, "setting": "scene"}).name == "mean"
    assert kind_of({"metric": "new", **BIN}).name == "bin"  # of nobody's metric, by its keys
    assert set(COMMON) > set(ROW)


def test_the_schema_names_the_metrics_that_there_are() -> None:
    is_made = schema_with_metrics(RESULTS.read_text()) == RESULTS.read_text()
    assert is_made, f"{RESULTS}: run `python -m tests.support.readme docs/metrics.md`, which writes it, too"
    assert "mri_diff" not in RESULTS.read_text()


def test_a_row_for_each_metric(hoicli: Hoicli) -> None:
    rows = parsed(hoicli("vocab", "--list", "metrics").out)
    assert len(rows) > 100
    assert {row["name"] for row in rows} == {name.replace("{k}", "K") for name in METRICS}
    (row,) = (row for row in rows if row["name"] == "gt_miss_rate")
    assert (row["better"], row["unit"], row["about"]) == ("lower", "%", "mean")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_settings_are_written_to_the_last_digit(number: float) -> None:
    assert float(write_setting(number)) == number
    assert write_setting(0.7) != write_setting(0.7000004)
    assert write_setting((0.5, 2, "name")) == "0.5,2,name"
    assert write_setting(2**63 + 1) == "9223372036854775809"


def test_the_settings_of_an_oracle_sign_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = replace(ORACLES["missed_gt"], settings={"minscore": 0.05})
    monkeypatch.setitem(ORACLES, "missed_gt", changed)
    signature = "protocol:hico|data:hico|gt:0000abcd|minscore:0.05|version:1.0.0"
    for already in (SIGNED["signature"], signature):  # as progressive rows have those of all oracles
        row = result_row("mAP", oracle="missed_gt", **{**SIGNED, "signature": already})
        assert row["signature"] == signature
    assert result_row("mAP", oracle="duplicate", **SIGNED)["signature"] == SIGNED["signature"]


def test_every_setting_of_an_oracle_is_one_of_signatures() -> None:
    unknown = {name: [key for key in row.settings if key not in SIGNATURE_KEYS] for name, row in ORACLES.items()}
    unknown = {name: keys for name, keys in unknown.items() if keys}
    assert not unknown, f"{unknown}: add the settings to SIGNATURE_KEYS of hoicli/records/result_rows.py"


@pytest.mark.parametrize(
    ("old", "new"),
    [("turn=5", "turn=None"), ("turn=5", "turn=4"), ("turn=5", "turn=9"), ('"All FN")', '"All FN", turn=8)')],
)
def test_a_wrong_turn_stops_the_import(tmp_path: Path, old: str, new: str) -> None:
    source = Path(oracles.__file__).read_text()
    assert old in source
    (tmp_path / "changed.py").write_text(source.replace(old, new))
    done = subprocess.run(
        [sys.executable, "changed.py"], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert DeclarationError.__name__ in done.stderr
    assert "give a `turn` only to an oracle that repairs one error type" in done.stderr


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


def test_every_field_of_a_record_is_known_to_readers_that_keep_others() -> None:
    kinds_of_records = ("ground_truth", "prediction")
    fields = set(chain.from_iterable(json.loads(schema_text(kind))["properties"] for kind in kinds_of_records))
    assert fields - RECORD_FIELDS == {"corruption", "severity", "recipe", "seed", "psnr", "ssim"}


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
