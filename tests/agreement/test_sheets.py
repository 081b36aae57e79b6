"""Ratings as CSV: a rating a row, an item a row and a rater a column, and which is which."""

from __future__ import annotations

import codecs
import csv
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hoicli.agreement.ratings import Ratings, read_ratings
from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from tests.support.project import FIXTURES, Hoicli, complaint, refusal

RATINGS = FIXTURES / "agree/ratings.jsonl"


def csv_of(*rows: bytes, policy: ErrorPolicy | None = None, group: str = "") -> Ratings:
    lines = [Line("r.csv", number, row) for number, row in enumerate(rows, start=1) if row.strip()]
    return read_ratings(lines, levels=5, policy=policy or ErrorPolicy(skip=False), group=group)


@pytest.mark.parametrize("rows", [
    (b"item,rater,rating\n", b"x,A,1\n", b"x,m,2.5\n", b"7,A,0\n"),
    (b"\xef\xbb\xbfRater;Rating;Note;Item\r\n", b"A;1;a, b;x\r\n", b"m;2.5;;x\r\n", b"A;0;;7"),
    (b'"rating"\titem\trater\n', b"1\tx\tA\n", b'2.5\t"x"\tm\n', b"0\t7\t A \n"),
    (b"sep=;\r\n", b"item;rater;rating\r\n", b"x;A;1\r\n", b"x;m;2,5\r\n", b"7;A;0,0\r\n", b";;\r\n"),
    (b'"SEP=,"\n', b"item,rater,rating\n", b"x,A,1\n", b'x,m,"2,5"\n', b"7,A,0\n"),
    (b"item\trater\trating\n", b"x\tA\t1\n", b"x\tm\t2,5\n", b"7\tA\t0\n", b"\t\t\n"),
])  # fmt: skip
def test_a_rating_a_row(rows: tuple[bytes, ...]) -> None:
    table = csv_of(*rows)
    assert (table.items, table.raters) == (["7", "x"], ["A", "m"])
    np.testing.assert_array_equal(table.values, [[0, np.nan], [1, 2.5]])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_what_excel_saves(hoicli: Hoicli, tmp_path: Path, encoding: str, ending: str) -> None:
    """Semicolons, decimal commas, names beyond ASCII, a first line sep=;, empty rows; in each encoding it writes."""
    plain, saved = tmp_path / "plain.csv", tmp_path / "saved.csv"
    plain.write_text("item,Jürgen,Zoë\na,0.5,1\nb,3,2.5\nc,4,4\n", encoding="utf-8")
    text = ending.join(["sep=;", "item;Jürgen;Zoë", "a;0,5;1", "b;3;2,5", "c;4;4", ";;", ""])
    saved.write_bytes((codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b"") + text.encode(encoding))
    expected = hoicli("agree", "--format", "jsonl", plain)
    assert expected.code == 0
    assert hoicli("agree", "--format", "jsonl", saved) == expected


@pytest.mark.parametrize("first", ["[Content_Types].xml", "xl/workbook.xml"])
def test_a_workbook_is_named(hoicli: Hoicli, tmp_path: Path, first: str) -> None:
    book, calc = tmp_path / "ratings.xlsx", tmp_path / "ratings.ods"
    for path, name, content in ((book, first, "<xml/>"), (calc, "mimetype", CALC)):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(name, content)
    programs = (book, "Excel's; save it as CSV (Excel: CSV UTF-8)"), (calc, "LibreOffice's; save it as CSV")
    for path, program in programs:
        assert refusal(hoicli("agree", path)) == f"{path}: is {program}"


CALC = "application/vnd.oasis.opendocument.spreadsheet"


def test_the_kind_of_a_rater() -> None:
    table = csv_of(b"item,rater,rating,kind\n", b"x,A,1,human\n", b"x,gpt,2,model\n", b"x,B,3,\n")
    assert (table.raters, table.models) == (["A", "B", "gpt"], ("gpt",))


@pytest.mark.parametrize(("row", "message"), [
    (b"x,A\n", "r.csv:3: 2 cells under 3 columns; fix the row"),
    (b'x,"A"B,1\n', "r.csv:3: no row of a CSV; fix the line"),
    (b"x,\xff,1\n", "r.csv:3: not in UTF-8; save the file again as UTF-8 (in Excel: CSV UTF-8)"),
    (b'x,A,"0,5,1"\n', "r.csv:3: rating: missing or no finite number"),
    (b",A,1\n", "r.csv:3: item: missing or no name"),
    (b"x,,1\n", "r.csv:3: rater: missing or no string"),
    (b"x,A,\n", "r.csv:3: rating: missing or no finite number; leave out what was not rated"),
    (b"x,A,1_0\n", "r.csv:3: rating: missing or no finite number"),
    (b"x,A,5\n", "r.csv:3: rating: 5 is not from 0 to 4; --levels says how many there are"),
    (b"first,A,2\n", "r.csv:3: rating: 2 here and 1 at r.csv:2 for 'first' and 'A'; keep one"),
])  # fmt: skip
def test_a_bad_row(row: bytes, message: str) -> None:
    rows = b"item,rater,rating\n", b"first,A,1\n", row, b"last,A,1\n"
    assert complaint(DataError, csv_of, *rows).startswith(message)
    policy = ErrorPolicy(skip=True)
    assert csv_of(*rows, policy=policy).items == ["first", "last"]
    assert policy.skipped == 1


@pytest.mark.parametrize("rows", [
    (b"item,A,Rater B\n", b"x,1,\n", b"y,0,2.5\n"),
    (b"\xef\xbb\xbfRater B;ITEM;A\r\n", b";x;1\r\n", b"2.5;y;0\r\n"),
    (b'A\titem\t"Rater B"\n', b"1\tx\t\n", b"0\ty\t 2.5 \n"),
])  # fmt: skip
def test_an_item_a_row(rows: tuple[bytes, ...]) -> None:
    table = csv_of(*rows)
    assert (table.items, table.raters) == (["x", "y"], ["A", "Rater B"])
    np.testing.assert_array_equal(table.values, [[1, np.nan], [0, 2.5]])


def test_csv_and_jsonl_give_the_same_bytes(hoicli: Hoicli, tmp_path: Path) -> None:
    table: dict[str, dict[str, object]] = {}
    for record in map(json.loads, RATINGS.read_text().splitlines()):
        table.setdefault(record["item"], {"item": record["item"]}).update(
            record.get("ratings", {record.get("rater"): record.get("rating")})
        )
    raters = sorted({rater for row in table.values() for rater in row} - {"item"})
    wide, long = tmp_path / "wide.csv", tmp_path / "long.csv"
    with wide.open("w", newline="") as file:
        sheet = csv.DictWriter(file, [*raters, "item"])
        sheet.writeheader()
        sheet.writerows(table.values())
    rows = [(item, rater, row[rater]) for item, row in table.items() for rater in raters if row.get(rater) is not None]
    with long.open("w", newline="") as file:
        csv.writer(file).writerows([("item", "rater", "rating"), *rows])
    given = ("agree", "--format", "jsonl", "--models", "deepseek,gemini,qwen")
    assert hoicli(*given, wide).out == hoicli(*given, long).out == hoicli(*given, RATINGS).out != ""


@pytest.mark.parametrize(("rows", "message"), [
    ((b"item,rating\n", b"x,1\n"), "r.csv:1: neither a JSON object nor the columns of a CSV; these are item, rater"),
    ((b"item,x,rating\n", b"a,3,4\n"), "r.csv:1: neither a JSON object nor the columns of a CSV"),
    ((b",item,A,B\n", b"0,x,1,2\n"), "r.csv:1: a column has no name; write the rater's over it, or remove it"),
    ((b"pair,A,B\n", b"x,1,2\n"), "r.csv:1: neither a JSON object nor the columns of a CSV"),
    ((b"item,A,A\n",), "r.csv:1: neither a JSON object nor the columns of a CSV"),
    ((b"item,A,note\n", b"x,1,good\n"), "r.csv:2: ratings.note: missing or no finite number"),
    ((b"item,A,B\n", b"x,1,2\n", b"x,,3\n"), "r.csv:3: rating: 3 here and 2 at r.csv:2"),
    ((b"item,A,B\n", b"x,,\n"), "no ratings in it"),
])  # fmt: skip
def test_what_is_neither(rows: tuple[bytes, ...], message: str) -> None:
    assert complaint(DataError, csv_of, *rows).startswith(message)


@pytest.mark.parametrize("wide", [True, False])
def test_the_group_of_an_item_is_a_column(wide: bool) -> None:
    rows = (b"item,differs,A\n", b"x,verb,1\n", b"y,,2\n") if wide else (
        b"item,rater,rating,differs\n", b"x,A,1,verb\n", b"y,A,2,\n"
    )  # fmt: skip
    table = csv_of(*rows, group="differs")
    assert (table.raters, table.groups) == (["A"], ("verb", ""))
