"""RoHOI's indices: MRI (equation 1), CRI (equation 2) and what they are made of.

M(c, l) is a model's metric, in percent (0 to 100), on corruption c at level l. Levels of one corruption are a sequence
of M; a benchmark is one such sequence a corruption, of any lengths. Means are exact sums (`statistics.fmean`), so that
no order of corruptions or levels changes a bit of the result.

    >>> values_by_corruption = {"fog": [30.0, 10.0], "snow": [20.0, 20.0]}
    >>> mri(values_by_corruption)
    20.0
    >>> round(cri(values_by_corruption, clean=40.0), 4)
    0.3236

By hand: fog has mean 20 and deviation 10, so (20 / 40) / (1 + ln 11) = 0.14715; snow has (20 / 40) / (1 + ln 1) = 0.5;
their mean is 0.32358.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

Values = Mapping[str, Sequence[float]]
"""By corruption, the metric M at each of its levels (severities), in percent."""


def deviation(values: Iterable[float]) -> float:
    """Return the standard deviation of a whole population (divided by n): a benchmark's levels are no sample."""
    values = list(values)
    average = fmean(values)
    return math.sqrt(fmean((value - average) ** 2 for value in values))


def mri(values_by_corruption: Values) -> float:
    """Return the Mean Robustness Index in percent: the mean over corruptions of the mean over levels (equation 1)."""
    return fmean(fmean(values) for values in values_by_corruption.values())


def cri(values_by_corruption: Values, clean: float) -> float:
    """Return the Composite Robustness Index, the mean of `cri_term` over corruptions (equation 2): 1 if nothing is
    lost, less the more is lost, and the more it differs between levels.

    clean: M on the original images, in percent, above 0. The index is defined for percent: fractions have a hundredth
    of the deviation, and so nearly no penalty for it.
    """
    return fmean(cri_term(values, clean) for values in values_by_corruption.values())


def cri_term(values: Sequence[float], clean: float) -> float:
    """Return the term of one corruption in CRI: mean / clean / (1 + ln(1 + deviation)). values: M at each of its
    levels, in percent; clean: M on the original images."""
    return fmean(values) / clean / (1 + math.log(1 + deviation(values)))


def relative_drop(value: float, clean: float | None) -> float | None:
    """Return by how much `value` is below the value on clean images, in percent of that; negative if it is above, None
    without a clean value above 0."""
    return 100 * (clean - value) / clean if clean else None
