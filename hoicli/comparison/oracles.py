"""The mAP of several models under every oracle, on the same resamples and swaps.

Of a round nothing is kept but the mean of each subset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from hoicli.diagnosis.oracles import ASKING, Diagnosis
from hoicli.evaluation.tally import Mean
from hoicli.io.workers import shared_out
from hoicli.records.kit import Floats, Ints
from hoicli.records.oracles import ORACLES
from hoicli.resampling.draws import Blocks, Resampling
from hoicli.resampling.pieces import Times
from hoicli.resampling.ranked import Prepared, RankedLists
from hoicli.resampling.rounds import WORTH_FORKING, Observed, Rounds, over_blocks
from hoicli.vocabulary.labels import Vocabulary

SHARING = (ASKING, *((oracle,) for oracle in ORACLES if oracle not in ASKING))
"""All oracles, and none; those that share their ranked lists together. The others share the ground truth with none."""
EVERY = tuple(chain.from_iterable(SHARING))


class UnderOracle(NamedTuple):
    """Under one oracle: estimates, each model's means of S subsets; resamples [models, S, R] those on R rounds; swaps
    [models - 1, 2, S, R] those of the two systems that the first model and each other one make."""

    estimates: Sequence[Sequence[Mean]]
    resamples: Floats
    swaps: Floats


class OneRanking(NamedTuple):
    """Lists of one ranking, ready for rounds: of each model, and what they are on the test set itself; those of the
    first mixed with each other's."""

    models: Sequence[Prepared]
    observed: Sequence[Sequence[Observed]]
    mixed: Sequence[Prepared]

    @classmethod
    def from_lists(cls, models: Sequence[Sequence[RankedLists]]) -> OneRanking:
        """models: of each its lists."""
        first, *rivals = models
        prepared = [Prepared(lists) for lists in models]
        return cls(
            prepared,
            [each.observed for each in prepared],
            [Prepared(_merge_rankings(first, rival)) for rival in rivals],
        )


@dataclass(frozen=True)
class OracleRounds:
    """Models, each of which swaps its output with the first. Means are over `subsets`; `subsets_drawn` has the classes
    of each that are averaged in rounds."""

    models: Sequence[Diagnosis]
    subsets: Mapping[str, Ints]
    subsets_drawn: Sequence[Ints]
    vocabulary: Vocabulary
    image_ids: Sequence[str]

    def means(self, resampling: Resampling) -> dict[str, UnderOracle]:
        """By oracle, "none" first."""
        results = zip(*(model.results(self.vocabulary) for model in self.models), strict=True)
        estimates = {of[0].oracle: [result.means(self.subsets) for result in of] for of in results}
        ranked = [model.make_list_ranker(self.image_ids) for model in self.models]

        def prepare(oracles: Sequence[str]) -> OneRanking:
            return OneRanking.from_lists([[*after(oracles)] for after in ranked])

        hits = len(EVERY) * sum(int(model.counts()["true_positive"].sum()) for model in self.models)
        prepared = shared_out(prepare, SHARING, worth=hits * resampling.rounds >= WORTH_FORKING)

        def work(block_range: Blocks) -> list[Floats]:
            return self._round(prepared, block_range)

        label = "types of errors: resamples and swaps"
        rounds = dict(zip(EVERY, over_blocks(work, resampling, label, hits), strict=True))
        means_by_oracle = {}
        for oracle, means in estimates.items():
            alone, mixed = np.split(rounds[oracle], [len(self.models)])
            means_by_oracle[oracle] = UnderOracle(
                means, alone, mixed.reshape(len(self.models) - 1, 2, *mixed.shape[1:])
            )
        return means_by_oracle

    def _round(self, prepared: Sequence[OneRanking], block_range: Blocks) -> list[Floats]:
        """Return of each of EVERY, [models + 2 * rivals, S, R]: the means on some blocks' resamples, then with its
        swaps."""
        images, means = len(self.image_ids), list[Floats]()
        times, coins = Times(block_range.resamples(images)), Times(block_range.coins(images))
        of_models = [lists.positives(times) for lists in prepared[0].models]
        of_mixed = [lists.positives(coins) for lists in prepared[0].mixed]
        for models, every, mixed in prepared:
            systems = [
                [
                    self._means(Rounds(*counts, observed))
                    for counts, observed in zip(lists.ap(times, requested), of, strict=True)
                ]
                for lists, of, requested in zip(models, every, of_models, strict=True)
            ]
            for lists, requested in zip(mixed, of_mixed, strict=True):
                sides = lists.ap_of_sides(coins, requested)
                systems += [[self._means(Rounds(*side[at])) for side in sides] for at in (0, 1)]
            means += map(np.stack, zip(*systems, strict=True))
        return means

    def _means(self, rounds: Rounds) -> Floats:
        """[S, R] of each subset, without the classes that have no ground truth in a round."""
        never = np.zeros(len(rounds.ap), dtype=bool)
        return np.stack([rounds.means(members, never) for members in self.subsets_drawn])


def _merge_rankings(first: Sequence[RankedLists], second: Sequence[RankedLists]) -> list[RankedLists]:
    """Two models' lists of one ranking each as lists of one ranking."""
    lists = first[0].interleave(second[0])
    return [lists.asking_both(*pair) for pair in zip(first, second, strict=True)]
