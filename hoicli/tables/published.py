"""Tables that papers published, as result rows, to print above one's own values.

Every figure in published.json is copied from the place that its line names in `source`: the README of a repository, at
the commit in `sources`, or one of the papers. `columns` says what the figures of a line are, with the settings that
their signatures have; null is a figure that is not printed. A row says whether it compares with one's own
(`comparable`), by which protocol, and in `note` what a reader must know. What is printed there without its evaluator
being named, or was made on other data, does not compare. Of datasets but HICO-DET no digest is known that one's own
ground truth could be compared by. `cite` is the key of the BibTeX entry in the method's own README.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

from hoicli.io.streams import Line
from hoicli.records.parsing import dump
from hoicli.records.result_rows import Row, settings_of, signature

_BOOK: Mapping[str, Any] = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
"""The content of published.json: `tables`, `columns` and `sources`."""

SETS: Mapping[str, str] = {name: table["title"] for name, table in _BOOK["tables"].items()}
"""The published tables by name, and what each holds."""


def published_rows(name: str) -> Iterator[Row]:
    """Yield the rows of a published table, line by line as it is printed. name: one of SETS. A line of published.json
    (_BOOK) has its values by group of columns, in the order of the group's columns, null for what was not printed."""
    for line in _BOOK["tables"][name]["lines"]:
        for group, values in line["values"].items():
            columns = _BOOK["columns"][group]
            cells = zip(columns["columns"], values, strict=True)
            printed = [(column, value) for column, value in cells if value is not None]
            yield from (_row(line, columns, column, value) for column, value in printed)


def _row(line: Mapping[str, Any], columns: Mapping[str, Any], column: Mapping[str, Any], value: float) -> Row:
    """Return the result row of a printed value. line, columns, column: the objects of published.json that describe the
    method's line, the value's group of columns, and its column."""
    source = _BOOK["sources"][line["source"]]  # where it was published
    facts = {**source, **columns, **line}  # what a line says overrides its group of columns, and that its source
    settings = {**columns["settings"], **column.get("settings", {}), "published": line["source"]}
    row = {key: entry for key, entry in column.items() if key not in ("n", "unit", "settings")}
    row |= {"value": float(value), "n": column["n"], "unit": column.get("unit", "%")}
    row |= {"protocol": settings.get("protocol", "published"), "tags": {"model": line["model"]}}
    row |= {"comparable": facts.get("comparable", True), "signature": signature(settings)}
    row |= {key: facts[key] for key in ("cite",) if key in facts} | {"source": source["where"]}
    return {**row, "note": facts["note"]} if "note" in facts else row


def published_lines(name: str) -> list[Line]:
    """Return the rows of a published table as lines of a stream, which `table` reads before those of files."""
    return [Line(f"--published {name}", number, dump(row)) for number, row in enumerate(published_rows(name), start=1)]


def published_lines_with(claimed: Iterable[Mapping[str, Decimal]], dataset: str) -> list[str]:
    """Return the published lines that have claimed numbers, each as a text: model, protocol, split and source. claimed:
    the possible readings of the numbers, each the mAP (in percent) of some subsets; dataset: its name in signatures."""
    lines: dict[tuple[str, str, str], dict[str, Decimal]] = {}
    for row in chain.from_iterable(published_rows(name) for name in SETS):
        if row["metric"] == "mAP" and settings_of(row)["data"] == dataset:
            line_key = f"{row['tags']['model']}, {row['protocol']}", settings_of(row).get("split", ""), row["source"]
            lines.setdefault(line_key, {})[row["subset"]] = Decimal(repr(row["value"]))
    claimed = list(claimed)
    return [
        f"{' '.join(filter(None, (model, split)))} ({source})"
        for (model, split, source), line in lines.items()
        if any(numbers.items() <= line.items() for numbers in claimed)  # the line has all of these numbers
    ]
