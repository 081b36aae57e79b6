"""Intervals and comparisons: weighted lists against really resampled dumps, statistics with known answers, and the laws
of order, scale and seed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hoicli as package
from hoicli.diagnosis.diagnosed_models import match_and_diagnose
from hoicli.diagnosis.repairs import Diagnosis
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.selection import choose_protocols, diagnosed_protocol
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats
from hoicli.records.oracles import ORACLES
from hoicli.resampling.comparison import Difference, difference, image_differences
from hoicli.resampling.draws import Resampling
from hoicli.resampling.intervals import interval
from hoicli.resampling.ranked import RankedLists
from hoicli.resampling.rounds import Rounds, resample, swap_outputs
from tests.support import strategies
from tests.support.kernel import HICO, Given, evaluate, ground_truth, lines, tally
from tests.support.project import GT, OTHER, PREDICTIONS, Data, Hoicli, Record, parsed, records_of, refusal, saved

EVERY = choose_protocols(["all"], "hico")
"""The shares of the runs of two models of one run each."""


def ranked(truth: Sequence[Record], predictions: Sequence[Record]) -> tuple[list[str], dict[str, Any]]:
    gathered = tally(truth, predictions, EVERY)
    ids = gathered.image_ids
    return ids, {row.name: lists for row, _, lists in gathered.ranked_results(HICO, ids)}


def without_ties(predictions: Sequence[Record]) -> None:
    """Give every prediction a score of its own, so that no tie hides behind a copy's new id."""
    count = sum(len(record["hois"]) for record in predictions)
    order = np.random.default_rng(count).permutation(count).tolist()
    for record in predictions:
        for hoi in record["hois"]:
            hoi["score"] = order.pop() / 1000


def copies(records: Sequence[Record], weights: dict[str, int]) -> list[Record]:
    return [
        {**record, "image_id": f"{record['image_id']}#{copy}"}
        for record in records
        for copy in range(weights[record["image_id"]])
    ]


@given(strategies.datasets(), st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_weights_are_copies_of_images(data: Data, weights: list[int]) -> None:
    truth, predictions = data
    without_ties(predictions)
    ids, lists = ranked(truth, predictions)
    weight = np.array(weights[: len(ids)], dtype=np.int32)
    of_image = dict(zip(ids, weight.tolist(), strict=True))
    if not weight.any():
        return
    expected = evaluate(copies(truth, of_image), copies(predictions, of_image))
    for name, results in expected.items():
        ap, positives = lists[name].ap(weight[:, np.newaxis])
        np.testing.assert_allclose(ap[:, 0], results.ap, atol=1e-14)
        assert positives[:, 0].tolist() == results.positives.tolist()


@given(strategies.datasets(), strategies.datasets())
def test_joined_lists_are_each_model_again(data: Data, other: Data) -> None:
    truth, predictions = data
    known = {record["image_id"] for record in truth}
    rivals = [record for record in other[1] if record["image_id"] in known]
    _, lists = ranked(truth, predictions)
    _, others = ranked(truth, rivals)
    for name, first in lists.items():
        second, images = others[name], first.images
        mixed = first.join_outputs(second)
        for alone, sides in ((first, (1, 0)), (second, (0, 1))):
            ap, positives = mixed.ap(np.repeat(sides, images).astype(np.int32)[:, np.newaxis])
            expected, counted = alone.ap(np.ones((images, 1), dtype=np.int32))
            np.testing.assert_allclose(ap, expected, atol=1e-14)
            assert (positives == counted).all()


@given(strategies.datasets())
def test_leaving_an_image_out_is_evaluating_without_it(data: Data) -> None:
    truth, predictions = data
    ids, lists = ranked(truth, predictions)
    members = np.arange(len(HICO.interactions))
    without = lists["hico"].without_each_image(members)
    assert without is not None
    nothing = lists["hico"].unannotated
    for image_id, found in zip(ids, without.tolist(), strict=True):
        annotated, rest = ([record for record in side if record["image_id"] != image_id] for side in data)
        results = evaluate(annotated, rest)["hico"] if annotated else None
        ap, positives = (np.zeros(600), np.zeros(600)) if results is None else (results.ap, results.positives)
        kept = nothing | (positives > 0)
        assert found == pytest.approx(ap[kept].sum() / max(kept.sum(), 1), abs=1e-14)


def diagnosis(truth: Sequence[Record], predictions: Sequence[Record]) -> Diagnosis:
    annotated, protocol = ground_truth(truth), diagnosed_protocol(HICO)
    filters = Filters(allow_uncounted=True)
    found = match_and_diagnose(Given(lines(predictions)), annotated, [], [protocol], filters, ErrorPolicy())
    return found.diagnoses[0]


@given(strategies.datasets())
def test_every_oracle_ranks_as_it_counts(data: Data) -> None:
    truth, predictions = data
    found = diagnosis(truth, predictions)
    ids = sorted(record["image_id"] for record in truth)
    results = list(found.results(HICO))
    for result, of in zip(results, found.make_list_ranker(ids)([result.oracle for result in results]), strict=True):
        ap, _ = of.ap(np.ones((len(ids), 1), dtype=np.int32))
        np.testing.assert_allclose(ap[:, 0], result.ap, atol=1e-14)
    counts = found.counts()
    for error, (image, class_) in found.group_errors(ids).items():
        assert np.bincount(class_, minlength=600).tolist() == counts[error].tolist()
        assert len(image) == len(class_)
        assert set(image.tolist()) <= set(range(len(ids)))


# what intervals and p are for: a population that test sets are drawn from
CLASSES, IMAGES = 100, 200


def model(
    rng: np.random.Generator, *, images: int, quality: float, truth: tuple[Any, Any] | None = None
) -> RankedLists:
    """A detector on random images with CLASSES classes: `quality` is how far its true positives' scores stand out."""
    if truth is None:
        truth = np.repeat(np.arange(images), 2), rng.integers(0, CLASSES, 2 * images)
    truth_image, truth_class = truth
    found = rng.random(len(truth_image)) < 0.8
    false = rng.integers(0, images, 4 * images), rng.integers(0, CLASSES, 4 * images)
    image = np.concatenate([truth_image[found], false[0]])
    class_ = np.concatenate([truth_class[found], false[1]])
    hit = np.concatenate([np.ones(found.sum(), dtype=bool), np.zeros(4 * images, dtype=bool)])
    # What an image does to one of its scores it does to all of them: that is why images are resampled, not triplets.
    score = rng.normal(size=len(hit)) + quality * hit + rng.normal(size=images)[image]
    order = np.lexsort((-score, class_))
    bounds = np.searchsorted(class_[order], np.arange(CLASSES + 1))
    columns = hit[order], image[order], bounds, truth_image, truth_class
    return RankedLists(*columns, images, PROTOCOLS["hico"].grid, score=score[order])


def mean_of(rounds: Rounds) -> Floats:
    return rounds.means(np.arange(CLASSES), np.zeros(CLASSES, dtype=bool))


def test_intervals_cover_the_expected_map_of_a_test_set() -> None:
    """Of 95 % intervals about 95 % hold the mAP to be expected of a test set of this size; the percentiles of the
    resamples hold it far less often, as AP is biased upwards in resamples."""
    rng = np.random.default_rng(0)
    estimates, ends, percentiles = [], [], []
    for trial in range(120):
        lists = model(rng, images=IMAGES, quality=1.5)
        (rounds,) = resample([lists], Resampling(128, trial), "")
        estimate = float(mean_of(Rounds(*lists.ap(np.ones((IMAGES, 1), dtype=np.int32))))[0])
        spread = mean_of(rounds)
        estimates.append(estimate)
        ends.append(interval(estimate, spread, IMAGES, lowest=0.0, highest=1.0))
        percentiles.append(np.quantile(spread, [0.025, 0.975]).tolist())
    expected = float(np.mean(estimates))
    covered = sum(pair is not None and pair[0] <= expected <= pair[1] for pair in ends) / len(ends)
    plain = sum(low <= expected <= high for low, high in percentiles) / len(percentiles)
    assert 0.91 <= covered <= 0.99
    assert plain < covered - 0.1


def test_p_is_fair_when_two_models_are_alike_and_small_when_not() -> None:
    rng = np.random.default_rng(1)
    alike: list[Difference] = []
    apart: list[Difference] = []
    for trial in range(40):
        truth = np.repeat(np.arange(IMAGES), 2), rng.integers(0, CLASSES, 2 * IMAGES)
        first, second, better = (model(rng, images=IMAGES, quality=quality, truth=truth) for quality in (1.5, 1.5, 3.0))
        for rival, into in ((second, alike), (better, apart)):
            paired = resample([first, rival], Resampling(128, trial), "")
            swaps = swap_outputs(first, rival, Resampling(128, trial), "")
            whole = [mean_of(Rounds(*side.ap(np.ones((IMAGES, 1), dtype=np.int32))))[0] for side in (first, rival)]
            resamples, coins = (mean_of(pair[1]) - mean_of(pair[0]) for pair in (paired, swaps))
            into.append(difference(float(whole[0]), float(whole[1]), resamples, coins, IMAGES))
    for name in ("p", "p_bootstrap"):
        fair, powerful = (np.array([getattr(found, name) for found in side]) for side in (alike, apart))
        assert (fair <= 0.05).mean() <= 0.13
        assert 0.3 < fair.mean() < 0.7
        assert (powerful <= 0.05).mean() > 0.8


def test_image_differences_add_up_where_each_image_has_its_own_class() -> None:
    """Three images, a class each: the second model finds the third image's triplet as well."""
    common: tuple[Any, ...] = (np.arange(3), np.arange(3), 3, PROTOCOLS["hico"].grid)
    first = RankedLists(np.array([True, True]), np.array([0, 1]), np.array([0, 1, 2, 2]), *common)
    second = RankedLists(np.ones(3, dtype=bool), np.arange(3), np.arange(4), *common)
    # 2/3 -> 1: without image 2 both are 1; without image 0 it is 1/2 -> 1.
    moved = image_differences(first, second, np.arange(3))
    assert moved is not None
    assert moved.tolist() == pytest.approx([1 / 3 - 1 / 2, 1 / 3 - 1 / 2, 1 / 3 - 0])


GATE = ("--fail-if-worse",)


@pytest.mark.parametrize("words", [(), ("--per-class",), ("--iou", "0.3")])
def test_recall_is_told_and_a_row_beside_the_classes(hoicli: Hoicli, words: tuple[str, ...]) -> None:
    done = hoicli("compare", "--gt", GT, "--bootstrap", 0, "--no-errors", *words, PREDICTIONS, OTHER)
    assert "mean max recall 2.00 to 1.83)" in done.err
    assert any(row["metric"] == "mean_max_recall" for row in parsed(done.out)) == ("--per-class" in words)
    assert ("(hico, IoU 0.3: 1.94 to 1.75)" in done.err) == ("--iou" in words)


def test_eval_gives_every_map_an_interval(hoicli: Hoicli) -> None:
    plain = parsed(hoicli("eval", "--gt", GT, "--metric", "mean_max_recall", PREDICTIONS).out)
    rows = parsed(hoicli("eval", "--gt", GT, "--bootstrap", 200, "--per-class", PREDICTIONS).out)
    means = [row for row in rows if "verb" not in row]
    assert [(row["metric"], row["subset"], row["value"]) for row in means] == [
        (row["metric"], row["subset"], row["value"]) for row in plain
    ]
    for row in rows:
        has_one = row["metric"] in ("mAP", "AP")
        assert ("ci_low" in row) == ("boot:200|ci:student|seed:0" in row["signature"]) == has_one
        if has_one and row["ci_low"] is not None:
            assert 0 <= row["ci_low"] <= row["value"] <= row["ci_high"] <= 100
    full = next(row for row in rows if row["metric"] == "mAP" and row["protocol"] == "qpic")
    assert full["ci_low"] < full["value"] < full["ci_high"]
    single = [row for row in rows if row["metric"] == "AP" and row["n"] == 1]
    assert single
    assert all(row["ci_low"] is None for row in single)  # one image tells nothing of others


def test_intervals_depend_on_the_seed_alone(hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: object) -> str:
        return hoicli("eval", "--gt", GT, "--bootstrap", 100, "--per-class", *arguments).out

    whole = run(PREDICTIONS)
    records = PREDICTIONS.read_bytes().splitlines(keepends=True)
    parts = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    parts[0].write_bytes(b"".join(records[:3]))
    parts[1].write_bytes(b"".join(reversed(records[3:])))
    assert run(*reversed(parts)) == whole
    assert run("--seed", 1, PREDICTIONS) != whole
    forked: list[int] = []
    monkeypatch.setattr("hoicli.resampling.rounds.WORTH_FORKING", 0)

    def fork(plain: Callable[[], int] = os.fork) -> int:
        forked.append(1)
        return plain()

    monkeypatch.setattr("hoicli.io.forks.os.fork", fork)
    assert run(PREDICTIONS) == whole
    assert bool(forked) == (sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1)


def compared(hoicli: Hoicli, *arguments: object, gt: Path = GT, rounds: int = 100) -> list[Record]:
    return records_of(hoicli("compare", "--gt", gt, "--bootstrap", rounds, *arguments))


def test_compare_says_what_changed(hoicli: Hoicli) -> None:
    rows = compared(hoicli, "--protocol", "qpic,diag", PREDICTIONS, OTHER)
    metrics = {row["metric"] for row in rows}
    assert metrics >= {"mAP", "mAP_diff", "AP_diff", "image_diff", "count_diff", "delta_mAP_diff"}
    for name, path in (("predictions", PREDICTIONS), ("other", OTHER)):
        alone = parsed(hoicli("eval", "--gt", GT, "--protocol", "qpic,diag", "--bootstrap", 100, path).out)
        mine = [row | {"tags": {}} for row in rows if row["tags"] == {"model": name}]
        assert mine == alone
        errors = parsed(hoicli("diagnose", "--gt", GT, path).out)
        side = "from" if name == "predictions" else "to"
        counts = {(row["error"], row["subset"]): row["value"] for row in errors if row["metric"] == "count"}
        gains = {(row["oracle"], row["subset"]): row["value"] for row in errors if row["metric"] == "delta_mAP"}
        found = {(row["error"], row["subset"]): row[side] for row in rows if row["metric"] == "count_diff"}
        assert found == counts
        found = {(row["oracle"], row["subset"]): row[side] for row in rows if row["metric"] == "delta_mAP_diff"}
        assert found == pytest.approx(gains)
    for row in rows:
        if row["metric"].endswith("_diff") and row["metric"] != "image_diff":
            assert row["value"] == pytest.approx(row["to"] - row["from"])
            assert row["p"] is None or 0 < row["p"] <= 1
            assert row["ci_low"] is None or row["ci_low"] <= row["value"] <= row["ci_high"]
            assert row["tags"] == {"model": "other", "baseline": "predictions"}


def test_a_model_is_not_different_from_itself(hoicli: Hoicli, tmp_path: Path) -> None:
    again = saved(tmp_path / "again.jsonl", PREDICTIONS.read_bytes())
    for row in compared(hoicli, "--per-class", PREDICTIONS, again):
        if row["metric"].endswith("_diff"):
            assert row["value"] == 0
            assert row["p"] in (1.0, None)
            assert row["p_bootstrap"] in (1.0, None)
            assert (row["ci_low"], row["ci_high"]) in ((0, 0), (None, None))


def test_the_scale_of_one_models_scores_changes_nothing(hoicli: Hoicli, tmp_path: Path) -> None:
    """But under an oracle that has a constant of its own, which may be a score."""

    def unscaled(rows: list[Record]) -> list[Record]:
        return [row for row in rows if "oracle" not in row or not ORACLES[row["oracle"]].settings]

    scaled = tmp_path / "other.jsonl"
    with scaled.open("wb") as stream:
        for line in OTHER.read_bytes().splitlines():
            record = orjson.loads(line)
            for hoi in record["hois"]:
                hoi["score"] = hoi["score"] ** 3 / 7
            stream.write(orjson.dumps(record) + b"\n")
    assert unscaled(compared(hoicli, PREDICTIONS, scaled)) == unscaled(compared(hoicli, PREDICTIONS, OTHER))


def test_the_other_way_round_is_the_negative(hoicli: Hoicli) -> None:
    def differences(*paths: Path) -> dict[tuple[Any, ...], Record]:
        keys = ("metric", "subset", "error", "oracle", "verb", "object", "image_id")
        found = compared(hoicli, "--per-class", "--top", 100, *paths)
        return {tuple(row.get(key) for key in keys): row for row in found if row["metric"].endswith("_diff")}

    there, back = differences(PREDICTIONS, OTHER), differences(OTHER, PREDICTIONS)
    assert there.keys() == back.keys()
    for key, row in there.items():
        assert row["value"] == pytest.approx(-back[key]["value"], abs=1e-12)
        if row.get("ci_low") is not None:
            assert row["ci_low"] == pytest.approx(-back[key]["ci_high"], abs=1e-9)
        for name in ("p", "p_bootstrap", "q"):
            assert row.get(name) == back[key].get(name)


def test_no_resamples_are_no_intervals(hoicli: Hoicli) -> None:
    quick = compared(hoicli, "--per-class", PREDICTIONS, OTHER, rounds=0)
    sure = compared(hoicli, "--per-class", PREDICTIONS, OTHER, rounds=50)
    assert "classes_better" in {row["metric"] for row in sure}

    def key(row: Record) -> tuple[Any, ...]:
        names = ("metric", "subset", "verb", "object", "error", "oracle", "tags", "image_id")
        return tuple(str(row.get(name)) for name in names)

    tested = {key(row): row for row in sure if not row["metric"].startswith("classes_")}
    assert {key(row) for row in quick} == tested.keys()
    for row in quick:
        assert row["value"] == tested[key(row)]["value"]
        assert all(row.get(name) is None for name in ("ci_low", "ci_high", "p", "p_bootstrap", "q"))
        assert "boot" not in row["signature"]
        assert "seed" not in row["signature"]


def test_classes_come_by_p_then_size_then_name(hoicli: Hoicli, tmp_path: Path) -> None:
    """Three classes of 12 images each: one always found by the second model alone, one half the time, one never."""
    sides: dict[str, list[Record]] = {"gt": [], "a": [], "b": []}
    place = {"kite": 1, "dog": 2, "boat": 3}
    verbs = {"kite": "fly", "dog": "walk", "boat": "row"}
    boxes = [[0, 0, 9, 9], *([20 * at, 20, 20 * at + 9, 39] for at in range(1, 4))]
    scene = {"boxes": boxes, "labels": ["person", *place]}
    for number in range(12):
        of_b = ["kite", *(["dog"] if number % 2 else []), "boat"]
        for name, found in (("gt", list(place)), ("a", ["boat"]), ("b", of_b)):
            shown = {} if name == "gt" else {"score": 0.9 - number / 100}
            hois = [{"subject": 0, "object": place[label], "verb": verbs[label], **shown} for label in found]
            sides[name].append({"image_id": f"i{number}", **scene, "hois": hois})
    paths = []
    for name, records in sides.items():
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(record) + "\n" for record in records))
    options = ("--per-class", "--bootstrap", 200, "--no-errors", "--protocol", "qpic")
    result = hoicli("compare", "--gt", paths[0], *options, *paths[1:])
    rows = parsed(result.out)
    classes = [row for row in rows if row["metric"] == "AP_diff"]
    assert [row["verb"] for row in classes] == ["fly", "walk", "row"]
    assert [row["p"] for row in classes] == sorted(row["p"] for row in classes)
    counts = {(row["metric"], row["subset"]): (row["value"], row["n"]) for row in rows if row["unit"] == "classes"}
    assert counts["classes_better", "full"] == (sum(row["q"] < 0.05 for row in classes), 3)
    assert counts["classes_better", "full"][0] >= 1
    assert counts["classes_worse", "full"] == (0, 3)
    assert "b is better than a: +" in result.err
    untested = compared(hoicli, "--per-class", "--protocol", "qpic", *paths[1:], gt=paths[0], rounds=0)
    assert [row["verb"] for row in untested if row["metric"] == "AP_diff"] == ["fly", "walk", "row"]
    table = hoicli("compare", "--gt", paths[0], "--format", "table", "--bootstrap", 200, "--no-errors", *paths[1:]).out
    assert table.startswith("b is better than a: +")
    heads = next(line.split() for line in table.splitlines() if line.startswith("verb "))
    assert heads[heads.index("n_gt") + 1] == "from"


def test_a_gate_ends_with_3_where_the_model_is_worse(hoicli: Hoicli, tmp_path: Path) -> None:
    """Of 40 images with a kite each: found in all, in all but one, or in half of them."""
    fly = {"subject": 0, "object": 1, "verb": "fly"}
    truth = {"boxes": [[0, 0, 9, 9], [20, 20, 39, 39]], "labels": ["person", "kite"]}

    def written(name: str, missed: set[int]) -> Path:
        path, lines = tmp_path / f"{name}.jsonl", []
        for image in range(40):
            found = fly if name == "gt" else {**fly, "score": 1 - image / 100}
            lines.append(json.dumps({"image_id": str(image), **truth, "hois": [] if image in missed else [found]}))
        path.write_text("\n".join(lines))
        return path

    gt, base, same = written("gt", set()), written("base", {3}), written("same", {3})
    noise, half, best = written("noise", {5}), written("half", set(range(20))), written("best", set())

    def gate(*words: object) -> tuple[int, str]:
        call = ("compare", "--gt", gt, "--protocol", "qpic", "--no-errors", "--bootstrap", 200, base, *words)
        result = hoicli(*call, *GATE, "--quiet")
        plain = [word for at, word in enumerate(call) if word != "--margin" and call[at - 1] != "--margin"]
        assert result.out == hoicli(*plain).out
        assert result.out
        return result.code, result.err

    code, said = gate(half)
    assert (code, said.count("\n")) == (3, 1)
    assert said.startswith("hoicli: half fails --fail-if-worse against base: the whole interval [-")
    assert gate(half, "--margin", 15)[0] == 3
    for passes in ((half, "--margin", 80), (same,), (noise,), (best,), (same, best, noise)):
        assert gate(*passes) == (0, "")
    assert gate(best, half)[0] == 3
    failed = package.compare(gt, [base, half], protocol="qpic", errors=False, bootstrap=200, fail_if_worse=True).failed
    assert failed is not None
    assert failed.code == "worse"


def test_what_is_wrong_with_a_stream_comes_before_any_note(hoicli: Hoicli, tmp_path: Path) -> None:
    broken = saved(tmp_path / "broken.jsonl", OTHER.read_text().replace('"score"', '"skore"'))
    assert refusal(hoicli("compare", "--gt", GT, PREDICTIONS, broken)).startswith(f"{broken}:1: hois[0].score: missing")


@pytest.mark.parametrize(("arguments", "message"), [
    (("compare", "--gt", GT, PREDICTIONS), "two or more streams"),
    (("compare", "--gt", GT, PREDICTIONS, PREDICTIONS), "is given twice: names must differ"),
    (("diagnose", "--gt", GT, "--name", "a,a", PREDICTIONS, OTHER), "--name: a, a: names must differ"),
    (("compare", "--gt", GT, "--bootstrap", "1", PREDICTIONS, OTHER),
     "--bootstrap 1: give a whole number from 2 to 100,000, or 0 for none"),
    (("compare", "--gt", "-", "-", OTHER), "stdin (-) can be read only once"),
    (("compare", "--gt", GT, "--margin", "1", PREDICTIONS, OTHER), "--margin 1: goes with --fail-if-worse"),
    (("compare", "--gt", GT, *GATE, "--margin", "-1", PREDICTIONS, OTHER),
     "--margin -1: give a number of at least 0"),
    (("compare", "--gt", GT, *GATE, "--margin", "nan", PREDICTIONS, OTHER),
     "--margin nan: give a number of at least 0"),
    (("compare", "--gt", GT, *GATE, "--bootstrap", "0", PREDICTIONS, OTHER), "leave --bootstrap 0 out"),
])  # fmt: skip
def test_wrong_calls(hoicli: Hoicli, arguments: tuple[object, ...], message: str) -> None:
    assert message in refusal(hoicli(*arguments), 2)
