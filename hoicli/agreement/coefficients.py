"""How well raters agree, and models with people (SHOE supplement, sections 1, 5.3, 6.1 to 6.3).

Ratings are arrays [items, raters] with NaN where a rater did not rate an item. Nothing depends on the order of items,
nor on that of raters but for the ties of a vote. A value that is not defined (no variance, too few items) is None.

Kappa, alpha, Gwet's AC1 and AC2, and the agreement of a model with people have intervals over resampled items. They are
functions of ratings and of `weights` [items, R], how often each item counts in each of R resamples; they return [R]
values, NaN where undefined."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from statistics import fmean, stdev

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.resampling.draws import Resampling, blocks
from hoicli.resampling.intervals import FEWEST_IMAGES, TOLERANCE, interval

LEVELS = ("nominal", "ordinal", "interval", "ratio")
"""The levels of measurement that alpha knows."""
WEIGHTS = {"ac1": "identity", "ac2": "quadratic"}
"""Gwet's coefficients, and what a near miss counts in each: nothing, or as much as in kappa."""

MAX_SUBSET_MODELS = 12
"""The most models whose subsets are tabled: they have 4,095 subsets."""

Measure = Callable[[Floats, Floats], Floats]
"""A function (ratings [items, raters], weights [items, R]) -> its values [R]."""

Ends = tuple[float, float] | None
"""The two ends of an interval; None where there is no interval."""


def value_of(measure: Measure, ratings: Floats) -> float | None:
    """Return the measure of the ratings, None where it is not defined."""
    value = float(measure(ratings, np.ones((len(ratings), 1)))[0])
    return None if math.isnan(value) else value


def estimate_of(
    measure: Measure, ratings: Floats, resampling: Resampling | None, *, fewest: int = 2, lowest: float = -1.0,
    highest: float = 1.0,
) -> tuple[float | None, Ends]:  # fmt: skip
    """Return the measure of the ratings, and its 95 % interval over other samples of items with the same raters.

    fewest: only items with at least so many ratings are resampled; the others say nothing, and would make each
    resample's number of items a matter of chance. lowest, highest: the range of the measure. There is no interval
    without a resampling, with fewer than two such items, and if all resamples give the same number: such items do not
    say how others might differ."""
    value = value_of(measure, ratings)
    ratings = ratings[(~np.isnan(ratings)).sum(axis=1) >= fewest]
    if resampling is None or value is None or len(ratings) < FEWEST_IMAGES:
        return value, None
    resamples = (block.resamples(len(ratings)).astype(np.float64) for block in blocks(resampling))
    rounds = np.concatenate([measure(ratings, weights) for weights in resamples])
    defined = rounds[~np.isnan(rounds)]
    if not len(defined) or float(defined.max() - defined.min()) <= TOLERANCE:
        return value, None
    return value, interval(value, rounds, len(ratings), lowest=lowest, highest=highest)


def kappa(ratings: Floats, weights: Floats) -> Floats:
    """Return the quadratic weighted kappa of two raters, over the items that both rated (Fleiss and Cohen 1973).

    With quadratic weights it can be computed from means, whatever the number of levels: 1 - mean (a - b)^2 / (mean a^2
    + mean b^2 - 2 mean a mean b). It is not defined where both raters always give one and the same rating."""
    both = ~np.isnan(ratings).any(axis=1)
    a, b, weights = ratings[both, 0], ratings[both, 1], weights[both]
    count = weights.sum(axis=0)
    squares = _sum_drawn(a * a, weights) + _sum_drawn(b * b, weights)
    expected = count * squares - 2 * _sum_drawn(a, weights) * _sum_drawn(b, weights)
    # Below 1e-12 of its parts, the expected disagreement is 0: fractional ratings may leave a last digit of rounding.
    return 1 - _ratio(count * _sum_drawn((a - b) ** 2, weights), expected, expected > 1e-12 * count * squares)


def mean_kappa(ratings: Floats, weights: Floats) -> Floats:
    """Return the mean kappa over all pairs of raters whose kappa is defined."""
    total, count = np.zeros(weights.shape[1]), np.zeros(weights.shape[1])
    for a, b in combinations(range(ratings.shape[1]), 2):
        kappas = kappa(ratings[:, [a, b]], weights)
        defined = ~np.isnan(kappas)
        total += np.where(defined, kappas, 0.0)
        count += defined
    return _ratio(total, count, count > 0)


def alpha(ratings: Floats, weights: Floats, *, level: str) -> Floats:
    """Return Krippendorff's alpha for a level of measurement (one of LEVELS): 1 - observed / expected disagreement.

    Items with fewer than two ratings are left out. The disagreement of two values is the square of their distance,
    which is 0 or 1 (nominal), the number of ratings between them (ordinal), their difference (interval), or their
    difference over their sum (ratio). The SHOE supplement prints ((i - j) / (k - 1))^2 under the name ordinal: that is
    interval, as constant factors do not change alpha."""
    paired = (~np.isnan(ratings)).sum(axis=1) >= 2
    values, counts = _count_values(ratings[paired])
    weights = weights[paired]
    if not len(values):
        return np.full(weights.shape[1], math.nan)
    total = np.stack([_sum_drawn(column, weights) for column in counts.T])
    if level == "ordinal":
        observed, expected = _ordinal_disagreement(counts, total, weights)
    else:
        observed, expected = _disagreement(counts, total, weights, _distances(values, level))
    coefficient: Floats = 1 - (total.sum(axis=0) - 1) * _ratio(observed, expected, expected > 0)
    return coefficient


def _disagreement(counts: Floats, total: Floats, weights: Floats, distance: Floats) -> tuple[Floats, Floats]:
    """Return the observed and the expected disagreement of alpha [R each], up to a factor that both have.

    counts [items, V]: how often each item has each value; total [V, R]: how often each value occurs in a resample;
    weights [items, R]: how often an item counts in it; distance [V, V]: the squared distances of values."""
    within_items = ((counts @ distance) * counts).sum(axis=1) / (counts.sum(axis=1) - 1)
    expected = np.zeros(weights.shape[1])
    for value_total, distances in zip(total, distance, strict=True):
        # the last partial sum rather than `sum`, so that the last digit does not depend on how a processor adds
        expected += value_total * np.cumsum(total * distances[:, np.newaxis], axis=0)[-1]
    return _sum_drawn(within_items, weights), expected


def _ordinal_disagreement(counts: Floats, total: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the observed and the expected disagreement of alpha [R each] at the ordinal level, up to a factor that
    both have. The arguments are those of `_disagreement`.

    The distance of two values is how many ratings lie between them, half of those at either end included, so it depends
    on the resample. It is the difference of their middle ranks, and sums of squared differences follow from the sums of
    ranks and of their squares."""
    raters, middle_rank = counts.sum(axis=1)[:, np.newaxis], np.cumsum(total, axis=0) - total / 2
    within_items = raters * (counts @ middle_rank**2) - (counts @ middle_rank) ** 2
    # the last partial sum rather than `sum`, so that the last digit does not depend on how a processor adds
    observed = 2 * np.cumsum(weights * (within_items / (raters - 1)), axis=0)[-1]
    rank_sum, square_sum = (total * middle_rank).sum(axis=0), (total * middle_rank**2).sum(axis=0)
    return observed, 2 * (total.sum(axis=0) * square_sum - rank_sum**2)


def _distances(values: Floats, level: str) -> Floats:
    """Return [V, V]: the squared distances between values [V] at a level of measurement other than ordinal."""
    difference: Floats = values[:, np.newaxis] - values
    if level == "nominal":
        return 1.0 - np.eye(len(values))
    if level == "ratio":
        sums = values[:, np.newaxis] + values
        difference = _ratio(difference, sums, sums != 0, 0.0)
    return np.square(difference)


def gwet(ratings: Floats, weights: Floats, *, levels: int, quadratic: bool) -> Floats:
    """Return Gwet's AC1, or AC2 with `quadratic` weights, of ratings that are levels from 0 to levels - 1 (Gwet 2008;
    Handbook of Inter-Rater Reliability, 4th edition, chapters 2 and 3).

    Kappa and alpha fall towards 0 where nearly all ratings are of one level, as they expect two such raters to agree by
    chance; Gwet counts as chance only the agreement on items that are hard to rate. The coefficient is (observed -
    expected) / (1 - expected) agreement:
    - observed: the weight of a pair of an item's ratings (1 for equal ones), averaged over the pairs of each item, then
      over the items with two or more ratings;
    - expected: the mean weight of two levels, times the sum of p (1 - p) over all levels, over levels - 1, where p is a
      level's share of the ratings, in which each rated item counts equally."""

    def weight(distance: Floats) -> Floats:
        """Return the weight of two levels at a distance, as a whole number up to `largest`, so that sums are exact."""
        return largest - distance * distance if quadratic else (distance == 0).astype(np.float64)

    largest = float((levels - 1) ** 2) if quadratic else 1.0
    values, counts = _count_values(ratings)
    raters = counts.sum(axis=1)
    rated_twice, rated = raters >= 2, raters > 0
    # [items]: the mean weight of a pair of ratings, as a share of `largest`; [items, V]: the share of each value
    within = ((counts @ weight(values[:, np.newaxis] - values)) * counts).sum(axis=1) - largest * raters
    pair_weight = _ratio(within, largest * raters * (raters - 1), rated_twice, 0.0)
    shares = _ratio(counts, raters[:, np.newaxis], rated[:, np.newaxis], 0.0)
    # The sum of the weights of all pairs of levels: `levels - distance` pairs have a distance, each in two orders but
    # for the distance 0.
    total = 0.0
    for distance, level_weight in enumerate(weight(np.arange(levels, dtype=np.float64)).tolist()):
        total += (levels - distance) * level_weight * (2 if distance else 1)
    # Each resample's numbers.
    items = _sum_drawn(rated, weights)
    spread = np.zeros_like(items)  # the sum of p (1 - p)
    for level in range(len(values)):
        level_share = _ratio(_sum_drawn(shares[:, level], weights), items, items > 0)
        spread += level_share * (1 - level_share)
    items_rated_twice = _sum_drawn(rated_twice, weights)
    observed = _ratio(_sum_drawn(pair_weight, weights), items_rated_twice, items_rated_twice > 0)
    expected = total / largest / (levels * (levels - 1)) * spread
    return _ratio(observed - expected, 1 - expected, expected != 1)


def agreement(columns: Floats, weights: Floats, *, levels: int) -> Floats:
    """Return the agreement in [0, 1] between a model's ratings and people's mean ratings, the two columns [items, 2].
    It is 1 - mean |model - people| / (levels - 1), over the items that both have."""
    both = ~np.isnan(columns).any(axis=1)
    difference = np.abs(columns[both, 0] - columns[both, 1])
    return 1 - share(np.stack([difference, np.ones(len(difference))], axis=1), weights[both]) / (levels - 1)


def share(columns: Floats, weights: Floats) -> Floats:
    """Return the sum of the first of two columns [items, 2] over the sum of the second; not defined where that is 0."""
    whole = _sum_drawn(columns[:, 1], weights)
    return _ratio(_sum_drawn(columns[:, 0], weights), whole, whole > 0)


def _count_values(ratings: Floats) -> tuple[Floats, Floats]:
    """Return the values [V] that occur in ratings, rising, and [items, V]: how often each item has each value."""
    rated = ~np.isnan(ratings)
    values, code = np.unique(ratings[rated], return_inverse=True)
    counts = np.zeros((len(ratings), len(values)))
    np.add.at(counts, (np.nonzero(rated)[0], code), 1)
    return values, counts


def _ratio(part: Floats, whole: Floats | Ints, where: Bools, otherwise: float = math.nan) -> Floats:
    """Return part / whole where `where` is true, and `otherwise` elsewhere."""
    ratio: Floats = np.divide(part, whole, out=np.full(part.shape, otherwise), where=where)
    return ratio


def _sum_drawn(values: Floats | Bools, weights: Floats) -> Floats:
    """Return [R]: the sums of values [items] in R resamples, each value counted as often as weights [items, R] say.

    Sums of whole numbers are exact; others are added in the items' order: the last digit is the same on any processor.
    """
    values = values.astype(np.float64)
    if not len(values):
        return np.zeros(weights.shape[1])
    whole_numbers = bool((values == np.rint(values)).all())
    total: Floats = values @ weights if whole_numbers else np.cumsum(weights * values[:, np.newaxis], axis=0)[-1]
    return total


def mean_rating(ratings: Floats) -> Floats:
    """Return [items]: the mean of each item's ratings, NaN for an item without ratings."""
    count = (~np.isnan(ratings)).sum(axis=1)
    return _ratio(np.nansum(ratings, axis=1), count, count > 0)


def merged_rating(ratings: Floats, rule: str) -> Floats:
    """Return [items]: one rating made of the ratings [items, models] of several models, NaN without ratings.

    rule: "mean", "median", or "majority", the rating that most models gave; of equally frequent ratings the one of the
    model in the first column. A model that did not rate an item has no part in it: of two models the first decides, and
    where the first has no rating, the second."""
    if rule == "mean":
        return mean_rating(np.sort(ratings, axis=1))  # sorted, so that the order of models does not change a last digit
    if rule == "median":
        rated = ~np.isnan(ratings).all(axis=1)
        median = np.full(len(ratings), np.nan)
        median[rated] = np.nanmedian(ratings[rated], axis=1)
        return median
    chosen_model = _votes(ratings).argmax(axis=1)  # argmax takes the first of several equally large counts
    winner: Floats = ratings[np.arange(len(ratings)), chosen_model]
    return winner


def _votes(ratings: Floats) -> Ints:
    """Return [items, raters]: how many raters gave an item the same rating as each rater did."""
    votes: Ints = np.stack([(ratings == column[:, np.newaxis]).sum(axis=1) for column in ratings.T], axis=1)
    return votes


Subsets = dict[tuple[int, ...], tuple[float | None, int]]
"""{column numbers of a subset of models: (its agreement with people, over how many items)}."""


def subset_agreement(models: Floats, human: Floats, levels: int, rule: str = "majority") -> Iterator[Subsets]:
    """Yield the agreement with people of all subsets of models, separately for each size of a subset from 1.

    models [items, models]: their ratings; human [items]: people's mean ratings; rule: of RULES, by which a subset's
    ratings are made into one. Raises `UsageError` for more than MAX_SUBSET_MODELS models.

    The supplement's Table 1 votes (section 6.1: "majority voting"), ties going to the model listed first: 8 of its 10
    rows of two models repeat the row of the first, to both decimals. It cannot be the mean (nor the median, which is
    the mean of two): by the triangle inequality that agrees with people at least as well as its models do on average,
    and Gemini with Qwen, Gemini with Yi and all three are below (84.56, 84.56 and 84.88 for 85.08, 84.72 and 85.01).
    The two rows that differ have Maverick first, and follow if it did not rate 15 of the 500 items or more."""
    count = models.shape[1]
    if count > MAX_SUBSET_MODELS:
        raise UsageError(
            f"{arg('subsets')}: {count} models have {2**count - 1:,} subsets; name at most {MAX_SUBSET_MODELS} with "
            f"{arg('models')}"
        )
    for size in range(1, count + 1):
        agreements: Subsets = {}
        for subset in combinations(range(count), size):
            both = np.stack([merged_rating(models[:, list(subset)], rule), human], axis=1)
            items = int((~np.isnan(both).any(axis=1)).sum())
            agreements[subset] = value_of(partial(agreement, levels=levels), both), items
        yield agreements


def mean_and_deviation(subsets: Subsets) -> tuple[float | None, float | None]:
    """Return the mean and the sample standard deviation of the subsets' agreement, None where too few are defined."""
    values = [value for value, _ in subsets.values() if value is not None]
    return fmean(values) if values else None, stdev(values) if len(values) > 1 else None


def variability(ratings: Floats) -> tuple[float | None, float | None, int]:
    """Return (pooled standard deviation of the ratings of an item, standard error of an item's mean rating, number of
    items with two or more ratings); None, None, 0 if there is no such item.

    The error is how far an item's mean rating would move with other raters (supplement, 6.3: 0.761 and 5 raters give
    0.34). The pooled deviation is the root of the items' summed squares over their summed degrees of freedom, and the
    number of raters is the mean over items."""
    count = (~np.isnan(ratings)).sum(axis=1)
    several_ratings = count >= 2
    degrees_of_freedom = int((count[several_ratings] - 1).sum())
    if degrees_of_freedom == 0:
        return None, None, 0
    squares = np.nansum((ratings - mean_rating(ratings)[:, np.newaxis]) ** 2, axis=1)[several_ratings]
    deviation = math.sqrt(math.fsum(squares.tolist()) / degrees_of_freedom)
    raters = int(count.sum()) / int((count > 0).sum())
    return deviation, deviation / math.sqrt(raters), int(several_ratings.sum())


def distribution(ratings: Floats, levels: int) -> Ints:
    """Return [levels, raters]: how often each rater gave each level; ratings between two levels are not counted."""
    counts: Ints = np.stack([(ratings == level).sum(axis=0) for level in range(levels)])
    return counts


def votes_by_majority(ratings: Floats, levels: int) -> Iterator[tuple[int | None, int, Ints]]:
    """Yield (majority rating, number of its items, [levels, raters]: how often each rater gave each level on them) for
    each majority rating that occurs, rising; last, as None, for the rated items without a majority.

    The supplement does not say where it puts an item with several most frequent ratings; here it has no majority."""
    # [items, raters]: how many gave the rating that this rater gave; [items]: the most frequent rating
    votes, winner = _votes(ratings), merged_rating(ratings, "majority")
    rivals = (votes == votes.max(axis=1, keepdims=True)) & (ratings != winner[:, np.newaxis])
    majority = np.where(rivals.any(axis=1), np.nan, winner)
    for level in range(levels):
        chosen = majority == level
        if chosen.any():
            yield level, int(chosen.sum()), distribution(ratings[chosen], levels)
    rated = ~np.isnan(ratings).all(axis=1)
    split = rated & np.isnan(majority)
    if split.any():
        yield None, int(split.sum()), distribution(ratings[split], levels)


def updates_of(change: Floats) -> tuple[Floats, Floats]:
    """Return the columns [items, 2] from which `share` computes what a second study changed (6.2), for two measures:
    the share of ratings that differ the second time, and by how many levels these moved on average, up or down.

    change [items, raters]: the differences, NaN where a rating was not given twice. The supplement prints 7.65 %
    updated [6.29, 9.00] and a change of 1.14 [1.11, 1.17]. Of 500 items and five raters no whole number of ratings is
    7.65 % (191 are 7.64), of four raters 153 are; were these independent, the interval would be [6.49, 8.81]. It is
    wider, as it is where an item's ratings are updated together: items are resampled here, whole."""
    rated_twice = (~np.isnan(change)).sum(axis=1)
    change, rated_twice = change[rated_twice > 0], rated_twice[rated_twice > 0]
    changed = ((change != 0) & ~np.isnan(change)).sum(axis=1)
    levels_moved = np.nansum(np.abs(change), axis=1)
    updated = np.stack([changed, rated_twice], axis=1).astype(np.float64)
    return updated, np.stack([levels_moved, changed], axis=1)
