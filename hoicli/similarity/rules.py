"""What `--backend` and `--merge` take, apart from the code that does it: help and shell completion read these names
without loading it."""

from __future__ import annotations

from hoicli.errors import UsageError

MEASURES = ("path", "wup", "lch", "lin", "res", "jcn")
BACKENDS = (*(f"wordnet:{name}" for name in MEASURES), "lexical", "llm", "table:FILE")

RULES = ("mean", "median", "majority")
"""How several ratings become one; majority: the most frequent, of equally frequent ones that of the model listed
first."""


def check_rule(rule: str) -> None:
    """Raises `UsageError` for anything but one of RULES."""
    if rule not in RULES:
        raise UsageError(f"--merge {rule}: choose from {', '.join(RULES)}")
