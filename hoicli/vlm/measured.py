"""Values of answers to questions, and their intervals over resampled images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hoicli.records.kit import Floats, Ints
from hoicli.resampling.draws import Resampling, Weights, blocks
from hoicli.resampling.intervals import FEWEST_IMAGES, interval

Key = tuple[str, str]
"""(metric, subset)."""


@dataclass(frozen=True)
class Score:
    """A value in [0, 1], None where there is nothing to measure, and how many it is over."""

    value: float | None
    n: int


class Measured(ABC):
    """What the answers to questions about `images` images are worth."""

    images: int

    @abstractmethod
    def counts(self) -> Mapping[Key, int]:
        """How many each value is over, in the order of the rows."""

    @abstractmethod
    def rounds(self, weights: Weights) -> Mapping[Key, Floats]:
        """[R] each value in [0, 1], NaN where there is nothing to measure; weights [images, R]: how often an image
        counts in a round."""

    def scores(self) -> dict[Key, Score]:
        """Each value, in the order of the rows."""
        values = self.rounds(np.ones((self.images, 1), dtype=np.int32))
        known = {key: float(value[0]) for key, value in values.items()}
        return {key: Score(None if np.isnan(known[key]) else known[key], n) for key, n in self.counts().items()}

    def intervals(self, resampling: Resampling) -> dict[Key, tuple[float, float] | None]:
        """The 95 % interval of each value; None with fewer than FEWEST_IMAGES images."""
        scores = self.scores()
        parts: dict[Key, list[Floats]] = {key: [] for key in scores}
        for block in blocks(resampling) if self.images >= FEWEST_IMAGES else ():
            for key, values in self.rounds(block.resamples(self.images)).items():
                parts[key].append(values)
        ends: dict[Key, tuple[float, float] | None] = {}
        for key, score in scores.items():
            ends[key] = None
            if parts[key] and score.value is not None:
                ends[key] = interval(score.value, np.concatenate(parts[key]), self.images, lowest=0.0, highest=1.0)
        return ends


def share(part: Floats, whole: Floats | Ints) -> Floats:
    """`part / whole`, NaN where the whole is 0."""
    found: Floats = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return found
