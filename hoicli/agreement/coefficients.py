"""How well raters agree, corrected for chance or in percent: quadratic weighted kappa, Krippendorff's alpha, Gwet's AC1
and AC2, and the agreement of a model with people, each with its interval over resampled items.

A measure is a function of ratings [items, raters], NaN where a rater did not rate an item, and of `drawn` [items, R],
how often each item counts. It gives [R] values, NaN where it is not defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np

from hoicli.records.kit import Bools, Floats
from hoicli.resampling.draws import Resampling, blocks
from hoicli.resampling.intervals import FEWEST_IMAGES, TOLERANCE, interval

LEVELS = ("nominal", "ordinal", "interval", "ratio")
"""The levels of measurement that alpha knows."""
WEIGHTS = {"ac1": "identity", "ac2": "quadratic"}
"""What a near miss counts for Gwet: nothing, or as much as for kappa."""

Measure = Callable[[Floats, Floats], Floats]
"""(ratings [items, raters], drawn [items, R]) -> [R] values."""

Ends = tuple[float, float] | None
"""Of an interval; None where there is none."""


def value_of(measure: Measure, ratings: Floats) -> float | None:
    """The measure of ratings, None where it is not defined."""
    value = float(measure(ratings, np.ones((len(ratings), 1)))[0])
    return None if math.isnan(value) else value


def estimate_of(
    measure: Measure, ratings: Floats, resampling: Resampling | None, *, least: int = 2, lowest: float = -1.0,
    highest: float = 1.0,
) -> tuple[float | None, Ends]:  # fmt: skip
    """The measure of ratings, and its 95 % interval: what another sample of items, rated by the same raters, might
    give.

    Drawn are the items with at least `least` ratings: the others say nothing, and would make each resample's number of
    items a matter of chance. There is no interval with fewer than two of them, nor where all resamples give one number:
    items that are alike (all agree) do not say how much others might differ.
    """
    value = value_of(measure, ratings)
    ratings = ratings[(~np.isnan(ratings)).sum(axis=1) >= least]
    if resampling is None or value is None or len(ratings) < FEWEST_IMAGES:
        return value, None
    drawn = (block.resamples(len(ratings)).astype(np.float64) for block in blocks(resampling))
    rounds = np.concatenate([measure(ratings, each) for each in drawn])
    known = rounds[~np.isnan(rounds)]
    if not len(known) or float(known.max() - known.min()) <= TOLERANCE:
        return value, None
    return value, interval(value, rounds, len(ratings), lowest=lowest, highest=highest)


def kappa(ratings: Floats, drawn: Floats) -> Floats:
    """Quadratic weighted kappa of two raters, over the items that both rated (Fleiss and Cohen 1973).

    With weights (i - j)^2 the counts fold into moments: 1 - mean (a - b)^2 / (mean a^2 + mean b^2 - 2 mean a mean b),
    whatever the number of levels. Not defined where both always give one and the same rating.
    """
    both = ~np.isnan(ratings).any(axis=1)
    a, b, drawn = ratings[both, 0], ratings[both, 1], drawn[both]
    count = drawn.sum(axis=0)
    squares = _summed(a * a, drawn) + _summed(b * b, drawn)
    expected = count * squares - 2 * _summed(a, drawn) * _summed(b, drawn)
    # Of fractions, what should cancel to 0 may leave a last digit
    return 1 - _ratio(count * _summed((a - b) ** 2, drawn), expected, expected > 1e-12 * count * squares)


def mean_kappa(ratings: Floats, drawn: Floats) -> Floats:
    """The mean kappa of every two raters that have one."""
    total, number = np.zeros(drawn.shape[1]), np.zeros(drawn.shape[1])
    for a, b in combinations(range(ratings.shape[1]), 2):
        found = kappa(ratings[:, [a, b]], drawn)
        known = ~np.isnan(found)
        total += np.where(known, found, 0.0)
        number += known
    return _ratio(total, number, number > 0)


def alpha(ratings: Floats, drawn: Floats, *, level: str) -> Floats:
    """Krippendorff's alpha for a level of measurement (of LEVELS): 1 - observed / expected disagreement.

    Items with fewer than two ratings say nothing. The distance of two values is 0 or 1 (nominal), the number of ratings
    between them (ordinal), their difference (interval), or that over their sum (ratio), squared. The SHOE supplement
    prints ((i - j) / (k - 1))^2 under the name ordinal: that is interval, alpha being blind to constant factors.
    """
    paired = (~np.isnan(ratings)).sum(axis=1) >= 2
    values, counts = _counted(ratings[paired])
    drawn, raters = drawn[paired], counts.sum(axis=1)
    if not len(values):
        return np.full(drawn.shape[1], math.nan)
    total = np.stack([_summed(column, drawn) for column in counts.T])
    if level == "ordinal":
        # The only distance that depends on how often values occur, so on the resample: half the sums of squared
        # distances, by their moments. Between two values are half the ratings at either end.
        middle = np.cumsum(total, axis=0) - total / 2
        within = raters[:, np.newaxis] * (counts @ middle**2) - (counts @ middle) ** 2
        observed = 2 * np.cumsum(drawn * (within / (raters - 1)[:, np.newaxis]), axis=0)[-1]
        expected = 2 * (total.sum(axis=0) * (total * middle**2).sum(axis=0) - (total * middle).sum(axis=0) ** 2)
    else:
        distance = _distances(values, level)
        observed = _summed(((counts @ distance) * counts).sum(axis=1) / (raters - 1), drawn)
        expected = np.zeros(drawn.shape[1])
        for at, row in enumerate(distance):
            expected += total[at] * np.cumsum(total * row[:, np.newaxis], axis=0)[-1]
    coefficient: Floats = 1 - (total.sum(axis=0) - 1) * _ratio(observed, expected, expected > 0)
    return coefficient


def _distances(values: Floats, level: str) -> Floats:
    """[V, V] squared distances of values [V]."""
    difference: Floats = values[:, np.newaxis] - values
    if level == "nominal":
        return 1.0 - np.eye(len(values))
    if level == "ratio":
        sums = values[:, np.newaxis] + values
        difference = _ratio(difference, sums, sums != 0, 0.0)
    return np.square(difference)


def gwet(ratings: Floats, drawn: Floats, *, levels: int, quadratic: bool) -> Floats:
    """Gwet's AC1, or AC2 with `quadratic` weights, of ratings that are levels from 0 to levels - 1 (Gwet 2008; Handbook
    of Inter-Rater Reliability, 4th edition, chapters 2 and 3).

    Kappa and alpha fall towards 0 where nearly all ratings are of one level, as they expect two such raters to agree by
    chance; Gwet counts as chance only what comes of items that are hard to rate. Observed is the mean over the items
    with two or more ratings of the weight of a pair of them; expected the mean weight times the sum of p (1 - p) over
    the levels' shares p, divided by levels - 1, where each rated item has an equal part in a share.
    """

    def weight(distance: Floats) -> Floats:
        """Of pairs of levels, as whole numbers up to `most`, so that sums are exact."""
        return most - distance * distance if quadratic else (distance == 0).astype(np.float64)

    most = float((levels - 1) ** 2) if quadratic else 1.0
    values, counts = _counted(ratings)
    raters = counts.sum(axis=1)
    several, rated = raters >= 2, raters > 0
    within = ((counts @ weight(values[:, np.newaxis] - values)) * counts).sum(axis=1) - most * raters
    of_pairs = _ratio(within, most * raters * (raters - 1), several, 0.0)
    shares = _ratio(counts, raters[:, np.newaxis], rated[:, np.newaxis], 0.0)
    # A weight depends on the distance alone, which `levels - distance` pairs have, each in two orders but for 0.
    steps = weight(np.arange(levels, dtype=np.float64))
    total = math.fsum(float((levels - at) * step * (2 if at else 1)) for at, step in enumerate(steps))
    items = _summed(rated, drawn)
    spread = np.zeros_like(items)
    for level in range(len(values)):
        share = _ratio(_summed(shares[:, level], drawn), items, items > 0)
        spread += share * (1 - share)
    pairable = _summed(several, drawn)
    observed = _ratio(_summed(of_pairs, drawn), pairable, pairable > 0)
    expected = total / most / (levels * (levels - 1)) * spread
    return _ratio(observed - expected, 1 - expected, expected != 1)


def agreement(columns: Floats, drawn: Floats, *, levels: int) -> Floats:
    """The agreement in [0, 1] of a model and people's mean, the columns of [items, 2], over the items that both have:
    1 - mean |model - mean human| / (levels - 1)."""
    both = ~np.isnan(columns).any(axis=1)
    apart = np.abs(columns[both, 0] - columns[both, 1])
    return 1 - share(np.stack([apart, np.ones(len(apart))], axis=1), drawn[both]) / (levels - 1)


def share(columns: Floats, drawn: Floats) -> Floats:
    """The sum of the first of two columns [items, 2] over that of the second, not defined where that is 0."""
    whole = _summed(columns[:, 1], drawn)
    return _ratio(_summed(columns[:, 0], drawn), whole, whole > 0)


def _counted(ratings: Floats) -> tuple[Floats, Floats]:
    """(values [V] that occur, rising; [items, V] how often each item has each)."""
    given = ~np.isnan(ratings)
    values, code = np.unique(ratings[given], return_inverse=True)
    counts = np.zeros((len(ratings), len(values)))
    np.add.at(counts, (np.nonzero(given)[0], code), 1)
    return values, counts


def _ratio(part: Floats, whole: Floats, where: Bools, otherwise: float = math.nan) -> Floats:
    """part / whole, and `otherwise` elsewhere."""
    found: Floats = np.divide(part, whole, out=np.full(part.shape, otherwise), where=where)
    return found


def _summed(values: Floats | Bools, drawn: Floats) -> Floats:
    """[R] the sums of values [items], each counted as often as drawn [items, R] says.

    Sums of whole numbers are exact; others are added one after the other in the items' order, so that no processor's
    way of adding has a part in the last digit.
    """
    values = values.astype(np.float64)
    if not len(values):
        return np.zeros(drawn.shape[1])
    whole = bool((values == np.rint(values)).all())
    total: Floats = values @ drawn if whole else np.cumsum(drawn * values[:, np.newaxis], axis=0)[-1]
    return total
