"""Spearman's rank correlation of two series of ratings, with its p and interval (SHOE supplement, section 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from hoicli.records.kit import Floats

FEWEST_TO_CORRELATE = 3
"""The fewest items for a rank correlation."""
PERMUTATIONS = 10_000
"""How many permutations Spearman's p is computed from."""
_BLOCK = 1 << 21
"""How many ranks are permuted at a time."""


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho over `items`, its 95 % interval and its two-sided permutation p. rho and p are None where a side
    does not vary, and below three items: any two items rise or fall together, so their rho is 1 or -1 whatever was
    measured. The interval is None below four items, and where rho is 1 or -1."""

    rho: float | None
    low: float | None
    high: float | None
    p: float | None
    items: int


def spearman(first: Floats, second: Floats, *, permutations: int = PERMUTATIONS, seed: int = 0) -> Correlation:
    """Return Spearman's rank correlation of two columns of ratings, over the items of both; ties share their mean rank.

    p is the share of permutations whose |rho| reaches the observed one. The observed order is counted among them, so p
    is never 0: (1 + hits) / (1 + permutations)."""
    from scipy.stats import rankdata

    both = ~(np.isnan(first) | np.isnan(second))
    count = int(both.sum())
    # Doubled and centred, ranks are whole numbers of mean 0: sums are exact, and equal correlations compare equal.
    a, b = (np.rint(2 * rankdata(side[both]) - (count + 1)).astype(np.int64) for side in (first, second))
    scale = math.sqrt(int(a @ a) * int(b @ b)) if count >= FEWEST_TO_CORRELATE else 0.0
    if scale == 0:
        return Correlation(rho=None, low=None, high=None, p=None, items=count)
    product = int(a @ b)
    rho = max(-1.0, min(1.0, product / scale))
    random = np.random.RandomState(seed)  # the legacy generator, as its numbers never change between versions
    hits, remaining = 0, permutations
    while remaining:
        rows = min(remaining, max(1, _BLOCK // count))
        shuffled = a[random.random_sample((rows, count)).argsort(axis=1, kind="stable")]
        hits += int((np.abs(shuffled @ b) >= abs(product)).sum())
        remaining -= rows
    low, high = fisher_interval(rho, count)
    return Correlation(rho, low, high, (1 + hits) / (1 + permutations), count)


def fisher_interval(rho: float, items: int) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a correlation by Fisher's z: tanh(atanh rho -+ z / sqrt(items - 3)).

    0.799 over 500 items gives [0.765, 0.829] (supplement, 6.3). None below four items, and for 1 and -1, where z is
    infinite: an interval without width would say that nothing else is possible."""
    if items <= 3 or abs(rho) == 1:
        return None, None
    half = NormalDist().inv_cdf(0.975) / math.sqrt(items - 3)
    return math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)
