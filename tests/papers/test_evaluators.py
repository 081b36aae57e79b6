"""One source says who made which numbers: the manual shows it, and what it asks for exists."""

from __future__ import annotations

import re

from hoicli.cli import COMMANDS
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.papers.evaluators import EVALUATORS, evaluator_rows
from tests.support.project import ROOT


def test_the_manual_shows_this_table() -> None:
    text = (ROOT / "docs/protocols.md").read_text(encoding="utf-8")
    table = text.partition("| method | what is printed | made by | here |\n| --- | --- | --- | --- |\n")[2].partition(
        "\n\n"
    )[0]
    rows = (f"| {row.methods} | {row.printed} | {row.made_by} | {row.here} |" for row in EVALUATORS)
    assert table == "\n".join(rows)


def test_what_stands_in_the_last_column_exists() -> None:
    for row in EVALUATORS:
        for asked in re.findall(r"`([^` ]+)[^`]*`", row.here):
            assert all(name in PROTOCOLS or name in COMMANDS for name in asked.split(",")), row.methods


def test_rows_are_plain_text() -> None:
    rows = list(evaluator_rows())
    assert len(rows) == len(EVALUATORS)
    assert all(tuple(row) == ("method", "printed", "made_by", "here") for row in rows)
    assert not any("`" in text for row in rows for text in row.values())
