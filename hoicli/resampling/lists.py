"""The columns of ranked lists: predictions of each class in the order of their scores, and the ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hoicli.records.kit import Bools, Floats, Ints


class Rows(NamedTuple):
    """The M rows of ranked lists: true positives with no other prediction between them, whose last has the largest
    precision. first [M + 1] the place of each row's first one among all true positives; begin [M] the first of the
    predictions that are counted at it, behind the row before; class c has the rows bounds[c]:bounds[c + 1]."""

    first: Ints
    begin: Ints
    bounds: Ints


@dataclass(frozen=True)
class ListColumns:
    """The predictions that count under one protocol, a ranked list for each of C classes, and what is to be found.

    hit [T] whether each is a true positive, in ranking order; class c owns hit[bounds[c]:bounds[c + 1]]. image [T] of
    each, truth_image [P] and truth_class [P] of the ground truth; images N counts those they point into. grid and cap
    are the protocol's `grid` and `predictions_per_class`.

    gain [T]: what a true positive is worth where that is not 1 for all (SHOE), in whole numbers of 1 / unit. The copies
    of one are then one step: precision and recall are taken after them. area: without a grid, what is under the curve:
    "envelope" or "trapezoid" (straight lines from recall 0, precision 1). score [T], falling in each class: ranks the
    predictions of all classes as one list; place [T]: their places there, if these are known.
    """

    hit: Bools
    image: Ints
    bounds: Ints
    truth_image: Ints
    truth_class: Ints
    images: int
    grid: tuple[float, ...]
    cap: int | None = None
    gain: Ints | None = None
    unit: int = 1
    area: str = "envelope"
    score: Floats | None = None
    place: Ints | None = None

    @cached_property
    def hits(self) -> Ints:
        """[K] the true positives."""
        return np.flatnonzero(self.hit)

    @cached_property
    def rows(self) -> Rows:
        """The true positives whose precision may count."""
        hits = self.hits
        bounds = np.searchsorted(hits, self.bounds)
        begin = np.append(0, hits[:-1] + 1)[: len(hits)]
        leads = bounds[:-1][np.diff(bounds) > 0]
        begin[leads] = self.bounds[:-1][np.diff(bounds) > 0]
        alone = begin < hits if self.gain is None and self.area == "envelope" else np.ones(len(hits), dtype=bool)
        alone[leads] = True
        first = np.flatnonzero(alone)
        return Rows(np.append(first, len(hits)), begin[first], np.searchsorted(first, bounds))
