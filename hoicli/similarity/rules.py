"""The values of `--backend` and `--merge`, apart from the code that computes, so that help and shell completion do not
load it."""

from __future__ import annotations

MEASURES = ("path", "wup", "lch", "lin", "res", "jcn")
BACKENDS = (*(f"wordnet:{name}" for name in MEASURES), "lexical", "llm", "table:FILE")

RULES = ("mean", "median", "majority")
"""Rules that combine several ratings; majority: the most frequent, of equally frequent ones that of the model listed
first."""
