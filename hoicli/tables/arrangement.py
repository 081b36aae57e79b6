"""Rows of any number of models in one table: by a layout of papers, or by chosen lines and columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from hoicli.errors import DataError, UsageError, arg
from hoicli.records.results import Row, joined_settings, settings_of, tag_column
from hoicli.tables.layout import (
    TextTable,
    annotated,
    cell_text,
    counted,
    dense,
    dense_tags,
    digits_of,
    interval_text,
    number_text,
)
from hoicli.tables.layouts import LOWER, Layout, Slot, better, is_mean

_DRAWN = frozenset({"boot", "swaps", "permutations", "seed"})
"""Settings of intervals and chances alone."""

_INERT = _DRAWN | {"split", "published", "gt"}
"""Settings that do not change what a value says; the ground truth is compared by itself, as published numbers do not
name it."""

_MODELS_OWN = frozenset({"nms", "topk", "det", "pairnms", "pairscore", "verbscore"})
"""Settings that are a part of a method: they may differ between the lines of a table, whose settings name them."""

_SHARES = frozenset({"%", "fraction", "ratio", "probability"})
"""Units of values that are never whole; a whole number of any other is a count."""

_VIEWS = frozenset({"iou", "slice", "part"})
"""Tags of rows at other thresholds and on parts of the data, which are no rivals: the lines name them."""

Head = tuple[str, str]
Line = tuple[str, ...]


@dataclass(frozen=True)
class Showing:
    """How values are shown. intervals: with their 95 % intervals. over: the tag whose values are averaged. decimals:
    digits behind the point, None for the metric's own. sort: the column that orders the lines, the best first. n: with
    lines of what values are over."""

    intervals: bool = False
    over: str = ""
    decimals: int | None = None
    sort: str = ""
    n: bool = False


class PlacedRow(dict[str, Any]):
    """A row that knows where it was read."""

    place = ""


def place_of(row: Row) -> str:
    """Where a row was read, "" where that is not known."""
    return row.place if isinstance(row, PlacedRow) else ""


@dataclass(frozen=True)
class _Column:
    """A column to be filled. sense: whether higher or lower is better, None where that is not known."""

    head: Head
    sense: int | None


def by_layout(rows: Sequence[Row], layout: Layout, showing: Showing) -> tuple[TextTable, list[Row]]:
    """(the table, the rows that are not in it). Raises `DataError` for two rows of one value, or if no row fits."""
    places = layout.places(rows)
    wanted: dict[tuple[str, str, str], list[int]] = {}
    for number, place in enumerate(places):
        wanted.setdefault((place.metric, place.subset, place.oracle), []).append(number)
    fitting: list[tuple[Row, int]] = []
    left: list[Row] = []
    for row in rows:
        numbers = wanted.get((row["metric"], row["subset"], str(row.get("oracle", "none"))), ()) if is_mean(row) else ()
        found = [number for number in numbers if _fits(row, places[number])]
        fitting += [(row, number) for number in found]
        if not found:
            left.append(row)
    if not fitting:
        raise DataError(f"no row is of the layout {layout.name} ({layout.description}): they are {described(rows)}")
    keys = [key for key in layout.lines if any(row.get(key) is not None for row, _ in fitting)]
    tags = _tags((row for row, _ in fitting), showing.over)
    dense_tags([row for row, _ in fitting], tags, keys)

    def line(row: Row) -> Line:
        return (*_values_of_tags(row, tags), *(cell_text(row.get(key)) or "-" for key in keys))

    chosen = _chosen(fitting, places, line)
    taken: list[tuple[Line, int, Row]] = []
    for row, number in fitting:
        name, protocol = line(row), row.get("protocol", "")
        if len(places[number].protocols) == 1 or chosen[name, places[number].group] == protocol:
            taken.append((name, number, row))
    others = {id(row) for row, _ in fitting} - {id(row) for _, _, row in taken}
    filled = sorted({at for _, at, row in taken if row["value"] is not None} or {at for _, at, _ in taken})
    columns = [_Column((places[number].group, places[number].head), better(places[number].metric)) for number in filled]
    at = {number: column for column, number in enumerate(filled)}
    heads = [*(("Method" if tag == "model" else tag_column(tag)) for tag in tags), *keys] or ["Method"]
    cells = [(name or ("-",), at[number], row) for name, number, row in taken if number in at]
    views = _VIEWS & set(tags)
    table = _assembled(cells, heads, columns, showing, ranked=not views, shown=views)
    return table, [*left, *(row for row, _ in fitting if id(row) in others)]


def _fits(row: Row, place: Slot) -> bool:
    if row.get("protocol", "") not in place.protocols:
        return False
    return not place.split or settings_of(row).get("split") == place.split


def _chosen(
    fitting: Sequence[tuple[Row, int]], places: Sequence[Slot], line: Callable[[Row], Line]
) -> dict[tuple[Line, str], str]:
    """(line, group) -> the protocol whose rows stand there: that of most lines, where the line has it. Of as many the
    one that papers use."""
    there: dict[str, dict[Line, dict[str, None]]] = {}
    order: dict[str, tuple[str, ...]] = {}
    for row, number in fitting:
        place = places[number]
        order[place.group] = tuple(dict.fromkeys((*order.get(place.group, ()), *place.protocols)))
        if len(place.protocols) > 1:
            there.setdefault(place.group, {}).setdefault(line(row), {})[row.get("protocol", "")] = None
    chosen: dict[tuple[Line, str], str] = {}
    for group, lines in there.items():
        counts = Counter(protocol for found in lines.values() for protocol in found)
        ranked = sorted(counts, key=lambda name: (-counts[name], order[group].index(name)))
        for name, found in lines.items():
            chosen[name, group] = next(protocol for protocol in ranked if protocol in found)
    return chosen


def by_keys(rows: Sequence[Row], lines: Sequence[str], columns: Sequence[str], showing: Showing) -> TextTable:
    """A line for each value of the keys `lines`, a column for each of `columns`: keys of rows, or of their tags as
    `tag.model`. Raises `UsageError` for a key that no row has, `DataError` for two rows of one value."""
    for key in (*lines, *columns):
        if key in _NO_KEYS or all(_value_of(row, key) is None for row in rows):
            known = sorted({f"tag.{tag}" for row in rows for tag in row.get("tags", {})})
            known += [name for name in dict.fromkeys(name for row in rows for name in row) if name not in _NO_KEYS]
            raise UsageError(f"{key}: no row has it; choose from {', '.join(known)}")
    heads: dict[Head, dict[str, None]] = {}
    placed: list[tuple[Line, Head, Row]] = []
    for row in rows:
        *group, head = [cell_text(_value_of(row, key)) or "-" for key in columns]
        name = tuple(cell_text(_value_of(row, key)) or "-" for key in lines)
        column = " ".join(group), head
        heads.setdefault(column, {})[row["metric"]] = None
        placed.append((name, column, row))
    groups = list(dict.fromkeys(group for group, _ in heads))
    ordered = sorted(heads, key=lambda head: groups.index(head[0]))
    shown = [_Column(head, better(next(iter(heads[head]))) if len(heads[head]) == 1 else None) for head in ordered]
    at = {head: number for number, head in enumerate(ordered)}
    names = [key.removeprefix("tag.") for key in lines]
    ranked = all(key.startswith("tag.") for key in lines)
    cells = [(name, at[column], row) for name, column, row in placed]
    keys = {key.removeprefix("tag.") for key in (*lines, *columns)}
    return _assembled(cells, names, shown, showing, ranked=ranked, shown=keys)


_NO_KEYS = frozenset({"value", "n", "unit", "tags", "signature", "ci_low", "ci_high", "note", "source", "comparable"})
"""Keys of rows that say nothing of what a value is of."""


def _value_of(row: Row, key: str) -> Any:
    return row.get("tags", {}).get(key[4:]) if key.startswith("tag.") else row.get(key)


def _tags(rows: Iterable[Row], over: str) -> list[str]:
    """The tags that tell lines apart, that of the model first."""
    tags = dict.fromkeys(key for row in rows for key in row.get("tags", {}) if key != over)
    return sorted(tags, key=lambda tag: tag != "model")


def _values_of_tags(row: Row, tags: Sequence[str]) -> Line:
    of_row = row.get("tags", {})
    return tuple(str(of_row.get(tag, "-")) for tag in tags)


@dataclass(frozen=True)
class _Cell:
    """A value as printed, what stands behind it, what ranks it, and the notes it needs."""

    text: str
    behind: str
    number: float | None
    notes: tuple[str, ...]


def _assembled(
    cells: Sequence[tuple[Line, int, Row]],
    heads: Sequence[str],
    columns: Sequence[_Column],
    showing: Showing,
    *,
    ranked: bool,
    shown: Iterable[str] = (),
) -> TextTable:
    """The table of rows whose line and column are known."""
    found: dict[tuple[Line, int], list[Row]] = {}
    for name, column, row in cells:
        found.setdefault((name, column), []).append(row)
    of_one_unit(((column, row["metric"]), row) for _, column, row in cells)
    dense(len({name for name, _ in found}), len(heads) + len(columns), len(found))
    shown = set(shown)
    made = {place: _cell(of_place, showing) for place, of_place in found.items()}
    apart = _apart(found, columns, shown) if ranked or shown <= _VIEWS else {}
    names = _sorted(list(dict.fromkeys(name for name, _ in found)), made, columns, showing.sort)
    number_of = {name: number for number, name in enumerate(names)}
    empty = _Cell("-", "", None, ())
    lines = [
        [*name, *(f"{cell.text}{cell.behind}" for cell in (made.get((name, at), empty) for at in range(len(columns))))]
        for name in names
    ]
    rows = {(number_of[name], column): of_place for (name, column), of_place in found.items()}
    more = {(number_of[name], column): notes for (name, column), notes in apart.items()}
    groups = [column.head[0] for column in columns]
    above = [group if at == 0 or group != groups[at - 1] else "" for at, group in enumerate(groups)]
    table = TextTable([""] * len(heads) + above, [*heads, *(column.head[1] for column in columns)], lines, len(heads))
    notes = {(number_of[name], column): cell.notes for (name, column), cell in made.items() if cell.notes}
    best: list[tuple[int, int]] = []
    second: list[tuple[int, int]] = []
    if ranked:
        numbers: dict[int, dict[int, float]] = {}
        for (name, at), cell in made.items():
            sense = columns[at].sense
            if sense is not None and cell.number is not None and (name, at) not in apart:
                numbers.setdefault(at, {})[number_of[name]] = cell.number * sense
        for at, of_column in numbers.items():
            if len(of_column) > 1:
                for places, value in zip((best, second), sorted(set(of_column.values()), reverse=True), strict=False):
                    places += [(line, at + len(heads)) for line, number in of_column.items() if number == value]
    made_so = annotated(table, rows, shown=shown, notes=notes, apart=more)
    made_so = replace(made_so, best=frozenset(best), second=frozenset(second))
    if not showing.n:
        return made_so
    cell_of = [[rows.get((line, column)) for column in range(len(columns))] for line in range(len(lines))]
    return counted(made_so, [[number_text(cell[0]["n"], 0) if cell else "-" for cell in of] for of in cell_of])


def _cell(rows: Sequence[Row], showing: Showing) -> _Cell:
    """The value of one row, or the mean of several over a tag. Raises `DataError` where several rows have one value."""
    first = rows[0]
    seen: dict[Hashable, Row] = {}
    for row in rows:
        of = row.get("tags", {}).get(showing.over) if showing.over else None
        if of in seen or (seen and (of is None or None in seen)):
            raise clash(next(iter(seen.values())) if of not in seen else seen[of], row)
        seen[of] = row
    digits = digits_of(first) if showing.decimals is None else showing.decimals
    counted = first.get("unit") not in _SHARES
    values = [row["value"] if counted else float(row["value"]) for row in rows if row["value"] is not None]
    if len(rows) == 1 or not values:
        value = values[0] if values else None
        behind = interval_text(first, digits) if showing.intervals else ""
        note = (f"of one {showing.over}",) if showing.over and None not in seen else ()
    else:
        value = fmean(values)
        behind = f" ± {number_text(stdev(values), digits)}" if len(values) > 1 else ""
        note = (f"mean ± sample standard deviation over {showing.over}, n = {len(values)}",)
    alike = len({tuple((k, v) for k, v in settings_of(row).items() if k not in _DRAWN) for row in rows}) == 1
    if not alike:
        note = (*note, "values of different settings in one mean: not ranked with the others")
    text = number_text(value, digits)
    ranks = alike and value is not None and all(row.get("comparable") is not False for row in rows)
    return _Cell(text, behind, float(text.replace(",", "")) if ranks else None, note)


def clash(first: Row, row: Row) -> DataError:
    """Why two rows cannot be one value."""
    flat = [{**{f"tag.{key}": value for key, value in one.get("tags", {}).items()}, **one} for one in (first, row)]
    keys = [key for key in dict.fromkeys((*flat[0], *flat[1])) if key == "signature" or key not in _NO_KEYS]
    differ = [key for key in keys if flat[0].get(key) != flat[1].get(key)]
    what = f"{row['metric']} {row['subset']}"
    beside = f"as {place_of(first)} has" if place_of(first) else "as another row has"
    if not differ:
        return DataError(f"the same {what} {beside}; leave one of the two out", place=place_of(row))
    told = ", ".join(
        f"{key} ({cell_text(flat[0].get(key)) or 'none'}, {cell_text(flat[1].get(key)) or 'none'})" for key in differ
    )
    fix = (
        f"choose with {arg('where')}, tell them apart with {arg('tag')} when they are made, or average over a tag "
        f"with {arg('over')}"
    )
    return DataError(f"{what} for the same place {beside}; they differ in {told}: {fix}", place=place_of(row))


def _apart(
    found: Mapping[tuple[Line, int], Sequence[Row]], columns: Sequence[_Column], shown: Iterable[str]
) -> dict[tuple[Line, int], tuple[str, ...]]:
    """The values that were made otherwise than most of their group of columns, each with a note; published ones that
    do not compare have notes of their own. Raises `DataError` for a column of two datasets."""
    ignored = {*_INERT, *_MODELS_OWN, *shown}
    groups: dict[Head, dict[tuple[Line, int], Row]] = {}
    for (name, at), rows in found.items():
        if rows[0].get("comparable") is not False:
            group, head = columns[at].head
            groups.setdefault((group, "" if group else head), {})[name, at] = rows[0]
    apart: dict[tuple[Line, int], tuple[str, ...]] = {}
    for members in groups.values():
        made = {place: settings_of(row) for place, row in members.items()}
        if "data" not in shown:
            _of_one_dataset(members.values())
        kept = {
            place: tuple((k, v) for k, v in settings.items() if k not in ignored) for place, settings in made.items()
        }
        counts = Counter(kept.values())
        usual = min(counts, key=lambda settings: (-counts[settings], len(settings), settings))
        truths = Counter(_truth(settings["gt"]) for settings in made.values() if "gt" in settings)
        truth = min(truths, key=lambda digest: (-truths[digest], "-" not in digest, digest)) if truths else ""
        for place, settings in made.items():
            own, theirs = dict(kept[place]), dict(usual)
            if _truth(settings.get("gt", truth)) != truth and "gt" not in shown:
                own, theirs = {**own, "gt": settings["gt"]}, {**theirs, "gt": truth}
            if own != theirs:
                apart[place] = (_told(own, theirs),)
    return apart


def _truth(digest: str) -> str:
    """A ground truth by its name, as published numbers have it, where it has one: hico-test of hico-test-7cba1727."""
    return re.sub(r"(?<=.)-[0-9a-f]{8}$", "", digest)


def _of_one_dataset(rows: Iterable[Row]) -> None:
    """Raises `DataError` for rows of two datasets, which no column can hold."""
    first: dict[str, Row] = {}
    for row in rows:
        data = settings_of(row).get("data")
        if data is None:
            continue
        first.setdefault(data, row)
        if len(first) > 1:
            (one, before), (other, after) = first.items()
            beside = place_of(before) or "another row"
            raise DataError(f"is of {other}, {beside} of {one}: no column can hold both", place=place_of(after))


def of_one_unit(placed: Iterable[tuple[Hashable, Row]]) -> None:
    """Raises `DataError` for values of one place, such as a metric's in a column, that have different units."""
    first: dict[Hashable, Row] = {}
    for key, row in placed:
        before = first.setdefault(key, row)
        unit, known = row.get("unit", "%"), before.get("unit", "%")
        if unit != known:
            text = (
                f"{row['metric']} {row['subset']} is in {unit}, but in {known} at {place_of(before) or 'another row'}"
            )
            raise DataError(f"{text}; give both in one unit", place=place_of(row), field="unit")


def _told(own: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    mine = joined_settings({key: value for key, value in own.items() if theirs.get(key) != value})
    others = joined_settings({key: value for key, value in theirs.items() if own.get(key) != value})
    told = f"made with {mine}" if mine else f"made without {others}"
    return f"{told}, unlike the others{f' ({others})' if mine and others else ''}: not ranked with them"


def _sorted(
    names: list[Line], made: Mapping[tuple[Line, int], _Cell], columns: Sequence[_Column], sort: str
) -> list[Line]:
    """The lines, the best of a column first, those without a value last. Raises `UsageError` for an unknown column."""
    if not sort:
        return names
    called = [f"{group} {head}".strip() for group, head in (column.head for column in columns)]
    matching = [at for at, name in enumerate(called) if name.casefold() == sort.casefold()]
    matching = matching or [at for at, column in enumerate(columns) if column.head[1].casefold() == sort.casefold()]
    if len(matching) != 1:
        problem = "several columns are called so" if matching else "no column is called so"
        raise UsageError(f"{arg('sort', sort)}: {problem}; choose from {', '.join(called)}")
    (at,) = matching
    sense = -1 if columns[at].sense == LOWER else 1

    def merit(name: Line) -> tuple[bool, float]:
        cell = made.get((name, at))
        text = cell.text if cell else "-"
        return text == "-", 0.0 if text == "-" else -sense * float(text.replace(",", ""))

    return sorted(names, key=merit)


def described(rows: Sequence[Row]) -> str:
    """What rows are of, for a message: metrics with their protocols, the most frequent first."""
    kinds = Counter((str(row["metric"]), str(row.get("protocol", ""))) for row in rows)
    metrics: dict[str, list[str]] = {}
    for (metric, protocol), _ in kinds.most_common():
        metrics.setdefault(metric, []).append(protocol)
    told = [
        f"{metric} of {', '.join(filter(None, protocols)) or 'no protocol'}" for metric, protocols in metrics.items()
    ]
    return f"{'; '.join(told[:4])}{' and more' if len(told) > 4 else ''}"
