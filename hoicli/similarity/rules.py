"""The values of `--backend` and `--merge`, apart from the code that computes, so that help and shell completion do not
load it."""

from __future__ import annotations

from hoicli.errors import UsageError

MEASURES = ("path", "wup", "lch", "lin", "res", "jcn")
BACKENDS = (*(f"wordnet:{name}" for name in MEASURES), "lexical", "llm", "table:FILE")

RULES = ("mean", "median", "majority")
"""Rules that combine several ratings; majority: the most frequent, of equally frequent ones that of the model listed
first."""


def check_rule(rule: str) -> None:
    """Raises `UsageError` for anything but one of RULES."""
    if rule not in RULES:
        raise UsageError(f"--merge {rule}: choose from {', '.join(RULES)}")
