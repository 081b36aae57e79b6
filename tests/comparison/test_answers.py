"""The answer in words: each verdict against the numbers that it rests on, from rows alone; and SHOE's metrics of two
models, each as shoe-eval has it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from hoicli.comparison.sentences import answers, failure, readable
from tests.support.project import SHOE, Hoicli, parsed, records_of, refusal
from tests.support.shoe import AWAY, image

Row = dict[str, Any]


def row(
    value: float | None,
    ends: tuple[float, float] | None,
    p: float | None,
    *,
    model: str = "ours",
    subset: str = "full",
    n: int = 600,
    boot: bool = True,
    **further: Any,
) -> Row:
    low, high = ends or (None, None)
    before = 40.0
    return {
        "metric": "mAP_diff", "subset": subset, "from": before, "to": None if value is None else before + value,
        "value": value, "n": n, "ci_low": low, "ci_high": high, "p": p, "p_bootstrap": p, "unit": "%",
        "protocol": "hico", "tags": {"model": model, "baseline": "base"},
        "signature": "protocol:hico|data:hico" + ("|boot:1000|seed:0" if boot else ""), **further,
    }  # fmt: skip


def counted(better: int, worse: int, n: int, **further: Any) -> list[Row]:
    common = row(0.0, None, None, **further)
    numbers = {"classes_better": better, "classes_worse": worse}
    return [{**common, "metric": metric, "value": value, "n": n} for metric, value in numbers.items()]


BETTER, WORSE, NEITHER = "is better than", "is worse than", "is not shown to differ from"
NO_WIDTH = "(without width, as all resamples agree: it does not show how images differ)"
DOUBT = "(its interval excludes 0, but p does not confirm it)"


@pytest.mark.parametrize(("value", "ends", "p", "verdict", "numbers", "end"), [
    (1.2, (0.4, 2.0), 0.003, BETTER, "+1.20 mAP (hico: 40.00 to 41.20)", "interval [0.40, 2.00], p = 0.003"),
    (-1.2, (-2.0, -0.4), 0.000999, WORSE, "-1.20 mAP (hico: 40.00 to 38.80)", "[-2.00, -0.40], p = 0.001"),
    (-0.75, (-2.34, 0.8), 0.39, NEITHER, "-0.75 mAP (hico: 40.00 to 39.25)", "[-2.34, 0.80], p = 0.39"),
    (0.75, (-0.8, 2.34), 0.39, NEITHER, "+0.75 mAP (hico: 40.00 to 40.75)", "[-0.80, 2.34], p = 0.39"),
    (0.0, (0.0, 0.0), 1.0, NEITHER, "0.00 mAP (hico: 40.00 to 40.00)", "[0.00, 0.00], p = 1"),
    (-0.001, (-0.1, 0.1), 0.9, NEITHER, "0.00 mAP (hico: 40.00 to 40.00)", "[-0.10, 0.10], p = 0.9"),
    (1.2, (1.2, 1.2 + 1e-14), 0.003, BETTER, "+1.20 mAP", f"interval [1.20, 1.20] {NO_WIDTH}, p = 0.003"),
    # one of the two is not enough
    (-1.19, (-2.63, -0.1), 1.0, NEITHER, "-1.19 mAP (hico: 40.00 to 38.81)", f"[-2.63, -0.10], p = 1 {DOUBT}"),
    (1.0, (-0.01, 2.0), 0.04, NEITHER, "+1.00 mAP", "p = 0.04 (p is small, but its interval includes 0)"),
    (1.0, (0.1, 2.0), 0.05, NEITHER, "+1.00 mAP", f"p = 0.05 {DOUBT}"),
])  # fmt: skip
def test_the_verdict_is_what_the_numbers_show(
    value: float, ends: tuple[float, float], p: float, verdict: str, numbers: str, end: str
) -> None:
    (sentence,) = answers([row(value, ends, p)])
    assert sentence.startswith(f"ours {verdict} base: {numbers}")
    assert sentence.endswith(end)


def test_nothing_to_test_is_said_to_be_untested() -> None:
    (sentence,) = answers([row(3.0, None, None)])
    assert sentence.startswith("ours is above base here, but no test was run (ground truth in fewer than two images)")
    assert sentence.endswith(": +3.00 mAP (hico: 40.00 to 43.00)")
    assert answers([row(None, None, None)]) == ["ours cannot be compared with base: hico has no class to average"]


def test_without_resamples_nothing_was_tested() -> None:
    for value, word in ((2.0, "above"), (-2.0, "below"), (0.0, "as good as")):
        (sentence,) = answers([row(value, None, None, boot=False)])
        assert f"ours is {word} base here, but no test was run (no resamples were asked for): " in sentence


@pytest.mark.parametrize(("better", "worse", "n", "said"), [
    (0, 0, 600, "0 of 600 classes differ at q < 0.05"),
    (1, 0, 600, "1 of 600 classes differs at q < 0.05: 1 better, 0 worse"),
    (7, 5, 511, "12 of the 511 classes that can be tested differ at q < 0.05: 7 better, 5 worse"),
    (0, 0, 0, "no class can be tested (each has ground truth in fewer than two images)"),
])  # fmt: skip
def test_classes_are_counted(better: int, worse: int, n: int, said: str) -> None:
    (sentence,) = answers([row(1.0, (0.4, 2.0), 0.01), *counted(better, worse, n)])
    assert sentence.endswith(f"; {said}")


def test_a_sentence_for_each_model_about_the_first_protocol_and_its_largest_subset() -> None:
    rows = [
        row(9.0, (8.0, 10.0), 0.001, subset="rare", n=138),
        row(-1.0, (-2.0, -0.5), 0.001, n=600),
        *counted(0, 3, 600),
        *counted(9, 9, 138, subset="rare"),
        row(5.0, (4.0, 6.0), 0.001, protocol="upt"),
        row(2.0, (1.0, 3.0), 0.001, model="third"),
        row(6.0, (4.0, 8.0), 0.001, tags={"model": "ours", "baseline": "base", "slice": "objects", "part": "small"}),
        {"metric": "mri_diff", "tags": {"model": "robust", "baseline": "base"}, "value": 1.0},
    ]
    first, second = answers(rows)
    assert first.startswith("ours is worse than base: -1.00 mAP (hico: ")
    assert first.endswith("; 3 of 600 classes differ at q < 0.05: 0 better, 3 worse")
    assert second.startswith("third is better than base: +2.00 mAP")
    assert "classes" not in second
    assert answers([]) == []


@pytest.mark.parametrize(("ends", "margin", "limit"), [
    ((-2.0, -0.4), 0.0, "below 0"),
    ((-2.0, -0.4), 0.39, "below -0.39"),
    ((-2.0, -0.4), 0.4, None),  # reaches the margin
    ((-2.0, 0.0), 0.0, None),
    ((-2.0, 0.8), 0.0, None),
    ((0.4, 2.0), 0.0, None),
])  # fmt: skip
def test_a_gate_fails_beyond_the_margin(ends: tuple[float, float], margin: float, limit: str | None) -> None:
    better = row(1.0, (0.5, 1.5), 0.01, model="third")
    rare = row(-9.0, (-10.0, -8.0), 0.001, subset="rare", n=138)  # no sentence is about it
    found = failure([row(-1.2, ends, 0.01), rare, better], margin)
    if limit is None:
        assert found is None
    else:
        assert found is not None
        said = f"the whole interval [-2.00, -0.40] of the difference in mAP (hico) is {limit}"
        assert (found.code, str(found)) == ("worse", f"ours fails --fail-if-worse against base: {said}")


def test_a_gate_shows_as_many_digits_as_say_why() -> None:
    for ends, shown in (((-3.68, -0.2906), "[-3.68, -0.29]"), ((-3.68, -0.0004), "[-3.6800, -0.0004]")):
        assert f"the whole interval {shown} of" in str(failure([row(-1.2, ends, 0.01)], 0.0))
    assert "[-3.680, -0.502] of" in str(failure([row(-1.2, (-3.68, -0.502), 0.01)], 0.5))


def test_a_gate_of_a_miss_rate_of_few_images_and_of_no_interval() -> None:
    miss_rate = {"metric": "gt_miss_rate_diff", "protocol": "shoe"}
    worse, better = (row(value, (value - 1, value + 1), 0.2) | miss_rate for value in (1.5, -1.5))
    assert str(failure([worse], 0.1)).endswith("in GT miss rate (shoe) is above 0.1 (p = 0.2 does not confirm it)")
    assert failure([better], 0.0) is None
    untested = row(-3.0, None, None, model="third")
    found = failure([better, untested], 0.0)
    assert (found and found.code, "no test was run" in str(found)) == ("untested", True)
    worst = failure([worse, untested], 0.0)
    assert worst is not None
    assert worst.code == "worse"


@pytest.mark.parametrize(("metric", "value", "verdict", "untested"), [
    ("soft_map", 1.5, BETTER, "above"),
    ("mf1", -1.5, WORSE, "below"),
    ("gt_miss_rate", -1.5, BETTER, "ahead of"),  # of a miss rate less is better
    ("prediction_miss_rate", 1.5, WORSE, "behind"),
])  # fmt: skip
def test_metrics_of_shoe_have_their_answers(metric: str, value: float, verdict: str, untested: str) -> None:
    further = {"metric": f"{metric}_diff", "protocol": "shoe"}
    tags = {"model": "ours", "baseline": "base", "delta": "0.5"}
    (sentence,) = answers([row(value, (value - 1, value + 1), 0.01, tags=tags) | further])
    words = {"soft_map": "soft mAP", "mf1": "mF1", "gt_miss_rate": "GT miss rate"}.get(metric, "prediction miss rate")
    ends = f"40.00 to {40 + value:.2f}"
    assert sentence.startswith(f"ours {verdict} base: {value:+.2f} {words} (shoe, delta 0.5: {ends})")
    (sentence,) = answers([row(value, None, None, boot=False) | further])
    assert sentence.startswith(f"ours is {untested} base here, but no test was run")
    (sentence,) = answers([row(None, None, None) | further])
    assert sentence == f"ours cannot be compared with base: one of them has no {words}"
    both = answers([row(1.0, (0.5, 1.5), 0.01), row(value, (value - 1, value + 1), 0.01) | further])
    assert len(both) == 2


def around(mean: Row, recall: tuple[float, float], **counts: int) -> list[Row]:
    """What a comparison has besides a mAP_diff: both recalls, and how many more errors of some types there are."""
    both = [
        {**mean, "metric": "mean_max_recall", "value": value, "tags": {"model": model}}
        for model, value in zip(("base", "ours"), recall, strict=True)
    ]
    ends = {"ci_low": 0, "ci_high": 0, "p": 1.0}
    of_errors = [{**mean, **ends, "metric": "count_diff", "error": error, "value": n} for error, n in counts.items()]
    return [mean, *both, *of_errors]


WORSE_BY_4 = row(-4.0, (-5.0, -3.0), 0.001)


def gain(oracle: str, value: float, ends: tuple[float, float], p: float = 0.01) -> Row:
    repaired = {"from": 10.0, "to": 10.0 + value, "value": value, "ci_low": ends[0], "ci_high": ends[1], "p": p}
    return {**WORSE_BY_4, **repaired, "metric": "delta_mAP_diff", "oracle": oracle, "protocol": "diag"}


ALL_ORDER = "all of it because it ranks its predictions worse"
FEWER_FOUND = "it finds fewer correct triplets (-4.50: mean max recall 70.00 to 65.50), but ranks them better (+0.50)"


@pytest.mark.parametrize(("rows", "said"), [
    (around(WORSE_BY_4, (70.0, 65.5)), FEWER_FOUND),
    (around(WORSE_BY_4, (70.0, 70.0)), f"{ALL_ORDER} (as much is found, mean max recall 70.00)"),
    (around(WORSE_BY_4, (70.0, 70.0), duplicate=3), f"{ALL_ORDER} (as much is found, mean"),
    (around(WORSE_BY_4, (70.0, 70.0), duplicate=0, interaction=0, missed_gt=2),
     f"{ALL_ORDER} (same predictions, other scores: as many of each type of error)"),
    ([*around(WORSE_BY_4, (70.0, 65.5)), *[
        gain("interaction", 2.0, (1.0, 3.0)), gain("association", 3.0, (-0.1, 6.0)),
        gain("object_box", 3.5, (0.1, 7.0), p=0.2), gain("human_box", -5.0, (-6.0, -4.0)),
        gain("false_positive", 9.0, (8.0, 10.0)),
     ]], f"{FEWER_FOUND}; interaction errors cost it 2.00 mAP more (repairing them gives +12.00, in the baseline "
     "+10.00, by diag)"),
    ([*around(WORSE_BY_4, (70.0, 65.5)), *[
        {**row(value, None, None), "metric": "AP_diff", "verb": verb, "object": "dog", "subset": "rare"}
        for verb, value in (("walk", -60.0), ("hold", 90.0), ("hug", -90.0))
     ]], f"{FEWER_FOUND}; 2 classes account for -0.25 (most of all hug dog, -90.00 AP)"),
    ([*around(WORSE_BY_4, (70.0, 65.5)),
      *({**WORSE_BY_4, "metric": "image_diff", "image_id": name, "value": value}
        for name, value in (("a", 0.6), ("b", -0.5), ("c", -0.1)))], f"{FEWER_FOUND}; image b accounts for -0.50"),
])  # fmt: skip
def test_where_a_difference_comes_from(rows: list[Row], said: str) -> None:
    assert answers(rows)[1].startswith(f"ours loses its 4.00 mAP as follows: {said}")


def test_no_difference_comes_from_nowhere() -> None:
    assert len(answers(around(row(0.0, (0.0, 0.0), 1.0), (70.0, 70.0)))) == 1
    assert len(answers([WORSE_BY_4])) == 1  # without the rows that it would need


def test_a_table_leaves_out_what_says_nothing() -> None:
    rows = around(WORSE_BY_4, (70.0, 65.5), duplicate=0, interaction=-7)
    kept = readable(rows)
    assert [(found["metric"], found.get("error")) for found in kept] == [
        ("mAP_diff", None), ("mean_max_recall", None), ("mean_max_recall", None), ("count_diff", "interaction"),
    ]  # fmt: skip
    assert [found["tags"] for found in kept] == [{}, {"model": "base"}, {"model": "ours"}, {}]
    assert not any("protocol" in found for found in kept)
    other = row(1.0, (0.5, 2.0), 0.01, model="third")
    assert [found["tags"] for found in readable([WORSE_BY_4, other])] == [{"model": "ours"}, {"model": "third"}]
    assert all("protocol" in found for found in readable([WORSE_BY_4, {**other, "protocol": "upt"}]))


ASKED = ("--sim", "wordnet:wup", "--format", "jsonl", "--bootstrap", "200")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Thirty images: `good` finds most of them, `poor` half, with words that are near, and more besides."""
    folder = tmp_path_factory.mktemp("shoe")
    records: dict[str, list[dict[str, object]]] = {"gt": [], "good": [], "poor": []}
    for number in range(30):
        name, score = f"{number:02}", 0.3 + number / 50
        verb, thing = ("pet", "giraffe") if number % 3 else ("wash", "train")
        records["gt"].append(image((verb, thing), image_id=name))
        records["good"].append(image((verb, thing, score), image_id=name) if number % 10 else image(image_id=name))
        loose = (verb, thing, 1 - score, AWAY)
        near = [("touch", thing, score)] if number % 2 else []
        records["poor"].append(image(*near, loose, image_id=name))
    paths = {}
    for key, of in records.items():
        paths[key] = folder / f"{key}.jsonl"
        paths[key].write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in of))
    return paths


def test_every_model_is_as_shoe_eval_has_it(hoicli: Hoicli, files: dict[str, Path]) -> None:
    metrics = ["prediction_miss_rate", "soft_map", "mf1"]
    given = ("--gt", files["gt"], *ASKED)
    rows = records_of(hoicli("compare", "--metric", ",".join(metrics), *given, files["good"], files["poor"]))
    found = {model: parsed(hoicli("shoe-eval", *given, files[model]).out) for model in ("good", "poor")}
    alone = {(model, row["metric"]): row for model, of in found.items() for row in of}
    assert [row["metric"] for row in rows if "from" not in row] == [metric for metric in metrics for _ in range(2)]
    for row in rows:
        model = row["tags"]["model"]
        same = alone[model, row["metric"].removesuffix("_diff")]
        if "from" not in row:
            assert {**row, "tags": same["tags"]} == same
            continue
        before = alone["good", row["metric"].removesuffix("_diff")]
        assert (row["from"], row["to"]) == (before["value"], same["value"])
        assert row["value"] == pytest.approx(row["to"] - row["from"])
        assert row["ci_low"] < row["value"] < row["ci_high"]
        assert row["p"] < 0.02
        assert row["tags"]["baseline"] == "good"
        # whatever pairs each model needs
        assert re.search(r"\|sim:wordnet:wup@wordnet3\.0\.[0-9a-f]{8}\|raters:wordnet:wup\|", row["signature"])


def test_a_model_and_itself_and_no_rounds(hoicli: Hoicli, files: dict[str, Path]) -> None:
    given = ("compare", "--metric", "soft_map,gt_miss_rate", "--name", "a,b", "--gt", files["gt"], *ASKED)
    same = [json.loads(line) for line in hoicli(*given, files["poor"], files["poor"]).out.splitlines()]
    found = [(row["value"], row["ci_low"], row["ci_high"], row["p"]) for row in same if "from" in row]
    assert found == [(0.0, 0.0, 0.0, 1.0)] * 2
    none = hoicli(*given[:-1], "0", files["good"], files["poor"])
    rows = [json.loads(line) for line in none.out.splitlines()]
    assert {(row.get("p"), row["ci_low"]) for row in rows} == {(None, None)}
    assert "boot:" not in none.out


@pytest.mark.parametrize(("given", "message"), [
    (["--metric", "soft_map"],
     "compare --metric: give similarities with --sim FILE (hoicli shoe-sim), or --sim wordnet:wup"),
    (["--metric", "mAP", "--sim", "lexical"], "--metric mAP: choose from soft_map, mf1, gt_miss_rate,"),
    (["--metric", "mf1", "--sim", "lexical", "--top-k", "5"], "--metric: SHOE has no protocols, splits, --iou,"),
    (["--sim", "lexical"], "--sim: goes with --metric, for example"),
])  # fmt: skip
def test_calls_that_cannot_be(hoicli: Hoicli, files: dict[str, Path], given: list[str], message: str) -> None:
    said = refusal(hoicli("compare", "--gt", SHOE / "gt.jsonl", *given, files["good"], files["poor"]), 2)
    assert said.startswith(f"hoicli: {message}")
