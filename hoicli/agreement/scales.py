"""Raters that rate on a scale of their own, such as a metric from 0 to 1: brought to the levels of the others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.records.kit import Floats


@dataclass(frozen=True)
class Scale:
    """From `low` to `high` rate the raters whose names match `pattern`; an empty one stands for all models."""

    pattern: str
    low: float
    high: float

    def __str__(self) -> str:
        ends = f"{self.low:g},{self.high:g}"
        return f"{self.pattern}={ends}" if self.pattern else ends

    def levels(self, values: Floats, levels: int) -> Floats:
        """values as ratings from 0 to levels - 1: the ends become the ends, and what is between them stays in
        proportion."""
        if (self.low, self.high) == (0.0, levels - 1.0):
            return values
        on_levels: Floats = (values - self.low) / (self.high - self.low) * (levels - 1)
        return on_levels


def scales_of(texts: Sequence[str]) -> list[Scale]:
    """The values of --model-scale, each `LOW,HIGH` or `NAME=LOW,HIGH`. Raises `UsageError` for what is neither."""
    scales: list[Scale] = []
    for text in texts:
        pattern, sign, ends = text.rpartition("=")
        try:
            low, high = map(float, ends.split(","))
        except ValueError:
            low = high = math.nan
        if not (math.isfinite(low) and math.isfinite(high) and low < high) or (sign and not pattern.strip()):
            raise UsageError(
                f"{arg('model_scale', text)}: give the lowest and the highest value there can be, as 0,1, for all "
                "models, or "
                "NAME=0,1 for one"
            )
        scale = Scale(pattern.strip(), low, high)
        if scale.pattern in (other.pattern for other in scales):
            raise UsageError(f"{arg('model_scale', text)}: that is the second scale of {scale.pattern or 'all models'}")
        scales.append(scale)
    return scales


def scale_by_rater(scales: Sequence[Scale], raters: Sequence[str], models: Sequence[str]) -> dict[str, Scale]:
    """Which raters have a scale of their own, by name or else as models. Raises `UsageError` for a scale of nobody and
    a rater with two."""
    found: dict[str, Scale] = {}
    for scale in scales:
        named = [rater for rater in raters if scale.pattern and fnmatchcase(rater, scale.pattern)]
        if scale.pattern and not named:
            raise UsageError(f"{arg('model_scale', scale)}: no such rater; there are {', '.join(raters)}")
        if not scale.pattern and not models:
            raise UsageError(
                f"{arg('model_scale', scale)}: nobody is a model; {arg('models')} says who is, or write NAME={scale}"
            )
        twice = next((rater for rater in named if rater in found), None)
        if twice is not None:
            raise UsageError(
                f"{arg('model_scale', scale)}: {twice} has {found[twice]} already; give each rater one scale"
            )
        found |= dict.fromkeys(named, scale)
    whole = next((scale for scale in scales if not scale.pattern), None)
    return found if whole is None else dict.fromkeys(models, whole) | found


def other_scales(
    values: Floats, raters: Sequence[str], models: Sequence[str], scaled: Sequence[str], levels: int
) -> Iterator[tuple[str, str]]:
    """(rater, why) for those of values [items, raters] without a scale whose ratings look like one from 0 to 1.

    That is who never rates above 1, and rates between 0 and 1, or is a model while people rate the same items above 1
    (a metric that says 0 or 1). Nobody is told so by two levels, which are 0 and 1.
    """
    if levels < 3:
        return
    people = [at for at, rater in enumerate(raters) if rater not in models]
    for at, rater in enumerate(raters):
        given = ~np.isnan(values[:, at])
        column = values[given, at]
        if rater in scaled or not len(column) or column.max() > 1:
            continue
        if ((column > 0) & (column < 1)).any():
            yield rater, "some between them"
        elif rater in models and people:
            beside = values[given][:, people]
            number = (~np.isnan(beside)).sum(axis=1)
            if (np.nansum(beside, axis=1) > number).any():
                yield rater, "where people go higher"
