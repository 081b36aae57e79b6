"""`table --sort`, and tables as pages that sort themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hoicli.tables.html_page import html_page, source_digest
from tests.support.browsers import chromium
from tests.support.project import Hoicli

VALUES = {"b": (20.0, 5.0), "a": (10.0, None), "d": (30.0, 7.0), "c": (20.0, 9.0)}
"""mAP of each model, full and rare."""


def row(model: str, subset: str, value: float | None, **more: object) -> str:
    """A row of eval's."""
    signature = "protocol:hico|data:hico|gt:00000000|version:1.0.0"
    fields = {"metric": "mAP", "protocol": "hico", "subset": subset, "value": value, "n": 3, "unit": "%"}
    return json.dumps({**fields, "signature": signature, "tags": {"model": model}, **more})


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    lines = (row(model, "full", full) + "\n" + row(model, "rare", rare) for model, (full, rare) in VALUES.items())
    path.write_text("\n".join(lines) + "\n")
    return path


def names(text: str) -> list[str]:
    return [line.split(",")[0] for line in text.splitlines()[1:]]


@pytest.mark.parametrize(
    ("column", "models"),
    [("Full", ["d", "b", "c", "a"]), ("default rare", ["c", "d", "b", "a"]), ("Method", ["a", "b", "c", "d"])],
)
def test_lines_in_the_order_of_a_column(hoicli: Hoicli, rows: Path, column: str, models: list[str]) -> None:
    """The best first, equal ones as they were, and last what has no value."""
    assert names(hoicli("table", "--sort", column, "--format", "csv", rows).out) == models
    own = ("--lines", "tag.model", "--columns", "subset", "--format", "csv", rows)
    if column == "Full":
        assert names(hoicli("table", "--sort", "full", *own).out) == models


def test_what_is_marked_moves_with_its_line(hoicli: Hoicli, rows: Path) -> None:
    rows.write_text(rows.read_text() + row("e", "full", 40.0).replace("gt:00000000", "gt:11111111") + "\n")
    markdown = hoicli("table", "--sort", "Full", "--format", "md", rows).out.splitlines()
    assert markdown[2].startswith("| e\\* | 40.00 |")
    assert markdown[3].startswith("| d | **30.00** |")


def test_published_lines_stay_above(hoicli: Hoicli, rows: Path) -> None:
    lines = hoicli("table", "--sort", "Default Full", "--published", "hico", "--format", "table", rows).out.splitlines()
    rule = next(number for number, line in enumerate(lines) if set(line) == {"-"})
    values = [float(line.split()[-6].split("*")[0]) for line in lines[2:rule]]
    assert values == sorted(values, reverse=True)
    assert [line.split()[0].rstrip("*0123456789") for line in lines[rule + 1 : rule + 5]] == ["d", "b", "c", "a"]


def test_an_unknown_column_is_answered_with_all(hoicli: Hoicli, rows: Path) -> None:
    result = hoicli("table", "--sort", "AP", rows)
    assert result.code == 2
    assert result.err == "hoicli: --sort AP: no column is called so; choose from Method, Default Full, Default Rare\n"


def test_a_page_runs_its_own_script_alone(hoicli: Hoicli, rows: Path) -> None:
    page = hoicli("table", "--format", "html", rows).out
    script = re.search("<script>(.*)</script>", page, re.DOTALL)
    assert script is not None
    assert f"script-src {source_digest(script[1].encode())};" in page
    assert page.count("<script") == 1
    assert b"<title>a&lt;b</title>" in html_page("a<b", b"")


def test_heads_sort_a_page(hoicli: Hoicli, rows: Path, tmp_path: Path) -> None:
    """In Chromium: a press sorts from the best, a second one the other way round, and screen readers are told."""
    assert hoicli("table", "-o", tmp_path / "table.html", rows).code == 0
    with chromium() as browser:
        page = browser.new_page()
        page.goto((tmp_path / "table.html").as_uri())

        def pressed(head: str) -> tuple[str, str | None]:
            """What a press of a head makes of the order, and of what the head says."""
            page.get_by_role("button", name=head, exact=True).click()
            heads = page.locator("tbody th").all_inner_texts()
            return "".join(heads), page.locator("th[aria-sort]").get_attribute("aria-sort")

        assert pressed("Rare") == ("cdba", "descending")
        assert pressed("Rare") == ("bdca", "ascending")  # what has no value stays last
        assert pressed("Method") == ("abcd", "ascending")
