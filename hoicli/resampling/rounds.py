"""Many evaluations in place of one, a *round* each: of a model on resampled test sets, or of two systems that swap two
models' outputs at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from hoicli.io.forks import shared_out
from hoicli.io.messages import Progress
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.resampling.draws import BLOCKS_AT_ONCE, Block, Resampling, blocks
from hoicli.resampling.lists import Observed

if TYPE_CHECKING:
    from hoicli.resampling.ranked import RankedLists
    from hoicli.resampling.sums import ImageSums

WORTH_FORKING = 1 << 22
"""From how many true positives, times rounds, on several processes, which take a tenth of a second, are worth it."""


Weighted: TypeAlias = "RankedLists | ImageSums"
"""A metric of each of C classes, for N images with any weights (how often each image counts): average precision, or a
metric computed from sums over images."""

HIDDEN = (0.0, 1.9, 1.2, 1.0)
"""How much more a class's AP varies between test sets than between resamples of one, by how many images (0, 1, 2, 3 or
more) have its ground truth. A single image is drawn as it is or not at all, and in the latter case the class counts as
an average one, which says how far classes are apart. Measured."""
HIDDEN_OF_MEANS = (0.0, 2.07, 1.27, 1.07, 1.0)
"""The same factors for a class whose value is a mean over its images: exact for these, nearly so for SHOE's soft AP."""


@dataclass(frozen=True)
class Rounds:
    """The results of R rounds: ap [C, R], the average precision of each class in [0, 1], or another metric of
    `sums.ImageSums`; and positives [C, R], how much ground truth of the class the round has. observed: the metric on
    the test set itself, if the rounds are resamples of it."""

    ap: Floats
    positives: Ints
    observed: Observed | None = None

    def means(self, members: Ints, unannotated: Bools, hidden: Sequence[float] = HIDDEN) -> Floats:
        """Return [R] the mean AP over some classes in each round, NaN if the round has no ground truth of any of them.

        members: the numbers of the classes. unannotated: [C] a mask of the classes without ground truth in the test
        set; they count 0, as they do in the protocol's own mean. For resamples, the value of each class is corrected by
        `Observed.spread`, where `hidden` is explained; without ground truth in the round it has the mean of all."""
        values, usable = self.ap[members], self.positives[members] > 0
        if self.observed is None:
            defined = usable | unannotated[members][:, np.newaxis]
            values, count = np.where(defined, values, 0.0), defined.sum(axis=0)
        else:
            images = self.observed.images[members]
            values = Observed(self.observed.ap[members], images).spread(values, usable, hidden)
            count = np.where(usable.any(axis=0), int(((images > 0) | unannotated[members]).sum()), 0)
        # NumPy adds up a single column in another order than the columns of a wider array, which may change the last
        # digit; so a single column is doubled
        total = np.repeat(values, 2, axis=1).sum(axis=0)[:1] if values.shape[1] == 1 else values.sum(axis=0)
        mean: Floats = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        return mean

    @classmethod
    def none(cls, lists: Weighted) -> Rounds:
        """Return the results of zero rounds, for the classes of `lists`."""
        return cls(np.zeros((len(lists.unannotated), 0)), np.zeros((len(lists.unannotated), 0), dtype=np.int64))

    def classes(self) -> Floats:
        """Return [C, R] the AP of each class, NaN where a round has no ground truth of it."""
        return np.where(self.positives > 0, self.ap, np.nan)


def resample(models: Sequence[Weighted], resampling: Resampling, label: str) -> list[Rounds]:
    """Return the rounds of each model, all on the same resamples of the test set's images (the bootstrap)."""
    if not resampling.rounds:
        return [Rounds.none(model) for model in models]

    def evaluate(some_blocks: Sequence[Block]) -> list[NDArray[Any]]:
        """Return the AP and the ground truth of the first model in these blocks, then those of the next, ..."""
        weights = np.concatenate([block.resamples(models[0].images) for block in some_blocks], axis=1)
        return list(chain.from_iterable(model.ap(weights) for model in models))

    results = over_blocks(evaluate, resampling, label, sum(model.true_positives for model in models))
    columns = zip(results[::2], results[1::2], models, strict=True)
    return [Rounds(ap, positives, model.observed) for ap, positives, model in columns]


def swap_outputs(first: Weighted, second: Weighted, resampling: Resampling, label: str) -> list[Rounds]:
    """Return the rounds of two systems made of two models: of each image, a coin decides which system gets which
    model's output (approximate randomisation). The models' scores need not be on one scale: predictions are ranked by
    their places in the models' ranked lists (`RankedLists.join_outputs`)."""
    if not resampling.rounds:
        return [Rounds.none(first)] * 2
    mixed: Weighted = first.join_outputs(cast(Any, second))  # of the same kind

    def evaluate(some_blocks: Sequence[Block]) -> list[NDArray[Any]]:
        """Return the AP and the ground truth of the first system in these blocks, then those of the second."""
        coins = np.concatenate([block.coins(first.images) for block in some_blocks], axis=1)
        first_side, second_side = mixed.ap_of_sides(coins)
        return [*first_side, *second_side]

    results = over_blocks(evaluate, resampling, label, 2 * mixed.true_positives)
    return [Rounds(ap, positives) for ap, positives in (results[:2], results[2:])]


def over_blocks(
    work: Callable[[Sequence[Block]], Sequence[NDArray[Any]]], resampling: Resampling, label: str, true_positives: int
) -> list[NDArray[Any]]:
    """Return the arrays that `work` makes of all rounds, joined along their last axis, which is the rounds.

    work: a function that makes arrays for a few blocks of rounds, always as many. true_positives: how much work a round
    takes; if it is worth it, several processes share the work. Without rounds, the last axis has the length 0."""
    # without rounds one empty block, so that `work` makes arrays at all
    every = blocks(resampling) or [Block(resampling.seed, number=0, rounds=0)]
    tasks = [every[start : start + BLOCKS_AT_ONCE] for start in range(0, len(every), BLOCKS_AT_ONCE)]
    rounds_done = [*accumulate(sum(block.rounds for block in task) for task in tasks)]
    worth = true_positives * resampling.rounds >= WORTH_FORKING
    with Progress(label, total=resampling.rounds, unit="round") as bar:
        parts = shared_out(work, tasks, worth=worth, tell=lambda number: bar.advance_to(rounds_done[number]))
    return [np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True)]
