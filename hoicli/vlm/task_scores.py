"""The values of metrics of answers to questions, their intervals over resampled images, and the rows of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hoicli.records.kit import Floats, Ints
from hoicli.records.result_rows import Row, interval_keys, percent, result_row, row_ends
from hoicli.resampling.draws import Resampling, Weights, blocks
from hoicli.resampling.intervals import FEWEST_IMAGES, interval

RELEASED = {
    "crosshoi-bench": "ChelsieLei/CrossHOI-Bench, commit 249db3c",
    "hoi-benchmarks": "SIT-AIGCDesignLab/hoi-benchmarks, commit 78ab063",
}
"""The values of `--as-released`: the first for choice, the other for grounding and referring."""

Key = tuple[str, str]
"""(metric, subset)."""
Settings = Mapping[str, str]
"""What a signature says."""


class Score(NamedTuple):
    """A value in [0, 1] (None: there is nothing to measure), the number of things it is over, and its 95 % interval."""

    value: float | None
    n: int
    ends: tuple[float, float] | None = None


class Shares(NamedTuple):
    """Columns of M rows from which values are computed: a value is the sum of one column over the sum of another. image
    [M]: the number of each row's image; columns: {(metric, subset): (dividend [M], divisor [M])}."""

    image: Ints
    columns: Mapping[Key, tuple[Floats | Ints, Floats | Ints]]


@dataclass(frozen=True)
class Measured:
    """The measured answers to questions. images: the number of images; n: {(metric, subset): how many things its value
    is over}, in the order of the rows; shares: what the values are computed from; settings: {setting: text} of
    signatures; of_metric: {metric: what its signature says besides}; empty: the value where nothing is measured."""

    images: int
    n: Mapping[Key, int]
    shares: Sequence[Shares]
    protocol: str = ""
    settings: Settings = field(default_factory=dict)
    of_metric: Mapping[str, Settings] = field(default_factory=dict)
    empty: float | None = None

    def rounds(self, weights: Weights) -> dict[Key, Floats]:
        """Return {(metric, subset): its value in [0, 1] in each of R rounds of resampling, NaN if there is nothing to
        measure}. weights [images, R]: how often an image counts in a round."""
        values: dict[Key, Floats] = {}
        for image, columns in self.shares:
            image_weights = weights[image].astype(np.float64)
            values |= {
                key: share(_sum_drawn(part, image_weights), _sum_drawn(whole, image_weights))
                for key, (part, whole) in columns.items()
            }
        return values

    def scores(self, resampling: Resampling | None = None) -> dict[Key, Score]:
        """Return {(metric, subset): its score} in the order of the rows; with intervals if there is a resampling and at
        least FEWEST_IMAGES images."""
        values = self.rounds(np.ones((self.images, 1), dtype=np.int32))  # one round, in which each image counts once
        resamples: list[dict[Key, Floats]] = []
        if resampling is not None and self.images >= FEWEST_IMAGES:
            resamples = [self.rounds(block.resamples(self.images)) for block in blocks(resampling)]
        scores = {}
        for key, n in self.n.items():
            value = float(values[key][0])
            ends = None
            if resamples and not np.isnan(value):
                resampled = np.concatenate([values_of_block[key] for values_of_block in resamples])
                ends = interval(value, resampled, self.images, lowest=0.0, highest=1.0)
            scores[key] = Score(None if np.isnan(value) else value, n, ends)
        return scores

    def rows(self, tags: Mapping[str, str], released: str | None, resampling: Resampling | None) -> Iterator[Row]:
        """Yield the result rows, values in percent. tags: {column: text} of every row, such as the model's name;
        released: whose script is followed (of RELEASED), None for the papers; resampling: for intervals, or None."""
        settings = {**self.settings, **({"released": released} if released else {})}
        settings |= {} if resampling is None else resampling.signature()
        for (metric, subset), score in self.scores(resampling).items():
            value = self.empty if score.value is None else score.value
            columns = {} if resampling is None else interval_keys(score.ends)
            columns |= {"setting": settings["setting"]} if "setting" in settings else {}
            columns |= row_ends(self.protocol, tags, {**settings, **self.of_metric.get(metric, {})})
            yield result_row(metric, subset=subset, value=percent(value), n=score.n, unit="%", **columns)


def share(part: Floats, whole: Floats | Ints) -> Floats:
    """Return `part / whole`, NaN where the whole is 0."""
    ratio: Floats = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return ratio


def _sum_drawn(column: Floats | Ints, weights: Floats) -> Floats:
    """Return the sum of a column [M] in each round [R], in which each row counts as often as weights [M, R] say. Floats
    are added by `sum`, in a fixed order, which a matrix product does not promise."""
    total: Floats = column @ weights if column.dtype.kind == "i" else (column[:, np.newaxis] * weights).sum(axis=0)
    return total
