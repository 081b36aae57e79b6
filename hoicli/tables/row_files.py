"""Result rows read from files; each row keeps the file and the line it is from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from hoicli.errors import DataError, arg
from hoicli.io.messages import display_name
from hoicli.io.streams import Line, Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Problem, is_number, parse
from hoicli.records.result_rows import CHANCES, Row
from hoicli.tables.cells import PlacedRow

_NUMBERS = frozenset({"ci_low", "ci_high", "from", "to", *CHANCES})
"""Keys of rows whose values must be numbers or null, besides `value` and `n`."""


def parse_result_row(line: Line) -> PlacedRow:
    """Return the result row in a line of JSON. Raises `DataError` for a line that is no result row, or in which a key
    has a value of the wrong type."""
    row = PlacedRow(parse(line))
    row.line = line
    tags = row.setdefault("tags", {})
    # tags are text, but a severity (of a corruption) may be written as a number
    if type(tags) is dict and type(tags.get("severity")) is int:
        row["tags"] = {**tags, "severity": str(tags["severity"])}
    for problem in result_problems(row):
        raise problem.error(line.place)
    row.setdefault("unit", "%")
    if not _NUMBERS.isdisjoint(row):  # most rows have no such key, and there are many rows
        for key in sorted(_NUMBERS & row.keys()):
            if not (row[key] is None or is_number(row[key])):
                raise DataError("no finite number; null where there is none", place=line.place, field=key)
    for key in ("unit", "signature", "protocol"):
        if type(row.get(key, "")) is not str:
            raise DataError("must be a string; every command of hoicli writes it so", place=line.place, field=key)
    if type(row.get("severity", 1)) is not int:
        raise DataError("must be a whole number", place=line.place, field="severity")
    return row


def read_rows(
    stream: Stream, policy: ErrorPolicy, *, metrics: Collection[str], before: Iterable[Line] = ()
) -> list[Row]:
    """Return the result rows of all files whose metric is among `metrics`; all rows if that is empty. before: lines to
    read before those of the files.

    If there are several files, a row without tags gets the name of its file as its model. Raises `DataError` for a line
    that is no result row, unless the policy is to drop such lines, and if no row is left."""
    model_names = model_by_file(stream.paths)
    rows: list[Row] = []
    for line in chain(before, stream):
        with policy.item():
            row = parse_result_row(line)
            if not row["tags"] and line.file in model_names:
                row["tags"] = {"model": model_names[line.file]}
            if not metrics or row["metric"] in metrics:
                rows.append(row)
    policy.report()
    if not rows:
        chosen = f" of {arg('metric')}" if metrics else ""
        raise DataError(f"no rows{chosen} in it", place=stream.name, code="empty")
    return rows


def model_by_file(paths: Sequence[str]) -> dict[str, str]:
    """Return the model name that a file gives to its rows without tags, by the file's name in messages. It is the
    file's name without its endings, or its path if two files share that name. A single file and stdin give none."""
    if len(paths) < 2:
        return {}
    stems = {path: Path(path).name.split(".")[0] or path for path in paths if path != "-"}
    counts = Counter(stems.values())
    return {display_name(path): path if counts[stem] > 1 else stem for path, stem in stems.items()}


def result_problems(record: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for everything in a parsed result row that a reader of results cannot use."""
    for key in ("metric", "subset"):
        if type(record.get(key)) is not str:
            yield Problem(
                key, "missing or no string; every row says what it measured, and over what, as hoicli eval writes it"
            )
    value = record.get("value")
    if "value" not in record or not (value is None or is_number(value)):
        yield Problem("value", "missing or no finite number (null where there is nothing to average)")
    tags = record.get("tags", {})
    if type(tags) is not dict or not all(type(tag) is str for tag in tags.values()):
        yield Problem("tags", f"must be an object of strings; eval {arg('tag')} writes it")
