"""How rows become tables: what stands side by side, what is a line of its own, and what caveats add."""

from __future__ import annotations

from typing import Any

from hoicli.tables.arrangement import tables_of
from hoicli.tables.cells import TextTable


def row(subset: str, value: float | None, **more: Any) -> dict[str, Any]:
    return {"metric": "mAP", "subset": subset, "value": value, "n": 3, "protocol": "hico", **more}


def only(rows: list[dict[str, Any]]) -> TextTable:
    (table,) = tables_of(rows)
    assert not table.notes
    return table


def test_subsets_stand_side_by_side() -> None:
    cells = only([row("full", 1.234), row("rare", None), row("full", 2, metric="mean_max_recall"), row("rare", 5.0)])
    assert cells.name_columns == 1
    assert cells.above == ["", "mAP", "", "mean_max_recall"]
    assert cells.heads == ["protocol", "full", "rare", "full"]
    assert cells.lines == [["hico", "1.23", "5.00", "2"]]  # of two values for one place the later one


def test_a_column_of_dashes_is_left_out() -> None:
    """Of values, and of names; a line of dashes stays, and so does the only column."""
    rows = [row("full", 1.0), row("rare", None), row("full", None, protocol="upt"), row("rare", None, protocol="upt")]
    cells = only(rows)
    assert cells.heads == ["protocol", "full"]
    assert cells.lines == [["hico", "1.00"], ["upt", "-"]]
    assert only(rows[1:]).lines == [["hico", "-"], ["upt", "-"]]
    cells = only([row("full", 1.0, verb=verb, object=None) for verb in ("run", "jump")])
    assert cells.heads == ["verb", "n", "hico"]


def test_tags_name_lines() -> None:
    cells = only([row("full", 1.0, tags={"model": "a", "n": "7"}), row("full", 2.0, tags={"model": "b"})])
    assert cells.heads == ["model", "tags.n", "protocol", "full"]
    assert cells.lines == [["a", "7", "hico", "1.00"], ["b", "-", "hico", "2.00"]]


def test_classes_by_what_was_measured() -> None:
    rows = [row("rare", 1.0, verb="ride", object="horse", oracle=oracle) for oracle in ("none", "duplicate")]
    cells = only([*rows, row("full", 2.0, verb="run", object=None, n=1, oracle="none")])
    assert cells.heads == ["verb", "object", "n", "none", "duplicate"]
    assert cells.lines == [["ride", "horse", "3", "1.00", "1.00"], ["run", "-", "1", "2.00", "-"]]


def test_n_stands_below_the_lines_that_share_it() -> None:
    counts = {"none": 13, "duplicate": 13, "false_negative": 10}
    rows = [row("full", 1.0, oracle=oracle, n=n) for oracle, n in counts.items()]
    rows += [
        row("full", 2.0, oracle=oracle, n=n, metric="delta_mAP") for oracle, n in counts.items() if oracle != "none"
    ]
    cells = only(rows)
    assert cells.lines == [
        ["hico", "none", "1.00", "-"],
        ["hico", "duplicate", "1.00", "2.00"],
        ["n", "", "13", "13"],
        ["hico", "false_negative", "1.00", "2.00"],
        ["n", "", "10", "10"],
    ]


def test_marks_stay_with_their_lines_beside_those_of_n() -> None:
    derived = row("full", 2.0, oracle="missed_gt", n=2, signature="protocol:x|labels:derived")
    rows = [row("full", 1.0, oracle="none", signature="protocol:x"), derived]
    (table,) = tables_of(rows)
    assert [table.lines[line][1] for line, _ in table.marks] == ["missed_gt"]


def test_differences_are_listed() -> None:
    ends = {"from": 1.0, "to": 3.0, "ci_low": 1.5, "ci_high": 2.5, "p": 0.01234, "p_bootstrap": None}
    cells = only([row("full", 2.0, **ends)])
    assert cells.heads == ["protocol", "subset", "from", "to", "difference", "p"]  # without rounds no p_bootstrap
    assert cells.lines == [["hico", "full", "1.00", "3.00", "2.00 [1.50, 2.50]", "0.0123"]]


def test_rows_that_are_laid_out_alike_share_a_table() -> None:
    tables = tables_of([row("full", 1.0), row("full", 2.0, verb="ride", object="horse"), row("rare", 3.0)])
    assert [table.lines for table in tables] == [[["hico", "1.00", "3.00"]], [["ride", "horse", "3", "2.00"]]]


def test_numbers_are_as_a_reader_writes_them() -> None:
    count = row("full", 2754, metric="count_diff", unit="count", ci_low=-184.98, ci_high=5364.79)
    assert only([count]).lines == [["hico", "2,754 [-185, 5,365]"]]
    near = row("full", -0.004, ci_low=-0.0049, ci_high=-0.006)
    assert only([near]).lines == [["hico", "0.00 [0.00, -0.01]"]]


def test_findings_keep_their_own_keys() -> None:
    cells = only([{"check": "a", "lines": [1, 2]}, {"check": "b", "fix": None}])
    assert (cells.heads, cells.name_columns) == (["check", "lines"], 2)  # no fix is left out
    assert cells.lines == [["a", "1, 2"], ["b", ""]]
