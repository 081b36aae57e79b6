"""The mAP of several models after every oracle, which repairs the errors of one type, on the same resamples and swaps.

A round is one resample of the images, or one random swap of two models' outputs; only the subsets' means are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from hoicli.diagnosis.repairs import TRUTH_ORACLES, Diagnosis
from hoicli.evaluation.tally import Mean
from hoicli.io.forks import shared_out
from hoicli.records.kit import Floats, Ints
from hoicli.records.oracles import ORACLES
from hoicli.resampling.draws import Block, Resampling
from hoicli.resampling.lists import Observed
from hoicli.resampling.pieces import Times
from hoicli.resampling.ranked import Prepared
from hoicli.resampling.rounds import WORTH_FORKING, Rounds, over_blocks
from hoicli.vocabulary.labels import Vocabulary

SHARING = (TRUTH_ORACLES, *((oracle,) for oracle in ORACLES if oracle not in TRUTH_ORACLES))
"""The names of all oracles and "none" (no oracle), those together that leave the ranked lists as they are and change
the ground truth alone. Each other oracle changes the lists, and has the ground truth of "none"."""
EVERY = tuple(chain.from_iterable(SHARING))
"""The names of all oracles and "none", in one tuple."""


class UnderOracle(NamedTuple):
    """The mAP of several models and S subsets after one oracle. estimates: for each model its means on the test set
    itself; resamples [models, S, R]: the means on each of R resamples; swaps [models - 1, 2, S, R]: for the first model
    and each other one, the means of the two systems that arise when the two swap their outputs on random images."""

    estimates: Sequence[Sequence[Mean]]
    resamples: Floats
    swaps: Floats


class OneRanking(NamedTuple):
    """The ranked lists of a few oracles that share one ranking, prepared for rounds. models: each model's lists, one
    for each oracle; observed: what these give on the test set itself; mixed: the first model's lists merged with those
    of each other model, so that the two can swap outputs."""

    models: Sequence[Prepared]
    observed: Sequence[Sequence[Observed]]
    mixed: Sequence[Prepared]


@dataclass(frozen=True)
class OracleRounds:
    """Computes the rounds of several models after every oracle; each model swaps its outputs with the first.

    models: their diagnosed errors. subsets: the class numbers of each subset, by name; averaged: the same without the
    classes that are left out of means. image_ids: all images."""

    models: Sequence[Diagnosis]
    subsets: Mapping[str, Ints]
    averaged: Sequence[Ints]
    vocabulary: Vocabulary
    image_ids: Sequence[str]

    def means(self, resampling: Resampling) -> dict[str, UnderOracle]:
        """Return the means after each oracle, by its name; "none" (no oracle) comes first."""
        estimates = {}
        for of_models in zip(*(model.results(self.vocabulary) for model in self.models), strict=True):
            estimates[of_models[0].oracle] = [result.means(self.subsets) for result in of_models]
        rankers = [model.make_list_ranker(self.image_ids) for model in self.models]

        def prepare(oracles: Sequence[str]) -> OneRanking:
            """Return the ranked lists of all models after some oracles that share one ranking, prepared for rounds."""
            first, *rivals = [[*rank_lists(oracles)] for rank_lists in rankers]
            models = [Prepared(lists) for lists in (first, *rivals)]
            mixed = []
            for rival in rivals:
                # all lists of a model share its ranking, so those of two models that are mixed do, too
                lists = first[0].join_outputs(rival[0])
                mixed.append(Prepared([lists.with_truth_of_both(*pair) for pair in zip(first, rival, strict=True)]))
            return OneRanking(models, [lists.observed for lists in models], mixed)

        hits = len(EVERY) * sum(int(model.counts()["true_positive"].sum()) for model in self.models)
        prepared = shared_out(prepare, SHARING, worth=hits * resampling.rounds >= WORTH_FORKING)
        compute_rounds = partial(self._round_means, prepared)
        label = "types of errors: resamples and swaps"
        rounds = dict(zip(EVERY, over_blocks(compute_rounds, resampling, label, hits), strict=True))
        means_by_oracle = {}
        for oracle, means in estimates.items():
            # the first axis is the systems: each model, then two for each pair of the first model and another one
            resamples, swaps = np.split(rounds[oracle], [len(self.models)])
            swaps_by_rival = swaps.reshape(len(self.models) - 1, 2, *swaps.shape[1:])
            means_by_oracle[oracle] = UnderOracle(means, resamples, swaps_by_rival)
        return means_by_oracle

    def _round_means(self, prepared: Sequence[OneRanking], blocks: Sequence[Block]) -> list[Floats]:
        """Return, for each oracle of EVERY, the means [systems, S, R] on some blocks of R rounds. The systems are each
        model on the resamples, then for each model but the first the two that arise when it swaps outputs with it."""
        image_count, means = len(self.image_ids), list[Floats]()
        # how often each image counts; and 1 for each output that the first of two mixed systems has, 0 for the others
        times = Times(np.concatenate([block.resamples(image_count) for block in blocks], axis=1))
        coins = Times(np.concatenate([block.coins(image_count) for block in blocks], axis=1))
        # Most oracles have the ground truth of "none", which is the first entry: it is counted once for all.
        model_positives = [lists.positives(times) for lists in prepared[0].models]
        mixed_positives = [lists.positives(coins) for lists in prepared[0].mixed]
        for ranking in prepared:
            systems: list[list[Floats]] = []  # for each system the means [S, R] of each oracle of this ranking
            for lists, observed, positives in zip(ranking.models, ranking.observed, model_positives, strict=True):
                aps_by_oracle = zip(lists.ap(times, positives), observed, strict=True)
                resampled = [Rounds(ap, truth, observed=of_oracle) for (ap, truth), of_oracle in aps_by_oracle]
                systems.append([*map(self._subset_means, resampled)])
            for lists, positives in zip(ranking.mixed, mixed_positives, strict=True):
                sides_by_oracle = lists.ap_of_sides(coins, positives)  # of each of the two systems (AP, ground truth)
                systems += [
                    [self._subset_means(Rounds(*first)) for first, _ in sides_by_oracle],
                    [self._subset_means(Rounds(*second)) for _, second in sides_by_oracle],
                ]
            means += map(np.stack, zip(*systems, strict=True))
        return means

    def _subset_means(self, rounds: Rounds) -> Floats:
        """Return [S, R] the mean of each subset in each round, without classes that lack ground truth in that round."""
        counts_0 = np.zeros(len(rounds.ap), dtype=bool)  # no class counts 0 in a mean because it lacks ground truth
        return np.stack([rounds.means(classes, counts_0) for classes in self.averaged])
