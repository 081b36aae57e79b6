"""Figures of ratings: how raters use a scale, and how well every two agree (the SHOE supplement's Figures 2 to 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from hoicli.figures.canvas import (
    add_legend,
    add_title,
    draw_cells,
    fill_keywords,
    format_value,
    hide_frame,
    save_figure,
)
from hoicli.figures.shown import left_out_remark, short_labels
from hoicli.figures.styles import COLUMN_WIDTH, LINES, PAGE_WIDTH, PAPER, SERIES, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLOTS = ("distribution", "votes", "kappa")
"""The figures of --plot-kind: how often each rating was given, the same by the majority's rating of the item, and kappa
of each two raters."""
MOST_LEVELS = 11
"""How many levels of a scale a panel of bars has room for."""
MOST_RATERS = len(LINES)
"""How many raters have bars of different looks."""
MOST_IN_KAPPA = 60
"""How many raters a heat map of pairs shows: 300 would be a picture of 14,400 pixels a side."""
_ROOM, _PANEL, _NARROWEST = 0.28, 1.35, 2.5
"""Inches: the width of a cell with a number, a panel's height, and the width of each of two panels side by side."""


@dataclass(frozen=True)
class Counts:
    """The numbers of a panel of bars. title: "" for none; items: how many items were rated; votes: how often each rater
    gave each level of the scale, [raters][levels]."""

    title: str
    items: int
    votes: Sequence[Sequence[int]]


def plot_counts(raters: Sequence[str], panels: Sequence[Counts], path: str, look: Look = PAPER) -> None:
    """Write a figure with a panel of bars for each of `panels`: how often each rater gave each level. raters: their
    names; the first MOST_RATERS are drawn. Raises `UsageError` for a file that cannot be written."""
    names = short_labels(raters[:MOST_RATERS])
    width = look.room(PAGE_WIDTH)
    columns = min(len(panels), 2 if width >= 2 * _NARROWEST else 1)
    rows = math.ceil(len(panels) / columns)
    remarks = [f"{_items(sum(panel.items for panel in panels))}.", left_out_remark(len(names), len(raters), "raters")]
    with save_figure(path, look, " ".join(filter(None, remarks))) as figure:
        from matplotlib.patches import Patch

        figure.set_size_inches(width, rows * _PANEL * (1.4 if rows == 1 else 1.0) + 0.4)
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
        for ax, panel in zip(axes, panels, strict=False):
            _draw_votes(ax, panel, len(names))
            if panel.title:
                add_title(ax, f"{panel.title} ({_items(panel.items)})", width / columns - 0.7)
        counts = chain.from_iterable(chain.from_iterable(panel.votes[: len(names)]) for panel in panels)
        highest_count = max(counts, default=0) or 1
        axes[0].set_ylim(0, 1.05 * highest_count)
        for number, ax in enumerate(axes[: len(panels)]):
            if number % columns == 0:  # the first of its row
                ax.set_ylabel("ratings")
            if number + columns >= len(panels):  # the lowest of its column
                ax.set_xlabel("rating")
                ax.tick_params(labelbottom=True)
        for ax in axes[len(panels) :]:
            ax.set_visible(False)
        legend = [Patch(label=name, **fill_keywords(style)) for name, style in zip(names, SERIES, strict=False)]
        add_legend(figure, legend, columns=len(names))


def _draw_votes(ax: Axes, panel: Counts, raters: int) -> None:
    """Draw into a panel how often each of the first `raters` raters gave each level: bars side by side at the level."""
    from matplotlib.ticker import MaxNLocator

    for rater, (style, votes) in enumerate(zip(SERIES, panel.votes[:raters], strict=False)):
        places = [level + (rater + 1) / (raters + 1) - 0.5 for level in range(len(votes))]
        ax.bar(places, votes, width=1 / (raters + 1), **fill_keywords(style))
    hide_frame(ax)
    levels = len(panel.votes[0])
    ax.set_xlim(-0.5, levels - 0.5)
    ax.set_xticks(range(levels))
    ax.tick_params(axis="x", length=0)
    ax.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    ax.yaxis.set_major_formatter("{x:,.0f}")


def _items(number: int) -> str:
    """Return a number of items in words, such as "1 item" or "1,200 items"."""
    return "1 item" if number == 1 else f"{number:,} items"


def plot_kappa(
    raters: Sequence[str], kappas: Mapping[tuple[int, int], float | None], path: str, look: Look = PAPER
) -> None:
    """Write a heat map of the quadratic weighted kappa of every two raters. raters: their names; the first
    MOST_IN_KAPPA are drawn. kappas: by the numbers of two raters in `raters`, the smaller one first; None, an undefined
    kappa, is grey, as the diagonal is. The colour scale goes from 0, or the lowest kappa if that is below 0, to 1."""
    number = min(len(raters), MOST_IN_KAPPA)
    rows = [[math.nan] * number for _ in range(number)]  # and stay so for a rater with themselves
    for (first, second), kappa in kappas.items():
        if max(first, second) < number:
            rows[first][second] = rows[second][first] = math.nan if kappa is None else kappa
    kappas_known = [kappa for kappa in kappas.values() if kappa is not None]
    low = min([0.0, *(kappa for kappa in chain.from_iterable(rows) if not math.isnan(kappa))])
    mean = f", mean {format_value(sum(kappas_known) / len(kappas_known), 3)}" if kappas_known else ""
    left_out = f" The first {number} of {len(raters)} raters; the mean is of all." if number < len(raters) else ""
    with save_figure(path, look, f"Quadratic weighted kappa{mean}.{left_out}") as figure:
        width = look.room(COLUMN_WIDTH)
        cell = min(0.45, max(0.16, (width - 1.0) / number))
        side = cell * number
        figure.set_size_inches(max(width, side + 1.4), side + 1.05)
        ax = figure.add_subplot()
        names = short_labels(raters[:number])
        mesh = draw_cells(ax, rows, names, names, low, 1.0, digits=2 if cell > _ROOM else None)
        ax.set_aspect("equal")
        ax.tick_params(axis="x", rotation=90 if max(map(len, names)) > 4 else 0)
        scale = figure.colorbar(mesh, ax=ax, shrink=0.9, label="quadratic weighted kappa")
        scale.outline.set_visible(False)
