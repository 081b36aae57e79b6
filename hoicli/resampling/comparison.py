"""Two models on one test set: a difference, its interval, and how likely it would be if there were none.

Both models meet the same resamples and the same swaps, so what is hard about an image cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hoicli.records.kit import Floats, Ints
from hoicli.resampling.draws import Resampling, blocks
from hoicli.resampling.intervals import interval, p_resampled, p_swapped
from hoicli.resampling.ranked import IMAGES_AT_ONCE, RankedLists
from hoicli.resampling.rounds import Rounds, shared_among, sum_of_runs


@dataclass(frozen=True)
class Difference:
    """after - before, in the unit of both: ci its 95 % interval, p from swaps, p_bootstrap from resamples; None where
    there is nothing to compare or to estimate from."""

    before: float | None
    after: float | None
    ci: tuple[float, float] | None = None
    p: float | None = None
    p_bootstrap: float | None = None

    @property
    def value(self) -> float | None:
        """after - before."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def chance(self) -> float | None:
        """p, and where there were no swaps (a model of several runs) p_bootstrap."""
        return self.p_bootstrap if self.p is None else self.p


def difference(
    before: float | None, after: float | None, resamples: Floats, swaps: Floats, *, most: float = float("inf")
) -> Difference:
    """With its interval and its p-values, from [R] differences on resamples and [R] with the output swapped.

    `most`: how large a difference can be, and its interval go; 1 between two APs.
    """
    if before is None or after is None:
        return Difference(before, after)
    estimate = after - before
    return Difference(
        before,
        after,
        interval(estimate, resamples, lowest=-most, highest=most),
        p_swapped(estimate, swaps),
        p_resampled(estimate, resamples),
    )


@dataclass(frozen=True)
class PairedRounds:
    """Two models on all rounds: each on the same resamples, and the two systems that swapping their output makes."""

    resamples: tuple[Rounds, Rounds]
    swaps: tuple[Rounds, Rounds]

    def differences(self, of: Callable[[Rounds], Floats]) -> tuple[Floats, Floats]:
        """(on resamples, on swaps): the second's less the first's, of what `of` takes from rounds."""
        resamples, swaps = (of(second) - of(first) for first, second in (self.resamples, self.swaps))
        return resamples, swaps


def count_differences(
    before: Sequence[Ints], after: Sequence[Ints], shares: tuple[Floats, Floats], resampling: Resampling
) -> list[Difference]:
    """The differences in M counts: [M, N] of each in each image, in each run of either model; of several runs the mean
    (`shares`: as `run_shares` has them). The count of a resample is the sum of its images' counts."""
    from scipy.sparse import csr_array  # ten times as fast as NumPy's product of whole numbers

    counts, images = before[0].shape
    matrices: list[list[Any]] = [[csr_array(run) for run in side] for side in (before, after)]
    single = len(before) == len(after) == 1
    resamples, swaps = [np.zeros((counts, 0))], [np.zeros((counts, 0))]
    start = 0
    for block in blocks(resampling):
        weights, now = block.resamples(images), slice(start, start := start + block.rounds)
        sides = [
            sum_of_runs([run @ weights for run in side], share[:, now])
            for side, share in zip(matrices, shares, strict=True)
        ]
        resamples.append(sides[1] - sides[0])
        if single:
            coins = 1 - 2 * block.swaps(images)
            swaps.append((matrices[1][0] @ coins - matrices[0][0] @ coins).astype(np.float64))
    rounds = [np.concatenate(parts, axis=1) for parts in (resamples, swaps)]
    totals = [(sum(run.sum(axis=1) for run in side) / len(side)).tolist() for side in (before, after)]
    return [difference(*row) for row in zip(*totals, *rounds, strict=True)]


def image_differences(first: Sequence[RankedLists], second: Sequence[RankedLists], members: Ints) -> Floats | None:
    """[N] what of the difference in mAP over `members` goes with each image: the difference, less what it is when the
    image is left out; None if a class has too many images to leave each out. Of a model's several runs the mean."""

    def work(share: Sequence[RankedLists]) -> list[Floats | None]:
        return [_of_each_image(lists, members) for lists in share]

    both = [*first, *second]
    effort = IMAGES_AT_ONCE * sum(lists.true_positives for lists in both)
    known = [of for share in shared_among(work, both, effort) for of in share if of is not None]
    if len(known) < len(both):
        return None
    nothing = np.zeros(first[0].images)
    moved: Floats = sum(known[len(first) :], nothing) / len(second) - sum(known[: len(first)], nothing) / len(first)
    return moved


def _of_each_image(lists: RankedLists, members: Ints) -> Floats | None:
    """[N] what of one run's mAP goes with each image."""
    without = lists.without_each_image(members)
    if without is None:
        return None
    ap, _ = lists.ap(np.ones((lists.images, 1), dtype=np.int32))
    share: Floats = ap[members, 0].sum() / max(len(members), 1) - without
    return share
