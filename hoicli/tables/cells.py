"""A table as text, and the values of its cells as printed."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, NamedTuple

from hoicli.errors import DataError, arg
from hoicli.io.streams import Line
from hoicli.records.caveats import lacks_similarities
from hoicli.records.result_rows import Row, settings_of

Place = tuple[int, int]
"""A line and a column of a table, from 0, without the columns of names."""
_DIGITS = {"probability": 4, "ratio": 3}
"""Digits behind the point by unit, where not 2: a ratio, CRI, is below 1 and differs between models in the third."""
HEAD, ABOVE = -1, -2
"""The line numbers of the two lines above a table's lines (heads, and groups above them) in places of marks."""
MARK = re.compile(r"\*[0-9]*")
"""One mark of a note; a place may have several."""


@dataclass(frozen=True)
class TextTable:
    """A table as text. The first `name_columns` columns name a line, the others hold values.

    above: the groups over the heads; "" continues the group to the left. notes: (mark, text) of each note below the
    table. marks: the marks that follow the text at (line, column). paragraphs: how each paragraph of notes begins and
    how many notes it has; if empty, each note is a paragraph. settings: one line about what made the values. best,
    second: the (line, column) of the best and second-best values of each column. cites: the BibTeX key of a line.
    first_own_line: the first line below the published ones, 0 if there are none. count_lines: the lines that say over
    how many cases the values above them are."""

    above: Sequence[str]
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    name_columns: int
    notes: Sequence[tuple[str, str]] = ()
    marks: Mapping[Place, str] = field(default_factory=dict)
    paragraphs: Sequence[tuple[str, int]] = ()
    settings: str = ""
    best: Collection[Place] = ()
    second: Collection[Place] = ()
    cites: Mapping[int, str] = field(default_factory=dict)
    first_own_line: int = 0
    count_lines: Collection[int] = ()


def spread(above: Sequence[str]) -> list[str]:
    """Return the group of each column. above: the groups over the heads; "" continues the group to the left."""
    groups = [""]
    for group in above:
        groups.append(group or groups[-1])
    return groups[1:]


def cell_text(value: object) -> str:
    """Return a row's value as text: a list with commas, None as ""."""
    if isinstance(value, list | tuple):
        return ", ".join("-" if item is None else str(item) for item in value)
    return "" if value is None else str(value)


def digits_of(row: Row) -> int:
    """Return how many digits after the decimal point a row's value has in tables: by its unit; 2 for a published value
    that does not compare with one's own."""
    return 2 if row.get("comparable") is False else _DIGITS.get(row.get("unit", ""), 2)


def interval_text(row: Row, digits: int) -> str:
    """Return a row's 95 % interval after a space, or "" if it has none; the interval of a count is rounded."""
    low, high = row.get("ci_low"), row.get("ci_high")
    if low is None or high is None:
        return ""
    if isinstance(row["value"], int):
        low, high = round(low), round(high)
    return f" [{number_text(low, digits)}, {number_text(high, digits)}]"


def number_text(value: float | None, digits: int, *, signed: bool = False) -> str:
    """Return a number as tables show it: a count in full with commas, another number with `digits` digits after the
    point, None as "-". signed: whether positive numbers that are no counts have a plus."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return text if text.strip("+-0.") else text.lstrip("+-")  # 0 after rounding has no sign


DRAWN = frozenset({"boot", "ci", "swaps", "permutations", "seed"})
"""Settings that only change intervals and probabilities."""

_SHARES = frozenset({"%", "fraction", "ratio", "probability"})
"""Units of values that are never whole; a whole number of any other is a count."""

NO_KEYS = frozenset(
    {"value", "n", "unit", "tags", "signature", "ci_low", "ci_high", "note", "source", "cite", "comparable"}
)
"""Keys of rows that do not say what a value measures."""


Name = tuple[str, ...]
"""The cells that name a line of a table."""
Head = tuple[str, str]
"""The group of a column, such as its metric, and its head."""


@dataclass(frozen=True)
class Showing:
    """How values are shown. intervals: whether their 95 % intervals follow. over: the tag over whose values a cell is
    averaged, "" for none. n: whether a layout may add lines of how many cases the values are over. sort: the title of
    the column that lines are sorted by, "" for none."""

    intervals: bool = False
    over: str = ""
    n: bool = True
    sort: str = ""


class PlacedRow(dict[str, Any]):
    """A row that knows the line of the file it was read from."""

    line: Line


def place_of(row: Row) -> str:
    """Return the file and line that a row was read from, "" if not known."""
    return row.line.place if isinstance(row, PlacedRow) else ""


def value_of(row: Row, key: str) -> Any:
    """Return a row's value of a key, or of a tag if the key is written `tag.NAME`; None if it has none."""
    return row.get("tags", {}).get(key[4:]) if key.startswith("tag.") else row.get(key)


class Value(NamedTuple):
    """The value of a table's cell. text: the number as printed; behind: what is printed after it, such as an interval;
    number: what the best value of a column is chosen by, None if this value does not compete; notes: the notes below
    the table that it needs."""

    text: str
    behind: str = ""
    number: float | None = None
    notes: Sequence[str] = ()


def plain_value(rows: Sequence[Row]) -> Value:
    """Return the value of the last of the rows, with its 95 % interval if it has one."""
    row = rows[-1]
    digits = digits_of(row)
    return Value(number_text(row["value"], digits), interval_text(row, digits))


def single_value(rows: Sequence[Row]) -> Value:
    """Return the `plain_value` of a cell with one row. Raises `DataError` for more."""
    if len(rows) > 1:
        raise clash_error(*rows[:2])
    return plain_value(rows)


def compared_value(rows: Sequence[Row], showing: Showing) -> Value:
    """Return the value of a cell's row or, if values are averaged over a tag (`showing.over`), the mean of its rows.
    Raises `DataError` if the tag does not tell the rows apart."""
    first = rows[0]
    has_tag = _check_told_apart(rows, showing.over)
    digits = digits_of(first)
    counted = first.get("unit") not in _SHARES  # a share is never whole, so 50 is 50.0
    values = [row["value"] if counted else float(row["value"]) for row in rows if row["value"] is not None]
    if len(rows) == 1 or not values:
        value = values[0] if values else None
        behind = interval_text(first, digits) if showing.intervals else ""
        notes = (f"of one {showing.over}",) if has_tag else ()
    else:
        value = fmean(values)
        behind = f" ± {number_text(stdev(values), digits)}" if len(values) > 1 else ""
        notes = (f"mean ± sample standard deviation over {showing.over}, n = {len(values)}",)
    # DRAWN: settings of random draws, which change no value but intervals and probabilities
    made_with = {tuple(setting for setting in settings_of(row).items() if setting[0] not in DRAWN) for row in rows}
    same_settings = len(made_with) == 1
    if not same_settings:
        notes = (*notes, "values of different settings in one mean: not ranked with the others")
    text = number_text(value, digits)
    comparable = all(row.get("comparable") is not False and not lacks_similarities(settings_of(row)) for row in rows)
    competes = same_settings and value is not None and comparable
    # The number that competes is the printed one: values that look equal are ranked as equal.
    return Value(text, behind, float(text.replace(",", "")) if competes else None, notes)


def _check_told_apart(rows: Sequence[Row], tag: str) -> bool:
    """Raise `DataError` if a cell has several rows that the tag `tag` ("" for none) does not tell apart; return whether
    the rows have that tag."""
    row_by_tag: dict[Hashable, Row] = {}
    for row in rows:
        tag_value = row.get("tags", {}).get(tag) if tag else None
        if tag_value in row_by_tag:
            raise clash_error(row_by_tag[tag_value], row)
        if row_by_tag and (tag_value is None or None in row_by_tag):
            raise clash_error(next(iter(row_by_tag.values())), row)
        row_by_tag[tag_value] = row
    return None not in row_by_tag


def clash_error(first: Row, row: Row) -> DataError:
    """Return the error that says that two rows belong in one cell, and in which keys they differ."""
    first_fields, fields = (
        {**{f"tag.{key}": tag for key, tag in each.get("tags", {}).items()}, **each} for each in (first, row)
    )
    # the signature is no key of a cell, but says what made the rows
    keys = [key for key in dict.fromkeys((*first_fields, *fields)) if key == "signature" or key not in NO_KEYS]
    differing_keys = [key for key in keys if first_fields.get(key) != fields.get(key)]
    what = f"{row['metric']} {row['subset']}"
    other_place = f"as {place_of(first)} has" if place_of(first) else "as another row has"
    if not differing_keys:
        return DataError(
            f"the same {what} {other_place}; leave one of the two out, or tag what made them "
            "(hoicli eval --tag model=NAME)",
            place=place_of(row),
        )
    differences = ", ".join(
        f"{key} ({cell_text(first_fields.get(key)) or 'none'}, {cell_text(fields.get(key)) or 'none'})"
        for key in differing_keys
    )
    apart = f"tell them apart with {arg('tag')} when they are made, or average over a tag with {arg('over')}"
    problem = f"{what} for the same place {other_place}; they differ in {differences}: choose with jq's select, {apart}"
    return DataError(problem, place=place_of(row), code="mixed")


def check_one_unit(rows: Iterable[Row]) -> None:
    """Raise `DataError` if rows give one metric in two units. Counts of errors may have a unit for each error type."""
    first: dict[Hashable, Row] = {}
    for row in rows:
        first_row = first.setdefault((row.get("metric"), row.get("error")), row)
        unit, other_unit = row.get("unit", "%"), first_row.get("unit", "%")
        if unit != other_unit:
            other_text = f"but in {other_unit} at {place_of(first_row) or 'another row'}; give both in one unit"
            problem = f"{row['metric']} {row['subset']} is in {unit}, {other_text}"
            raise DataError(problem, place=place_of(row), field="unit")
