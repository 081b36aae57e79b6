"""Figures of a diagnosis and of a corrupted benchmark: delta mAP by oracle, errors along the ranked list, pair recall
against pair precision; mAP by severity, corruption and family.

Rows of results go in (values in percent), a .png, .svg or .pdf file comes out; the same rows give the same bytes. What
is drawn of a diagnosis follows Fig. 7 of the Diag-HOI paper (IJCV 2024). matplotlib is an extra, imported only to draw.

Made for paper: the page's full width, a column's for `plot_pairs`, no print under 8 pt. An error type has
one colour (Okabe and Ito's, which colour-blind readers can tell apart) and one hatch, so grey prints read too.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hoicli.errors import UsageError
from hoicli.outputs import NO_MATPLOTLIB, atomic_path, check_figure
from hoicli.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALL_CLASSES = ("full", "25")
"""What the subset of all classes is called: V-COCO's is named after its 25 action-roles."""

COMPOSITIONS_SHOWN = 4
"""Compositions a figure has room for; the bars beside them have no such limit."""

NO_SUM = "Deltas do not add up to 100 \N{MINUS SIGN} mAP."
PAGE_WIDTH = 7.0
COLUMN_WIDTH = 3.4
"""Inches; the text and column widths of the usual two-column style."""

CAPTION, LEGEND_LINE = 0.22, 0.19
"""Inches kept for the small print along the lower edge, and for each line of the legend over it."""

SMALL, NORMAL = 8.0, 9.0
"""Points."""

Composition = Mapping[str, Any]
"""`edges`: n + 1 ranks; `counts`: for each error type, how many of its predictions lie in each of the n bins."""


Box = tuple[float, float, float, float]
"""Left, low, right and high end, in pixels of the figure."""


@dataclass(frozen=True)
class Style:
    """How an error type or an oracle is shown: its name in words, colour, hatch, and the hatch's colour."""

    words: str
    colour: str
    hatch: str = ""
    ink: str = "#000000"


STYLES: Mapping[str, Style] = {
    "true_positive": Style("True positive", "#009E73"),
    "duplicate": Style("Duplicate", "#F0E442", "...."),
    "interaction": Style("Interaction", "#0072B2", "////", "#FFFFFF"),
    "association": Style("Association", "#CC79A7", "xxxx"),
    "object_box": Style("Object box", "#E69F00", "\\\\\\\\"),
    "human_box": Style("Human box", "#56B4E9", "----"),
    "both_boxes": Style("Both boxes", "#D55E00", "||||", "#FFFFFF"),
    "missed_gt": Style("Missed GT", "#999999", "++++"),
    "false_positive": Style("False positive", "#FFFFFF"),
    "false_negative": Style("False negative", "#444444"),
}
"""Every error type, in its order, then the two oracles that repair no single type."""

ORACLES = tuple(name for name in STYLES if name != "true_positive")
GROUPED = ("false_positive", "false_negative")
"""The oracles over all errors of a side, which the paper sets apart from the rest."""

LINES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", "-"),
    ("#56B4E9", "P", "--"),
    ("#000000", "X", "-."),
)
"""Colour, marker and stroke of each model's line, in turn."""


HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "----", "||||")
"""A bar's hatch beside each of LINES, for grey prints."""


def plot_diagnosis(rows: Iterable[Row], compositions: Mapping[str, Composition], path: str) -> None:
    """Delta mAP by oracle, and beside it the share of each error type along the ranked list of each model.

    Drawn are the rows of metric `delta_mAP` over ALL_CLASSES; a value of None is a dash. `compositions` is keyed by
    model (`model_name` of the rows). Raises `UsageError` where there is nothing to draw, two rows claim one bar, the
    file's ending is unknown or matplotlib is missing.
    """
    deltas = _deltas(rows)
    shown = [model for model in dict.fromkeys([*deltas, *compositions]) if model in compositions]
    notes = [NO_SUM]
    if len(shown) > COMPOSITIONS_SHOWN:
        notes.append(f"Composition: the first {COMPOSITIONS_SHOWN} of {len(shown)} models.")
        shown = shown[:COMPOSITIONS_SHOWN]
    with _saved(path) as figure:
        pitch = 0.19 if len(deltas) == 1 else 0.15
        height = max(pitch * len(_places(deltas)), 1.1 * len(shown), 1.5) + (1.2 if shown else 0.75)
        figure.set_size_inches(PAGE_WIDTH if shown else COLUMN_WIDTH, height)
        grid = figure.add_gridspec(1, 2 if shown else 1)
        _draw_deltas(figure.add_subplot(grid[0, 0]), deltas)
        if shown:
            panels = grid[0, 1].subgridspec(len(shown), 1)
            axes = [figure.add_subplot(panels[at, 0]) for at in range(len(shown))]
            for at, (ax, model) in enumerate(zip(axes, shown, strict=True)):
                _draw_composition(ax, compositions[model], _clean(model))
                if at == 0:
                    named = f": {_clean(model)}" if model and len(shown) > 1 else ""
                    ax.set_title(f"Predictions by rank{named}", fontsize=NORMAL, loc="left")
                if at == len(shown) - 1:
                    ax.set_xlabel("rank in descending score")
        legend = _add_legend(figure, [compositions[model] for model in shown])
        _add_caption(figure, "  ".join(notes), above=legend)


def plot_pairs(rows: Iterable[Row], path: str) -> None:
    """Pair recall (x) against pair precision (y) over a sweep, a line per model, each point labelled by its threshold.

    Drawn are the rows of metrics `pair_recall` and `pair_precision` and subset `full`; `nms` and `det_threshold` say
    where in the sweep. A point lacking either value is left out. Raises `UsageError` as `plot_diagnosis` does.
    """
    lines = pair_sweeps(rows)
    swept = [key for key in ("nms", "det_threshold") if any(point[key] is not None for point in _all(lines))]
    with _saved(path) as figure:
        figure.set_size_inches(COLUMN_WIDTH, 2.9)
        ax = figure.add_subplot()
        for at, (model, points) in enumerate(lines.items()):
            colour, marker, stroke = LINES[at % len(LINES)]
            xs, ys = [point["x"] for point in points], [point["y"] for point in points]
            ax.plot(xs, ys, color=colour, marker=marker, linestyle=stroke, ms=4, lw=1.2, label=_clean(model) or None)
        _bare(ax)
        ax.margins(0.14, 0.16)
        ax.set_xlabel("pair recall (%)")
        ax.set_ylabel("pair precision (%)")
        if any(lines):
            figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=SMALL)
        words = {"nms": "pair NMS", "det_threshold": "detection"}
        if swept:
            _add_caption(figure, f"Points: {' / '.join(words[key] for key in swept)} threshold.")
        figure.draw_without_rendering()  # the axes have their place now, so the labels can look for theirs
        _label_points(ax, lines, swept)


def plot_robustness(rows: Iterable[Row], path: str, *, metric: str = "mAP") -> None:
    """How models stand corruption: on the left the mean by severity, from the clean value on; on the right bars.

    Drawn are the rows of `hoicli robust`: of one model a line a family and a bar a corruption, of several a line a
    model and its bars by family, for as many of the first as LINES can tell apart. `metric` is what the rows average.
    Raises `UsageError` as `plot_diagnosis` does.
    """
    models = _robustness(rows)
    shown = dict(list(models.items())[: len(LINES)])
    lines = _severity_lines(shown)
    places = _robustness_places(shown)
    with _saved(path) as figure:
        rows_of_legend = math.ceil(len(lines) / 3)
        figure.set_size_inches(PAGE_WIDTH, max(0.15 * len(places), 1.8) + 0.75 + LEGEND_LINE * rows_of_legend)
        left, right = figure.subplots(1, 2)
        for look, (name, points) in zip(LINES, lines.items(), strict=False):
            colour, marker, stroke = look
            xs, ys = [x for x, _ in points], [y for _, y in points]
            left.plot(xs, ys, color=colour, marker=marker, linestyle=stroke, ms=4, lw=1.2, label=name)
        _bare(left)
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
        _add_caption(figure, _robustness_caption(models, len(shown)), above=LEGEND_LINE * rows_of_legend)


def model_name(row: Row) -> str:
    """Whose row it is: its `model`, its tag `model`, else all its tags; empty when nothing tells."""
    tags = row.get("tags") or {}
    return str(row.get("model") or tags.get("model") or " ".join(str(value) for value in tags.values()))


def _deltas(rows: Iterable[Row]) -> dict[str, dict[str, float | None]]:
    """model -> oracle -> delta mAP, models in order of first appearance."""
    deltas: dict[str, dict[str, float | None]] = {}
    for row in rows:
        if row.get("metric") != "delta_mAP" or row.get("subset") not in ALL_CLASSES:
            continue
        model, oracle = model_name(row), row["oracle"]
        if oracle in deltas.setdefault(model, {}):
            raise UsageError(
                f"--plot: two values of oracle {oracle} for model {model or 'without a name'}; "
                "give each file its own --tag model=NAME"
            )
        deltas[model][oracle] = _value(row)
    if not deltas:
        raise UsageError("--plot: there is no delta_mAP over all classes (subset full, or 25) to draw")
    return deltas


def pair_sweeps(rows: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    """model -> its points by rising recall, so that a line never doubles back."""
    found: dict[tuple[str, float | None, float | None], dict[str, float]] = {}
    for row in rows:
        value = _value(row)
        if row.get("metric") in ("pair_recall", "pair_precision") and row.get("subset") == "full" and value is not None:
            key = (model_name(row), row.get("nms"), row.get("det_threshold"))
            metric = str(row["metric"])
            if metric in found.setdefault(key, {}):
                raise UsageError(
                    f"--plot: two values of {metric} for model {key[0] or 'without a name'} at one threshold; "
                    "give each file its own --tag model=NAME"
                )
            found[key][metric] = value
    lines: dict[str, list[dict[str, Any]]] = {}
    for (model, nms, threshold), point in found.items():
        if len(point) == 2:
            place = {"x": point["pair_recall"], "y": point["pair_precision"]}
            lines.setdefault(model, []).append({**place, "nms": nms, "det_threshold": threshold})
    if not lines:
        raise UsageError("--plot: there is no pair recall with its precision (subset full) to draw")
    for points in lines.values():
        points.sort(key=lambda point: (point["x"], point["y"], str(point["nms"]), str(point["det_threshold"])))
    return lines


FAMILY_WORDS = {
    "optical": "Optical system",
    "sensor": "Sensor, transmission",
    "environment": "Environment",
    "geometry": "Geometry, scene",
    "other": "Other",
}
"""RoHOI's families as a figure names them."""

Part = tuple[str, str, int]
"""(corruption, family, severity) that a mean is of, "" and 0 for all; the clean value is of ("clean", "", 0)."""


def _robustness(rows: Iterable[Row]) -> dict[str, dict[Part, float]]:
    """model -> part -> mean, models and parts in order of first appearance."""
    models: dict[str, dict[Part, float]] = {}
    for row in rows:
        value = _value(row)
        if value is None or row.get("metric") not in ("clean", "mri", "mean"):
            continue
        corruption = "clean" if row["metric"] == "clean" else row.get("corruption", "")
        part = (corruption, row.get("family", ""), row.get("severity", 0))
        means = models.setdefault(model_name(row), {})
        if part in means:
            raise UsageError(
                f"--plot: two values of one mean for model {model_name(row) or 'without a name'}; "
                "give each its own --tag model=NAME"
            )
        means[part] = value
    models = {model: means for model, means in models.items() if ("", "", 0) in means}
    if not models:
        raise UsageError("--plot: there is no row of hoicli robust to draw")
    return models


def severity_lines(rows: Iterable[Row]) -> dict[str, list[tuple[int, float]]]:
    """What a line is called -> its (severity, mean), the clean value at 0, of the rows of `hoicli robust`.

    Of one model a line a family and one of all, of several a line a model, for as many as LINES can tell apart. Raises
    `UsageError` where there is nothing to draw or two rows claim one point.
    """
    return _severity_lines(dict(list(_robustness(rows).items())[: len(LINES)]))


def _severity_lines(models: Mapping[str, Mapping[Part, float]]) -> dict[str, list[tuple[int, float]]]:
    """What a line is called -> its (severity, mean), the clean value at 0: of one model a line a family and all."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for model, means in models.items():
        families = [*_families(means), ""] if len(models) == 1 else [""]
        for family in families:
            name = _clean(model) or "no name" if len(models) > 1 else FAMILY_WORDS.get(family, "All")
            points = [(severity, value) for (what, of, severity), value in means.items() if (what, of) == ("", family)]
            clean = [(0, value) for part, value in means.items() if part == ("clean", "", 0)]
            while name in lines:  # two long names that are one when cut
                name += "'"
            lines[name] = sorted([*clean, *(point for point in points if point[0])])
    return lines


def _families(means: Mapping[Part, float]) -> list[str]:
    return [family for family in FAMILY_WORDS if any(part == ("", family, 0) for part in means)]


def _robustness_places(models: Mapping[str, Mapping[Part, float]]) -> list[tuple[str, float | None, int | None]]:
    """The bars from the top: (label, value, place in LINES); a heading has no place, a gap no label either."""
    places: list[tuple[str, float | None, int | None]] = []
    if len(models) == 1:
        means = next(iter(models.values()))
        for at, family in enumerate(_families(means)):
            bars = [(what, value) for (what, of, _), value in means.items() if what and of == family]
            places += [("", None, None)] * bool(places)
            places += [(_clean(name.replace("_", " ")), value, at) for name, value in bars]
        return places
    present = [family for family in FAMILY_WORDS if any(family in _families(means) for means in models.values())]
    for family in (*present, ""):
        places.append((FAMILY_WORDS.get(family, "All"), None, None))
        for at, (model, means) in enumerate(models.items()):
            places.append((_clean(model) or "no name", means.get(("", family, 0)), at))
    return places


def _robustness_caption(models: Mapping[str, Mapping[Part, float]], shown: int) -> str:
    if len(models) > 1:
        return f"The first {shown} of {len(models)} models." if shown < len(models) else ""
    model, means = next(iter(models.items()))
    clean = means.get(("clean", "", 0))
    parts = [f"clean {clean:.1f}"] if clean is not None else []
    parts.append(f"MRI {means['', '', 0]:.1f}")
    return f"{_clean(model) or 'One model'}: {', '.join(parts)}."


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
    _name_bars(ax, len(places), ticks)
    ax.set_xlim(0, 1.16 * (max((value for _, value, _ in places if value is not None), default=0.0) or 1.0))


def _value(row: Row) -> float | None:
    value = row.get("value")
    return None if value is None or not math.isfinite(value) else float(value)


def _all(lines: Mapping[str, list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    for points in lines.values():
        yield from points


def _clean(name: str) -> str:
    """A name as matplotlib may have it: one short line, no control characters, no `$` that would start a formula."""
    text = "".join(letter if letter.isprintable() else " " for letter in name)
    return (text if len(text) <= 22 else text[:21] + "\N{HORIZONTAL ELLIPSIS}").replace("$", r"\$")


def _places(deltas: Mapping[str, Mapping[str, float | None]]) -> list[tuple[str, str | None]]:
    """The lines of the bar chart from the top: (oracle, model), (oracle, None) for a heading, ("", None) for a gap."""
    present = [oracle for oracle in ORACLES if any(oracle in values for values in deltas.values())]
    places: list[tuple[str, str | None]] = []
    for oracle in present:
        if oracle in GROUPED and places and places[-1][0] not in GROUPED:
            places.append(("", None))
        if len(deltas) > 1:
            places.append((oracle, None))
        places.extend((oracle, model) for model in deltas)
    return places


def _draw_deltas(ax: Axes, deltas: Mapping[str, Mapping[str, float | None]]) -> None:
    places = _places(deltas)
    one = len(deltas) == 1
    ticks: list[tuple[int, str, bool]] = []
    for y, (oracle, model) in enumerate(places):
        if model is None:
            if oracle:
                ticks.append((y, STYLES[oracle].words, True))
            continue
        ticks.append((y, STYLES[oracle].words if one else _clean(model) or "no name", False))
        value = deltas[model].get(oracle)
        if value is not None:
            ax.barh([y], [value], height=0.78, **_look(STYLES[oracle]))
            ax.barh([y], [value], height=0.78, facecolor="none", edgecolor="#000000", linewidth=0.5)
        text = "\N{EN DASH}" if value is None else f"{value:.1f}".replace("-", "\N{MINUS SIGN}")
        ax.annotate(text, (max(value or 0.0, 0.0), y), (3, 0), textcoords="offset points", va="center", fontsize=SMALL)
    _name_bars(ax, len(places), ticks)
    known = [value for values in deltas.values() for value in values.values() if value is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    room = (high - low) or 1.0
    ax.set_xlim(low - 0.03 * room if low < 0 else 0.0, high + 0.16 * room)  # the longest bar's number needs the rest
    ax.set_xlabel("\N{GREEK CAPITAL LETTER DELTA}mAP (points)")
    only = next(iter(deltas))
    named = f": {_clean(only)}" if one and only else ""
    ax.set_title(f"mAP gained by oracle{named}", fontsize=NORMAL, loc="left")


def _name_bars(ax: Axes, places: int, names: Sequence[tuple[int, str, bool]]) -> None:
    """A chart of horizontal bars from the top: (place, name, whether it is a heading) along its left edge."""
    _bare(ax)
    ax.set_ylim(places - 0.4, -0.6)
    ax.set_yticks([y for y, _, _ in names], [text for _, text, _ in names])
    for label, (_, _, heading) in zip(ax.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if heading else "normal")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.axvline(0, color="#000000", lw=0.8)


def _draw_composition(ax: Axes, composition: Composition, model: str) -> None:
    """Stacked shares; a bin without predictions stays empty, and bins are equally wide whatever their ranks."""
    edges: Sequence[float] = composition["edges"]
    counts: Mapping[str, Sequence[float]] = composition["counts"]
    bins = len(edges) - 1
    totals = [sum(values[at] for values in counts.values()) for at in range(bins)]
    floor = [0.0] * bins
    for name in _present([composition]):
        shares = [100 * count / total if total else 0.0 for count, total in zip(counts[name], totals, strict=True)]
        tops = [below + share for below, share in zip(floor, shares, strict=True)]
        ax.stairs(tops, range(bins + 1), baseline=floor, fill=True, **_look(STYLES[name]))
        floor = tops
    _bare(ax)
    ax.set_xlim(0, max(bins, 1))
    ax.set_ylim(0, 100)
    ax.set_yticks([0, 50, 100])
    ax.set_ylabel("share (%)")
    marks = sorted({round(at * bins / 4) for at in range(5)})
    ax.set_xticks(marks, [_rank(edges[at]) for at in marks])
    ax.set_title(model, fontsize=NORMAL, loc="left")


def _rank(rank: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if rank >= size:
            return f"{rank / size:.3g}{letter}"
    return f"{rank:.0f}"


def _present(compositions: Sequence[Composition]) -> list[str]:
    return [name for name in STYLES if any(any(item["counts"].get(name, ())) for item in compositions)]


def _add_legend(figure: Figure, compositions: Sequence[Composition]) -> float:
    """The legend above the caption; returns the inches it takes, which the layout does not find out by itself."""
    from matplotlib.patches import Patch

    handles = [Patch(label=STYLES[name].words, **_look(STYLES[name])) for name in _present(compositions)]
    if not handles:
        return 0.0
    at = (0.5, CAPTION / figure.get_figheight())
    figure.legend(
        handles=handles, loc="lower center", bbox_to_anchor=at, ncols=4, frameon=False, fontsize=SMALL, borderpad=0.2
    )
    return LEGEND_LINE * math.ceil(len(handles) / 4)


def _look(style: Style) -> dict[str, Any]:
    return {"facecolor": style.colour, "hatch": style.hatch, "edgecolor": style.ink, "linewidth": 0.4}


def _bare(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=SMALL)


def _add_caption(figure: Figure, text: str, above: float = 0.0) -> None:
    """Small print along the lower edge; room is kept for it and for `above` inches of legend over it."""
    room = (CAPTION + above) / figure.get_figheight()
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, room, 1, 1 - room))
    figure.text(0.01, 0.05 / figure.get_figheight(), text, fontsize=SMALL, style="italic", color="#444444", va="bottom")


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
                covered = sum(_overlap(box, other) for other in taken)
                outside = wide * high - _overlap(box, ax.bbox.extents)
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


def _overlap(one: Box, other: Box) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0


@contextmanager
def _saved(path: str) -> Iterator[Figure]:
    """An empty figure, written to `path` in one piece when the block ends well.

    No pyplot, so no window, no global figure; and matplotlib's own defaults instead of a user's matplotlibrc, a fixed
    salt for SVG ids and no dates, so that the bytes depend on nothing but what is drawn.
    """
    check_figure(path)
    ending = Path(path).suffix.lower()
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(NO_MATPLOTLIB) from None
    settings = {
        **{key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")},
        "font.size": SMALL,
        "axes.labelsize": SMALL,
        "hatch.linewidth": 0.5,
        "svg.hashsalt": "hoicli",
        "svg.fonttype": "none",  # words stay words: searchable, and editable by whoever sets the paper
        "pdf.fonttype": 42,  # TrueType; publishers refuse matplotlib's default, Type 3
    }
    undated: Mapping[str, Mapping[str, str | None]] = {
        ".png": {"Software": "hoicli"},
        ".svg": {"Creator": "hoicli", "Date": None},
        ".pdf": {"Creator": "hoicli", "Producer": "hoicli", "CreationDate": None},
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a model named in a script the font lacks
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        with atomic_path(path, "--plot") as temporary, open(temporary, "wb") as stream:
            figure.savefig(stream, format=ending[1:], dpi=300, metadata=undated[ending])
