"""Rows in tables: by a layout of papers, by chosen lines and columns, or as their kind is laid out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import NamedTuple

from hoicli.errors import DataError, UsageError
from hoicli.records.metrics import better_direction, kind_of
from hoicli.records.result_rows import CHANCES, Row, settings_of, tag_column
from hoicli.tables.cells import (
    NO_KEYS,
    Head,
    Name,
    Place,
    Showing,
    TextTable,
    Value,
    cell_text,
    check_one_unit,
    compared_value,
    number_text,
    plain_value,
    single_value,
    value_of,
)
from hoicli.tables.differing_settings import made_otherwise, of_unknown_order
from hoicli.tables.layouts import Layout, Slot, column_head, is_mean
from hoicli.tables.notes import add_notes
from hoicli.tables.ranking import order_lines, rank_values

_VIEWS = frozenset({"iou", "slice", "part"})
"""Tags of rows at other thresholds or on parts of the data. If they name lines, no value is marked as the best."""
_COUNTED = frozenset({"oracle", "error", "nms"})
"""Keys of rows of diagnoses and pair statistics, whose n differs from line to line: their tables show it."""
_MOST_EMPTY = 1_000_000
"""How many cells a table may have even if nearly all are empty."""

Placed = tuple[Name, Head, Row]
"""The name of the line that a row belongs in, the group and head of its column, and the row."""


def arrange_by_layout(rows: Sequence[Row], layout: Layout, showing: Showing) -> tuple[TextTable, list[Row]]:
    """Return the table that a layout (as papers print it) makes of result rows, and the rows that are not in it. Raises
    `DataError` if no row fits the layout, or if two rows belong in one cell."""
    slots = layout.columns(rows)  # a slot is a column of the layout: its heads, and which rows it takes
    fitting = [(row, slot) for row, slot in product(rows, slots) if is_mean(row) and slot.takes(row)]
    if not fitting:
        raise DataError(f"no row fits the layout {layout.name} ({layout.description}): they are {describe_rows(rows)}")
    keys = [key for key in layout.lines if any(row.get(key) is not None for row, _ in fitting)]
    tags = _tags((row for row, _ in fitting), showing.over)  # but not the one that values are averaged over
    check_tag_columns([row for row, _ in fitting], tags, keys)
    placed = _by_usual_protocol([(_name_of(row, tags, keys), row, slot) for row, slot in fitting])
    placed_ids, columns = {id(row) for *_, row in placed}, {column for _, column, _ in placed}
    heads = [*(("Method" if tag == "model" else tag_column(tag)) for tag in tags), *keys] or ["Method"]
    check_one_unit(row for *_, row in placed)
    views = _VIEWS & set(tags)  # with lines for thresholds or parts of the data, a column has no best value
    table = _assemble(
        placed, heads, partial(compared_value, showing=showing), sort=showing.sort,
        columns=[column for slot in slots if (column := (slot.group, slot.head)) in columns],
        ranked=not views, compared=True, settings_shown=views,
        n=layout.n and showing.n,  # lines of counts: in some layouts, and not in CSV
    )  # fmt: skip
    return table, [row for row in rows if id(row) not in placed_ids]


def _by_usual_protocol(named_rows: Sequence[tuple[Name, Row, Slot]]) -> list[Placed]:
    """Return the rows to show with their columns: where a line has rows of several protocols, those of one of them.

    In each group of columns, that is the protocol that most lines have; on a tie, the one that papers prefer, which is
    the first in `Slot.protocols`. named_rows: each row with the name of its line and a column that takes it."""
    protocols_of: dict[tuple[Name, str], set[str]] = {}
    for name, row, slot in named_rows:
        protocols_of.setdefault((name, slot.group), set()).add(row.get("protocol", ""))
    line_counts: Counter[tuple[str, str]] = Counter()  # how many lines have the protocol in the group of columns
    for (_, group), protocols in protocols_of.items():
        line_counts.update((group, protocol) for protocol in protocols)
    placed: list[Placed] = []
    for name, row, slot in named_rows:
        candidates = [protocol for protocol in slot.protocols if protocol in protocols_of[name, slot.group]]
        if row.get("protocol", "") == max(candidates, key=lambda protocol: line_counts[slot.group, protocol]):
            placed.append((name or ("-",), (slot.group, slot.head), row))
    return placed


def arrange_by_keys(rows: Sequence[Row], lines: Sequence[str], columns: Sequence[str], showing: Showing) -> TextTable:
    """Return the table with a line for each combination of values of the keys `lines`, and a column for each of the
    keys `columns`. A key is one of a row, or, written `tag.model`, one of its tags. Raises `UsageError` for a key that
    no row has, and `DataError` if two rows belong in one cell."""
    for key in (*lines, *columns):
        if key in NO_KEYS or all(value_of(row, key) is None for row in rows):
            tag_keys = sorted({f"tag.{tag}" for tag in chain.from_iterable(row.get("tags", {}) for row in rows)})
            tag_keys += [name for name in dict.fromkeys(chain.from_iterable(rows)) if name not in NO_KEYS]
            raise UsageError(f"{key}: no row has it; choose from {', '.join(tag_keys)}")
    check_one_unit(rows)
    placed: list[Placed] = []
    for row in rows:
        # the value of the last key heads the column; those of the others name its group
        *group, head = [cell_text(value_of(row, key)) or "-" for key in columns]
        name = tuple(cell_text(value_of(row, key)) or "-" for key in lines)
        placed.append((name, (" ".join(group), head), row))
    names = [key.removeprefix("tag.") for key in lines]
    # Values are ranked, and compared by their settings, if lines differ by what the user tagged (such as models) alone;
    # they are also compared if lines and columns differ by thresholds and parts of the data alone.
    ranked = all(key.startswith("tag.") for key in lines)
    keys = {key.removeprefix("tag.") for key in (*lines, *columns)}
    return _assemble(
        placed, names, partial(compared_value, showing=showing), ranked=ranked, compared=ranked or keys <= _VIEWS,
        settings_shown=keys, sort=showing.sort,
    )  # fmt: skip


def _tags(rows: Iterable[Row], over: str) -> list[str]:
    """Return the tags of the rows, whose values name a line; `model` comes first. over: the tag over whose values cells
    are averaged, which is left out; "" for none."""
    tags = dict.fromkeys(key for key in chain.from_iterable(row.get("tags", {}) for row in rows) if key != over)
    return sorted(tags, key=lambda tag: tag != "model")  # False sorts first


def _name_of(row: Row, tags: Sequence[str], keys: Sequence[str]) -> Name:
    """Return the name of a row's line: the row's values of the tags, then of the keys; "-" for a missing one."""
    tags_of_row = row.get("tags", {})
    return (*(str(tags_of_row.get(tag, "-")) for tag in tags), *(cell_text(row.get(key)) or "-" for key in keys))


def tables_of(rows: Sequence[Row], *, strict: bool = False) -> list[TextTable]:
    """Return the tables that show the rows. Rows share a table if their kinds name lines and columns by the same keys.

    Consecutive tables with the same settings state them once, below the last. If two rows belong in one cell, the later
    one is shown; if `strict`, `DataError` is raised for them, and for a metric in two units."""
    if strict:
        check_one_unit(rows)
    if "metric" not in rows[0]:
        return [_table_of_keys(rows)]
    # (keys that name lines, key whose values head columns) -> rows; a difference between models has no such column
    groups: dict[tuple[tuple[str, ...], str | None], list[Row]] = {}
    for row in rows:
        kind = kind_of(row)
        index = tuple(key for key in kind.index if key in row)
        column_key = next((key for key in kind.columns if key in row), None)
        groups.setdefault((index, column_key), []).append(row)
    tables = []
    for (index, column), group in groups.items():
        if column is None:
            group, column = list(chain.from_iterable(parts_of(row) for row in group)), "part"
            if len({row["metric"] for row in group}) == 1:
                index = tuple(key for key in index if key != "metric")  # it stands above the columns
        tables.append(_arrange_by_kind(group, index, column, single_value if strict else plain_value))
    settings_below = [*(table.settings for table in tables[1:]), ""]
    return [
        replace(table, settings="") if table.settings == next_settings else table
        for table, next_settings in zip(tables, settings_below, strict=True)
    ]


def _table_of_keys(rows: Sequence[Row]) -> TextTable:
    """Return the table of rows that are no metrics: a line for each row, a column for each key that some row has."""
    keys = dict.fromkeys(key for key, value in chain.from_iterable(row.items() for row in rows) if cell_text(value))
    lines = [[cell_text(row.get(key)) for key in keys] for row in rows]
    return TextTable([""] * len(keys), list(keys), lines, len(keys))


def parts_of(row: Row) -> Iterator[Row]:
    """Yield the rows by which a table shows a difference between two models, each with a `part` that heads its column:
    how many ground truths the class has, the two compared values (`from` and `to`), the difference with its interval,
    and its probabilities (CHANCES)."""
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
    """Return the table of rows of one kind: a line for each combination of tags and of values of the keys `index`, a
    column for each value of the key `column`. The metric names a line if it is in `index`, else a group of columns.
    value: makes the value of a cell of its rows."""
    tags = list(dict.fromkeys(chain.from_iterable(row.get("tags", {}) for row in rows)))
    # in tables of diagnoses and pair statistics (_COUNTED), `n` differs from line to line
    count_lines = column == "subset" and not _COUNTED.isdisjoint(index)
    # keys without any value are left out
    index = tuple(key for key in index if any(cell_text(row[key]) for row in rows)) or index[:1]
    check_tag_columns(rows, tags, index)
    grouped = "metric" not in index
    placed = [
        (_name_of(row, tags, index), (str(row["metric"]) if grouped else "", column_head(row, column)), row)
        for row in rows
    ]
    heads = [*map(tag_column, tags), *index]
    mark_at = heads.index("protocol") if "protocol" in index else 0
    return _assemble(placed, heads, value, settings_shown=index, n=count_lines, mark_at=mark_at)


def check_not_sparse(lines: int, columns: int, filled: int) -> None:
    """Raise `DataError` for a large table of which nearly all cells would be empty: each row may name a line and a
    column of its own. filled: how many cells have a value."""
    if lines * columns > max(_MOST_EMPTY, 10 * filled):
        raise DataError(
            f"{lines:,} lines of {columns:,} columns for {filled:,} values would be an empty table; choose rows with "
            "jq's select or hoicli table --metric, or other lines and columns with --lines and --columns"
        )


UNKNOWN_ORDER = "does not say in which order its ground truth is listed (hoicli 1.0): perhaps another than the others'"
"""The note at values of rows that hoicli 1.0 wrote."""


def check_tag_columns(rows: Collection[Row], tags: Sequence[str], index: Sequence[str]) -> None:
    """Raise `DataError` if nearly all cells that name lines would be empty, since each row has tags of its own. tags,
    index: the tags, and the keys of rows, that name lines."""
    lines = {(frozenset(row.get("tags", {}).items()), *(cell_text(row.get(key)) for key in index)) for row in rows}
    check_not_sparse(len(lines), len(tags), len(rows))


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
    sort: str = "",
) -> TextTable:
    """Return the table of rows whose line and column are known. Lines and columns appear in the order of their first
    rows, with the columns of a group side by side. A column without any value is left out, unless it is the only one.

    heads: what stands over the columns that name lines. value: makes a cell's value of its rows. columns: the group and
    head of each column, if not in the order of first appearance. ranked: whether the best values of each column are
    marked. compared: whether a note says which values were made with other settings. settings_shown: the keys that name
    lines and columns. mark_at: the column of names that takes the mark of a whole line. n: whether lines are added that
    say how many classes, images or pairs the values are over. sort: the title of the column that lines are sorted by,
    published ones and others each by themselves; "" for the order of their first rows."""
    metrics = _metrics_by_column(placed)
    columns = _filled_columns(placed, columns or _columns_by_group(metrics))
    grid = _Grid.from_rows(placed, columns)
    check_not_sparse(len(grid.names), len(heads) + len(columns), len(grid.rows))
    cells = {place: value(cell_rows) for place, cell_rows in grid.rows.items()}
    # a column of several metrics has no best value
    senses = [better_direction(*metrics[column]) if len(metrics[column]) == 1 else None for column in columns]
    if sort:
        order = order_lines(sort, grid.names, heads, columns, cells, senses)
        published = grid.are_published()
        order.sort(key=lambda line: not published[line])  # False, the published ones, is first
        number_of = {grid.names[line]: number for number, line in enumerate(order)}
        grid = _Grid.from_rows(sorted(placed, key=lambda row: number_of[row[0]]), columns)
        cells = {place: value(cell_rows) for place, cell_rows in grid.rows.items()}
    # the values made with other settings, and those whose rows do not say in which order the ground truth is listed
    apart = made_otherwise(grid.rows, columns, settings_shown) if compared else {}
    order_notes = dict.fromkeys(of_unknown_order(grid.rows) if compared else (), (UNKNOWN_ORDER,))
    notes = {place: (*cell.notes, *order_notes.get(place, ())) for place, cell in cells.items()}
    table = _text_table(grid, heads, columns, cells)
    table = add_notes(table, grid.rows, mark_at=mark_at, settings_shown=settings_shown, notes=notes, apart=apart)
    if ranked:
        table = rank_values(table, {place: cell for place, cell in cells.items() if place not in apart}, senses)
    return _add_count_lines(table, grid.counts(len(columns))) if n else table


def _metrics_by_column(placed: Iterable[Placed]) -> dict[Head, set[str]]:
    """Return the metrics of each column, in the order in which the columns first appear."""
    metrics: dict[Head, set[str]] = {}
    for _, column, row in placed:
        metrics.setdefault(column, set()).add(row["metric"])
    return metrics


def _columns_by_group(columns: Collection[Head]) -> list[Head]:
    """Return the columns (group, head) with those of a group side by side, a group where its first column stood."""
    group_numbers = {group: number for number, group in enumerate(dict.fromkeys(group for group, _ in columns))}
    return sorted(columns, key=lambda column: group_numbers[column[0]])


def _filled_columns(placed: Iterable[Placed], columns: Sequence[Head]) -> Sequence[Head]:
    """Return the columns with a value; the first one if no column has any."""
    filled = {column for _, column, row in placed if row["value"] is not None}
    return [column for column in columns if column in filled] or columns[:1]


class _Grid(NamedTuple):
    """Result rows by the cells of a table. names: the name of each line; rows: the rows of each cell that has some, by
    (line, column) of values, from 0; first_rows: the first row of each line, even if its column is left out."""

    names: Sequence[Name]
    rows: Mapping[Place, list[Row]]
    first_rows: Sequence[Row]

    @classmethod
    def from_rows(cls, placed: Iterable[Placed], columns: Sequence[Head]) -> _Grid:
        """Return the rows by their cells. Lines are in the order of their first rows. Rows of other columns than
        `columns` are left out, but their lines are not."""
        number_of = {column: number for number, column in enumerate(columns)}
        line_of: dict[Name, int] = {}
        rows: dict[Place, list[Row]] = {}
        first_rows: dict[int, Row] = {}
        for name, column, row in placed:
            line = line_of.setdefault(name, len(line_of))
            first_rows.setdefault(line, row)
            if column in number_of:
                rows.setdefault((line, number_of[column]), []).append(row)
        return cls([*line_of], rows, [*first_rows.values()])

    def are_published(self) -> list[bool]:
        """Return for each line whether it is one that a paper published."""
        return ["published" in settings_of(row) for row in self.first_rows]

    def counts(self, columns: int) -> list[list[str]]:
        """Return, line by line, for each of so many `columns` over how many cases (the rows' n) its value is; "-" where
        that is not known, as for published lines."""
        published = self.are_published()
        counts = [["-"] * columns for _ in self.names]
        for (line, column), rows in self.rows.items():
            if not published[line]:
                counts[line][column] = number_text(rows[-1].get("n"), 0)
        return counts


def _text_table(grid: _Grid, heads: Sequence[str], columns: Sequence[Head], cells: Mapping[Place, Value]) -> TextTable:
    """Return the table of a grid as text, still without notes and marks. heads: what stands over the columns that name
    lines; columns: the group and head of each column of values; cells: the value at each place; "-" is shown where
    there is none."""
    blank = Value("-")
    lines = []
    for line, name in enumerate(grid.names):
        line_cells = [cells.get((line, number), blank) for number in range(len(columns))]
        lines.append([*name, *(cell.text + cell.behind for cell in line_cells)])
    groups = [group for group, _ in columns]
    above = [group if number == 0 or group != groups[number - 1] else "" for number, group in enumerate(groups)]
    published = grid.are_published()
    # the published lines are set apart only if they all stand above the others
    published_lines = sum(published) if published == sorted(published, reverse=True) else 0
    return TextTable(
        [""] * len(heads) + above,
        [*heads, *(head for _, head in columns)],
        lines,
        name_columns=len(heads),
        cites={line: row["cite"] for line, row in enumerate(grid.first_rows) if "cite" in row},
        first_own_line=published_lines if published_lines < len(lines) else 0,
    )


def _add_count_lines(table: TextTable, counts: Sequence[Sequence[str]]) -> TextTable:
    """Return the table with lines named `n` that say over how many cases the values are. Consecutive lines with the
    same numbers share one, below the last of them. counts: the numbers by line and column, "-" where unknown."""
    lines: list[Sequence[str]] = []
    new_lines: list[int] = []  # where each line of `table` now stands
    count_lines: list[int] = []
    unknown = ["-"] * len(counts[0])
    shared: Sequence[str] = unknown  # the numbers of the lines since the last line `n`
    for line, line_counts, next_counts in zip(table.lines, counts, [*counts[1:], None], strict=True):
        new_lines.append(len(lines))
        lines.append(line)
        shared = [new if old == "-" else old for old, new in zip(shared, line_counts, strict=True)]
        if next_counts is None or any(a != b and "-" not in (a, b) for a, b in zip(shared, next_counts, strict=True)):
            if shared != unknown:
                count_lines.append(len(lines))
                lines.append(["n", *[""] * (table.name_columns - 1), *shared])
            shared = unknown
    # the heads and the groups above them have negative numbers as lines, which stay
    marks = {(line if line < 0 else new_lines[line], column): mark for (line, column), mark in table.marks.items()}
    best, second = ([(new_lines[line], column) for line, column in places] for places in (table.best, table.second))
    cites = {new_lines[line]: cite for line, cite in table.cites.items()}
    return replace(
        table, lines=lines, marks=marks, best=best, second=second, cites=cites,
        first_own_line=new_lines[table.first_own_line], count_lines=count_lines,
    )  # fmt: skip


def describe_rows(rows: Sequence[Row]) -> str:
    """Return the metrics of rows with their protocols as words for a message, the most frequent first: "mAP of hico;
    count of diag"."""
    kinds = Counter((str(row["metric"]), str(row.get("protocol", ""))) for row in rows)
    metrics: dict[str, list[str]] = {}
    for (metric, protocol), _ in kinds.most_common():
        metrics.setdefault(metric, []).append(protocol)
    texts = [
        f"{metric} of {', '.join(filter(None, protocols)) or 'no protocol'}" for metric, protocols in metrics.items()
    ]
    return f"{'; '.join(texts[:4])}{' and more' if len(texts) > 4 else ''}"
