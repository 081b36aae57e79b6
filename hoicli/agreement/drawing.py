"""Ratings as figures: the SHOE supplement's Figures 2, 3 and 4."""

from __future__ import annotations

from itertools import combinations

from hoicli.agreement import measures
from hoicli.agreement.coefficients import kappa, value_of
from hoicli.agreement.ratings import Ratings
from hoicli.errors import UsageError, arg
from hoicli.figures.ratings import MOST_LEVELS, Counts, plot_counts, plot_kappa
from hoicli.figures.styles import PAPER, Look


def draw(ratings: Ratings, path: str, *, kind: str, levels: int, look: Look = PAPER) -> None:
    """One of the PLOTS of people's ratings, or of all raters' where there are no people.

    Raises `UsageError` for more levels than a figure has room for, and where there is nothing to draw.
    """
    raters = [rater for rater in ratings.raters if rater not in ratings.models] or ratings.raters
    values = ratings.of(raters)
    if kind == "kappa":
        if len(raters) < 2:
            raise UsageError(f"{arg('plot_kind', 'kappa')}: {raters[0]} is the only rater; kappa is of two")
        pairs = combinations(range(len(raters)), 2)
        plot_kappa(raters, {pair: value_of(kappa, values[:, pair]) for pair in pairs}, path, look)
        return
    if levels > MOST_LEVELS:
        raise UsageError(
            f"{arg('plot_kind', kind)}: has room for {MOST_LEVELS} levels, not {levels}; kappa has for any"
        )
    if kind == "votes":
        panels = [
            Counts("no majority" if level is None else f"majority {level}", items, counts.T.tolist())
            for level, items, counts in measures.votes_by_majority(values, levels)
        ]
    else:
        panels = [Counts("", len(ratings.items), measures.distribution(values, levels).T.tolist())]
    plot_counts(raters, panels, path, look)
