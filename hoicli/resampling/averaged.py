"""Ranked lists at several thresholds as one: COCO's AP over IoU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hoicli.records.kit import Bools, Floats, Ints
from hoicli.resampling.ranked import RankedLists
from hoicli.resampling.weighted import Weights


@dataclass(frozen=True)
class AveragedLists:
    """Ranked lists of one model at several thresholds, whose AP is the mean of theirs: COCO's AP over IoU. They share
    images and ground truth."""

    lists: Sequence[RankedLists]

    @property
    def images(self) -> int:
        """N."""
        return self.lists[0].images

    @property
    def truth_image(self) -> Ints:
        """[P] the image of each ground truth."""
        return self.lists[0].truth_image

    @property
    def true_positives(self) -> int:
        """How many there are in all lists together."""
        return sum(lists.true_positives for lists in self.lists)

    @property
    def unannotated(self) -> Bools:
        """[C] the classes without ground truth."""
        return self.lists[0].unannotated

    @property
    def truth_images(self) -> Ints:
        """[C] how many images have ground truth of each class."""
        return self.lists[0].truth_images

    def images_of_truth(self, members: Ints) -> int:
        """How many images have ground truth of one of the classes."""
        return self.lists[0].images_of_truth(members)

    def ap(self, weights: Weights) -> tuple[Floats, Ints]:
        """As `RankedLists.ap`, the mean of all lists."""
        return _mean([lists.ap(weights) for lists in self.lists])

    def ap_of_sides(self, coins: Weights) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
        """As `RankedLists.ap_of_sides`, the mean of all lists."""
        one, other = zip(*(lists.ap_of_sides(coins) for lists in self.lists), strict=True)
        return _mean(one), _mean(other)

    def interleaved(self, other: AveragedLists) -> AveragedLists:
        """As `RankedLists.interleaved`, at each threshold."""
        return AveragedLists([one.interleaved(two) for one, two in zip(self.lists, other.lists, strict=True)])

    def without_each_image(self, members: Ints) -> Floats | None:
        """As `RankedLists.without_each_image`, the mean of all lists."""
        every = [lists.without_each_image(members) for lists in self.lists]
        known = [each for each in every if each is not None]
        means: Floats = np.mean(known, axis=0)
        return means if len(known) == len(every) else None


def _mean(several: Sequence[tuple[Floats, Ints]]) -> tuple[Floats, Ints]:
    """The mean of APs [C, R], and the ground truth [C, R] that all share."""
    aps, positives = zip(*several, strict=True)
    mean: Floats = np.mean(aps, axis=0)
    return mean, positives[0]
