"""Intervals and p-values of small samples that can be counted by hand; classes that differ among hundreds that do not
are found, however few they are, without more false alarms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.records.kit import Ints
from hoicli.resampling.comparison import SELDOM, class_chances
from hoicli.resampling.draws import Resampling
from hoicli.resampling.intervals import false_discovery, interval, p_resampled, p_swapped, widening
from hoicli.resampling.ranked import AveragedLists, RankedLists
from hoicli.resampling.rounds import swap_outputs

NAN = math.nan


def test_the_interval_of_a_mean_is_students() -> None:
    """Resamples of n numbers have (n - 1) / n of the variance that the standard error is made of."""
    from scipy.stats import norm, t

    rounds = norm.ppf((np.arange(200_000) + 0.5) / 200_000)  # what resamples of large sets look like, at sd 1
    for images in (2, 3, 4, 5, 8, 31, 32, 60, 5000):
        low, high = interval(7.0, rounds, images, lowest=-math.inf, highest=math.inf) or (0.0, 0.0)
        width = float(t.ppf(0.975, images - 1)) * math.sqrt(images / (images - 1))
        assert (low, high) == pytest.approx((7 - width, 7 + width), rel=0.001)  # the rounds are not quite normal
        assert widening(images) == pytest.approx(width / float(norm.ppf(0.975)), rel=1e-7)


def test_an_interval_is_as_wide_to_both_sides_and_ends_where_values_do() -> None:
    rounds = np.array([NAN, *np.arange(39)[::-1] ** 2 / 100.0, 100.0, NAN])  # not sorted, not symmetrical
    known = rounds[~np.isnan(rounds)]
    reach = float(np.sort(np.abs(known - known.mean()))[-2]) * widening(30)  # one of 20 is further: of 40 rounds, two
    ends = interval(7.0, rounds, 30, lowest=-math.inf, highest=math.inf)
    assert ends == pytest.approx((7 - reach, 7 + reach))
    assert interval(7.0, rounds, 30, lowest=6.5, highest=7.5) == (6.5, 7.5)


def test_an_interval_needs_two_rounds_and_two_images() -> None:
    assert interval(1.0, np.array([NAN, 1.0]), 9, lowest=0, highest=2) is None
    assert interval(1.0, np.array([1.0, NAN, 1.0]), 9, lowest=0, highest=2) == (1.0, 1.0)
    assert interval(1.0, np.array([1.0, 2.0]), 1, lowest=0, highest=2) is None
    assert p_resampled(1.0, np.array([1.0, 2.0]), 1) is None


@given(st.lists(st.floats(-1, 1), min_size=20, max_size=120), st.floats(-1, 1), st.integers(2, 50))
def test_an_interval_excludes_0_only_where_p_is_small(values: list[float], estimate: float, images: int) -> None:
    rounds = np.array(values)
    low, high = interval(estimate, rounds, images, lowest=-math.inf, highest=math.inf) or (0.0, 0.0)
    p = p_resampled(estimate, rounds, images)
    assert p is not None
    assert (p < 0.05) == (low > 0 or high < 0)


@pytest.mark.parametrize(("estimate", "rounds", "p"), [
    (2.0, [1.0, 2.0, 3.0, -2.0], 4 / 5),  # equal counts, of either sign; the arrangement seen is one more
    (-2.0, [1.0, 2.0, 3.0, -2.0], 4 / 5),
    (2.0, [2 - 1e-13, 2 - 1e-11, NAN], 2 / 3),  # closer than 1e-12 is equal
    (5.0, [1.0], 1 / 2),
])  # fmt: skip
def test_p_of_swaps(estimate: float, rounds: list[float], p: float) -> None:
    assert p_swapped(estimate, np.array(rounds)) == p


@pytest.mark.parametrize(("estimate", "rounds", "p"), [
    (2.0, [10.0, 12.0, 14.0, NAN], 3 / 4),  # as far as 2 from their mean of 12: two of three
    (-2.0, [10.0, 12.0, 14.0, NAN], 3 / 4),
    (2.1, [10.0, 12.0, 14.0], 1 / 4),
    (0.0, [3.0, 3.0], 1.0),
])  # fmt: skip
def test_p_of_resamples(estimate: float, rounds: list[float], p: float) -> None:
    assert p_resampled(estimate, np.array(rounds), 10**9) == p


def test_no_rounds_no_p() -> None:
    for rounds in ([], [NAN]):
        assert p_swapped(1.0, np.array(rounds)) is None
        assert p_resampled(1.0, np.array(rounds), 9) is None


def test_false_discoveries_by_hand() -> None:
    """0.01 * 4 / 1, 0.02 * 4 / 2, then 0.03 * 4 / 3 which is less than 0.9 * 4 / 4; never above 1, nor falling."""
    assert false_discovery([0.9, 0.02, 0.03, 0.01]) == pytest.approx([0.9, 0.04, 0.04, 0.04])
    assert false_discovery([0.5, 0.04, 0.04]) == pytest.approx([0.5, 0.06, 0.06])
    assert false_discovery([1.0, 1.0]) == [1.0, 1.0]
    assert false_discovery([]) == []


CLASSES, IMAGES, TRIPLETS = 600, 1500, 15_000
FEW_ROUNDS = Resampling(100, 0)


def detector(rng: np.random.Generator, truth: tuple[Ints, Ints], improved: int) -> RankedLists:
    """Its true positives stand out from twice as many false ones in none but the first `improved` classes."""
    sides = zip(truth, (IMAGES, CLASSES), strict=True)
    image, class_ = (np.concatenate([of, rng.integers(0, many, 2 * TRIPLETS)]) for of, many in sides)
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
