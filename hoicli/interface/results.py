"""What a command's function returns, in the shell and in Python: rows, or records one by one."""

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
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.parsing import Record
    from hoicli.records.result_rows import Row

Usual = TypeVar("Usual")

MOST_LINES = 30
"""How many lines of a table a prompt or a notebook shows by itself."""

_CLASS_OR_IMAGE_KEYS = ("verb", "object", "role", "image_id")
"""Keys that only rows about a class or an image have."""
_NOT_NAMING = ("value", "n", "unit", "signature", "note", "tags")
"""Keys of a row that cannot be part of its value's name (`_distinguishing_suffixes`): they hold the value or what
belongs to it."""


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
    """Computes the rows of single classes (`per_class`), if `rows` has none; None if the call must ask for them."""
    draw: Callable[[str, Look], None] | None = field(default=None, repr=False, compare=False)
    """Draws the figure into a file, in a size and style; None if there is no figure."""
    above: Sequence[str] = field(default=(), repr=False, compare=False)
    """Sentences that stand above a table."""
    blocks: Callable[[str], Iterable[Sequence[Row]]] | None = field(default=None, repr=False, compare=False)
    """Returns the rows of each table for a --format, if there are several tables or if tables have other rows than
    JSONL; None for one table of `rows`."""
    readable: Callable[[Sequence[Row]], Sequence[Row]] | None = field(default=None, repr=False, compare=False)
    """Takes `rows` and returns those that a table for people has instead; None if it has the same."""
    rendered: Callable[[str], bytes] | None = field(default=None, repr=False, compare=False)
    """Returns the text to print for a --format, if that is not simply tables of rows."""
    piped: str = field(default="", repr=False, compare=False)
    """The format of rows if --format is auto and stdout is no terminal; "" for the command's (`Command.piped`)."""
    hint: str = field(default="", repr=False, compare=False)
    """A note that a table is followed by."""
    others: bool = field(default=False, repr=False, compare=False)
    """Whether the rows were read from a file, and may have metrics that are not hoicli's."""
    failed: HoicliError | None = field(default=None, repr=False, compare=False)
    """The error that the command ends with although there are rows; it has no text if the rows already say it."""

    def __post_init__(self) -> None:
        """Raise `DeclarationError` for a row that is not as its metric is declared (`result_rows.check_row`)."""
        for row in () if self.others else self.rows:
            if "metric" in row:
                check_row(row)

    def signed_by(self, policies: Sequence[ErrorPolicy]) -> Result:
        """Report the lines that these policies dropped, and return the result with their number in the signatures of
        its rows. `rows` stays the same list, since tables and figures are made of it later."""

        def sign(rows: Sequence[Row]) -> list[Row]:
            """Return the rows as they are signed."""
            for policy in policies:
                rows = policy.sign_skipped(rows)
            return list(rows)

        if self.others:  # the rows of a file, which other calls have signed
            return self
        self.rows[:] = sign(self.rows)
        classes = self.classes
        return self if classes is None else replace(self, classes=lambda: sign(classes()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return (class, arguments) to pickle the result by. A pickle has the finished rows of classes and the tables
        as text, in place of the functions that compute them from the predictions, which cannot be pickled."""
        classes = None if self.classes is None else partial(list[Any], self.classes())
        rendered_by_notation = {notation: self.render_rows(notation) for notation in ("table", "html")}
        rendered = partial(_render_kept, self.rows, rendered_by_notation)
        return type(self), (self.rows, self.notes, classes, None, (), None, None, rendered, "", "", self.others)

    def to_dict(self, *, drop_none: bool = True) -> dict[str, float | None]:
        """Return the values by name for an experiment tracker: `{"hico/mAP/full": 31.2, ...}`. Values of single classes
        and images are left out.

        A name is PROTOCOL/METRIC/SUBSET, behind a model's name if the row has one. Whatever else tells values apart
        follows: an error type, an oracle, `iou:0.75`, `objects:small`, `constraint:graph`. drop_none: leave out values
        that are None (nothing to average), since trackers refuse None."""
        rows_by_name: dict[str, list[Row]] = {}
        for row in self.rows:
            if "value" in row and not any(key in row for key in _CLASS_OR_IMAGE_KEYS):
                rows_by_name.setdefault(_value_name(row), []).append(row)
        values: dict[str, float | None] = {}
        for name, rows in rows_by_name.items():
            for suffix, row in zip(_distinguishing_suffixes(rows), rows, strict=True):
                values[name + suffix] = row["value"]
        return {name: value for name, value in values.items() if not (drop_none and value is None)}

    @property
    def per_class(self) -> list[Row]:
        """Return the rows about single classes: AP and max_recall of an evaluation, counts and AP of a diagnosis.
        Raises `UsageError` if the call has to ask for them (`per_class=True`) and did not."""
        class_rows = [row for row in self.rows if "verb" in row]
        if class_rows:
            return class_rows
        if self.classes is None:
            raise UsageError("per_class: no rows of classes were made; call again with per_class=True")
        with kept_notes():
            return list(self.classes())

    def to_frame(self) -> pandas.DataFrame:
        """Return the rows as a pandas data frame, with a column for each key and each tag. Raises `UsageError` without
        pandas."""
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
        """Return what the command prints for a --format (table, jsonl, csv, md, latex, html)."""
        if self.rendered is not None:
            return self.rendered(notation)
        from hoicli.tables.notations import paragraphs_above, render

        rows: Sequence[Row] = self.rows
        if self.readable is not None and notation not in ("jsonl", "csv"):
            rows = self.readable(rows)
        blocks = [rows] if self.blocks is None else self.blocks(notation)
        return b"\n".join([*paragraphs_above(self.above, notation), *(render(block, notation) for block in blocks)])

    def __str__(self) -> str:
        """Return the command's table."""
        return self.render_rows("table").decode().rstrip("\n")

    def __repr__(self) -> str:
        """Return the first MOST_LINES lines of the table; a prompt shows them."""
        lines = str(self).splitlines()
        if len(lines) > MOST_LINES:
            lines[MOST_LINES:] = [f"... {len(lines) - MOST_LINES:,} more lines; print() shows them"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the first MOST_LINES lines of the table of --format html, a row each."""
        from html import escape

        lines = self.render_rows("html").decode().splitlines()
        if not lines or lines[0][:1] != "<":  # no table but plain text
            return f"<pre>{escape(repr(self))}</pre>"
        if len(lines) > MOST_LINES:
            rest = f"... {len(lines) - MOST_LINES:,} more lines; print() shows them"
            lines[MOST_LINES:] = [f"</tbody></table><p>{rest}</p>"]
        return "\n".join(lines)


class Records(Iterator["Record"]):
    """An iterator of records (dicts), each computed when it is asked for. `notes` has what the command would print on
    stderr, complete after the last record. Raises `DataError` at a bad record, as the command does."""

    def __init__(self, lines: Iterable[Record | bytes], *, piped: str = "", failed: HoicliError | None = None) -> None:
        """Wrap records. lines: records, or bytes with one or several lines of JSON. piped: the command's name, if the
        output ends with a line that says whether the command finished; "" for no such line. failed: the error that the
        command ends with although there are records."""
        self.notes: list[str] = []
        self.failed = failed
        self.piped = piped
        self.lines = iter(lines)
        self._held: list[Record] = []

    def __next__(self) -> Record:
        """Return the next record. Bytes with several lines give a record each."""
        import orjson

        while not self._held:
            item = next(self.lines)
            records = [item] if isinstance(item, dict) else list(map(orjson.loads, item.splitlines()))
            self._held = records[::-1]  # `pop` takes the last one first
        return self._held.pop()

    def write(self, path: str, option: str = "") -> None:
        """Write all records to a file as JSONL, completely or not at all; - is stdout. option: the option that named
        the file, for messages, if not -o. Raises `UsageError` for a name with the ending of another format."""
        from hoicli.io.outputs import open_output
        from hoicli.records.parsing import dump, mark_incomplete
        from hoicli.tables.notations import check_lines, note_json_lines

        check_lines(path, option or arg("output"))
        note_json_lines(path)
        with open_output(path) as write, mark_incomplete(write, self.piped) if self.piped else nullcontext():
            for record in self.lines:
                write(record if isinstance(record, bytes) else dump(record))


class Notes(list[str]):
    """The result of a command that writes files itself: what it would print on stderr, a line each."""


def instead(result: object) -> Usual:  # type: ignore[type-var]
    """Return `result` unchanged, but to type checkers as any type: for a command whose declared result is the usual
    one, where an option asks for something else."""
    return cast("Usual", result)


def _render_kept(rows: list[Row], rendered: dict[str, bytes], notation: str) -> bytes:
    """Return the text of rows in a --format, for a result that was pickled. rendered: the texts that the pickle has,
    by format; any other is made from the rows."""
    from hoicli.tables.notations import render

    return rendered[notation] if notation in rendered else render(rows, notation)


def look_of(plot: str | None, width: float | None, font_size: float | None, style: str, **others: bool) -> Look:
    """Return the size and style of a figure. plot: its file, None for no figure; width: in inches; font_size: in
    points; style: paper or slide; others: whether further options of figures were given, by name. Raises `UsageError`
    for an impossible value, and for options without a figure."""
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
    # the width that is left for the figure when it is enlarged (a slide's) must do for the narrowest one
    if look.width is not None and look.room(0.0) < NARROWEST:
        least_width = ceil(10 * NARROWEST * look.scale) / 10
        problem = f"print of {look.font:g} points needs at least {least_width:g} inches"
        raise UsageError(f"{arg('width', look.width)}: {problem}")
    return look


def _distinguishing_suffixes(rows: list[Row]) -> list[str]:
    """Return for each of several rows with the same name (`_value_name`) a suffix, such as "/min_score:0.5", so that
    the names differ; [""] for a single row. Keys and tags with different values are added, one after the other, until
    all names differ; those with fractional numbers last."""
    row_fields = [{**{key: row[key] for key in row if key not in _NOT_NAMING}, **row.get("tags", {})} for row in rows]
    suffixes = [""] * len(rows)
    keys = dict.fromkeys(chain.from_iterable(row_fields))
    for key in sorted(keys, key=lambda key: any(isinstance(fields.get(key), float) for fields in row_fields)):
        values = [fields.get(key) for fields in row_fields]
        if len(set(suffixes)) == len(rows):
            break
        if len({*map(str, values)}) > 1:
            for number, value in enumerate(values):
                suffixes[number] += "" if value is None else f"/{key}:{value}"
    return suffixes


def _value_name(row: Row) -> str:
    """Return the name of a row's value for an experiment tracker, such as hico/mAP/full."""
    tags: dict[str, Any] = row.get("tags", {})
    parts = [tags.get("model"), row["protocol"], row["metric"], row["subset"]]
    parts += [row.get(key) for key in ("error", "reason", "step", "oracle")]
    parts += [f"iou:{tags['iou']}"] if "iou" in tags else []
    parts += [f"{tags['slice']}:{tags['part']}"] if "part" in tags else []
    parts += [tags["options"]] if tags.get("options") else []
    return "/".join(str(part) for part in parts if part is not None)
