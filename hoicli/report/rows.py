"""Result rows of other commands, read from files and sorted by what a report's section can say of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hoicli.errors import DataError
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import CHANCES, Row, tag_column
from hoicli.tables.kinds import CLASSES, DIFFERENCE, MEAN_KEYS, ROBUSTNESS, kind_of
from hoicli.tables.reading import sound_row

ROBUST, SHOE, COMPARE, AGREE, OTHER = "robust", "shoe", "compare", "agree", "other"
SECTIONS = {
    ROBUST: "Robustness",
    SHOE: "Open vocabulary (SHOE)",
    COMPARE: "Comparison",
    AGREE: "Agreement",
    OTHER: "Other results",
}
"""The sections of rows in their order, with their headings."""

_VALUES = frozenset({"value", "sd", "n", "unit", "reason", "signature", "ci_low", "ci_high", "from", "to", *CHANCES})
"""Keys of a row that do not say what it is of; nor does any other whose value is a fraction, but for MEAN_KEYS."""


def read_rows(paths: Sequence[str], policy: ErrorPolicy) -> dict[str, list[Row]]:
    """Section -> its rows, in the order of the files.

    Raises `DataError`, or leaves it to `policy`, for a line that is no result row, and for a second value of what has
    one: rows of several models need tags to be told apart.
    """
    sections: dict[str, list[Row]] = {section: [] for section in SECTIONS}
    places: dict[tuple[Any, ...], tuple[str, Any]] = {}
    for line in Stream(paths, "rows"):
        try:
            row = sound_row(line)
            key = _key(row)
            if key in places:
                place, value = places[key]
                if value == row["value"]:
                    continue
                raise DataError(
                    f"another value of what {place} has; give the rows of each model a --tag model=NAME",
                    place=line.place,
                    field="value",
                )
            places[key] = line.place, row["value"]
        except DataError as error:
            policy.handle(error)
        else:
            sections[section_of(row)].append(row)
    return {section: rows for section, rows in sections.items() if rows}


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(sorted((key, str(value)) for key, value in _flat(row)))


def _flat(row: Row) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if key == "tags":
            yield from ((f"tags.{name}", text) for name, text in value.items())
        elif _tells(key, value):
            yield key, value


def _tells(key: str, value: Any) -> bool:
    return key not in _VALUES and (key in MEAN_KEYS or not isinstance(value, float))


def section_of(row: Row) -> str:
    """Which of SECTIONS a row goes to: by its protocol, else by its kind."""
    if row.get("protocol") in (SHOE, AGREE):
        return str(row["protocol"])
    return {DIFFERENCE: COMPARE, CLASSES: COMPARE, ROBUSTNESS: ROBUST}.get(kind_of(row), OTHER)


def identifying(row: Row) -> tuple[str, ...]:
    """The keys of a row that say what its value is of, besides metric, subset and tags."""
    return tuple(key for key, value in row.items() if key not in ("metric", "subset", "tags") and _tells(key, value))


def tag_keys(rows: Sequence[Row]) -> list[str]:
    """The tags of some rows, in the order of first appearance; `tags.KEY` for one that is called like a row's key."""
    keys = {key for row in rows for key in row}
    tags = dict.fromkeys(key for row in rows for key in row["tags"])
    return [f"tags.{key}" if key in keys else tag_column(key) for key in tags]
