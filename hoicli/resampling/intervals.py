"""From rounds to an interval and a p-value.

The interval is the estimate with the spread of its resamples *about their own mean*. The percentiles of the resamples
themselves would not do: the AP of a resample is biased upwards (an image's true positives come in twos and threes, and
the precision envelope takes the largest of everything), on HICO-DET by two standard errors, so that the estimate itself
may lie outside. Their spread is right. What the interval covers is the mAP to be expected of a test set of this size,
which is what published numbers are of (tests/comparison/test_comparison.py draws test sets from a population and
counts).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hoicli.records.kit import Floats

LEVEL = 0.95
FEWEST_IMAGES = 2
"""Images with ground truth that an interval needs: one image says nothing of how images differ."""
TOLERANCE = 1e-12
"""Two differences of means closer than this are one: rounding must not decide a count of ties."""


def quantile(ordered: Floats, share: float) -> float:
    """Of sorted values, interpolated between the two nearest (type 7 of Hyndman and Fan, the common one)."""
    place = share * (len(ordered) - 1)
    lower = int(place)
    upper = min(lower + 1, len(ordered) - 1)
    return float(ordered[lower] + (place - lower) * (ordered[upper] - ordered[lower]))


def interval(estimate: float, rounds: Floats, *, lowest: float, highest: float) -> tuple[float, float] | None:
    """The 95 % interval of an estimate, cut at the least and the largest value there can be.

    rounds [R]: the estimate on each resample, NaN where it has none there. None when fewer than two have one.
    """
    known = np.sort(rounds[~np.isnan(rounds)])
    if len(known) < 2:
        return None
    centre = float(np.cumsum(known)[-1]) / len(known)
    tail = (1 - LEVEL) / 2
    low, high = (estimate + quantile(known, share) - centre for share in (tail, 1 - tail))
    return max(low, lowest), min(high, highest)


def p_resampled(estimate: float, rounds: Floats) -> float | None:
    """Two-sided p of a difference being none, from the bootstrap: how often a resampled difference is as far from the
    resamples' mean as the estimate is from 0 (Efron and Tibshirani 1993, chapter 16). None without resamples."""
    known = rounds[~np.isnan(rounds)]
    if not len(known):
        return None
    centre = float(np.cumsum(np.sort(known))[-1]) / len(known)
    return _share(np.abs(known - centre), abs(estimate))


def p_swapped(estimate: float, rounds: Floats) -> float | None:
    """Two-sided p of a difference being none, from swaps: how often it is as large with the output of a random half of
    the images swapped (approximate randomisation, Noreen 1989). None where no round has a difference."""
    known = rounds[~np.isnan(rounds)]
    return _share(np.abs(known), abs(estimate)) if len(known) else None


def _share(distances: Floats, observed: float) -> float:
    """The observed arrangement is one of those that may come up, so p is never 0."""
    return (1 + int((distances >= observed - TOLERANCE).sum())) / (1 + len(distances))


def false_discovery(p: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's q of each p: the share of false alarms among all that are at least as striking.

    SciPy's `false_discovery_control` divides before it multiplies, which gives other last digits, and takes half a
    second to import.
    """
    given = np.asarray(p, dtype=np.float64)
    order = np.argsort(-given, kind="stable")
    q = np.empty(len(given))
    q[order] = np.minimum.accumulate(np.minimum(given[order] * len(p) / np.arange(len(p), 0, -1), 1.0))
    found: list[float] = q.tolist()
    return found
