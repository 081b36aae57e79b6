"""Two models on one test set: a difference, its interval, and how likely it would be if there were none.

Both models meet the same resamples and the same swaps, so what is hard about an image cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hoicli.io.forks import shared_out
from hoicli.records.kit import Floats, Ints
from hoicli.resampling.draws import Resampling, blocks
from hoicli.resampling.intervals import (
    FEWEST_IMAGES,
    TAIL,
    TOLERANCE,
    false_discovery,
    interval,
    p_resampled,
    p_swapped,
)
from hoicli.resampling.ranked import IMAGES_AT_ONCE, RankedLists
from hoicli.resampling.rounds import WORTH_FORKING, Rounds, swap_outputs

FIRST_SWAPS, OFTEN = 100, 20
"""How many swaps every class gets at first, and how many of them as large as its difference (a fifth) settle its p."""
SELDOM = 5
"""After all swaps that the user asked for, a class gets more as long as fewer than this were as large."""


@dataclass(frozen=True)
class Difference:
    """after - before, in the metric's unit: ci is its 95 % interval, p its p-value from swaps, p_bootstrap from
    resamples. Each is None where there is nothing to compare, or too little to estimate it from."""

    before: float | None
    after: float | None
    ci: tuple[float, float] | None = None
    p: float | None = None
    p_bootstrap: float | None = None

    @property
    def value(self) -> float | None:
        """Return after - before, None where a model has no value."""
        return None if self.before is None or self.after is None else self.after - self.before


def difference(
    before: float | None, after: float | None, resamples: Floats, swaps: Floats, images: int, *,
    largest: float = float("inf"),
) -> Difference:  # fmt: skip
    """Return the difference of two models with its interval and p-values; without these if `images` < FEWEST_IMAGES.

    resamples, swaps: [R] the difference on each resample, and after each swap of the models' output; images: how many
    the metric comes from; largest: the greatest difference possible (1 between two APs): the interval ends there.
    """
    if before is None or after is None or images < FEWEST_IMAGES:
        return Difference(before, after)
    estimate = after - before
    return Difference(
        before,
        after,
        interval(estimate, resamples, images, lowest=-largest, highest=largest),
        p_swapped(estimate, swaps),
        p_resampled(estimate, resamples, images),
    )


@dataclass(frozen=True)
class PairedRounds:
    """Two models on all rounds: each on the same resamples, and the two systems that swapping their output makes."""

    resamples: tuple[Rounds, Rounds]
    swaps: tuple[Rounds, Rounds]

    def differences(self, statistic: Callable[[Rounds], Floats]) -> tuple[Floats, Floats]:
        """Return the second model's `statistic` minus the first's, as (on each resample, on each swap)."""
        resamples, swaps = (statistic(second) - statistic(first) for first, second in (self.resamples, self.swaps))
        return resamples, swaps


def class_chances(
    first: RankedLists, second: RankedLists, differences: Mapping[int, float], resampling: Resampling, label: str
) -> dict[int, float]:
    """Return the p-value of each class's difference (`differences`: by class number), from swaps of two models' output.

    Every class gets FIRST_SWAPS swaps, which are enough if OFTEN were as large as its difference. If not, it gets all
    that `resampling` has, and then more, doubled each time, while fewer than SELDOM were as large and q is not below
    0.05 (with 1,000 swaps the least q of one class of 600 is 0.6), until no such class is left or one alone would be
    found. A class that OFTEN or SELDOM stops keeps its p, so p is as seldom below any level as after all swaps (Besag
    and Clifford 1991). Models are mixed by place in the class's own list, which finds more than place among the
    predictions of all classes.
    """
    numbers, sizes = np.array([*differences], dtype=np.int64), np.abs([*differences.values()])
    # the observed difference counts as one as large as itself, so p is never 0
    as_large, swap_counts = np.ones(len(numbers), dtype=np.int64), np.zeros(len(numbers), dtype=np.int64)
    chances = np.ones(len(numbers))
    remaining, swaps_done, more = np.arange(len(numbers)), 0, min(resampling.rounds, FIRST_SWAPS)
    while len(remaining) and swaps_done < max(resampling.rounds, len(numbers) * TAIL):
        classes = numbers[remaining]
        images = np.union1d(first.images_with(classes), second.images_with(classes))
        one_model, another = (lists.select_classes(classes, images) for lists in (first, second))
        one, other = swap_outputs(one_model, another, Resampling(more, resampling.seed, before=swaps_done), label)
        as_large[remaining] += (np.abs(other.ap - one.ap) >= sizes[remaining, np.newaxis] - TOLERANCE).sum(axis=1)
        swap_counts[remaining] += more
        chances = as_large / (1 + swap_counts)
        unsure = np.array(false_discovery(chances.tolist())) * TAIL >= 1  # a q of 0.05 or more
        unfinished = np.where(swap_counts < resampling.rounds, as_large <= OFTEN, unsure & (as_large <= SELDOM))
        remaining = np.flatnonzero(unfinished)
        swaps_done += more
        more = max(resampling.rounds - swaps_done, swaps_done)
    return dict(zip(differences, chances.tolist(), strict=True))


def count_differences(before: Ints, after: Ints, resampling: Resampling) -> list[Difference]:
    """Return the differences between two models in each of M counts. before, after: [M, N] each model's counts in each
    of N images. The count of a resample is the sum over its images."""
    from scipy.sparse import csr_array  # ten times as fast as NumPy's product of whole numbers

    counts, images = before.shape
    matrix: Any = csr_array(after - before)
    resamples, swaps = [np.zeros((counts, 0))], [np.zeros((counts, 0))]
    for block in blocks(resampling):
        resamples.append((matrix @ block.resamples(images)).astype(np.float64))
        # a swapped image counts with the opposite sign
        swaps.append((matrix @ (1 - 2 * block.swaps(images))).astype(np.float64))
    rounds = [np.concatenate(parts, axis=1) for parts in (resamples, swaps)]
    totals = [counted.sum(axis=1).tolist() for counted in (before, after)]
    return [
        difference(first, second, resampled, swaps, images)
        for first, second, resampled, swaps in zip(*totals, *rounds, strict=True)
    ]


def image_differences(first: RankedLists, second: RankedLists, members: Ints) -> Floats | None:
    """Return how much each of N images contributes to the difference in mAP over the classes `members` [N]: the
    difference minus that without the image. None if a class has too many images to leave out each."""
    both = [first, second]
    worth = IMAGES_AT_ONCE * sum(lists.true_positives for lists in both) >= WORTH_FORKING
    before, after = shared_out(lambda lists: _of_each_image(lists, members), both, worth=worth)
    return None if before is None or after is None else after - before


def _of_each_image(lists: RankedLists, members: Ints) -> Floats | None:
    """Return [N]: what each image contributes to a model's mAP over `members`, the mAP minus the mAP without it."""
    without = lists.without_each_image(members)
    if without is None:
        return None
    ap, _ = lists.ap(np.ones((lists.images, 1), dtype=np.int32))
    share: Floats = ap[members, 0].sum() / max(len(members), 1) - without
    return share
