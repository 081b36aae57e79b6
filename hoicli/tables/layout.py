"""Which rows make one table, and what its lines and columns are."""

from __future__ import annotations

from collections.abc import Sequence

from hoicli.records.caveats import words_of
from hoicli.records.results import CHANCES, Row, tag_column

Cells = list[list[str]]


def marked(rows: Sequence[Row], star: str = "*") -> tuple[list[Row], list[str]]:
    """(the rows, those that a caveat concerns with a mark behind their protocol; what each mark means, to stand below).

    Signatures say which rows these are (`hoicli.records.caveats`).
    """
    words = list(dict.fromkeys(note for row in rows for note in words_of(row)))
    marks = {note: star + (str(number) if len(words) > 1 else "") for number, note in enumerate(words, start=1)}
    shown = [
        {**row, "protocol": row["protocol"] + "".join(marks[note] for note in words_of(row))}
        if words and "protocol" in row and "signature" in row
        else row
        for row in rows
    ]
    return shown, [f"{mark} {note}" for note, mark in marks.items()]


INDEX_KEYS = ("protocol", "step", "oracle", "error", "nms", "det_threshold")
"""What the lines of a summary table may be named by."""


LISTED = "listed"
"""In place of a column: a line a row, with what else the row says of its value side by side (`listed`)."""


def layout_of(row: Row) -> tuple[tuple[str, ...], str]:
    """(index, column) of the table a row belongs to: subsets side by side, or for classes what was measured."""
    if "p_bootstrap" in row:
        named = ("verb", "role" if "role" in row else "object") if "verb" in row else ("error", "oracle")
        return tuple(key for key in ("protocol", "metric", *named, "subset") if key in row), LISTED
    if "image_id" in row:
        return ("image_id",), "subset"
    if "verb" in row:
        qualifier = "role" if "role" in row else "object"
        return ("verb", qualifier, "n"), next(key for key in ("oracle", "error", "protocol") if key in row)
    return tuple(key for key in INDEX_KEYS if key in row), "subset"


def cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def pivot(rows: Sequence[Row], *, index: tuple[str, ...], column: str) -> tuple[Cells, int]:
    """(cells, number of index columns): a line per index value, a column per (metric, `column`) value.

    The first two lines are the headings, metrics above and `column` values below. Tags join the index. Everything
    keeps the order of first appearance; a missing value is a dash.
    """
    tags = list(dict.fromkeys(key for row in rows for key in row.get("tags", {})))
    lines: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    seen: dict[tuple[str, str], None] = {}
    for row in rows:
        key = (
            *(str(row.get("tags", {}).get(tag, "-")) for tag in tags),
            *(cell(row.get(name)) or "-" for name in index),
        )
        place = (str(row["metric"]), str(row[column]))
        seen[place] = None
        lines.setdefault(key, {})[place] = _value(row)
    by_metric: dict[str, list[tuple[str, str]]] = {}
    for place in seen:
        by_metric.setdefault(place[0], []).append(place)
    columns = [place for places in by_metric.values() for place in places]
    metrics = [metric for metric, _ in columns]
    above = [metric if metric not in metrics[:at] else "" for at, metric in enumerate(metrics)]
    names = [*map(tag_column, tags), *index]
    heads: Cells = [[""] * len(names) + above, [*names, *(name for _, name in columns)]]
    body = [[*key, *(cells.get(place, "-") for place in columns)] for key, cells in lines.items()]
    return heads + body, len(tags) + len(index)


def listed(rows: Sequence[Row], *, index: tuple[str, ...]) -> tuple[Cells, int]:
    """(cells, number of index columns) of differences: a line each, with what it is between, its interval and p."""
    tags = list(dict.fromkeys(key for row in rows for key in row.get("tags", {})))
    chances = [key for key in CHANCES if key in rows[0]]
    heads = [*map(tag_column, tags), *index, "from", "to", "difference", *chances]
    body = [
        [
            *(str(row.get("tags", {}).get(tag, "-")) for tag in tags),
            *(cell(row.get(name)) or "-" for name in index),
            *(_number(row[key]) for key in ("from", "to")),
            _value(row),
            *("-" if row[key] is None else f"{row[key]:.4f}" for key in chances),
        ]
        for row in rows
    ]
    return [[""] * len(heads), heads, *body], len(tags) + len(index)


def _value(row: Row) -> str:
    """A row's value, with its 95 % interval if it has one."""
    low, high = row.get("ci_low"), row.get("ci_high")
    return _number(row["value"]) if low is None else f"{_number(row['value'])} [{_number(low)}, {_number(high)}]"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
