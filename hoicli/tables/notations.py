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
from hoicli.tables.layout import LISTED, Cells, cell, layout_of, listed, marked, pivot

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
    draw: Callable[[Cells, int], str] = {"table": _plain, "md": _markdown, "latex": _latex}[output_format]
    below = {"table": "{}\n", "md": "\n{}\n", "latex": "\\par{{\\footnotesize {}}}\n"}[output_format]
    if "metric" not in rows[0]:
        keys = list(dict.fromkeys(key for row in rows for key in row))
        cells = [keys, *([cell(row.get(key)) for key in keys] for row in rows)]
        return draw([[""] * len(keys), *cells], len(keys)).encode()
    groups: dict[tuple[tuple[str, ...], str], list[Row]] = {}
    for row in rows:
        groups.setdefault(layout_of(row), []).append(row)
    parts = []
    for (index, column), group in groups.items():
        shown, notes = marked(group, star="\\*" if output_format == "md" else "*")
        made = listed(shown, index=index) if column == LISTED else pivot(shown, index=index, column=column)
        parts.append(draw(*made) + "".join(map(below.format, notes)))
    return "\n".join(parts).encode()


def _plain(cells: Cells, names: int) -> str:
    widths = [max(map(len, column)) for column in zip(*cells[1:], strict=True)]
    # A metric's name may be wider than its columns: give the first of them the room.
    for at, text in enumerate(cells[0]):
        span = _span(cells[0], at)
        room = sum(widths[at : at + span]) + 2 * (span - 1)
        widths[at] += max(0, len(text) - room)
    lines = [_above(cells[0], widths)] if any(cells[0]) else []
    for line in cells[1:]:
        aligned = (
            text.ljust(width) if at < names else text.rjust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines) + "\n"


def _span(heads: list[str], at: int) -> int:
    """How many columns a heading stands over: itself and the empty ones after it."""
    end = at + 1
    while end < len(heads) and not heads[end]:
        end += 1
    return end - at


def _above(heads: list[str], widths: list[int]) -> str:
    at, parts = 0, []
    while at < len(heads):
        span = _span(heads, at)
        room = sum(widths[at : at + span]) + 2 * (span - 1)
        parts.append(heads[at].rjust(min(room, widths[at]) if span > 1 else room).ljust(room))
        at += span
    return "  ".join(parts).rstrip()


def _merged_heads(cells: Cells) -> list[str]:
    """One heading a column, for notations without spanning heads."""
    metric, heads = "", []
    for above, below in zip(cells[0], cells[1], strict=True):
        metric = above or metric
        heads.append(f"{metric} {below}".strip())
    return heads


def _markdown(cells: Cells, names: int) -> str:
    lines = [_merged_heads(cells), ["---" if at < names else "---:" for at in range(len(cells[1]))], *cells[2:]]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _latex(cells: Cells, names: int) -> str:
    def escaped(line: list[str]) -> str:
        return " & ".join(text.replace("_", r"\_").replace("%", r"\%").replace("&", r"\&") for text in line) + r" \\"

    rule = [r"\midrule"]
    lines = [
        r"\begin{tabular}{" + "l" * names + "r" * (len(cells[1]) - names) + "}",
        r"\toprule",
        escaped(_merged_heads(cells)),
        *rule,
        *map(escaped, cells[2:]),
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
    writer = csv.DictWriter(text, header, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()
