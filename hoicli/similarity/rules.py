"""How several ratings become one."""

from __future__ import annotations

from hoicli.errors import UsageError

RULES = ("mean", "median", "majority")
"""How several ratings become one; majority: the most frequent, of equally frequent ones that of the model listed
first."""


def check_rule(rule: str) -> None:
    """Raises `UsageError` for anything but one of RULES."""
    if rule not in RULES:
        raise UsageError(f"--merge {rule}: choose from {', '.join(RULES)}")
