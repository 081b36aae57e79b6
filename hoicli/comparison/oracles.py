"""The mAP of several models under every oracle, on the same resamples and swaps.

Of a round nothing is kept but the mean of each subset. Oracles with the same ranked lists (`applied.ASKING`) are one
piece of work, and pieces and rounds are shared out to the processors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import NamedTuple

import numpy as np

from hoicli.diagnosis.applied import ASKING, ORACLES
from hoicli.diagnosis.oracles import Diagnosis
from hoicli.evaluation.tally import Mean
from hoicli.io.progress import Progress
from hoicli.records.kit import Floats, Ints
from hoicli.resampling.draws import Block, Resampling, blocks
from hoicli.resampling.pieces import Times
from hoicli.resampling.ranked import Prepared, RankedLists
from hoicli.resampling.rounds import Rounds, shared_among
from hoicli.vocabulary.labels import Vocabulary

_EASY = (*ASKING, "false_positive")
_HARD = tuple((oracle,) for oracle in ORACLES if oracle not in _EASY)
TOGETHER = (*_HARD[: len(_HARD) // 2], _EASY, *_HARD[len(_HARD) // 2 :])
"""All oracles, and none, as pieces of work, with the largest in the middle, where two processes meet. The lists of
false_positive, which are nothing but true positives, are hardly any."""


class UnderOracle(NamedTuple):
    """Under one oracle: estimates, each model's means of S subsets; resamples [models, S, R] those on R rounds; swaps
    [models - 1, 2, S, R] those of the two systems that the first model and each other one make."""

    estimates: Sequence[Sequence[Mean]]
    resamples: Floats
    swaps: Floats


_Lists = list[list[Prepared]]
"""Of each model, by ranking; then those of the first mixed with each other's."""


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
        ranked = [model.ranked(self.image_ids) for model in self.models]
        rivals = len(self.models) - 1

        def work(share: Sequence[tuple[int, Block]]) -> dict[int, list[Floats]]:
            prepared = {number: _prepared([list(of(TOGETHER[number])) for of in ranked]) for number in dict(share)}
            done: dict[int, list[Floats]] = {number: [] for number in prepared}
            rounds = sum(block.rounds for _, block in share)
            with Progress("types of errors: resamples and swaps", total=rounds, unit="round") as bar:
                for block in sorted({block for _, block in share}, key=lambda block: block.number):
                    times, coins = self._drawn(block)
                    for number in (number for number, other in share if other == block):
                        done[number].append(self._round(prepared[number], times, coins))
                        bar.advance(block.rounds)
            return done

        every = blocks(resampling) or [Block(resampling.seed, 0, 0)]
        hits = sum(int(model.counts()["true_positive"].sum()) for model in self.models)
        shares = shared_among(
            work, list(product(range(len(TOGETHER)), every)), hits * len(TOGETHER) * resampling.rounds
        )
        found = {}
        for number, oracles in enumerate(TOGETHER):
            rounds = np.concatenate([part for share in shares for part in share.get(number, ())], axis=-1)
            for place, oracle in enumerate(oracles):
                alone, mixed = np.split(rounds[place], [len(self.models)])
                swaps = mixed.reshape(rivals, 2, *mixed.shape[1:])
                found[oracle] = UnderOracle(estimates[oracle], alone, swaps)
        return {oracle: found[oracle] for oracle in estimates}

    def _drawn(self, block: Block) -> tuple[Times, Times]:
        """The resamples and the swaps of a block."""
        coins = block.swaps(len(self.image_ids))
        return Times(block.resamples(len(self.image_ids))), Times(np.concatenate((1 - coins, coins)))

    def _round(self, prepared: _Lists, times: Times, coins: Times) -> Floats:
        """[oracles, models + 2 * rivals, S, R] the means on a block's resamples, then with its swaps."""
        systems = [
            [
                self._means(Rounds(*one, observed))
                for lists in own
                for one, observed in zip(lists.ap(times), lists.observed, strict=True)
            ]
            for own in prepared[: len(self.models)]
        ]
        for rival in prepared[len(self.models) :]:
            sides = [side for lists in rival for side in lists.ap_of_sides(coins)]
            systems += [[self._means(Rounds(*side[at])) for side in sides] for at in (0, 1)]
        means: Floats = np.stack([np.stack(system) for system in systems], axis=1)
        return means

    def _means(self, rounds: Rounds) -> Floats:
        """[S, R] of each subset, without the classes that have no ground truth in a round."""
        never = np.zeros(len(rounds.ap), dtype=bool)
        return np.stack([rounds.means(members, never) for members in self.drawn])


def _prepared(models: Sequence[Sequence[RankedLists]]) -> _Lists:
    """The lists of each model after the same oracles, ready for rounds."""
    alone = [_by_ranking(lists) for lists in models]
    mixed = [[Prepared(_mixed(*pair)) for pair in zip(alone[0], rival, strict=True)] for rival in alone[1:]]
    return [*(list(map(Prepared, model)) for model in alone), *mixed]


def _by_ranking(lists: Sequence[RankedLists]) -> list[list[RankedLists]]:
    """Neighbours that share a ranking together."""
    return [list(same) for _, same in groupby(lists, key=lambda one: id(one.hit))]


def _mixed(first: Sequence[RankedLists], second: Sequence[RankedLists]) -> list[RankedLists]:
    """Two models' lists of one ranking each as lists of one ranking."""
    lists = first[0].interleaved(second[0])
    return [lists.asking_both(*pair) for pair in zip(first, second, strict=True)]
