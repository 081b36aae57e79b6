"""What figures read from result rows: the model, the value, caveats; and names cut to the length that figures need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain

from hoicli.errors import visible
from hoicli.records.caveats import words_of
from hoicli.records.result_rows import Row

ALL_CLASSES = ("full", "25")
"""The names of the subset of all classes: full, and in V-COCO 25, after its 25 action-roles."""


def model_name(row: Row) -> str:
    """Return the name of the model that a row is about: its `model`, else its tag `model`, else the values of all its
    tags; "" if it has none of these."""
    tags = row.get("tags") or {}
    return str(row.get("model") or tags.get("model") or " ".join(str(value) for value in tags.values()))


def short_label(name: str) -> str:
    """Return a name as one line of at most 22 characters. A longer one is cut and ends in an ellipsis."""
    text = visible(name)
    return text if len(text) <= 22 else text[:21] + "\N{HORIZONTAL ELLIPSIS}"


def short_labels(names: Sequence[str]) -> list[str]:
    """Return a short label for each name, all different. If two names are the same when cut, long ones keep beginning
    and end; labels that are still the same get numbers."""
    short = [short_label(name) for name in names]
    if len(set(short)) < len(short):
        texts = [visible(name) for name in names]
        short = [text if len(text) <= 22 else f"{text[:10]}\N{HORIZONTAL ELLIPSIS}{text[-11:]}" for text in texts]
    return [name if short.count(name) == 1 else f"{number}: {name}" for number, name in enumerate(short, start=1)]


def left_out_remark(count_shown: int, number: int, what: str) -> str:
    """Return the remark "The first 7 of 9 models." for a figure that leaves some out; "" if it shows all. number: how
    many there are; what: their name in the plural."""
    return f"The first {count_shown} of {number} {what}." if count_shown < number else ""


def value_of(row: Row) -> float | None:
    """Return the value of a row; None if it has none, or none that can be drawn (NaN, infinity)."""
    value = row.get("value")
    return None if value is None or not math.isfinite(value) else float(value)


def caveats_of(rows: Iterable[Row]) -> list[str]:
    """Return a list of the caveats of rows, each once: what readers of a figure must know, as under tables."""
    return list(dict.fromkeys(chain.from_iterable(words_of(row) for row in rows)))
