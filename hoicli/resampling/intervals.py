"""From rounds to an interval and a p-value.

The interval is the estimate, plus and minus how far 95 % of its resamples are from *their own mean*. The percentiles of
the resamples themselves would not do: the AP of a resample is biased upwards (an image's true positives come in twos
and threes, and the precision envelope takes the largest of everything), on HICO-DET by two standard errors, so that the
estimate itself may lie outside. What the interval covers is the mAP to be expected of test sets of this size with the
same classes, which is what published numbers are of. docs/intervals.md counts how often it does."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hoicli.records.kit import Floats

TAIL = 20
"""One value in TAIL lies outside a 95 % interval."""
FEWEST_IMAGES = 2
"""Images with ground truth that an interval needs: one image says nothing of how images differ."""
STUDENT = (1.5895338, 2.5558500, 2.8225076, 2.3722710, 1.9599640)
"""Student's t for 95 %, as a polynomial in 1 / (degrees of freedom): Abramowitz and Stegun 26.7.5. From 31 on it is
right to the eighth digit; for one it would be 11 % too small."""
FEW = (
    12.706204736, 4.302652730, 3.182446305, 2.776445105, 2.570581836, 2.446911851, 2.364624252, 2.306004135,
    2.262157163, 2.228138852, 2.200985160, 2.178812830, 2.160368656, 2.144786688, 2.131449546, 2.119905299,
    2.109815578, 2.100922040, 2.093024054, 2.085963447, 2.079613845, 2.073873068, 2.068657610, 2.063898562,
    2.059538553, 2.055529439, 2.051830516, 2.048407142, 2.045229642, 2.042272456,
)  # fmt: skip
"""Student's t for 95 % with 1, 2, ... degrees of freedom. (SciPy has it, and takes half a second to import.)"""
TOLERANCE = 1e-12
"""Values closer than this count as equal: rounding must not decide a count of ties."""


def widening(images: int) -> float:
    """Return the factor by which an interval must be wider than the spread of resamples of so many images (at least 2).

    Resamples of n images show only (n - 1) / n of their variance. That the variance of a few is itself uncertain,
    Student's t makes up for."""
    degrees = images - 1
    student = FEW[degrees - 1] if degrees <= len(FEW) else float(np.polyval(STUDENT, 1 / degrees))
    return student / STUDENT[-1] * math.sqrt(images / degrees)  # STUDENT[-1]: of infinitely many images


def _distances(rounds: Floats, images: int) -> Floats | None:
    """Return the distances of the rounds' estimates from their mean, times `widening`, ascending. rounds: [R] the
    estimate on each resample; NaN is left out. None with fewer than two estimates, or FEWEST_IMAGES images."""
    estimates = np.sort(rounds[~np.isnan(rounds)])
    if len(estimates) < 2 or images < FEWEST_IMAGES:
        return None
    # the last of the running sums: sorted and added up one by one, which np.sum does not do, so that neither the
    # order of rounds nor the machine changes the last digits
    mean = float(np.cumsum(estimates)[-1]) / len(estimates)
    distances: Floats = np.sort(np.abs(estimates - mean)) * widening(images)
    return distances


def interval(
    estimate: float, rounds: Floats, images: int, *, lowest: float, highest: float
) -> tuple[float, float] | None:
    """Return the 95 % interval of an estimate as (lower end, upper end), cut off at `lowest` and `highest`.

    rounds: [R] the estimate on each resample, NaN without one; images: how many the estimate comes from. None if fewer
    than two rounds have an estimate, or with fewer than FEWEST_IMAGES images. From 20 rounds on, the interval excludes
    0 exactly if `p_resampled` is below 0.05."""
    distances = _distances(rounds, images)
    if distances is None:
        return None
    reach = float(distances[-max(len(distances) // TAIL, 1)])  # one distance in TAIL is at least as large
    # `p_resampled` counts a distance that nearly equals the estimate as equal; then the interval ends exactly at 0
    if reach < abs(estimate) <= reach + TOLERANCE:
        reach = abs(estimate)
    return max(estimate - reach, lowest), min(estimate + reach, highest)


def p_resampled(estimate: float, rounds: Floats, images: int) -> float | None:
    """Return the two-sided p-value of "no difference", from resamples: the share of them that are as far from their
    mean as the estimate is from 0 (the bootstrap; Efron and Tibshirani 1993, chapter 16). None if `interval` is None.
    """
    distances = _distances(rounds, images)
    return None if distances is None else _share_at_least(distances, abs(estimate))


def p_swapped(estimate: float, rounds: Floats) -> float | None:
    """Return the two-sided p-value of "no difference", from swaps: the share of them with as large a difference
    (approximate randomisation, Noreen 1989). rounds: [R] the difference between two systems that the models' outputs
    are swapped between at random, NaN without one. None if no round has one."""
    defined = rounds[~np.isnan(rounds)]
    return _share_at_least(np.abs(defined), abs(estimate)) if len(defined) else None


def _share_at_least(distances: Floats, observed: float) -> float:
    """Return the share of values of at least `observed` among the distances and `observed` itself; it is never 0."""
    return (1 + int((distances >= observed - TOLERANCE).sum())) / (1 + len(distances))


def false_discovery(p: Sequence[float]) -> list[float]:
    """Return Benjamini and Hochberg's q of each p-value: the share of false alarms among all with at most that p.

    SciPy's `false_discovery_control` divides first, which gives other last digits, and takes half a second to import.
    """
    p_values = np.asarray(p, dtype=np.float64)
    order = np.argsort(-p_values, kind="stable")  # from the largest p, whose rank is len(p), to the smallest
    q = np.empty(len(p_values))
    # p * len(p) / rank, then the smallest of it and of those of all larger p
    q[order] = np.minimum.accumulate(np.minimum(p_values[order] * len(p) / np.arange(len(p), 0, -1), 1.0))
    q_values: list[float] = q.tolist()
    return q_values
