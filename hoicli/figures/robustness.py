"""How models stand corruption: by severity, corruption and family."""

from __future__ import annotations

import math
from collections.abc import Iterable

from hoicli.figures.canvas import add_foot, draw_bars, draw_lines, saved
from hoicli.figures.shown import caveats_of, robustness_of
from hoicli.figures.styles import LEGEND_LINE, NORMAL, PAGE_WIDTH
from hoicli.records.results import Row


def plot_robustness(rows: Iterable[Row], path: str, *, metric: str = "mAP") -> None:
    """How models stand corruption: on the left the mean by severity, from the clean value on; on the right bars.

    Drawn are the rows of `hoicli robust`, as `robustness_of` arranges them. `metric` is what the rows average. Raises
    `UsageError` as `plot_diagnosis` does.
    """
    rows = list(rows)
    shown = robustness_of(rows)
    with saved(path) as figure:
        legend_height = LEGEND_LINE * math.ceil(len(shown.lines) / 3)
        figure.set_size_inches(PAGE_WIDTH, max(0.15 * len(shown.bars), 1.8) + 0.75 + legend_height)
        left, right = figure.subplots(1, 2)
        draw_lines(left, shown.lines.items())
        left.set_xticks(list(shown.ticks), list(shown.ticks.values()))
        left.set_ylim(bottom=0)
        left.set_xlabel("severity")
        left.set_ylabel(f"{metric} (%)")
        left.set_title("Mean over corruptions", fontsize=NORMAL, loc="left")
        draw_bars(right, shown.bars)
        right.set_xlabel(f"{metric} (%)")
        right.set_title("Mean over severities", fontsize=NORMAL, loc="left")
        handles = left.get_legend_handles_labels()[0]
        add_foot(figure, shown.caption, caveats_of(rows), legend=handles, columns=3)
