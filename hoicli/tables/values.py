"""A table as text: what a place of it holds, as printed, and whether that compares with its neighbours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, NamedTuple

from hoicli.errors import DataError, arg
from hoicli.io.streams import Line
from hoicli.records.caveats import lacking
from hoicli.records.results import Row, joined_settings, settings_of

Place = tuple[int, int]
"""A line and a column of a table, from 0, without the columns of names."""
_DIGITS = {"probability": 4, "ratio": 3}
"""Digits behind the point by unit, where not 2: a ratio, CRI, is below 1 and differs between models in the third."""
HEAD, ABOVE = -1, -2
"""The numbers of the two lines over a table's own, as places of marks have them."""
MARK = re.compile(r"\*[0-9]*")
"""A mark of a note, of those that stand at a place."""


@dataclass(frozen=True)
class TextTable:
    """A table as text. above: the groups over the heads, "" continues the one before. The first `names` columns
    identify a line, the others are values.

    notes: (mark, what it means), to stand below; marks: where these marks stand, behind the texts of (line, column).
    paragraphs: how each paragraph of notes begins, and how many it has; by default each note is one.
    settings: what made the values, in a line. best, second: the (line, column) of the best values of their columns.
    cites: the key of the BibTeX entry that a line is of. own_lines: the first line below published ones, 0 for none.
    """

    above: Sequence[str]
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    names: int
    notes: Sequence[tuple[str, str]] = ()
    marks: Mapping[Place, str] = field(default_factory=dict)
    paragraphs: Sequence[tuple[str, int]] = ()
    settings: str = ""
    best: Collection[Place] = ()
    second: Collection[Place] = ()
    cites: Mapping[int, str] = field(default_factory=dict)
    own_lines: int = 0


def spread(above: Sequence[str]) -> list[str]:
    """The group of each column, of groups as `TextTable.above` has them."""
    groups = [""]
    for group in above:
        groups.append(group or groups[-1])
    return groups[1:]


def cell_text(value: object) -> str:
    """A value of a row as text: lists with commas, nothing for None."""
    if isinstance(value, list | tuple):
        return ", ".join("-" if each is None else str(each) for each in value)
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


def number_text(value: float | None, digits: int, *, signed: bool = False) -> str:
    """A number as tables show it; a count is whole, with its thousands apart, and what rounds to 0 has no sign. signed:
    others have one."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return text if text.strip("+-0.") else text.lstrip("+-")


_DRAWN = frozenset({"boot", "ci", "swaps", "permutations", "seed"})
"""Settings of intervals and chances alone."""

_INERT = _DRAWN | {"split", "published", "gt", "listed"}
"""Settings that do not change what a value says; the ground truth and its order are compared by themselves, as
published numbers name neither, and rows of hoicli 1.0 no order."""

_MODELS_OWN = frozenset({"nms", "topk", "det", "pairnms", "pairscore", "verbscore"})
"""Settings that are a part of a method: they may differ between the lines of a table, whose settings name them."""

_SHARES = frozenset({"%", "fraction", "ratio", "probability"})
"""Units of values that are never whole; a whole number of any other is a count."""

NO_KEYS = frozenset(
    {"value", "n", "unit", "tags", "signature", "ci_low", "ci_high", "note", "source", "cite", "comparable"}
)
"""Keys of rows that say nothing of what a value is of."""


Name = tuple[str, ...]
"""What names a line of a table."""
Head = tuple[str, str]
"""The group of a column, such as its metric, and its head."""


@dataclass(frozen=True)
class Showing:
    """How values are shown. intervals: with their 95 % intervals. over: the tag whose values are averaged. n: a
    layout with lines of what values are over may have them."""

    intervals: bool = False
    over: str = ""
    n: bool = True


class PlacedRow(dict[str, Any]):
    """A row that knows the line it was read from."""

    line: Line


def place_of(row: Row) -> str:
    """Where a row was read, "" where that is not known."""
    return row.line.place if isinstance(row, PlacedRow) else ""


def value_of(row: Row, key: str) -> Any:
    """The value of a key of a row, or of its tag as `tag.NAME`; None for none."""
    return row.get("tags", {}).get(key[4:]) if key.startswith("tag.") else row.get(key)


class Otherwise(NamedTuple):
    """How a value was made otherwise than most of its group: the settings that it alone has, those that they have in
    place of them, and the note that says so."""

    own_settings: Mapping[str, str]
    theirs: Mapping[str, str]
    note: str

    def untold(self, settings: Mapping[str, str]) -> dict[str, str]:
        """The settings of one of its rows without what the note says of them."""
        differing = {key: value for key, value in settings.items() if self.own_settings.get(key) != value}
        return differing | {
            key: value for key, value in self.theirs.items() if settings.get(key) == self.own_settings.get(key)
        }


class Value(NamedTuple):
    """A value as printed, what stands behind it, what ranks it, and the notes it needs."""

    text: str
    behind: str = ""
    number: float | None = None
    notes: Sequence[str] = ()


def plain_value(rows: Sequence[Row]) -> Value:
    """The value of the last row, with its 95 % interval if it has one."""
    row = rows[-1]
    digits = digits_of(row)
    return Value(number_text(row["value"], digits), interval_text(row, digits))


def single_value(rows: Sequence[Row]) -> Value:
    """`plain_value`. Raises `DataError` for two rows."""
    if len(rows) > 1:
        raise clash(*rows[:2])
    return plain_value(rows)


def compared_value(rows: Sequence[Row], showing: Showing) -> Value:
    """The value of one row, or the mean of several over a tag. Raises `DataError` where several rows have one value."""
    first = rows[0]
    first_rows: dict[Hashable, Row] = {}
    for row in rows:
        of = row.get("tags", {}).get(showing.over) if showing.over else None
        if of in first_rows or (first_rows and (of is None or None in first_rows)):
            raise clash(next(iter(first_rows.values())) if of not in first_rows else first_rows[of], row)
        first_rows[of] = row
    digits = digits_of(first)
    counted = first.get("unit") not in _SHARES
    values = [row["value"] if counted else float(row["value"]) for row in rows if row["value"] is not None]
    if len(rows) == 1 or not values:
        value = values[0] if values else None
        behind = interval_text(first, digits) if showing.intervals else ""
        note = (f"of one {showing.over}",) if showing.over and None not in first_rows else ()
    else:
        value = fmean(values)
        behind = f" ± {number_text(stdev(values), digits)}" if len(values) > 1 else ""
        note = (f"mean ± sample standard deviation over {showing.over}, n = {len(values)}",)
    alike = len({tuple((k, v) for k, v in settings_of(row).items() if k not in _DRAWN) for row in rows}) == 1
    if not alike:
        note = (*note, "values of different settings in one mean: not ranked with the others")
    text = number_text(value, digits)
    comparable = all(row.get("comparable") is not False and not lacking(settings_of(row)) for row in rows)
    ranks = alike and value is not None and comparable
    return Value(text, behind, float(text.replace(",", "")) if ranks else None, note)


def clash(first: Row, row: Row) -> DataError:
    """Why two rows cannot be one value."""
    flat = [
        {**{f"tag.{key}": value for key, value in each_row.get("tags", {}).items()}, **each_row}
        for each_row in (first, row)
    ]
    keys = [key for key in dict.fromkeys((*flat[0], *flat[1])) if key == "signature" or key not in NO_KEYS]
    differ = [key for key in keys if flat[0].get(key) != flat[1].get(key)]
    what = f"{row['metric']} {row['subset']}"
    other_place = f"as {place_of(first)} has" if place_of(first) else "as another row has"
    if not differ:
        return DataError(
            f"the same {what} {other_place}; leave one of the two out, or tag what made them "
            "(hoicli eval --tag model=NAME)",
            place=place_of(row),
        )
    differences = ", ".join(
        f"{key} ({cell_text(flat[0].get(key)) or 'none'}, {cell_text(flat[1].get(key)) or 'none'})" for key in differ
    )
    apart = f"tell them apart with {arg('tag')} when they are made, or average over a tag with {arg('over')}"
    problem = f"{what} for the same place {other_place}; they differ in {differences}: choose with jq's select, {apart}"
    return DataError(problem, place=place_of(row), code="mixed")


def made_otherwise(
    values_by_place: Mapping[Place, Sequence[Row]], columns: Sequence[Head], settings_shown: Collection[str]
) -> dict[Place, Otherwise]:
    """The values that were made otherwise than most of their group of columns; published ones that do not compare have
    notes of their own. Raises `DataError` for a column of two datasets."""
    ignored = {*_INERT, *_MODELS_OWN, *settings_shown}
    groups: dict[Head, dict[Place, Row]] = {}
    for place, rows in values_by_place.items():
        if rows[0].get("comparable") is not False:
            group, head = columns[place[1]]
            groups.setdefault((group, "" if group else head), {})[place] = rows[0]
    apart: dict[Place, Otherwise] = {}
    for members in groups.values():
        settings_by_place = {place: settings_of(row) for place, row in members.items()}
        if "data" not in settings_shown:
            _of_one_dataset(members.values())
        compared = {
            place: tuple((k, v) for k, v in of.items() if k not in ignored) for place, of in settings_by_place.items()
        }
        counts = Counter(compared.values())
        usual = min(counts, key=lambda settings: (-counts[settings], len(settings), settings))
        truths = Counter(_truth(settings["gt"]) for settings in settings_by_place.values() if "gt" in settings)
        truth = min(truths, key=lambda digest: (-truths[digest], "-" not in digest, digest)) if truths else ""
        digests = (settings["gt"] for settings in settings_by_place.values() if "gt" in settings)
        whole = max((digest for digest in digests if _truth(digest) == truth), key=len, default="")
        orders = _usual_orders(
            settings for settings in settings_by_place.values() if _truth(settings.get("gt", "")) == truth
        )
        for place, settings in settings_by_place.items():
            own_settings, theirs = dict(compared[place]), dict(usual)
            listed = orders.get(settings.get("protocol", ""), "")
            if settings.get("listed", listed) != listed and _truth(settings["gt"]) == truth:
                own_settings, theirs = {**own_settings, "listed": settings["listed"]}, {**theirs, "listed": listed}
            if _truth(settings.get("gt", truth)) != truth and "gt" not in settings_shown:
                own_settings, theirs = {**own_settings, "gt": settings["gt"]}, {**theirs, "gt": truth}
            if own_settings != theirs:
                own_settings, theirs = _drop_shared(own_settings, theirs), _drop_shared(theirs, own_settings)
                note = _difference_text(own_settings, theirs)
                if truth and ("gt" in theirs or "published" in settings):  # the line has it in full, the others'
                    theirs |= {"gt": whole} | ({"listed": listed} if listed else {})
                    own_settings |= {"gt": settings["gt"]} if "gt" in settings else {}
                apart[place] = Otherwise(own_settings, theirs, note)
    return apart


def of_unknown_order(values_by_place: Mapping[Place, Sequence[Row]]) -> set[Place]:
    """Return the values whose rows do not say in which order their ground truth lists its triplets, as rows of hoicli
    1.0, while others of the same ground truth and protocol say it."""
    settings_by_place = {place: settings_of(rows[0]) for place, rows in values_by_place.items()}
    stated_orders = {(of.get("gt"), of.get("protocol")) for of in settings_by_place.values() if "listed" in of}
    return {
        place
        for place, of in settings_by_place.items()
        if "listed" not in of and (of.get("gt"), of.get("protocol")) in stated_orders
    }


def _usual_orders(every_settings: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the order of ground truth that most settings of each protocol have."""
    counts = Counter((of.get("protocol", ""), of["listed"]) for of in every_settings if "listed" in of)
    return {protocol: listed for (protocol, listed), _ in sorted(counts.items(), key=lambda item: (item[1], item[0]))}


def _truth(digest: str) -> str:
    """A ground truth by its name, as published numbers have it, where it has one: hico-test of hico-test-7cba1727."""
    return re.sub(r"(?<=.)-[0-9a-f]{8}$", "", digest)


def _of_one_dataset(rows: Iterable[Row]) -> None:
    """Raises `DataError` for rows of two datasets, which no column can hold."""
    first: dict[str, Row] = {}
    for row in rows:
        if (data := settings_of(row).get("data")) is not None:
            first.setdefault(data, row)
    if len(first) > 1:
        (first_dataset, before), (other, after) = [*first.items()][:2]
        other_place = place_of(before) or "another row"
        raise DataError(
            f"is of {other}, {other_place} of {first_dataset}: no column can hold both", place=place_of(after)
        )


def of_one_unit(rows: Iterable[Row]) -> None:
    """Raises `DataError` for a metric in two units; counts of errors have one for each type of error."""
    first: dict[Hashable, Row] = {}
    for row in rows:
        before = first.setdefault((row.get("metric"), row.get("error")), row)
        unit, other_unit = row.get("unit", "%"), before.get("unit", "%")
        if unit != other_unit:
            there = f"but in {other_unit} at {place_of(before) or 'another row'}; give both in one unit"
            problem = f"{row['metric']} {row['subset']} is in {unit}, {there}"
            raise DataError(problem, place=place_of(row), field="unit")


def _drop_shared(settings: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if others.get(key) != value}


def _difference_text(own_settings: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    mine, others = joined_settings(own_settings), joined_settings(theirs)
    difference = f"made with {mine}" if mine else f"made without {others}"
    return f"{difference}, unlike the others{f' ({others})' if mine and others else ''}: not ranked with them"
