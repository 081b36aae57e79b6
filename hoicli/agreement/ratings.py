"""Ratings of items by raters, human or model: JSONL or CSV read into one table, an item a row and a rater a column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

import numpy as np
import orjson

from hoicli.errors import DataError, UsageError, arg
from hoicli.io.streams import Line
from hoicli.io.text_tables import announced_delimiter, cells_of, usual_delimiter
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats
from hoicli.records.parsing import Record, is_number, parse

KINDS = ("human", "model")
Fact = tuple[str, ...]
"""What a line may give a value: ("rating", item, rater), ("kind", rater) or (the key of groups, item)."""
GivenValues = dict[Fact, tuple[Any, str]]
"""{fact: (its value, the place of the first line that gives it)}."""

KEYS = ("item", "rater", "rating", "kind", "ratings")
"""Keys of a line that have a meaning of their own, so they cannot be the key of groups."""


_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")  # 0,5 as in much of Europe


@dataclass(frozen=True)
class Ratings:
    """A table of ratings. values [items, raters]: NaN where a rater did not rate an item; items, raters: their names,
    sorted. models: the raters that are models, in the order of `--models`, else by name. groups: the group of each
    item, "" for an item without one. named: whether `--models` names the models. group_changes_raters: whether the key
    of groups would be a rater if `--group` did not name it."""

    items: list[str]
    raters: list[str]
    values: Floats
    models: tuple[str, ...]
    groups: tuple[str, ...]
    named: bool = False
    group_changes_raters: bool = False

    def columns(self, raters: Sequence[str]) -> Floats:
        """Return [items, len(raters)]: the ratings of some raters, in the order of their names given."""
        return self.values[:, [self.raters.index(rater) for rater in raters]]

    def within(self, group: str) -> Ratings:
        """Return the ratings of the items of one group."""
        chosen = [number for number, name in enumerate(self.groups) if name == group]
        items = [self.items[number] for number in chosen]
        return replace(self, items=items, values=self.values[chosen], groups=(group,) * len(chosen))


def read_ratings(
    lines: Iterable[Line], *, levels: int, policy: ErrorPolicy, models: Sequence[str] = (), group: str = ""
) -> Ratings:
    """Return the ratings of all lines as a table; a rating is from 0 to levels - 1.

    A line is `{"item", "rater", "rating"}` (and perhaps `kind`: human or model) or `{"item", "ratings": {rater:
    rating}}`; a file may be a CSV of either instead. models: names or patterns (`gpt*`) of the raters that are models;
    without any `kind` decides, and a rater of unknown kind is human. group: the key of an item's group.

    Raises `DataError` with file and line for a bad line, a rating given twice, a rater of two kinds and an item of two
    groups, and when there is no rating at all; `UsageError` for a pattern that names nobody."""
    if group in KEYS:
        problem = "that key has a meaning of its own; name one that says what an item is of"
        raise UsageError(f"{arg('group', group)}: {problem}")
    given_values = _collect_facts(lines, levels, policy, group)
    # The keys are ("rating", item, rater), ("kind", rater) and (group, item).
    ratings = {(key[1], key[2]): value for key, (value, _) in given_values.items() if key[0] == "rating"}
    if not ratings:
        raise DataError("no ratings in it; give lines of item, rater and rating", code="empty")
    items, raters = (sorted({key[side] for key in ratings}) for side in (0, 1))  # the keys are (item, rater)
    values = np.full((len(items), len(raters)), np.nan)
    row, column = ({name: number for number, name in enumerate(names)} for names in (items, raters))
    for (item, rater), rating in ratings.items():
        values[row[item], column[rater]] = rating
    groups = tuple(given_values.get((group, item), ("", ""))[0] for item in items)
    if models:
        model_names = _match_raters(models, raters)
    else:
        model_names = [rater for rater in raters if given_values.get(("kind", rater), ("", ""))[0] == "model"]
    # In a CSV with a column for each rater, a column of numbers is a rater's unless `--group` names it.
    group_changes_raters = any(groups) and all(is_number(_number(name)) for name in groups if name)
    return Ratings(items, raters, values, tuple(model_names), groups, bool(models), group_changes_raters)


def _collect_facts(lines: Iterable[Line], levels: int, policy: ErrorPolicy, group: str) -> GivenValues:
    """Return what all good lines say, with the place of the first line that says it; bad lines go to the policy."""
    given_values: GivenValues = {}
    for place, record in _records(lines, policy, group):
        try:
            for field, problem in _problems(record, levels, group):  # the first one is raised
                raise DataError(problem, place=place, field=field)
            facts = dict(_facts(record, group))
            _check_given_once(facts, given_values, place)
        except DataError as error:
            policy.handle(error)
        else:
            for key, value in facts.items():
                given_values.setdefault(key, (value, place))
    return given_values


def _match_raters(patterns: Sequence[str], raters: Sequence[str]) -> list[str]:
    """Return the raters that match the patterns, pattern by pattern; those of one pattern are sorted by name. Raises
    `UsageError` if one matches nobody."""
    names: dict[str, None] = {}
    for pattern in patterns:
        matching = [rater for rater in raters if fnmatchcase(rater, pattern)]
        if not matching:
            raise UsageError(f"{arg('models', pattern)}: no such rater; there are {', '.join(raters)}")
        names |= dict.fromkeys(matching)
    return list(names)


def _problems(record: Record, levels: int, group: str) -> Iterator[tuple[str, str]]:
    """Yield (field, what is wrong with it and what to do) for each problem of a record."""
    has_ratings = "ratings" in record
    if type(record.get("item")) not in (str, int):
        yield "item", "missing or no name; every line says which item is rated, by a string or an integer"
    if record.get("kind", "human") not in KINDS:
        yield "kind", "is neither human nor model; write one of them, or leave it out"
    if has_ratings and type(record["ratings"]) is not dict:
        yield "ratings", "is no object; write the raters' names with their ratings"
        return
    if not has_ratings and type(record.get("rater")) is not str:
        yield "rater", "missing or no string; name the rater, or give all of an item in `ratings`"
    for rater, rating in record["ratings"].items() if has_ratings else [("", record.get("rating"))]:
        field = f"ratings.{rater}" if has_ratings else "rating"
        if not is_number(rating) and not (has_ratings and rating is None):
            yield field, "missing or no finite number; leave out what was not rated"
        elif rating is not None and not 0 <= rating <= levels - 1:
            yield field, f"{rating:g} is not from 0 to {levels - 1}; {arg('levels')} says how many there are"
    if group and type(record.get(group) or "") is not str:
        yield group, "is no text; write the name of the item's group, or leave it out"


def _facts(record: Record, group: str) -> Iterator[tuple[Fact, Any]]:
    """Yield (fact, value) for all that a good record says. group: the key of groups, "" for none."""
    item = str(record["item"])
    for rater, rating in record.get("ratings", {record.get("rater"): record.get("rating")}).items():
        if rating is not None:
            yield ("rating", item, rater), rating
        if "kind" in record:
            yield ("kind", rater), record["kind"]
    if group and record.get(group):
        yield (group, item), record[group]


def _check_given_once(facts: Mapping[Fact, Any], given_values: GivenValues, place: str) -> None:
    """Raise `DataError` for a rating that was given before, and for a kind or group that differs from an earlier one.
    given_values: those of earlier lines."""
    for (field, *names), value in facts.items():
        value_before, first_place = given_values.get((field, *names), (value, ""))
        if first_place and (field == "rating" or value_before != value):
            problem = f"{value} here and {value_before} at {first_place} for {' and '.join(map(repr, names))}; keep one"
            raise DataError(problem, place=place, field=field)


def _records(lines: Iterable[Line], policy: ErrorPolicy, group: str) -> Iterator[tuple[str, Record]]:
    """Yield (place, record) for each line of JSONL files, and for each row of CSV files; errors go to the policy."""
    for _, file_lines in groupby(lines, key=lambda line: line.file):
        yield from _file_records(file_lines, policy, group)


def _file_records(lines: Iterable[Line], policy: ErrorPolicy, group: str) -> Iterator[tuple[str, Record]]:
    """Yield (place, record) for the lines of one file. A first line that is no JSON is the header of a CSV, or Excel's
    `sep=;` before it; bad lines go to the policy, and rows of empty cells are passed over."""
    sheet, delimiter, header = None, None, 0  # sheet stays None in a JSONL file
    for number, line in enumerate(lines):
        with policy.item():
            if number == 0 and (delimiter := announced_delimiter(line)):
                header = 1
            elif number == header and not line.data.lstrip().startswith((b"{", b"[")):
                sheet = _Sheet(line, group, delimiter or usual_delimiter(line))
            elif sheet is None:
                yield line.place, parse(line)
            elif record := sheet.record(line):
                yield line.place, record


class _Sheet:
    """A CSV of ratings, whose header has the columns item, rater and rating (a rating a row), or item and a column for
    each rater. A row stands on one line."""

    def __init__(self, header: Line, group: str, delimiter: str) -> None:
        """Read the header. group: the name of the column of groups, "" for none; delimiter: what separates the cells.
        Raises `DataError` for a line that is no such header."""
        self._delimiter = delimiter
        names = [name.lower() if name.lower() in KEYS else name for name in cells_of(header, delimiter)]
        # wide: a row is an item, with a column for each rater; else a row is a rating
        self._names, self._group, self._wide = names, group, not {"rater", "rating", "kind"} & set(names)
        has_ratings = {"item", "rater", "rating"} <= set(names) or (self._wide and len(names) > 1)
        if "" in names:
            raise DataError("a column has no name; write the rater's over it, or remove it", place=header.place)
        if "item" not in names or not has_ratings or len(set(names)) < len(names):
            problem = "neither a JSON object nor the columns of a CSV; these are item, rater and rating, or item and "
            raise DataError(f"{problem}the name of each rater, every name once", place=header.place)

    def record(self, line: Line) -> Record | None:
        """Return a row as a record, None for a row of empty cells; raise `DataError` if it does not fit the columns."""
        cells = cells_of(line, self._delimiter)
        if not any(cells):
            return None
        if len(cells) != len(self._names):
            problem = f"{len(cells)} cells under {len(self._names)} columns; fix the row"
            raise DataError(problem, place=line.place)
        row: Record = {name: cell for name, cell in zip(self._names, cells, strict=True) if cell}
        reserved = {"item", self._group} if self._wide else {*KEYS, self._group}
        record = {name: cell for name, cell in row.items() if name in reserved}
        if self._wide:
            record["ratings"] = {name: _number(cell) for name, cell in row.items() if name not in reserved}
        elif "rating" in record:
            record["rating"] = _number(record["rating"])
        return record


def _number(text: str) -> Any:
    """Return the number in a cell, as JSON writes it or with a comma for the point; any other text unchanged."""
    try:
        return orjson.loads(text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text)
    except orjson.JSONDecodeError:
        return text
