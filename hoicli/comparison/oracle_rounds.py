"""The mAP of several models under every oracle, on the same resamples and swaps.

Only the mean of each subset is kept of a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from hoicli.diagnosis.repairs import ASKING, Diagnosis
from hoicli.evaluation.tally import Mean
from hoicli.io.forks import shared_out
from hoicli.records.kit import Floats, Ints
from hoicli.records.oracles import ORACLES
from hoicli.resampling.draws import Blocks, Resampling
from hoicli.resampling.pieces import Times
from hoicli.resampling.ranked import Prepared, RankedLists
from hoicli.resampling.rounds import WORTH_FORKING, Observed, Rounds, over_blocks
from hoicli.vocabulary.labels import Vocabulary

SHARING = (ASKING, *((oracle,) for oracle in ORACLES if oracle not in ASKING))
"""All oracles, and none; those with the same ranked lists together. The others have the ground truth of "none"."""
EVERY = tuple(chain.from_iterable(SHARING))


class UnderOracle(NamedTuple):
    """Means under one oracle. estimates: of S subsets, for each model; resamples [models, S, R]: on R resamples; swaps
    [models - 1, 2, S, R]: of the two systems that arise when the first model and another swap their outputs."""

    estimates: Sequence[Sequence[Mean]]
    resamples: Floats
    swaps: Floats


class OneRanking(NamedTuple):
    """Ranked lists prepared for rounds, of oracles that share one ranking. models: each model's lists; observed: what
    they give on the test set itself; mixed: the first model's lists merged with those of each other model."""

    models: Sequence[Prepared]
    observed: Sequence[Sequence[Observed]]
    mixed: Sequence[Prepared]

    @classmethod
    def from_lists(cls, models: Sequence[Sequence[RankedLists]]) -> OneRanking:
        """Prepare the lists of one ranking. models: each model's lists, the first model's first."""
        first, *rivals = models
        prepared = [Prepared(lists) for lists in models]
        return cls(
            prepared,
            [lists.observed for lists in prepared],
            [Prepared(_merge_rankings(first, rival)) for rival in rivals],
        )


@dataclass(frozen=True)
class OracleRounds:
    """The rounds of several models under every oracle; each model swaps its output with the first. subsets: the classes
    of each mean; subsets_drawn: those of them that are averaged in rounds."""

    models: Sequence[Diagnosis]
    subsets: Mapping[str, Ints]
    subsets_drawn: Sequence[Ints]
    vocabulary: Vocabulary
    image_ids: Sequence[str]

    def means(self, resampling: Resampling) -> dict[str, UnderOracle]:
        """Return the means under each oracle by its name, "none" first."""
        results = zip(*(model.results(self.vocabulary) for model in self.models), strict=True)
        estimates = {of_models[0].oracle: [result.means(self.subsets) for result in of_models] for of_models in results}
        ranked = [model.make_list_ranker(self.image_ids) for model in self.models]

        def prepare(oracles: Sequence[str]) -> OneRanking:
            return OneRanking.from_lists([[*rank(oracles)] for rank in ranked])

        hits = len(EVERY) * sum(int(model.counts()["true_positive"].sum()) for model in self.models)
        prepared = shared_out(prepare, SHARING, worth=hits * resampling.rounds >= WORTH_FORKING)

        def work(block_range: Blocks) -> list[Floats]:
            return self._round(prepared, block_range)

        label = "types of errors: resamples and swaps"
        rounds = dict(zip(EVERY, over_blocks(work, resampling, label, hits), strict=True))
        means_by_oracle = {}
        for oracle, means in estimates.items():
            unmixed, mixed = np.split(rounds[oracle], [len(self.models)])
            means_by_oracle[oracle] = UnderOracle(
                means, unmixed, mixed.reshape(len(self.models) - 1, 2, *mixed.shape[1:])
            )
        return means_by_oracle

    def _round(self, prepared: Sequence[OneRanking], block_range: Blocks) -> list[Floats]:
        """Return for each oracle of EVERY the means [models + 2 * rivals, S, R] on some blocks of rounds: each model's
        on the resamples, then for each rival of the first model those of the two systems that swapped outputs."""
        images, means = len(self.image_ids), list[Floats]()
        times, coins = Times(block_range.resamples(images)), Times(block_range.coins(images))
        model_positives = [lists.positives(times) for lists in prepared[0].models]  # those of "none" come first
        mixed_positives = [lists.positives(coins) for lists in prepared[0].mixed]
        for models, all_observed, mixed in prepared:
            systems = [
                [
                    self._means(Rounds(*counts, observed))
                    for counts, observed in zip(lists.ap(times, positives), observed_lists, strict=True)
                ]
                for lists, observed_lists, positives in zip(models, all_observed, model_positives, strict=True)
            ]
            for lists, positives in zip(mixed, mixed_positives, strict=True):
                sides = lists.ap_of_sides(coins, positives)
                systems += [[self._means(Rounds(*pair[system])) for pair in sides] for system in (0, 1)]
            means += map(np.stack, zip(*systems, strict=True))
        return means

    def _means(self, rounds: Rounds) -> Floats:
        """Return [S, R] the mean of each subset in each round, without classes that lack ground truth in that round."""
        never = np.zeros(len(rounds.ap), dtype=bool)
        return np.stack([rounds.means(members, never) for members in self.subsets_drawn])


def _merge_rankings(first: Sequence[RankedLists], second: Sequence[RankedLists]) -> list[RankedLists]:
    """Return the lists of two models, each with one ranking of its own, as lists that share one ranking."""
    lists = first[0].interleave(second[0])
    return [lists.with_truth_of_both(*pair) for pair in zip(first, second, strict=True)]
