"""The columns of ranked lists: predictions of each class in the order of their scores, and the ground truth; and what
a metric is on the test set itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hoicli.records.kit import Bools, Floats, Ints


class Rows(NamedTuple):
    """The M rows of ranked lists. A row is a run of true positives with no other prediction between them; only its last
    one matters for average precision, as it has the largest precision of the run.

    first [M + 1]: where each row begins among all true positives, and their number; begin [M]: the first prediction
    after the row before, so that a row has the predictions from there to its last true positive; bounds [C + 1]: class
    c has the rows bounds[c]:bounds[c + 1]."""

    first: Ints
    begin: Ints
    bounds: Ints


@dataclass(frozen=True)
class ListColumns:
    """The predictions that count under one protocol, as a ranked list for each of C classes, and the ground truth.

    hit [T]: whether each prediction is a true positive, class by class, in ranking order; class c has
    hit[bounds[c]:bounds[c + 1]]. image [T]: the number of each prediction's image. truth_image [P], truth_class [P]:
    the image and the class of each ground truth. images: N, the number of images. grid: the recall levels that AP is
    the mean precision at, () for the area under the curve; cap: how many predictions of a class count, None for all.

    gain [T]: what each true positive is worth, in whole numbers of 1 / unit (SHOE); None if each is worth 1. With
    gains, the copies of one true positive are one step: precision and recall are taken after all of them. area: without
    a grid, which area: under the "envelope" of the curve, or a "trapezoid" sum (straight lines from recall 0, precision
    1). score [T], descending in each class: ranks the predictions of all classes as one list; place [T]: their places
    in that list, if these are known already."""

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
        """Return the runs of true positives, each of which has one precision that may count. With gains, or for the
        trapezoid sum, every precision counts: every true positive is a row."""
        hits = self.hits
        bounds = np.searchsorted(hits, self.bounds)  # of each class among the true positives
        begin = np.append(0, hits[:-1] + 1)[: len(hits)]  # after the true positive before
        has_hits = np.diff(bounds) > 0
        first_of_class = bounds[:-1][has_hits]
        begin[first_of_class] = self.bounds[:-1][has_hits]
        # a true positive directly after another one belongs to that one's row
        starts_row = begin < hits if self.gain is None and self.area == "envelope" else np.ones(len(hits), dtype=bool)
        starts_row[first_of_class] = True
        first = np.flatnonzero(starts_row)
        return Rows(np.append(first, len(hits)), begin[first], np.searchsorted(first, bounds))


class Observed(NamedTuple):
    """A metric on the test set itself: ap [C] of each class, and images [C], how many have ground truth of it."""

    ap: Floats
    images: Ints

    def spread(self, values: Floats, usable: Bools, hidden: Sequence[float]) -> Floats:
        """Return [C, R] the values of resamples, each moved away from the class's value on the test set, as another
        test set's might be.

        values: [C, R] the metric on each resample. usable: [C, R] whether a resample has ground truth of the class; if
        not, the mean over all classes stands for its value. hidden: HIDDEN or HIDDEN_OF_MEANS (`rounds`), the measured
        factor of the move for a class with ground truth in 0, 1, 2, ... images; the last is for all that have more."""
        annotated, ap = self.images > 0, self.ap[:, np.newaxis]
        average = self.ap[annotated].sum() / max(int(annotated.sum()), 1)
        factors = np.array(hidden)[np.minimum(self.images, len(hidden) - 1)]
        spread = np.where(usable, values, average)
        spread -= ap  # in place, since the arrays are large
        spread *= factors[:, np.newaxis]
        spread += ap
        return spread
