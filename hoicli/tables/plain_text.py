"""A table as plain text in aligned columns: for files and pipes, and on a terminal, whose width and colours it uses."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from hoicli.tables.cells import TextTable
from hoicli.tables.table_parts import group_spans, mark_texts, take_columns, texts_below

_WIDEST = 200
"""Longer texts do not widen their column: a label of a megabyte would make every line as long."""


class Ink(NamedTuple):
    """The escape sequences that set parts of a table apart on a terminal. best: begins the best value of a column;
    faint: begins a rule, or what follows a number, such as its interval; end: ends both. All are "" without colours."""

    best: str = ""
    faint: str = ""
    end: str = ""


_NO_INK = Ink()
_TERMINAL_INK = Ink(best="\x1b[1m", faint="\x1b[90m", end="\x1b[0m")  # bold, grey


def wants_colours() -> bool:
    """Return whether stdout gets colours: it does if it is a terminal that has some. A text in the variable NO_COLOR
    turns them off (no-color.org), one in FORCE_COLOR, but 0, turns them on; NO_COLOR decides if both are set."""
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced != "0"
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Return how many characters fit into a line of stdout: those of a terminal, very many for anything else."""
    columns = shutil.get_terminal_size(fallback=(0, 0)).columns if sys.stdout.isatty() else 0
    return columns or 10_000


def write_plain(table: TextTable) -> str:
    """Return the table as plain text, with its notes and settings below."""
    return _join_lines([*_aligned_lines(table, _NO_INK), *texts_below(table, str)])


def write_terminal(table: TextTable) -> str:
    """Return the table for the terminal that stdout is, with a rule under the heads, and colours if it wants them.

    A table that is too wide for it becomes several, one below the other, each with the columns that name the lines."""
    ink = _TERMINAL_INK if wants_colours() else _NO_INK
    room = terminal_width()
    lines: list[str] = []
    for columns in _column_blocks(table, room):
        block = take_columns(table, columns)
        lines += [*([""] if lines else []), *_aligned_lines(block, ink, ruled=True)]
    for text in texts_below(table, str):
        lines += wrap(text, room, break_on_hyphens=False)
    return _join_lines(lines)


def _join_lines(lines: Sequence[str]) -> str:
    """Return lines as one text, without spaces at their ends."""
    return "".join(line.rstrip() + "\n" for line in lines)


def _column_blocks(table: TextTable, room: int) -> Iterator[list[int]]:
    """Yield the columns of each table that one too wide for `room` characters is broken into: those that name lines,
    and as many others as fit, at least one. Where the names leave no room, the first of them alone is repeated."""
    widths = _column_widths(table)
    if _room(widths) <= room:
        yield list(range(len(table.heads)))
        return
    repeated = table.name_columns if _room(widths[: table.name_columns]) < room / 2 else min(table.name_columns, 1)
    block = list(range(repeated))
    for column in range(repeated, len(table.heads)):
        is_too_wide = _room(_column_widths(take_columns(table, [*block, column]))) > room
        if is_too_wide and len(block) > repeated:
            yield block
            block = list(range(repeated))
        block.append(column)
    yield block


def _column_widths(table: TextTable) -> list[int]:
    """Return the width of each column in characters. Where a group's name is wider than its columns, the first of them
    is made wider."""
    above, heads, lines = mark_texts(table, str)
    widths = [min(max(map(len, column)), _WIDEST) for column in zip(heads, *lines, strict=True)]
    for at, span in group_spans(above, table.name_columns):
        widths[at] += max(0, min(len(above[at]), _WIDEST) - _room(widths[at : at + span]))
    return widths


def _room(widths: Sequence[int]) -> int:
    """Return the width of neighbouring columns, with the two spaces between each two."""
    return sum(widths) + 2 * (len(widths) - 1)


def _aligned_lines(table: TextTable, ink: Ink, *, ruled: bool = False) -> list[str]:
    """Return the lines of a table in aligned columns: names to the left, values to the right, groups over the heads. A
    rule stands below published lines and, if `ruled`, below the heads."""
    above, heads, body = mark_texts(table, str)
    widths = _column_widths(table)
    spans = group_spans(above, table.name_columns)
    rule = ink.faint + "-" * _room(widths) + ink.end
    lines = [_aligned_line(table, heads, widths)]
    if ruled:
        lines.append(rule)
    for number, texts in enumerate(body):
        if number and number == table.first_own_line:
            lines.append(rule)
        lines.append(_aligned_line(table, texts, widths, number, ink))
    if any(above):
        groups = (above[at].rjust(widths[at]).ljust(_room(widths[at : at + span])) for at, span in spans)
        lines.insert(0, "  ".join(groups))
    return lines


def _aligned_line(
    table: TextTable, texts: Sequence[str], widths: Sequence[int], line: int | None = None, ink: Ink = _NO_INK
) -> str:
    """Return one line of a table. texts: of its cells, in which an interval or the like may follow the number after a
    space; line: its number, None for the heads."""
    cells = []
    for column, (text, width) in enumerate(zip(texts, widths, strict=True)):
        padding = " " * (width - len(text))
        if column < table.name_columns:
            cells.append(text + padding)
            continue
        number, space, remark = text.partition(" ")
        if (line, column) in table.best:
            number = ink.best + number + ink.end
        if remark and line is not None:
            remark = ink.faint + remark + ink.end
        cells.append(padding + number + space + remark)
    return "  ".join(cells)
