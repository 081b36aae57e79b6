"""The pass over all oracles against a pass for each, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoicli.comparison.oracle_rounds import OracleRounds
from hoicli.evaluation.tally import subset_classes
from hoicli.records.oracles import ORACLES
from hoicli.resampling.draws import Resampling
from hoicli.resampling.rounds import resample, swap_outputs
from tests.comparison.test_comparison import diagnosis
from tests.support import strategies
from tests.support.kernel import HICO

Data = tuple[list[dict[str, Any]], list[dict[str, Any]]]


@pytest.mark.parametrize("rounds", [0, 33])
@settings(max_examples=4)
@given(st.lists(strategies.crowds(), min_size=9, max_size=9))
def test_all_oracles_at_once_are_each_of_them(rounds: int, crowds: list[Data]) -> None:
    """Three images with equal scores, each predicted by three models."""
    ids = ["a", "b", "c"]
    parts = [
        [{**part[0], "image_id": name} for part, name in zip(side, ids * 3, strict=True)]
        for side in zip(*crowds, strict=True)
    ]
    truth, predictions = parts
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
