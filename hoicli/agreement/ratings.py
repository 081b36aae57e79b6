"""Ratings of items by raters, human or model: JSONL or CSV read into one table, an item a row and a rater a column."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, groupby
from typing import Any

import numpy as np
import orjson

from hoicli.arrays.kit import Floats
from hoicli.errors import DataError, UsageError
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import is_number, parse

KINDS = ("human", "model")
COLUMNS = ("item", "rater", "rating")
"""What the first line of a CSV names, in any order and among others; `kind` may be there too."""
OTHER_LINES = {
    "image_id": "records of images",
    "metric": "result rows",
    "similarity": "similarities",
    "epoch": "epochs",
}
"""By a key of theirs: lines of other commands, which are given by mistake."""


@dataclass(frozen=True)
class Ratings:
    """values [items, raters], NaN where a rater did not rate an item; items and raters are sorted by name. `models` are
    the raters that are models, in the order in which `--models` lists them, those it does not name by name."""

    items: list[str]
    raters: list[str]
    values: Floats
    models: tuple[str, ...]

    def of(self, raters: Sequence[str]) -> Floats:
        """[items, len(raters)] the columns of some raters."""
        return self.values[:, [self.raters.index(rater) for rater in raters]]


def read_ratings(
    lines: Iterable[Line], *, levels: int, policy: ErrorPolicy, models: Sequence[str] = (), humans: Sequence[str] = ()
) -> Ratings:
    """The ratings of all lines, each `{"item", "rater", "rating"}` (and perhaps `kind`: human or model) or
    `{"item", "ratings": {rater: rating}}`, from 0 to levels - 1; a file may be a CSV of COLUMNS instead.

    `models` and `humans` are names or patterns (`gpt*`): those of one make the rest the other kind. With both or none
    of them `kind` decides about the rest, and a rater of whom nothing is known is human.

    Raises `DataError` with file and line for a bad line, a rating given twice or a rater of two kinds, and when there
    is no rating at all; `UsageError` for a pattern that names nobody or a rater that both options claim.
    """
    given: dict[tuple[str, str], tuple[float, str]] = {}
    kinds: dict[str, tuple[str, str]] = {}
    for line in _as_json(lines, policy):
        try:
            if not line.data.lstrip().startswith(b"{"):
                text = f"neither a JSON object nor, as a file's first line, names of columns ({', '.join(COLUMNS)})"
                raise DataError(f"{text}; write JSONL, or a CSV with those columns", place=line.place)
            record = parse(line)
            for field, text in _problems(record, levels):
                raise DataError(text, place=line.place, field=field)
            rows = list(_rows(record))
            for item, rater, _ in rows:
                if (item, rater) in given:
                    first = given[item, rater][1]
                    text = f"{rater!r} has rated {item!r} at {first} already; keep one rating"
                    raise DataError(text, place=line.place, field="rater")
                kind = record.get("kind", kinds.get(rater, ("",))[0])
                known, place = kinds.setdefault(rater, (kind, line.place)) if kind else ("", "")
                if known != kind:
                    text = f"{rater!r} is a {kind} here and a {known} at {place}; a rater is one of them"
                    raise DataError(text, place=line.place, field="kind")
        except DataError as error:
            policy.handle(error)
        else:
            given |= {(item, rater): (rating, line.place) for item, rater, rating in rows}
    if not given:
        raise DataError("no ratings in it; give lines of item, rater and rating")
    items, raters = (sorted({key[side] for key in given}) for side in (0, 1))
    values = np.full((len(items), len(raters)), np.nan)
    row, column = ({name: at for at, name in enumerate(names)} for names in (items, raters))
    for (item, rater), (rating, _) in given.items():
        values[row[item], column[rater]] = rating
    chosen = _models(raters, {rater: kind for rater, (kind, _) in kinds.items()}, models, humans)
    return Ratings(items, raters, values, chosen)


def _as_json(lines: Iterable[Line], policy: ErrorPolicy) -> Iterator[Line]:
    """The lines of JSONL as they are, and for each row of a CSV the JSON line that says the same."""
    for _, group in groupby(lines, key=lambda line: line.file):
        file = iter(group)
        first = next(file)
        delimiter = _delimiter(first)
        yield from chain([first], file) if delimiter is None else _rows_of_csv(first, file, delimiter, policy)


def _delimiter(header: Line) -> str | None:
    """What stands between the columns of a CSV with this first line, None where it is none of ratings."""
    if header.data.lstrip().startswith(b"{"):
        return None
    return next((mark for mark in ",;\t" if all(_names(header, mark).count(name) == 1 for name in COLUMNS)), None)


def _names(header: Line, delimiter: str) -> list[str]:
    text = header.data.decode("utf-8-sig", "replace")
    try:
        return [name.strip().lower() for name in next(csv.reader([text], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _rows_of_csv(header: Line, rest: Iterable[Line], delimiter: str, policy: ErrorPolicy) -> Iterator[Line]:
    names = _names(header, delimiter)
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
            if len(cells) != len(names):
                raise ValueError(f"{len(cells)} cells under {len(names)} columns")
            row = {name: cell.strip() for name, cell in zip(names, cells, strict=True) if cell.strip()}
            record = {name: row[name] for name in (*COLUMNS, "kind") if name in row}
            data = orjson.dumps(record | {"rating": _number(record["rating"])} if "rating" in record else record)
        except StopIteration:
            return
        except (csv.Error, ValueError, TypeError) as error:
            reasons = {csv.Error: "quotes or line ends out of place", TypeError: "not UTF-8"}  # a TypeError is orjson's
            reason = next((text for kind, text in reasons.items() if isinstance(error, kind)), str(error))
            problem = f"no row of the CSV that line {header.number} begins ({reason}); fix it, or pass --on-error skip"
            policy.handle(DataError(problem, place=taken[0].place))
        else:
            yield Line(header.file, taken[0].number, data)


def _number(text: str) -> Any:
    """What a cell says, if it is a number as JSON writes them; else the text, which is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _problems(record: dict[str, Any], levels: int) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it and what to do)."""
    other = next((what for key, what in OTHER_LINES.items() if key in record and "item" not in record), None)
    if other is not None:
        yield "item", f"missing: these are {other}, not ratings; a line of ratings has item, rater and rating"
    elif type(record.get("item")) not in (str, int):
        yield "item", "missing or no name; every line says which item is rated, by a string or an integer"
    if record.get("kind", "human") not in KINDS:
        yield "kind", "is neither human nor model; write one of them, or leave it out"
    if "ratings" in record:
        if type(record["ratings"]) is not dict:
            yield "ratings", "is no object; write the raters' names with their ratings"
            return
        ratings = {f"ratings.{rater}": rating for rater, rating in record["ratings"].items() if rating is not None}
    else:
        if type(record.get("rater")) is not str:
            yield "rater", "missing or no string; name the rater, or give all of an item in `ratings`"
        ratings = {"rating": record.get("rating")}
    for field, rating in ratings.items():
        if not is_number(rating):
            yield field, "missing or no finite number; leave out what was not rated"
        elif not 0 <= float(rating or 0) <= levels - 1:
            yield field, f"{rating} is not from 0 to {levels - 1}; --levels says how many there are"


def _rows(record: dict[str, Any]) -> Iterator[tuple[str, str, float]]:
    """(item, rater, rating) of a good record; a null rating of several is one that was not given."""
    ratings = record["ratings"] if "ratings" in record else {record["rater"]: record["rating"]}
    for rater, rating in ratings.items():
        if rating is not None:
            yield str(record["item"]), rater, float(rating)


def _models(
    raters: Sequence[str], kinds: dict[str, str], models: Sequence[str], humans: Sequence[str]
) -> tuple[str, ...]:
    """Which of the raters are models: as the patterns of `models` list them (those of one pattern by name), then by
    name."""
    claimed: list[list[str]] = []
    for option, patterns in (("--models", models), ("--humans", humans)):
        for pattern in patterns:
            if not any(fnmatchcase(rater, pattern) for rater in raters):
                raise UsageError(f"{option} {pattern}: no such rater; there are {', '.join(raters)}")
        matched = (rater for pattern in patterns for rater in raters if fnmatchcase(rater, pattern))
        claimed.append(list(dict.fromkeys(matched)))
    listed, people = claimed
    both = sorted(set(listed) & set(people))
    if both:
        raise UsageError(f"--models and --humans both claim {', '.join(both)}; a rater is one of them")
    others: list[str] = []
    if humans and not models:
        others = [rater for rater in raters if rater not in people]
    elif humans or not models:
        others = [rater for rater in raters if rater not in people and kinds.get(rater) == "model"]
    return tuple(dict.fromkeys([*listed, *others]))
