"""Pair recall against pair precision over a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hoicli.arrays.boxes import shared_area
from hoicli.records.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from hoicli.figures.canvas import add_caption, bare_axes, saved
from hoicli.figures.shown import pair_sweeps, short_name
from hoicli.figures.styles import COLUMN_WIDTH, LINES, SMALL

Box = tuple[float, float, float, float]
"""Left, low, right and high end, in pixels of the figure."""


def plot_pairs(rows: Iterable[Row], path: str) -> None:
    """Pair recall (x) against pair precision (y) over a sweep, a line per model, each point labelled by its threshold.

    Drawn are the rows of metrics `pair_recall` and `pair_precision` and subset `full`; `nms` and `det_threshold` say
    where in the sweep. A point lacking either value is left out. Raises `UsageError` as `plot_diagnosis` does.
    """
    lines = pair_sweeps(rows)
    swept = [key for key in ("nms", "det_threshold") if any(point[key] is not None for point in _all(lines))]
    with saved(path) as figure:
        figure.set_size_inches(COLUMN_WIDTH, 2.9)
        ax = figure.add_subplot()
        for at, (model, points) in enumerate(lines.items()):
            colour, marker, stroke = LINES[at % len(LINES)]
            xs, ys = [point["x"] for point in points], [point["y"] for point in points]
            ax.plot(
                xs, ys, color=colour, marker=marker, linestyle=stroke, ms=4, lw=1.2, label=short_name(model) or None
            )
        bare_axes(ax)
        ax.margins(0.14, 0.16)
        ax.set_xlabel("pair recall (%)")
        ax.set_ylabel("pair precision (%)")
        if any(lines):
            figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=SMALL)
        words = {"nms": "pair NMS", "det_threshold": "detection"}
        if swept:
            add_caption(figure, f"Points: {' / '.join(words[key] for key in swept)} threshold.")
        figure.draw_without_rendering()  # the axes have their place now, so the labels can look for theirs
        _label_points(ax, lines, swept)


def _all(lines: Mapping[str, list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    for points in lines.values():
        yield from points


def _label_points(ax: Axes, lines: Mapping[str, list[dict[str, Any]]], swept: Sequence[str]) -> None:
    """Each label goes to that of eight places around its point where it covers least of points, lines and labels."""
    dot = ax.figure.dpi / 72
    taken: list[Box] = []
    for points in lines.values():
        pixels = [ax.transData.transform((point["x"], point["y"])) for point in points]
        taken += [(x - 3 * dot, y - 3 * dot, x + 3 * dot, y + 3 * dot) for x, y in pixels]
        for (x1, y1), (x2, y2) in zip(pixels, pixels[1:]):  # noqa: B905, RUF007 (each with the next)
            steps = max(int(math.hypot(x2 - x1, y2 - y1) / (3 * dot)), 1)
            along = ((x1 + (x2 - x1) * at / steps, y1 + (y2 - y1) * at / steps) for at in range(steps))
            taken += [(x - dot, y - dot, x + dot, y + dot) for x, y in along]
    around = ((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
    for number, points in enumerate(lines.values()):
        for point in points:
            text = _threshold(point, swept)
            wide, high = 0.6 * SMALL * len(text) * dot, SMALL * dot
            x, y = ax.transData.transform((point["x"], point["y"]))
            choices: list[tuple[float, int, Box]] = []
            for order, (dx, dy) in enumerate(around):
                left = x + dx * 4 * dot + (dx - 1) * wide / 2
                low = y + dy * 5 * dot + (dy - 1) * high / 2
                box = (left, low, left + wide, low + high)
                covered = sum(shared_area(box, other) for other in taken)
                outside = wide * high - shared_area(box, ax.bbox.extents)
                choices.append((round(covered + outside), order, box))
            _, order, box = min(choices)
            taken.append(box)
            dx, dy = around[order]
            ax.annotate(
                text,
                (point["x"], point["y"]),
                (dx * 4, dy * 5),
                textcoords="offset points",
                ha=("right", "center", "left")[dx + 1],
                va=("top", "center", "bottom")[dy + 1],
                fontsize=SMALL,
                color=LINES[number % len(LINES)][0],
            )


def _threshold(point: Mapping[str, Any], swept: Sequence[str]) -> str:
    """The point's place in the sweep: a number when one threshold is swept, both apart when two are."""
    return " / ".join("none" if point[key] is None else f"{point[key]:g}" for key in swept)
