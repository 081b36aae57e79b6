"""Gwet's AC1 and AC2: agreement corrected for chance, steady where nearly all ratings are of one level.

Kappa and alpha fall towards 0 there, as they expect two such raters to agree by chance; Gwet counts as chance only what
comes of items that are hard to rate (Gwet 2008; Handbook of Inter-Rater Reliability, 4th edition, chapters 2 and 3).
"""

from __future__ import annotations

import math

import numpy as np

from hoicli.records.kit import Floats

WEIGHTS = ("identity", "linear", "ordinal", "quadratic")
"""What a near miss counts: nothing (then the coefficient is AC1, else AC2), or the less the farther it is."""

NOT_ON_A_LEVEL = "ratings lie between levels, and AC1 and AC2 are of levels"


def gwet(ratings: Floats, weights: str, levels: int) -> float | None:
    """AC1 or AC2 of ratings [items, raters] that are levels from 0 to levels - 1, NaN where there is none.

    weights: one of WEIGHTS. Observed is the mean over the items with two or more ratings of the weight of a pair of
    them; expected the mean weight times the sum of p (1 - p) over the levels' shares p, divided by levels - 1, where
    each rated item has an equal part in a share. None where no item has two ratings, or chance alone would agree.
    """
    if not (np.count_nonzero(~np.isnan(ratings), axis=1) >= 2).any():
        return None
    value = float(gwet_resampled(ratings, None, weights=weights, levels=levels)[0])
    return None if math.isnan(value) else value


def gwet_resampled(ratings: Floats, drawn: Floats | None, *, weights: str, levels: int) -> Floats:
    """[R] AC1 or AC2 where each item counts as often as `drawn` [items, R] says (None: once, and R is 1), NaN where it
    is not defined."""
    given = ~np.isnan(ratings)
    values, code = np.unique(ratings[given], return_inverse=True)
    counts = np.zeros((len(ratings), len(values)))
    np.add.at(counts, (np.nonzero(given)[0], code), 1)
    raters = counts.sum(axis=1)
    # Whole numbers up to the greatest, which is the weight 1: their sums are exact.
    apart = np.abs(values[:, np.newaxis] - values)
    pairs, most = _whole(apart, weights, levels)
    several = raters >= 2
    of_pairs = np.divide(
        ((counts @ pairs) * counts).sum(axis=1) - most * raters,
        most * raters * (raters - 1),
        out=np.zeros(len(ratings)),
        where=several,
    )
    rated = raters > 0
    shares = np.divide(counts, raters[:, np.newaxis], out=np.zeros_like(counts), where=rated[:, np.newaxis])
    scale = np.arange(levels, dtype=np.float64)
    steps, _ = _whole(scale, weights, levels)
    # A weight depends on the distance alone, which `levels - distance` pairs have, each in two orders but for 0.
    total = math.fsum(float((levels - at) * step * (2 if at else 1)) for at, step in enumerate(steps))
    items = summed(rated, drawn)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = summed(of_pairs, drawn) / summed(several, drawn)
        spread = np.zeros_like(items)
        for level in range(len(values)):
            share = summed(shares[:, level], drawn) / items
            spread += share * (1 - share)
        expected = total / most / (levels * (levels - 1)) * spread
        coefficient: Floats = (observed - expected) / (1 - expected)
    return np.where(np.isfinite(coefficient), coefficient, np.nan)


def _whole(distance: Floats, weights: str, levels: int) -> tuple[Floats, float]:
    """The weights of level distances as whole numbers, and the number that stands for 1."""
    if weights == "identity":
        return (distance == 0).astype(np.float64), 1.0
    far = float(levels - 1)
    if weights == "ordinal":  # by the pairs of levels from one to the other
        return (far * (far + 1) - distance * (distance + 1)) / 2, far * (far + 1) / 2
    if weights == "linear":
        return far - distance, far
    if weights == "quadratic":
        return far * far - distance * distance, far * far
    raise ValueError(f"unknown weights {weights!r}")


def summed(values: Floats | np.typing.NDArray[np.bool_], drawn: Floats | None) -> Floats:
    """[R] the sums of values [items], each counted as often as drawn [items, R] says; None: once.

    Sums of whole numbers are exact; others are added one after the other in the items' order, so that no processor's
    way of adding has a part in the last digit.
    """
    if drawn is None:
        return np.array([math.fsum(values.tolist())])
    values = values.astype(np.float64)
    whole = bool((values == np.rint(values)).all())
    total: Floats = values @ drawn if whole else np.cumsum(drawn * values[:, np.newaxis], axis=0)[-1]
    return total
