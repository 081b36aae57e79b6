"""The columns of ranked lists: predictions of each class in the order of their scores, and the ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hoicli.records.kit import Bools, Floats, Ints


class Rows(NamedTuple):
    """The M rows of ranked lists: runs of true positives with no other prediction between them; a run's last one has
    its largest precision. first [M + 1]: each row's first one among all true positives; begin [M]: the first prediction
    behind the row before; class c has the rows bounds[c]:bounds[c + 1]."""

    first: Ints
    begin: Ints
    bounds: Ints


@dataclass(frozen=True)
class ListColumns:
    """The predictions that count under one protocol, as a ranked list for each of C classes, and their ground truth.

    hit [T]: whether each prediction is a true positive, in ranking order; class c has hit[bounds[c]:bounds[c + 1]].
    image [T]: the image of each prediction; truth_image [P] and truth_class [P]: the image and class of each ground
    truth; images N: how many images these numbers point into. grid and cap are the protocol's `grid` and
    `predictions_per_class`.

    gain [T]: what a true positive is worth where that is not 1 for all (SHOE), in whole numbers of 1 / unit. Copies of
    one true positive are then one step: precision and recall are taken after them. area: what is measured under the
    curve when there is no grid, "envelope" or "trapezoid" (straight lines from recall 0, precision 1). score [T],
    falling in each class: ranks the predictions of all classes as one list; place [T]: their places in that list, if
    these are known.
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
        """Return the indices [K] of the predictions that are true positives."""
        return np.flatnonzero(self.hit)

    @cached_property
    def rows(self) -> Rows:
        """Return the runs of true positives, each of which has one precision that may count."""
        hits = self.hits
        bounds = np.searchsorted(hits, self.bounds)
        begin = np.append(0, hits[:-1] + 1)[: len(hits)]
        class_leads = bounds[:-1][np.diff(bounds) > 0]
        begin[class_leads] = self.bounds[:-1][np.diff(bounds) > 0]
        # without gains, a true positive directly behind another one belongs to that one's row
        starts_row = begin < hits if self.gain is None and self.area == "envelope" else np.ones(len(hits), dtype=bool)
        starts_row[class_leads] = True
        first = np.flatnonzero(starts_row)
        return Rows(np.append(first, len(hits)), begin[first], np.searchsorted(first, bounds))
