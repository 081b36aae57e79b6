"""SHOE's numbers over delta, which the paper does not print."""

from __future__ import annotations

from collections.abc import Iterable

from hoicli.figures.canvas import add_legend, draw_lines, saved
from hoicli.figures.shown import caveats_of
from hoicli.figures.styles import COLUMN_WIDTH, PAPER, Look
from hoicli.records.results import Row

DRAWN = {"soft_map": "soft mAP", "mf1": "mF1"}
"""The metrics that depend on delta."""


def plot_deltas(rows: Iterable[Row], path: str, look: Look = PAPER) -> None:
    """soft_map and mf1 (y) over delta (x), a line each, from rows that have the tag `delta`; a column wide. Raises
    `UsageError` as `plot_diagnosis` does."""
    rows = list(rows)
    lines: dict[str, list[tuple[float, float]]] = {}
    for metric, words in DRAWN.items():
        points = [row for row in rows if row["metric"] == metric and row["value"] is not None]
        if points:
            lines[words] = sorted((float(row["tags"]["delta"]), row["value"]) for row in points)
    with saved(path, look, caveats=caveats_of(rows)) as figure:
        width = look.room(COLUMN_WIDTH)
        figure.set_size_inches(width, min(2.4, 0.7 * width))
        ax = figure.add_subplot()
        draw_lines(ax, lines.items())
        ax.set_ylim(bottom=0)
        ax.set_xlabel("delta")
        ax.set_ylabel("%")
        add_legend(figure, ax.get_legend_handles_labels()[0])
