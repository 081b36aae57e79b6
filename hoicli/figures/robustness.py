"""How models stand corruption: by severity, corruption and family."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hoicli.records.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from hoicli.figures.canvas import add_caption, bare_axes, name_bars, saved
from hoicli.figures.shown import lines_by_severity, robustness_caption, robustness_means, robustness_places
from hoicli.figures.styles import CAPTION, HATCHES, LEGEND_LINE, LINES, NORMAL, PAGE_WIDTH, SMALL


def plot_robustness(rows: Iterable[Row], path: str, *, metric: str = "mAP") -> None:
    """How models stand corruption: on the left the mean by severity, from the clean value on; on the right bars.

    Drawn are the rows of `hoicli robust`: of one model a line a family and a bar a corruption, of several a line a
    model and its bars by family, for as many of the first as LINES can tell apart. `metric` is what the rows average.
    Raises `UsageError` as `plot_diagnosis` does.
    """
    models = robustness_means(rows)
    shown = dict(list(models.items())[: len(LINES)])
    lines = lines_by_severity(shown)
    places = robustness_places(shown)
    with saved(path) as figure:
        rows_of_legend = math.ceil(len(lines) / 3)
        figure.set_size_inches(PAGE_WIDTH, max(0.15 * len(places), 1.8) + 0.75 + LEGEND_LINE * rows_of_legend)
        left, right = figure.subplots(1, 2)
        for look, (name, points) in zip(LINES, lines.items(), strict=False):
            colour, marker, stroke = look
            xs, ys = [x for x, _ in points], [y for _, y in points]
            left.plot(xs, ys, color=colour, marker=marker, linestyle=stroke, ms=4, lw=1.2, label=name)
        bare_axes(left)
        ticks = sorted({x for points in lines.values() for x, _ in points})
        left.set_xticks(ticks, [str(x) if x else "clean" for x in ticks])
        left.set_ylim(bottom=0)
        left.set_xlabel("severity")
        left.set_ylabel(f"{metric} (%)")
        left.set_title("Mean over corruptions", fontsize=NORMAL, loc="left")
        _draw_places(right, places)
        right.set_xlabel(f"{metric} (%)")
        right.set_title("Mean over severities", fontsize=NORMAL, loc="left")
        handles = left.get_legend_handles_labels()[0]
        at = (0.5, CAPTION / figure.get_figheight())
        figure.legend(
            handles=handles,
            loc="lower center",
            bbox_to_anchor=at,
            ncols=3,
            frameon=False,
            fontsize=SMALL,
            borderpad=0.2,
        )
        add_caption(figure, robustness_caption(models, len(shown)), above=LEGEND_LINE * rows_of_legend)


def _draw_places(ax: Axes, places: Sequence[tuple[str, float | None, int | None]]) -> None:
    ticks: list[tuple[int, str, bool]] = []
    for y, (label, value, at) in enumerate(places):
        if label:
            ticks.append((y, label, at is None))
        if at is None:
            continue
        if value is not None:
            colour, ink, hatch = LINES[at][0], "#FFFFFF", HATCHES[at]
            ax.barh([y], [value], height=0.78, facecolor=colour, hatch=hatch, edgecolor=ink, linewidth=0.4)
            ax.barh([y], [value], height=0.78, facecolor="none", edgecolor="#000000", linewidth=0.5)
        text = "\N{EN DASH}" if value is None else f"{value:.1f}"
        ax.annotate(text, (value or 0.0, y), (3, 0), textcoords="offset points", va="center", fontsize=SMALL)
    name_bars(ax, len(places), ticks)
    ax.set_xlim(0, 1.16 * (max((value for _, value, _ in places if value is not None), default=0.0) or 1.0))
