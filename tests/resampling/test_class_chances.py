"""Classes that differ among hundreds that do not: found, however few they are, without more false alarms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.records.kit import Ints
from hoicli.resampling.comparison import SELDOM, class_chances
from hoicli.resampling.draws import Resampling
from hoicli.resampling.intervals import false_discovery, p_swapped
from hoicli.resampling.ranked import AveragedLists, RankedLists
from hoicli.resampling.rounds import swap_outputs

CLASSES, IMAGES, TRIPLETS = 600, 1500, 15_000
FEW_ROUNDS = Resampling(100, 0)


def detector(rng: np.random.Generator, truth: tuple[Ints, Ints], improved: int) -> RankedLists:
    """Its true positives stand out from twice as many false ones in none but the first `improved` classes."""
    image, class_ = (
        np.concatenate([of, rng.integers(0, many, 2 * TRIPLETS)])
        for of, many in zip(truth, (IMAGES, CLASSES), strict=True)
    )
    hit = np.arange(len(image)) < TRIPLETS
    score = rng.normal(size=len(image)) + np.where(class_ < improved, 4.0, 0.0) * hit + rng.normal(size=IMAGES)[image]
    order = np.lexsort((-score, class_))
    bounds = np.searchsorted(class_[order], np.arange(CLASSES + 1))
    columns = hit[order], image[order], bounds, *truth
    return RankedLists(*columns, IMAGES, PROTOCOLS["hico"].grid, score=score[order])


def world(seed: int, improved: int) -> tuple[RankedLists, RankedLists]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, IMAGES, TRIPLETS), rng.integers(0, CLASSES, TRIPLETS)
    return detector(rng, truth, 0), detector(rng, truth, improved)


def differences(models: tuple[RankedLists, RankedLists]) -> dict[int, float]:
    before, after = (model.observed.ap for model in models)
    return dict(enumerate((after - before).tolist()))


def chances(models: tuple[RankedLists, RankedLists], asked: Resampling) -> list[float]:
    return [*class_chances(*models, differences(models), asked, "").values()]


def test_one_class_of_600_is_found_from_100_rounds() -> None:
    models = world(0, 1)
    p = chances(models, FEW_ROUNDS)
    q = false_discovery(p)
    assert [number for number in range(CLASSES) if q[number] < 0.05] == [0]
    assert p[0] == 1 / 12_801  # no swap of 100, 200, ... 12,800 was as large
    assert chances((AveragedLists.average([models[0]]), AveragedLists.average([models[1]])), FEW_ROUNDS) == p


def test_classes_that_many_swaps_reach_keep_their_p() -> None:
    """That of the first swaps, by place in the classes' own lists."""
    models = world(0, 1)
    first, second = (replace(model, score=None) for model in models)
    one, other = swap_outputs(first, second, FEW_ROUNDS, "")
    found, swaps = differences(models), other.ap - one.ap
    plain = [p_swapped(found[number], swaps[number]) for number in found]
    refined = chances(models, FEW_ROUNDS)
    seldom = [number for number, p in enumerate(plain) if p is not None and p < (SELDOM + 1) / 101]
    assert [number for number in range(CLASSES) if refined[number] != plain[number]] == seldom
    assert class_chances(*models, {}, FEW_ROUNDS, "") == {}


def test_every_swap_asked_for_is_made_where_few_are_as_large() -> None:
    models = world(0, 1)
    two = {number: differences(models)[number] for number in (0, 1)}  # 40 swaps would be enough for both
    p = class_chances(*models, two, Resampling(800, 0), "")
    assert p[0] == 1 / 801
    assert p[1] > 0.05
    assert class_chances(*models, two, Resampling(40, 0), "")[0] == 1 / 41


@pytest.mark.long
@pytest.mark.parametrize("improved", [0, 1, 5, 30])
def test_improved_classes_are_found_and_5_percent_of_what_is_found_is_false(improved: int) -> None:
    """300 worlds in all. The false discovery rate is the mean over worlds of the false among what is found."""
    worlds, found, false = 75, 0, 0.0
    for seed in range(worlds):
        q = np.array(false_discovery(chances(world(seed, improved), FEW_ROUNDS)))
        differ = np.flatnonzero(q < 0.05)
        found += int((differ < improved).sum())
        false += float((differ >= improved).sum()) / max(len(differ), 1)
    # 0.05, and twice its standard error where a world has one false find or none
    assert false / worlds <= 0.05 + 2 * (0.05 * 0.95 / worlds) ** 0.5
    if improved:
        assert found / (worlds * improved) > 0.9
