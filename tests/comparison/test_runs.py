"""Several runs of one model as one: their mean, its spread, and what its interval is over."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest

from hoicli.resampling.draws import Resampling
from hoicli.resampling.rounds import run_shares
from tests.support.project import FIXTURES, Hoicli

GT, PREDS, OTHER = (FIXTURES / name for name in ("gt.jsonl", "predictions.jsonl", "other.jsonl"))
KEYS = ("metric", "subset", "error", "oracle", "verb", "object", "image_id", "protocol")
Row = dict[str, Any]


def rows(hoicli: Hoicli, *arguments: object) -> list[Row]:
    result = hoicli("compare", "--gt", GT, "--bootstrap", 64, "--per-class", "--top", 100, *arguments)
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def by_key(found: list[Row], model: str) -> dict[tuple[Any, ...], Row]:
    return {tuple(row.get(key) for key in KEYS): row for row in found if row["tags"]["model"] == model}


def shortened(folder: Path, path: Path, lines: int) -> Path:
    part = folder / f"{path.stem}-{lines}.jsonl"
    part.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))
    return part


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_drawn_runs_are_spread_as_the_mean_of_runs_is(runs: int) -> None:
    """The variance of a mean of k values is s^2 / k; k drawn of k would give (k - 1) / k of it."""
    values = np.random.default_rng(runs).normal(size=runs)
    (shares, others) = run_shares([runs, runs], Resampling(20_000, 0))
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    assert (shares != others).any()  # each model's are drawn for themselves
    drawn = values @ shares
    assert drawn.mean() == pytest.approx(values.mean(), abs=0.02)
    assert drawn.var() == pytest.approx(values.var(ddof=1) / runs, rel=0.05)


def test_equal_runs_are_that_run(hoicli: Hoicli, tmp_path: Path) -> None:
    """The whole comparison, but for p, which several runs do not have, and what says that they are several."""
    again = tmp_path / "again.jsonl"
    again.write_bytes(OTHER.read_bytes())
    alone = rows(hoicli, "--name", "base,ours", PREDS, OTHER)
    twice = rows(hoicli, "--name", "base,ours,ours", PREDS, OTHER, again)
    assert by_key(alone, "ours").keys() == by_key(twice, "ours").keys()
    for key, row in by_key(twice, "ours").items():
        single = by_key(alone, "ours")[key]
        same = row.keys() - {"p", "q", "sd", "n", "signature"}
        assert {name: row[name] for name in same} == {name: single[name] for name in same}
        assert row.get("p") is None
        assert row.get("sd", 0.0) == 0.0
        several = "runs:1,2" if "baseline" in row["tags"] else "runs:2"
        assert row["signature"].replace(f"|{several}", "") == single["signature"]
        assert f"|{several}|" in row["signature"]
    assert by_key(alone, "base") == by_key(twice, "base")


def test_a_models_value_is_the_mean_of_its_runs(hoicli: Hoicli, tmp_path: Path) -> None:
    first, second = shortened(tmp_path, PREDS, 7), shortened(tmp_path, PREDS, 4)
    alone = [by_key(rows(hoicli, "--name", "runs,other", path, OTHER), "runs") for path in (first, second)]
    apart = [by_key(rows(hoicli, "--name", "runs,other", path, OTHER), "other") for path in (first, second)]
    both = rows(hoicli, "--name", "runs,runs,other", first, second, OTHER)
    for key, row in by_key(both, "runs").items():
        values = [run[key]["value"] for run in alone]
        if row["value"] is None:  # no class in this subset
            assert values == [None, None]
            continue
        assert row["value"] == pytest.approx(mean(values))
        assert row["sd"] == pytest.approx(stdev(values))
    for key, row in by_key(both, "other").items():
        if row["metric"].endswith("_diff") and all(key in run for run in apart):
            for name in {"from", "to", "value"} & row.keys():
                values = [run[key][name] for run in apart]
                expected = None if None in values else pytest.approx(mean(values), abs=1e-9)
                assert row[name] == expected, key
    assert any(row["metric"] == "mAP" and row["sd"] > 0.1 for row in both if "sd" in row)


def test_streams_of_one_name_are_said_to_be_runs(hoicli: Hoicli, tmp_path: Path) -> None:
    again = shortened(tmp_path, OTHER, 6)
    result = hoicli("compare", "--gt", GT, "--bootstrap", 8, "--name", "a,b,b", "--format", "md", PREDS, OTHER, again)
    assert "hoicli: b: the mean of 2 runs; its intervals are over images and runs" in result.err
    assert "b, run 2: 2 of 8 ground-truth images have no predictions" in result.err
    assert " ± " in result.out
    for names, paths, problem in (
        ("a,a", (PREDS, OTHER), "--name: all streams are runs of a; compare needs two or more models"),
        ("a,b,b", (PREDS, OTHER, OTHER), f"--name b: {OTHER} is given twice as one of its runs"),
        ("a,", (PREDS, OTHER), "--name a,: a name is empty"),
    ):
        wrong = hoicli("compare", "--gt", GT, "--name", names, *paths)
        assert wrong.code == 2
        assert wrong.err.startswith(f"hoicli: {problem}")
        assert wrong.err.count("\n") == 1
