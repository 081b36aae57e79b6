"""Checks of hoicli's own tables, made at import: a wrong row stops there, and not in the command that uses it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hoicli.errors import DeclarationError

Row = TypeVar("Row")


def rows_by_name(table: str, named_rows: Iterable[tuple[str, Row]]) -> dict[str, Row]:
    """Return the rows of a table by their names. Raises `DeclarationError` for a name that occurs twice."""
    rows: dict[str, Row] = {}
    for name, row in named_rows:
        if name in rows:
            raise DeclarationError(f"{name} is added to {table} twice; give one of the two another name")
        rows[name] = row
    return rows


def check_row(row: str, *checks: tuple[str, object, str]) -> None:
    """Raise `DeclarationError`, which stops the import, for the first field of a row that is wrong. row: what messages
    call the row; checks: (the field, whether it is right, what it must be)."""
    for field, is_right, requirement in checks:
        if not is_right:
            raise DeclarationError(f"{row}: {field}: {requirement}")
