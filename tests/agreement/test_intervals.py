"""Intervals over resampled items: the measures on repeated items, and closed forms."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.agreement import intervals
from hoicli.agreement.gwet import gwet, gwet_resampled
from hoicli.agreement.measures import MEASURES, agreement, krippendorff_alpha, pairwise_kappa, quadratic_kappa
from hoicli.resampling.draws import Resampling

NONE = math.nan

tables = st.lists(
    st.lists(st.sampled_from([NONE, 0.0, 1.0, 2.5, 4.0]), min_size=3, max_size=3), min_size=2, max_size=10
)
draws = st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=10, max_size=10)


def close(found: float, expected: float | None) -> None:
    assert np.isnan(found) if expected is None else found == pytest.approx(expected, abs=1e-9)


@given(tables, draws)
def test_an_item_drawn_twice_counts_as_two(rows: list[list[float]], drawn: list[list[int]]) -> None:
    """Every measure on draws is the measure itself on items that stand there so often."""
    ratings, weights = np.array(rows), np.array(drawn[: len(rows)], dtype=np.float64)
    for at in range(weights.shape[1]):
        repeated = np.repeat(ratings, weights[:, at].astype(int), axis=0)
        a, b = repeated[:, 0], repeated[:, 1]
        close(intervals.kappa_resampled(ratings[:, :2], weights)[at], quadratic_kappa(a, b))
        known = [kappa for _, _, kappa, _ in pairwise_kappa(repeated) if kappa is not None]
        mean = sum(known) / len(known) if known else None
        close(intervals.mean_kappa_resampled(ratings, weights)[at], mean)
        close(intervals.agreement_resampled(ratings[:, :2], weights, levels=5)[at], agreement(a, b, 5)[0])
        for measure in MEASURES:
            alpha = krippendorff_alpha(repeated, measure)
            close(intervals.alpha_resampled(ratings, weights, measure=measure)[at], alpha)


@pytest.fixture(scope="module")
def ratings() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """600 items, two raters who often agree."""
    rng = np.random.RandomState(7)
    truth = rng.randint(0, 5, 600)
    return np.stack([np.clip(truth + rng.randint(-1, 2, 600), 0, 4) for _ in range(2)], axis=1).astype(np.float64)


MANY = Resampling(2000, 0)


def half_width(ends: tuple[float, float] | None) -> float:
    assert ends is not None
    return (ends[1] - ends[0]) / 2


def test_the_interval_of_agreement_is_that_of_a_mean(
    ratings: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> None:
    """Agreement is a mean over items: 1.96 standard errors, by the central limit theorem."""
    missed = np.abs(ratings[:, 0] - ratings[:, 1]) / 4
    expected = 1.96 * missed.std() / math.sqrt(len(missed))
    estimate, _ = agreement(ratings[:, 0], ratings[:, 1], 5)
    ends = intervals.interval_of(estimate, partial(intervals.agreement_resampled, levels=5), ratings, MANY, lowest=0.0)
    assert half_width(ends) == pytest.approx(expected, rel=0.06)


def test_the_interval_of_kappa_is_the_closed_form(ratings: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
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
    kappa = quadratic_kappa(ratings[:, 0], ratings[:, 1])
    assert kappa == pytest.approx((observed - expected) / (1 - expected))
    assert half_width(intervals.interval_of(kappa, intervals.kappa_resampled, ratings, MANY)) == pytest.approx(
        1.96 * error, rel=0.06
    )
    # Of two raters who use the levels alike interval alpha is kappa but for a term of 1 / n
    alpha = krippendorff_alpha(ratings, "interval")
    measure = partial(intervals.alpha_resampled, measure="interval")
    assert half_width(intervals.interval_of(alpha, measure, ratings, MANY)) == pytest.approx(1.96 * error, rel=0.08)


def test_the_interval_of_ac1_is_the_jackknifes(ratings: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    ratings = ratings[:200]
    without = np.array([gwet(np.delete(ratings, at, axis=0), "identity", 5) for at in range(200)], dtype=np.float64)
    error = math.sqrt(199 / 200 * ((without - without.mean()) ** 2).sum())
    measure = partial(gwet_resampled, weights="identity", levels=5)
    ends = intervals.interval_of(gwet(ratings, "identity", 5), measure, ratings, MANY, least=1)
    assert half_width(ends) == pytest.approx(1.96 * error, rel=0.06)


def test_too_few_items_have_no_interval() -> None:
    one = np.array([[1.0, 2.0], [1.0, NONE], [NONE, NONE]])
    assert intervals.interval_of(0.5, intervals.kappa_resampled, one, MANY) is None
    assert intervals.interval_of(None, intervals.kappa_resampled, one[[0, 0]], MANY) is None


def test_items_that_are_alike_have_no_interval() -> None:
    """[1, 1] of a kappa would say that no other items could be disagreed on."""
    alike = np.array([[0.0, 0.0], [1.0, 1.0], [4.0, 4.0]])
    for measure in (intervals.kappa_resampled, partial(intervals.agreement_resampled, levels=5)):
        assert intervals.interval_of(1.0, measure, alike, MANY) is None
