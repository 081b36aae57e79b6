"""Rows of CSV files, as people and spreadsheet programs save them."""

from __future__ import annotations

import csv
import re

from hoicli.errors import DataError
from hoicli.io.streams import Line

_SEPARATOR = re.compile(rb'"?sep=(.)"?[,;\t]*\s*', re.IGNORECASE)  # "sep=;"


def announced_delimiter(first_line: Line) -> str | None:
    """Return the delimiter that a line `sep=;` names, as Excel writes it before the header, or None."""
    match = _SEPARATOR.fullmatch(first_line.data)
    return None if match is None else match[1].decode("latin-1")


def usual_delimiter(line: Line) -> str:
    """Return what separates the cells of a row: a tab, else the more frequent of comma and semicolon."""
    return "\t" if b"\t" in line.data else max(",", ";", key=lambda mark: line.data.count(mark.encode()))


def cells_of(line: Line, delimiter: str) -> list[str]:
    """Return the cells of a row, stripped. Raises `DataError` for a line that is no row, or not in UTF-8."""
    try:
        (cells,) = csv.reader([line.data.decode("utf-8-sig")], delimiter=delimiter, strict=True)
    except UnicodeDecodeError:
        problem = "not in UTF-8; save the file again as UTF-8 (in Excel: CSV UTF-8)"
        raise DataError(problem, place=line.place) from None
    except (csv.Error, ValueError):
        raise DataError("no row of a CSV; fix the line", place=line.place) from None
    return [cell.strip() for cell in cells]
