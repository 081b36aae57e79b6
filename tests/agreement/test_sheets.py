"""An item a row and a rater a column, and which CSV is which."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from hoicli.agreement.ratings import Ratings, read_ratings
from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from tests.support.project import FIXTURES, Hoicli

RATINGS = FIXTURES / "ratings.jsonl"


def csv_of(*rows: bytes, policy: ErrorPolicy | None = None, group: str = "") -> Ratings:
    lines = [Line("r.csv", number, row) for number, row in enumerate(rows, start=1) if row.strip()]
    return read_ratings(lines, levels=5, policy=policy or ErrorPolicy(skip=False), group=group)


@pytest.mark.parametrize(
    "rows",
    [
        (b"item,A,Rater B\n", b"x,1,\n", b"y,0,2.5\n"),
        (b"\xef\xbb\xbfRater B;ITEM;A\r\n", b";x;1\r\n", b"2.5;y;0\r\n"),
        (b'A\titem\t"Rater B"\n', b"1\tx\t\n", b"0\ty\t 2.5 \n"),
    ],
)
def test_an_item_a_row(rows: tuple[bytes, ...]) -> None:
    table = csv_of(*rows)
    assert (table.items, table.raters) == (["x", "y"], ["A", "Rater B"])
    np.testing.assert_array_equal(table.values, [[1, np.nan], [0, 2.5]])


def test_wide_and_jsonl_give_the_same_bytes(hoicli: Hoicli, tmp_path: Path) -> None:
    table: dict[str, dict[str, object]] = {}
    for record in map(json.loads, RATINGS.read_text().splitlines()):
        table.setdefault(record["item"], {"item": record["item"]}).update(
            record.get("ratings", {record.get("rater"): record.get("rating")})
        )
    raters = sorted({rater for row in table.values() for rater in row} - {"item"})
    path = tmp_path / "wide.csv"
    with path.open("w", newline="") as file:
        sheet = csv.DictWriter(file, [*raters, "item"])
        sheet.writeheader()
        sheet.writerows(table.values())
    given = ("agree", "--format", "jsonl", "--models", "deepseek,gemini,qwen")
    result = hoicli(*given, path)
    assert result.code == 0
    assert result.out == hoicli(*given, RATINGS).out


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((b"item,rating\n", b"x,1\n"), "r.csv:1: columns item, rating: a rating a row needs item, rater, rating once"),
        ((b"item,rater,A\n", b"x,y,1\n"), "r.csv:1: columns item, rater, A: a rating a row needs"),
        ((b"item,rater,rating,rating\n",), "r.csv:1: columns item, rater, rating, rating: a rating a row needs"),
        ((b"item,kind,A\n",), "r.csv:1: columns item, kind, A: a rating a row needs"),
        ((b"item,A,A\n",), "r.csv:1: 'A' is the name of two columns; give each rater one"),
        ((b"item,A,\n", b"x,1,2\n"), "r.csv:1: a column has no name; write the rater's over it"),
        ((b"item,A,B\n", b"x,1\n"), "r.csv:2: no row of the CSV that line 1 begins (2 cells under 3 columns)"),
        ((b"item,A,B\n", b",1,2\n"), "r.csv:2: item: missing or no name"),
        ((b"item,A,note\n", b"x,1,good\n"), "r.csv:2: ratings.note: missing or no finite number"),
        ((b"item,A,B\n", b"x,1,NA\n"), "r.csv:2: ratings.B: missing or no finite number"),
        ((b"item,A,B\n", b"x,1,7\n"), "r.csv:2: ratings.B: 7 is not from 0 to 4; --levels says how many there are"),
        ((b"item,A,B\n", b"x,1,2\n", b"x,,3\n"), "r.csv:3: rater: 'B' has rated 'x' at r.csv:2 already"),
        ((b"item,A,B\n", b"x,,\n"), "no ratings in it"),
    ],
)
def test_what_is_neither(rows: tuple[bytes, ...], message: str) -> None:
    with pytest.raises(DataError) as caught:
        csv_of(*rows)
    assert str(caught.value).startswith(message)


def test_a_bad_row_may_be_skipped() -> None:
    policy = ErrorPolicy(skip=True)
    table = csv_of(b"item,A,B\n", b"x,1,2\n", b"y,1,9\n", b"z,a,1\n", b"w,3,3\n", policy=policy)
    assert (table.items, policy.skipped) == (["w", "x"], 2)


@pytest.mark.parametrize("wide", [True, False])
def test_the_group_of_an_item_is_a_column(wide: bool) -> None:
    rows = (b"item,Differs,A\n", b"x,verb,1\n", b"y,,2\n") if wide else (
        b"item,rater,rating,Differs\n", b"x,A,1,verb\n", b"y,A,2,\n"
    )  # fmt: skip
    table = csv_of(*rows, group="differs")
    assert (table.raters, table.groups) == (["A"], ("verb", ""))
