"""Figures of `hoicli curves` (precision by recall, by score threshold, and calibration) and of `hoicli pairstats` (pair
recall and precision for each of several thresholds)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import sqrt
from typing import TYPE_CHECKING

from hoicli.errors import UsageError, arg, write_number
from hoicli.figures.canvas import add_legend, add_title, hide_frame, save_figure
from hoicli.figures.shown import ALL_CLASSES, caveats_of, left_out_remark, model_name, short_labels, value_of
from hoicli.figures.styles import BESIDE, COLUMN_WIDTH, LINES, PAGE_WIDTH, PAPER, TINY, Look
from hoicli.records.result_rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

FEW = 100
"""A share of fewer predictions than this is uncertain by ten percent or more (`wilson`): their lines are thin."""
_SWEPT = {"nms": "NMS", "det_threshold": "score"}
"""The thresholds that `pairstats` can vary, by their keys in rows, and their short names."""


@dataclass(frozen=True)
class CurveLine:
    """The numbers of one line in all panels of the figure of curves, in percent but for thresholds.

    curve: points (recall, precision). by_threshold: for precision, recall and F1 points (score threshold, value, number
    of predictions that reach it). best: (threshold, F1) of the best F1, None without one. bins: of the reliability
    diagram (mean score, share of right predictions, number of predictions). ece: the expected calibration error. ap:
    (metric, value), the metric mAP or AP."""

    curve: Sequence[tuple[float, float]]
    by_threshold: Mapping[str, Sequence[tuple[float, float, int]]]
    best: tuple[float, float] | None
    bins: Sequence[tuple[float, float, int]]
    ece: float | None
    ap: tuple[str, float] | None


def curves_of(rows: Iterable[Row]) -> dict[str, CurveLine]:
    """Return the lines to draw by name, for rows of `hoicli curves`: a line for each verb, object or class that rows
    are about, or for all classes together if there are no such rows. Several models, protocols, IoU thresholds or parts
    of the data have a line each. Raises `UsageError` if there is nothing to draw."""
    rows = list(rows)
    rows_of_classes = [row for row in rows if _class_name(row)]
    rows = rows_of_classes or [row for row in rows if row.get("subset") in ALL_CLASSES]
    name_protocol = len({row["protocol"] for row in rows}) > 1
    name_owner = len({_curve_owner(row, name_protocol=name_protocol) for row in rows}) > 1
    rows_by_name: dict[str, list[Row]] = {}
    for row in rows:
        owner = _curve_owner(row, name_protocol=name_protocol) if name_owner else ""
        name = ", ".join(filter(None, (owner, _class_name(row)))) or "all classes"
        rows_by_name.setdefault(name, []).append(row)
    if not rows_by_name:
        raise UsageError(f"{arg('plot')}: there is no row of hoicli curves to draw")
    return {name: _curve_line(rows_of_line) for name, rows_of_line in rows_by_name.items()}


def _curve_line(rows: Iterable[Row]) -> CurveLine:
    """Return the numbers of one line from its rows, of all metrics. Its curve is the mean of several classes' curves
    (rows of mean_precision), or if there is only one class, that class's own."""
    rows_by_metric: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["value"] is not None:
            rows_by_metric[row["metric"]].append(row)
    recalls = {row["rank"]: row["value"] for row in rows_by_metric["recall"]}
    points = [  # of the curve: (its row of precision, precision, recall)
        (row, row["value"], recalls[row["rank"]]) for row in rows_by_metric["precision"] if row["rank"] in recalls
    ]
    by_threshold: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for row, precision, recall in points:
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        for metric, value in (("precision", precision), ("recall", recall), ("F1", f1)):
            if row["threshold"] is not None:
                by_threshold[metric].append((row["threshold"], value, row["rank"]))
    accuracies = {row["bin_low"]: row["value"] for row in rows_by_metric["accuracy"] if "bin_low" in row}
    bin_rows = [row for row in rows_by_metric["confidence"] if row.get("bin_low") in accuracies]
    mean_curve = [(row["recall"], row["value"]) for row in rows_by_metric["mean_precision"]]
    best_f1 = [(row["threshold"], row["value"]) for row in rows_by_metric["best_f1"] if row["threshold"] is not None]
    average_precisions = [*rows_by_metric["mAP"], *rows_by_metric["AP"]]
    return CurveLine(
        curve=mean_curve or [(recall, precision) for _, precision, recall in points],
        by_threshold=by_threshold,
        best=next(iter(best_f1), None),
        bins=[(row["value"], accuracies[row["bin_low"]], row["n"]) for row in bin_rows],
        ece=next((row["value"] for row in rows_by_metric["ece"]), None),
        ap=next(((row["metric"], row["value"]) for row in average_precisions), None),
    )


def _class_name(row: Row) -> str:
    """Return the verb, object or class that a row is about, in words; "" for a row of a subset of classes."""
    return " ".join(str(row[key]).replace("_", " ") for key in ("verb", "object", "role") if row.get(key))


def _curve_owner(row: Row, *, name_protocol: bool) -> str:
    """Return the part of a curve's name that says what it is measured on: the model and, if the row's tags have them,
    the IoU threshold and the slice and part of the data. name_protocol: whether to name the protocol, too."""
    tags = row.get("tags") or {}
    tag_texts = [f"{key} {tags[key]}" for key in ("iou", "slice", "part") if key in tags]
    # without a model's name, `model_name` would join all tags, which would then be named twice
    model = str(tags.get("model", "")) if tag_texts else model_name(row)
    return ", ".join(filter(None, (model, row["protocol"] if name_protocol else "", *tag_texts)))


def plot_curves(rows: Iterable[Row], path: str, look: Look = PAPER) -> None:
    """Write the figure of `hoicli curves` from its rows: three panels, side by side or, if it is narrow, one below the
    other. They are precision by recall (for several classes the mean of their curves, whose AP is mAP); precision,
    recall and F1 by score threshold (with several lines only F1); and the reliability diagram with its 95 % intervals.

    Only the first lines are drawn, as many as LINES can tell apart. Raises `UsageError` if there is nothing to draw."""
    rows = list(rows)
    curves = curves_of(rows)
    curves_shown = dict(list(zip(short_labels(list(curves)), curves.values(), strict=True))[: len(LINES)])
    remarks = [left_out_remark(len(curves_shown), len(curves), "curves")]
    points = chain.from_iterable(chain.from_iterable(line.by_threshold.values()) for line in curves_shown.values())
    if any(count < FEW for _, _, count in points):
        remarks.append(f"Thin lines: thresholds that fewer than {FEW} predictions reach.")
    with save_figure(path, look, " ".join(filter(None, remarks)), caveats_of(rows)) as figure:
        width = look.room(PAGE_WIDTH)
        across = 3 if width >= 1.25 * BESIDE else 1  # three panels need more room than two beside one another
        height = 2.5 if across == 3 else 3 * min(2.4, 0.75 * width)
        figure.set_size_inches(width, height)
        axes = figure.subplots(3 // across, across)
        by_threshold = "By score threshold" if len(curves_shown) == 1 else "F1 by score threshold"
        for ax, title in zip(axes, ("Precision by recall", by_threshold, "Calibration"), strict=True):
            add_title(ax, title, width / across - 0.5)
        _draw_curves(axes[0], curves_shown)
        _draw_thresholds(axes[1], curves_shown)
        _draw_reliability(axes[2], curves_shown)
        handles, _ = axes[0].get_legend_handles_labels()
        add_legend(figure, handles, columns=3)


def _legend_text(name: str, line: CurveLine) -> str:
    """Return a line's text in the legend: its name, with AP and ECE if it has them."""
    values = []
    if line.ap is not None:
        metric, value = line.ap
        values.append(f"{metric} {value:.1f}")
    if line.ece is not None:
        values.append(f"ECE {line.ece:.1f}")
    return f"{name} ({', '.join(values)})" if values else name


def _label_axes(ax: Axes, x_label: str, y_label: str, percent: str = "xy") -> None:
    """Label the axes of a panel. percent: the letters of the axes that go from 0 to 100 percent."""
    hide_frame(ax)
    ax.set(xlabel=x_label, ylabel=y_label)
    for axis in percent:
        ax.set(**{f"{axis}ticks": [0, 25, 50, 75, 100], f"{axis}lim": (0, 102)})


def _draw_curves(ax: Axes, curves_shown: Mapping[str, CurveLine]) -> None:
    """Draw precision by recall into a panel. curves_shown: the lines by name."""
    for (colour, _, stroke), (name, line) in zip(LINES, curves_shown.items(), strict=False):
        x, y = _split_points(sorted(line.curve))
        ax.plot(x, y, color=colour, linestyle=stroke, lw=1.2, label=_legend_text(name, line))
    _label_axes(ax, "recall (%)", "precision (%)")


def _draw_thresholds(ax: Axes, curves_shown: Mapping[str, CurveLine]) -> None:
    """Draw values by score threshold into a panel: precision, recall and F1 for a single line, only F1 for several. The
    best F1 is a dot. Where fewer than FEW predictions reach the threshold, the line is thin."""
    alone = len(curves_shown) == 1  # then its lines, one for each metric, take the looks of LINES
    for (colour, _, stroke), line in zip(LINES, curves_shown.values(), strict=False):
        lines_drawn = line.by_threshold.items() if alone else [("F1", line.by_threshold.get("F1", ()))]
        for number, (metric, points) in enumerate(lines_drawn):
            if alone:
                colour, _, stroke = LINES[number]
            all_points = _split_points([(x, y) for x, y, _ in sorted(points)])
            well_supported = _split_points([(x, y) for x, y, count in sorted(points) if count >= FEW])
            ax.plot(*all_points, color=colour, linestyle=stroke, lw=0.6, alpha=0.6)
            ax.plot(*well_supported, color=colour, linestyle=stroke, lw=1.2, label=metric)
        if line.best is not None:
            ax.plot([line.best[0]], [line.best[1]], marker="o", ms=4, color="#000000" if alone else colour)
    _label_axes(ax, "score threshold", "%" if alone else "F1 (%)", percent="y")
    if alone and next(iter(curves_shown.values())).by_threshold:
        ax.legend(loc="best", frameon=False, handlelength=1.6, borderpad=0.1, labelspacing=0.3)


def _draw_reliability(ax: Axes, curves_shown: Mapping[str, CurveLine]) -> None:
    """Draw a reliability diagram into a panel: each line's share of right predictions by mean score, a point for each
    bin of scores with its 95 % interval."""
    ax.plot([0, 100], [0, 100], color="#888888", lw=0.8, linestyle=(0, (1, 2)))  # perfect calibration
    for (colour, marker, stroke), line in zip(LINES, curves_shown.values(), strict=False):  # at most as many as LINES
        bins = sorted(line.bins)
        points = _split_points([(score, share) for score, share, _ in bins])
        ax.plot(*points, color=colour, marker=marker, ms=3, linestyle=stroke, lw=1.2)
        for score, share, count in bins:  # the interval shows how little a bin of few predictions says
            ax.plot([score, score], wilson(share, count), color=colour, lw=0.7, alpha=0.6)
    _label_axes(ax, "mean score (%)", "right (%)")


def wilson(percent: float, number: int) -> tuple[float, float]:
    """Return the 95 % interval (low, high), in percent within 0 to 100, of a share of `number` independent cases, by
    Wilson's formula (1927). percent: the share that was observed."""
    z, share = 1.959964, percent / 100  # z: the normal distribution's quantile for 95 %
    middle, spread = share + z * z / (2 * number), z * sqrt(share * (1 - share) / number + (z / (2 * number)) ** 2)
    low, high = ((middle + side) / (1 + z * z / number) for side in (-spread, spread))
    return max(0.0, 100 * low), min(100.0, 100 * high)


def _split_points(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Return a list of all x and a list of all y of points (x, y), as matplotlib wants them."""
    return [x for x, _ in points], [y for _, y in points]


def plot_pairs(rows: Iterable[Row], path: str, look: Look = PAPER) -> None:
    """Write the figure of `hoicli pairstats` from its rows: pair precision by pair recall over all classes (subset
    `full`), a point for each threshold of NMS or of the score, with the threshold beside it, and a line for each model.

    Only the first models are drawn, as many as LINES can tell apart. Raises `UsageError` if there is nothing to draw,
    and for a file that cannot be written."""
    rows = list(rows)
    lines = _pair_lines(rows)
    if not lines:
        raise UsageError(f"{arg('plot')}: there is no pair recall with its precision (subset full) to draw")
    remark = left_out_remark(min(len(lines), len(LINES)), len(lines), "models")
    with save_figure(path, look, remark, caveats_of(rows)) as figure:
        width = look.room(COLUMN_WIDTH)
        figure.set_size_inches(width, min(2.7, 0.8 * width))
        ax, threshold_labels = figure.add_subplot(), []
        names = short_labels(list(lines))
        for (colour, marker, stroke), name, line in zip(LINES, names, lines.values(), strict=False):
            points = _split_points([(x, y) for x, y, _ in sorted(line)])  # by recall: no line goes back and forth
            ax.plot(*points, color=colour, marker=marker, linestyle=stroke, ms=4, lw=1.2, label=name or None)
            threshold_labels += [
                ax.annotate(threshold, (x, y), (3, 3), textcoords="offset points", fontsize=TINY, color=colour)
                for x, y, threshold in line
            ]
        ax.margins(0.2)
        hide_frame(ax)
        ax.set(xlabel="pair recall (%)", ylabel="pair precision (%)")
        ax.locator_params(nbins=5, axis="x")
        handles, _ = ax.get_legend_handles_labels()
        add_legend(figure, handles, columns=3)
        _separate_labels(threshold_labels, figure)


def _pair_lines(rows: Iterable[Row]) -> dict[str, list[tuple[float, float, str]]]:
    """Return the points (pair recall, pair precision, threshold as text) of each model, from rows of the subset `full`.
    A point without both values is left out."""
    values: dict[tuple[str, str], dict[str, float | None]] = defaultdict(dict)  # by (model, threshold), then metric
    for row in rows:
        if row["subset"] == "full":
            thresholds = [f"{name} {write_number(row[key])}" for key, name in _SWEPT.items() if row[key] is not None]
            values[model_name(row), next(iter(thresholds), "all pairs")][row["metric"]] = value_of(row)
    lines: dict[str, list[tuple[float, float, str]]] = {model: [] for model, _ in values}
    for (model, threshold), point in values.items():
        recall, precision = point.get("pair_recall"), point.get("pair_precision")
        if recall is not None and precision is not None:
            lines[model].append((recall, precision, threshold))
    return {model: points for model, points in lines.items() if points}


def _separate_labels(labels: Sequence[Annotation], figure: Figure) -> None:
    """Move each label that covers a point or an earlier label to another corner of its own point, or further away; one
    for which there is no free place stays at the last that was tried."""
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()  # now matplotlib knows where points and labels are
    half_marker = 2 * figure.dpi / 72  # 2 points, in pixels
    centres = [figure.axes[0].transData.transform(label.xy) for label in labels]
    covered = [Bbox([centre - half_marker, centre + half_marker]) for centre in centres]
    corners = ((3, 3), (-3, 3), (3, -9), (-3, -9))  # offsets (x, y) from the point, in points
    for label in labels:
        for distance, (x, y) in product(range(1, 9), corners):
            label.xyann = (x, y * distance)
            label.set_horizontalalignment("left" if x > 0 else "right")
            extent = label.get_window_extent()
            if not any(extent.overlaps(other) for other in covered):
                break
        covered.append(extent)
