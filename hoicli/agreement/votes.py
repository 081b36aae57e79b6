"""How people rate an item by what most of them say (the SHOE supplement's Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hoicli.agreement.measures import distribution
from hoicli.records.kit import Floats, Ints


def majority(ratings: Floats) -> Floats:
    """[items] the rating that most raters of [items, raters] gave; NaN where two are equally frequent, or none is.

    The supplement does not say where it puts an item whose most frequent ratings are several; here it has no majority.
    """
    found = np.full(len(ratings), np.nan)
    most = np.zeros(len(ratings), dtype=np.int64)
    for value in np.unique(ratings[~np.isnan(ratings)]):
        votes = (ratings == value).sum(axis=1)
        found = np.where(votes > most, value, np.where((votes == most) & (votes > 0), np.nan, found))
        most = np.maximum(most, votes)
    return found


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
