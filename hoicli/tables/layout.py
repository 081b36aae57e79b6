"""Which rows make one table, and what its lines and columns are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from hoicli.records.caveats import words_of
from hoicli.records.results import CHANCES, Row, tag_column
from hoicli.tables.kinds import OTHER, kind_of

R = TypeVar("R")
T = TypeVar("T")
_DIGITS = {"probability": 4, "ratio": 3}
"""Digits behind the point by unit, where not 2: a ratio, CRI, is below 1 and differs between models in the third."""
Column = tuple[str, str]
"""The group of a column, such as its metric, and its head."""


@dataclass(frozen=True)
class TextTable:
    """A table as text. above: the groups over the heads, "" continues the one before. The first `names` columns
    identify a line, the others are values."""

    above: Sequence[str]
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    names: int


@dataclass(frozen=True)
class SideBySide(Generic[T]):
    """Values by line and column; `above` is the group of each column, "" where it is that of the column before."""

    columns: list[Column]
    above: list[str]
    lines: dict[tuple[str, ...], dict[Column, T]]


def grid(
    rows: Iterable[R], line: Callable[[R], tuple[str, ...]], column: Callable[[R], Column], value: Callable[[R], T]
) -> SideBySide[T]:
    """The rows' values side by side. Lines and columns keep the order of first appearance, but that the columns of a
    group stand together; of two rows for one place the later one counts."""
    lines: dict[tuple[str, ...], dict[Column, T]] = {}
    groups: dict[str, dict[Column, None]] = {}
    for row in rows:
        place = column(row)
        groups.setdefault(place[0], {})[place] = None
        lines.setdefault(line(row), {})[place] = value(row)
    above = [text for group, places in groups.items() for text in (group, *[""] * (len(places) - 1))]
    return SideBySide([place for places in groups.values() for place in places], above, lines)


def marked(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """(the rows, those that a caveat concerns with a mark behind their protocol; what each mark means, to stand below).

    Signatures say which rows these are (`hoicli.records.caveats`).
    """
    words = list(dict.fromkeys(note for row in rows for note in words_of(row)))
    marks = {note: "*" + (str(number) if len(words) > 1 else "") for number, note in enumerate(words, start=1)}
    shown = [
        {**row, "protocol": row["protocol"] + "".join(marks[note] for note in words_of(row))}
        if words and "protocol" in row and "signature" in row
        else row
        for row in rows
    ]
    return shown, [f"{mark} {note}" for note, mark in marks.items()]


def tables_of(rows: Sequence[Row]) -> list[tuple[TextTable, list[str]]]:
    """The tables that show the rows, each with the notes to stand below: rows that are laid out alike share a table."""
    if kind_of(rows[0]) is OTHER:
        keys = list(dict.fromkeys(key for row in rows for key in row))
        lines = [[cell_text(row.get(key)) for key in keys] for row in rows]
        return [(TextTable([""] * len(keys), keys, lines, len(keys)), [])]
    groups: dict[tuple[tuple[str, ...], str | None], list[Row]] = {}
    for row in rows:
        kind = kind_of(row)
        index = tuple(key for key in kind.index if key in row)
        groups.setdefault((index, next((key for key in kind.columns if key in row), None)), []).append(row)
    tables = []
    for (index, column), group in groups.items():
        shown, notes = marked(group)
        if column is None:
            shown, column = [part for row in shown for part in parts_of(row)], "part"
        tables.append((_pivoted(shown, index, column), notes))
    return tables


def parts_of(row: Row) -> Iterator[Row]:
    """A difference as rows of their own: its class's ground truth, from and to, the difference with its interval, and
    its chances."""
    common = {key: value for key, value in row.items() if key not in ("ci_low", "ci_high")}
    if "verb" in row:
        yield {**common, "part": "n_gt", "value": row["n"]}
    for key in ("from", "to"):
        if key in row:
            yield {**common, "part": key, "value": row[key]}
    yield {**row, "part": "difference"}
    for key in CHANCES:
        if key in row:
            yield {**common, "part": key, "value": row[key], "unit": "probability"}


def cell_text(value: object) -> str:
    """A value of a row as text: lists with commas, nothing for None."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _pivoted(rows: Sequence[Row], index: tuple[str, ...], column: str) -> TextTable:
    """A line per value of the tags and of the index, a column per value of `column`, under the metric where the index
    does not name it."""
    tags = list(dict.fromkeys(key for row in rows for key in row.get("tags", {})))

    def line(row: Row) -> tuple[str, ...]:
        of_tags = row.get("tags", {})
        return (*(str(of_tags.get(tag, "-")) for tag in tags), *(cell_text(row[key]) or "-" for key in index))

    found = grid(rows, line, lambda row: ("" if "metric" in index else str(row["metric"]), str(row[column])), _value)
    lines = [[*names, *(values.get(place, "-") for place in found.columns)] for names, values in found.lines.items()]
    heads = [*map(tag_column, tags), *index, *(head for _, head in found.columns)]
    names = len(tags) + len(index)
    return TextTable([""] * names + found.above, heads, lines, names)


def _value(row: Row) -> str:
    """A row's value, with its 95 % interval if it has one."""
    low, high, digits = row.get("ci_low"), row.get("ci_high"), _DIGITS.get(row.get("unit", ""), 2)
    if row.get("comparable") is False:  # as printed elsewhere
        digits = 2
    value = _number(row["value"], digits)
    if row.get("sd") is not None:
        value += f" ± {_number(row['sd'], digits)}"
    return value if low is None else f"{value} [{_number(low, digits)}, {_number(high, digits)}]"


def _number(value: float | None, digits: int) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"
