"""From ranks to recall: the shares found in each image, and their means over images and verbs.

R@K, mR@K and zR@K are one computation on other parts of the ground truth: a part of an image is the ground truth of a
group in it, its share is how much of that is found, a group's recall is the mean share over its images, and the metric
is the mean over groups. R@K has one group, mR@K a group for each verb, zR@K one of the unseen triplets. Sums are exact
(math.fsum), so no order of images changes a value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hoicli.records.kit import Bools, Floats, Ints, run_starts
from hoicli.resampling.weighted import Weights


@dataclass(frozen=True)
class Recall:
    """A mean recall in [0, 1], None without ground truth. n: how many images it is over, or groups if there may be
    several. groups: each group's own recall, by number."""

    value: float | None
    n: int
    groups: Mapping[int, float]


class Parts:
    """The parts of some ground-truth triplets.

    P parts by group, then by image. absent: groups without ground truth that count 0; several: there may be more than
    one group, so that `Recall.n` counts groups.
    """

    def __init__(self, rows: Ints, image: Ints, group: Ints, *, several: bool = False, absent: int = 0) -> None:
        """rows [M] of the triplets, image [M] each one's image by its place among the images by id, group [M]."""
        images = int(image.max(initial=0)) + 1
        key, self._part, self._size = np.unique(group * images + image, return_inverse=True, return_counts=True)
        self._group, self._image = np.divmod(key, images)
        self._rows, self._start = rows, run_starts(self._group)
        self._several, self._absent = several, absent

    def shares(self, found: Bools) -> Floats:
        """[P] how much of each part is found; found [T] is of all triplets."""
        hits = np.bincount(self._part, weights=found[self._rows], minlength=len(self._size))
        shares: Floats = hits / self._size
        return shares

    def recall(self, found: Bools) -> Recall:
        """The mean over groups of the mean share over images."""
        shares = self.shares(found).tolist()
        groups = {
            int(self._group[begin]): math.fsum(shares[begin:end]) / (end - begin)
            for begin, end in pairwise([*self._start.tolist(), len(shares)])
        }
        count = len(groups) + self._absent
        value = math.fsum(groups.values()) / count if count else None
        return Recall(value, count if self._several else len(shares), groups)

    def rounds(self, found: Bools, weights: Weights) -> Floats:
        """[R] the mean on resampled images: weights [N, R] say how often each image is drawn. NaN where a round draws
        no part; a group of which it draws none is left out of it."""
        if not len(self._size):
            return np.full(weights.shape[1], np.nan)
        drawn = weights[self._image]
        total = np.add.reduceat(drawn * self.shares(found)[:, np.newaxis], self._start, axis=0)
        images = np.add.reduceat(drawn, self._start, axis=0)
        means = np.divide(total, images, out=np.zeros(total.shape), where=images > 0)
        count = (images > 0).sum(axis=0)
        rounds: Floats = np.full(len(count), np.nan)
        np.divide(means.sum(axis=0), count + self._absent, out=rounds, where=count > 0)
        return rounds


def harmonic(first: float | None, second: float | None) -> float | None:
    """The harmonic mean of two recalls (F1@K of R@K and mR@K), 0 if one is; None without ground truth."""
    if first is None or second is None:
        return None
    return 2 * first * second / (first + second) if first + second > 0 else 0.0
