"""Many evaluations in place of one: a model on resampled test sets, two models with their output swapped at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hoicli.io.forks import shared_out
from hoicli.io.messages import Progress
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.resampling.draws import BLOCKS_AT_ONCE, Block, Blocks, Resampling, Weights, blocks

WORTH_FORKING = 1 << 22
"""True positives times rounds that are worth a process of their own: a tenth of a second."""


class Weighted(Protocol):
    """Numbers of C classes for any weights of images: average precisions (`ranked.RankedLists`), or numbers made of
    sums over images (`sums.ImageSums`). true_positives: how much work a round takes."""

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
    """The numbers of the test set itself: ap [C] of each class, images [C]: how many images have its ground truth."""

    ap: Floats
    images: Ints

    def spread(self, values: Floats, usable: Bools, hidden: Sequence[float]) -> Floats:
        """Return values [C, R] of resamples, moved as far from `ap` as other test sets would be, by the factors
        `hidden` (HIDDEN or HIDDEN_OF_MEANS). A class that is not `usable` [C, R] in a round gets the mean over all
        classes."""
        annotated, ap = self.images > 0, self.ap[:, np.newaxis]
        average = self.ap[annotated].sum() / max(int(annotated.sum()), 1)
        spread = np.where(usable, values, average)
        spread -= ap
        spread *= np.array(hidden)[np.minimum(self.images, len(hidden) - 1)][:, np.newaxis]
        spread += ap
        return spread


HIDDEN = (0.0, 1.9, 1.2, 1.0)
"""How much more a class's AP varies between test sets than between resamples of one, by how many images (0, 1, 2, 3 or
more) have its ground truth. A single image is drawn as it is or not at all, and in the latter case the class counts as
an average one, which says how far classes are apart. Measured."""
HIDDEN_OF_MEANS = (0.0, 2.07, 1.27, 1.07, 1.0)
"""The same factors for a class whose value is a mean over its images: exact for these, nearly so for SHOE's soft AP."""


@dataclass(frozen=True)
class Rounds:
    """R rounds of a model: ap [C, R] in [0, 1] of each class (or another number: `sums.ImageSums`), and positives [C,
    R], its ground truth. observed: the test set itself, where the rounds are resamples."""

    ap: Floats
    positives: Ints
    observed: Observed | None = None

    @cached_property
    def _drawn(self) -> Bools:
        return self.positives > 0

    def means(self, members: Ints, unannotated: Bools, hidden: Sequence[float] = HIDDEN) -> Floats:
        """Return [R]: the mean AP over the classes `members`, NaN where a round has none of them.

        A class that has no ground truth in the test set, `unannotated` [C], counts 0, as it does in the protocol's own
        mean. Resamples are of the classes that the test set has: each class is moved away from its AP there by the
        factors `hidden` (`Observed.spread`), and a class whose ground truth a round did not draw has the mean of all.
        """
        values, usable = self.ap[members], self._drawn[members]
        if self.observed is None:
            defined = usable | unannotated[members][:, np.newaxis]
            values, count = np.where(defined, values, 0.0), defined.sum(axis=0)
        else:
            images = self.observed.images[members]
            values = Observed(self.observed.ap[members], images).spread(values, usable, hidden)
            count = np.where(usable.any(axis=0), int(((images > 0) | unannotated[members]).sum()), 0)
        # NumPy adds up a lone column pairwise, which may give another last digit than the same column among others
        total = np.repeat(values, 2, axis=1).sum(axis=0)[:1] if values.shape[1] == 1 else values.sum(axis=0)
        mean: Floats = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        return mean

    @classmethod
    def none(cls, lists: Weighted) -> Rounds:
        """Return zero rounds of the classes of `lists`."""
        return cls(np.zeros((len(lists.unannotated), 0)), np.zeros((len(lists.unannotated), 0), dtype=np.int64))

    def classes(self) -> Floats:
        """Return [C, R]: each class's AP, NaN where a round did not draw its ground truth."""
        return np.where(self.positives > 0, self.ap, np.nan)


def resample(models: Sequence[Weighted], resampling: Resampling, label: str) -> list[Rounds]:
    """Return the rounds of each model, all on the same resamples of the test set's images (the bootstrap)."""
    if not resampling.rounds:
        return [Rounds.none(model) for model in models]

    def work(block_range: Blocks) -> list[NDArray[Any]]:
        weights = block_range.resamples(models[0].images)
        return list(chain.from_iterable(model.ap(weights) for model in models))

    results = over_blocks(work, resampling, label, sum(model.true_positives for model in models))
    columns = zip(results[::2], results[1::2], models, strict=True)
    return [Rounds(ap, positives, model.observed) for ap, positives, model in columns]


def swap_outputs(first: Weighted, second: Weighted, resampling: Resampling, label: str) -> list[Rounds]:
    """Return the rounds of two systems made of the two models: a coin decides which system gets which model's output of
    an image (approximate randomisation).

    The two models' scores need not be on one scale: what is mixed are the places in their ranked lists
    (`RankedLists.interleave`).
    """
    if not resampling.rounds:
        return [Rounds.none(first)] * 2
    mixed = first.interleave(second)

    def work(block_range: Blocks) -> list[NDArray[Any]]:
        first_side, second_side = mixed.ap_of_sides(block_range.coins(first.images))
        return [*first_side, *second_side]

    results = over_blocks(work, resampling, label, 2 * mixed.true_positives)
    return [Rounds(ap, positives) for ap, positives in (results[:2], results[2:])]


def over_blocks(
    work: Callable[[Blocks], Sequence[NDArray[Any]]], resampling: Resampling, label: str, true_positives: int
) -> list[NDArray[Any]]:
    """Return what `work` makes of all rounds, a few blocks at a time: arrays whose last axis is the rounds, perhaps
    none. Several processes share the work where there is enough. true_positives: how much work a round takes."""
    # without rounds an empty block, so that `work` gives arrays of width 0
    every = blocks(resampling) or [Block(resampling.seed, 0, 0)]
    tasks = [Blocks(every[start : start + BLOCKS_AT_ONCE]) for start in range(0, len(every), BLOCKS_AT_ONCE)]
    rounds_done = [*accumulate(task.rounds for task in tasks)]
    worth = true_positives * resampling.rounds >= WORTH_FORKING
    with Progress(label, total=resampling.rounds, unit="round") as bar:
        parts = shared_out(work, tasks, worth=worth, tell=lambda number: bar.advance_to(rounds_done[number]))
    return [np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True)]
