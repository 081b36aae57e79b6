"""What every figure takes from result rows: whose they are, their names as short as figures need them, caveats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain

from hoicli.errors import visible
from hoicli.records.caveats import words_of
from hoicli.records.result_rows import Row

ALL_CLASSES = ("full", "25")
"""What the subset of all classes is called: V-COCO's is named after its 25 action-roles."""


def model_name(row: Row) -> str:
    """Return the model of a row: its `model`, else its tag `model`, else all its tags; "" if it has none of them."""
    tags = row.get("tags") or {}
    return str(row.get("model") or tags.get("model") or " ".join(str(value) for value in tags.values()))


def label(name: str) -> str:
    """Return a name as one short line, cut with an ellipsis."""
    text = visible(name)
    return text if len(text) <= 22 else text[:21] + "\N{HORIZONTAL ELLIPSIS}"


def labels(names: Sequence[str]) -> list[str]:
    """Return short labels of names, all different: if two are the same when cut, their beginnings and ends, then
    numbers."""
    short = [label(name) for name in names]
    if len(set(short)) < len(short):
        texts = [visible(name) for name in names]
        short = [text if len(text) <= 22 else f"{text[:10]}\N{HORIZONTAL ELLIPSIS}{text[-11:]}" for text in texts]
    return [name if short.count(name) == 1 else f"{number}: {name}" for number, name in enumerate(short, start=1)]


def first_of(count_shown: int, number: int, what: str) -> str:
    """Return the remark that a figure shows only the first things, "" if it shows all. what: the things, in the
    plural."""
    return f"The first {count_shown} of {number} {what}." if count_shown < number else ""


def value_of(row: Row) -> float | None:
    """Return the value of a row, None if it cannot be drawn."""
    value = row.get("value")
    return None if value is None or not math.isfinite(value) else float(value)


def caveats_of(rows: Iterable[Row]) -> list[str]:
    """Return what readers of a figure of these rows must know, in the words that tables use."""
    return list(dict.fromkeys(chain.from_iterable(words_of(row) for row in rows)))
