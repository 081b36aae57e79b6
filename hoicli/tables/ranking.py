"""Which values of a column are the best, and lines in the order of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hoicli.errors import UsageError, arg
from hoicli.tables.cells import Head, Name, Place, TextTable, Value


def rank_values(table: TextTable, cells: Mapping[Place, Value], senses: Sequence[int | None]) -> TextTable:
    """Return the table with the best and second-best values of each column that has several values. cells: the values
    that compete; senses: for each column 1 if higher is better, -1 if lower is, None if that is unknown."""
    numbers: dict[int, dict[Place, float]] = {}
    for (line, column), cell in cells.items():
        sense = senses[column]
        if sense is not None and cell.number is not None:
            numbers.setdefault(column, {})[line, column + table.name_columns] = cell.number * sense
    best: list[Place] = []
    second: list[Place] = []
    for number_by_place in numbers.values():
        highest = sorted(set(number_by_place.values()), reverse=True) if len(number_by_place) > 1 else []
        for places, rank_number in zip((best, second), highest, strict=False):  # the two highest, or all if fewer
            places += [place for place, number in number_by_place.items() if number == rank_number]
    return replace(table, best=frozenset(best), second=frozenset(second))


def order_lines(
    title: str,
    names: Sequence[Name],
    name_heads: Sequence[str],
    columns: Sequence[Head],
    cells: Mapping[Place, Value],
    senses: Sequence[int | None],
) -> list[int]:
    """Return the numbers of the lines in the order of one column: its best value first (the highest, where no direction
    is better) and lines without a value last; names from A. Lines that are equal there keep their order.

    title: the column's title; names, name_heads: the names of each line, and the titles of their columns; columns: the
    group and the head of each column of values; cells, senses: as for `rank_values`. Raises `UsageError` unless one
    column has the title."""
    at = _column_titled(title, name_heads, columns)
    lines = range(len(names))
    if at < len(name_heads):
        return sorted(lines, key=lambda line: names[line][at].casefold())
    column = at - len(name_heads)
    sense = senses[column] or 1
    texts = [cells[line, column].text if (line, column) in cells else "-" for line in lines]
    numbers = [None if text == "-" else sense * float(text.replace(",", "")) for text in texts]

    def rank_of(line: int) -> tuple[bool, float]:
        """Return what the lines are sorted by."""
        number = numbers[line]
        return number is None, -(number or 0.0)

    return sorted(lines, key=rank_of)


def _column_titled(title: str, name_heads: Sequence[str], columns: Sequence[Head]) -> int:
    """Return the number of the column with a title, its head or its group and head ("Default Full"), in any case."""
    titles = [*name_heads, *(f"{group} {head}".strip() for group, head in columns)]
    heads = [*name_heads, *(head for _, head in columns)]
    title_folded = title.casefold()
    for candidates in (titles, heads):
        matches = [number for number, candidate in enumerate(candidates) if candidate.casefold() == title_folded]
        if len(matches) == 1:
            return matches[0]
        if matches:
            choices = " or ".join(titles[number] for number in matches)
            raise UsageError(f"{arg('sort', title)}: several columns are called so; give {choices}")
    raise UsageError(f"{arg('sort', title)}: no column is called so; choose from {', '.join(titles)}")
