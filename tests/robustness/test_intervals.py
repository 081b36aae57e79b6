"""Intervals of the indices and of differences between models, from rounds that are given."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from hoicli.resampling.draws import Resampling
from hoicli.resampling.intervals import interval, p_resampled
from hoicli.robustness.grids import CLEAN_CELL, Grid
from hoicli.robustness.sampling import Samples, difference_rows, intervals

ROUNDS = 60
BOUNDS = {
    "clean": (0.0, 100.0), "mri": (0.0, 100.0), "mean": (0.0, 100.0), "sigma": (0.0, 50.0), "cri": (0.0, math.inf),
    "cri_term": (0.0, math.inf), "relative_drop": (-math.inf, 100.0),
}  # fmt: skip
"""What each can be: shares in percent, the deviation of such, ratios, a loss that may be a gain."""


def grid(model: str, clean: float | None, one: float, two: float) -> Grid:
    cells = {("fog", 1): one, ("fog", 2): two}
    return Grid(model, "hico", "mAP", "full", {"by": "me"}, "data:hico", "a recipe", clean, cells, ())


def samples(*models: str) -> Samples:
    """Rounds of every model that spread as far as they can."""
    rng = np.random.default_rng(len(models))
    cells = {
        model: {CLEAN_CELL: rng.choice([1.0, 100.0], ROUNDS)}
        | {("fog", level): rng.choice([0.0, 100.0], ROUNDS) for level in (1, 2)}
        for model in models
    }
    return Samples(Resampling(ROUNDS, 7), {("hico", "full"): cells})


def test_no_interval_goes_beyond_what_a_metric_can_be() -> None:
    reached = set()
    for values in ((98.0, 98.0, 97.0), (2.0, 2.0, 1.0), (50.0, 98.0, 2.0), (98.0, 2.0, 1.0), (2.0, 98.0, 98.0)):
        of, drawn = grid("a", *values), samples("a")
        rounds = drawn.of(of)
        assert rounds is not None
        found = intervals([of], drawn)["a"]
        assert {metric for metric, _ in found} == BOUNDS.keys()
        for (metric, part), ends in found.items():
            assert ends is not None
            assert BOUNDS[metric][0] <= ends[0] < ends[1] <= BOUNDS[metric][1]
            width = np.quantile(rounds[metric, part], 0.975) - np.quantile(rounds[metric, part], 0.025)
            if set(ends).isdisjoint(BOUNDS[metric]):
                assert ends[1] - ends[0] == pytest.approx(width)
            reached |= {(metric, bound) for bound in BOUNDS[metric] if bound in ends}
    assert reached == {(metric, bound) for metric, bounds in BOUNDS.items() for bound in bounds if math.isfinite(bound)}


def test_a_difference_between_models_is_as_large_as_its_metric_allows() -> None:
    first, second = grid("a", 2.0, 2.0, 1.0), grid("b", 98.0, 98.0, 97.0)
    drawn = samples("a", "b")
    sides = {of.model: drawn.of(of) for of in (first, second)}
    for baseline, sign in (("a", 1), ("b", -1)):
        rows = list(difference_rows([first, second], drawn, baseline, "model", tags={"run": "1"}))
        assert [row["metric"] for row in rows] == ["clean_diff", "mri_diff", "cri_diff", "relative_drop_diff"]
        for row in rows:
            metric = row["metric"].removesuffix("_diff")
            one, other = (found for found in sides.values() if found is not None)
            change = sign * (other[metric, ()] - one[metric, ()])
            most = 100.0 if metric in ("clean", "mri") else math.inf
            assert row["value"] == row["to"] - row["from"]
            assert (row["ci_low"], row["ci_high"]) == interval(row["value"], change, lowest=-most, highest=most)
            assert row["p_bootstrap"] == p_resampled(row["value"], change)
            assert (row["unit"], row["n"], row["subset"]) == ("ratio" if metric == "cri" else "%", 2, "full")
            assert row["tags"] == {"by": "me", "model": "ab"[sign > 0], "baseline": baseline, "run": "1"}
            assert row["protocol"] == "hico"
            assert "|boot:60|seed:7|" in row["signature"]
            assert (sign * most in (row["ci_low"], row["ci_high"])) == (most == 100)
            assert max(abs(row["ci_low"]), abs(row["ci_high"])) > (0 if metric == "cri" else 99)


def test_without_rounds_of_every_cell_there_is_neither() -> None:
    first, second = grid("a", 2.0, 2.0, 1.0), grid("b", 98.0, 98.0, 97.0)
    drawn = samples("a", "b")
    assert list(difference_rows([first, second], drawn, "c", "model")) == []
    assert list(difference_rows([first], drawn, "a", "model")) == []
    assert drawn.of(replace(first, metric="AP")) is None
    assert drawn.of(replace(first, subset="rare")) is None
    del drawn.rounds["hico", "full"]["b"]["fog", 2]
    assert intervals([first, second], drawn).keys() == {"a"}
    assert list(difference_rows([first, second], drawn, "a", "model")) == []
    assert list(difference_rows([first, second], drawn, "b", "model")) == []


def test_without_a_clean_value_there_are_no_rounds_of_it() -> None:
    of, drawn = grid("a", None, 2.0, 1.0), samples("a")
    del drawn.rounds["hico", "full"]["a"][CLEAN_CELL]
    rounds, found = drawn.of(of), intervals([of], drawn)["a"]
    assert rounds is not None
    assert np.isnan(rounds["cri", ()]).all()
    assert found["clean", ()] is found["cri", ()] is found["relative_drop", ()] is None
    assert found["mri", ()] is not None
    rows = {
        row["metric"]: row for row in difference_rows([of, grid("b", None, 2.0, 1.0)], samples("a", "b"), "a", "model")
    }
    assert (rows["cri_diff"]["value"], rows["cri_diff"]["ci_low"], rows["cri_diff"]["p_bootstrap"]) == (
        None,
        None,
        None,
    )
    assert rows["mri_diff"]["value"] == 0
