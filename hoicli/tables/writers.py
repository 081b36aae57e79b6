"""A table in each notation that people read or paste: plain text, Markdown, LaTeX, HTML, CSV.

Image ids, labels, tags and raters come from files that anyone may have written, so what a notation would read as more
than text stands as text. In every notation a character that does not print is written out (`hoicli.errors.visible`), so
that a cell can neither steer a terminal nor hide a part of itself. JSONL is not here: JSON escapes by itself.
"""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from hoicli.errors import visible
from hoicli.tables.cells import ABOVE, HEAD, MARK, TextTable, spread
from hoicli.tables.plain_text import write_plain, write_terminal
from hoicli.tables.table_parts import group_spans, mark_texts, texts_below

_MINUS = re.compile(r"-(?=[0-9])")
_MARKDOWN = re.compile(r"[\\`*{}\[\]#|~!$]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that Markdown may read as more than text; `_` only at the beginning or the end of a word."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CITE_KEY = re.compile(r"[A-Za-z0-9:_.+-]+")
"""Keys of BibTeX that can stand in \\cite."""
_LATEX_NAMES = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater", "|": "bar"}
_LATEX = str.maketrans(
    {special: f"\\{special}" for special in "#$%&_{}"}
    | {character: rf"\text{name}{{}}" for character, name in _LATEX_NAMES.items()}
)


def escape_markdown(text: str) -> str:
    """Return a text escaped for GitHub-flavoured Markdown, where `_` within a word needs no escape."""
    return _MARKDOWN.sub(r"\\\g<0>", html.escape(visible(text), quote=False))


def escape_latex(text: str) -> str:
    """Return a text with LaTeX's ten special characters escaped, and the three that its default fonts lack."""
    return visible(text).translate(_LATEX)


def csv_text(header: Iterable[object], lines: Iterable[Iterable[object]]) -> str:
    """Return a header and lines of cells as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([csv_cell(cell) for cell in line] for line in (header, *lines))
    return text.getvalue()


def csv_cell(value: object) -> object:
    """Return a cell as it is written to CSV: text that a spreadsheet would run as a formula gets a `'` before it."""
    if not isinstance(value, str):
        return value
    formula = value.startswith(("=", "+", "-", "@")) and not _NUMBER.fullmatch(value)
    return f"'{visible(value)}" if formula else visible(value)


def escape_html(text: str) -> str:
    """Return a text escaped for HTML."""
    return html.escape(visible(text))


ESCAPES: Mapping[str, Callable[[str], str]] = {
    "table": visible,
    "terminal": visible,
    "csv": str,  # its writer escapes every cell (`csv_cell`)
    "md": escape_markdown,
    "latex": escape_latex,
    "html": escape_html,
}
"""The function that escapes a text for each notation."""


def write_table(table: TextTable, notation: str) -> str:
    """Return a table in one of the notations WRITERS, with its notes and settings below. In LaTeX the names of metrics
    and subsets are written as words, as in papers."""
    if notation == "latex":
        above, heads = ([_heading(text) for text in texts] for texts in (table.above, table.heads))
        table = replace(table, above=above, heads=heads)
    return WRITERS[notation](_escape_table(table, ESCAPES[notation]))


def _heading(text: str) -> str:
    """Return the name of a metric or subset in words, "pair recall" for pair_recall; other text unchanged."""
    if not re.fullmatch(r"\w+", text, re.ASCII):
        return text
    words = text.replace("_diff", " difference").replace("_", " ").split(" ")
    return " ".join(word.upper() if word in ("mri", "cri") else word for word in words)


def _escape_table(table: TextTable, escape: Callable[[str], str]) -> TextTable:
    """Return the table with all its text escaped, except values, which are numbers that hoicli wrote."""
    above, heads = (list(map(escape, texts)) for texts in (table.above, table.heads))
    lines = [[*map(escape, line[: table.name_columns]), *line[table.name_columns :]] for line in table.lines]
    notes = [(mark, escape(note)) for mark, note in table.notes]
    settings = (visible if escape is escape_latex else escape)(table.settings)  # a comment in LaTeX
    return replace(table, above=above, heads=heads, lines=lines, notes=notes, settings=settings)


def _superscript(marks: str) -> str:
    """Return marks as they are written above the line: 1,2 for *1*2; a single * stays."""
    return ",".join(marks.split("*")[1:]) or marks


def _merge_headings(above: Sequence[str], heads: Sequence[str]) -> list[str]:
    """Return one heading per column ("mAP full"), for notations in which no heading is over several columns."""
    return [f"{group} {head}".strip() for group, head in zip(spread(above), heads, strict=True)]


def _emphasise(
    table: TextTable, body: Sequence[Sequence[str]], best: Callable[[str], str], second: Callable[[str], str]
) -> list[list[str]]:
    """Return the lines with the best and second-best numbers of columns emphasised, but not what follows a number in
    its cell, such as an interval. body: the cells of each line; best, second: write an emphasised number."""

    def emphasise_number(text: str, place: tuple[int, int]) -> str:
        """Return the text of the cell at (line, column)."""
        number, space, rest = text.partition(" ")
        if place in table.best:
            return best(number) + space + rest
        return second(number) + space + rest if place in table.second else text

    lines = []
    for line, texts in enumerate(body):
        lines.append([emphasise_number(text, (line, column)) for column, text in enumerate(texts)])
    return lines


def _markdown(table: TextTable) -> str:
    """Return the table in GitHub-flavoured Markdown, with one heading per column."""
    body = _emphasise(table, table.lines, "**{}**".format, "<u>{}</u>".format)
    above, heads, lines = mark_texts(replace(table, lines=body), escape_markdown)
    rule = ["---" if column < table.name_columns else "---:" for column in range(len(heads))]
    text = "".join("| " + " | ".join(line) + " |\n" for line in (_merge_headings(above, heads), rule, *lines))
    return text + "".join(f"\n{line}\n" for line in texts_below(table, escape_markdown))


def _latex(table: TextTable) -> str:
    """Return the table as a LaTeX tabular with booktabs rules."""
    values = [_latex_values(line, table.name_columns) for line in table.lines]
    values = _emphasise(table, values, r"\textbf{{{}}}".format, r"\underline{{{}}}".format)
    above, heads, body = mark_texts(replace(table, lines=values), _latex_mark)
    for number, cite in table.cites.items():
        body[number][0] += rf"~\cite{{{cite}}}" if _CITE_KEY.fullmatch(cite) else ""
    lines = [
        r"\begin{tabular}{" + "l" * table.name_columns + "r" * (len(heads) - table.name_columns) + "}",
        r"\toprule",
        *(_latex_groups(above, table.name_columns) if any(above) else ()),
        _latex_line(heads),
        r"\midrule",
        *map(_latex_line, body[: table.first_own_line]),  # published lines, which a rule separates from one's own
        *([r"\midrule"] if table.first_own_line else ()),
        *map(_latex_line, body[table.first_own_line :]),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par{{\footnotesize {text}}}" for text in texts_below(replace(table, settings=""), _latex_mark)),
        *([f"% {table.settings}"] if table.settings else ()),
    ]
    return "\n".join(lines) + "\n"


def _latex_values(line: Sequence[str], names: int) -> list[str]:
    """Return the cells of a line with LaTeX's signs for minus, plus-minus and no value. names: how many cells, the
    first ones, name the line; they stay as they are."""
    values = ["--" if text == "-" else _MINUS.sub("$-$", text).replace("±", r"$\pm$") for text in line[names:]]
    return [*line[:names], *values]


def _latex_mark(marks: str) -> str:
    """Return the marks of notes as LaTeX sets them above the line."""
    return f"$^{{{_superscript(marks)}}}$"


def _latex_line(line: Sequence[str]) -> str:
    """Return a line of a LaTeX tabular with these cells."""
    # LaTeX would take a [ or * at a line's beginning for an argument of the \\ that ends the line before.
    guard = "{}" if line[0].lstrip().startswith(("[", "*")) else ""
    return guard + " & ".join(line) + r" \\"


def _latex_groups(above: Sequence[str], names: int) -> tuple[str, str]:
    """Return the LaTeX line of the groups over the heads, and that of the rules below them. above, names: as for
    `group_spans`."""
    spans = group_spans(above, names)
    groups = [rf"\multicolumn{{{span}}}{{c}}{{{above[at]}}}" if span > 1 else above[at] for at, span in spans]
    rules = [rf"\cmidrule(lr){{{at + 1}-{at + span}}}" for at, span in spans if above[at]]
    return _latex_line(groups), " ".join(rules)


_NAME = 'scope="row" style="text-align: left; font-weight: normal"'
_SPACED = 'style="border-spacing: 1em 0.2em"'
"""Attributes of cells that name a line, and of the table, in HTML."""


def _html(table: TextTable) -> str:
    """Return the table in HTML, with its notes and settings in paragraphs below: a fragment of a page (`html_page`).
    Published lines and one's own are in a body each."""
    body = _emphasise(table, table.lines, "<b>{}</b>".format, "<u>{}</u>".format)

    def mark(marks: str) -> str:
        """Return the marks of notes in HTML."""
        return f"<sup>{_superscript(marks)}</sup>"

    def html_line(number: int, texts: Sequence[str]) -> str:
        """Return a line in HTML. number: the line's; texts: of its cells."""
        cells = "".join(
            f"<th {_NAME}>{text}</th>" if column < table.name_columns else f'<td style="text-align: right">{text}</td>'
            for column, text in enumerate(texts)
        )
        return f'<tr class="counts">{cells}</tr>\n' if number in table.count_lines else f"<tr>{cells}</tr>\n"

    above, heads, lines = mark_texts(replace(table, lines=body), mark)
    rows = []
    if any(above):
        groups = group_spans(above, table.name_columns)
        rows.append("".join(f'<th colspan="{span}" scope="colgroup">{above[at]}</th>' for at, span in groups))
    rows.append("".join(f'<th scope="col">{head}</th>' for head in heads))
    head = "".join(f"<tr>{row}</tr>\n" for row in rows)
    written = [html_line(number, texts) for number, texts in enumerate(lines)]
    bodies = [part for part in (written[: table.first_own_line], written[table.first_own_line :]) if part]
    text = "".join(f"<tbody>\n{''.join(part)}</tbody>\n" for part in bodies)
    below = "".join(f"<p>{line}</p>\n" for line in texts_below(table, mark))
    return f'<table {_SPACED} data-names="{table.name_columns}">\n<thead>\n{head}</thead>\n{text}</table>\n{below}'


def _csv(table: TextTable) -> str:
    """Return the table as CSV, with one heading per column. The notes of each line and the settings of the table are in
    columns at its end, instead of marks, which would turn numbers into text."""
    settings = table.settings.removeprefix("settings: ")
    last_heads = (["note"] if table.notes else []) + (["settings"] if settings else [])
    lines = []
    for line, line_notes in zip(table.lines, _notes_by_line(table), strict=True):
        values = ["" if cell == "-" else cell for cell in line[table.name_columns :]]
        last_cells = (["; ".join(line_notes)] if table.notes else []) + ([settings] if settings else [])
        lines.append([*line[: table.name_columns], *values, *last_cells])
    return csv_text([*_merge_headings(table.above, table.heads), *last_heads], lines)


def _notes_by_line(table: TextTable) -> list[list[str]]:
    """Return the notes of each line: those of the whole table, then those that marks in the line, or at the heads and
    groups of its values, point to."""
    note_of_mark = {mark: note for mark, note in table.notes if mark}
    general = dict.fromkeys(note for mark, note in table.notes if not mark)
    notes_by_line: list[dict[str, None]] = [{**general} for _ in table.lines]  # dicts keep order and drop repetitions
    spans = dict(group_spans(table.above, table.name_columns))
    for (line_number, at), marks in table.marks.items():
        concerned = [line_number]
        if line_number in (ABOVE, HEAD):  # every line with a value below this head or group
            end = at + (spans[at] if line_number == ABOVE else 1)
            concerned = [number for number, line in enumerate(table.lines) if any(text != "-" for text in line[at:end])]
        for mark, number in product(MARK.findall(marks), concerned):
            notes_by_line[number][note_of_mark[mark]] = None
    return [list(notes) for notes in notes_by_line]


WRITERS: Mapping[str, Callable[[TextTable], str]] = {
    "table": write_plain,
    "terminal": write_terminal,
    "csv": _csv,
    "md": _markdown,
    "latex": _latex,
    "html": _html,
}
"""The function that writes a table in each notation, once its texts are escaped."""
