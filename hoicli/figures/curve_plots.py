"""Figures of `hoicli curves` and `hoicli pairstats`: precision by recall of predictions, and of pairs over the
thresholds of a sweep; scores against the share of right predictions."""

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
from hoicli.records.result_rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

FEW = 100
"""Fewer predictions than this leave a share unsure by ten percent and more (`wilson`): their lines are thin."""
_SWEPT = {"nms": "NMS", "det_threshold": "score"}
"""What a sweep of pairs varies, and its short name."""


@dataclass(frozen=True)
class Drawn:
    """The numbers of one line in all panels, in percent but for thresholds. curve: (recall, precision); by_threshold:
    for each metric (threshold, value, number of predictions that reach it); best: (threshold, F1) of the best F1; bins:
    (mean score, share of right predictions, number of predictions); ece: the calibration error; ap: its metric and
    value."""

    curve: Sequence[tuple[float, float]]
    by_threshold: Mapping[str, Sequence[tuple[float, float, int]]]
    best: tuple[float, float] | None
    bins: Sequence[tuple[float, float, int]]
    ece: float | None
    ap: tuple[str, float] | None


def curves_of(rows: Iterable[Row]) -> dict[str, Drawn]:
    """Return the lines to draw by name: one for every verb, object or class that rows are of, else for all classes; of
    each one for every model, protocol and view. Raises `UsageError` if there is nothing to draw."""
    rows = list(rows)
    chosen = [row for row in rows if _what(row)]
    rows = chosen or [row for row in rows if row.get("subset") in ALL_CLASSES]
    several = len({row["protocol"] for row in rows}) > 1
    tagged = len({_curve_owner(row, protocol=several) for row in rows}) > 1
    rows_by_name: dict[str, list[Row]] = {}
    for row in rows:
        name = (
            ", ".join(filter(None, (_curve_owner(row, protocol=several) if tagged else "", _what(row))))
            or "all classes"
        )
        rows_by_name.setdefault(name, []).append(row)
    if not rows_by_name:
        raise UsageError(f"{arg('plot')}: there is no row of hoicli curves to draw")
    return {name: _lines_of_rows(named_rows) for name, named_rows in rows_by_name.items()}


def _lines_of_rows(rows: Iterable[Row]) -> Drawn:
    """Return the numbers of the line that rows of one name give. A single class has its own curve, not a mean one."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["value"] is not None:
            found[row["metric"]].append(row)
    recalls = {row["rank"]: row["value"] for row in found["recall"]}
    points = [(row, row["value"], recalls[row["rank"]]) for row in found["precision"] if row["rank"] in recalls]
    by_threshold: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for row, precision, recall in points:
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        for metric, value in (("precision", precision), ("recall", recall), ("F1", f1)):
            if row["threshold"] is not None:
                by_threshold[metric].append((row["threshold"], value, row["rank"]))
    right = {row["bin_low"]: row["value"] for row in found["accuracy"] if "bin_low" in row}
    binned = [row for row in found["confidence"] if row.get("bin_low") in right]
    return Drawn(
        curve=[(row["recall"], row["value"]) for row in found["mean_precision"]]
        or [(recall, precision) for _, precision, recall in points],
        by_threshold=by_threshold,
        best=next(((row["threshold"], row["value"]) for row in found["best_f1"] if row["threshold"] is not None), None),
        bins=[(row["value"], right[row["bin_low"]], row["n"]) for row in binned],
        ece=next((row["value"] for row in found["ece"]), None),
        ap=next(((row["metric"], row["value"]) for row in [*found["mAP"], *found["AP"]]), None),
    )


def _what(row: Row) -> str:
    """Return the verb, object or class that a row is of, "" for a row of a subset."""
    return " ".join(str(row[key]).replace("_", " ") for key in ("verb", "object", "role") if row.get(key))


def _curve_owner(row: Row, *, protocol: bool) -> str:
    """Return the part of a curve's name that says whose it is: the model, and the threshold, slice and part that it is
    about. protocol: whether to name the protocol, too."""
    tags = row.get("tags") or {}
    view = [f"{key} {tags[key]}" for key in ("iou", "slice", "part") if key in tags]
    model = str(tags.get("model", "")) if view else model_name(row)
    return ", ".join(filter(None, (model, row["protocol"] if protocol else "", *view)))


def plot_curves(rows: Iterable[Row], path: str, look: Look = PAPER) -> None:
    """Write a figure of three panels, side by side or, if narrow, one below the other: precision by recall (for several
    classes the mean of their curves, whose AP is mAP); precision, recall and F1 by threshold (with several lines only
    F1, each with its best); and the reliability diagram, whose bins have 95 % intervals.

    It shows as many of the first lines as LINES can tell apart. rows: of `hoicli curves`. Raises `UsageError` as
    `plot_diagnosis` does."""
    rows = list(rows)
    curves = curves_of(rows)
    curves_shown = dict(list(curves.items())[: len(LINES)])
    remarks = [first_of(len(curves_shown), len(curves), "curves")]
    if any(
        rank < FEW for line in curves_shown.values() for points in line.by_threshold.values() for *_, rank in points
    ):
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
    """Return a line's words in the legend: its name with AP and ECE."""
    values = [] if line.ap is None else [f"{line.ap[0]} {line.ap[1]:.1f}"]
    values += [] if line.ece is None else [f"ECE {line.ece:.1f}"]
    words = label(name)
    return f"{words} ({', '.join(values)})" if values else words


def _axes(ax: Axes, across: str, up: str, percent: str = "xy") -> None:
    """Label the axes of a panel. percent: which of them are in percent."""
    hide_frame(ax)
    ax.set(xlabel=across, ylabel=up)
    for axis in percent:
        ax.set(**{f"{axis}ticks": [0, 25, 50, 75, 100], f"{axis}lim": (0, 102)})


def _draw_curves(ax: Axes, curves_shown: Mapping[str, Drawn]) -> None:
    for (colour, _, stroke), (name, line) in zip(LINES, curves_shown.items(), strict=False):
        ax.plot(*_columns(sorted(line.curve)), color=colour, linestyle=stroke, lw=1.2, label=_entry(name, line))
    _axes(ax, "recall (%)", "precision (%)")


def _draw_thresholds(ax: Axes, curves_shown: Mapping[str, Drawn]) -> None:
    """Draw precision, recall and F1 by threshold for a single line, F1 alone for several; each best F1 is a dot."""
    alone = len(curves_shown) == 1
    for (colour, _, stroke), line in zip(LINES, curves_shown.values(), strict=False):
        lines_drawn = line.by_threshold.items() if alone else [("F1", line.by_threshold.get("F1", ()))]
        for number, (metric, points) in enumerate(lines_drawn):
            if alone:
                colour, _, stroke = LINES[number]
            xy = _columns([(x, y) for x, y, _ in sorted(points)])
            well_supported = _columns([(x, y) for x, y, rank in sorted(points) if rank >= FEW])
            ax.plot(*xy, color=colour, linestyle=stroke, lw=0.6, alpha=0.6)
            ax.plot(*well_supported, color=colour, linestyle=stroke, lw=1.2, label=metric)
        if line.best is not None:
            ax.plot([line.best[0]], [line.best[1]], marker="o", ms=4, color="#000000" if alone else colour)
    _axes(ax, "score threshold", "%" if alone else "F1 (%)", percent="y")
    if alone and next(iter(curves_shown.values())).by_threshold:
        ax.legend(loc="best", frameon=False, handlelength=1.6, borderpad=0.1, labelspacing=0.3)


def _draw_reliability(ax: Axes, curves_shown: Mapping[str, Drawn]) -> None:
    """Draw each line's share of right predictions by mean score, with the 95 % interval of each bin."""
    ax.plot([0, 100], [0, 100], color="#888888", lw=0.8, linestyle=(0, (1, 2)))
    for (colour, marker, stroke), line in zip(LINES, curves_shown.values(), strict=False):
        bins = sorted(line.bins)
        xy = _columns([(x, y) for x, y, _ in bins])
        ax.plot(*xy, color=colour, marker=marker, ms=3, linestyle=stroke, lw=1.2)
        for x, share, number in bins:  # a bin of few predictions says little, and must not look as if it did
            ax.plot([x, x], wilson(share, number), color=colour, lw=0.7, alpha=0.6)
    _axes(ax, "mean score (%)", "right (%)")


def wilson(percent: float, number: int) -> tuple[float, float]:
    """Return the 95 % interval (Wilson 1927), in percent within 0 to 100, of a share of `number` independent cases."""
    z, share = 1.959964, percent / 100
    middle, spread = share + z * z / (2 * number), z * sqrt(share * (1 - share) / number + (z / (2 * number)) ** 2)
    low, high = ((middle + side) / (1 + z * z / number) for side in (-spread, spread))
    return max(0.0, 100 * low), min(100.0, 100 * high)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def plot_pairs(rows: Iterable[Row], path: str, look: Look = PAPER) -> None:
    """Write a figure, a column wide, of pair recall against pair precision over the sweep of `hoicli pairstats` (subset
    `full`): a line for each of as many of the first models as LINES can tell apart, and each point's threshold beside
    it. A point without both values is left out. Raises `UsageError` as `plot_diagnosis` does."""
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
        ax, threshold_labels = figure.add_subplot(), []
        for (colour, marker, stroke), (model, line) in zip(LINES, lines.items(), strict=False):
            xy = _columns([(x, y) for x, y, _ in sorted(line)])  # by rising recall, so that no line doubles back
            ax.plot(*xy, color=colour, marker=marker, linestyle=stroke, ms=4, lw=1.2, label=label(model) or None)
            threshold_labels += [
                ax.annotate(name, (x, y), (3, 3), textcoords="offset points", fontsize=TINY, color=colour)
                for x, y, name in line
            ]
        ax.margins(0.2)
        hide_frame(ax)
        ax.set(xlabel="pair recall (%)", ylabel="pair precision (%)")
        ax.locator_params(nbins=5, axis="x")
        add_legend(figure, ax.get_legend_handles_labels()[0], columns=3)
        _set_apart(threshold_labels, figure)


def _set_apart(words: Sequence[Annotation], figure: Figure) -> None:
    """Move each label that covers a point or an earlier label to another corner of its own point, or further away."""
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()
    half_mark = 2 * figure.dpi / 72
    centres = [figure.axes[0].transData.transform(word.xy) for word in words]
    taken = [Bbox([centre - half_mark, centre + half_mark]) for centre in centres]
    for word in words:
        for x, y in ((x, y * distance) for distance in range(1, 9) for y in (3, -9) for x in (3, -3)):
            word.xyann = (x, y)
            word.set_horizontalalignment("left" if x > 0 else "right")
            extent = word.get_window_extent()
            if not any(extent.overlaps(other) for other in taken):
                break
        taken.append(extent)
