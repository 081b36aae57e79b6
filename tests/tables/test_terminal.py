"""Tables on a terminal: colours, and as wide as the terminal."""

from __future__ import annotations

import sys

import pytest

from hoicli.tables.cells import ABOVE, TextTable
from hoicli.tables.plain_text import write_terminal
from hoicli.tables.writers import write_table
from tests.support.project import FIXTURES, Hoicli

TABLE = TextTable(
    above=["", "Default", "", "Known Object", ""],
    heads=["Method", "Full", "Rare", "Full", "Rare"],
    lines=[["published", "1.00", "2.00", "-", "-"], ["ours", "3.00 [2.50, 3.50]", "4.00", "5.00", "6.00"]],
    name_columns=1,
    notes=[("*1", "a note that is longer than a narrow terminal is wide")],
    marks={(ABOVE, 3): "*1"},
    settings="settings: data:hico",
    best={(1, 1)},
    first_own_line=1,
)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Makes stdout a terminal of 40 columns that has colours."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    return monkeypatch


def test_a_wide_table_is_several_narrow_ones(terminal: pytest.MonkeyPatch) -> None:
    """The names of the lines, the groups and their marks are repeated, and no line is wider than the terminal."""
    terminal.setenv("NO_COLOR", "1")
    assert (
        write_terminal(TABLE)
        == """\
                     Default
Method                  Full  Rare
----------------------------------
published               1.00  2.00
----------------------------------
ours       3.00 [2.50, 3.50]  4.00

           Known Object*1
Method         Full  Rare
-------------------------
published         -     -
-------------------------
ours           5.00  6.00
*1 a note that is longer than a narrow
terminal is wide
settings: data:hico
"""
    )


def test_a_group_that_is_broken_is_named_twice(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("COLUMNS", "29")
    terminal.setenv("NO_COLOR", "1")
    blocks = write_terminal(TABLE).split("\n\n")
    assert [block.splitlines()[0].split() for block in blocks] == [["Default"], ["Default"], ["Known", "Object*1"]]
    assert blocks[0].splitlines()[1].split() == ["Method", "Full"]


def test_colours_leave_the_text_as_it_is(terminal: pytest.MonkeyPatch) -> None:
    coloured = write_terminal(TABLE)
    assert "\x1b[1m3.00\x1b[0m \x1b[90m[2.50, 3.50]\x1b[0m" in coloured  # the best is bold, its interval grey
    terminal.setenv("TERM", "dumb")
    plain = write_terminal(TABLE)
    for code in ("\x1b[1m", "\x1b[90m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


@pytest.mark.parametrize(("variables", "colours"), [
    ({}, False),
    ({"FORCE_COLOR": "1"}, True),
    ({"FORCE_COLOR": "0"}, False),
    ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
])  # fmt: skip
def test_variables_that_ask_for_colours(
    hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], colours: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    gt, preds = (FIXTURES / "sample" / name for name in ("gt.jsonl.gz", "ours.jsonl.gz"))
    words = ("eval", "--gt", gt, "--bootstrap", 10, "--protocol", "hico", preds)
    assert ("\x1b[90m" in hoicli(*words, "--format", "table").out) == colours
    assert "\x1b" not in hoicli(*words, "--format", "md").out


def test_a_pipe_gets_the_plain_table() -> None:
    assert "\x1b" not in write_table(TABLE, "table")
