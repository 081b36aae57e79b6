"""The values of `--backend` and `--merge`, apart from the code that computes, so that help and shell completion do not
load it."""

from __future__ import annotations

MEASURES = ("path", "wup", "lch", "lin", "res", "jcn")
OFFLINE = (*(f"wordnet:{name}" for name in MEASURES), "lexical")
"""Backends that need neither a network nor a file."""
BACKENDS = (*OFFLINE, "llm", "table:FILE")

RULES = ("mean", "median", "majority")
"""Rules that combine several ratings; majority: the most frequent, of equally frequent ones that of the model listed
first."""
