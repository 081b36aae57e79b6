"""What a command's function returns, for both doors: rows, or records one by one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hoicli.errors import HoicliError, UsageError, arg
from hoicli.io.messages import kept_notes
from hoicli.records.result_rows import check_row

if TYPE_CHECKING:
    import pandas

    from hoicli.figures.styles import Look
    from hoicli.records.parsing import Record
    from hoicli.records.result_rows import Row

Usual = TypeVar("Usual")

MOST_LINES = 30
"""How many lines of a table a prompt or a notebook shows by itself."""

_PART_OF = ("verb", "object", "role", "image_id")
"""Keys that only rows about a class or an image have."""
_MEASURED = ("value", "n", "unit", "signature", "note", "tags")
"""Keys that do not tell which value a row has."""


@dataclass(frozen=True)
class Result:
    """The rows of a command, as it writes them with `--format jsonl`.

    rows: one value each, in percent where `unit` is "%"; value None where there is nothing to average; `signature` says
    what made it. notes: what the command would say on stderr, one line each. Printing a result shows the command's
    table; a prompt or a notebook by itself no more than its first lines.
    """

    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    classes: Callable[[], Sequence[Row]] | None = field(default=None, repr=False, compare=False)
    """Computes the rows of classes where `rows` has none; None if they have to be asked for."""
    draw: Callable[[str, Look], None] | None = field(default=None, repr=False, compare=False)
    """Draws the figure into a file."""
    above: Sequence[str] = field(default=(), repr=False, compare=False)
    """Sentences that stand above a table."""
    blocks: Callable[[str], Iterable[Sequence[Row]]] | None = field(default=None, repr=False, compare=False)
    """The rows of each table in a notation, where there are several, or other rows in a table than in JSONL."""
    rendered: Callable[[str], bytes] | None = field(default=None, repr=False, compare=False)
    """The rows in a notation, where that is no usual table of them."""
    piped: str = field(default="", repr=False, compare=False)
    """The notation where neither --format nor a terminal chooses, if not the command's."""
    hint: str = field(default="", repr=False, compare=False)
    """A note below a table."""
    others: bool = field(default=False, repr=False, compare=False)
    """Whether the rows were read, and may be of metrics that are not hoicli's."""
    failed: HoicliError | None = field(default=None, repr=False, compare=False)
    """What the command ends with although there are rows; without a text where the rows say it."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for a row that rows of its metric cannot be (`results.check_row`)."""
        for row in () if self.others else self.rows:
            if "metric" in row:
                check_row(row)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a pickle keeps: the rows of classes and the tables, in place of the predictions that they are
        made of."""
        classes = None if self.classes is None else partial(list[Any], self.classes())
        rendered_by_notation = {notation: self.render_rows(notation) for notation in ("table", "html")}
        rendered = partial(_render_kept, self.rows, rendered_by_notation)
        return type(self), (self.rows, self.notes, classes, None, (), None, rendered, "", "", self.others)

    def to_dict(self, *, drop_none: bool = True) -> dict[str, float | None]:
        """`{"hico/mAP/full": 31.2, ...}` for a tracker: PROTOCOL/METRIC/SUBSET of each value that is about no single
        class or image; what else tells values apart comes behind it (an error type, an oracle, `iou:0.75`,
        `objects:small`, `constraint:graph`), and a model's name in front. Values that there are not (nothing to
        average) are left out, since trackers refuse None; drop_none: False keeps them. Rows without values, as those of
        a vocabulary, give nothing."""
        alike: dict[str, list[Row]] = {}
        for row in self.rows:
            if "value" in row and not any(key in row for key in _PART_OF):
                alike.setdefault(_key(row), []).append(row)
        values = [(key + suffix, row["value"]) for key, rows in alike.items() for suffix, row in _told_apart(rows)]
        return {key: value for key, value in values if not (drop_none and value is None)}

    @property
    def per_class(self) -> list[Row]:
        """The rows about single classes: AP and max_recall of an evaluation, counts and AP of a diagnosis. Raises
        `UsageError` where the call has to ask for them (`per_class=True`)."""
        class_rows = [row for row in self.rows if "verb" in row]
        if class_rows:
            return class_rows
        if self.classes is None:
            raise UsageError("per_class: no rows of classes were made; call again with per_class=True")
        with kept_notes():
            return list(self.classes())

    def to_frame(self) -> pandas.DataFrame:
        """The rows as a pandas data frame, a column for each key and each tag. Raises `UsageError` without pandas."""
        try:
            import pandas
        except ImportError:
            raise UsageError("to_frame needs pandas: pip install pandas", code="missing-package") from None
        from hoicli.tables.notations import flat_rows

        return pandas.DataFrame(flat_rows(self.rows))

    def plot(
        self,
        path: str | os.PathLike[str],
        *,
        width: float | None = None,
        font_size: float | None = None,
        style: str = "paper",
    ) -> None:
        """Draw the command's figure into a file (.png, .svg, .pdf); the options are those of `--plot`. Raises
        `UsageError` where the command has no figure, and without matplotlib."""
        if self.draw is None:
            raise UsageError("plot: this result has no figure")
        from hoicli.io.outputs import check_figure

        check_figure(os.fspath(path), "plot")
        self.draw(os.fspath(path), look_of(os.fspath(path), width, font_size, style))

    def render_rows(self, notation: str) -> bytes:
        """The rows in a notation of `--format`."""
        if self.rendered is not None:
            return self.rendered(notation)
        from hoicli.tables.notations import paragraphs_above, render

        blocks = [self.rows] if self.blocks is None else self.blocks(notation)
        return b"\n".join([*paragraphs_above(self.above, notation), *(render(block, notation) for block in blocks)])

    def __str__(self) -> str:
        return self.render_rows("table").decode().rstrip("\n")

    def __repr__(self) -> str:
        lines = str(self).splitlines()
        rest_line = [f"... {len(lines) - MOST_LINES:,} more lines; print() shows them"] * (len(lines) > MOST_LINES)
        return "\n".join(lines[:MOST_LINES] + rest_line)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the table of `--format html`, a line for each row."""
        from html import escape

        lines = self.render_rows("html").decode().splitlines()
        if not lines or lines[0][:1] != "<":  # a text
            return f"<pre>{escape(repr(self))}</pre>"
        end_line = [f"</tbody></table><p>... {len(lines) - MOST_LINES:,} more lines; print() shows them</p>"]
        return "\n".join(lines[:MOST_LINES] + end_line * (len(lines) > MOST_LINES))


class Records(Iterator["Record"]):
    """Records one by one, made as they are asked for; `notes` has what the command would say on stderr, complete after
    the last one. Raises `DataError` at a bad one, as the command does."""

    def __init__(self, lines: Iterable[Record | bytes], *, piped: str = "", failed: HoicliError | None = None) -> None:
        """lines: records, or lines of them as JSON. piped: the command, if what reads its output has to know whether it
        is whole. failed: the error that the command ends with all the same."""
        self.notes: list[str] = []
        self.failed = failed
        self._piped = piped
        self.lines = iter(lines)
        self._held: list[Record] = []

    def __next__(self) -> Record:
        import orjson

        while not self._held:
            record = next(self.lines)
            self._held = [record] if isinstance(record, dict) else [*map(orjson.loads, record.splitlines())][::-1]
        return self._held.pop()

    def write(self, path: str, option: str = "") -> None:
        """Write all of them to a file as JSONL, whole or not at all; - is stdout. option: what messages call it, if not
        -o. Raises `UsageError` for a name with the ending of another format."""
        from hoicli.io.outputs import open_output
        from hoicli.records.parsing import dump, ending
        from hoicli.tables.notations import check_lines, note_json_lines

        check_lines(path, option or arg("output"))
        note_json_lines(path)
        with open_output(path) as write, ending(write, self._piped) if self._piped else nullcontext():
            for record in self.lines:
                write(record if isinstance(record, bytes) else dump(record))


class Notes(list[str]):
    """What a command that writes files itself would say on stderr, one line each."""


def instead(result: object) -> Usual:  # type: ignore[type-var]
    """Return what a command returns where an option asks for something else than its usual result, which its type
    names."""
    return cast("Usual", result)


def _render_kept(rows: list[Row], rendered: dict[str, bytes], notation: str) -> bytes:
    """Return the rows in a notation, from `rendered` if it is there. rendered: the rows by notation."""
    from hoicli.tables.notations import render

    return rendered[notation] if notation in rendered else render(rows, notation)


def look_of(plot: str | None, width: float | None, font_size: float | None, style: str, **others: bool) -> Look:
    """Return the look of a figure. plot: its file; others: further options of figures, each with whether it was given.
    Raises `UsageError` for an impossible value, and for options without a figure."""
    from hoicli.figures.styles import NARROWEST, SHEETS

    is_given = {"width": width is not None, "font_size": font_size is not None, "style": style != "paper", **others}
    if plot is None and any(is_given.values()):
        given_names = ", ".join(arg(name) for name, was_given in is_given.items() if was_given)
        raise UsageError(f"{given_names}: name the figure with {arg('plot', like='FILE')}")
    for name, value, minimum, maximum in (("width", width, 1, 50), ("font_size", font_size, 3, 72)):
        if value is not None and not minimum <= value <= maximum:
            raise UsageError(f"{arg(name, float(value))}: give a number from {minimum} to {maximum}")
    if style not in SHEETS:
        raise UsageError(f"{arg('style', style)}: choose {' or '.join(SHEETS)}")
    look = SHEETS[style]
    look = replace(look, width=width, font=font_size or look.font)
    if look.width is not None and look.room(0.0) < NARROWEST:
        least_width = ceil(10 * NARROWEST * look.scale) / 10
        problem = f"print of {look.font:g} points needs at least {least_width:g} inches"
        raise UsageError(f"{arg('width', look.width)}: {problem}")
    return look


def _told_apart(rows: list[Row]) -> Iterator[tuple[str, Row]]:
    """Yield each of the rows of one key with the text that is added to the key: as many of their keys and tags as tell
    all rows apart, those with fractional numbers last."""
    flat_rows = [{**{key: row[key] for key in row if key not in _MEASURED}, **row.get("tags", {})} for row in rows]
    tails = [""] * len(rows)
    keys = dict.fromkeys(chain.from_iterable(flat_rows))
    for key in sorted(keys, key=lambda key: any(isinstance(row.get(key), float) for row in flat_rows)):
        values = [row.get(key) for row in flat_rows]
        if len(set(tails)) < len(rows) and len({*map(str, values)}) > 1:
            # a string times False is "": a row without the key gets nothing
            tails = [tail + f"/{key}:{value}" * (value is not None) for tail, value in zip(tails, values, strict=True)]
    return zip(tails, rows, strict=True)


def _key(row: Row) -> str:
    """Return the name of a row's value for a tracker, such as hico/mAP/full."""
    tags: dict[str, Any] = row.get("tags", {})
    parts = [tags.get("model"), row["protocol"], row["metric"], row["subset"]]
    parts += [row.get(key) for key in ("error", "reason", "step", "oracle")]
    parts += [f"iou:{tags['iou']}"] if "iou" in tags else []
    parts += [f"{tags['slice']}:{tags['part']}"] if "part" in tags else []
    parts += [tags["options"]] if tags.get("options") else []
    return "/".join(str(part) for part in parts if part is not None)
