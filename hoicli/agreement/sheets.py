"""Ratings as CSV, a rating a row, or an item a row and a rater a column; each row becomes a line of JSON."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any

import orjson

from hoicli.errors import DataError, arg
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy

COLUMNS = ("item", "rater", "rating")
"""What the first line of a CSV names that has a rating a row, in any order and among others; `kind` may be there too.
One that names the item and neither of the others has an item a row, and a rater for each other column."""
DELIMITERS = ",;\t"

Record = dict[str, Any]


def as_json(lines: Iterable[Line], policy: ErrorPolicy, group: str = "") -> Iterator[Line]:
    """The lines of JSONL as they are, and for each row of a CSV the JSON line that says the same.

    group: the column that says which group an item is of, "" for none. Raises `DataError` for a first line that can be
    read in two ways.
    """
    for _, of_file in groupby(lines, key=lambda line: line.file):
        file = iter(of_file)
        first = next(file)
        sheet = _sheet(first, group)
        if sheet is None:
            yield from chain([first], file)
        else:
            delimiter, record_of = sheet
            yield from _rows(first, file, delimiter, record_of, policy)


def _sheet(header: Line, group: str) -> tuple[str, Callable[[list[str]], Record]] | None:
    """What stands between the columns of a CSV with this first line, and what turns its cells into a record; None where
    it is none of ratings."""
    if header.data.lstrip().startswith((b"{", b"[")):
        return None
    for delimiter in DELIMITERS:
        names = _cells(header, delimiter)
        lower = [name.lower() for name in names]
        if lower.count("item") != 1 or len(names) < 2:
            continue
        if all(lower.count(name) == 1 for name in COLUMNS):
            return delimiter, partial(_of_rating, lower, group)
        _check_wide(header, names, lower, group)
        return delimiter, partial(_of_item, names, lower, group)
    return None


def _check_wide(header: Line, names: Sequence[str], lower: Sequence[str], group: str) -> None:
    """Raises `DataError` where the columns are not an item's and raters'."""
    half = [name for name in (*COLUMNS[1:], "kind") if name in lower]
    if half:
        raise DataError(
            f"columns {', '.join(names)}: a rating a row needs {', '.join(COLUMNS)} once each, and an item a row has a "
            f"rater's name over each other column, which {half[0]} is not; rename the columns",
            place=header.place,
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        what = f"{twice!r} is the name of two columns" if twice else "two columns have no name"
        raise DataError(f"{what}; give each rater one column", place=header.place)
    if "" in names:
        raise DataError("a column has no name; write the rater's over it, or remove it", place=header.place)
    if all(name in ("item", group.lower()) for name in lower):
        raise DataError("no column has a rater's name; give each rater one", place=header.place)


def _cells(header: Line, delimiter: str) -> list[str]:
    text = header.data.decode("utf-8-sig", "replace")
    try:
        return [name.strip() for name in next(csv.reader([text], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _of_rating(names: Sequence[str], group: str, cells: Sequence[str]) -> Record:
    row = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
    record: Record = {name: row[name] for name in (*COLUMNS, "kind") if name in row}
    if "rating" in record:
        record["rating"] = _number(record["rating"])
    if group and group.lower() in row:
        record[group] = row[group.lower()]
    return record


def _of_item(names: Sequence[str], lower: Sequence[str], group: str, cells: Sequence[str]) -> Record:
    record: Record = {"ratings": {}}
    for name, plain, cell in zip(names, lower, cells, strict=True):
        if plain in ("item", group.lower()):
            record |= {"item" if plain == "item" else group: cell} if cell else {}
        else:
            record["ratings"][name] = _number(cell) if cell else None
    return record


def _rows(
    header: Line, rest: Iterable[Line], delimiter: str, record_of: Callable[[list[str]], Record], policy: ErrorPolicy
) -> Iterator[Line]:
    columns = len(_cells(header, delimiter))
    taken: list[Line] = []  # a cell in quotes may go over several lines

    def texts() -> Iterator[str]:
        for line in rest:
            taken.append(line)
            yield line.data.decode("utf-8", "surrogateescape")

    reader = csv.reader(texts(), delimiter=delimiter, strict=True)
    while True:
        taken.clear()
        try:
            cells = next(reader)
            if len(cells) != columns:
                raise ValueError(f"{len(cells)} cells under {columns} columns")
            data = orjson.dumps(record_of([cell.strip() for cell in cells]))
        except StopIteration:
            return
        except (csv.Error, ValueError, TypeError) as error:
            reasons = {csv.Error: "quotes or line ends out of place", TypeError: "not UTF-8"}  # a TypeError is orjson's
            reason = next((text for kind, text in reasons.items() if isinstance(error, kind)), str(error))
            problem = (
                f"no row of the CSV that line {header.number} begins ({reason}); fix it, or pass "
                f"{arg('on_error', 'skip')}"
            )
            policy.handle(DataError(problem, place=taken[0].place))
        else:
            yield Line(header.file, taken[0].number, data)


def _number(text: str) -> Any:
    """What a cell says, if it is a number as JSON writes them; else the text, which is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
