"""Two models on one test set: a difference, its interval, and how likely it would be if there were none.

Both models meet the same resamples and the same swaps, so what is hard about an image cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hoicli.io.workers import shared_out
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
"""Swaps of every class to begin with; how many as large as its difference are enough: a fifth."""
SELDOM = 5
"""After all swaps that are asked for, a class gets more as long as fewer than this were as large."""


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


def difference(
    before: float | None, after: float | None, resamples: Floats, swaps: Floats, images: int, *,
    largest: float = float("inf"),
) -> Difference:  # fmt: skip
    """With its interval and its p-values, from [R] differences on resamples and [R] with the output swapped; without
    where fewer than FEWEST_IMAGES `images` have what it is about.

    `largest`: how large a difference can be, and its interval go; 1 between two APs.
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

    def differences(self, of: Callable[[Rounds], Floats]) -> tuple[Floats, Floats]:
        """(on resamples, on swaps): the second's less the first's, of what `of` takes from rounds."""
        resamples, swaps = (of(second) - of(first) for first, second in (self.resamples, self.swaps))
        return resamples, swaps


def class_chances(
    first: RankedLists, second: RankedLists, differences: Mapping[int, float], resampling: Resampling, label: str
) -> dict[int, float]:
    """The p of each class from swaps: FIRST_SWAPS where OFTEN were as large as its difference; else all that are
    `resampling`, and more where fewer than SELDOM were as large, and q is not below 0.05. With no more, no class of 600
    would be found alone: the least p of 1,000 swaps makes a q of 0.6.

    Swaps are doubled until no such class is left, or one alone would be found. A class that many swaps reach keeps its
    p, so p is as seldom below any level as after all swaps (Besag and Clifford 1991). Models are mixed by place in the
    class's own list, which finds more than place among the predictions of all classes does.
    """
    numbers, size = np.array([*differences], dtype=np.int64), np.abs([*differences.values()])
    larger, swap_counts = np.ones(len(numbers), dtype=np.int64), np.zeros(len(numbers), dtype=np.int64)
    chances = np.ones(len(numbers))
    remaining, done, more = np.arange(len(numbers)), 0, min(resampling.rounds, FIRST_SWAPS)
    while len(remaining) and done < max(resampling.rounds, len(numbers) * TAIL):
        classes = numbers[remaining]
        images = np.union1d(first.images_with(classes), second.images_with(classes))
        models = [lists.select_classes(classes, images) for lists in (first, second)]
        first_swaps, other = swap_outputs(models[0], models[1], Resampling(more, resampling.seed, before=done), label)
        larger[remaining] += (np.abs(other.ap - first_swaps.ap) >= size[remaining, np.newaxis] - TOLERANCE).sum(axis=1)
        swap_counts[remaining] += more
        chances = larger / (1 + swap_counts)
        unsure = np.array(false_discovery(chances.tolist())) * TAIL >= 1
        remaining = np.flatnonzero(
            np.where(swap_counts < resampling.rounds, larger <= OFTEN, unsure & (larger <= SELDOM))
        )
        done += more
        more = max(resampling.rounds - done, done)
    return dict(zip(differences, chances.tolist(), strict=True))


def count_differences(before: Ints, after: Ints, resampling: Resampling) -> list[Difference]:
    """The differences in M counts: [M, N] of each in each image. The count of a resample is the sum of its images'
    counts."""
    from scipy.sparse import csr_array  # ten times as fast as NumPy's product of whole numbers

    counts, images = before.shape
    matrix: Any = csr_array(after - before)
    resamples, swaps = [np.zeros((counts, 0))], [np.zeros((counts, 0))]
    for block in blocks(resampling):
        resamples.append((matrix @ block.resamples(images)).astype(np.float64))
        swaps.append((matrix @ (1 - 2 * block.swaps(images))).astype(np.float64))
    rounds = [np.concatenate(parts, axis=1) for parts in (resamples, swaps)]
    totals = [counted.sum(axis=1).tolist() for counted in (before, after)]
    return [
        difference(first, second, resampled, swaps, images)
        for first, second, resampled, swaps in zip(*totals, *rounds, strict=True)
    ]


def image_differences(first: RankedLists, second: RankedLists, members: Ints) -> Floats | None:
    """[N] what of the difference in mAP over `members` goes with each image: the difference, less what it is when the
    image is left out; None if a class has too many images to leave each out."""
    both = [first, second]
    worth = IMAGES_AT_ONCE * sum(lists.true_positives for lists in both) >= WORTH_FORKING
    before, after = shared_out(lambda lists: _of_each_image(lists, members), both, worth=worth)
    return None if before is None or after is None else after - before


def _of_each_image(lists: RankedLists, members: Ints) -> Floats | None:
    """[N] what of a model's mAP goes with each image."""
    without = lists.without_each_image(members)
    if without is None:
        return None
    ap, _ = lists.ap(np.ones((lists.images, 1), dtype=np.int32))
    share: Floats = ap[members, 0].sum() / max(len(members), 1) - without
    return share
