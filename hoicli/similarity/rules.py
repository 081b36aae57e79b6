"""What `--backend` and `--merge` take, apart from the code that does it: help and shell completion read these names
without loading it."""

from __future__ import annotations

MEASURES = ("path", "wup", "lch", "lin", "res", "jcn")
BACKENDS = (*(f"wordnet:{name}" for name in MEASURES), "lexical", "llm", "table:FILE")

RULES = ("mean", "median", "majority")
"""How several ratings become one; majority: the most frequent, of equally frequent ones that of the model listed
first."""
