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
from itertools import compress, islice

from hoicli.errors import visible
from hoicli.tables.values import ABOVE, HEAD, MARK, TextTable, spread

_WIDEST = 200
"""A text longer than this stands alone: every line as wide as a label of a megabyte would be gigabytes."""

_MINUS = re.compile(r"-(?=[0-9])")


_MARKDOWN = re.compile(r"[\\`*{}\[\]#|~!$]|(?<![^\W_])_|_(?![^\W_])")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_KEY = re.compile(r"[A-Za-z0-9:_.+-]+")
_LATEX = str.maketrans(
    {
        **{special: f"\\{special}" for special in "#$%&_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)


def markdown(text: str) -> str:
    """Return a text as GitHub-flavoured Markdown has it, in a table's cell or elsewhere; `_` within a word is plain
    there."""
    return _MARKDOWN.sub(r"\\\g<0>", html.escape(visible(text), quote=False))


def latex(text: str) -> str:
    """Return a text with LaTeX's ten special characters escaped, and three that its first fonts lack."""
    return visible(text).translate(_LATEX)


def csv_text(header: Iterable[object], lines: Iterable[Iterable[object]]) -> str:
    """Lines of CSV below their header."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([csv_cell(each) for each in line] for line in (header, *lines))
    return text.getvalue()


def csv_cell(value: object) -> object:
    """A cell of CSV; numbers stay. Text that a spreadsheet would run as a formula begins with `'`."""
    if not isinstance(value, str):
        return value
    formula = value.startswith(("=", "+", "-", "@")) and not _NUMBER.fullmatch(value)
    return f"'{visible(value)}" if formula else visible(value)


def page(text: str) -> str:
    """Return a text as a page of HTML has it."""
    return html.escape(visible(text))


ESCAPES: Mapping[str, Callable[[str], str]] = {
    "table": visible,
    "csv": str,  # its writer escapes every cell (`csv_cell`)
    "md": markdown,
    "latex": latex,
    "html": page,
}
"""What each notation of a table does to a text."""


def write_table(table: TextTable, notation: str) -> str:
    """The table in one of WRITERS, with its notes and settings below. LaTeX has heads as papers do, not as rows."""
    if notation == "latex":
        above, heads = ([_heading(text) for text in texts] for texts in (table.above, table.heads))
        table = replace(table, above=above, heads=heads)
    return WRITERS[notation](_escape_table(table, ESCAPES[notation]))


def _heading(text: str) -> str:
    """A metric or a subset in words; other text as it is."""
    if not re.fullmatch(r"\w+", text, re.ASCII):
        return text
    words = text.replace("_diff", " difference").replace("_", " ").split(" ")
    return " ".join(word.upper() if word in ("mri", "cri") else word for word in words)


def _escape_table(table: TextTable, escape: Callable[[str], str]) -> TextTable:
    """The table with all text that names a line or a column escaped; values are numbers that hoicli wrote."""
    above, heads = (list(map(escape, texts)) for texts in (table.above, table.heads))
    lines = [[*map(escape, line[: table.names]), *line[table.names :]] for line in table.lines]
    notes = [(mark, escape(note)) for mark, note in table.notes]
    settings = (visible if escape is latex else escape)(table.settings)  # a comment in LaTeX
    return replace(table, above=above, heads=heads, lines=lines, notes=notes, settings=settings)


def _mark_values(table: TextTable, mark: Callable[[str], str]) -> tuple[list[str], list[str], list[list[str]]]:
    """Groups, heads and lines with the marks of notes behind their texts, as a notation writes marks."""

    def line(number: int, texts: Sequence[str]) -> list[str]:
        return [
            text + (mark(table.marks[number, at]) if (number, at) in table.marks else "")
            for at, text in enumerate(texts)
        ]

    return line(ABOVE, table.above), line(HEAD, table.heads), [line(at, texts) for at, texts in enumerate(table.lines)]


def _below(table: TextTable, mark: Callable[[str], str]) -> list[str]:
    """The notes with their marks, then the settings."""
    notes = (f"{mark(sign)} {note}" if sign else note for sign, note in table.notes)
    paragraphs = table.paragraphs or [("", 1)] * len(table.notes)
    texts = [begin + "; ".join(islice(notes, length)) for begin, length in paragraphs]
    return texts + [table.settings] * bool(table.settings)


def _superscript(marks: str) -> str:
    """Marks where they are set above the line: 1,2 for *1*2; a single one stays *."""
    return ",".join(marks.split("*")[1:]) or marks


def _plain(table: TextTable) -> str:
    above, heads, body = _mark_values(table, str)
    widths = [min(max(map(len, column)), _WIDEST) for column in zip(heads, *body, strict=True)]
    spans = _spans(above, table.names)
    # A metric's name may be wider than its columns: give the first of them the room.
    for at, span in spans:
        widths[at] += max(0, min(len(above[at]), _WIDEST) - _room(widths, at, span))
    texts = [
        "  ".join(
            text.ljust(width) if at < table.names else text.rjust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in (heads, *body)
    ]
    if table.own_lines:
        texts.insert(table.own_lines + 1, "-" * _room(widths, 0, len(widths)))
    if any(above):
        groups = (above[at].rjust(widths[at]).ljust(_room(widths, at, span)) for at, span in spans)
        texts.insert(0, "  ".join(groups))
    return "".join(text.rstrip() + "\n" for text in (*texts, *_below(table, str)))


def _spans(above: Sequence[str], names: int) -> list[tuple[int, int]]:
    """(first column, number of columns) of each heading: itself and the empty ones after it; each of the first `names`
    columns is alone."""
    starts = [at for at, text in enumerate(above) if text or at <= names]
    return [(start, end - start) for start, end in zip(starts, [*starts[1:], len(above)], strict=True)]


def _room(widths: Sequence[int], at: int, span: int) -> int:
    return sum(widths[at : at + span]) + 2 * (span - 1)


def _merge_headings(above: Sequence[str], heads: Sequence[str]) -> list[str]:
    """One heading a column, for notations without spanning heads."""
    return [f"{group} {head}".strip() for group, head in zip(spread(above), heads, strict=True)]


def _emphasise(
    table: TextTable, body: Sequence[Sequence[str]], best: Callable[[str], str], second: Callable[[str], str]
) -> list[list[str]]:
    """The lines with the best and second values of their columns set apart, without what stands behind the number."""

    def cell(line: int, column: int, text: str) -> str:
        change = best if (line, column) in table.best else second if (line, column) in table.second else None
        number, space, rest = text.partition(" ")
        return text if change is None else change(number) + space + rest

    return [[cell(line, at, text) for at, text in enumerate(texts)] for line, texts in enumerate(body)]


def _markdown(table: TextTable) -> str:
    body = _emphasise(table, table.lines, "**{}**".format, "<u>{}</u>".format)
    above, heads, lines = _mark_values(replace(table, lines=body), markdown)
    rule = ["---" if at < table.names else "---:" for at in range(len(heads))]
    text = "".join("| " + " | ".join(line) + " |\n" for line in (_merge_headings(above, heads), rule, *lines))
    return text + "".join(f"\n{line}\n" for line in _below(table, markdown))


def _latex(table: TextTable) -> str:
    values = [
        [
            text if at < table.names else "--" if text == "-" else _MINUS.sub("$-$", text).replace("±", r"$\pm$")
            for at, text in enumerate(line)
        ]
        for line in table.lines
    ]
    values = _emphasise(table, values, r"\textbf{{{}}}".format, r"\underline{{{}}}".format)

    def mark(marks: str) -> str:
        return f"$^{{{_superscript(marks)}}}$"

    above, heads, body = _mark_values(replace(table, lines=values), mark)
    for at, cite in table.cites.items():
        body[at][0] += rf"~\cite{{{cite}}}" if _KEY.fullmatch(cite) else ""

    def end_line(line: Sequence[str]) -> str:
        # LaTeX takes a [ or * at a line's beginning for an argument of the line's end before it.
        guard = "{}" if line[0].lstrip().startswith(("[", "*")) else ""
        return guard + " & ".join(line) + r" \\"

    top = []
    if any(above):
        spans = _spans(above, table.names)
        wide = [rf"\multicolumn{{{span}}}{{c}}{{{above[at]}}}" if span > 1 else above[at] for at, span in spans]
        rules = [rf"\cmidrule(lr){{{at + 1}-{at + span}}}" for at, span in spans if above[at]]
        top = [end_line(wide), " ".join(rules)]
    lines = [
        r"\begin{tabular}{" + "l" * table.names + "r" * (len(heads) - table.names) + "}",
        r"\toprule",
        *top,
        end_line(heads),
        r"\midrule",
        *map(end_line, body[: table.own_lines]),
        *[r"\midrule"] * bool(table.own_lines),
        *map(end_line, body[table.own_lines :]),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par{{\footnotesize {text}}}" for text in _below(replace(table, settings=""), mark)),
        *([f"% {table.settings}"] * bool(table.settings)),
    ]
    return "\n".join(lines) + "\n"


_NAME = 'scope="row" style="text-align: left; font-weight: normal"'
_SPACED = 'style="border-spacing: 1em 0.2em"'


def _html(table: TextTable) -> str:
    body = _emphasise(table, table.lines, "<b>{}</b>".format, "<u>{}</u>".format)

    def mark(marks: str) -> str:
        return f"<sup>{_superscript(marks)}</sup>"

    def cells(texts: Sequence[str]) -> str:
        return "".join(
            f"<th {_NAME}>{text}</th>" if at < table.names else f'<td style="text-align: right">{text}</td>'
            for at, text in enumerate(texts)
        )

    above, heads, lines = _mark_values(replace(table, lines=body), mark)
    rows = []
    if any(above):
        rows.append("".join(f'<th colspan="{span}">{above[at]}</th>' for at, span in _spans(above, table.names)))
    rows.append("".join(f'<th scope="col">{head}</th>' for head in heads))
    head = "".join(f"<tr>{row}</tr>\n" for row in rows)
    text = "".join(f"<tr>{cells(line)}</tr>\n" for line in lines)
    below = "".join(f"<p>{line}</p>\n" for line in _below(table, mark))
    return f"<table {_SPACED}>\n<thead>\n{head}</thead>\n<tbody>\n{text}</tbody>\n</table>\n{below}"


def _csv(table: TextTable) -> str:
    """The table as it is laid out, a head a column; notes and settings are columns at its end, the notes of a line
    with it. Marks would turn numbers into text, so there are none."""
    notes = {mark: note for mark, note in table.notes if mark}
    general = dict.fromkeys(note for mark, note in table.notes if not mark)
    of_line: list[dict[str, None]] = [{**general} for _ in table.lines]
    spans = dict(_spans(table.above, table.names))
    for (place, at), marks in table.marks.items():
        end = at + (spans[at] if place == ABOVE else 1)
        valued = [any(text != "-" for text in line[at:end]) for line in table.lines]  # a head's mark is of its values
        concerned = list(compress(of_line, valued)) if place < 0 else of_line[place : place + 1]
        for mark in MARK.findall(marks):
            for words in concerned:
                words[notes[mark]] = None
    settings = table.settings.removeprefix("settings: ")
    more = ["note"] * bool(table.notes) + ["settings"] * bool(table.settings)
    lines = []
    for line, words in zip(table.lines, of_line, strict=True):
        values = ["" if cell == "-" else cell for cell in line[table.names :]]
        ends = ["; ".join(words)] * bool(table.notes) + [settings] * bool(settings)
        lines.append([*line[: table.names], *values, *ends])
    return csv_text([*_merge_headings(table.above, table.heads), *more], lines)


WRITERS: Mapping[str, Callable[[TextTable], str]] = {
    "table": _plain,
    "csv": _csv,
    "md": _markdown,
    "latex": _latex,
    "html": _html,
}
"""What writes a table whose texts are escaped for its notation."""
