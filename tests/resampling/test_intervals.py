"""Intervals and p-values of small samples that can be counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hoicli.resampling.intervals import false_discovery, interval, p_resampled, p_swapped, quantile

NAN = math.nan


@pytest.mark.parametrize("values", [[3.0], [1.0, 2.0], [0.0, 1.0, 5.0, 6.0], [1.0, 1.0, 4.0]])
@pytest.mark.parametrize("share", [0.0, 0.025, 0.3, 0.5, 0.975, 1.0])
def test_a_quantile_is_numpys(values: list[float], share: float) -> None:
    assert quantile(np.array(values), share) == pytest.approx(float(np.quantile(values, share)))


def test_an_interval_is_the_estimate_with_the_resamples_spread_about_their_mean() -> None:
    rounds = np.array([NAN, *np.arange(39)[::-1] ** 2 / 100.0, 100.0, NAN])  # not sorted, not symmetrical
    known = rounds[~np.isnan(rounds)]
    low, high = (7 + np.quantile(known, share) - known.mean() for share in (0.025, 0.975))
    assert interval(7.0, rounds, lowest=-math.inf, highest=math.inf) == pytest.approx((low, high))
    assert interval(7.0, rounds, lowest=6.5, highest=7.5) == (6.5, 7.5)


def test_an_interval_needs_two_rounds() -> None:
    assert interval(1.0, np.array([NAN, 1.0]), lowest=0, highest=2) is None
    assert interval(1.0, np.array([1.0, NAN, 1.0]), lowest=0, highest=2) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("estimate", "rounds", "p"),
    [
        (2.0, [1.0, 2.0, 3.0, -2.0], 4 / 5),  # equal counts, of either sign; the arrangement seen is one more
        (-2.0, [1.0, 2.0, 3.0, -2.0], 4 / 5),
        (2.0, [2 - 1e-13, 2 - 1e-11, NAN], 2 / 3),  # closer than 1e-12 is equal
        (5.0, [1.0], 1 / 2),
    ],
)
def test_p_of_swaps(estimate: float, rounds: list[float], p: float) -> None:
    assert p_swapped(estimate, np.array(rounds)) == p


@pytest.mark.parametrize(
    ("estimate", "rounds", "p"),
    [
        (2.0, [10.0, 12.0, 14.0, NAN], 3 / 4),  # as far as 2 from their mean of 12: two of three
        (-2.0, [10.0, 12.0, 14.0, NAN], 3 / 4),
        (2.1, [10.0, 12.0, 14.0], 1 / 4),
        (0.0, [3.0, 3.0], 1.0),
    ],
)
def test_p_of_resamples(estimate: float, rounds: list[float], p: float) -> None:
    assert p_resampled(estimate, np.array(rounds)) == p


def test_no_rounds_no_p() -> None:
    for rounds in ([], [NAN]):
        assert p_swapped(1.0, np.array(rounds)) is None
        assert p_resampled(1.0, np.array(rounds)) is None


def test_false_discoveries_by_hand() -> None:
    """0.01 * 4 / 1, 0.02 * 4 / 2, then 0.03 * 4 / 3 which is less than 0.9 * 4 / 4; never above 1, nor falling."""
    assert false_discovery([0.9, 0.02, 0.03, 0.01]) == pytest.approx([0.9, 0.04, 0.04, 0.04])
    assert false_discovery([0.5, 0.04, 0.04]) == pytest.approx([0.5, 0.06, 0.06])
    assert false_discovery([1.0, 1.0]) == [1.0, 1.0]
    assert false_discovery([]) == []
