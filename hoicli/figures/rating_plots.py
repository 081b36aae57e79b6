"""How raters use a scale, and how well every two of them agree (the SHOE supplement's Figures 2 to 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from hoicli.figures.canvas import add_legend, draw_cells, fill, format_value, hide_frame, save_figure
from hoicli.figures.shown import first_of, labels
from hoicli.figures.styles import COLUMN_WIDTH, LINES, NORMAL, PAGE_WIDTH, PAPER, SERIES, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLOTS = ("distribution", "votes", "kappa")
"""The figures of ratings: how often each was given, the same by the majority's rating, and kappa of each two raters."""
MOST_LEVELS = 11
"""How many levels bars have room for."""
MOST_RATERS = len(LINES)
"""How many raters bars can tell apart."""
MOST_IN_KAPPA = 60
"""How many raters a table of pairs shows: 300 would be a picture of 14,400 pixels a side."""
_ROOM, _PANEL, _NARROWEST = 0.2, 1.35, 2.5
"""Inches: what a number in a cell needs, a panel's height, and what its title needs of two beside each other."""


@dataclass(frozen=True)
class Counts:
    """A panel of bars. items: how many were rated; votes: how often each rater gave each level, [raters][levels]."""

    title: str
    items: int
    votes: Sequence[Sequence[int]]


def plot_counts(raters: Sequence[str], panels: Sequence[Counts], path: str, look: Look = PAPER) -> None:
    """Write a figure with a panel of bars for each of `panels`: how often each of the first MOST_RATERS raters gave
    each level."""
    names = labels(raters[:MOST_RATERS])
    width = look.room(PAGE_WIDTH)
    across = min(len(panels), 2 if width >= 2 * _NARROWEST else 1)
    down = math.ceil(len(panels) / across)
    items = f"{_items(sum(panel.items for panel in panels))}."
    with save_figure(
        path, look, " ".join(filter(None, [items, first_of(len(names), len(raters), "raters")]))
    ) as figure:
        from matplotlib.patches import Patch

        figure.set_size_inches(width, down * _PANEL * (1.4 if down == 1 else 1.0) + 0.4)
        axes = figure.subplots(down, across, squeeze=False, sharex=True).ravel()
        for number, (ax, panel) in enumerate(zip(axes, panels, strict=False)):
            _draw_votes(ax, panel, len(names))
            if number % across == 0:
                ax.set_ylabel("ratings")
            if number + across >= len(panels):
                ax.set_xlabel("rating")
                ax.tick_params(labelbottom=True)
        for ax in axes[len(panels) :]:
            ax.set_visible(False)
        legend = [Patch(label=name, **fill(style)) for name, style in zip(names, SERIES, strict=False)]
        add_legend(figure, legend, columns=len(names))


def _draw_votes(ax: Axes, panel: Counts, raters: int) -> None:
    """Draw how often each of the first `raters` raters gave each level, as bars side by side at the level."""
    from matplotlib.ticker import MaxNLocator

    highest_count = max((max(votes) for votes in panel.votes[:raters]), default=0) or 1
    for rater, (style, votes) in enumerate(zip(SERIES, panel.votes[:raters], strict=False)):
        places = [level + (rater + 1) / (raters + 1) - 0.5 for level in range(len(votes))]
        ax.bar(places, votes, width=1 / (raters + 1), **fill(style))
    hide_frame(ax)
    levels = len(panel.votes[0])
    ax.set_xlim(-0.5, levels - 0.5)
    ax.set_xticks(range(levels))
    ax.set_ylim(0, 1.05 * highest_count)
    ax.tick_params(axis="x", length=0)
    ax.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    if panel.title:
        ax.set_title(f"{panel.title} ({_items(panel.items)})", fontsize=NORMAL, loc="left")


def _items(number: int) -> str:
    return "1 item" if number == 1 else f"{number:,} items"


def plot_kappa(
    raters: Sequence[str], kappas: Mapping[tuple[int, int], float | None], path: str, look: Look = PAPER
) -> None:
    """Write a heat map of the quadratic weighted kappa of every two of the first MOST_IN_KAPPA raters. The colour scale
    goes from 0, or the lowest kappa if below, to 1.

    kappas: by two raters' numbers in `raters`, the smaller first; None, an undefined kappa, is grey."""
    number = min(len(raters), MOST_IN_KAPPA)
    rows = [[1.0] * number for _ in range(number)]
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
        names = labels(raters[:number])
        mesh = draw_cells(ax, rows, names, names, low, 1.0, digits=2 if cell > _ROOM else None)
        ax.set_aspect("equal")
        ax.tick_params(axis="x", rotation=90 if max(map(len, names)) > 4 else 0)
        figure.colorbar(mesh, ax=ax, shrink=0.9).outline.set_visible(False)
