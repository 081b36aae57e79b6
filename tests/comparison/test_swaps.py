"""Swapped systems against dumps that are really mixed, image by image, and evaluated; and the pass over all oracles
against a pass for each, to the last bit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoicli.comparison.oracle_rounds import OracleRounds
from hoicli.evaluation.selection import choose_protocols
from hoicli.evaluation.tally import subset_classes
from hoicli.records.oracles import ORACLES
from hoicli.resampling.draws import Block, Resampling
from hoicli.resampling.ranked import RankedLists
from hoicli.resampling.rounds import resample, swap_outputs
from tests.comparison.test_comparison import diagnosis
from tests.support import strategies
from tests.support.kernel import HICO, evaluate, tally
from tests.support.project import Data, Record

ROUNDS = 8


def named_parts(crowds: Sequence[Data], ids: Sequence[str]) -> Data:
    """(ground truth, predictions) of crowds as images of these names."""
    both = list(zip(ids, crowds, strict=True))
    truth, found = ([{**part[side][0], "image_id": name} for name, part in both] for side in (0, 1))
    return truth, found


def class_of(record: Record, hoi: Record) -> tuple[str, str]:
    return hoi["verb"], record["labels"][hoi["object"]]


def counted(records: Sequence[Record], seed: int) -> list[Record]:
    """The predictions that have a class, each with a score of its own."""
    known = HICO.interactions
    found = [{**one, "hois": [dict(hoi) for hoi in one["hois"] if class_of(one, hoi) in known]} for one in records]
    hois = [hoi for record in found for hoi in record["hois"]]
    for hoi, score in zip(hois, np.random.default_rng(seed).permutation(len(hois)).tolist(), strict=True):
        hoi["score"] = score / len(hois)
    return found


def scored_by_place(records: Sequence[Record], *, of_class: bool) -> list[Record]:
    """The same predictions; in place of each score, its place among all of them, or among those of its class."""
    lists: dict[object, list[float]] = defaultdict(list)
    for record in records:
        for hoi in record["hois"]:
            lists[class_of(record, hoi) if of_class else "all"].append(hoi["score"])

    def score(record: Record, hoi: Record) -> float:
        score: float = hoi["score"]
        better = sum(other > score for other in lists[class_of(record, hoi) if of_class else "all"])
        return 1 - better / 1000

    return [{**record, "hois": [{**hoi, "score": score(record, hoi)} for hoi in record["hois"]]} for record in records]


def lists_of(truth: Sequence[Record], predictions: Sequence[Record]) -> RankedLists:
    gathered = tally(truth, predictions, choose_protocols(["hico"], "hico"))
    return next(lists for _, _, lists in gathered.ranked_results(HICO, gathered.image_ids))


@pytest.mark.parametrize("of_class", [False, True])
@settings(max_examples=6)
@given(st.lists(strategies.crowds(), min_size=8, max_size=8), st.integers(0, 1000))
def test_swapped_systems_are_mixed_dumps(of_class: bool, crowds: list[Data], seed: int) -> None:
    """Four images, each predicted by two models: their means by place among all predictions, classes by place among
    those of the class."""
    truth, found = named_parts(crowds, ["a", "b", "c", "d"] * 2)
    truth, models = truth[:4], [counted(found[:4], seed), counted(found[4:], seed + 1)]
    first, second = (lists_of(truth, model) for model in models)
    if of_class:
        first, second = replace(first, score=None), replace(second, score=None)
    systems = swap_outputs(first, second, Resampling(ROUNDS, seed), "")
    coins = Block(seed, 0, ROUNDS).swaps(4)
    placed = [scored_by_place(model, of_class=of_class) for model in models]
    for side, times in np.ndindex(2, ROUNDS):
        mixed = [placed[side ^ coin][image] for image, coin in enumerate(coins[:, times].tolist())]
        expected = evaluate(truth, mixed)["hico"]
        np.testing.assert_allclose(systems[side].ap[:, times], expected.ap, atol=1e-14)
        assert systems[side].positives[:, times].tolist() == expected.positives.tolist()


@pytest.mark.parametrize("rounds", [0, 33])
@settings(max_examples=4)
@given(st.lists(strategies.crowds(), min_size=9, max_size=9))
def test_all_oracles_at_once_are_each_of_them(rounds: int, crowds: list[Data]) -> None:
    """Three images with equal scores, each predicted by three models."""
    ids = ["a", "b", "c"]
    truth, predictions = named_parts(crowds, ids * 3)
    runs = [diagnosis(truth[:3], predictions[start : start + 3]) for start in (0, 3, 6)]
    subsets = subset_classes(HICO, runs[0].protocol)
    asked, never = Resampling(rounds, 7), np.zeros(len(HICO.interactions), dtype=bool)
    found = OracleRounds(runs, subsets, [*subsets.values()], HICO, ids).means(asked)
    assert [*found] == ["none", *ORACLES]
    separate = zip(*(run.make_list_ranker(ids)([*found]) for run in runs), strict=True)
    every = zip(*(run.results(HICO) for run in runs), strict=True)
    for means, results, lists in zip(found.values(), every, separate, strict=True):
        assert means.estimates == [result.means(subsets) for result in results]
        systems = [*resample(lists, asked, "")]
        systems += [side for rival in lists[1:] for side in swap_outputs(lists[0], rival, asked, "")]
        shared = [*means.resamples, *(side for rival in means.swaps for side in rival)]
        for one, system in zip(shared, systems, strict=True):
            assert one.tobytes() == np.stack([system.means(rows, never) for rows in subsets.values()]).tobytes()
