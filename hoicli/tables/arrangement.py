"""Rows in tables: by a layout of papers, by chosen lines and columns, or as their kind is laid out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product

from hoicli.errors import DataError, UsageError
from hoicli.records.metrics import better, kind_of
from hoicli.records.results import CHANCES, Row, settings_of, tag_column
from hoicli.tables.layouts import Layout, column_head, is_mean
from hoicli.tables.notes import add_notes
from hoicli.tables.values import (
    NO_KEYS,
    Head,
    Name,
    Place,
    Showing,
    TextTable,
    Value,
    cell_text,
    compared_value,
    made_otherwise,
    number_text,
    of_one_unit,
    of_unknown_order,
    plain_value,
    single_value,
    value_of,
)

_VIEWS = frozenset({"iou", "slice", "part"})
"""Tags of rows at other thresholds and on parts of the data, which do not compete for the best value."""
_COUNTED = frozenset({"oracle", "error", "nms"})
"""Keys of diagnoses and of pair statistics, whose n changes from line to line: a table of them shows it."""
_MOST_EMPTY = 1_000_000
"""Cells of a table of which nearly all may be empty."""

Placed = tuple[Name, Head, Row]
"""A row with its line and its column."""


def arrange_by_layout(rows: Sequence[Row], layout: Layout, showing: Showing) -> tuple[TextTable, list[Row]]:
    """(the table, the rows that are not in it). Raises `DataError` for two rows of one value, or if no row fits."""
    slots = layout.places(rows)
    fitting = [(row, slot) for row, slot in product(rows, slots) if is_mean(row) if slot.takes(row)]
    if not fitting:
        raise DataError(f"no row fits the layout {layout.name} ({layout.description}): they are {describe_rows(rows)}")
    keys = [key for key in layout.lines if any(row.get(key) is not None for row, _ in fitting)]
    tags = _tags((row for row, _ in fitting), showing.over)
    dense_tags([row for row, _ in fitting], tags, keys)
    named = [(_name_of(row, tags, keys), row, slot) for row, slot in fitting]
    there: dict[tuple[Name, str], set[str]] = {}
    for name, row, slot in named:
        there.setdefault((name, slot.group), set()).add(row.get("protocol", ""))
    lines_with = Counter((group, protocol) for (_, group), by_protocol in there.items() for protocol in by_protocol)
    placed: list[Placed] = []
    for name, row, slot in named:  # the protocol that most lines have, so that they compare; of as many the papers'
        here = [protocol for protocol in slot.protocols if protocol in there[name, slot.group]]
        if row.get("protocol", "") == max(here, key=lambda protocol: lines_with[slot.group, protocol]):
            placed.append((name or ("-",), (slot.group, slot.head), row))
    taken, columns = {id(row) for *_, row in placed}, {column for _, column, _ in placed}
    heads = [*(("Method" if tag == "model" else tag_column(tag)) for tag in tags), *keys] or ["Method"]
    of_one_unit(row for *_, row in placed)
    views = _VIEWS & set(tags)
    table = _assemble(
        placed, heads, partial(compared_value, showing=showing),
        columns=[column for slot in slots if (column := (slot.group, slot.head)) in columns],
        ranked=not views, compared=True, settings_shown=views, n=layout.n and showing.n,
    )  # fmt: skip
    return table, [row for row in rows if id(row) not in taken]


def arrange_by_keys(rows: Sequence[Row], lines: Sequence[str], columns: Sequence[str], showing: Showing) -> TextTable:
    """A line for each value of the keys `lines`, a column for each of `columns`: keys of rows, or of their tags as
    `tag.model`. Raises `UsageError` for a key that no row has, `DataError` for two rows of one value."""
    for key in (*lines, *columns):
        if key in NO_KEYS or all(value_of(row, key) is None for row in rows):
            tag_keys = sorted({f"tag.{tag}" for tag in chain.from_iterable(row.get("tags", {}) for row in rows)})
            tag_keys += [name for name in dict.fromkeys(chain.from_iterable(rows)) if name not in NO_KEYS]
            raise UsageError(f"{key}: no row has it; choose from {', '.join(tag_keys)}")
    of_one_unit(rows)
    placed: list[Placed] = []
    for row in rows:
        *group, head = [cell_text(value_of(row, key)) or "-" for key in columns]
        name = tuple(cell_text(value_of(row, key)) or "-" for key in lines)
        placed.append((name, (" ".join(group), head), row))
    names = [key.removeprefix("tag.") for key in lines]
    ranked = all(key.startswith("tag.") for key in lines)
    keys = {key.removeprefix("tag.") for key in (*lines, *columns)}
    return _assemble(
        placed, names, partial(compared_value, showing=showing), ranked=ranked, compared=ranked or keys <= _VIEWS,
        settings_shown=keys,
    )  # fmt: skip


def _tags(rows: Iterable[Row], over: str) -> list[str]:
    """The tags that tell lines apart, that of the model first."""
    tags = dict.fromkeys(key for key in chain.from_iterable(row.get("tags", {}) for row in rows) if key != over)
    return sorted(tags, key=lambda tag: tag != "model")


def _name_of(row: Row, tags: Sequence[str], keys: Sequence[str]) -> Name:
    """Return what names a row's line: what it has for the tags and the keys."""
    of_row = row.get("tags", {})
    return (*(str(of_row.get(tag, "-")) for tag in tags), *(cell_text(row.get(key)) or "-" for key in keys))


def tables_of(rows: Sequence[Row], *, strict: bool = False) -> list[TextTable]:
    """The tables that show the rows: rows that are laid out alike share a table. The settings stand below the last of
    the tables that share them. Of two rows for one place the later one counts; where that is `strict`, they and two
    units of a metric raise `DataError`."""
    if strict:
        of_one_unit(rows)
    if "metric" not in rows[0]:
        keys = list(
            dict.fromkeys(key for key, value in chain.from_iterable(row.items() for row in rows) if cell_text(value))
        )
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
            group, column = list(chain.from_iterable(parts_of(row) for row in group)), "part"
            if len({row["metric"] for row in group}) == 1:
                index = tuple(key for key in index if key != "metric")  # it stands above the columns
        tables.append(_arrange_by_kind(group, index, column, single_value if strict else plain_value))
    after = [*(table.settings for table in tables[1:]), ""]
    return [
        replace(table, settings="") if table.settings == below else table
        for table, below in zip(tables, after, strict=True)
    ]


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


def _arrange_by_kind(
    rows: Sequence[Row], index: tuple[str, ...], column: str, value: Callable[[Sequence[Row]], Value]
) -> TextTable:
    """A line per value of the tags and of the index, a column per value of `column`, under the metric where the index
    does not name it."""
    tags = list(dict.fromkeys(chain.from_iterable(row.get("tags", {}) for row in rows)))
    n = column == "subset" and not _COUNTED.isdisjoint(index)
    index = tuple(key for key in index if any(cell_text(row[key]) for row in rows)) or index[:1]
    dense_tags(rows, tags, index)
    grouped = "metric" not in index
    placed = [
        (_name_of(row, tags, index), (str(row["metric"]) if grouped else "", column_head(row, column)), row)
        for row in rows
    ]
    heads = [*map(tag_column, tags), *index]
    mark_at = heads.index("protocol") if "protocol" in index else 0
    return _assemble(placed, heads, value, settings_shown=index, n=n, mark_at=mark_at)


def dense(lines: int, columns: int, filled: int) -> None:
    """Raises `DataError` for a table of very many cells of which nearly all are empty, which a few rows can ask for."""
    if lines * columns > max(_MOST_EMPTY, 10 * filled):
        raise DataError(
            f"{lines:,} lines of {columns:,} columns for {filled:,} values would be an empty table; choose rows with "
            "jq's select or hoicli table --metric, or other lines and columns with --lines and --columns"
        )


UNKNOWN_ORDER = "does not say in which order its ground truth is listed (hoicli 1.0): perhaps another than the others'"


def dense_tags(rows: Collection[Row], tags: Sequence[str], index: Sequence[str]) -> None:
    """`dense`, before a line of all tags is made of each row: rows may all have tags of their own."""
    lines = {(frozenset(row.get("tags", {}).items()), *(cell_text(row.get(key)) for key in index)) for row in rows}
    dense(len(lines), len(tags), len(rows))


def _assemble(
    placed: Sequence[Placed],
    heads: Sequence[str],
    value: Callable[[Sequence[Row]], Value],
    *,
    columns: Sequence[Head] = (),
    ranked: bool = False,
    compared: bool = False,
    settings_shown: Collection[str] = (),
    n: bool = False,
    mark_at: int = 0,
) -> TextTable:
    """The table of rows whose line and column are known. Lines and columns keep the order of first appearance, but that
    the columns of a group stand together. A column without a value is left out, unless it would be the only one.

    value: what makes one value of a place's rows. columns: their order, where it is another. ranked: whether the best
    values of a column are set apart; compared: whether those that were made otherwise are noted; settings_shown,
    mark_at: as `annotated` has them; n: with lines of what values are over."""
    metrics: dict[Head, set[str]] = {}
    for _, column, row in placed:
        metrics.setdefault(column, set()).add(row["metric"])
    if not columns:
        order = {group: at for at, group in reversed([*enumerate(group for group, _ in metrics)])}
        columns = sorted(metrics, key=lambda column: order[column[0]])
    filled = {column for _, column, row in placed if row["value"] is not None}
    columns = [column for column in columns if column in filled] or columns[:1]
    column_of = {column: at for at, column in enumerate(columns)}
    names: dict[Name, int] = {}
    rows: dict[Place, list[Row]] = {}
    of_lines: dict[int, Row] = {}
    for name, column, row in placed:
        line = names.setdefault(name, len(names))
        of_lines.setdefault(line, row)
        if column in column_of:
            rows.setdefault((line, column_of[column]), []).append(row)
    dense(len(names), len(heads) + len(columns), len(rows))
    cells = {place: value(of_place) for place, of_place in rows.items()}
    senses = [better(*metrics[column]) if len(metrics[column]) == 1 else None for column in columns]
    apart = made_otherwise(rows, columns, settings_shown) if compared else {}
    blank = Value("-")
    lines = []
    for name, at in names.items():
        of_line = [cells.get((at, number), blank) for number in range(len(columns))]
        lines.append([*name, *(cell.text + cell.behind for cell in of_line)])
    groups = [group for group, _ in columns]
    above = [group if at == 0 or group != groups[at - 1] else "" for at, group in enumerate(groups)]
    table = TextTable([""] * len(heads) + above, [*heads, *(head for _, head in columns)], lines, len(heads))
    published = ["published" in settings_of(of_lines[line]) for line in range(len(lines))]
    published_lines = sum(published) if published == sorted(published, reverse=True) else 0
    cites = {line: row["cite"] for line, row in of_lines.items() if "cite" in row}
    table = replace(table, cites=cites, own_lines=published_lines if published_lines < len(lines) else 0)
    unknown = of_unknown_order(rows) if compared else set()
    notes = {place: (*cell.notes, *(UNKNOWN_ORDER,) * (place in unknown)) for place, cell in cells.items()}
    table = add_notes(table, rows, mark_at=mark_at, settings_shown=settings_shown, notes=notes, apart=apart)
    if ranked:
        table = _rank_values(table, {place: cell for place, cell in cells.items() if place not in apart}, senses)
    if not n:
        return table
    counts = [[number_text(rows[at, number][-1].get("n"), 0) if (at, number) in rows and not published[at] else "-"
               for number in range(len(columns))] for at in range(len(names))]  # fmt: skip
    return _add_count_lines(table, counts)


def _rank_values(table: TextTable, cells: Mapping[Place, Value], senses: Sequence[int | None]) -> TextTable:
    """The table with the best and the second value of each column, where it has several and it is known which is
    better."""
    numbers: dict[int, dict[Place, float]] = {}
    for (line, at), cell in cells.items():
        sense = senses[at]
        if sense is not None and cell.number is not None:
            numbers.setdefault(at, {})[line, at + table.names] = cell.number * sense
    best: list[Place] = []
    second: list[Place] = []
    for of_column in numbers.values():
        ranks = sorted(set(of_column.values()), reverse=True) if len(of_column) > 1 else []
        for places, rank in zip((best, second), ranks, strict=False):
            places += [place for place, number in of_column.items() if number == rank]
    return replace(table, best=frozenset(best), second=frozenset(second))


def _add_count_lines(table: TextTable, counts: Sequence[Sequence[str]]) -> TextTable:
    """The table with a line `n`, what each value is over, below the lines that share it. counts: of each line, by
    column; "-" where that is not known, as of published values."""
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
            lines += [["n", *[""] * (table.names - 1), *shared]] * any(count != "-" for count in shared)
            shared = []
    marks = {(line if line < 0 else at[line], column): mark for (line, column), mark in table.marks.items()}
    best, second = ([(at[line], column) for line, column in places] for places in (table.best, table.second))
    cites = {at[line]: cite for line, cite in table.cites.items()}
    return replace(
        table, lines=lines, marks=marks, best=best, second=second, cites=cites, own_lines=at[table.own_lines]
    )


def describe_rows(rows: Sequence[Row]) -> str:
    """Return what rows are of, for a message: metrics with their protocols, the most frequent first."""
    kinds = Counter((str(row["metric"]), str(row.get("protocol", ""))) for row in rows)
    metrics: dict[str, list[str]] = {}
    for (metric, protocol), _ in kinds.most_common():
        metrics.setdefault(metric, []).append(protocol)
    texts = [
        f"{metric} of {', '.join(filter(None, protocols)) or 'no protocol'}" for metric, protocols in metrics.items()
    ]
    return f"{'; '.join(texts[:4])}{' and more' if len(texts) > 4 else ''}"
