"""What every figure takes from result rows: whose they are, their names as short as figures need them, caveats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain

from hoicli.errors import visible
from hoicli.records.caveats import words_of
from hoicli.records.results import Row

ALL_CLASSES = ("full", "25")
"""What the subset of all classes is called: V-COCO's is named after its 25 action-roles."""


def model_name(row: Row) -> str:
    """Return whose row it is: its `model`, its tag `model`, else all its tags; empty when nothing tells."""
    tags = row.get("tags") or {}
    return str(row.get("model") or tags.get("model") or " ".join(str(value) for value in tags.values()))


def label(name: str) -> str:
    """A name as a figure has room for it: one short line."""
    text = visible(name)
    return text if len(text) <= 22 else text[:21] + "\N{HORIZONTAL ELLIPSIS}"


def labels(names: Sequence[str]) -> list[str]:
    """The labels of names that must stay apart: where two are one when cut, their beginnings and ends, then numbers."""
    short = [label(name) for name in names]
    if len(set(short)) < len(short):
        texts = [visible(name) for name in names]
        short = [text if len(text) <= 22 else f"{text[:10]}\N{HORIZONTAL ELLIPSIS}{text[-11:]}" for text in texts]
    return [name if short.count(name) == 1 else f"{at}: {name}" for at, name in enumerate(short, start=1)]


def first_of(count_shown: int, number: int, what: str) -> str:
    """The remark that a figure leaves some out; "" where it has them all."""
    return f"The first {count_shown} of {number} {what}." if count_shown < number else ""


def value_of(row: Row) -> float | None:
    """The value of a row, None for one that cannot be drawn."""
    value = row.get("value")
    return None if value is None or not math.isfinite(value) else float(value)


def caveats_of(rows: Iterable[Row]) -> list[str]:
    """Return what readers of a figure of these rows must know, as tables say it below."""
    return list(dict.fromkeys(chain.from_iterable(words_of(row) for row in rows)))
