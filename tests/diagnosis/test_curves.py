"""Curves against eval's AP, against a slow twin, and what may not change a byte."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoicli.diagnosis.score_curves import BINS, Curve, Curves, calibration, recall_levels
from hoicli.evaluation.evaluation_rows import Evaluated, Wanted
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.recall_grids import GRIDS
from hoicli.vocabulary.datasets import load
from tests.support.kernel import tally
from tests.support.project import PAIR, Data, Hoicli, Record, parsed
from tests.support.strategies import datasets

HICO = load("hico")
Row = dict[str, Any]


def rows_of(truth: list[Record], predictions: list[Record], protocol: str) -> list[Row]:
    ((row, results, lists),) = tally(truth, predictions, [PROTOCOLS[protocol]]).scored_results(HICO)
    (evaluated,) = Evaluated.split_by_slices(row, HICO, Wanted(), results, {"data": "hico", "gt": "0"}, {})
    return list(Curves(evaluated, lists, None).rows())


def by_class(rows: list[Row], metric: str) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row["metric"] == metric and row.get("verb"):
            found[row["verb"], row.get("object") or row.get("role") or ""].append(row)
    return found


def integrated(recalls: list[Row], precisions: list[Row], grid: tuple[float, ...]) -> float:
    value = {row["rank"]: row["value"] for row in precisions}
    n = recalls[0]["n"] if recalls else 0
    points = [(round(row["value"] * n / 100), value[row["rank"]]) for row in recalls if row["value"] is not None]
    best = [max((p for found, p in points if found / n >= level), default=0.0) for level in grid]
    return sum(best) / len(grid)


@settings(max_examples=20)
@given(datasets(), st.sampled_from(["hico", "qpic", "upt", "diag", "inp-cc"]))
def test_the_rows_of_a_curve_integrate_to_the_ap_of_eval(scene: Data, name: str) -> None:
    protocol = PROTOCOLS[name]
    rows = rows_of(*scene, name)
    ((_, results),) = tally(*scene, [protocol]).results(HICO)
    recalls, precisions = by_class(rows, "recall"), by_class(rows, "precision")
    for (verb, name_), (row,) in by_class(rows, "AP").items():
        number = HICO.interaction_ids[verb, name_]
        assert row["value"] == 100 * results.ap[number]
        curve = integrated(recalls[verb, name_], precisions[verb, name_], protocol.grid)
        assert curve == pytest.approx(row["value"], abs=1e-9)
    levels = [row for row in rows if row["metric"] == "mean_precision" and row["subset"] == "full"]
    grid = {round(100 * level, 10) for level in protocol.grid}
    (whole,) = [row["value"] for row in rows if row["metric"] == "mAP" and row["subset"] == "full"]
    read = [row["value"] for row in levels if row["recall"] in grid]
    assert (whole is None and not read) or np.mean(read) == pytest.approx(whole, abs=1e-9)


lists = st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.2, 0.5, 0.9]) | st.floats(0, 1), st.booleans()), max_size=30)


@given(lists, st.integers(0, 5), st.booleans())
def test_best_f1_and_thinning_against_a_slow_twin(entries: list[tuple[float, bool]], more: int, pooled: bool) -> None:
    entries = sorted(entries, key=lambda one: -one[0])
    score, hit = np.array([s for s, _ in entries]), np.array([h for _, h in entries], dtype=bool)
    positives = int(hit.sum()) + more
    curve = Curve(score, hit, positives, pooled)

    def at(threshold: float) -> tuple[int, int]:
        kept = [right for one, right in entries if one >= threshold]
        return sum(kept), len(kept)

    for threshold in set(score.tolist()):
        found, kept = at(threshold)
        assert curve.true_positives[kept - 1] == found
    best, scores = curve.best, sorted(set(score.tolist()), reverse=True)
    f1 = [2 * at(one)[0] / (at(one)[1] + positives) if positives else 0.0 for one in scores]
    if not hit.any():
        assert best is None
    else:
        assert best is not None
        assert score[best] == scores[f1.index(max(f1))]
    levels = recall_levels(GRIDS["arange"], 20)
    points = [point for point in range(len(entries)) if curve.reachable[point] or not pooled]
    wanted = set()
    for level in levels:
        enough = [point for point in points if curve.recall[point] >= level]
        if enough:
            wanted.add(max(enough, key=lambda point: (curve.precision[point], point)))
    assert curve.interpolation_points(levels).tolist() == sorted(wanted)
    spread: set[int] = set()
    if entries:
        high, low = entries[0][0], entries[-1][0]
        above = [at(cut)[1] for cut in np.linspace(high, low, 8)[:-1].tolist()]
        spread = {count - 1 for count in (*above, len(entries))}
    assert set(curve.points(levels, 7)) == wanted | ({best} - {None}) | spread
    assert set(scores) == set(score[curve.reachable].tolist())


@given(lists)
def test_calibration_against_a_slow_twin(entries: list[tuple[float, bool]]) -> None:
    score, hit = np.array([s for s, _ in entries]), np.array([h for _, h in entries], dtype=bool)
    found = calibration(score, hit)
    assert found is not None
    error = 0.0
    for at in range(BINS):
        inside = [(s, h) for s, h in entries if at / BINS < s <= (at + 1) / BINS or (s == 0 and at == 0)]
        assert found.count[at] == len(inside)
        if inside:
            error += abs(sum(h for _, h in inside) - sum(s for s, _ in inside)) / len(entries)
    assert (found.error is None) == (not entries)
    assert found.error is None or found.error == pytest.approx(error, abs=1e-12)


def test_scores_that_are_no_probabilities_have_no_calibration() -> None:
    assert calibration(np.array([0.5, 1.5]), np.array([True, False])) is None
    assert calibration(np.array([-0.1]), np.array([True])) is None
    found = calibration(np.array([0.0, 0.5, 1.0]), np.array([False, True, True]))
    assert found is not None
    assert np.flatnonzero(found.count).tolist() == [0, 7, 14]  # 0 is in the first, 1 in the last


def test_the_points_are_sampled_by_threshold_too() -> None:
    """The first prediction is right, the next ones are wrong, and precision recovers: no point from the first to the
    recovery decides a recall, and a straight line between the two was far off."""
    rows = 1000
    score = np.linspace(1, 0, rows)
    hit = np.arange(rows) % 2 == 0
    hit[1:20] = False
    curve = Curve(score, hit, int(hit.sum()))
    levels = recall_levels(GRIDS["arange"], 100)
    assert np.diff(score[curve.interpolation_points(levels)]).min() < -0.3
    points = curve.points(levels, 100)
    assert np.diff(score[points]).min() > -0.02
    exact = np.interp(-score, -score[points], curve.precision[points])
    assert np.abs(exact - curve.precision)[20:].max() < 0.05
    assert len(Curve(np.array([1.5e308, 0.0, -1.5e308]), hit[:3], 2).points((), 100)) == 3


def test_a_class_by_name(hoicli: Hoicli) -> None:
    rows = parsed(hoicli("curves", "--interaction", "pet dog", *PAIR).out)
    group = HICO.group_of[HICO.interaction_ids["pet", "dog"]]
    assert {(row["subset"], row.get("verb"), row.get("object")) for row in rows} == {
        *((subset, None, None) for subset in ("full", "rare", "non_rare")), (group, "pet", "dog"),
    }  # fmt: skip


@pytest.mark.parametrize(("words", "said"), [
    ("--protocol hico,upt", "--protocol hico,upt: one protocol says what is right; name one"),
    ("--interaction ride",
     "--interaction ride: no class of hico has it; hoicli vocab hico --list interactions lists them"),
])  # fmt: skip
def test_what_is_refused(hoicli: Hoicli, words: str, said: str) -> None:
    result = hoicli("curves", *words.split(), *PAIR)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"hoicli: {result.err[8:]}"
    assert said in result.err
