"""The mAP of several models under every oracle, on the same resamples and swaps.

Of a round nothing is kept but the mean of each subset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from hoicli.diagnosis.oracles import ASKING, ORACLES, Diagnosis
from hoicli.evaluation.tally import Mean
from hoicli.records.kit import Floats, Ints
from hoicli.resampling.draws import Block, Resampling
from hoicli.resampling.pieces import Times
from hoicli.resampling.ranked import Prepared, RankedLists
from hoicli.resampling.rounds import Rounds, over_blocks
from hoicli.vocabulary.labels import Vocabulary

EVERY = (*ASKING, *(oracle for oracle in ORACLES if oracle not in ASKING))
"""All oracles, and none; those that share their ranked lists are neighbours."""


class UnderOracle(NamedTuple):
    """Under one oracle: estimates, each model's means of S subsets; resamples [models, S, R] those on R rounds; swaps
    [models - 1, 2, S, R] those of the two systems that the first model and each other one make."""

    estimates: Sequence[Sequence[Mean]]
    resamples: Floats
    swaps: Floats


@dataclass(frozen=True)
class OracleRounds:
    """Models, each of which swaps its output with the first. Means are over `subsets`; `drawn` has the classes of each
    that are averaged in rounds."""

    models: Sequence[Diagnosis]
    subsets: Mapping[str, Ints]
    drawn: Sequence[Ints]
    vocabulary: Vocabulary
    image_ids: Sequence[str]

    def means(self, resampling: Resampling) -> dict[str, UnderOracle]:
        """By oracle, "none" first."""
        results = zip(*(model.results(self.vocabulary) for model in self.models), strict=True)
        estimates = {of[0].oracle: [result.means(self.subsets) for result in of] for of in results}
        lists = [model.ranked(self.image_ids)(EVERY) for model in self.models]
        prepared = _prepared(zip(*lists, strict=True))  # forks share it

        def work(block: Block) -> list[Floats]:
            return self._round(prepared, block)

        hits = sum(int(model.counts()["true_positive"].sum()) for model in self.models)
        label = "types of errors: resamples and swaps"
        rounds = dict(zip(EVERY, over_blocks(work, resampling, label, hits * len(EVERY)), strict=True))
        found = {}
        for oracle, means in estimates.items():
            alone, mixed = np.split(rounds[oracle], [len(self.models)])
            found[oracle] = UnderOracle(means, alone, mixed.reshape(len(self.models) - 1, 2, *mixed.shape[1:]))
        return found

    def _round(self, prepared: Sequence[Sequence[Prepared]], block: Block) -> list[Floats]:
        """Of each of EVERY, [models + 2 * rivals, S, R]: the means on a block's resamples, then with its swaps."""
        images = len(self.image_ids)
        times, coins = Times(block.resamples(images)), Times(block.coins(images))
        found: list[Floats] = []
        for lists in prepared:
            systems = [
                [self._means(Rounds(*one, observed)) for one, observed in zip(own.ap(times), own.observed, strict=True)]
                for own in lists[: len(self.models)]
            ]
            for rival in lists[len(self.models) :]:
                sides = rival.ap_of_sides(coins)
                systems += [[self._means(Rounds(*side[at])) for side in sides] for at in (0, 1)]
            found += map(np.stack, zip(*systems, strict=True))
        return found

    def _means(self, rounds: Rounds) -> Floats:
        """[S, R] of each subset, without the classes that have no ground truth in a round."""
        never = np.zeros(len(rounds.ap), dtype=bool)
        return np.stack([rounds.means(members, never) for members in self.drawn])


def _prepared(lists: Iterable[Sequence[RankedLists]]) -> list[list[Prepared]]:
    """For each ranking, of every model its lists, ready for rounds; then those of the first mixed with each other's.
    lists: of the models after each oracle."""
    made = []
    for _, same in groupby(lists, key=lambda of_models: id(of_models[0].hit)):
        first, *rivals = zip(*same, strict=True)
        made.append([Prepared(each) for each in (first, *rivals, *(_mixed(first, rival) for rival in rivals))])
    return made


def _mixed(first: Sequence[RankedLists], second: Sequence[RankedLists]) -> list[RankedLists]:
    """Two models' lists of one ranking each as lists of one ranking."""
    lists = first[0].interleaved(second[0])
    return [lists.asking_both(*pair) for pair in zip(first, second, strict=True)]
