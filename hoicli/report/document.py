"""What a report says, apart from how it looks: sections of prose, tables and figures that `html` and `markdown` draw.

Text in here is plain text of any origin; the renderers escape it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hoicli.figures.styles import STYLES
from hoicli.records.results import Row
from hoicli.tables.layout import cell_text, grid

DASH = "\N{EN DASH}"
"""What stands where there is no value."""

DECIMALS: Mapping[str, int] = {"%": 2, "pairs": 2, "probability": 4}
"""Digits after the point by a row's unit; others (kappa, rho, ratio) have three."""


@dataclass(frozen=True)
class Code:
    """A command, an option or a name inside a sentence."""

    text: str


@dataclass(frozen=True)
class Link:
    """A name inside a sentence that leads to the table, or section, with this id."""

    text: str
    to: str


Words = Sequence[str | Code | Link]
"""A sentence or several."""


@dataclass(frozen=True)
class Paragraph:
    """Prose."""

    words: Words


@dataclass(frozen=True)
class Cell:
    """A place in a table. `interval` is its confidence interval in words; `share` in [0, 1] draws a bar beside it;
    `mark` is the error type whose colour stands before it; `code` sets it as a name."""

    text: str
    interval: str = ""
    share: float | None = None
    mark: str = ""
    code: bool = False


@dataclass(frozen=True)
class Table:
    """`groups` (what stands over columns, "" continuing the one before) and `heads`, then lines of as many cells.

    The first `names` columns say what a line is of, the rest are values. `folded`: only shown when asked for, under
    its caption. id: what links lead to, "" where none does.
    """

    caption: str
    heads: Sequence[str]
    lines: Sequence[Sequence[Cell]]
    names: int
    groups: Sequence[str] = ()
    folded: bool = False
    id: str = ""


@dataclass(frozen=True)
class Figure:
    """A drawing as inline SVG, for renderers that can show it."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Figures:
    """Drawings that stand side by side where there is room."""

    figures: Sequence[Figure]


@dataclass(frozen=True)
class Lines:
    """Command lines, to be copied."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Gallery:
    """Errors drawn on their images.

    An item holds `image_id`, `file_name` (optional), `width` and `height` (or None), `error` (a key of STYLES), `verb`,
    `label`, `score` and `rank` (or None), `predicted` and `truth` (None, or [subject box, object box], the subject's
    alone where there is no object), `truth_name`, `relation` (of `diagnosis.beside.RELATIONS`) and `iou` (None, or of
    both boxes). What is no error has `words` (heading, what stands under it, facts) in place of `error`, `verb`,
    `label`, `score`, `rank`, `relation` and `iou`, and may have its drawing as markup (`scene`). images: the folder
    that file names are looked up in.
    """

    items: Sequence[Mapping[str, Any]]
    images: str | None


Block = Paragraph | Table | Figures | Lines | Gallery


@dataclass(frozen=True)
class Section:
    """A heading with what is under it."""

    id: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Headline:
    """A number that is shown large."""

    label: str
    value: Cell
    note: str


@dataclass(frozen=True)
class Document:
    """A report. findings: what its numbers say, a sentence each."""

    title: str
    lead: Words
    headlines: Sequence[Headline]
    sections: Sequence[Section]
    findings: Sequence[Words] = ()


Values = Mapping[str, Callable[[Row], Cell]]
"""The head of a column of values -> a row's cell in it."""


def number(value: float | None, unit: str = "%", *, signed: bool = False) -> str:
    """A row's value as it is printed: counts with thousands, the rest rounded; a dash for none."""
    if value is None:
        return DASH
    text = f"{value:,}" if isinstance(value, int) else f"{value:.{DECIMALS.get(unit, 3)}f}"
    nothing = not text.strip("-0.,")
    text = text.lstrip("-") if nothing else text.replace("-", "\N{MINUS SIGN}")
    return f"+{text}" if signed and not nothing and value > 0 else text


def value_cell(row: Row, *, signed: bool = False) -> Cell:
    """The value of a result row, with its standard deviation over runs and its interval where it has them (in the
    value's own unit)."""
    unit = str(row.get("unit", "%"))
    sd, low, high = row.get("sd"), row.get("ci_low"), row.get("ci_high")
    interval = "" if low is None or high is None else f"[{number(low, unit)}, {number(high, unit)}]"
    text = number(row["value"], unit, signed=signed)
    return Cell(text if sd is None else f"{text} \N{PLUS-MINUS SIGN} {number(sd, unit)}", interval)


def pivoted(
    rows: Iterable[Row],
    caption: str,
    *,
    index: Sequence[str],
    column: Callable[[Row], tuple[str, str]] = lambda row: (str(row["metric"]), str(row["subset"])),
    cell: Callable[[Row], Cell] = value_cell,
    own: bool = False,
    longest: int | None = None,
    id_: str = "",
) -> Table:
    """A table with a line per value of `index` (keys of a row, or of its tags) and a column per (group, head).

    Everything keeps the order of first appearance, but that the columns of a group stand together; what no row has is
    a dash, and an index column that no row has is left out. Of two rows for one place the later one counts: rows of
    different settings must differ in `index`. own: names are those of hoicli's own rows (`_own_name`). longest: lines
    beyond which the table is folded.
    """
    found = grid(rows, lambda row: tuple(_named(row, key) for key in index), column, cell)
    kept = [at for at in range(len(index)) if any(names[at] for names in found.lines)]
    line_name = _own_name if own else lambda _, text: Cell(text or DASH)
    body = [
        [*(line_name(index[at], names[at]) for at in kept), *(cells.get(place, Cell(DASH)) for place in found.columns)]
        for names, cells in found.lines.items()
    ]
    heads = [*(index[at] for at in kept), *(head for _, head in found.columns)]
    folded = longest is not None and len(body) > longest
    return Table(caption, heads, body, len(kept), groups=[""] * len(kept) + found.above, folded=folded, id=id_)


def listed(
    rows: Iterable[Row],
    caption: str,
    names: Mapping[str, str],
    values: Values,
    *,
    folded: bool = False,
    id_: str = "",
) -> Table:
    """A table with a line for each of hoicli's own rows: names (head -> key of the row), then values (head -> cell)."""
    lines = [
        [*(_own_name(key, _named(row, key)) for key in names.values()), *(make(row) for make in values.values())]
        for row in rows
    ]
    return Table(caption, [*names, *values], lines, len(names), folded=folded, id=id_)


def _named(row: Row, key: str) -> str:
    """What a row, or failing that its tags, say under a key; `tags.KEY` is of the tags alone."""
    tags = row.get("tags") or {}
    value: Any = tags.get(key[5:]) if key.startswith("tags.") else row.get(key, tags.get(key))
    return cell_text(value)


def _own_name(key: str, text: str) -> Cell:
    """A name in hoicli's own rows: protocols as code, an error type or an oracle in words with its colour."""
    if key == "oracle":
        return Cell(STYLES[text].words, mark=text)
    return Cell(text or DASH, code=key == "protocol")
