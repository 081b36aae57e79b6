"""Many evaluations in place of one: a model on resampled test sets, two models with their output swapped at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hoicli.io.messages import Progress
from hoicli.io.workers import shared_out
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.resampling.draws import BLOCKS_AT_ONCE, Block, Blocks, Resampling, Weights, blocks

WORTH_FORKING = 1 << 22
"""True positives times rounds that are worth a process of their own: a tenth of a second."""


class Weighted(Protocol):
    """Numbers of C classes that follow from weights of images: average precisions (`ranked.RankedLists`), or what
    sums over images make (`sums.ImageSums`). true_positives: how much work a round is."""

    @property
    def images(self) -> int: ...

    @property
    def true_positives(self) -> int: ...

    @property
    def unannotated(self) -> Bools: ...

    @property
    def observed(self) -> Observed: ...

    def ap(self, weights: Weights) -> tuple[Floats, Ints]: ...

    def ap_of_sides(self, coins: Weights) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]: ...

    def interleave(self, other: Any) -> Weighted: ...


class Observed(NamedTuple):
    """The test set itself: ap [C] of each class, images [C] with its ground truth."""

    ap: Floats
    images: Ints

    def spread(self, values: Floats, usable: Bools, hidden: Sequence[float]) -> Floats:
        """[C, R] the values [C, R] of resamples, as far from `ap` as those of other test sets are, by HIDDEN or
        HIDDEN_OF_MEANS. A class that is not `usable` [C, R] has the mean of all."""
        there, ap = self.images > 0, self.ap[:, np.newaxis]
        average = self.ap[there].sum() / max(int(there.sum()), 1)
        further = np.where(usable, values, average)
        further -= ap
        further *= np.array(hidden)[np.minimum(self.images, len(hidden) - 1)][:, np.newaxis]
        further += ap
        return further


HIDDEN = (0.0, 1.9, 1.2, 1.0)
"""By the images that have a class's ground truth (the last: as many or more), how much further its AP goes from one
test set to another than in resamples of one. A single image comes back as it is or not at all; the class then counts as
an average one, which says how far classes are apart. Measured."""
HIDDEN_OF_MEANS = (0.0, 2.07, 1.27, 1.07, 1.0)
"""The same of a class whose value is a mean over its images, exactly; of SHOE's soft AP nearly."""


@dataclass(frozen=True)
class Rounds:
    """ap [C, R] in [0, 1] and positives [C, R], the ground truth, of each class in each of R rounds; ap is another
    number where that is resampled (`sums.ImageSums`). observed: of rounds that are resamples."""

    ap: Floats
    positives: Ints
    observed: Observed | None = None

    @cached_property
    def _drawn(self) -> Bools:
        return self.positives > 0

    def means(self, members: Ints, unannotated: Bools, hidden: Sequence[float] = HIDDEN) -> Floats:
        """[R] the mean AP over the classes `members`, NaN where a round has none.

        A class that has no ground truth to begin with, `unannotated` [C], counts 0 as it does in the protocol's own
        mean. Resamples are of the classes that the test set has: each goes as far from its AP there as `hidden` says,
        and one whose ground truth a round did not draw has the mean of all.
        """
        values, usable = self.ap[members], self._drawn[members]
        if self.observed is None:
            defined = usable | unannotated[members][:, np.newaxis]
            values, count = np.where(defined, values, 0.0), defined.sum(axis=0)
        else:
            images = self.observed.images[members]
            values = Observed(self.observed.ap[members], images).spread(values, usable, hidden)
            count = np.where(usable.any(axis=0), int(((images > 0) | unannotated[members]).sum()), 0)
        # a lone column would be added up in pairs, and its last digit be another than among other columns
        total = np.repeat(values, 2, axis=1).sum(axis=0)[:1] if values.shape[1] == 1 else values.sum(axis=0)
        mean: Floats = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        return mean

    @classmethod
    def none(cls, lists: Weighted) -> Rounds:
        """No rounds of the classes of `lists`."""
        return cls(np.zeros((len(lists.unannotated), 0)), np.zeros((len(lists.unannotated), 0), dtype=np.int64))

    def classes(self) -> Floats:
        """[C, R] each class's AP, NaN where a round did not draw its ground truth."""
        return np.where(self.positives > 0, self.ap, np.nan)


def resample(models: Sequence[Weighted], resampling: Resampling, label: str) -> list[Rounds]:
    """Each model on the same resamples of the test set's images (the bootstrap)."""
    if not resampling.rounds:
        return [Rounds.none(model) for model in models]

    def work(block_range: Blocks) -> list[NDArray[Any]]:
        weights = block_range.resamples(models[0].images)
        return list(chain.from_iterable(model.ap(weights) for model in models))

    results = over_blocks(work, resampling, label, sum(model.true_positives for model in models))
    every = zip(results[::2], results[1::2], models, strict=True)
    return [Rounds(ap, positives, model.observed) for ap, positives, model in every]


def swap_outputs(first: Weighted, second: Weighted, resampling: Resampling, label: str) -> list[Rounds]:
    """Two systems made of the two models, each image's output going to one or the other by a coin (approximate
    randomisation).

    The two models' scores need not be on one scale: what is mixed are the places in their ranked lists
    (`RankedLists.interleave`).
    """
    if not resampling.rounds:
        return [Rounds.none(first)] * 2
    mixed = first.interleave(second)

    def work(block_range: Blocks) -> list[NDArray[Any]]:
        first_ap, other = mixed.ap_of_sides(block_range.coins(first.images))
        return [*first_ap, *other]

    results = over_blocks(work, resampling, label, 2 * mixed.true_positives)
    return [Rounds(ap, positives) for ap, positives in (results[:2], results[2:])]


def over_blocks(
    work: Callable[[Blocks], Sequence[NDArray[Any]]], resampling: Resampling, label: str, true_positives: int
) -> list[NDArray[Any]]:
    """Return what `work` makes of all rounds, some blocks at a time: arrays whose last axis is rounds, perhaps none. In
    several processes where there is enough of it."""
    every = blocks(resampling) or [Block(resampling.seed, 0, 0)]
    several = [Blocks(every[at : at + BLOCKS_AT_ONCE]) for at in range(0, len(every), BLOCKS_AT_ONCE)]
    ends = [*accumulate(block_range.rounds for block_range in several)]
    worth = true_positives * resampling.rounds >= WORTH_FORKING
    with Progress(label, total=resampling.rounds, unit="round") as bar:
        parts = shared_out(work, several, worth=worth, tell=lambda number: bar.advance_to(ends[number]))
    return [np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True)]
