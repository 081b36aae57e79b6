"""Ratings as CSV, a rating a row, or an item a row and a rater a column; each row becomes a line of JSON."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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


def as_json(lines: Iterable[Line], policy: ErrorPolicy, group: str = "") -> Iterator[Line]:
    """The lines of JSONL as they are, and for each row of a CSV the JSON line that says the same.

    group: the column that says which group an item is of, "" for none. Raises `DataError` for a first line that can be
    read in two ways.
    """
    for _, of_file in groupby(lines, key=lambda line: line.file):
        file = iter(of_file)
        first = next(file)
        sheet = None if first.data.lstrip().startswith((b"{", b"[")) else _Sheet.under(first, group)
        yield from chain([first], file) if sheet is None else sheet.rows(file, policy)


@dataclass(frozen=True)
class _Sheet:
    """A CSV under its first line. keys: of each column the key of a line of ratings, or a rater; "" for one that is not
    read. wide: an item a row."""

    header: Line
    delimiter: str
    keys: Sequence[str]
    group: str
    wide: bool

    @classmethod
    def under(cls, header: Line, group: str) -> _Sheet | None:
        """The sheet with this first line, None where that names no columns of ratings."""
        text = header.data.decode("utf-8-sig", "replace")
        for delimiter in DELIMITERS:
            try:
                names = [name.strip() for name in next(csv.reader([text], delimiter=delimiter), [])]
            except csv.Error:
                continue
            lower = [name.lower() for name in names]
            if lower.count("item") == 1 and len(names) > 1:
                wide = any(lower.count(name) != 1 for name in COLUMNS)
                known = {name: name for name in (("item",) if wide else (*COLUMNS, "kind"))}
                known |= {group.lower(): group} if group else {}
                if wide:
                    _check_raters(header, names, lower, known)
                keys = [known.get(plain, name if wide else "") for name, plain in zip(names, lower, strict=True)]
                return cls(header, delimiter, keys, group, wide)
        return None

    def rows(self, rest: Iterable[Line], policy: ErrorPolicy) -> Iterator[Line]:
        """The rows of the further lines."""
        taken: list[Line] = []  # a cell in quotes may go over several lines

        def texts() -> Iterator[str]:
            for line in rest:
                taken.append(line)
                yield line.data.decode("utf-8", "surrogateescape")

        reader = csv.reader(texts(), delimiter=self.delimiter, strict=True)
        while True:
            taken.clear()
            try:
                cells = next(reader)
                if len(cells) != len(self.keys):
                    raise ValueError(f"{len(cells)} cells under {len(self.keys)} columns")
                data = orjson.dumps(self._record([cell.strip() for cell in cells]))
            except StopIteration:
                return
            except (csv.Error, ValueError, TypeError) as error:
                reasons = {csv.Error: "quotes or line ends out of place", TypeError: "not UTF-8"}  # orjson's
                reason = next((text for kind, text in reasons.items() if isinstance(error, kind)), str(error))
                problem = f"no row of the CSV that line {self.header.number} begins ({reason})"
                policy.handle(DataError(f"{problem}; fix it, or pass {arg('on_error', 'skip')}", place=taken[0].place))
            else:
                yield Line(self.header.file, taken[0].number, data)

    def _record(self, cells: Sequence[str]) -> dict[str, Any]:
        record: dict[str, Any] = {"ratings": {}} if self.wide else {}
        for key, cell in zip(self.keys, cells, strict=True):
            if self.wide and key not in ("item", self.group):
                record["ratings"][key] = _number(cell) if cell else None
            elif key and cell:
                record[key] = _number(cell) if key == "rating" else cell
        return record


def _check_raters(header: Line, names: Sequence[str], lower: Sequence[str], known: Iterable[str]) -> None:
    """Raises `DataError` where the columns are not an item's and raters'."""
    half = [name for name in (*COLUMNS[1:], "kind") if name in lower]
    twice = next((name for name in names if names.count(name) > 1), None)
    problem = ""
    if half:
        problem = f"columns {', '.join(names)}: a rating a row needs {', '.join(COLUMNS)} once each, and an item a row "
        problem += f"has a rater's name over each other column, which {half[0]} is not; rename the columns"
    elif twice is not None:
        what = f"{twice!r} is the name of two columns" if twice else "two columns have no name"
        problem = f"{what}; give each rater one column"
    elif "" in names:
        problem = "a column has no name; write the rater's over it, or remove it"
    elif set(lower) <= set(known):
        problem = "no column has a rater's name; give each rater one"
    if problem:
        raise DataError(problem, place=header.place)


def _number(text: str) -> Any:
    """What a cell says, if it is a number as JSON writes them; else the text, which is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
