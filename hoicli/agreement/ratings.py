"""Ratings of items by raters, human or model: JSONL or CSV read into one table, an item a row and a rater a column."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

import numpy as np
import orjson

from hoicli.errors import DataError, UsageError, arg
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats
from hoicli.records.parsing import Record, is_number, parse

KINDS = ("human", "model")
KEYS = ("item", "rater", "rating", "kind", "ratings")
"""Keys of a line with a meaning of their own, which can name no groups."""


@dataclass(frozen=True)
class Ratings:
    """values [items, raters], NaN where a rater did not rate an item; items and raters are sorted by name. `models` are
    the raters that are models, in the order in which `--models` lists them, else by name. groups: of each item, "" for
    one without. named: whether `--models` names the models. parted: whether the key of the groups is no
    rater only because it was named."""

    items: list[str]
    raters: list[str]
    values: Floats
    models: tuple[str, ...]
    groups: tuple[str, ...]
    named: bool = False
    parted: bool = False

    def columns(self, raters: Sequence[str]) -> Floats:
        """[items, len(raters)] the columns of some raters."""
        return self.values[:, [self.raters.index(rater) for rater in raters]]

    def within(self, group: str) -> Ratings:
        """The items of one group."""
        chosen = [at for at, name in enumerate(self.groups) if name == group]
        items = [self.items[at] for at in chosen]
        return replace(self, items=items, values=self.values[chosen], groups=(group,) * len(chosen))


def read_ratings(
    lines: Iterable[Line], *, levels: int, policy: ErrorPolicy, models: Sequence[str] = (), group: str = ""
) -> Ratings:
    """The ratings of all lines, each `{"item", "rater", "rating"}` (and perhaps `kind`: human or model) or
    `{"item", "ratings": {rater: rating}}`, from 0 to levels - 1; a file may be a CSV of either instead.

    models: names or patterns (`gpt*`) of the raters that are models; without any `kind` decides, and a rater of whom
    nothing is known is human. group: the key whose value is the group of a line's item.

    Raises `DataError` with file and line for a bad line, a rating given twice, a rater of two kinds and an item of two
    groups, and when there is no rating at all; `UsageError` for a pattern that names nobody.
    """
    if group in KEYS:
        problem = "that key has a meaning of its own; name one that says what an item is of"
        raise UsageError(f"{arg('group', group)}: {problem}")
    given_values: dict[tuple[str, ...], tuple[Any, str]] = {}
    for place, record in _records(lines, policy, group):
        try:
            for field, problem in _problems(record, levels, group):
                raise DataError(problem, place=place, field=field)
            facts = dict(_facts(record, group))
            _refuse_second_values(facts, given_values, place)
        except DataError as error:
            policy.handle(error)
        else:
            for key, value in facts.items():
                given_values.setdefault(key, (value, place))
    ratings = {(key[1], key[2]): value for key, (value, _) in given_values.items() if key[0] == "rating"}
    if not ratings:
        raise DataError("no ratings in it; give lines of item, rater and rating", code="empty")
    items, raters = (sorted({key[side] for key in ratings}) for side in (0, 1))
    values = np.full((len(items), len(raters)), np.nan)
    row, column = ({name: at for at, name in enumerate(names)} for names in (items, raters))
    for (item, rater), rating in ratings.items():
        values[row[item], column[rater]] = rating
    chosen = [rater for rater in raters if given_values.get(("kind", rater), ("",))[0] == "model"]
    groups = tuple(given_values.get((group, item), ("",))[0] for item in items)
    named = _match_raters(models, raters) if models else chosen
    parted = any(groups) and all(is_number(_number(name)) for name in groups if name)
    return Ratings(items, raters, values, tuple(named), groups, bool(models), parted)


def _match_raters(patterns: Sequence[str], raters: Sequence[str]) -> list[str]:
    """The raters that patterns name, in their order; those of one pattern by name."""
    named: dict[str, None] = {}
    for pattern in patterns:
        matching = [rater for rater in raters if fnmatchcase(rater, pattern)]
        if not matching:
            raise UsageError(f"{arg('models', pattern)}: no such rater; there are {', '.join(raters)}")
        named |= dict.fromkeys(matching)
    return list(named)


def _problems(record: Record, levels: int, group: str) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it and what to do)."""
    several = "ratings" in record
    if type(record.get("item")) not in (str, int):
        yield "item", "missing or no name; every line says which item is rated, by a string or an integer"
    if record.get("kind", "human") not in KINDS:
        yield "kind", "is neither human nor model; write one of them, or leave it out"
    if several and type(record["ratings"]) is not dict:
        yield "ratings", "is no object; write the raters' names with their ratings"
        return
    if not several and type(record.get("rater")) is not str:
        yield "rater", "missing or no string; name the rater, or give all of an item in `ratings`"
    for rater, rating in record["ratings"].items() if several else [("", record.get("rating"))]:
        field = f"ratings.{rater}" if several else "rating"
        if not is_number(rating) and not (several and rating is None):
            yield field, "missing or no finite number; leave out what was not rated"
        elif rating is not None and not 0 <= rating <= levels - 1:
            yield field, f"{rating:g} is not from 0 to {levels - 1}; {arg('levels')} says how many there are"
    if group and type(record.get(group) or "") is not str:
        yield group, "is no text; write the name of the item's group, or leave it out"


def _facts(record: Record, group: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what a good record says: ("rating", item, rater), ("kind", rater) and (group, item), with their values."""
    item = str(record["item"])
    for rater, rating in record.get("ratings", {record.get("rater"): record.get("rating")}).items():
        if rating is not None:
            yield ("rating", item, rater), rating
        if "kind" in record:
            yield ("kind", rater), record["kind"]
    if group and record.get(group):
        yield (group, item), record[group]


def _refuse_second_values(
    facts: Mapping[tuple[str, ...], Any], given_values: Mapping[tuple[str, ...], tuple[Any, str]], place: str
) -> None:
    """Raises `DataError` for a rating that was given before, and for another kind or group than was given."""
    for (field, *names), value in facts.items():
        value_before, first = given_values.get((field, *names), (value, ""))
        if first and (field == "rating" or value_before != value):
            problem = f"{value} here and {value_before} at {first} for {' and '.join(map(repr, names))}; keep one"
            raise DataError(problem, place=place, field=field)


def _records(lines: Iterable[Line], policy: ErrorPolicy, group: str) -> Iterator[tuple[str, Record]]:
    """(place, record) of the lines of JSONL and the rows of CSV. Errors go to the policy."""
    for _, of_file in groupby(lines, key=lambda line: line.file):
        sheet = None
        for at, line in enumerate(of_file):
            try:
                if at == 0 and not line.data.lstrip().startswith((b"{", b"[")):
                    sheet = _Sheet(line, group)
                else:
                    yield line.place, parse(line) if sheet is None else sheet.record(line)
            except DataError as error:
                policy.handle(error)


class _Sheet:
    """A CSV under its first line, which has the columns item, rater and rating (a rating a row), or item and one for
    each rater (an item a row). Commas, semicolons or tabs part the cells; a row stands on one line."""

    def __init__(self, header: Line, group: str) -> None:
        self._delimiter = max(",", ";", "\t", key=lambda mark: header.data.count(mark.encode()))
        names = [name.lower() if name.lower() in KEYS else name for name in self._cells(header)]
        self._names, self._group, self._wide = names, group, not {"rater", "rating", "kind"} & set(names)
        several = {"item", "rater", "rating"} <= set(names) or (self._wide and len(names) > 1)
        if "" in names:
            raise DataError("a column has no name; write the rater's over it, or remove it", place=header.place)
        if "item" not in names or not several or len(set(names)) < len(names):
            problem = "neither a JSON object nor the columns of a CSV; these are item, rater and rating, or item and "
            raise DataError(f"{problem}the name of each rater, every name once", place=header.place)

    def record(self, line: Line) -> Record:
        """The record that says what a row does. Raises `DataError` for one that does not fit under the columns."""
        cells = self._cells(line)
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

    def _cells(self, line: Line) -> list[str]:
        try:
            (cells,) = csv.reader([line.data.decode("utf-8-sig")], delimiter=self._delimiter, strict=True)
        except (csv.Error, ValueError):
            raise DataError("neither JSON nor a row of a CSV in UTF-8; fix the line", place=line.place) from None
        return [cell.strip() for cell in cells]


def _number(text: str) -> Any:
    """Return what a cell says, if it is a number as JSON writes them; else the text, which is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
