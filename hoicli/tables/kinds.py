"""The kinds of result rows: how to recognise them, and how a table lays out the rows of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hoicli.records.results import Row

PARTS = ("corruption", "family", "severity")
"""The keys that say which part of a corrupted benchmark a row is of."""

_MEAN = ("protocol", "step", "oracle", "error", "nms", "det_threshold", "constraint", "setting")
"""The keys that identify a mean over classes or images, besides its subset."""
_OF_WHAT = ("subset", "verb", "object", "role")
_ROBUSTNESS = frozenset({"rank", "clean", "mri", "cri", "relative_drop", "worst", "sigma", "cri_term"})


@dataclass(frozen=True)
class Kind:
    """A row of `KINDS`.

    index: the keys that name a line of its table, as far as its rows have them. columns: of these keys, the first that
    a row has heads its column below the metric; () for a line a row, with all that the row says side by side. mean:
    whether its rows are about all classes and images.
    """

    name: str
    tells: Callable[[Row], bool]
    index: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("protocol",)
    mean: bool = False


def _of_robust(row: Row) -> bool:
    metric = row.get("metric")
    return metric in _ROBUSTNESS or (metric == "mean" and any(key in row for key in PARTS))


def _has(key: str) -> Callable[[Row], bool]:
    return lambda row: key in row


def _measures(*metrics: str) -> Callable[[Row], bool]:
    return lambda row: row.get("metric") in metrics


KINDS = (
    # findings, senses, vocabularies: no values of a metric, a table of their own keys
    Kind("other", lambda row: "metric" not in row),
    # between two models: in a mean, a class or a type of error; and how many classes differ
    Kind("difference", _has("p_bootstrap"),
         ("protocol", "metric", "verb", "object", "role", "error", "oracle", "subset"), ()),
    Kind("classes", _measures("classes_better", "classes_worse"), ("protocol", "metric"), ("subset",)),
    # what an audit of the ground truth found, and how much of it
    Kind("candidate", _measures("candidate", "candidates"),
         ("metric", "kind", "rank", "image_id", "verb", "object", "role", "label", "boxes", "n")),
    Kind("image", _has("image_id"), ("image_id",), ("subset",)),
    Kind("confusion", _has("predicted"), ("kind", "truth", "predicted")),
    # curves: points by their threshold, means of curves by recall, calibration by bin of scores
    Kind("point", _has("threshold"), (*_OF_WHAT, "threshold", "rank")),
    Kind("level", _has("recall"), (*_OF_WHAT, "recall")),
    Kind("bin", _has("bin_low"), (*_OF_WHAT, "bin_low", "bin_high")),
    Kind("class", _has("verb"), ("verb", "object", "role", "n"), ("oracle", "error", "constraint", "protocol")),
    Kind("robustness", _of_robust, _MEAN, ("subset",), mean=True),
    Kind("mean", lambda _: True, _MEAN, ("subset",), mean=True),
)  # fmt: skip
"""The kind of a row is the first one that recognises it."""


def kind_of(row: Row) -> Kind:
    """The kind of a row of any command."""
    return next(kind for kind in KINDS if kind.tells(row))
