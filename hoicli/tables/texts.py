"""A table as text, and the texts in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hoicli.records.results import Row

Place = tuple[int, int]
"""A line and a column of a table, from 0, without the columns of names."""
_DIGITS = {"probability": 4, "ratio": 3}
"""Digits behind the point by unit, where not 2: a ratio, CRI, is below 1 and differs between models in the third."""
HEAD, ABOVE = -1, -2
"""The numbers of the two lines over a table's own, as places of marks have them."""


@dataclass(frozen=True)
class TextTable:
    """A table as text. above: the groups over the heads, "" continues the one before. The first `names` columns
    identify a line, the others are values.

    notes: (mark, what it means), to stand below; marks: where these marks stand, behind the texts of (line, column).
    settings: what made the values, in a line. best, second: the (line, column) of the best values of their columns.
    """

    above: Sequence[str]
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    names: int
    notes: Sequence[tuple[str, str]] = ()
    marks: Mapping[Place, str] = field(default_factory=dict)
    settings: str = ""
    best: Collection[Place] = ()
    second: Collection[Place] = ()


def cell_text(value: object) -> str:
    """A value of a row as text: lists with commas, nothing for None."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def digits_of(row: Row) -> int:
    """Digits behind the point of a row's value; a number out of another table has the two that are printed there."""
    return 2 if row.get("comparable") is False else _DIGITS.get(row.get("unit", ""), 2)


def interval_text(row: Row, digits: int) -> str:
    """A row's 95 % interval, behind a space; "" if it has none. That of a count is in whole numbers, rounded."""
    low, high = row.get("ci_low"), row.get("ci_high")
    if low is None or high is None:
        return ""
    if isinstance(row["value"], int):
        low, high = round(low), round(high)
    return f" [{number_text(low, digits)}, {number_text(high, digits)}]"


def number_text(value: float | None, digits: int) -> str:
    """A number as tables show it; a count is whole, with its thousands apart, and what rounds to 0 has no sign."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:.{digits}f}"
    return text if text.strip("-0.") else text.removeprefix("-")
