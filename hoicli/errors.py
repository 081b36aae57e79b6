"""The exceptions of hoicli: what went wrong, where, and what to do, in one line.

Library code raises them; only `hoicli.cli` knows exit codes (1 for `DataError`, 2 for `UsageError`).
"""

from __future__ import annotations


class HoicliError(Exception):
    """Base of everything hoicli raises on purpose; `str()` is the one line a user sees."""


class DataError(HoicliError):
    """The data is wrong: `place` (file:line), `field` and `problem`, the problem ending in what to do about it."""

    def __init__(self, problem: str, *, place: str = "", field: str = "") -> None:
        self.problem = problem
        self.place = place
        self.field = field
        super().__init__(": ".join(part for part in (place, field, problem) if part))


class UsageError(HoicliError):
    """The call is wrong: an option that does not exist, does not fit another, or has an impossible value."""
