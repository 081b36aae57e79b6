"""How models stand corruption: by severity, corruption and family."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from hoicli.corruption.catalogue import family_of
from hoicli.figures.canvas import add_foot, draw_bars, draw_lines, saved, titled
from hoicli.figures.shown import caveats_of, label, robustness_of
from hoicli.figures.styles import BESIDE, PAGE_WIDTH, PAPER, SMALL, Look
from hoicli.records.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLOTS = ("curves", "heatmap")
"""The figures of a corrupted benchmark: means by severity beside bars, and every cell by its colour."""

MOST_PANELS = 6
"""Heat maps in one figure."""
_ACROSS = 3
_LINE, _ABOVE, _BELOW, _NAMES = 0.15, 0.42, 0.32, 1.25
"""Inches: of a heat map a line's height, what its title and its severities take, and the corruptions' names."""
_SCALE, _PANEL = 0.5, 1.6
"""Inches of the scale of colours, and of the narrowest heat map, whose title has 22 letters."""
_TINY = 6.0
"""Points of a number in a cell, and the inches that one needs."""
_ROOM = 0.24


def plot_robustness(rows: Iterable[Row], path: str, *, metric: str = "mAP", look: Look = PAPER) -> None:
    """How models stand corruption: on the left the mean by severity, from the clean value on; on the right bars.

    Drawn are the rows of `hoicli robust`, as `robustness_of` arranges them. `metric` is what the rows average. Raises
    `UsageError` as `plot_diagnosis` does.
    """
    rows = list(rows)
    shown = robustness_of(rows)
    with saved(path, look) as figure:
        width = look.room(PAGE_WIDTH)
        beside, high = width >= BESIDE, max(0.15 * len(shown.bars), 1.8) + 0.75
        figure.set_size_inches(width, high if beside else high + 2.4)
        panel, names = (width / 2, 1.2) if beside else (width, 1.8)
        left, right = (
            figure.subplots(1, 2) if beside else figure.subplots(2, 1, gridspec_kw={"height_ratios": (2.4, high)})
        )
        draw_lines(left, shown.lines.items())
        left.set_xticks(list(shown.ticks), list(shown.ticks.values()))
        left.set_ylim(bottom=0)
        left.set_xlabel("severity")
        left.set_ylabel(f"{metric} (%)")
        titled(left, ": ".join(filter(None, ["Mean over corruptions", shown.caption])), panel - names)
        draw_bars(right, shown.bars)
        right.set_xlabel(f"{metric} (%)")
        titled(right, "Mean over severities", panel - names)
        handles = left.get_legend_handles_labels()[0]
        add_foot(figure, shown.remark, caveats_of(rows), legend=handles)


@dataclass(frozen=True)
class HeatMap:
    """One model's grid: its name, its clean value and MRI in percent (None where there is none), and corruption ->
    severity -> value in percent, in the order to be drawn; what is missing is left out."""

    name: str
    clean: float | None
    mri: float | None
    cells: Mapping[str, Mapping[int, float]]


def plot_heat_maps(
    models: Sequence[HeatMap], path: str, *, metric: str = "mAP", caveats: Sequence[str] = (), look: Look = PAPER
) -> None:
    """Every corruption at every severity by colour and number, a panel for each of the first MOST_PANELS models.

    All panels have one scale, from 0 to the highest value of any, and one set of lines and columns: those that any of
    the models has. Families are set apart by a white line.
    """
    shown = models[:MOST_PANELS]
    corruptions = list(dict.fromkeys(name for model in shown for name in model.cells))
    severities = sorted({level for model in shown for levels in model.cells.values() for level in levels})
    top = max([*(model.clean or 0.0 for model in shown), *_values(shown)], default=0.0) or 1.0
    # one or two panels have no need of the page
    width = look.room(PAGE_WIDTH if len(shown) >= _ACROSS else _NAMES + 2.3 * len(shown) + _SCALE)
    across = max(1, min(len(shown), _ACROSS, int((width - _NAMES - _SCALE) / _PANEL)))
    down = math.ceil(len(shown) / across)
    with saved(path, look) as figure:
        figure.set_size_inches(width, down * (_LINE * len(corruptions) + _ABOVE + _BELOW) + 0.3)
        panels = figure.subplots(down, across, squeeze=False).ravel()
        numbered = (width - _NAMES - _SCALE) / across / max(len(severities), 1) >= _ROOM
        titles: list[str] = []
        for at, (ax, model) in enumerate(zip(panels, shown, strict=False)):
            names = [label(name.replace("_", " ")) for name in corruptions] if at % across == 0 else []
            _draw_heat_map(ax, model, corruptions, severities, top, names, numbered=numbered)
            titles.append(label(model.name))
            while titles[-1] in titles[:-1]:  # two long names that are one when cut
                titles[-1] += "'"
            whole = (("clean", model.clean), ("MRI", model.mri))
            below = ", ".join(f"{name} {value:.1f}" for name, value in whole if value is not None)
            ax.set_title("\n".join(filter(None, (titles[-1], below))), fontsize=SMALL, loc="left")
            mesh = ax.collections[0]
        for ax in panels[len(shown) :]:
            ax.set_visible(False)
        scale = figure.colorbar(mesh, ax=list(panels), fraction=0.05, aspect=30, label=f"{metric} (%)")
        scale.outline.set_visible(False)
        left_out = f"The first {len(shown)} of {len(models)} models." if len(models) > len(shown) else ""
        add_foot(figure, left_out, caveats)


def _values(models: Iterable[HeatMap]) -> list[float]:
    return [value for model in models for levels in model.cells.values() for value in levels.values()]


def _draw_heat_map(
    ax: Axes, model: HeatMap, corruptions: Sequence[str], severities: Sequence[int], top: float,
    names: Sequence[str], *, numbered: bool,
) -> None:  # fmt: skip
    """One panel; `names` label its lines, `numbered` puts each value into its cell."""
    rows = [[model.cells.get(name, {}).get(level, math.nan) for level in severities] for name in corruptions]
    ax.set_facecolor("#DDDDDD")  # a missing cell
    ax.pcolormesh(rows, cmap="cividis", vmin=0, vmax=top, edgecolors="#FFFFFF", linewidth=0.3)
    ax.invert_yaxis()
    for y, values in enumerate(rows) if numbered else ():
        for x, value in enumerate(values):
            text = "\N{EN DASH}" if math.isnan(value) else f"{value:.1f}"
            ink = "#FFFFFF" if value < 0.5 * top else "#000000"
            ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=_TINY, color=ink)
    for y, (above, below) in enumerate(pairwise(map(family_of, corruptions)), start=1):
        if above != below:
            ax.axhline(y, color="#FFFFFF", lw=2.5)
    ax.set_xticks([x + 0.5 for x in range(len(severities))], [str(level) for level in severities])
    ax.set_yticks([y + 0.5 for y in range(len(names))], list(names))
    ax.tick_params(length=0, labelsize=SMALL)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel("severity")
