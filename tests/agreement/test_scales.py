"""Metrics on scales of their own: brought to the levels when these are named, refused when they are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from hoicli.agreement.ratings import Ratings, read_ratings
from hoicli.agreement.scales import scales_of
from hoicli.errors import DataError, UsageError
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from tests.support.project import FIXTURES, Hoicli

RATINGS = FIXTURES / "ratings.jsonl"


def ratings_of(*rows: dict[str, float], scales: tuple[str, ...] = (), levels: int = 5, **more: Any) -> Ratings:
    """Of items 1, 2, ...; the raters `m...` are models."""
    records = [{"item": number, "ratings": row} for number, row in enumerate(rows, start=1)]
    lines = [Line("r.jsonl", number, orjson.dumps(record)) for number, record in enumerate(records, start=1)]
    models = sorted({rater for row in rows for rater in row if rater.startswith("m")})
    policy = more.pop("policy", ErrorPolicy(skip=False))
    return read_ratings(lines, levels=levels, policy=policy, models=models, scales=scales_of(scales), **more)


def test_a_scale_is_brought_to_the_levels() -> None:
    rows = {"A": 4, "m": 0.55, "m4": 1.1, "mcos": -1}, {"A": 0, "m": 1, "m4": 3.3, "mcos": 0}
    table = ratings_of(*rows, scales=("0,1", "m4=0,4", "mcos=-1,1"))
    assert table.raters == ["A", "m", "m4", "mcos"]
    assert table.values.tolist() == [[4, pytest.approx(2.2), 1.1, 0], [0, 4, 3.3, 2]]
    assert table.scales == "0,1+m4=0,4+mcos=-1,1"


def test_a_metric_tells_the_same_in_any_unit(hoicli: Hoicli, tmp_path: Path) -> None:
    """The fixture's models divided by 4, or in percent: the rows differ by the signature alone."""

    def rows(*arguments: object) -> list[dict[str, Any]]:
        result = hoicli("agree", "--format", "jsonl", *arguments)
        assert result.code == 0
        return [{**json.loads(line), "signature": ""} for line in result.out.splitlines()]

    expected = rows(RATINGS)
    for unit in (0.25, 25):
        path = tmp_path / f"{unit}.jsonl"
        with path.open("w") as file:
            for record in map(json.loads, RATINGS.read_text().splitlines()):
                if record.get("kind") == "model":
                    record["rating"] *= unit
                file.write(json.dumps(record) + "\n")
        assert rows("--model-scale", f"0,{4 * unit:g}", path) == expected
        refused = hoicli("agree", path)
        assert (refused.code, refused.err.count("\n")) == (1, 1)
        assert "--model-scale" in refused.err
    signed = hoicli("agree", "--format", "jsonl", "--model-scale", "deepseek=0,4", RATINGS).out
    assert "|levels:5|modelscale:deepseek=0,4|" in signed


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (({"A": 4, "m": 0.5}, {"A": 1, "m": 1}), "some between them"),
        (({"A": 4, "m": 0}, {"A": 1, "m": 1}), "where people go higher"),
        (({"m": 0.5, "m2": 3}, {"m": 1, "m2": 0}), "some between them"),
        (({"A": 2, "m": 0}, {"A": 0, "m": 1}, {"A": 0, "m": 1}), "where people go higher"),  # on one item of many
    ],
)
def test_what_looks_like_another_scale_is_refused(rows: tuple[dict[str, float], ...], why: str) -> None:
    with pytest.raises(DataError) as caught:
        ratings_of(*rows)
    assert str(caught.value) == (
        f"r.jsonl:1: all ratings of 'm' are from 0 to 1, {why}, while levels go to 4: is that its scale? --model-scale "
        "'m=0,1' says so, and 'm=0,4' that they are levels"
    )
    np.testing.assert_array_equal(ratings_of(*rows, scales=("m=0,4",)).of(["m"])[:, 0], [row["m"] for row in rows])
    ratings_of(*rows, scales=("m=0,1",))


def test_what_says_nothing_of_a_scale_is_read() -> None:
    ratings_of({"A": 1, "m": 0}, {"A": 0, "m": 1})  # people go no higher
    ratings_of({"A": 4, "m": 0.5}, {"A": 1, "m": 1.5})
    ratings_of({"A": 1, "m": 0.5}, {"A": 0, "m": 1}, levels=2)
    ratings_of({"A": 4, "B": 0}, {"A": 1, "B": 1})  # a person may be strict
    ratings_of({"A": 0, "m": 1}, {"A": 0, "m": 0}, {"A": 4})  # people go higher where the model does not rate
    ratings_of({"A": 1, "B": 1, "m": 1}, {"A": 1, "B": 1, "m": 0})  # two people say 1, which is not 2


def test_beyond_its_scale() -> None:
    rows = {"A": 4.0, "m": 0.5}, {"A": 1.0, "m": 1.5}, {"A": 2.0, "m": 1.0}
    with pytest.raises(DataError, match=r"^r.jsonl:2: ratings.m: 1.5 is not from 0 to 1; --model-scale is its scale$"):
        ratings_of(*rows, scales=("0,1",))
    policy = ErrorPolicy(skip=True)
    assert (ratings_of(*rows, scales=("0,1",), policy=policy).items, policy.skipped) == (["1", "3"], 1)


@pytest.mark.parametrize("text", ["1", "1,0", "0,0", "a,b", "0,1,2", "nan,1", "0,inf", "=0,1", "m=", ""])
def test_no_scale(text: str) -> None:
    with pytest.raises(UsageError, match=r"as 0,1, for all models, or NAME=0,1 for one$"):
        scales_of([text])


def test_a_scale_of_nobody() -> None:
    row = {"A": 4, "m": 0.5, "m2": 0.5}
    with pytest.raises(UsageError, match="--model-scale x=0,1: no such rater; there are A, m, m2"):
        ratings_of(row, scales=("x=0,1",))
    with pytest.raises(UsageError, match=r"--model-scale m\*=0,2: m has m=0,1 already"):
        ratings_of(row, scales=("m=0,1", "m*=0,2"))
    with pytest.raises(UsageError, match="--model-scale 0,2: that is the second scale of all models"):
        scales_of(["0,1", "0,2"])
    with pytest.raises(UsageError, match="--model-scale 0,1: nobody is a model; --models says who is, or write NAME="):
        ratings_of({"A": 4}, scales=("0,1",))
