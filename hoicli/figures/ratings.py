"""How raters use a scale, and how well every two of them agree (the SHOE supplement's Figures 2 to 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hoicli.errors import visible
from hoicli.figures.canvas import add_foot, fill, hide_frame, saved
from hoicli.figures.shown import label
from hoicli.figures.styles import COLUMN_WIDTH, LINES, LOOKS, NORMAL, PAGE_WIDTH, PAPER, SMALL, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLOTS = ("distribution", "votes", "kappa")
"""The figures of ratings: how often each was given, the same by the rating that most gave, and kappa of every two."""

MOST_LEVELS = 11
"""Levels that bars have room for."""
MOST_RATERS = len(LINES)
"""Raters that bars can tell apart."""
MOST_IN_KAPPA = 60
"""Raters whose every two have a cell: 300 would be a picture of 14,400 pixels a side."""
_TINY = 6.0
"""Points of a number in a cell or over a bar."""
_ROOM, _DIGIT, _HIGH = 0.2, 0.055, 0.075
"""Inches: what a number in a cell needs, how wide a digit is over a bar, and how high."""
_MARGIN, _PANEL, _NARROWEST = 0.65, 1.35, 2.5
"""Inches: left and right of a panel's bars, a panel's height, and what its title needs of two beside each other."""


@dataclass(frozen=True)
class Counts:
    """A panel: its title, of how many items it is, and how often each rater gave each level, [raters][levels]."""

    title: str
    items: int
    votes: Sequence[Sequence[int]]


def plot_counts(raters: Sequence[str], panels: Sequence[Counts], path: str, look: Look = PAPER) -> None:
    """Bars of how often each of the first MOST_RATERS raters gave each level, a panel for each of `panels`, with the
    counts on top where there is room."""
    names = _short(raters[:MOST_RATERS])
    width = look.room(PAGE_WIDTH)
    across = min(len(panels), 2 if width >= 2 * _NARROWEST else 1)
    down = math.ceil(len(panels) / across)
    with saved(path, look) as figure:
        from matplotlib.patches import Patch

        legend = [Patch(label=name, **fill(LOOKS[f"s{at}"])) for at, name in enumerate(names)]
        figure.set_size_inches(width, down * _PANEL * (1.4 if down == 1 else 1.0) + 0.4)
        axes = figure.subplots(down, across, squeeze=False, sharex=True).ravel()
        room = (width / across - _MARGIN) / (len(panels[0].votes[0]) * (len(names) + 1))
        for at, (ax, panel) in enumerate(zip(axes, panels, strict=False)):
            _draw_votes(ax, panel, len(names), room)
            if at % across == 0:
                ax.set_ylabel("ratings")
            if at + across >= len(panels):
                ax.set_xlabel("rating")
                ax.tick_params(labelbottom=True)
        for ax in axes[len(panels) :]:
            ax.set_visible(False)
        caption = f"{_items(sum(panel.items for panel in panels))}."
        if len(raters) > len(names):
            caption += f" The first {len(names)} of {len(raters)} raters."
        add_foot(figure, caption, legend=legend, columns=len(names))


def _draw_votes(ax: Axes, panel: Counts, raters: int, room: float) -> None:
    """One panel; a bar is `room` inches wide."""
    from matplotlib.ticker import MaxNLocator

    most = max((max(votes) for votes in panel.votes[:raters]), default=0) or 1
    digits = len(f"{most:,}")
    standing = room < digits * _DIGIT
    for at, votes in enumerate(panel.votes[:raters]):
        places = [level + (at + 1) / (raters + 1) - 0.5 for level in range(len(votes))]
        ax.bar(places, votes, width=1 / (raters + 1), **fill(LOOKS[f"s{at}"]))
        for x, number in zip(places, votes, strict=True):
            if number and room >= min(_HIGH, digits * _DIGIT):
                ax.annotate(
                    f"{number:,}", (x, number), (0, 1.5), textcoords="offset points", ha="center", va="bottom",
                    fontsize=_TINY, rotation=90 if standing else 0,
                )  # fmt: skip
    hide_frame(ax)
    levels = len(panel.votes[0])
    ax.set_xlim(-0.5, levels - 0.5)
    ax.set_xticks(range(levels), [str(level) for level in range(levels)])
    ax.set_ylim(0, most * (1 + (0.1 * digits + 0.05 if standing else 0.14)))
    ax.tick_params(axis="x", length=0)
    ax.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    if panel.title:
        ax.set_title(f"{panel.title} ({_items(panel.items)})", fontsize=NORMAL, loc="left")


def _items(number: int) -> str:
    return "1 item" if number == 1 else f"{number:,} items"


def plot_kappa(
    raters: Sequence[str], kappas: Mapping[tuple[int, int], float | None], path: str, look: Look = PAPER
) -> None:
    """Quadratic weighted kappa of every two of the first MOST_IN_KAPPA raters by colour and number, from 0 (or the
    lowest, if below) to 1.

    kappas: by the places of two raters in `raters`, the smaller first; None, where it is not defined, is grey.
    """
    number = min(len(raters), MOST_IN_KAPPA)
    rows = [[1.0] * number for _ in range(number)]
    for (a, b), kappa in kappas.items():
        if max(a, b) < number:
            rows[a][b] = rows[b][a] = math.nan if kappa is None else kappa
    known = [kappa for kappa in kappas.values() if kappa is not None]
    low = min([0.0, *(kappa for row in rows for kappa in row if not math.isnan(kappa))])
    with saved(path, look) as figure:
        width = look.room(COLUMN_WIDTH)
        cell = min(0.45, max(0.16, (width - 1.0) / number))
        side = cell * number
        figure.set_size_inches(max(width, side + 1.4), side + 1.05)
        ax = figure.add_subplot()
        ax.set_facecolor("#DDDDDD")
        mesh = ax.pcolormesh(rows, cmap="cividis", vmin=low, vmax=1.0, edgecolors="#FFFFFF", linewidth=0.3)
        ax.invert_yaxis()
        ax.set_aspect("equal")
        for y, values in enumerate(rows) if cell > _ROOM else ():
            for x, value in enumerate(values):
                text = "\N{EN DASH}" if math.isnan(value) else f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
                ink = "#FFFFFF" if value < (low + 1) / 2 else "#000000"
                ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=_TINY, color=ink)
        names = _short(raters[:number])
        ticks = [at + 0.5 for at in range(number)]
        long = max(map(len, names)) > 4
        ax.set_xticks(ticks, names, rotation=90 if long else 0)
        ax.set_yticks(ticks, names)
        ax.tick_params(length=0, labelsize=SMALL)
        for spine in ax.spines.values():
            spine.set_visible(False)
        bar = figure.colorbar(mesh, ax=ax, shrink=0.9)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=SMALL)
        mean = f", mean {sum(known) / len(known):.3f}".replace("-", "\N{MINUS SIGN}") if known else ""
        shown = f" The first {number} of {len(raters)} raters; the mean is of all." if number < len(raters) else ""
        add_foot(figure, f"Quadratic weighted kappa{mean}.{shown}")


def _short(names: Sequence[str]) -> list[str]:
    """Names as figures have room for them: where two are one when cut, by their beginnings and ends, then numbered."""
    short = [label(name) for name in names]
    if len(set(short)) < len(short):
        texts = [visible(name) for name in names]
        short = [text if len(text) <= 22 else f"{text[:10]}\N{HORIZONTAL ELLIPSIS}{text[-11:]}" for text in texts]
    return [name if short.count(name) == 1 else f"{at}: {name}" for at, name in enumerate(short, start=1)]
