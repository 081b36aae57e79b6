"""Precision against recall, of predictions by their score and of pairs by the thresholds of a sweep; and scores against
the share of right predictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from hoicli.errors import UsageError, arg, write_number
from hoicli.figures.canvas import add_legend, add_title, hide_frame, save_figure
from hoicli.figures.shown import ALL_CLASSES, caveats_of, first_of, label, model_name, value_of
from hoicli.figures.styles import BESIDE, COLUMN_WIDTH, LINES, PAGE_WIDTH, PAPER, TINY, Look
from hoicli.records.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

FEW = 100
"""Predictions below which a share is only known to ten percent and more (`wilson`): lines are thin there."""
_SWEPT = {"nms": "NMS", "det_threshold": "score"}
"""What a sweep of pairs varies, and its short name."""


@dataclass(frozen=True)
class Drawn:
    """One line in each panel, all but thresholds in percent. curve: (recall, precision); by_threshold: metric ->
    (threshold, value, of how many predictions); best: the threshold of the best F1 and it; bins: (mean score, share of
    right predictions, of how many); ece; ap: its metric and value."""

    curve: Sequence[tuple[float, float]]
    by_threshold: Mapping[str, Sequence[tuple[float, float, int]]]
    best: tuple[float, float] | None
    bins: Sequence[tuple[float, float, int]]
    ece: float | None
    ap: tuple[str, float] | None


def curves_of(rows: Iterable[Row]) -> dict[str, Drawn]:
    """Name -> its lines: of every verb, object and class that the rows are of, else of all classes; a line a model,
    protocol and view of each. Raises `UsageError` where there is nothing to draw."""
    rows = list(rows)
    chosen = [row for row in rows if _what(row)]
    rows = chosen or [row for row in rows if row.get("subset") in ALL_CLASSES]
    several = len({row["protocol"] for row in rows}) > 1
    tagged = len({_whose(row, protocol=several) for row in rows}) > 1
    rows_by_name: dict[str, list[Row]] = {}
    for row in rows:
        name = ", ".join(filter(None, (_whose(row, protocol=several) if tagged else "", _what(row)))) or "all classes"
        rows_by_name.setdefault(name, []).append(row)
    if not rows_by_name:
        raise UsageError(f"{arg('plot')}: there is no row of hoicli curves to draw")
    return {name: _lines_of_rows(of_name) for name, of_name in rows_by_name.items()}


def _lines_of_rows(rows: Iterable[Row]) -> Drawn:
    """The lines of rows of one name. A single class has no mean curve, but its own."""
    of: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["value"] is not None:
            of[row["metric"]].append(row)
    recalls = {row["rank"]: row["value"] for row in of["recall"]}
    points = [(row, row["value"], recalls[row["rank"]]) for row in of["precision"] if row["rank"] in recalls]
    by_threshold: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for row, precision, recall in points:
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        for metric, value in (("precision", precision), ("recall", recall), ("F1", f1)):
            if row["threshold"] is not None:
                by_threshold[metric].append((row["threshold"], value, row["rank"]))
    right = {row["bin_low"]: row["value"] for row in of["accuracy"] if "bin_low" in row}
    binned = [row for row in of["confidence"] if row.get("bin_low") in right]
    return Drawn(
        curve=[(row["recall"], row["value"]) for row in of["mean_precision"]] or [(r, p) for _, p, r in points],
        by_threshold=by_threshold,
        best=next(((row["threshold"], row["value"]) for row in of["best_f1"] if row["threshold"] is not None), None),
        bins=[(row["value"], right[row["bin_low"]], row["n"]) for row in binned],
        ece=next((row["value"] for row in of["ece"]), None),
        ap=next(((row["metric"], row["value"]) for row in [*of["mAP"], *of["AP"]]), None),
    )


def _what(row: Row) -> str:
    """The verb, object or class that a row is of, "" for a subset."""
    return " ".join(str(row[key]).replace("_", " ") for key in ("verb", "object", "role") if row.get(key))


def _whose(row: Row, *, protocol: bool) -> str:
    """The model, view and, if they are of several, protocol of a row."""
    tags = row.get("tags") or {}
    view = [f"{key} {tags[key]}" for key in ("iou", "slice", "part") if key in tags]
    model = str(tags.get("model", "")) if view else model_name(row)
    return ", ".join(filter(None, (model, row["protocol"] if protocol else "", *view)))


def plot_curves(rows: Iterable[Row], path: str, look: Look = PAPER) -> None:
    """Three panels, beside each other or in a narrow figure below: precision by recall (of a group the mean of its
    classes' curves, whose AP is mAP), precision, recall and F1 by threshold (of several lines F1 alone, each with its
    best), and the reliability diagram, whose bins have their 95 % intervals.

    Drawn are the rows of `hoicli curves`, for as many of the first lines as LINES can tell apart. Raises `UsageError`
    as `plot_diagnosis` does.
    """
    rows = list(rows)
    curves = curves_of(rows)
    curves_shown = dict(list(curves.items())[: len(LINES)])
    remarks = [first_of(len(curves_shown), len(curves), "curves")]
    if any(rank < FEW for line in curves_shown.values() for at in line.by_threshold.values() for *_, rank in at):
        remarks.append(f"Thin lines: thresholds that fewer than {FEW} predictions reach.")
    with save_figure(path, look, " ".join(filter(None, remarks)), caveats_of(rows)) as figure:
        width = look.room(PAGE_WIDTH)
        across = 3 if width >= 1.25 * BESIDE else 1
        figure.set_size_inches(width, 2.5 if across == 3 else 3 * min(2.4, 0.75 * width))
        axes = figure.subplots(3 // across, across)
        by_threshold = "By score threshold" if len(curves_shown) == 1 else "F1 by score threshold"
        for ax, title in zip(axes, ("Precision by recall", by_threshold, "Calibration"), strict=True):
            add_title(ax, title, width / across - 0.5)
        _draw_curves(axes[0], curves_shown)
        _draw_thresholds(axes[1], curves_shown)
        _draw_reliability(axes[2], curves_shown)
        add_legend(figure, axes[0].get_legend_handles_labels()[0], columns=3)


def _entry(name: str, line: Drawn) -> str:
    """A line of the legend: the name with its AP and ECE."""
    values = [] if line.ap is None else [f"{line.ap[0]} {line.ap[1]:.1f}"]
    values += [] if line.ece is None else [f"ECE {line.ece:.1f}"]
    words = label(name)
    return f"{words} ({', '.join(values)})" if values else words


def _axes(ax: Axes, across: str, up: str, percent: str = "xy") -> None:
    """The axes of a panel; percent: those that are."""
    hide_frame(ax)
    ax.set(xlabel=across, ylabel=up)
    for axis in percent:
        ax.set(**{f"{axis}ticks": [0, 25, 50, 75, 100], f"{axis}lim": (0, 102)})


def _draw_curves(ax: Axes, curves_shown: Mapping[str, Drawn]) -> None:
    for (colour, _, stroke), (name, line) in zip(LINES, curves_shown.items(), strict=False):
        ax.plot(*_columns(sorted(line.curve)), color=colour, linestyle=stroke, lw=1.2, label=_entry(name, line))
    _axes(ax, "recall (%)", "precision (%)")


def _draw_thresholds(ax: Axes, curves_shown: Mapping[str, Drawn]) -> None:
    alone = len(curves_shown) == 1
    for (colour, _, stroke), line in zip(LINES, curves_shown.values(), strict=False):
        lines_drawn = line.by_threshold.items() if alone else [("F1", line.by_threshold.get("F1", ()))]
        for at, (metric, points) in enumerate(lines_drawn):
            if alone:
                colour, _, stroke = LINES[at]
            xy = _columns([(x, y) for x, y, _ in sorted(points)])
            many = _columns([(x, y) for x, y, rank in sorted(points) if rank >= FEW])
            ax.plot(*xy, color=colour, linestyle=stroke, lw=0.6, alpha=0.6)
            ax.plot(*many, color=colour, linestyle=stroke, lw=1.2, label=metric)
        if line.best is not None:
            ax.plot([line.best[0]], [line.best[1]], marker="o", ms=4, color="#000000" if alone else colour)
    _axes(ax, "score threshold", "%" if alone else "F1 (%)", percent="y")
    if alone and next(iter(curves_shown.values())).by_threshold:
        ax.legend(loc="best", frameon=False, handlelength=1.6, borderpad=0.1, labelspacing=0.3)


def _draw_reliability(ax: Axes, curves_shown: Mapping[str, Drawn]) -> None:
    ax.plot([0, 100], [0, 100], color="#888888", lw=0.8, linestyle=(0, (1, 2)))
    for (colour, marker, stroke), line in zip(LINES, curves_shown.values(), strict=False):
        bins = sorted(line.bins)
        xy = _columns([(x, y) for x, y, _ in bins])
        ax.plot(*xy, color=colour, marker=marker, ms=3, linestyle=stroke, lw=1.2)
        for x, share, number in bins:  # a bin of few predictions says little, and must not look as if it did
            ax.plot([x, x], wilson(share, number), color=colour, lw=0.7, alpha=0.6)
    _axes(ax, "mean score (%)", "right (%)")


def wilson(percent: float, number: int) -> tuple[float, float]:
    """The 95 % interval in percent of a share of `number` independent cases (Wilson 1927), within 0 to 100."""
    z, share = 1.959964, percent / 100
    middle, spread = share + z * z / (2 * number), z * sqrt(share * (1 - share) / number + (z / (2 * number)) ** 2)
    low, high = ((middle + side) / (1 + z * z / number) for side in (-spread, spread))
    return max(0.0, 100 * low), min(100.0, 100 * high)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def plot_pairs(rows: Iterable[Row], path: str, look: Look = PAPER) -> None:
    """Pair recall against pair precision over the sweep of `hoicli pairstats` (subset `full`), a line for each of as
    many of the first models as LINES can tell apart, and beside each point its threshold. A point lacking either value
    is left out. A column wide. Raises `UsageError` as `plot_diagnosis` does."""
    rows = list(rows)
    points_of_models: dict[str, dict[str, dict[str, float | None]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["subset"] == "full":
            swept = (f"{what} {write_number(row[key])}" for key, what in _SWEPT.items() if row[key] is not None)
            points_of_models[model_name(row)][next(swept, "all")][row["metric"]] = value_of(row)
    lines: dict[str, list[tuple[float, float, str]]] = {}
    for model, points in points_of_models.items():
        for name, point in points.items():
            recall, precision = point.get("pair_recall"), point.get("pair_precision")
            if recall is not None and precision is not None:
                lines.setdefault(model, []).append((recall, precision, name))
    if not lines:
        raise UsageError(f"{arg('plot')}: there is no pair recall with its precision (subset full) to draw")
    remark = first_of(min(len(lines), len(LINES)), len(lines), "models")
    with save_figure(path, look, remark, caveats_of(rows)) as figure:
        width = look.room(COLUMN_WIDTH)
        figure.set_size_inches(width, min(2.7, 0.8 * width))
        ax, words = figure.add_subplot(), []
        for (colour, marker, stroke), (model, line) in zip(LINES, lines.items(), strict=False):
            xy = _columns([(x, y) for x, y, _ in sorted(line)])  # by rising recall, so that no line doubles back
            ax.plot(*xy, color=colour, marker=marker, linestyle=stroke, ms=4, lw=1.2, label=label(model) or None)
            words += [
                ax.annotate(name, (x, y), (3, 3), textcoords="offset points", fontsize=TINY, color=colour)
                for x, y, name in line
            ]
        ax.margins(0.2)
        hide_frame(ax)
        ax.set(xlabel="pair recall (%)", ylabel="pair precision (%)")
        ax.locator_params(nbins=5, axis="x")
        add_legend(figure, ax.get_legend_handles_labels()[0], columns=3)
        _set_apart(words, figure)


def _set_apart(words: Sequence[Annotation], figure: Figure) -> None:
    """Move labels of points that lie on another point or an earlier label to where none is: to another corner of the
    point, or further."""
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()
    half = 2 * figure.dpi / 72  # of a mark
    centres = [figure.axes[0].transData.transform(each.xy) for each in words]
    taken = [Bbox([centre - half, centre + half]) for centre in centres]
    for each in words:
        for x, y in ((x, y * far) for far in range(1, 9) for y in (3, -9) for x in (3, -3)):
            each.xyann = (x, y)
            each.set_horizontalalignment("left" if x > 0 else "right")
            place = each.get_window_extent()
            if not any(place.overlaps(other) for other in taken):
                break
        taken.append(place)
