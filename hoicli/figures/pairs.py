"""Pair recall against pair precision over a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from hoicli.figures.canvas import add_foot, draw_lines, saved, titled
from hoicli.figures.shown import SweepPoint, caveats_of, label, pair_sweeps
from hoicli.figures.styles import COLUMN_WIDTH, LINES, PAPER, SMALL, Look
from hoicli.records.boxes import shared_area
from hoicli.records.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Box = tuple[float, float, float, float]
"""Left, low, right and high end, in pixels of the figure."""

SWEPT = {"nms": "pair NMS", "det_threshold": "detection"}
"""What a sweep may vary, in words."""


def plot_pairs(rows: Iterable[Row], path: str, look: Look = PAPER) -> None:
    """Pair recall (x) against pair precision (y) over a sweep, a line per model, each point labelled by its threshold.

    Drawn are the rows of metrics `pair_recall` and `pair_precision` and subset `full`; `nms` and `det_threshold` say
    where in the sweep. A point lacking either value is left out. A column wide. Raises `UsageError` as `plot_diagnosis`
    does.
    """
    rows = list(rows)
    lines = pair_sweeps(rows)
    swept = [key for key in SWEPT if any(getattr(point, key) is not None for line in lines.values() for point in line)]
    with saved(path, look) as figure:
        width = look.room(COLUMN_WIDTH)
        figure.set_size_inches(width, min(2.7, 0.8 * width))
        ax = figure.add_subplot()
        draw_lines(
            ax, ((label(model), [(point.recall, point.precision) for point in line]) for model, line in lines.items())
        )
        ax.margins(0.14, 0.16)
        ax.set_xlabel("pair recall (%)")
        ax.set_ylabel("pair precision (%)")
        if swept:
            titled(ax, f"At each {' / '.join(SWEPT[key] for key in swept)} threshold", width - 0.6)
        named = ax.get_legend_handles_labels()[0] if any(lines) else []
        add_foot(figure, "", caveats_of(rows), legend=named, columns=3)
        figure.draw_without_rendering()  # the axes have their place now, so the labels can look for theirs
        _label_points(ax, lines, swept)


def _label_points(ax: Axes, lines: Mapping[str, Sequence[SweepPoint]], swept: Sequence[str]) -> None:
    """Each label goes to that of eight places around its point where it covers least of points and lines, and no other
    label; one without such a place is left out."""
    dot = ax.figure.dpi / 72
    taken: list[Box] = []
    labels: list[Box] = []
    for points in lines.values():
        pixels = [ax.transData.transform((point.recall, point.precision)) for point in points]
        taken += [(x - 3 * dot, y - 3 * dot, x + 3 * dot, y + 3 * dot) for x, y in pixels]
        for (x1, y1), (x2, y2) in zip(pixels, pixels[1:]):  # noqa: B905, RUF007 (each with the next)
            steps = max(int(math.hypot(x2 - x1, y2 - y1) / (3 * dot)), 1)
            along = ((x1 + (x2 - x1) * at / steps, y1 + (y2 - y1) * at / steps) for at in range(steps))
            taken += [(x - dot, y - dot, x + dot, y + dot) for x, y in along]
    around = ((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
    for number, points in enumerate(lines.values()):
        for point in points:
            text = _threshold(point, swept)
            wide, high = 0.7 * SMALL * len(text) * dot, 1.3 * SMALL * dot
            x, y = ax.transData.transform((point.recall, point.precision))
            choices: list[tuple[bool, float, int, Box]] = []
            for order, (dx, dy) in enumerate(around):
                left = x + dx * 4 * dot + (dx - 1) * wide / 2
                low = y + dy * 5 * dot + (dy - 1) * high / 2
                box = (left, low, left + wide, low + high)
                covered = sum(shared_area(box, other) for other in taken)
                outside = wide * high - shared_area(box, ax.bbox.extents)
                hidden = any(shared_area(box, other) > 0 for other in labels)
                choices.append((hidden, round(covered + outside), order, box))
            hidden, _, order, box = min(choices)
            if hidden:  # no place is free of other labels: better none than one that cannot be read
                continue
            taken.append(box)
            labels.append(box)
            dx, dy = around[order]
            ax.annotate(
                text,
                (point.recall, point.precision),
                (dx * 4, dy * 5),
                textcoords="offset points",
                ha=("right", "center", "left")[dx + 1],
                va=("top", "center", "bottom")[dy + 1],
                fontsize=SMALL,
                color=LINES[number % len(LINES)][0],
            )


def _threshold(point: SweepPoint, swept: Sequence[str]) -> str:
    """The point's place in the sweep: a number when one threshold is swept, both apart when two are."""
    values = (getattr(point, key) for key in swept)
    return " / ".join("none" if value is None else f"{value:g}" for value in values)
