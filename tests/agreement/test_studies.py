"""Groups of items, votes by what most say, a second study, and what `agree` writes of them."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.agreement.coefficients import estimate_of, share, updates_of, value_of, votes_by_majority
from hoicli.resampling.draws import Resampling
from tests.agreement.test_agreement import RATINGS, Row, rows_of
from tests.support.project import Hoicli, refusal, written

NONE = math.nan


def test_a_group_is_told_as_its_items_alone_would_be(hoicli: Hoicli, tmp_path: Path) -> None:
    records = [json.loads(line) for line in RATINGS.read_text().splitlines()]
    items = sorted({record["item"] for record in records})
    of_item = {item: ("verb", "object", "")[at % 3] for at, item in enumerate(items)}
    grouped = [{**record, "differs": of_item[record["item"]] or None} for record in records]
    given = ("agree", "--format", "jsonl", "--bootstrap", "40", "--merge", "majority")
    result = hoicli(*given, "--group", "differs", written(tmp_path / "all.jsonl", grouped))
    assert "hoicli: 4 of 12 items have no 'differs': in no group\n" in result.err
    rows = rows_of(result.out)
    for group in ("verb", "object"):
        alone = written(tmp_path / "one.jsonl", [record for record in records if of_item[record["item"]] == group])
        expected = rows_of(hoicli(*given, alone).out)
        found = {key: row for key, row in rows.items() if row.get("item_group") == group}
        assert {subset.removeprefix(f"{group}:") for _, subset in found} == {
            subset for metric, subset in expected if metric != "qwk" or subset == "mean"
        }
        for (metric, subset), row in found.items():
            same = expected[metric, subset.removeprefix(f"{group}:")]
            expected_row = {**same, "subset": row["subset"], "item_group": group, "signature": row["signature"]}
            assert row == expected_row
            assert f"|group:differs={group}|" in row["signature"]
    plain = rows_of(hoicli(*given, RATINGS).out)
    assert {key: row for key, row in rows.items() if "item_group" not in row} == plain


@pytest.mark.parametrize(("records", "group", "code", "message"), [
    ([{"item": "x", "rater": "A", "rating": 1}], "differs", 2, "--group differs: no line has it"),
    ([{"item": "x", "rater": "A", "rating": 1}], "rater", 2, "--group rater: that key has a meaning of its own"),
    ([{"item": "x", "rater": "A", "rating": 1, "g": 3}], "g", 1, "r.jsonl:1: g: is no text; write the name of"),
    ([{"item": "x", "rater": "A", "rating": 1, "g": "v"}, {"item": "x", "rater": "B", "rating": 1, "g": "o"}],
     "g", 1, "r.jsonl:2: g: o here and v at "),
])  # fmt: skip
def test_no_group(hoicli: Hoicli, tmp_path: Path, records: list[Row], group: str, code: int, message: str) -> None:
    result = hoicli("agree", "--group", group, written(tmp_path / "r.jsonl", records))
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert message in result.err


tables = st.lists(st.lists(st.sampled_from([NONE, 0.0, 1.0, 2.0, 3.0]), min_size=4, max_size=4), min_size=1, max_size=8)


@given(tables)
def test_votes_by_plain_loops(rows: list[list[float]]) -> None:
    found: dict[int | None, tuple[int, Counter[tuple[int, int]]]] = {}
    for row in rows:
        counts = Counter(int(value) for value in row if not math.isnan(value)).most_common()
        if counts:
            split = len(counts) > 1 and counts[0][1] == counts[1][1]
            key = None if split else counts[0][0]
            items, votes = found.setdefault(key, (0, Counter()))
            votes.update((int(value), at) for at, value in enumerate(row) if not math.isnan(value))
            found[key] = (items + 1, votes)
    listed = list(votes_by_majority(np.array(rows), 4))
    assert [level for level, *_ in listed] == sorted(found, key=lambda level: (level is None, level))
    for level, items, numbers in listed:
        assert items == found[level][0]
        cells = {(rating, at): int(number) for (rating, at), number in np.ndenumerate(numbers) if number}
        assert cells == dict(found[level][1])


def test_the_rows_of_votes(hoicli: Hoicli) -> None:
    rows = rows_of(hoicli("agree", "--votes", "--distribution", "--format", "jsonl", RATINGS).out)
    votes = [row for (metric, _), row in rows.items() if metric.startswith("votes_")]
    for rater in ("A1", "A4"):
        for rating in range(5):
            cells = [row["value"] for row in votes if row["raters"] == [rater] and row["rating"] == rating]
            assert sum(cells) == rows[f"rated_{rating}", rater]["value"]
    assert rows["votes_4", "majority 4"]["majority"] == 4
    assert rows["votes_0", "no majority"]["majority"] is None
    assert sum({row["majority"]: row["n"] for row in votes}.values()) == 12


def test_updates_by_hand() -> None:
    updated, size = updates_of(np.array([[0, 1, NONE], [-2, 0, 0], [NONE] * 3]))
    assert (updated.tolist(), size.tolist()) == ([[1, 2], [1, 3]], [[1, 1], [2, 1]])
    assert (value_of(share, updated), value_of(share, size)) == (2 / 5, 1.5)
    assert [value_of(share, columns) for columns in updates_of(np.zeros((3, 2)))] == [0, None]


def test_the_interval_of_updates_is_of_items() -> None:
    """153 of 2,000 ratings are the supplement's 7.65 %. Updated each by itself, the interval is the binomial's, [6.49,
    8.81], closer than the printed [6.29, 9.00]; updated together with the others of their item, it is wider."""
    rng = random.Random(1)
    apart: Any = np.zeros((500, 4))
    apart.ravel()[rng.sample(range(2000), 153)] = 1
    together: Any = np.zeros((500, 4))
    for at in range(153):
        together[at // 2, at % 2] = 1  # two of four raters at once
    binomial = 196 * math.sqrt(0.0765 * 0.9235 / 2000)
    assert (round(7.65 - binomial, 2), round(7.65 + binomial, 2)) == (6.49, 8.81)
    widths = []
    for change in (apart, together):
        updated, ends = estimate_of(share, updates_of(change)[0], Resampling(2000, 0), lowest=0.0)
        assert updated is not None
        assert ends is not None
        assert round(100 * updated, 2) == 7.65
        widths.append(50 * (ends[1] - ends[0]))
        # with as many ratings in each item the share is the mean of the items' shares
        assert widths[-1] == pytest.approx(196 * change.mean(axis=1).std() / math.sqrt(500), rel=0.06)
    assert widths[0] == pytest.approx(binomial, rel=0.1)
    assert widths[1] > (9.00 - 6.29) / 2 > widths[0]


def test_a_second_study(hoicli: Hoicli, tmp_path: Path) -> None:
    again = written(
        tmp_path / "again.jsonl",
        [
            {"item": "pet giraffe / touch giraffe", "ratings": {"A1": 2, "A2": 1, "A9": 3}},
            {"item": "pet giraffe / feed giraffe", "ratings": {"A1": 2}},
            {"item": "another", "ratings": {"A1": 2}},
        ],
    )
    result = hoicli("agree", "--again", again, "--bootstrap", "50", "--format", "jsonl", RATINGS)
    rows = rows_of(result.out)
    row = rows["updated", "all"]
    assert (row["value"], row["n"], row["raters"]) == (pytest.approx(200 / 3), 3, ["A1", "A2"])
    assert row["ci_low"] <= row["value"] <= row["ci_high"]
    assert "|boot:50|ci:student|levels:5|seed:0|" in row["signature"]
    assert (rows["update_size", "all"]["value"], rows["update_size", "all"]["n"]) == (1.5, 2)
    assert (rows["updated", "A1"]["value"], rows["updated", "A2"]["value"]) == (50.0, 100.0)
    nobody = written(tmp_path / "nobody.jsonl", [{"item": "another", "rater": "A1", "rating": 1}])
    said = refusal(hoicli("agree", "--again", nobody, RATINGS))
    assert "--again: none of its ratings is of an item and a person of the first ratings" in said


def test_what_has_no_value(hoicli: Hoicli, tmp_path: Path) -> None:
    records = [{"item": item, "ratings": {"A": rating, "B": 2, "m": 2}} for item, rating in (("x", 1), ("y", 2.5))]
    given = ("agree", "--models", "m", "--bootstrap", "10", written(tmp_path / "r.jsonl", records))
    rows = rows_of(hoicli(*given).out)
    row = rows["spearman", "m"]
    assert (row["value"], row["ci_low"], row["p"], rows["p", "m"]["value"]) == (None, None, None, None)
    row = rows["ac2", "quadratic"]
    assert (row["value"], row["ci_low"]) == (None, None)


def test_intervals_are_the_same_in_any_order(hoicli: Hoicli, tmp_path: Path) -> None:
    given = ("agree", "--format", "jsonl", "--bootstrap", "70", "--distribution")
    lines = RATINGS.read_text().splitlines(keepends=True)
    random.Random(3).shuffle(lines)
    shards = [tmp_path / "0.jsonl", tmp_path / "1.jsonl"]
    for number, shard in enumerate(shards):
        shard.write_text("".join(lines[number::2]))
    first = hoicli(*given, RATINGS).out
    assert hoicli(*given, *shards).out == first
    assert hoicli(*given, "--seed", "1", RATINGS).out != first
    rows, without = rows_of(first), rows_of(hoicli("agree", "--format", "jsonl", RATINGS).out)
    for key, row in without.items():
        assert rows[key]["value"] == row["value"]
        told = key[0] in ("qwk", "alpha", "ac1", "ac2", "agreement")
        assert ("|boot:70|" in rows[key]["signature"]) == told
        if told:
            assert rows[key]["ci_low"] <= row["value"] <= rows[key]["ci_high"]


@pytest.mark.long
def test_the_figures(hoicli: Hoicli, tmp_path: Path) -> None:
    for kind, words in (
        ("distribution", {"A1", "A5", "rating", "12 items."}),
        ("votes", {"majority rating 4 (2 items)", "no majority (5 items)", "A3"}),
        ("kappa", {"A1", "Quadratic weighted kappa, mean 0.640.", "0.90"}),
    ):
        plot = tmp_path / f"{kind}.svg"
        assert hoicli("agree", "--plot", plot, "--plot-kind", kind, RATINGS).code == 0
        assert words <= set(plot.read_text().replace(">", "<").split("<"))
    for kind, levels in (("votes", "12"), ("distribution", "100")):
        refused = hoicli("agree", "--levels", levels, "--plot", plot, "--plot-kind", kind, RATINGS)
        assert refused.code == 2
        assert f"--plot-kind {kind}: has room for 11 levels, not {levels}; kappa has for any" in refused.err
    one = written(tmp_path / "one.jsonl", [{"item": "x", "rater": "A", "rating": 1}])
    refused = hoicli("agree", "--plot", plot, "--plot-kind", "kappa", one)
    assert "--plot-kind kappa: A is the only rater; kappa is of two" in refused.err
