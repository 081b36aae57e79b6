"""How raters rate, and models with people: several models as one, subsets, correlation, spread, votes, updates (SHOE
supplement, sections 1, 5.3, 6.1 to 6.3).

Ratings are arrays [items, raters] with NaN where a rater did not rate an item. Nothing depends on the order of items,
nor on that of raters but for the ties of a vote. A value that is not defined (no variance, too few items) is None.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from statistics import NormalDist, fmean, stdev

import numpy as np

from hoicli.agreement.coefficients import agreement, value_of
from hoicli.errors import UsageError, arg
from hoicli.records.kit import Floats, Ints

FEWEST_TO_CORRELATE = 3
"""Items that a rank correlation is of."""
MAX_SUBSET_MODELS = 12
"""Models whose subsets are still tabled: 4,095 of them."""

_BLOCK = 1 << 21
"""Ranks that are permuted together."""


def mean_rating(ratings: Floats) -> Floats:
    """[items] the mean of each item's ratings, NaN for an item without any."""
    count = (~np.isnan(ratings)).sum(axis=1)
    mean: Floats = np.divide(np.nansum(ratings, axis=1), count, out=np.full(len(ratings), np.nan), where=count > 0)
    return mean


def merged_rating(ratings: Floats, rule: str) -> Floats:
    """[items] the ratings of several models as one, NaN for an item without any: their mean, median or (majority) the
    one that most gave, of equally frequent ones that of the model in the first column.

    Who did not rate an item has no part in it: of two models the first decides, and where it is silent the second.
    """
    if rule == "mean":
        return mean_rating(ratings)
    if rule == "median":
        rated = ~np.isnan(ratings).all(axis=1)
        median = np.full(len(ratings), np.nan)
        median[rated] = np.nanmedian(ratings[rated], axis=1)
        return median
    first = _votes(ratings).argmax(axis=1)  # of equals the first
    winner: Floats = ratings[np.arange(len(ratings)), first]
    return winner


def _votes(ratings: Floats) -> Ints:
    """[items, raters] how many gave an item the rating that each rater gave it."""
    votes: Ints = np.stack([(ratings == column[:, np.newaxis]).sum(axis=1) for column in ratings.T], axis=1)
    return votes


Subsets = dict[tuple[int, ...], tuple[float | None, int]]
"""By the places of its models, the agreement of a subset with people, and over how many items."""


def subset_agreement(models: Floats, human: Floats, levels: int, rule: str = "majority") -> Iterator[Subsets]:
    """The subsets of models [items, models] of each size, from 1; their ratings are made one by the rule of RULES.

    The supplement's Table 1 votes (section 6.1: "majority voting"), ties going to the model listed first: 8 of its 10
    rows of two models repeat the row of the first, to both decimals. It cannot be the mean (nor the median, which is
    the mean of two): by the triangle inequality that agrees with people at least as well as its models do on average,
    and Gemini with Qwen, Gemini with Yi and all three are below (84.56, 84.56 and 84.88 for 85.08, 84.72 and 85.01).
    The two rows that differ have Maverick first, and follow if it did not rate 15 of the 500 items or more.

    Raises `UsageError` for more than MAX_SUBSET_MODELS models.
    """
    count = models.shape[1]
    if count > MAX_SUBSET_MODELS:
        raise UsageError(
            f"{arg('subsets')}: {count} models have {2**count - 1:,} subsets; name at most {MAX_SUBSET_MODELS} with "
            f"{arg('models')}"
        )
    for size in range(1, count + 1):
        found: Subsets = {}
        for members in combinations(range(count), size):
            pair = np.stack([merged_rating(models[:, list(members)], rule), human], axis=1)
            items = int((~np.isnan(pair).any(axis=1)).sum())
            found[members] = value_of(partial(agreement, levels=levels), pair), items
        yield found


def mean_and_deviation(subsets: Subsets) -> tuple[float | None, float | None]:
    """Of the agreement of subsets; the deviation is of a sample, and of two or more."""
    known = [value for value, _ in subsets.values() if value is not None]
    return fmean(known) if known else None, stdev(known) if len(known) > 1 else None


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho over `items`, its 95 % interval and its two-sided permutation p. rho and p are None where a side
    does not vary and below three items: any two rise or fall together, so their rho is 1 or -1 whatever was measured.
    The interval is None below four items, and where rho is 1 or -1."""

    rho: float | None
    low: float | None
    high: float | None
    p: float | None
    items: int


def spearman(first: Floats, second: Floats, *, permutations: int = 10_000, seed: int = 0) -> Correlation:
    """The rank correlation of two columns [items] over the items that both have, ties at their mean rank.

    p counts the permutations whose |rho| reaches the observed one, the observed order among them, so it is never 0:
    (1 + hits) / (1 + permutations). The legacy generator is used because its numbers never change between versions.
    """
    from scipy.stats import rankdata

    both = ~(np.isnan(first) | np.isnan(second))
    count = int(both.sum())
    # Doubled and centred, ranks are whole numbers of mean 0: sums are exact, and equal correlations compare equal.
    a, b = (np.rint(2 * rankdata(side[both]) - (count + 1)).astype(np.int64) for side in (first, second))
    scale = math.sqrt(int(a @ a) * int(b @ b)) if count >= FEWEST_TO_CORRELATE else 0.0
    if scale == 0:
        return Correlation(None, None, None, None, count)
    product = int(a @ b)
    rho = max(-1.0, min(1.0, product / scale))
    random = np.random.RandomState(seed)
    hits, left = 0, permutations
    while left:
        rows = min(left, max(1, _BLOCK // count))
        shuffled = a[random.random_sample((rows, count)).argsort(axis=1, kind="stable")]
        hits += int((np.abs(shuffled @ b) >= abs(product)).sum())
        left -= rows
    low, high = fisher_interval(rho, count)
    return Correlation(rho, low, high, (1 + hits) / (1 + permutations), count)


def fisher_interval(rho: float, items: int) -> tuple[float | None, float | None]:
    """The 95 % interval of a correlation by Fisher's z: tanh(atanh rho -+ z / sqrt(items - 3)).

    0.799 over 500 items gives [0.765, 0.829] (supplement, 6.3). None below four items, and for 1 and -1, where z has no
    end: an interval without width would say that nothing else is possible.
    """
    if items <= 3 or abs(rho) == 1:
        return None, None
    half = NormalDist().inv_cdf(0.975) / math.sqrt(items - 3)
    return math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)


def variability(ratings: Floats) -> tuple[float | None, float | None, int]:
    """(deviation of ratings within an item, pooled; standard error of an item's mean; items with two or more ratings).

    The error is how far an item's mean rating would move with other raters (supplement, 6.3: 0.761 and 5 raters give
    0.34). The pooled deviation is the root of the items' summed squares over their summed degrees of freedom, and the
    number of raters the mean one of an item.
    """
    count = (~np.isnan(ratings)).sum(axis=1)
    several = count >= 2
    freedom = int((count[several] - 1).sum())
    if freedom == 0:
        return None, None, 0
    squares = np.nansum((ratings - mean_rating(ratings)[:, np.newaxis]) ** 2, axis=1)[several]
    deviation = math.sqrt(math.fsum(squares.tolist()) / freedom)
    raters = int(count.sum()) / int((count > 0).sum())
    return deviation, deviation / math.sqrt(raters), int(several.sum())


def distribution(ratings: Floats, levels: int) -> Ints:
    """[levels, raters] how often each rater gave each level; ratings between levels are in none."""
    counts: Ints = np.stack([(ratings == level).sum(axis=0) for level in range(levels)])
    return counts


def majority(ratings: Floats) -> Floats:
    """[items] the rating that most raters of [items, raters] gave; NaN where two are equally frequent, or none is.

    The supplement does not say where it puts an item whose most frequent ratings are several; here it has no majority.
    """
    votes, winner = _votes(ratings), merged_rating(ratings, "majority")
    rivals = (votes == votes.max(axis=1, keepdims=True)) & (ratings != winner[:, np.newaxis])
    return np.where(rivals.any(axis=1), np.nan, winner)


def votes_by_majority(ratings: Floats, levels: int) -> Iterator[tuple[int | None, int, Ints]]:
    """(majority rating, items, [levels, raters] how often each rater gave each level there), for those that occur, by
    rising rating; last, as None, the rated items without a majority."""
    of_item = majority(ratings)
    for level in range(levels):
        chosen = of_item == level
        if chosen.any():
            yield level, int(chosen.sum()), distribution(ratings[chosen], levels)
    rated = ~np.isnan(ratings).all(axis=1)
    split = rated & np.isnan(of_item)
    if split.any():
        yield None, int(split.sum()), distribution(ratings[split], levels)


def updates_of(change: Floats) -> tuple[Floats, Floats]:
    """What a second study changed (6.2): of the differences [items, raters], NaN for none, two times [items, 2], of
    which `share` is the share of ratings, given twice, that are another one the second time, and by how many levels
    these are, on average, up or down.

    The supplement prints 7.65 % updated [6.29, 9.00] and a change of 1.14 [1.11, 1.17]. Of 500 items and five raters no
    whole number of ratings is 7.65 % (191 are 7.64), of four raters 153 are; were these independent, the interval would
    be [6.49, 8.81]. It is wider, as it is where an item's ratings are updated together: items are resampled here,
    whole.
    """
    given = (~np.isnan(change)).sum(axis=1)
    change, given = change[given > 0], given[given > 0]
    changed = ((change != 0) & ~np.isnan(change)).sum(axis=1)
    moved = np.nansum(np.abs(change), axis=1)
    updated, size = (np.stack(columns, axis=1).astype(np.float64) for columns in ((changed, given), (moved, changed)))
    return updated, size
