"""A sweep as lines: pair recall against pair precision over thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from hoicli.errors import UsageError, arg
from hoicli.figures.canvas import add_legend, draw_lines, saved, titled
from hoicli.figures.shown import caveats_of, doubled, label, model_name, value_of
from hoicli.figures.styles import COLUMN_WIDTH, PAPER, Look
from hoicli.records.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

SWEPT = {"nms": "pair NMS", "det_threshold": "detection"}
"""What a sweep may vary, in words."""
_PLACES = ((1, 1), (-1, 1), (1, -1), (-1, -1))
"""Where a label may stand around its point, as directions."""


class SweepPoint(NamedTuple):
    """Pair recall and precision in percent under some thresholds: those of SWEPT, None for none."""

    recall: float
    precision: float
    thresholds: tuple[float | None, ...]


def plot_pairs(rows: Iterable[Row], path: str, look: Look = PAPER) -> None:
    """Pair recall (x) against pair precision (y) over a sweep, a line per model, each point labelled by its threshold.

    Drawn are the rows of metrics `pair_recall` and `pair_precision` and subset `full`; `nms` and `det_threshold` say
    where in the sweep. A point lacking either value is left out. A column wide. Raises `UsageError` as `plot_diagnosis`
    does.
    """
    rows = list(rows)
    lines = _sweeps(rows)
    points = list(chain.from_iterable(lines.values()))
    swept = [at for at in range(len(SWEPT)) if any(point.thresholds[at] is not None for point in points)]
    with saved(path, look, caveats=caveats_of(rows)) as figure:
        width = look.room(COLUMN_WIDTH)
        figure.set_size_inches(width, min(2.7, 0.8 * width))
        ax = figure.add_subplot()
        draw_lines(ax, ((label(model), [point[:2] for point in line]) for model, line in lines.items()))
        ax.margins(0.14, 0.16)
        ax.set_xlabel("pair recall (%)")
        ax.set_ylabel("pair precision (%)")
        if swept:
            titled(ax, f"At each {' / '.join(list(SWEPT.values())[at] for at in swept)} threshold", width - 0.6)
        add_legend(figure, ax.get_legend_handles_labels()[0], columns=3)
        figure.draw_without_rendering()  # the axes have their place now, so the labels can look for theirs
        _label_points(ax, lines.values(), swept)


def _sweeps(rows: Iterable[Row]) -> dict[str, list[SweepPoint]]:
    """model -> its points by rising recall, so that a line never doubles back."""
    found: dict[tuple[str, tuple[float | None, ...]], dict[str, float]] = {}
    for row in rows:
        value, metric = value_of(row), str(row.get("metric"))
        if metric in ("pair_recall", "pair_precision") and row.get("subset") == "full" and value is not None:
            key = model_name(row), tuple(row.get(name) for name in SWEPT)
            if metric in found.setdefault(key, {}):
                raise doubled(metric, key[0], " at one threshold")
            found[key][metric] = value
    lines: dict[str, list[SweepPoint]] = {}
    for (model, thresholds), point in found.items():
        if len(point) == 2:
            lines.setdefault(model, []).append(SweepPoint(point["pair_recall"], point["pair_precision"], thresholds))
    if not lines:
        raise UsageError(f"{arg('plot')}: there is no pair recall with its precision (subset full) to draw")
    return {model: sorted(points, key=lambda point: (*point[:2], str(point[2]))) for model, points in lines.items()}


def _label_points(ax: Axes, lines: Iterable[Sequence[SweepPoint]], swept: Sequence[int]) -> None:
    """Each label goes to the first of the places around its point that is free of other labels and inside the axes;
    one that has no room anywhere is left out."""
    taken: list[Bbox] = []
    for line, points in zip(ax.lines, lines, strict=True):
        for point in points:
            text = ax.annotate(
                _words(point, swept), point[:2], (0, 0), textcoords="offset points", color=line.get_color()
            )
            for across, up in _PLACES:
                text.set(position=(4 * across, 5 * up))
                text.set(ha="left" if across > 0 else "right", va="bottom" if up > 0 else "top")
                box = text.get_window_extent()
                if ax.bbox.count_contains(box.corners()) == 4 and not any(box.overlaps(other) for other in taken):
                    taken.append(box)
                    break
            else:
                text.remove()


def _words(point: SweepPoint, swept: Sequence[int]) -> str:
    """The point's place in the sweep: a number when one threshold is swept, both apart when two are."""
    values = (point.thresholds[at] for at in swept)
    return " / ".join("none" if value is None else f"{value:g}" for value in values)
