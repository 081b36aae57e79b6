"""Agreement: the supplement's figures, cases by hand, the packages' numbers on random ratings, broken streams."""

from __future__ import annotations

import json
import math
import random
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.agreement.coefficients import (
    LEVELS,
    MAX_SUBSET_MODELS,
    mean_and_deviation,
    merged_rating,
    subset_agreement,
    variability,
)
from hoicli.agreement.rank_correlation import fisher_interval, spearman
from hoicli.agreement.ratings import Ratings, read_ratings
from hoicli.errors import DataError, UsageError
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.shoe.settings import RULES
from tests.support.project import FIXTURES, Hoicli, complaint, refusal

RATINGS = FIXTURES / "agree/ratings.jsonl"
NONE = math.nan
Row = dict[str, Any]


def column(*values: float) -> Any:
    return np.array(values, dtype=np.float64)


def test_the_interval_and_the_standard_error_of_the_supplement() -> None:
    low, high = fisher_interval(0.799, 500)
    assert low is not None
    assert high is not None
    assert (round(low, 3), round(high, 3)) == (0.765, 0.829)
    apart = 0.761 * math.sqrt(2)
    deviation, error, _ = variability(np.array([[apart, -apart, 0, 0, 0]]))
    assert deviation == pytest.approx(0.761)
    assert round(error or 0, 2) == 0.34


@pytest.mark.parametrize(("values", "printed"), [
    ([86.46, 84.56, 84.11, 85.60, 84.87], (85.12, 0.92)),
    ([86.46, 86.46, 86.46, 86.46, 84.56, 84.56, 84.56, 84.58, 84.15, 85.60], (85.39, 0.99)),
    ([85.55, 85.76, 86.12, 85.40, 85.52, 85.93, 84.71, 84.53, 84.88, 85.12], (85.35, 0.53)),
    ([85.67, 85.86, 86.40, 85.91, 85.24], (85.82, 0.42)),
])  # fmt: skip
def test_the_deviations_of_table_1_are_of_samples(values: list[float], printed: tuple[float, float]) -> None:
    """Its averages and deviations follow from its rows, one size each, by the formulas of `subset_agreement`."""
    # One model an entry, off by what makes the agreement: 100 (1 - |difference| / 4)
    models = np.array([[4 * (1 - value / 100) for value in values]])
    single = next(subset_agreement(models, column(0.0), 5))
    assert [100 * (value or 0.0) for value in mean_and_deviation(single)] == pytest.approx(printed, abs=0.011)


GRADES = st.sampled_from([NONE, 0.0, 1.0, 2.0, 2.5, 4.0])
ratings_of_models = st.integers(1, 5).flatmap(
    lambda models: st.lists(st.lists(GRADES, min_size=models, max_size=models), min_size=1, max_size=8)
)


@given(ratings_of_models)
def test_models_as_one_by_plain_loops(values: list[list[float]]) -> None:
    def as_one(row: list[float], rule: str) -> float:
        given = [rating for rating in row if not math.isnan(rating)]
        if not given:
            return NONE
        if rule == "majority":
            return max(given, key=lambda rating: (given.count(rating), -given.index(rating)))
        return statistics.mean(given) if rule == "mean" else statistics.median(given)

    for rule in RULES:
        expected = [as_one(row, rule) for row in values]
        np.testing.assert_allclose(merged_rating(np.array(values), rule), expected)


@given(st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=1, max_size=9))
def test_a_vote_of_two_is_the_first_and_a_mean_is_not_below_its_models(values: list[list[int]]) -> None:
    table = np.array(values, dtype=np.float64)
    models, human = table[:, :3], table[:, 3]
    ones, twos, _ = subset_agreement(models, human, 5)
    assert twos == {(first, second): ones[first,] for first, second in twos}
    for subsets in subset_agreement(models, human, 5, "mean"):
        for members, (value, _) in subsets.items():
            assert value is not None
            assert value >= sum(ones[at,][0] or 0.0 for at in members) / len(members) - 1e-12


def test_subsets_by_hand() -> None:
    models, human = np.array([[0.0, 4.0], [1.0, 1.0]]), column(2, 1)
    one, two = subset_agreement(models, human, 5, "mean")
    assert (one, mean_and_deviation(one)) == ({(0,): (0.75, 2), (1,): (0.75, 2)}, (0.75, 0.0))
    assert (two, mean_and_deviation(two)) == ({(0, 1): (1.0, 2)}, (1.0, None))
    _, vote = subset_agreement(np.array([[0.0, 4.0], [NONE, 1.0], [NONE, NONE]]), column(0, 1, 3), 5)
    assert vote == {(0, 1): (1.0, 2)}
    with pytest.raises(UsageError, match="13 models have 8,191 subsets; name at most 12"):
        list(subset_agreement(np.zeros((2, MAX_SUBSET_MODELS + 1)), human, 5))


def test_variability_by_hand() -> None:
    # squares 2 (1 degree of freedom), 8 (2), and an item that says nothing; 6 ratings on 3 items
    found = variability(np.array([[0, 2, NONE], [0, 2, 4], [1, NONE, NONE], [NONE, NONE, NONE]]))
    assert found == pytest.approx((math.sqrt(10 / 3), math.sqrt(10 / 3) / math.sqrt(2), 2))
    assert variability(np.array([[1.0, NONE]])) == (None, None, 0)


def test_spearman_by_hand() -> None:
    found = spearman(column(1, 2, 3, 4), column(1, 2, 3, 4), permutations=99)
    assert (found.rho, found.low, found.high) == (1.0, None, None)
    assert spearman(column(1, 2, 3), column(3, 2, 1), permutations=9).rho == -1.0
    # of the 24 orders of four, two have |rho| = 1: the identity and its reverse
    p = spearman(column(1, 2, 3, 4), column(1, 2, 3, 4), permutations=20_000).p
    assert p == pytest.approx(2 / 24, abs=0.01)
    assert spearman(column(1, 2, 3), column(1, 2, 3), permutations=0).p == 1.0
    # Two items always rise or fall together: that is no correlation
    for first in (column(), column(1, 1, 1), column(NONE, 1), column(1, 2), column(2, 1, NONE)):
        found = spearman(first, column(*range(len(first))))
        assert (found.rho, found.low, found.p) == (None, None, None)
    assert fisher_interval(0.5, 3) == (None, None)


def test_the_permutations_are_drawn_alike_everywhere() -> None:
    rng = random.Random(5)
    first = column(*(rng.randrange(5) for _ in range(15)))
    second = first + column(*(rng.randrange(6) for _ in range(15)))
    found = spearman(first, second)
    assert found.rho == pytest.approx(0.496286, abs=1e-6)
    # The same bytes on every machine and with every NumPy: a changed number here is a changed generator.
    assert found.p == PINNED
    assert spearman(first, second, seed=1).p != found.p
    assert spearman(second, first).rho == found.rho


PINNED = 0.061493850614938506


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=30))
def test_rho_is_scipys(values: list[tuple[int, int]]) -> None:
    from scipy.stats import spearmanr

    first, second = (column(*side) for side in zip(*values, strict=True))
    found = spearman(first, second, permutations=9)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert found.rho is None
        return
    assert found.rho == pytest.approx(float(spearmanr(first, second).statistic), abs=1e-12)


def ratings_of(*records: Row, levels: int = 5, skip: bool = False, **who: Any) -> Ratings:
    lines = [Line("r.jsonl", number, orjson.dumps(record)) for number, record in enumerate(records, start=1)]
    return read_ratings(lines, levels=levels, policy=ErrorPolicy(skip=skip), **who)


def test_both_forms_of_lines() -> None:
    first = {"item": "x", "ratings": {"A": 1, "B": None, "m": 2.5}}
    table = ratings_of(first, {"item": "x", "rater": "C", "rating": 4}, {"item": 7, "rater": "A", "rating": 0})
    assert (table.items, table.raters) == (["7", "x"], ["A", "C", "m"])
    np.testing.assert_array_equal(table.values, [[0, NONE, NONE], [1, 4, 2.5]])
    assert table.models == ()


def test_what_is_no_ratings_at_all(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "none.csv"
    for text in ("x" * 200_000, "[1]\n", '["item", "A"]\n', "\1,\1\n", "item\nx\n"):
        path.write_text(text)
        assert refusal(hoicli("agree", path)).startswith(f"{path}:1: ")


def test_who_is_a_model() -> None:
    both = {"item": "x", "ratings": {"A1": 1, "A2": 1, "gpt": 2, "qwen": 3}}
    lines = (both, {"item": "y", "rater": "gpt", "rating": 1, "kind": "model"})
    assert ratings_of(*lines).models == ("gpt",)
    assert ratings_of(*lines, models=["qwen"]).models == ("qwen",)
    # as they are listed, those of one pattern by name
    assert ratings_of(*lines, models=["qwen", "gpt"]).models == ("qwen", "gpt")
    assert ratings_of(*lines, models=["q*", "*"]).models == ("qwen", "A1", "A2", "gpt")
    with pytest.raises(UsageError, match=r"--models llama: no such rater; there are A1, A2, gpt, qwen"):
        ratings_of(*lines, models=["llama"])


@pytest.mark.parametrize(("record", "message"), [
    ({"rater": "A", "rating": 1}, "item: missing or no name; every line says which item is rated"),
    ({"item": "x", "rating": 1}, "rater: missing or no string; name the rater, or give all of an item in `ratings`"),
    ({"item": "x", "rater": "A"}, "rating: missing or no finite number; leave out what was not rated"),
    ({"item": "x", "rater": "A", "rating": 5}, "rating: 5 is not from 0 to 4; --levels says how many there are"),
    ({"item": "x", "rater": "A", "rating": 1, "kind": "dog"}, "kind: is neither human nor model"),
    ({"item": "x", "ratings": [1]}, "ratings: is no object; write the raters' names with their ratings"),
    ({"item": "x", "ratings": {"A": "1"}}, "ratings.A: missing or no finite number"),
    ({"item": "first", "rater": "A", "rating": 2}, "rating: 2 here and 1 at r.jsonl:1 for 'first' and 'A'; keep one"),
    ({"item": "x", "rater": "A", "rating": 2, "kind": "model"},
     "kind: model here and human at r.jsonl:1 for 'A'; keep one"),
])  # fmt: skip
def test_a_bad_line(record: Row, message: str) -> None:
    first = {"item": "first", "rater": "A", "rating": 1, "kind": "human"}
    assert complaint(DataError, ratings_of, first, record).startswith(f"r.jsonl:2: {message}")
    assert ratings_of(first, record, skip=True).items == ["first"]


def rows_of(text: str) -> dict[tuple[str, str], Row]:
    rows = [json.loads(line) for line in text.splitlines()]
    keyed = {(row["metric"], row["subset"]): row for row in rows}
    assert len(keyed) == len(rows)
    return keyed


def test_the_rows(hoicli: Hoicli) -> None:
    result = hoicli("agree", "--format", "jsonl", "--subsets", "--distribution", "--tag", "study=1", RATINGS)
    assert (result.code, result.err) == (0, "")
    rows = rows_of(result.out)
    pairs = [row for (metric, subset), row in rows.items() if metric == "qwk" and subset != "mean"]
    assert [row["raters"] for row in pairs][:2] == [["A1", "A2"], ["A1", "A3"]]
    assert len(pairs) == 10
    assert rows["qwk", "mean"]["value"] == pytest.approx(sum(row["value"] for row in pairs) / 10)
    assert {subset for metric, subset in rows if metric == "alpha"} == set(LEVELS)
    assert all(rows["alpha", level]["level"] == level for level in LEVELS)
    assert rows["se", "humans"]["value"] == pytest.approx(rows["within_sd", "humans"]["value"] / math.sqrt(59 / 12))
    for name in ("models", "deepseek", "gemini", "qwen"):
        row = rows["spearman", name]
        assert row["ci_low"] < row["value"] < row["ci_high"]
        for metric in ("ci_low", "ci_high", "p"):
            assert rows[metric, name]["value"] == row[metric]
    for first, second in (("deepseek", "gemini"), ("deepseek", "qwen"), ("gemini", "qwen")):
        assert rows["agreement", f"{first}+{second}"]["value"] == rows["agreement", first]["value"]
    singles = [rows["agreement", name]["value"] for name in ("deepseek", "gemini", "qwen")]
    assert rows["agreement_mean", "1 of 3"]["value"] == pytest.approx(sum(singles) / 3)
    assert rows["agreement_mean", "1 of 3"]["n"] == 3
    assert rows["agreement_sd", "3 of 3"]["value"] is None
    assert sum(rows[f"rated_{level}", "A4"]["value"] for level in range(5)) == rows["rated_0", "A4"]["n"] == 11
    settings = "merge:mean|levels:5|permutations:10000|seed:0|version:"
    assert rows["spearman", "models"]["signature"].startswith(f"protocol:agree|{settings}")
    settings = "levels:5|permutations:10000|seed:0|version:"
    assert rows["spearman", "qwen"]["signature"].startswith(f"protocol:agree|{settings}")
    vote = "protocol:agree|merge:majority,ties-to-first-by-name|levels:5|version:"
    for key in (("agreement", "deepseek+qwen"), ("agreement_mean", "2 of 3"), ("agreement_sd", "2 of 3")):
        assert rows[key]["signature"].startswith(vote)
    assert rows["qwk", "mean"]["signature"].startswith("protocol:agree|levels:5|version:")
    assert {tuple(row["tags"].items()) for row in rows.values()} == {(("study", "1"),)}


def test_how_models_become_one_is_chosen_and_signed(hoicli: Hoicli) -> None:
    given = ("agree", "--format", "jsonl", "--subsets", RATINGS)
    for rule in RULES:
        result = hoicli(*given, "--merge", rule)
        rows = rows_of(result.out)
        assert rows["agreement", "deepseek+gemini+qwen"]["value"] == rows["agreement", "models"]["value"]
        for key in (("agreement", "models"), ("p", "models"), ("agreement", "deepseek+qwen")):
            assert f"|merge:{rule}" in rows[key]["signature"]
    # The mean of two is the median of two, and the vote of two neither
    values = [rows_of(hoicli(*given, "--merge", rule).out)["agreement", "gemini+qwen"]["value"] for rule in RULES]
    assert values[0] == values[1] != values[2]


def test_ties_go_to_the_model_listed_first(hoicli: Hoicli) -> None:
    given = ("agree", "--format", "jsonl", "--subsets", RATINGS, "--models")
    orders = ("deepseek,gemini,qwen", "qwen,gemini,deepseek", "qwen,*e*")
    by_name, listed, part = (rows_of(hoicli(*given, names).out) for names in orders)
    assert by_name["agreement", "gemini+qwen"]["value"] == by_name["agreement", "gemini"]["value"]
    row = listed["agreement", "qwen+gemini"]
    assert (row["value"], row["raters"]) == (listed["agreement", "qwen"]["value"], ["qwen", "gemini"])
    assert "|merge:majority,ties-to-first-of-qwen+gemini+deepseek|" in row["signature"]
    assert "|merge:majority,ties-to-first-of-qwen+deepseek+gemini|" in part["agreement", "qwen+gemini"]["signature"]
    assert by_name["agreement", "models"]["value"] == listed["agreement", "models"]["value"]  # the mean


def test_no_two_choices_of_models_or_groups_are_signed_alike(hoicli: Hoicli, tmp_path: Path) -> None:
    """Every row of two runs that has another value has another identity or another signature."""
    raters = ("p", "q", "a b", "a_b", "a+b")
    made = {rater: [random.Random(rater).choice((0.1, 1.3, 2, 3.7)) for _ in range(9)] for rater in raters}
    of_items = [{"item": str(at), "ratings": {name: of[at] for name, of in made.items()}} for at in range(9)]
    long, wide = tmp_path / "r.jsonl", tmp_path / "r.csv"
    groups = [{"x|y": "v" if at % 2 else "w", "x_y": "v" if at % 3 else "w"} for at in range(9)]
    long.write_text("".join(json.dumps(row | group) + "\n" for row, group in zip(of_items, groups, strict=True)))
    numbers = zip(*made.values(), *[[str(at % 3) for at in range(9)]] * 2, strict=True)
    sheet = [("item", *raters, "g", "h"), *((str(at), *row) for at, row in enumerate(numbers))]
    wide.write_text("".join(",".join(map(str, cells)) + "\n" for cells in sheet))
    given = ("agree", "--format", "jsonl", "--subsets", "--merge", "mean", "--models")
    choices = ("a b,a_b", "a b,a+b", "a_b,a+b", "a b,a_b,a+b", "a+b,a_b,a b", "a*", "a?b,p")
    runs = [hoicli(*given, names, long) for names in choices]
    runs += [hoicli("agree", "--format", "jsonl", "--models", "*", long), hoicli("agree", "--format", "jsonl", long)]
    runs += [hoicli(*given, "a*", "--group", key, long) for key in ("x|y", "x_y")]
    check_told_apart(runs)
    check_told_apart([hoicli(*given, "a*", *group, wide) for group in ((), ("--group", "g"), ("--group", "h"))])


def check_told_apart(runs: list[Any]) -> None:
    said: dict[str, list[Any]] = {}
    for run in runs:
        assert run.code == 0, run.err
        for row in map(json.loads, run.out.splitlines()):
            measured = [row.pop(key, None) for key in ("value", "n", "ci_low", "ci_high", "p")]
            assert said.setdefault(json.dumps(row, sort_keys=True), measured) == measured


def test_people_alone(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"item": "x", "ratings": {"A": 1.5, "B": 1}}\n{"item": "y", "ratings": {"A": 4, "B": 3}}\n')
    rows = rows_of(hoicli("agree", "--distribution", "--format", "jsonl", path).out)
    assert {metric for metric, _ in rows if "_" not in metric} == {"qwk", "alpha", "ac1", "ac2", "se"}
    assert sum(row["value"] for (metric, _), row in rows.items() if metric.startswith("rated_")) == 3  # no level is 1.5
    said = refusal(hoicli("agree", "--subsets", path), 2)
    assert "--subsets needs people and models: --models says who is a model" in said


def test_the_tables(hoicli: Hoicli) -> None:
    text = hoicli("agree", "--format", "table", RATINGS).out
    blocks = [block.splitlines() for block in text.split("\n\n")]
    assert [block[0].split() for block in blocks] == [
        ["of", "qwk"], ["of", "alpha"], ["of", "ac1"], ["of", "ac2"], ["of", "within_sd", "se"],
        ["of", "agreement", "spearman", "ci_low", "ci_high", "p"],
    ]  # fmt: skip
    assert [line.split()[0] for line in blocks[1][1:]] == list(LEVELS)
    assert "| of | agreement | spearman |" in hoicli("agree", "--format", "md", RATINGS).out


@pytest.mark.parametrize(("arguments", "message"), [
    (["--levels", "1"], "hoicli: --levels 1: give a whole number from 2 to 1,000"),
    (["--seed", "-1"], "hoicli: --seed -1: give a whole number from 0 to 4,294,967,295"),
    (["--models", "A1,nobody"], "hoicli: --models nobody: no such rater"),
    (["--merge", "mode"], "hoicli: --merge mode: choose from mean, median, majority"),
    (["--bootstrap", "1"], "hoicli: --bootstrap 1: give "),
    (["--plot-kind", "kappa"], "hoicli: --plot-kind: name the figure with --plot FILE"),
    (["--plot", "x.png", "--plot-kind", "heat"], "hoicli: --plot-kind heat: choose from distribution, votes, kappa"),
    (["--plot", "x.jpg"], "hoicli: --plot x.jpg: "),
])  # fmt: skip
def test_a_wrong_call(hoicli: Hoicli, arguments: list[str], message: str) -> None:
    assert refusal(hoicli("agree", *arguments, RATINGS), 2).startswith(message)
