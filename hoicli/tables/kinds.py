"""The kinds of result rows: how to recognise them, and how a table lays out the rows of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hoicli.records.results import Row


@dataclass(frozen=True)
class Kind:
    """A row of `KINDS`.

    index: the keys that name a line of its table, as far as its rows have them. columns: of these keys, the first that
    a row has heads its column below the metric; () for a line a row, with all that the row says side by side.
    """

    name: str
    tells: Callable[[Row], bool]
    index: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


PARTS = ("corruption", "family", "severity")
"""The keys that say which part of a corrupted benchmark a row is of."""

MEAN_KEYS = ("protocol", "step", "oracle", "error", "nms", "det_threshold", "constraint", "setting")
"""The keys that identify a mean over classes or images, besides its subset."""

_ROBUSTNESS_METRICS = frozenset({"rank", "clean", "mri", "cri", "relative_drop", "worst", "sigma", "cri_term"})


def _is_robustness(row: Row) -> bool:
    metric = row.get("metric")
    return metric in _ROBUSTNESS_METRICS or (metric == "mean" and any(key in row for key in PARTS))


OTHER = Kind("other", lambda row: "metric" not in row)
"""Findings, senses, vocabularies: no values of a metric, a table of their own keys."""

DIFFERENCE = Kind(
    "difference",
    lambda row: "p_bootstrap" in row,
    ("protocol", "metric", "verb", "object", "role", "error", "oracle", "subset"),
)
"""Differences between two models in a mean, a class or a type of error."""

CLASSES = Kind(
    "classes",
    lambda row: row.get("metric") in ("classes_better", "classes_worse"),
    ("protocol", "metric"),
    ("subset",),
)
"""How many classes differ between two models."""

IMAGE = Kind("image", lambda row: "image_id" in row, ("image_id",), ("subset",))

_OF_WHAT = ("subset", "verb", "object", "role")

CONFUSION = Kind("confusion", lambda row: "predicted" in row, ("kind", "truth", "predicted"), ("protocol",))

CANDIDATE = Kind(
    "candidate",
    lambda row: row.get("metric") in ("candidate", "candidates"),
    ("metric", "kind", "rank", "image_id", "verb", "object", "role", "label", "boxes", "n"),
    ("protocol",),
)
"""What an audit of the ground truth found, and how much of it."""

POINT = Kind("point", lambda row: "threshold" in row, (*_OF_WHAT, "threshold", "rank"), ("protocol",))

LEVEL = Kind("level", lambda row: "recall" in row, (*_OF_WHAT, "recall"), ("protocol",))

BIN = Kind("bin", lambda row: "bin_low" in row, (*_OF_WHAT, "bin_low", "bin_high"), ("protocol",))
"""Curves: points by their threshold, means of curves by recall, calibration by bin of scores."""

CLASS = Kind(
    "class", lambda row: "verb" in row, ("verb", "object", "role", "n"), ("oracle", "error", "constraint", "protocol")
)

ROBUSTNESS = Kind("robustness", _is_robustness, MEAN_KEYS, ("subset",))

MEAN = Kind("mean", lambda _: True, MEAN_KEYS, ("subset",))

KINDS = (OTHER, DIFFERENCE, CLASSES, CANDIDATE, IMAGE, CONFUSION, POINT, LEVEL, BIN, CLASS, ROBUSTNESS, MEAN)
"""The kind of a row is the first one that recognises it."""


def kind_of(row: Row) -> Kind:
    """The kind of a row of any command."""
    return next(kind for kind in KINDS if kind.tells(row))
