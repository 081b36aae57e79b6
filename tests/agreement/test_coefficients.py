"""Kappa, alpha, AC1, AC2 and agreement: cases by hand, published figures, the packages' numbers, and intervals."""

from __future__ import annotations

import math
import warnings
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.agreement.coefficients import (
    LEVELS,
    WEIGHTS,
    Measure,
    agreement,
    alpha,
    estimate_of,
    gwet,
    kappa,
    mean_kappa,
    value_of,
)
from hoicli.records.kit import Floats
from hoicli.resampling.draws import Resampling

NONE = math.nan


def kappa_of(first: Any, second: Any) -> float | None:
    return value_of(kappa, np.stack([first, second], axis=1).astype(np.float64))


def alpha_of(ratings: Any, level: str) -> float | None:
    return value_of(partial(alpha, level=level), np.array(ratings, dtype=np.float64))


def gwet_of(ratings: Any, metric: str, levels: int) -> float | None:
    return value_of(partial(gwet, quadratic=metric == "ac2", levels=levels), np.array(ratings, dtype=np.float64))


MEASURES: dict[str, Measure] = {
    "kappa": lambda ratings, drawn: kappa(ratings[:, :2], drawn),
    "mean kappa": mean_kappa,
    "agreement": lambda ratings, drawn: agreement(ratings[:, :2], drawn, levels=5),
    **{f"alpha {level}": partial(alpha, level=level) for level in LEVELS},
    **{metric: partial(gwet, quadratic=metric == "ac2", levels=5) for metric in WEIGHTS},
}

tables = st.integers(2, 4).flatmap(
    lambda raters: st.lists(
        st.lists(st.sampled_from([NONE, 0.0, 1.0, 2.0, 3.0, 4.0]), min_size=raters, max_size=raters),
        min_size=1,
        max_size=10,
    )
)


def test_kappa_by_hand() -> None:
    # Observed: one difference of 1 in four; expected over the 16 pairs: (1 + 4 + 4 + 1 + ...) counted below.
    a, b = [0, 1, 2, 2], [0, 1, 2, 1]
    expected = sum((x - y) ** 2 for x in a for y in b) / 16
    assert kappa_of(a, b) == pytest.approx(1 - 0.25 / expected)
    assert kappa_of(a, a) == 1.0
    assert kappa_of([0, 4], [4, 0]) == -1.0
    assert kappa_of([0, NONE, 4, 1], [0, 3, 4, NONE]) == 1.0
    assert kappa_of([2, 2], [2, 2]) is None
    assert kappa_of([2, NONE], [NONE, 2]) is None


def test_alpha_by_hand() -> None:
    # Krippendorff's "Computing Krippendorff's Alpha-Reliability", example of two observers and binary data, by hand:
    # coincidences o_01 = 4 of n = 20 values, n_0 = 14, n_1 = 6.
    ratings = [[0, 1], [1, 1], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 1], [1, 0], [1, 0]]
    for level in LEVELS:
        assert alpha_of(ratings, level) == pytest.approx(1 - 19 * 4 / (14 * 6)), level
    assert alpha_of([[1, 1], [2, 2]], "ordinal") == 1.0
    assert alpha_of([[1, 1], [1, 1]], "interval") is None
    assert alpha_of([[1, NONE], [NONE, 2]], "nominal") is None


def test_the_supplements_ordinal_formula_is_interval() -> None:
    """((i - j) / (k - 1))^2 differs from (i - j)^2 by a constant, which alpha does not see."""
    ratings = np.array([[0, 1, 1], [4, 4, 3], [2, 0, 2], [1, 1, NONE]])
    assert alpha_of(ratings / 4, "interval") == pytest.approx(alpha_of(ratings, "interval"))
    assert alpha_of(ratings, "ordinal") != pytest.approx(alpha_of(ratings, "interval"))


def test_agreement_by_hand() -> None:
    measure = partial(agreement, levels=5)
    assert value_of(measure, np.array([[1, 0.5], [3, 4], [2, NONE], [NONE, 3]])) == 1 - (0.5 + 1) / 2 / 4
    assert value_of(measure, np.array([[NONE, 1]])) is None
    assert value_of(measure, np.array([[0.0, 4.0]])) == 0.0


FOUR_RATERS = (
    np.array(
        [
            [1, 1, NONE, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4], [4, 4, 4, 4],
            [1, 1, 2, 1], [2, 2, 2, 2], [NONE, 5, 5, 5], [NONE, NONE, 1, 1], [NONE, NONE, 3, NONE],
        ]
    )
    - 1
)  # fmt: skip
"""cac.raw4raters of Gwet's irrCAC: 12 units, 4 raters, 5 categories, ratings missing (Handbook, 4th edition)."""


@pytest.mark.parametrize(("metric", "expected"), [("ac1", 0.7754440681), ("ac2", 0.9140007236)])
def test_gwets_published_example(metric: str, expected: float) -> None:
    """What irrCAC 0.4.4 (PyPI) prints for these ratings; AC1, 0.77544, is in its documentation, too."""
    assert gwet_of(FOUR_RATERS, metric, 5) == pytest.approx(expected, abs=5e-11)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_none_where_no_item_has_two_ratings(measure: Measure) -> None:
    """However many an item a rater has; nor do resamples without such an item say anything on stderr."""
    for rows in ([[1, NONE], [0, NONE], [NONE, 2]], [[NONE, NONE]], np.empty((0, 2))):
        assert value_of(measure, np.array(rows, dtype=np.float64)) is None
    none, _ = measure(np.array([[1, 1], [0, NONE]]), np.array([[0.0, 1.0], [2.0, 1.0]]))
    assert math.isnan(none)


def gwet_by_loops(rows: list[list[float]], metric: str, levels: int) -> float | None:
    """By pairs of raters: no counts, no sums over levels but that of chance."""

    def weight(a: float, b: float) -> float:
        return float(a == b) if metric == "ac1" else 1 - ((a - b) / (levels - 1)) ** 2

    items = [[value for value in row if not math.isnan(value)] for row in rows]
    pairs = [[weight(a, b) for a, b in permutations(item, 2)] for item in items if len(item) >= 2]
    if not pairs:
        return None
    observed = sum(sum(item) / len(item) for item in pairs) / len(pairs)
    rated = [item for item in items if item]
    shares = [sum(item.count(level) / len(item) for item in rated) / len(rated) for level in range(levels)]
    mean = sum(weight(a, b) for a in range(levels) for b in range(levels)) / levels**2
    chance = mean * levels / (levels - 1) * sum(share * (1 - share) for share in shares)
    return None if chance == 1 else (observed - chance) / (1 - chance)


@given(tables, st.sampled_from(sorted(WEIGHTS)), st.sampled_from([5, 7]))
def test_gwet_by_plain_loops(rows: list[list[float]], metric: str, levels: int) -> None:
    """Levels that nobody used are levels all the same: chance would hit them."""
    expected = gwet_by_loops(rows, metric, levels)
    assert gwet_of(rows, metric, levels) == (None if expected is None else pytest.approx(expected, abs=1e-12))


@given(tables)
def test_kappa_is_scikit_learns(values: list[list[float]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    ratings = np.array(values)
    found = kappa_of(ratings[:, 0], ratings[:, 1])
    both = ~np.isnan(ratings[:, :2]).any(axis=1)
    if not both.any():
        assert found is None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it divides by 0 where both raters are constant
        first, second = ratings[both][:, :2].astype(int).T
        expected = metrics.cohen_kappa_score(first, second, weights="quadratic", labels=list(range(5)))
    assert found == (None if np.isnan(expected) else pytest.approx(expected, abs=1e-12))


@given(tables, st.sampled_from(LEVELS))
def test_alpha_is_the_krippendorff_packages(values: list[list[float]], level: Any) -> None:
    package = pytest.importorskip("krippendorff")
    ratings = np.array(values)
    paired = ratings[(~np.isnan(ratings)).sum(axis=1) >= 2]
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        assert alpha_of(ratings, level) is None
        return
    # Its ordinal distances count every value, those of items with one rating too, so it gets the paired items alone.
    expected = package.alpha(reliability_data=paired.T, level_of_measurement=level)
    assert alpha_of(ratings, level) == pytest.approx(expected, abs=1e-9)


@given(tables, st.lists(st.integers(0, 3), min_size=10, max_size=10), st.sampled_from(sorted(MEASURES)))
def test_an_item_drawn_twice_counts_as_two(rows: list[list[float]], draws: list[int], name: str) -> None:
    """A measure on draws is the measure itself on items that stand there so often, in any order."""
    ratings, drawn = np.array(rows), np.array(draws[: len(rows)])
    (found,) = MEASURES[name](ratings, drawn[:, np.newaxis].astype(np.float64))
    repeated = np.repeat(ratings, drawn, axis=0)
    expected = value_of(MEASURES[name], repeated[::-1])
    assert np.isnan(found) if expected is None else found == pytest.approx(expected, abs=1e-9)


@pytest.fixture(scope="module")
def ratings() -> Floats:
    """600 items, two raters who often agree."""
    rng = np.random.RandomState(7)
    truth = rng.randint(0, 5, 600)
    return np.stack([np.clip(truth + rng.randint(-1, 2, 600), 0, 4) for _ in range(2)], axis=1).astype(np.float64)


MANY = Resampling(2000, 0)


def half_width(measure: Measure, ratings: Floats, **bounds: Any) -> float:
    _, ends = estimate_of(measure, ratings, MANY, **bounds)
    assert ends is not None
    return (ends[1] - ends[0]) / 2


def test_the_interval_of_agreement_is_that_of_a_mean(ratings: Floats) -> None:
    """Agreement is a mean over items: 1.96 standard errors, by the central limit theorem."""
    missed = np.abs(ratings[:, 0] - ratings[:, 1]) / 4
    expected = 1.96 * missed.std() / math.sqrt(len(missed))
    assert half_width(partial(agreement, levels=5), ratings, lowest=0.0) == pytest.approx(expected, rel=0.06)


def test_the_interval_of_kappa_is_the_closed_form(ratings: Floats) -> None:
    """Fleiss, Cohen and Everitt's large-sample standard error of weighted kappa (1969)."""
    a, b = ratings.astype(int).T
    share = np.zeros((5, 5))
    np.add.at(share, (a, b), 1 / len(a))
    level = np.arange(5)
    weight = 1 - (level[:, np.newaxis] - level) ** 2 / 16
    first, second = share.sum(axis=1), share.sum(axis=0)
    observed, expected = (share * weight).sum(), (np.outer(first, second) * weight).sum()
    # mean weight of each level of the one against the other's ratings
    of_first, of_second = weight @ second, weight.T @ first
    spread = share * (weight * (1 - expected) - (of_first[:, np.newaxis] + of_second) * (1 - observed)) ** 2
    correction = (observed * expected - 2 * expected + observed) ** 2
    error = math.sqrt((spread.sum() - correction) / len(a)) / (1 - expected) ** 2
    assert value_of(kappa, ratings) == pytest.approx((observed - expected) / (1 - expected))
    assert half_width(kappa, ratings) == pytest.approx(1.96 * error, rel=0.06)
    # Of two raters who use the levels alike interval alpha is kappa but for a term of 1 / n
    assert half_width(partial(alpha, level="interval"), ratings) == pytest.approx(1.96 * error, rel=0.08)


def test_the_interval_of_ac1_is_the_jackknifes(ratings: Floats) -> None:
    ratings = ratings[:200]
    without = np.array([gwet_of(np.delete(ratings, at, axis=0), "ac1", 5) for at in range(200)], dtype=np.float64)
    error = math.sqrt(199 / 200 * ((without - without.mean()) ** 2).sum())
    measure = partial(gwet, quadratic=False, levels=5)
    assert half_width(measure, ratings, fewest=1) == pytest.approx(1.96 * error, rel=0.06)


@pytest.mark.parametrize("rows", [
    [[1, 2], [1, NONE], [NONE, NONE]],  # one item
    [[1, NONE], [1, NONE]],
    [[0, 0], [1, 1], [4, 4]],  # alike: [1, 1] of a kappa would say that no other items could be disagreed on
])  # fmt: skip
def test_items_that_say_nothing_of_others_have_no_interval(rows: list[list[float]]) -> None:
    for measure in (kappa, partial(agreement, levels=5)):
        assert estimate_of(measure, np.array(rows), MANY)[1] is None
