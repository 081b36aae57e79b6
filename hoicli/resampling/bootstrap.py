"""How sure one model's numbers are: the interval of every mAP, and of every class's AP."""

from __future__ import annotations

from collections.abc import Mapping

from hoicli.arrays.kit import Floats, Ints
from hoicli.resampling.intervals import interval
from hoicli.resampling.ranked import RankedLists
from hoicli.resampling.rounds import Rounds

Interval = tuple[float, float]

FEWEST_IMAGES = 2
"""Images with ground truth that an interval needs: one image says nothing of how images differ."""


def mean_intervals(
    lists: RankedLists, rounds: Rounds, estimates: Mapping[str, float | None], members: Mapping[str, Ints]
) -> dict[str, Interval]:
    """The 95 % interval of each subset's mAP, in [0, 1]: from its estimate, and the classes it is a mean over.

    A subset whose ground truth is in fewer than FEWEST_IMAGES has none.
    """
    found = {}
    for subset, estimate in estimates.items():
        if estimate is None or lists.images_of_truth(members[subset]) < FEWEST_IMAGES:
            continue
        ends = interval(estimate, rounds.means(members[subset], lists.unannotated), lowest=0.0, highest=1.0)
        if ends is not None:
            found[subset] = ends
    return found


def class_intervals(lists: RankedLists, rounds: Rounds, ap: Floats) -> dict[int, Interval]:
    """The 95 % interval of each class's AP, in [0, 1], from the rounds that drew some of its ground truth."""
    every, images, found = rounds.classes(), lists.truth_images, {}
    for number, estimate in enumerate(ap.tolist()):
        if images[number] < FEWEST_IMAGES:
            continue
        ends = interval(estimate, every[number], lowest=0.0, highest=1.0)
        if ends is not None:
            found[number] = ends
    return found
