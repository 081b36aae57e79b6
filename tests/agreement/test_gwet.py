"""AC1 and AC2: a published example, the package's numbers, and plain loops."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.agreement.gwet import WEIGHTS, gwet, gwet_resampled
from hoicli.agreement.measures import krippendorff_alpha

NONE = math.nan

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

PUBLISHED = 0.77544
"""Its AC1, as irrCAC's documentation prints it (pa 0.81818, pe 0.19032): for R in the vignette "Calculating
Chance-corrected Agreement Coefficients", for Python in irrCAC.raw."""

OF_THE_PACKAGE = {
    "identity": 0.7754440681,
    "linear": 0.8587391364,
    "ordinal": 0.8989397699,
    "quadratic": 0.9140007236,
}
"""What irrCAC 0.4.4 (PyPI) prints for these ratings and weights."""


def test_the_published_example() -> None:
    value = gwet(FOUR_RATERS, "identity", 5)
    assert value is not None
    assert round(value, 5) == PUBLISHED
    for weights, expected in OF_THE_PACKAGE.items():
        assert gwet(FOUR_RATERS, weights, 5) == pytest.approx(expected, abs=5e-11)


def weight(a: float, b: float, weights: str, levels: int) -> float:
    apart, far = abs(a - b), levels - 1
    if weights == "identity":
        return float(apart == 0)
    if weights == "ordinal":
        return 1 - math.comb(int(apart) + 1, 2) / math.comb(levels, 2)
    return 1 - (apart / far) ** (1 if weights == "linear" else 2)


def by_loops(rows: list[list[float]], weights: str, levels: int) -> float | None:
    """By pairs of raters: no counts, no sums over levels but that of chance."""
    items = [[value for value in row if not math.isnan(value)] for row in rows]
    pairs = [[weight(a, b, weights, levels) for a, b in permutations(item, 2)] for item in items if len(item) >= 2]
    if not pairs:
        return None
    observed = sum(sum(item) / len(item) for item in pairs) / len(pairs)
    rated = [item for item in items if item]
    shares = [sum(item.count(level) / len(item) for item in rated) / len(rated) for level in range(levels)]
    mean = sum(weight(a, b, weights, levels) for a in range(levels) for b in range(levels)) / levels**2
    chance = mean * levels / (levels - 1) * sum(share * (1 - share) for share in shares)
    return None if chance == 1 else (observed - chance) / (1 - chance)


tables = st.integers(1, 4).flatmap(
    lambda raters: st.lists(
        st.lists(st.sampled_from([NONE, 0.0, 1.0, 2.0, 3.0, 4.0]), min_size=raters, max_size=raters),
        min_size=1,
        max_size=9,
    )
)


@given(tables, st.sampled_from(WEIGHTS), st.sampled_from([5, 7]))
def test_by_plain_loops(rows: list[list[float]], weights: str, levels: int) -> None:
    """Levels that nobody used are levels all the same: chance would hit them."""
    expected = by_loops(rows, weights, levels)
    found = gwet(np.array(rows), weights, levels)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


@given(tables, st.sampled_from(WEIGHTS), st.lists(st.integers(0, 3), min_size=9, max_size=9))
def test_an_item_drawn_twice_counts_as_two(rows: list[list[float]], weights: str, draws: list[int]) -> None:
    ratings, drawn = np.array(rows), np.array(draws[: len(rows)])
    (found,) = gwet_resampled(ratings, drawn[:, np.newaxis].astype(np.float64), weights=weights, levels=5)
    repeated = np.repeat(ratings, drawn, axis=0)
    expected = gwet(repeated, weights, 5) if len(repeated) else None
    assert np.isnan(found) if expected is None else found == pytest.approx(expected, abs=1e-12)


def test_where_nearly_all_say_the_same() -> None:
    """The paradox it is made for: 98 of 100 items alike, and alpha says there is no agreement."""
    ratings: Any = np.zeros((100, 2))
    ratings[0, 0] = ratings[1, 1] = 1
    alpha, ac1 = krippendorff_alpha(ratings, "nominal"), gwet(ratings, "identity", 2)
    assert alpha is not None
    assert ac1 is not None
    assert alpha < 0 < 0.97 < ac1
    assert gwet(np.zeros((3, 2)), "quadratic", 5) == 1.0
    assert gwet(np.array([[1.0, NONE]]), "identity", 5) is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weights", WEIGHTS)
def test_none_where_no_item_has_two_ratings(weights: str) -> None:
    """However many an item a rater has; nor do resamples without such an item say anything on stderr."""
    assert gwet(np.array([[1, NONE], [0, NONE], [NONE, 2]]), weights, 3) is None
    assert gwet(np.array([[NONE, NONE]]), weights, 3) is None
    assert gwet(np.empty((0, 2)), weights, 3) is None
    none, some = gwet_resampled(
        np.array([[1, 1], [0, NONE]]), np.array([[0.0, 1.0], [2.0, 1.0]]), weights=weights, levels=3
    )
    assert math.isnan(none)
    assert some == 1
