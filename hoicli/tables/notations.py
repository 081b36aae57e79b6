"""Result rows as text: JSONL and CSV keep one value a line; table, md, latex and html put subsets side by side."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import chain

from hoicli.errors import UsageError, arg, visible
from hoicli.io.messages import note
from hoicli.io.outputs import FIGURE_ENDINGS, check_output
from hoicli.records.caveats import words_of
from hoicli.records.parsing import dump
from hoicli.records.result_rows import Row, tag_column

FORMATS = ("auto", "table", "jsonl", "csv", "md", "latex", "html")
"""What `--format` takes."""


ENDINGS = {".tex": "latex", ".md": "md", ".html": "html", ".htm": "html", ".csv": "csv", ".jsonl": "jsonl"}
"""The notation of a file by its ending, without .gz."""
_NOT_WRITTEN = (
    *(".xlsx", ".xls", ".ods", ".docx", ".odt", ".parquet", ".tsv", ".npy", ".npz", ".pkl", ".mat", ".yaml", ".xml"),
    *FIGURE_ENDINGS,
)
"""Endings of formats that are not written: rows or records under such a name would mislead."""


def chosen_format(name: str, output: str, *, piped: str = "jsonl") -> str:
    """Return the format to write: the named one, else that of the output's ending, else a table on a terminal and
    `piped` elsewhere. Raises `UsageError` for the ending of a format that is not written."""
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


LINES = "records are written as JSONL, one a line; end the name in .jsonl"


def check_lines(path: str, option: str = "-o", advice: str = LINES) -> None:
    """Raise `UsageError` if records cannot be written to a file, or if its name promises another format than JSONL."""
    check_output(path, option)
    others = (ending for ending, notation in ENDINGS.items() if notation != "jsonl")
    if path.lower().removesuffix(".gz").endswith((*_NOT_WRITTEN, *others)):
        raise UsageError(f"{option} {path}: {advice}", code="bad-output")


def tell_lines(path: str) -> None:
    """Note that a file whose name ends in .json has JSON Lines, and not one JSON value."""
    if path.lower().removesuffix(".gz").endswith(".json"):
        note(f"{path}: has JSON Lines, a record in each; the ending .jsonl tells programs that it is no single value")


def render(rows: Iterable[Row], output_format: str) -> bytes:
    """Return the rows in one of FORMATS other than auto; no rows give no bytes.

    Rows of metrics become tables, in LaTeX those of papers where a layout fits; other rows (findings, vocabularies)
    make a table of their own keys."""
    rows = list(rows)
    if not rows:
        return b""
    if output_format == "jsonl":
        return b"".join(map(dump, rows))
    if output_format == "csv":
        return _csv(rows).encode()
    return _tables(rows, output_format).encode()


def _tables(rows: list[Row], output_format: str) -> str:
    # Programs that read JSONL or CSV wait for none of this.
    from hoicli.records.metrics import kind_of
    from hoicli.tables.arrangement import arrange_by_layout, describe_rows, tables_of
    from hoicli.tables.cells import Showing
    from hoicli.tables.layouts import layout_of
    from hoicli.tables.writers import write_table

    texts = []
    layout = layout_of(rows) if output_format == "latex" else None
    if layout is not None:
        table, rest = arrange_by_layout(rows, layout, Showing(intervals=True))
        metrics_shown = {place.metric for place in layout.places(rows)}
        rows = [row for row in rest if not kind_of(row).mean]
        means = [row for row in rest if kind_of(row).mean and row["metric"] in metrics_shown]
        texts.append(
            write_table(table, output_format) + (f"% not here: {visible(describe_rows(means))}\n" if means else "")
        )
    texts += [write_table(table, output_format) for table in tables_of(rows)] if rows else []
    return "\n".join(texts)


def sentences(texts: Sequence[str], output_format: str) -> list[bytes]:
    """Return sentences to stand above the rows, each a paragraph; nothing in a format that programs read."""
    if not texts or output_format not in ("table", "md", "html"):
        return []
    from hoicli.tables.writers import ESCAPES

    escaped = [ESCAPES[output_format](text) for text in texts]
    if output_format == "html":
        escaped = [f"<p>{text}</p>" for text in escaped]
    return [{"md": "\n\n"}.get(output_format, "\n").join(escaped).encode() + b"\n"]


def flat_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with each tag as a key of its own; a tag named like a key of any row becomes `tags.KEY`."""
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
