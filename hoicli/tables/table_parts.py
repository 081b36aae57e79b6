"""What every notation of a table needs: marks beside its texts, the texts below it, the columns of each group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from hoicli.tables.cells import ABOVE, HEAD, Place, TextTable, spread


def mark_texts(table: TextTable, mark: Callable[[str], str]) -> tuple[list[str], list[str], list[list[str]]]:
    """Return the groups, the heads and the lines of a table, each text followed by its marks, as `mark` writes them."""

    def add_marks(line: int, texts: Sequence[str]) -> list[str]:
        """Return the texts of a line with their marks. line: its number, or ABOVE or HEAD."""
        return [
            text + (mark(table.marks[line, column]) if (line, column) in table.marks else "")
            for column, text in enumerate(texts)
        ]

    lines = [add_marks(line, texts) for line, texts in enumerate(table.lines)]
    return add_marks(ABOVE, table.above), add_marks(HEAD, table.heads), lines


def texts_below(table: TextTable, mark: Callable[[str], str]) -> list[str]:
    """Return the paragraphs below the table: the notes with their marks (as `mark` writes them), then the settings."""
    notes = (f"{mark(marks)} {note}" if marks else note for marks, note in table.notes)
    paragraphs = table.paragraphs or [("", 1)] * len(table.notes)
    texts = [begin + "; ".join(islice(notes, length)) for begin, length in paragraphs]
    return [*texts, table.settings] if table.settings else texts


def group_spans(above: Sequence[str], name_columns: int) -> list[tuple[int, int]]:
    """Return (first column, number of columns) of each group over the heads. above: the name of each column's group,
    where "" continues the group to the left. name_columns: how many columns name lines; each is a group by itself."""
    starts = [number for number, text in enumerate(above) if text or number <= name_columns]
    return [(start, end - start) for start, end in zip(starts, [*starts[1:], len(above)], strict=True)]


def take_columns(table: TextTable, columns: Sequence[int]) -> TextTable:
    """Return the table with these columns alone, in this order. A group that begins left of the first one taken is
    named, and keeps its mark, above the first column of it that is taken."""
    groups = spread(table.above)
    start_of: dict[int, int] = {}  # the column in which the group of each column begins
    for start, span in group_spans(table.above, table.name_columns):
        start_of |= dict.fromkeys(range(start, start + span), start)
    above: list[str] = []
    marks: dict[Place, str] = {}
    for number, column in enumerate(columns):
        begins_group = number == 0 or start_of[columns[number - 1]] != start_of[column]
        above.append(groups[column] if begins_group else "")
        places = {line: (line, column) for line in (HEAD, *range(len(table.lines)))}
        if begins_group:
            places[ABOVE] = (ABOVE, start_of[column])
        marks |= {(line, number): table.marks[place] for line, place in places.items() if place in table.marks}
    number_of = {column: number for number, column in enumerate(columns)}
    best, second = (
        {(line, number_of[column]) for line, column in places if column in number_of}
        for places in (table.best, table.second)
    )
    return replace(
        table,
        above=above,
        heads=[table.heads[column] for column in columns],
        lines=[[line[column] for column in columns] for line in table.lines],
        name_columns=sum(column < table.name_columns for column in columns),
        marks=marks,
        best=best,
        second=second,
    )
