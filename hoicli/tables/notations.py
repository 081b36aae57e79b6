"""Result rows as text: JSONL and CSV keep one value a line; table, md, latex and html put subsets side by side."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from textwrap import fill

from hoicli.errors import UsageError, arg, visible
from hoicli.io.messages import note
from hoicli.io.outputs import FIGURE_ENDINGS, check_output
from hoicli.records.caveats import words_of
from hoicli.records.parsing import dump
from hoicli.records.result_rows import Row, tag_column

FORMATS = ("auto", "table", "jsonl", "csv", "md", "latex", "html")
"""What `--format` takes."""
TERMINAL = "terminal"
"""The notation of `--format table` on a terminal: with colours, and as wide as the terminal."""
ENDINGS = {".tex": "latex", ".md": "md", ".html": "html", ".htm": "html", ".csv": "csv", ".jsonl": "jsonl"}
"""The notation of a file by its ending, without .gz."""
_NOT_WRITTEN = (
    *(".xlsx", ".xls", ".ods", ".docx", ".odt", ".parquet", ".tsv", ".npy", ".npz", ".pkl", ".mat", ".yaml", ".xml"),
    *FIGURE_ENDINGS,
)
"""Endings of formats that are not written: rows or records under such a name would mislead."""


def chosen_format(name: str, output: str, *, piped: str = "jsonl") -> str:
    """Return the format to write rows in: the one that `--format` names; for "auto", that of the output file's ending;
    without one, a table on a terminal and `piped` elsewhere.

    name: the value of `--format`; output: the path of the output file, "-" for stdout; piped: the format for pipes and
    for files with another ending. Raises `UsageError` for the ending of a format that is not written."""
    if name != "auto":
        return name
    if output == "-":
        return "table" if sys.stdout.isatty() else piped
    path = output.removesuffix(".gz")
    if path.lower().endswith(_NOT_WRITTEN):
        *endings, last = ENDINGS
        problem = f"rows are not written in this format; end the name in {', '.join(endings)} or {last}"
        raise UsageError(f"{arg('output', output)}: {problem}", code="bad-output")
    return next((notation for ending, notation in ENDINGS.items() if path.lower().endswith(ending)), piped)


def shown_notation(notation: str, output: str) -> str:
    """Return the notation to write in: TERMINAL in place of "table" where the output is stdout ("-") and this is a
    terminal, or gets colours all the same; `notation` unchanged elsewhere."""
    if notation != "table" or output != "-":
        return notation
    from hoicli.tables.plain_text import wants_colours  # not for JSONL, which is written without waiting for it

    return TERMINAL if sys.stdout.isatty() or wants_colours() else notation


LINES = "records are written as JSONL, one a line; end the name in .jsonl"
"""The advice in messages about file names."""


def check_lines(path: str, option: str = "-o", advice: str = LINES) -> None:
    """Raise `UsageError` if records cannot be written to a file, or if its ending is that of another format than JSONL.
    option, advice: for the message, the option that names the file and what to do."""
    check_output(path, option)
    others = (ending for ending, notation in ENDINGS.items() if notation != "jsonl")
    if path.lower().removesuffix(".gz").endswith((*_NOT_WRITTEN, *others)):
        raise UsageError(f"{option} {path}: {advice}", code="bad-output")


def note_json_lines(path: str) -> None:
    """Write a note on stderr if a file of JSON Lines has a name that ends in .json, which is for one JSON value."""
    if path.lower().removesuffix(".gz").endswith(".json"):
        note(f"{path}: has JSON Lines, a record in each; the ending .jsonl tells programs that it is no single value")


def render(rows: Iterable[Row], output_format: str) -> bytes:
    """Return the text of rows, encoded; no rows give no bytes. output_format: TERMINAL, or one of FORMATS but auto.

    In formats of tables, rows of metrics become tables by their kind (in LaTeX, like those of papers where a layout
    fits), and other rows, such as findings and vocabularies, a table with a column for each key."""
    rows = list(rows)
    if not rows:
        return b""
    if output_format == "jsonl":
        return b"".join(map(dump, rows))
    if output_format == "csv":
        return _csv(rows).encode()
    return _tables(rows, output_format).encode()


def _tables(rows: list[Row], output_format: str) -> str:
    """Return rows as tables in one of the formats table, terminal, md, latex and html, one below the other."""
    # imported here, so that JSONL and CSV are written without waiting for it
    from hoicli.records.metrics import kind_of
    from hoicli.tables.arrangement import arrange_by_layout, describe_rows, tables_of
    from hoicli.tables.cells import Showing
    from hoicli.tables.layouts import layout_of
    from hoicli.tables.writers import write_table

    texts = []
    layout = layout_of(rows) if output_format == "latex" else None
    if layout is not None:
        table, rest = arrange_by_layout(rows, layout, Showing(intervals=True))
        # A comment in LaTeX lists the means of the layout's metrics that have no place in it; other means are left out.
        metrics_shown = {column.metric for column in layout.columns(rows)}
        means = [row for row in rest if kind_of(row).mean and row["metric"] in metrics_shown]
        comment = f"% not here: {visible(describe_rows(means))}\n" if means else ""
        texts.append(write_table(table, output_format) + comment)
        rows = [row for row in rest if not kind_of(row).mean]
    if rows:
        texts += [write_table(table, output_format) for table in tables_of(rows)]
    return "\n".join(texts)


def paragraphs_above(texts: Sequence[str], output_format: str) -> list[bytes]:
    """Return sentences as they are printed above the rows, each a paragraph: one item of encoded text, or none in a
    format that programs read."""
    if not texts or output_format not in ("table", TERMINAL, "md", "html"):
        return []
    from hoicli.tables.plain_text import terminal_width
    from hoicli.tables.writers import ESCAPES

    escaped = [ESCAPES[output_format](text) for text in texts]
    if output_format == TERMINAL:
        escaped = [fill(text, terminal_width(), break_on_hyphens=False) for text in escaped]
    if output_format == "html":
        escaped = [f"<p>{text}</p>" for text in escaped]
    between = "\n\n" if output_format == "md" else "\n"
    return [between.join(escaped).encode() + b"\n"]


def flat_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with each tag as a key beside the others; as `tags.NAME`, if any row has a key of that name."""
    keys = {key for key in chain.from_iterable(rows) if key != "tags"}
    flat = []
    for row in rows:
        tags = {f"tags.{key}" if key in keys else tag_column(key): value for key, value in row.get("tags", {}).items()}
        flat.append({key: value for key, value in row.items() if key != "tags"} | tags)
    return flat


def _csv(rows: Sequence[Row]) -> str:
    """Return rows as tidy CSV: a value per line, the union of all keys as the header, a row's caveats in `note`."""
    from hoicli.tables.writers import csv_text

    flat = flat_rows(rows)
    for row, cells in zip(rows, flat, strict=True):
        if words := words_of(row):
            cells["note"] = "; ".join(words)
    header = list(dict.fromkeys(chain.from_iterable(flat)))
    return csv_text(header, ([row.get(key, "") for key in header] for row in flat))
