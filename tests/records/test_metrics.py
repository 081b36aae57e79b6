"""Metrics and kinds of rows are declared once, and no row of hoicli's own is anything else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.errors import DeclarationError
from hoicli.interface.results import Result
from hoicli.records.kinds import COMMON
from hoicli.records.metrics import METRICS, Metric, kind_of, metrics_named
from hoicli.records.result_rows import check_row, result_row, write_setting
from tests.support.project import Hoicli, parsed
from tests.support.readme import RESULTS, schema_with_metrics

ROW = {"subset": "full", "value": 31.2, "n": 600, "unit": "%", "protocol": "hico", "tags": {}}
SIGNED = {**ROW, "signature": "protocol:hico|data:hico|gt:0000abcd|version:1.0.0"}
BIN = {**SIGNED, "bin_low": 0.1, "bin_high": 0.2}


def test_a_row_that_is_complete() -> None:
    assert result_row("mAP", **SIGNED) == {"metric": "mAP", **SIGNED}
    check_row({"metric": "mAP", **SIGNED, "note": "said"})


@pytest.mark.parametrize(
    ("metric", "change", "said"),
    [
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
    ],
)
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
