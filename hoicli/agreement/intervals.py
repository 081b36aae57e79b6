"""Intervals of agreement by resampling items: what another sample of items, rated by the same raters, might give.

Each function gives a measure's value where each item counts as often as it was drawn; tests hold it to the measure
itself on items that are repeated so often.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hoicli.agreement.gwet import summed
from hoicli.agreement.measures import distances
from hoicli.records.kit import Floats
from hoicli.resampling.draws import Resampling, blocks
from hoicli.resampling.intervals import FEWEST_IMAGES, TOLERANCE, interval

Resampled = Callable[[Floats, Floats], Floats]
"""(ratings [items, raters], draws [items, R]) -> [R] the measure on each resample, NaN where it has no value."""


def interval_of(
    estimate: float | None, measure: Resampled, ratings: Floats, resampling: Resampling, *, least: int = 2,
    lowest: float = -1.0, highest: float = 1.0,
) -> tuple[float, float] | None:  # fmt: skip
    """The 95 % interval of an estimate on ratings [items, raters], the items in the order of their names.

    Drawn are the items with at least `least` ratings: the others say nothing, and would make each resample's number of
    items a matter of chance. None without an estimate, or with fewer than two such items.
    """
    ratings = ratings[(~np.isnan(ratings)).sum(axis=1) >= least]
    if estimate is None or len(ratings) < FEWEST_IMAGES:
        return None
    rounds = [measure(ratings, block.resamples(len(ratings)).astype(np.float64)) for block in blocks(resampling)]
    return ends_of(estimate, np.concatenate(rounds), lowest=lowest, highest=highest)


def ends_of(estimate: float, rounds: Floats, *, lowest: float, highest: float) -> tuple[float, float] | None:
    """The 95 % interval of an estimate from its resamples [R], None where all are one number: items that are alike (all
    agree, nothing was updated) do not say how much others might differ, and no width would say that they cannot."""
    known = rounds[~np.isnan(rounds)]
    if not len(known) or float(known.max() - known.min()) <= TOLERANCE:
        return None
    return interval(estimate, rounds, lowest=lowest, highest=highest)


def kappa_resampled(ratings: Floats, drawn: Floats) -> Floats:
    """[R] quadratic weighted kappa of two raters, the columns of ratings [items, 2]."""
    both = ~np.isnan(ratings).any(axis=1)
    a, b, drawn = ratings[both, 0], ratings[both, 1], drawn[both]
    if not len(a):
        return np.full(drawn.shape[1], np.nan)
    count = summed(np.ones(len(a)), drawn)
    squares = summed(a * a, drawn) + summed(b * b, drawn)
    expected = count * squares - 2 * summed(a, drawn) * summed(b, drawn)
    missed = count * summed((a - b) ** 2, drawn)
    # Of fractions, what should cancel to 0 may leave a last digit
    varied = expected > 1e-12 * count * squares
    kappa: Floats = 1 - np.divide(missed, expected, out=np.full(len(expected), np.nan), where=varied)
    return kappa


def mean_kappa_resampled(ratings: Floats, drawn: Floats) -> Floats:
    """[R] the mean kappa of every two raters that have one on the resample."""
    raters = ratings.shape[1]
    pairs = [(a, b) for a in range(raters) for b in range(a + 1, raters)]
    total, number = np.zeros(drawn.shape[1]), np.zeros(drawn.shape[1])
    for a, b in pairs:
        kappa = kappa_resampled(ratings[:, [a, b]], drawn)
        known = ~np.isnan(kappa)
        total += np.where(known, kappa, 0.0)
        number += known
    mean: Floats = np.divide(total, number, out=np.full(len(total), np.nan), where=number > 0)
    return mean


def alpha_resampled(ratings: Floats, drawn: Floats, *, measure: str) -> Floats:
    """[R] Krippendorff's alpha of ratings [items, raters] for a level of measurement."""
    given = ~np.isnan(ratings)
    paired = given.sum(axis=1) >= 2
    ratings, given, drawn = ratings[paired], given[paired], drawn[paired]
    if not len(ratings):
        return np.full(drawn.shape[1], np.nan)
    values, code = np.unique(ratings[given], return_inverse=True)
    counts = np.zeros((len(ratings), len(values)))
    np.add.at(counts, (np.nonzero(given)[0], code), 1)
    raters = counts.sum(axis=1)
    total = np.stack([summed(column, drawn) for column in counts.T])  # [values, R]
    pairs = (raters - 1)[:, np.newaxis]
    if measure == "ordinal":
        # The only distance that depends on how often values occur, so on the resample: half the sums of squared
        # distances, by their moments.
        middle = np.cumsum(total, axis=0) - total / 2
        within = raters[:, np.newaxis] * (counts @ middle**2) - (counts @ middle) ** 2
        observed = 2 * np.cumsum(drawn * (within / pairs), axis=0)[-1]
        everything = total.sum(axis=0)
        expected = 2 * (everything * (total * middle**2).sum(axis=0) - (total * middle).sum(axis=0) ** 2)
    else:
        distance = distances(values, total[:, 0], measure)
        observed = summed(((counts @ distance) * counts).sum(axis=1) / (raters - 1), drawn)
        expected = np.zeros(drawn.shape[1])
        for at, row in enumerate(distance):
            expected += total[at] * np.cumsum(total * row[:, np.newaxis], axis=0)[-1]
    ratio = np.divide(observed, expected, out=np.full(len(expected), np.nan), where=expected > 0)
    alpha: Floats = 1 - (total.sum(axis=0) - 1) * ratio
    return alpha


def agreement_resampled(columns: Floats, drawn: Floats, *, levels: int) -> Floats:
    """[R] the agreement in [0, 1] of a model and people's mean, the columns of [items, 2]."""
    both = ~np.isnan(columns).any(axis=1)
    return 1 - mean_resampled(np.abs(columns[both, 0] - columns[both, 1]), drawn[both]) / (levels - 1)


def mean_resampled(values: Floats, drawn: Floats) -> Floats:
    """[R] the mean of values [items]."""
    return share_resampled(values, np.ones(len(values)), drawn)


def share_resampled(part: Floats, whole: Floats, drawn: Floats) -> Floats:
    """[R] the sum of one [items] over that of another, NaN where the second is 0."""
    if not len(part):
        return np.full(drawn.shape[1], np.nan)
    below = summed(whole, drawn)
    share: Floats = np.divide(summed(part, drawn), below, out=np.full(len(below), np.nan), where=below > 0)
    return share
