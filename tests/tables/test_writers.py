"""A table in each notation, and LaTeX as LaTeX sees it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hoicli.tables.arrangement import arrange_by_layout, tables_of
from hoicli.tables.cells import ABOVE, HEAD, Showing, TextTable
from hoicli.tables.layouts import LAYOUTS, layout_of
from hoicli.tables.notations import render
from hoicli.tables.notes import join_notes
from hoicli.tables.published import SETS, published_rows
from hoicli.tables.writers import WRITERS, write_table
from tests.support.project import PATIENCE

TABLE = TextTable(
    above=["", "A & B", "", "C"],
    heads=["Method", "x", "y", "z"],
    lines=[["a_1", "1.00", "-2.00 [-3.00, 1.00]", "-"], ["b", "2.00 ± 0.10", "3.00", "4.00"]],
    name_columns=1,
    notes=[("*1", "50 %"), ("*2", "head"), ("", "all")],
    marks={(0, 1): "*1", (ABOVE, 3): "*2", (HEAD, 1): "*1*2"},
    settings="settings: data:hico|version:0",
    best={(1, 1), (1, 2)},
    second={(0, 1), (0, 2)},
)

WRITTEN = {
    "latex": r"""\begin{tabular}{lrrr}
\toprule
 & \multicolumn{2}{c}{A \& B} & C$^{2}$ \\
\cmidrule(lr){2-3} \cmidrule(lr){4-4}
Method & x$^{1,2}$ & y & z \\
\midrule
a\_1 & \underline{1.00}$^{1}$ & \underline{$-$2.00} [$-$3.00, 1.00] & -- \\
b & \textbf{2.00} $\pm$ 0.10 & \textbf{3.00} & 4.00 \\
\bottomrule
\end{tabular}
\par{\footnotesize $^{1}$ 50 \%}
\par{\footnotesize $^{2}$ head}
\par{\footnotesize all}
% settings: data:hico|version:0
""",
    "csv": """\
Method,A & B x,A & B y,C z,note,settings
a_1,1.00,"'-2.00 [-3.00, 1.00]",,all; 50 %; head,data:hico|version:0
b,2.00 ± 0.10,3.00,4.00,all; head; 50 %,data:hico|version:0
""",
}


@pytest.mark.parametrize("notation", ["latex", "csv"])
def test_notations(notation: str) -> None:
    assert write_table(TABLE, notation) == WRITTEN[notation]


def test_published_lines_are_cited_above_a_rule() -> None:
    table = replace(TABLE, cites={0: "zhang2023pvic", 1: "a}b"}, first_own_line=1)
    latex = write_table(table, "latex").splitlines()
    first = next(number for number, line in enumerate(latex) if line.startswith("a\\_1"))
    assert latex[first].startswith("a\\_1~\\cite{zhang2023pvic} & ")
    assert latex[first + 1] == "\\midrule"
    assert latex[first + 2].startswith("b & ")  # what is no key is no command either
    assert set(write_table(table, "table").splitlines()[3]) == {"-"}
    assert "cite" not in write_table(table, "md")


def test_titles_are_words_in_latex() -> None:
    table = replace(TABLE, above=["", "mri_diff", "", "non_rare"], heads=["Method", "a_b c", "mAP", "cri"])
    assert r"\multicolumn{2}{c}{MRI difference} & non rare" in write_table(table, "latex")
    assert r"Method & a\_b c$^{1,2}$ & mAP & CRI" in write_table(table, "latex")
    assert "mri_diff" in write_table(table, "table")


def test_at_most_two_paragraphs_of_notes() -> None:
    """Each mark says of a line what is true of that line alone."""
    upt, other = (f"made with protocol:upt, unlike the others ({of}): not ranked with them" for of in ("a", "b"))
    notes = [("*1", upt), ("*2", "by hand"), ("*3", "copied: not comparable"), ("*4", other), ("", "all of them")]
    marks = {(0, 0): "*1*2", (1, 0): "*2*3", (HEAD, 3): "*4"}
    table = join_notes(replace(TABLE, notes=notes, marks=marks))
    assert table.marks == {(0, 0): "*1*3", (1, 0): "*2*3", (HEAD, 3): "*1"}
    for notation, before in (("table", "*"), ("md", r"\*")):
        below = write_table(table, notation)
        assert (
            f"not ranked with the others, however high: {before}1 made with protocol:upt; {before}2 copied\n" in below
        )
        assert f"\nall of them; {before}3 by hand\n" in below
    assert r"however high: $^{1}$ made with protocol:upt; $^{2}$ copied}" in write_table(table, "latex")
    csv = write_table(replace(TABLE, notes=notes, marks=marks), "csv").splitlines()
    assert f'"all of them; {upt}; by hand",' in csv[1]  # with no value where the other has its mark
    assert f"all of them; by hand; copied: not comparable; {other}" in csv[2]
    assert join_notes(replace(TABLE, notes=notes[:2])).notes == notes[:2]


def test_one_s_own_line_is_not_said_to_be_copied() -> None:
    own = {"metric": "mAP", "subset": "full", "value": 30.0, "protocol": "hico", "tags": {"model": "ours"},
           "signature": "protocol:hico|data:hico|gt:aa|version:1"}  # fmt: skip
    table = join_notes(arrange_by_layout([*published_rows("hico"), own], LAYOUTS["hico"], Showing())[0])
    mark = table.marks[table.first_own_line, 0]
    assert dict(table.notes)[mark] == "made with gt:aa"


@pytest.mark.parametrize("name", ["[x]", " [x]", "*"])
def test_no_name_is_an_argument_of_the_line_before_it(name: str) -> None:
    """LaTeX looks past spaces for the argument of a line's end."""
    table = TextTable(["", ""], ["Method", "x"], [["a", "1"], [name, "2"]], 1)
    assert f"{{}}{name} & 2" in write_table(table, "latex")


def test_nothing_is_lost_in_any_notation() -> None:
    for notation in WRITERS:
        text = write_table(TABLE, notation)
        for part in ("1.00", "2.00", "3.00", "4.00", "head", "all", "data:hico", "Method"):
            assert part in text, (notation, part)


def test_markdown_and_pages_set_the_best_apart() -> None:
    assert "| b | **2.00** ± 0.10 | **3.00** | 4.00 |" in write_table(TABLE, "md")
    assert r"| <u>1.00</u>\*1 |" in write_table(TABLE, "md")
    assert "<b>2.00</b> ± 0.10</td>" in write_table(TABLE, "html")
    assert '<th colspan="2" scope="colgroup">A &amp; B</th>' in write_table(TABLE, "html")


def test_the_plain_table_is_aligned() -> None:
    lines = write_table(TABLE, "table").splitlines()[1:4]
    assert len({len(line) for line in lines}) == 1


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles_as_pasted(tmp_path: Path) -> None:
    """Every published set, every layout, and texts that would act on TeX, in one document with booktabs."""
    tables = [TABLE]
    for name in SETS:
        found = list(published_rows(name))
        layout = layout_of(found)
        assert layout is not None
        tables.append(arrange_by_layout(found, layout, Showing())[0])
        tables += tables_of(found)
    texts = (r"\input{/etc/passwd}", "#$%&_{}~^<>|\\", "[0.5pt]", "*", "a--b ``q''", "%\n\\end{document}", "\x1b[2J")
    lines = [[text, "1.00"] for text in texts]
    tables.append(
        replace(TABLE, above=["", r"\input{x}"], heads=["%", "#&_"], lines=lines, best=(), second=(), marks={})
    )
    body = "\n\n".join(write_table(table, "latex") for table in tables)
    document = (
        "\\documentclass{article}\\usepackage{booktabs}\\usepackage[a2paper,margin=1cm]{geometry}\n"
        f"\\begin{{document}}\n{body}\n\\end{{document}}\n"
    )
    (tmp_path / "tables.tex").write_text(document)
    command = ["pdflatex", "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if line.startswith(("!", "l.")))
    assert (tmp_path / "tables.pdf").stat().st_size > 0


def test_every_layout_is_asked_for_by_the_rows_that_it_takes() -> None:
    chosen = {layout.name for name in SETS if (layout := layout_of(list(published_rows(name))))}
    assert chosen == set(LAYOUTS)


ROWS: list[dict[str, Any]] = [
    {"metric": "mean_max_recall", "subset": subset, "value": value, "protocol": "hico-ko", "signature": signature}
    for signature in ("protocol:hico-ko|labels:derived",)
    for subset, value in (("full", 12.345), ("a_b%&", 6.0))
]
DERIVED = "image-level labels derived from the annotated pairs: not the official Known Object setting"
SETTINGS = "settings: labels:derived"


@pytest.mark.parametrize(("notation", "text"), [
    ("table",
     f"          mean_max_recall\nprotocol      full  a_b%&\nhico-ko      12.35   6.00\n{DERIVED}\n{SETTINGS}\n"),
    ("md",
     "| protocol | mean_max_recall full | mean_max_recall a_b%&amp; |\n| --- | ---: | ---: |\n"
     f"| hico-ko | 12.35 | 6.00 |\n\n{DERIVED}\n\n{SETTINGS}\n"),
    ("latex",
     "\\begin{tabular}{lrr}\n\\toprule\n"
     " & \\multicolumn{2}{c}{mean max recall} \\\\\n\\cmidrule(lr){2-3}\n"
     "protocol & full & a\\_b\\%\\& \\\\\n"
     "\\midrule\nhico-ko & 12.35 & 6.00 \\\\\n\\bottomrule\n\\end{tabular}\n"
     f"\\par{{\\footnotesize {DERIVED}}}\n% {SETTINGS}\n"),
    ("csv",
     "metric,subset,value,protocol,signature,note\n"
     f"mean_max_recall,full,12.345,hico-ko,protocol:hico-ko|labels:derived,{DERIVED}\n"
     f"mean_max_recall,a_b%&,6.0,hico-ko,protocol:hico-ko|labels:derived,{DERIVED}\n"),
])  # fmt: skip
def test_rows_in_every_notation(notation: str, text: str) -> None:
    assert render(ROWS, notation).decode() == text
    assert render([], notation) == b""


def test_rows_without_a_metric() -> None:
    assert render([{"label": "a", "pos": "v"}, {"label": "bc"}], "table") == b"label  pos\na      v\nbc\n"
