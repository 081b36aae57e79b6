"""Text of any origin comes back from every notation as it was, or as its visible form, and acts on nothing."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hoicli.errors import visible
from hoicli.tables.notations import render
from hoicli.tables.writers import csv_cell

ATTACKS = [
    "\x1b[2J\x1b]0;title\x07",
    "\x9b31m",
    "a\nb\r\nc\td",
    "\u202egnp.exe\u2066x\u2069\u200b\u00ad\ufeff\u2028",
    "a|b\\|c\\",
    r"\input{/etc/passwd}",
    "#$%&_{}~^<>|\\",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2-3",
    "@SUM(A1)",
    "\t=1",
    "\udcff",
    "*bold* _it_ `code` [a](javascript:x) ![b](c) <img src=x onerror=y> &amp; $x$ ~~s~~ # h",
    "[0.5pt]",
    "*",
    "''\"\",;",
    "a--b ``q''",
]
"""What a file may hold to steer a terminal, a spreadsheet, TeX, a page or a reader."""

texts = st.one_of(
    st.sampled_from(ATTACKS),
    st.text(st.sampled_from("ab1 \\|`*_{}[]()#+-.!~$%&^<>@=\"';:,\n\t\x1b\x9b\u202e\u00a0é")),
    st.text(),
)


def rows_of(text: str) -> list[dict[str, Any]]:
    """A row whose tag, tag's name, subset and protocol are the text."""
    ends = {"protocol": f"p{text}", "tags": {"model": f"m{text}", f"k{text}": text}, "signature": ""}
    return [{"metric": f"n{text}", "subset": f"s{text}", "value": 1.5, "n": 2, "unit": "%", **ends}]


def printed(rows: list[dict[str, Any]], notation: str) -> str:
    """What is printed, which has no character that does not print but its own line ends."""
    text = render(rows, notation).decode()
    assert text.replace("\n", "").isprintable()
    return text


class Text(HTMLParser):
    """The text of a page, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.feed(page)
        self.close()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))


@given(texts)
def test_visible(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable()


@given(texts)
def test_csv(text: str) -> None:
    header, line = list(csv.reader(io.StringIO(printed(rows_of(text), "csv"))))
    cells = dict(zip(header, line, strict=True))
    assert cells["subset"] == visible(f"s{text}")
    cell = cells[str(csv_cell(visible(f"k{text}")))]
    formula = text.startswith(("=", "+", "-", "@")) and not re.fullmatch(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?", text)
    assert cell == ("'" + visible(text) if formula else visible(text))


@pytest.mark.parametrize("number", ["-3", "+1e-4", "-.5", "2.", "-1E5"])
def test_csv_keeps_numbers(number: str) -> None:
    assert csv_cell(number) == number


@pytest.mark.parametrize("text", ["-", "-1-1", "+", "-1e", "=1", "@a", "+1\n", "-\u0661"])
def test_csv_defuses_formulas(text: str) -> None:
    assert csv_cell(text) == "'" + visible(text)
    assert csv_cell(-1.5) == -1.5


@given(texts)
def test_table(text: str) -> None:
    lines = printed(rows_of(text), "table").splitlines()
    assert len(lines) == 3
    assert visible(f"m{text}").strip() in lines[2]
    assert visible(f"n{text}").strip() in lines[0]


def shown_by(page: str) -> list[str]:
    """The texts of a Markdown page's cells and paragraphs, as GitHub's rules read them."""
    found = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page):
        assert token.type not in ("html_block", "fence", "code_block")
        if token.type == "inline":
            assert {child.type for child in token.children or ()} <= {"text", "text_special"}
            found.append("".join(child.content for child in token.children or ()))
    return found


@given(texts)
@example("__0__")
def test_markdown(text: str) -> None:
    heads, cells = ["model", f"k{text}", "protocol", f"n{text} s{text}"], [f"m{text}", text, f"p{text}", "1.50"]
    assert shown_by(printed(rows_of(text), "md")) == [visible(cell).strip() for cell in (*heads, *cells)]


def latex_text(source: str) -> str:
    """What TeX sets of a text without commands but those of special characters; fails for any other."""
    words = {r"\textbackslash": "\\", r"\textasciitilde": "~", r"\textasciicircum": "^"}
    words |= {r"\textless": "<", r"\textgreater": ">", r"\textbar": "|"}
    shown = ""
    for part in re.findall(r"\\[a-zA-Z]+\{\}|\\.|.", source, re.DOTALL):
        if part.startswith("\\"):
            shown += words[part.removesuffix("{}")] if part.endswith("{}") else part[1]
            assert part.endswith("{}") or part[1] in "#$%&_{}"
        else:
            assert part not in "#$%&_{}~^\\"
            shown += part
    return shown


def in_words(name: str) -> str:
    """A name as LaTeX's heads have it."""
    return name.replace("_", " ") if re.fullmatch(r"\w+", name, re.ASCII) else visible(name)


@given(texts)
@example("_")
@example("a_b")
def test_latex(text: str) -> None:
    lines = printed(rows_of(text), "latex").split("\n")
    assert lines[:2] == [r"\begin{tabular}{lllr}", r"\toprule"]
    assert lines[3] == r"\cmidrule(lr){4-4}"
    assert lines[7:] == [r"\bottomrule", r"\end{tabular}", ""]
    shown = [[latex_text(cell) for cell in lines[at].removesuffix(r" \\").split(" & ")] for at in (2, 4, 6)]
    assert shown[0] == ["", "", "", in_words(f"n{text}")]
    assert shown[1] == [in_words(head) for head in ("model", f"k{text}", "protocol", f"s{text}")]
    assert shown[2] == [visible(cell) for cell in (f"m{text}", text, f"p{text}", "1.50")]


@given(texts)
def test_html(text: str) -> None:
    page = Text(printed(rows_of(text), "html"))
    assert {tag for tag, _ in page.tags} == {"table", "thead", "tbody", "tr", "th", "td"}
    cells = list(map(visible, (f"n{text}", "model", f"k{text}", "protocol", f"s{text}", f"m{text}", text, f"p{text}")))
    assert "".join(page.texts).replace("\n", "") == "".join([*cells, "1.50"])
