"""The kinds of result rows: which keys the rows of a kind have, and how a table lays them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

COMMON = ("metric", "subset", "value", "n", "unit", "protocol", "tags", "signature")
"""The keys of every result row."""
ANYWHERE = ("note",)
"""The keys that a row of any kind may have besides."""

PARTS = ("corruption", "family", "severity")
"""The keys that name a part of a corrupted benchmark."""
_CLASS = ("verb", "object", "role")
_INTERVAL = ("ci_low", "ci_high")
_MEAN = ("protocol", "step", "oracle", "error", "nms", "det_threshold", "constraint", "setting")
"""The keys that tell means over classes or images apart, besides their subset."""


@dataclass(frozen=True)
class Kind:
    """A kind of result rows, by what they are about: a mean, a class, a difference, a point of a curve, ...

    name, says: what documents and messages call the kind, and what its rows are about. told_by: keys by which its rows
    are recognised: each has at least one of them, and rows of other kinds have none. needs: further keys that each of
    its rows has besides COMMON. may: further keys that its rows may have. index: the keys that tell the lines of its
    table apart, as far as its rows have them. columns: the keys whose values head a column of its table below the
    metric, of which the first that a row has is used; () for a table with one line for each row. mean: whether its rows
    are about all classes and images, not about a part or a difference."""

    name: str
    says: str
    told_by: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("protocol",)
    mean: bool = False

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row is of this kind: it has a key of `told_by`, if there are any, and none that only other
        kinds have."""
        keys_of_others = TELLING.difference(self.told_by, self.needs, self.may)
        is_told = not self.told_by or any(key in row for key in self.told_by)
        return is_told and not any(key in row for key in keys_of_others)


DIFFERENCE = Kind(
    "difference", "between two models, in a mean, a class or a type of error",
    told_by=("p_bootstrap",), needs=("from", "to", *_INTERVAL, "p"), may=(*_CLASS, "q"),
    index=("protocol", "metric", *_CLASS, "error", "oracle", "subset"), columns=(),
)  # fmt: skip
COUNT_OF_CLASSES = Kind(
    "count of classes", "how many classes differ between two models", index=("protocol", "metric"), columns=("subset",)
)
CANDIDATE = Kind(
    "candidate", "a place of the ground truth that may be wrong",
    needs=("kind", "rank", "image_id", "boxes", "where"), may=(*_CLASS, "label", "hoi", "hois", "verbs", "models"),
    index=("metric", "kind", "rank", "image_id", *_CLASS, "label", "boxes", "n"),
)  # fmt: skip
COUNT_OF_CANDIDATES = Kind("count of candidates", "how many candidates there are", needs=("kind",),
                           index=CANDIDATE.index)  # fmt: skip
IMAGE = Kind("image", "one image", told_by=("image_id",), index=("image_id",), columns=("subset",))
CONFUSION = Kind("confusion", "one name predicted for another", told_by=("predicted",), needs=("kind", "truth"),
                 index=("kind", "truth", "predicted"))  # fmt: skip
POINT = Kind("point", "a point of a curve, by its score threshold", told_by=("threshold",), needs=("rank",), may=_CLASS,
             index=("subset", *_CLASS, "threshold", "rank"))  # fmt: skip
LEVEL = Kind("level", "a point of a curve, by its recall", told_by=("recall",), may=_CLASS,
             index=("subset", *_CLASS, "recall"))  # fmt: skip
BIN = Kind("bin", "the predictions whose scores lie in a bin", told_by=("bin_low",), needs=("bin_high",), may=_CLASS,
           index=("subset", *_CLASS, "bin_low", "bin_high"))  # fmt: skip
CLASS = Kind(
    "class", "one class", told_by=("verb", "object"), may=(*_CLASS, *_INTERVAL), index=(*_CLASS, "n"),
    columns=("oracle", "error", "constraint", "protocol"),
)  # fmt: skip
GRID = Kind("grid", "a whole corrupted benchmark", may=PARTS, index=_MEAN, columns=("subset",), mean=True)
GRID_PART = Kind("part of a grid", "a part of a corrupted benchmark", told_by=PARTS, index=_MEAN,
                 columns=("subset",), mean=True)  # fmt: skip
BOXES = Kind("boxes", "a detector's boxes", index=("protocol", "metric"), columns=("subset",), mean=True)
RATERS = Kind(
    "raters", "how raters agree", may=("raters", "level", "item_group", "rating", "majority", *_INTERVAL),
    index=_MEAN, columns=("subset",), mean=True,
)  # fmt: skip
CHANGE = Kind("change", "a mean after the ground truth was mended", told_by=("from",), needs=("to",), index=_MEAN,
              columns=("subset",), mean=True)  # fmt: skip
CLAIM = Kind("claim", "a printed number", told_by=("claimed",), needs=("digits_off", "fits"), index=_MEAN,
             columns=("subset",), mean=True)  # fmt: skip
MEAN = Kind("mean", "all classes or images of a subset", may=_INTERVAL, index=_MEAN, columns=("subset",), mean=True)

NO_VALUE = Kind("no value", "what is no value of a metric: a finding, a sense, a name")

UNDECLARED = (DIFFERENCE, IMAGE, CONFUSION, POINT, LEVEL, BIN, CLASS, MEAN)
"""What a row of a metric that is not hoicli's may be, the first that fits."""
TELLING = frozenset(chain.from_iterable(kind.told_by for kind in UNDECLARED))
"""The keys that rows of their kinds alone have."""
