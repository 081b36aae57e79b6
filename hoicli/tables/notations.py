"""Result rows as text: JSONL and CSV keep one value a line; table, md and latex put subsets side by side."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Sequence

from hoicli.errors import UsageError
from hoicli.records.caveats import words_of
from hoicli.records.parsing import dump
from hoicli.records.results import Row, tag_column
from hoicli.tables.escaping import ESCAPES, csv_cell
from hoicli.tables.layout import TextTable, tables_of

FORMATS = ("auto", "table", "jsonl", "csv", "md", "latex")
"""What `--format` takes; auto is a table on a terminal and JSONL into a pipe or a file."""


def chosen_format(name: str, output: str) -> str:
    """The format in force; raises `UsageError` for an unknown one."""
    if name not in FORMATS:
        raise UsageError(f"--format {name}: choose from {', '.join(FORMATS)}")
    if name == "auto":
        return "table" if output == "-" and sys.stdout.isatty() else "jsonl"
    return name


def render(rows: Iterable[Row], output_format: str) -> bytes:
    """The rows in one of FORMATS but auto. No rows give no bytes.

    Rows of metrics are pivoted; any others (findings, vocabularies) make a table of their own keys.
    """
    rows = list(rows)
    if not rows:
        return b""
    if output_format == "jsonl":
        return b"".join(map(dump, rows))
    if output_format == "csv":
        return _csv(rows).encode()
    draw: Callable[[TextTable], str] = {"table": _plain, "md": _markdown, "latex": _latex}[output_format]
    below = {"table": "{}\n", "md": "\n{}\n", "latex": "\\par{{\\footnotesize {}}}\n"}[output_format]
    escape = ESCAPES[output_format]
    return "\n".join(
        draw(_escaped(cells, escape)) + "".join(below.format(escape(note)) for note in notes)
        for cells, notes in tables_of(rows)
    ).encode()


def sentences(texts: Sequence[str], output_format: str) -> list[bytes]:
    """Sentences to stand above the rows, a paragraph each; none in a notation that programs read."""
    if not texts or output_format not in ("table", "md"):
        return []
    between = {"table": "\n", "md": "\n\n"}[output_format]
    return [between.join(map(ESCAPES[output_format], texts)).encode() + b"\n"]


def _escaped(cells: TextTable, escape: Callable[[str], str]) -> TextTable:
    """The table with all text that names a line or a column escaped; values are numbers that hoicli wrote."""
    above, heads = (list(map(escape, texts)) for texts in (cells.above, cells.heads))
    lines = [[*map(escape, line[: cells.names]), *line[cells.names :]] for line in cells.lines]
    return TextTable(above, heads, lines, cells.names)


def _plain(cells: TextTable) -> str:
    widths = [max(map(len, column)) for column in zip(cells.heads, *cells.lines, strict=True)]
    spans = _spans(cells.above)
    # A metric's name may be wider than its columns: give the first of them the room.
    for at, span in spans:
        widths[at] += max(0, len(cells.above[at]) - _room(widths, at, span))
    lines = [cells.heads, *cells.lines]
    texts = [
        "  ".join(
            text.ljust(width) if at < cells.names else text.rjust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    if any(cells.above):
        above = (cells.above[at].rjust(widths[at]).ljust(_room(widths, at, span)) for at, span in spans)
        texts.insert(0, "  ".join(above))
    return "".join(text.rstrip() + "\n" for text in texts)


def _spans(above: Sequence[str]) -> list[tuple[int, int]]:
    """(first column, number of columns) of each heading: itself and the empty ones after it."""
    starts = [at for at, text in enumerate(above) if text or at == 0]
    return [(start, end - start) for start, end in zip(starts, [*starts[1:], len(above)], strict=True)]


def _room(widths: Sequence[int], at: int, span: int) -> int:
    return sum(widths[at : at + span]) + 2 * (span - 1)


def _merged_heads(cells: TextTable) -> list[str]:
    """One heading a column, for notations without spanning heads."""
    group, heads = "", []
    for above, head in zip(cells.above, cells.heads, strict=True):
        group = above or group
        heads.append(f"{group} {head}".strip())
    return heads


def _markdown(cells: TextTable) -> str:
    rule = ["---" if at < cells.names else "---:" for at in range(len(cells.heads))]
    return "".join("| " + " | ".join(line) + " |\n" for line in (_merged_heads(cells), rule, *cells.lines))


def _latex(cells: TextTable) -> str:
    def ended(line: Sequence[str]) -> str:
        # LaTeX takes a [ or * at a line's beginning for an argument of the line's end before it.
        guard = "{}" if line[0].startswith(("[", "*")) else ""
        return guard + " & ".join(line) + r" \\"

    lines = [
        r"\begin{tabular}{" + "l" * cells.names + "r" * (len(cells.heads) - cells.names) + "}",
        r"\toprule",
        ended(_merged_heads(cells)),
        r"\midrule",
        *map(ended, cells.lines),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _csv(rows: Sequence[Row]) -> str:
    """Tidy: a value a line, tags as columns of their own, the union of all keys as the header; and the caveats of the
    rows that have some in `note`. A tag called like a key of some row is the column `tags.KEY`."""
    keys = {key for row in rows for key in row if key != "tags"}
    flat = []
    for row in rows:
        cells = {key: value for key, value in row.items() if key != "tags"}
        for key, value in row.get("tags", {}).items():
            cells[f"tags.{key}" if key in keys else tag_column(key)] = value
        if words := words_of(row):
            cells["note"] = "; ".join(words)
        flat.append(cells)
    header = list(dict.fromkeys(key for row in flat for key in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(csv_cell, header))
    writer.writerows([csv_cell(row.get(key, "")) for key in header] for row in flat)
    return text.getvalue()
