"""Two models on one test set: a difference, its interval, and how likely it would be if there were none.

Intervals come from resamples: test sets of the same size, drawn from the images with replacement (the bootstrap).
p-values come from swaps: of each image, a coin decides which of two mixed systems gets which model's output. Both
models meet the same resamples and the same swaps, so what is hard about an image cancels out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
from hoicli.resampling.sparse import Sparse

FIRST_SWAPS, OFTEN = 100, 20
"""How many swaps every class gets at first, and how many of them as large as its difference (a fifth) settle its p."""
SELDOM = 5
"""After all swaps that the user asked for, a class gets more as long as fewer than this were as large."""


@dataclass(frozen=True)
class Difference:
    """The values of a metric for two models, `before` and `after`, and what is known about their difference, after -
    before: ci is its 95 % interval, p its p-value from swaps, p_bootstrap that from resamples. Each is None if there is
    nothing to compare, or too little to estimate it from."""

    before: float | None
    after: float | None
    ci: tuple[float, float] | None = None
    p: float | None = None
    p_bootstrap: float | None = None

    @property
    def value(self) -> float | None:
        """Return after - before; None if a model has no value."""
        return None if self.before is None or self.after is None else self.after - self.before


def difference(
    before: float | None, after: float | None, resamples: Floats, swaps: Floats, images: int, *,
    largest: float = float("inf"),
) -> Difference:  # fmt: skip
    """Return the difference of two models with its interval and p-values; without these if `images` < FEWEST_IMAGES.

    before, after: the metric of each model; None without a value. resamples, swaps: [R] the difference on each
    resample, and after each swap of the models' output. largest: the greatest possible difference (1 between two APs),
    where the interval ends at the latest."""
    if before is None or after is None or images < FEWEST_IMAGES:
        return Difference(before, after)
    estimate = after - before
    return Difference(
        before,
        after,
        ci=interval(estimate, resamples, images, lowest=-largest, highest=largest),
        p=p_swapped(estimate, swaps),
        p_bootstrap=p_resampled(estimate, resamples, images),
    )


@dataclass(frozen=True)
class PairedRounds:
    """The results of all rounds: of both models on the same resamples, and of the two systems that each swap makes."""

    resamples: tuple[Rounds, Rounds]
    swaps: tuple[Rounds, Rounds]

    def differences(self, statistic: Callable[[Rounds], Floats]) -> tuple[Floats, Floats]:
        """Return a statistic of the second model minus that of the first, as ([R] on each resample; [R] on each swap).
        statistic: a function that returns the statistic of each round."""
        (first, second), (first_system, second_system) = self.resamples, self.swaps
        return statistic(second) - statistic(first), statistic(second_system) - statistic(first_system)


def class_chances(
    first: RankedLists, second: RankedLists, differences: Mapping[int, float], resampling: Resampling, label: str
) -> dict[int, float]:
    """Return the p-value of the difference in AP of each class, by class number, from swaps of two models' output.

    differences: by class number, second minus first; resampling: how many swaps the user asked for, and their seed.

    Every class gets FIRST_SWAPS swaps. If more than OFTEN of them make a difference as large as the class's own, they
    are enough; otherwise it gets all swaps that the user asked for. It then gets even more, twice as many each time, as
    long as few (SELDOM) made so large a difference and yet q is not below 0.05 (after 1,000 swaps, no q of 600 classes
    can be below 0.6 if one class alone differs), until that one class could be found. A class that stops keeps its p,
    so p is below any level no more often than after all swaps (Besag and Clifford 1991). The models' predictions are
    mixed by their place in the list of the class, which finds more differences than their place among all classes."""
    numbers, sizes = np.array([*differences], dtype=np.int64), np.abs([*differences.values()])
    # the observed difference counts as one as large as itself, so p is never 0
    as_large, swap_counts = np.ones(len(numbers), dtype=np.int64), np.zeros(len(numbers), dtype=np.int64)
    p_values = np.ones(len(numbers))
    remaining, swaps_done, more = np.arange(len(numbers)), 0, min(resampling.rounds, FIRST_SWAPS)
    # TAIL is 20 = 1 / 0.05: after so many swaps for each class, a q of one class alone can be below 0.05.
    while len(remaining) and swaps_done < max(resampling.rounds, len(numbers) * TAIL):
        classes = numbers[remaining]
        images = np.union1d(first.images_with(classes), second.images_with(classes))
        first_lists, second_lists = (lists.select_classes(classes, images) for lists in (first, second))
        # no block of rounds has had a number so high (there are fewer blocks than rounds), so these swaps are new ones
        swaps = Resampling(more, resampling.seed, before=swaps_done)
        first_system, second_system = swap_outputs(first_lists, second_lists, swaps, label)
        swapped_sizes = np.abs(second_system.ap - first_system.ap)
        as_large[remaining] += (swapped_sizes >= sizes[remaining, np.newaxis] - TOLERANCE).sum(axis=1)
        swap_counts[remaining] += more
        p_values = as_large / (1 + swap_counts)
        is_unsure = np.array(false_discovery(p_values.tolist())) * TAIL >= 1  # a q of 0.05 or more
        unfinished = np.where(swap_counts < resampling.rounds, as_large <= OFTEN, is_unsure & (as_large <= SELDOM))
        remaining = np.flatnonzero(unfinished)
        swaps_done += more
        more = max(resampling.rounds - swaps_done, swaps_done)
    return dict(zip(differences, p_values.tolist(), strict=True))


def count_differences(before: Ints, after: Ints, resampling: Resampling) -> list[Difference]:
    """Return the difference between two models in each of M counts, such as numbers of errors of M types. before,
    after: [M, N] each model's counts in each of N images. The count of a resample is the sum over its images."""
    counts, images = before.shape
    matrix = Sparse.drop_zeros(after - before)
    resamples, swaps = [np.zeros((counts, 0))], [np.zeros((counts, 0))]
    for block in blocks(resampling):
        resamples.append(matrix.times(block.resamples(images).astype(np.int64)).astype(np.float64))
        signs = 1 - 2 * block.swaps(images)  # -1 for an image whose outputs are swapped
        swaps.append(matrix.times(signs.astype(np.int64)).astype(np.float64))
    on_resamples, on_swaps = np.concatenate(resamples, axis=1), np.concatenate(swaps, axis=1)
    totals_before, totals_after = before.sum(axis=1).tolist(), after.sum(axis=1).tolist()
    return [
        difference(totals_before[count], totals_after[count], on_resamples[count], on_swaps[count], images)
        for count in range(counts)
    ]


def image_differences(first: RankedLists, second: RankedLists, members: Ints) -> Floats | None:
    """Return [N] how much each of N images contributes to the difference in mAP between two models: the difference
    minus that without the image. members: the classes that mAP is over. None if a class has too many images."""
    models = [first, second]
    worth = IMAGES_AT_ONCE * sum(lists.true_positives for lists in models) >= WORTH_FORKING
    before, after = shared_out(lambda lists: _image_contributions(lists, members), models, worth=worth)
    return None if before is None or after is None else after - before


def _image_contributions(lists: RankedLists, members: Ints) -> Floats | None:
    """Return [N] what each image contributes to a model's mAP over the classes `members`: the mAP minus the mAP without
    the image. None if a class has too many images to leave out each."""
    map_without = lists.without_each_image(members)
    if map_without is None:
        return None
    ap, _ = lists.ap(np.ones((lists.images, 1), dtype=np.int32))
    contribution: Floats = ap[members, 0].sum() / max(len(members), 1) - map_without
    return contribution
