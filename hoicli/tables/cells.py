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
from hoicli.records.caveats import lacks_similarities
from hoicli.records.result_rows import Row, joined_settings, settings_of

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
    """A table as text. The first `names` columns name a line, the others hold values.

    above: the groups over the heads; "" continues the group to the left. notes: (mark, text) of each note below the
    table. marks: the marks that follow the text at (line, column). paragraphs: how each paragraph of notes begins and
    how many notes it has; if empty, each note is a paragraph. settings: one line about what made the values. best,
    second: the (line, column) of the best and second-best values of each column. cites: the BibTeX key of a line.
    own_lines: the first line below the published ones, 0 if there are none."""

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
    """Return the group of each column. above: the groups as in `TextTable.above`."""
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
    """Return the digits behind the point for a row's value: by its unit, or 2 if it was printed in another table."""
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
    """Return a number as tables show it: a count in full with commas, None as "-", and 0 after rounding without a sign.
    signed: whether other numbers that are no counts show a plus, too."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return text if text.strip("+-0.") else text.lstrip("+-")  # nothing but signs and zeros is 0


_DRAWN = frozenset({"boot", "ci", "swaps", "permutations", "seed"})
"""Settings that only change intervals and probabilities."""

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
"""Keys of rows that do not say what a value measures."""


Name = tuple[str, ...]
"""The cells that name a line of a table."""
Head = tuple[str, str]
"""The group of a column, such as its metric, and its head."""


@dataclass(frozen=True)
class Showing:
    """How values are shown. intervals: whether their 95 % intervals follow. over: the tag over whose values a cell is
    averaged, "" for none. n: whether a layout may add lines of how many cases the values are over."""

    intervals: bool = False
    over: str = ""
    n: bool = True


class PlacedRow(dict[str, Any]):
    """A row that knows the line of the file it was read from."""

    line: Line


def place_of(row: Row) -> str:
    """Return the file and line that a row was read from, "" if not known."""
    return row.line.place if isinstance(row, PlacedRow) else ""


def value_of(row: Row, key: str) -> Any:
    """Return a row's value of a key, or of a tag if the key is written `tag.NAME`; None if it has none."""
    return row.get("tags", {}).get(key[4:]) if key.startswith("tag.") else row.get(key)


class Otherwise(NamedTuple):
    """How a value was made differently from most of its group of columns. own_settings: the settings that only this
    value has; theirs: those that the others have instead; note: the sentence below the table that says so."""

    own_settings: Mapping[str, str]
    theirs: Mapping[str, str]
    note: str

    def untold(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of one of the value's rows that the note does not tell already."""
        differing = {key: value for key, value in settings.items() if self.own_settings.get(key) != value}
        return differing | {
            key: value for key, value in self.theirs.items() if settings.get(key) == self.own_settings.get(key)
        }


class Value(NamedTuple):
    """A cell's value. text: the number as printed; behind: what follows it, such as an interval; number: what it is
    ranked by, None if it is not ranked; notes: the notes it needs."""

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
        raise clash(*rows[:2])
    return plain_value(rows)


def compared_value(rows: Sequence[Row], showing: Showing) -> Value:
    """Return the value of a cell's row, or the mean of its rows over the tag `showing.over`. Raises `DataError` if the
    tag does not tell the rows apart."""
    first = rows[0]
    first_rows: dict[Hashable, Row] = {}
    for row in rows:
        tag_value = row.get("tags", {}).get(showing.over) if showing.over else None
        if tag_value in first_rows or (first_rows and (tag_value is None or None in first_rows)):
            raise clash(next(iter(first_rows.values())) if tag_value not in first_rows else first_rows[tag_value], row)
        first_rows[tag_value] = row
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
    made_with = {tuple(setting for setting in settings_of(row).items() if setting[0] not in _DRAWN) for row in rows}
    same_settings = len(made_with) == 1
    if not same_settings:
        note = (*note, "values of different settings in one mean: not ranked with the others")
    text = number_text(value, digits)
    comparable = all(row.get("comparable") is not False and not lacks_similarities(settings_of(row)) for row in rows)
    ranks = same_settings and value is not None and comparable
    return Value(text, behind, float(text.replace(",", "")) if ranks else None, note)


def clash(first: Row, row: Row) -> DataError:
    """Return the error that two rows belong in one cell, with the keys in which they differ."""
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
    """Return which values were made with other settings than most values of their group of columns, and how. Published
    values that do not compare are left out, since they have notes of their own. Raises `DataError` for a group of
    columns with two datasets. settings_shown: the keys that name lines and columns, in which values may differ."""
    apart: dict[Place, Otherwise] = {}
    for row_by_place in _rows_by_group(values_by_place, columns):
        settings_by_place = {place: settings_of(row) for place, row in row_by_place.items()}
        if "data" not in settings_shown:
            _of_one_dataset(row_by_place.values())
        usual = _UsualSettings.among(settings_by_place.values(), settings_shown)
        for place, settings in settings_by_place.items():
            own_settings, theirs = usual.both_sides(settings)
            if own_settings != theirs:
                apart[place] = usual.otherwise(settings, own_settings, theirs)
    return apart


def _rows_by_group(
    values_by_place: Mapping[Place, Sequence[Row]], columns: Sequence[Head]
) -> Collection[Mapping[Place, Row]]:
    """Return the rows of each group of columns (a column without a group is one by itself), without published rows that
    do not compare. The first row of a place stands for all of its rows."""
    groups: dict[Head, dict[Place, Row]] = {}
    for place, rows in values_by_place.items():
        if rows[0].get("comparable") is not False:
            group, head = columns[place[1]]
            groups.setdefault((group, "" if group else head), {})[place] = rows[0]
    return groups.values()


class _UsualSettings(NamedTuple):
    """The settings that most values of a group of columns were made with. settings: those that change a value, without
    the ground truth and its order; ignored: the keys that `settings` leaves out. truth: the name of the most frequent
    ground truth; digest: its name with its digest, if any value has one; orders: for each protocol, the order of the
    triplets in it. truth_shown: whether lines or columns are named by ground truth, in which values may differ then."""

    settings: Mapping[str, str]
    ignored: Collection[str]
    truth: str
    digest: str
    orders: Mapping[str, str]
    truth_shown: bool

    @classmethod
    def among(cls, every_settings: Collection[Mapping[str, str]], settings_shown: Collection[str]) -> _UsualSettings:
        """Return the usual settings. every_settings: those of each value of the group."""
        ignored = {*_INERT, *_MODELS_OWN, *settings_shown}
        counts = Counter(_without_keys(settings, ignored) for settings in every_settings)
        # the most frequent settings; of equally frequent ones the fewest, then the first by name
        usual = min(counts, key=lambda settings: (-counts[settings], len(settings), settings))
        digests = [settings["gt"] for settings in every_settings if "gt" in settings]
        truths = Counter(map(_truth, digests))
        truth = min(truths, key=lambda digest: (-truths[digest], "-" not in digest, digest)) if truths else ""
        full_digest = max((digest for digest in digests if _truth(digest) == truth), key=len, default="")
        orders = _usual_orders(settings for settings in every_settings if _truth(settings.get("gt", "")) == truth)
        return cls(dict(usual), ignored, truth, full_digest, orders, "gt" in settings_shown)

    def _order(self, settings: Mapping[str, str]) -> str:
        """Return the usual order of the ground truth's triplets under a value's protocol, "" if not known."""
        return self.orders.get(settings.get("protocol", ""), "")

    def both_sides(self, settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return (a value's settings, the usual ones) as far as they are compared; both are equal unless the value was
        made otherwise. The order of the ground truth and its name are on both sides only where they differ."""
        own_settings, theirs = dict(_without_keys(settings, self.ignored)), dict(self.settings)
        listed = self._order(settings)
        if settings.get("listed", listed) != listed and _truth(settings["gt"]) == self.truth:
            own_settings["listed"], theirs["listed"] = settings["listed"], listed
        if _truth(settings.get("gt", self.truth)) != self.truth and not self.truth_shown:
            own_settings["gt"], theirs["gt"] = settings["gt"], self.truth
        return own_settings, theirs

    def otherwise(
        self, settings: Mapping[str, str], own_settings: Mapping[str, str], theirs: Mapping[str, str]
    ) -> Otherwise:
        """Return how a value was made otherwise. own_settings, theirs: the `both_sides` of its settings."""
        only_own, only_theirs = _drop_shared(own_settings, theirs), _drop_shared(theirs, own_settings)
        note = _difference_text(only_own, only_theirs)
        if self.truth and ("gt" in only_theirs or "published" in settings):
            # the value's line has the ground truth in full, and the others'
            listed = self._order(settings)
            only_theirs |= {"gt": self.digest} | ({"listed": listed} if listed else {})
            only_own |= {"gt": settings["gt"]} if "gt" in settings else {}
        return Otherwise(only_own, only_theirs, note)


def _without_keys(settings: Mapping[str, str], ignored: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the settings (key, value) whose keys are not ignored."""
    return tuple(setting for setting in settings.items() if setting[0] not in ignored)


def of_unknown_order(values_by_place: Mapping[Place, Sequence[Row]]) -> set[Place]:
    """Return the values whose rows do not say in which order their ground truth lists its triplets (rows of hoicli
    1.0), although other rows of the same ground truth and protocol say it."""
    settings_by_place = {place: settings_of(rows[0]) for place, rows in values_by_place.items()}
    stated_orders = {(told.get("gt"), told.get("protocol")) for told in settings_by_place.values() if "listed" in told}
    return {
        place
        for place, told in settings_by_place.items()
        if "listed" not in told and (told.get("gt"), told.get("protocol")) in stated_orders
    }


def _usual_orders(every_settings: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return for each protocol the most frequent order of the ground truth's triplets; of equals the last by name."""
    counts = Counter((told.get("protocol", ""), told["listed"]) for told in every_settings if "listed" in told)
    # a later item replaces an earlier one, so the most frequent order stays
    return {protocol: listed for (protocol, listed), _ in sorted(counts.items(), key=lambda item: (item[1], item[0]))}


def _truth(digest: str) -> str:
    """Return a ground truth's name, which published numbers have, without its digest: hico-test of
    hico-test-7cba1727."""
    return re.sub(r"(?<=.)-[0-9a-f]{8}$", "", digest)


def _of_one_dataset(rows: Iterable[Row]) -> None:
    """Raise `DataError` if rows are of two datasets, which no column can hold."""
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
    """Raise `DataError` if a metric is in two units; counts of errors may have a unit for each type of error."""
    first: dict[Hashable, Row] = {}
    for row in rows:
        first_row = first.setdefault((row.get("metric"), row.get("error")), row)
        unit, other_unit = row.get("unit", "%"), first_row.get("unit", "%")
        if unit != other_unit:
            other_text = f"but in {other_unit} at {place_of(first_row) or 'another row'}; give both in one unit"
            problem = f"{row['metric']} {row['subset']} is in {unit}, {other_text}"
            raise DataError(problem, place=place_of(row), field="unit")


def _drop_shared(settings: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that `others` lacks or has another value of."""
    return {key: value for key, value in settings.items() if others.get(key) != value}


def _difference_text(own_settings: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Return the note that says which settings a value alone has, and which ones the others have instead."""
    mine, others = joined_settings(own_settings), joined_settings(theirs)
    difference = f"made with {mine}" if mine else f"made without {others}"
    return f"{difference}, unlike the others{f' ({others})' if mine and others else ''}: not ranked with them"
