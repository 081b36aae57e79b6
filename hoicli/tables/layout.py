"""Which rows make one table, and what its lines and columns are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from hoicli.errors import DataError
from hoicli.records.caveats import words_of
from hoicli.records.results import CHANCES, Row, tag_column
from hoicli.tables.kinds import OTHER, kind_of
from hoicli.tables.settings import Place, settings_line

R = TypeVar("R")
T = TypeVar("T")
_DIGITS = {"probability": 4, "ratio": 3}
"""Digits behind the point by unit, where not 2: a ratio, CRI, is below 1 and differs between models in the third."""
Column = tuple[str, str]
"""The group of a column, such as its metric, and its head."""
_COUNTED = frozenset({"oracle", "error", "nms"})
"""Keys of diagnoses and of pair statistics, whose n changes from line to line: a table of them shows it."""
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


@dataclass(frozen=True)
class SideBySide(Generic[T]):
    """Values by line and column; `above` is the group of each column, "" where it is that of the column before."""

    columns: list[Column]
    above: list[str]
    lines: dict[tuple[str, ...], dict[Column, T]]


def grid(
    rows: Iterable[R],
    line: Callable[[R], tuple[str, ...]],
    column: Callable[[R], Column],
    value: Callable[[R], T],
    clash: Callable[[T, T], Exception] | None = None,
) -> SideBySide[T]:
    """The rows' values side by side. Lines and columns keep the order of first appearance, but that the columns of a
    group stand together; of two rows for one place the later one counts, or `clash` makes the error to be raised."""
    lines: dict[tuple[str, ...], dict[Column, T]] = {}
    groups: dict[str, dict[Column, None]] = {}
    for row in rows:
        place = column(row)
        groups.setdefault(place[0], {})[place] = None
        of_line, found = lines.setdefault(line(row), {}), value(row)
        if clash is not None and place in of_line:
            raise clash(of_line[place], found)
        of_line[place] = found
    above = [text for group, places in groups.items() for text in (group, *[""] * (len(places) - 1))]
    return SideBySide([place for places in groups.values() for place in places], above, lines)


_MOST_EMPTY = 1_000_000


def dense(lines: int, columns: int, filled: int) -> None:
    """Raises `DataError` for a table of very many cells of which nearly all are empty, which a few rows can ask for."""
    if lines * columns > max(_MOST_EMPTY, 10 * filled):
        raise DataError(
            f"{lines:,} lines of {columns:,} columns for {filled:,} values would be an empty table; choose rows with "
            "hoicli table --where and --metric, or other lines and columns with --rows and --columns"
        )


def dense_tags(rows: Collection[Row], tags: Sequence[str], index: Sequence[str]) -> None:
    """`dense`, before a line of all tags is made of each row: rows may all have tags of their own."""
    lines = {(frozenset(row.get("tags", {}).items()), *(cell_text(row.get(key)) for key in index)) for row in rows}
    dense(len(lines), len(tags), len(rows))


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


Clash = Callable[[Row, Row], Exception]
"""Makes the error of two rows for one place."""


def tables_of(rows: Sequence[Row], clash: Clash | None = None) -> list[TextTable]:
    """The tables that show the rows: rows that are laid out alike share a table. The settings stand below the last of
    the tables that share them. Of two rows for one place the later one counts, or `clash` makes the error."""
    if kind_of(rows[0]) is OTHER:
        keys = list(dict.fromkeys(key for row in rows for key in row))
        lines = [[cell_text(row.get(key)) for key in keys] for row in rows]
        return [TextTable([""] * len(keys), keys, lines, len(keys))]
    groups: dict[tuple[tuple[str, ...], str | None], list[Row]] = {}
    for row in rows:
        kind = kind_of(row)
        index = tuple(key for key in kind.index if key in row)
        groups.setdefault((index, next((key for key in kind.columns if key in row), None)), []).append(row)
    tables = []
    for (index, column), group in groups.items():
        if column is None:
            group, column = [part for row in group for part in parts_of(row)], "part"
        tables.append(_pivoted(group, index, column, clash))
    after = [*(table.settings for table in tables[1:]), ""]
    return [
        replace(table, settings="") if table.settings == below else table
        for table, below in zip(tables, after, strict=True)
    ]


def annotated(
    table: TextTable,
    rows: Mapping[Place, Sequence[Row]],
    *,
    mark_at: int = 0,
    shown: Collection[str] = (),
    notes: Mapping[Place, Sequence[str]] | None = None,
    apart: Mapping[Place, Sequence[str]] | None = None,
) -> TextTable:
    """The table with what its values' rows say of how they were made: notes with their marks, and the settings.

    rows: those of the value at each place, whose column counts from the first of the values. mark_at: the column of
    names that has the marks which concern a whole line. A note whose marks would fill a group of columns, or a column,
    is marked at its head; one of all values has no mark. shown: the keys of signatures that the table shows.
    notes: further notes of values. apart: those that say how a value's settings differ from the others', so that the
    line of settings leaves them out.
    """
    places: dict[str, dict[Place, None]] = {}
    notes, apart = notes or {}, apart or {}
    for place in sorted(rows):
        of_rows = [note for row in rows[place] for note in words_of(row)]
        for note in (*of_rows, *notes.get(place, ()), *apart.get(place, ())):
            places.setdefault(note, {})[place] = None
    general = dict.fromkeys(n for n, found in places.items() if len(found) == len(rows) and len(table.lines) > 1)
    places = {note: found for note, found in places.items() if note not in general}
    marks: dict[Place, str] = {}
    below = [("*" + (str(number) if len(places) > 1 else ""), note) for number, note in enumerate(places, start=1)]
    marks_of = _marking(table, rows, mark_at)
    for mark, note in below:
        for place in marks_of(set(places[note])):
            marks[place] = marks.get(place, "") + mark
    groups, group = [], ""
    for above in table.above[table.names :]:
        group = above or group
        groups.append(group)
    columns = list(zip(groups, table.heads[table.names :], strict=True))
    lines = [" ".join(name for name in line[: table.names] if name != "-") for line in table.lines]
    below += [("", note) for note in general]
    usual = {place: of for place, of in rows.items() if place not in apart} or rows
    return replace(table, notes=below, marks=marks, settings=settings_line(usual, lines, columns, shown))


def _marking(
    table: TextTable, rows: Mapping[Place, Sequence[Row]], mark_at: int
) -> Callable[[set[Place]], Iterator[Place]]:
    """What says, of the values that a note concerns, where its mark stands: at the names of lines, then at the heads of
    groups and columns, that it fills."""
    span, spans = table.names, []
    for column in range(table.names, len(table.heads)):
        span = column if table.above[column] or column == table.names else span
        spans.append(span)
    axes: tuple[Callable[[Place], Place], ...] = (
        lambda place: (place[0], mark_at),
        lambda place: (ABOVE, spans[place[1]]),
        lambda place: (HEAD, place[1] + table.names),
    )
    filled: list[dict[Place, list[Place]]] = [{} for _ in axes]
    for at, members_of in zip(axes, filled, strict=True):
        for place in rows:
            members_of.setdefault(at(place), []).append(place)

    def marks_of(left: set[Place]) -> Iterator[Place]:
        for at, members_of in zip(axes, filled, strict=True):
            # A mark's members are asked for only where the note has one: notes may be as many as lines.
            for mark in sorted({at(place) for place in left}):
                members = members_of[mark]
                fills = len(members) <= len(left) and left.issuperset(members)
                if fills and (mark[0] != ABOVE or table.above[mark[1]]):
                    left.difference_update(members)
                    yield mark
        yield from sorted((line, column + table.names) for line, column in left)

    return marks_of


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


def _pivoted(rows: Sequence[Row], index: tuple[str, ...], column: str, clash: Clash | None) -> TextTable:
    """A line per value of the tags and of the index, a column per value of `column`, under the metric where the index
    does not name it."""
    tags = list(dict.fromkeys(key for row in rows for key in row.get("tags", {})))
    dense_tags(rows, tags, index)

    def line(row: Row) -> tuple[str, ...]:
        of_tags = row.get("tags", {})
        return (*(str(of_tags.get(tag, "-")) for tag in tags), *(cell_text(row[key]) or "-" for key in index))

    def head(row: Row) -> Column:
        return "" if "metric" in index else str(row["metric"]), str(row[column])

    found = grid(rows, line, head, lambda row: row, clash)
    dense(len(found.lines), len(tags) + len(found.columns), len(rows))
    values = {
        (at, number): [of_line[place]]
        for at, of_line in enumerate(found.lines.values())
        for number, place in enumerate(found.columns)
        if place in of_line
    }
    lines = [
        [*names, *(shown_value(of_line[place]) if place in of_line else "-" for place in found.columns)]
        for names, of_line in found.lines.items()
    ]
    counts = [
        [number_text(of_line[place].get("n"), 0) if place in of_line else "-" for place in found.columns]
        for of_line in found.lines.values()
    ]
    heads = [*map(tag_column, tags), *index, *(head for _, head in found.columns)]
    names = len(tags) + len(index)
    table = TextTable([""] * names + found.above, heads, lines, names)
    mark_at = heads.index("protocol") if "protocol" in index else 0
    made = annotated(table, values, mark_at=mark_at, shown=index)
    return counted(made, counts) if column == "subset" and _COUNTED.intersection(index) else made


def counted(table: TextTable, counts: Sequence[Sequence[str]]) -> TextTable:
    """The table with a line `n`, what each value is over, below the lines that share it. counts: of each line, by
    column."""
    lines: list[Sequence[str]] = []
    at: list[int] = []
    shared: Sequence[str] = []
    last = len(counts) - 1
    for number, (line, count) in enumerate(zip(table.lines, counts, strict=True)):
        at.append(len(lines))
        lines.append(line)
        shared = [b if a == "-" else a for a, b in zip(shared or count, count, strict=True)]
        below = counts[min(number + 1, last)]
        if number == last or any(a != b and "-" not in (a, b) for a, b in zip(shared, below, strict=True)):
            lines.append(["n", *[""] * (table.names - 1), *shared])
            shared = []
    marks = {(line if line < 0 else at[line], column): mark for (line, column), mark in table.marks.items()}
    best, second = ([(at[line], column) for line, column in places] for places in (table.best, table.second))
    return replace(table, lines=lines, marks=marks, best=best, second=second)


def shown_value(row: Row) -> str:
    """A row's value, with its 95 % interval if it has one."""
    digits = digits_of(row)
    spread = "" if row.get("sd") is None else f" ± {number_text(row['sd'], digits)}"
    return number_text(row["value"], digits) + spread + interval_text(row, digits)


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
