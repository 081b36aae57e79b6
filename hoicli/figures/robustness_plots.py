"""Figures of how well models withstand corrupted images: by severity, corruption and family of corruptions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from hoicli.corruption.catalogue import FAMILIES, family_of
from hoicli.figures.canvas import Bar, add_legend, add_title, draw_bars, draw_cells, hide_frame, save_figure
from hoicli.figures.shown import left_out_remark, short_label, short_labels
from hoicli.figures.styles import BESIDE, LINES, PAGE_WIDTH, PAPER, SERIES, SMALL, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLOTS = ("curves", "heatmap")
"""The figures of --plot-kind: curves of means by severity beside bars by family; heat maps of every corruption at every
severity."""
MOST_PANELS = 6
"""How many heat maps one figure shows at most."""
_ACROSS = 3
"""How many heat maps stand side by side at most."""
_LINE, _ABOVE, _BELOW, _NAMES = 0.15, 0.42, 0.32, 1.25
"""Inches of a heat map: the height of a row, of its title, of the severities below it; the width of the names."""
_SCALE, _PANEL, _ROOM = 0.5, 1.6, 0.24
"""Inches: the width of the colour scale, of the narrowest heat map (for its title), of a cell with a number."""

Means = Mapping[tuple[str, str, int], float]
"""The mean in percent by (corruption, family, severity), "" and 0 standing for all; CLEAN has that on clean images,
OVERALL (MRI) that over all corruptions and severities."""
CLEAN, OVERALL = ("clean", "", 0), ("", "", 0)
Cells = Mapping[tuple[str, int], float]
"""The value in percent by (corruption, severity)."""


def plot_robustness(
    models: Mapping[str, Means], path: str, *, metric: str = "mAP", caveats: Sequence[str] = (), look: Look = PAPER
) -> None:
    """Write a figure with two panels, side by side or one below the other. The first has lines of the mean by severity,
    from the value on clean images on: one for each model, or for a single model one for each family and one for all.
    The second has bars of the means over severities by family.

    models: the means of each model by its name; the first ones are drawn, as many as LINES can tell apart. metric: what
    the means are of, in percent. Raises `UsageError` for a file that cannot be written."""
    models_shown = dict(zip(short_labels(list(models)), models.values(), strict=True)) if len(models) > 1 else models
    models_shown = dict(list(models_shown.items())[: len(LINES)])
    lines, bars = _lines(models_shown), list(_bars(models_shown))
    with save_figure(path, look, left_out_remark(len(models_shown), len(models), "models"), caveats) as figure:
        width = look.room(PAGE_WIDTH)
        side_by_side, high = width >= BESIDE, max(0.15 * len(bars), 1.35) + 0.75
        figure.set_size_inches(width, high if side_by_side else high + 2.4)
        if side_by_side:
            line_panel, bar_panel = figure.subplots(1, 2)
        else:
            line_panel, bar_panel = figure.subplots(2, 1, gridspec_kw={"height_ratios": (2.4, high)})
        _draw_lines(line_panel, lines)
        line_panel.set(xlabel="severity", ylabel=f"{metric} (%)")
        title = "Mean over corruptions"
        if len(models_shown) == 1:
            model, means = next(iter(models_shown.items()))
            title += f": {short_label(model) or 'one model'}"
            title += f", clean {means[CLEAN]:.1f}" if CLEAN in means else ""
        draw_bars(bar_panel, bars)
        bar_panel.set_xlabel(f"{metric} (%)")
        title_width = width / 2 - 1.2 if side_by_side else width - 1.8
        add_title(line_panel, title, title_width)
        add_title(bar_panel, "Mean over severities", title_width)
        handles, _ = line_panel.get_legend_handles_labels()
        add_legend(figure, handles)


def _draw_lines(ax: Axes, lines: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draw lines of means by severity into a panel. lines: the points (severity, mean) of each line by its name, with
    the clean images at severity 0."""
    for (colour, marker, stroke), (name, points) in zip(LINES, lines.items(), strict=False):
        severities, means = zip(*points, strict=True)
        ax.plot(
            severities, means, color=colour, marker=marker, ls=stroke, ms=4, lw=1.2, label=name, clip_on=False, zorder=3
        )
    hide_frame(ax)
    ticks = sorted({severity for severity, _ in chain.from_iterable(lines.values())})
    ax.set_xticks(ticks, [str(severity or "clean") for severity in ticks])
    ax.set_ylim(bottom=0)


def _bars(models: Mapping[str, Means]) -> Iterator[Bar]:
    """Yield the bars of means over severities: for a single model one for each family and one for all, in the colours
    of its lines; for several models a heading for each family and for all, then a bar for each model."""
    # means are by (corruption, family, severity), with "" and 0 for all
    families = [family for family in FAMILIES if any(("", family, 0) in means for means in models.values())]
    for family_style, family in zip(SERIES, [*families, ""], strict=False):
        family_title = FAMILIES.get(family, "All: MRI")
        if len(models) == 1:
            (means,) = models.values()
            yield Bar(family_title, means.get(("", family, 0)), family_style)
            continue
        yield Bar(family_title)  # a heading
        for style, (model, means) in zip(SERIES, models.items(), strict=False):
            yield Bar(model or "no name", means.get(("", family, 0)), style)


def _lines(models: Mapping[str, Means]) -> dict[str, list[tuple[float, float]]]:
    """Return the points (severity, mean) of each line by its name, with the value on clean images at severity 0. Each
    model has a line; a single model has one for each family and one for all."""
    lines = {}
    for model, means in models.items():
        clean = [(0.0, means[CLEAN])] if CLEAN in means else []
        families = [family for family in FAMILIES if ("", family, 0) in means] if len(models) == 1 else []
        for family in [*families, ""]:
            name = model or "no name" if len(models) > 1 else FAMILIES.get(family, "All")
            # keys are (corruption, family, severity), with "" and 0 for all
            points = [(level, value) for (*group, level), value in means.items() if level and group == ["", family]]
            lines[name] = sorted([*clean, *points])
    return lines


def plot_heat_maps(
    models: Mapping[str, Means], cells: Sequence[Cells], path: str, *, metric: str = "mAP",
    caveats: Sequence[str] = (), look: Look = PAPER,
) -> None:  # fmt: skip
    """Write a figure with a heat map for each of the first MOST_PANELS models: a row for each corruption, a column for
    each severity. White lines separate the families of corruptions.

    models: the means of each model by its name, for the title. cells: the values of each model, in the order of
    `models`; their order is that of the rows, and a missing value is grey. All maps have the same rows and columns, and
    one colour scale from 0 to the highest value. metric: what the values are of."""
    panels_shown = list(zip(short_labels(list(models)), models.values(), cells, strict=True))[:MOST_PANELS]
    all_cells = list(chain.from_iterable(values for *_, values in panels_shown))
    corruptions = list(dict.fromkeys(corruption for corruption, _ in all_cells))
    severities = sorted({severity for _, severity in all_cells})
    highest = max(chain.from_iterable((means.get(CLEAN, 0.0), *values.values()) for _, means, values in panels_shown))
    # one or two maps do not need the whole width of a page
    width = look.room(PAGE_WIDTH if len(panels_shown) >= _ACROSS else _NAMES + 2.3 * len(panels_shown) + _SCALE)
    across = max(1, min(len(panels_shown), _ACROSS, int((width - _NAMES - _SCALE) / _PANEL)))
    down = math.ceil(len(panels_shown) / across)
    has_room_for_numbers = (width - _NAMES - _SCALE) / across / max(len(severities), 1) >= _ROOM
    with save_figure(path, look, left_out_remark(len(panels_shown), len(models), "models"), caveats) as figure:
        figure.set_size_inches(width, down * (_LINE * len(corruptions) + _ABOVE + _BELOW) + 0.3)
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for number, (ax, (name, means, values)) in enumerate(zip(panels, panels_shown, strict=False)):
            rows = [[values.get((corruption, level), math.nan) for level in severities] for corruption in corruptions]
            names = [short_label(corruption.replace("_", " ")) for corruption in corruptions]
            columns = list(map(str, severities))
            digits = 1 if has_room_for_numbers else None
            mesh = draw_cells(ax, rows, names, columns, 0, highest or 1.0, digits=digits)  # any one makes the scale
            if number % across:  # only the first map of a row has names
                ax.set_yticks([])
            _separate_families(ax, corruptions)
            ax.set_xlabel("severity")
            titled = (("clean", CLEAN), ("MRI", OVERALL))
            second_line = ", ".join(f"{title} {means[key]:.1f}" for title, key in titled if key in means)
            ax.set_title("\n".join(filter(None, (name, second_line))), fontsize=SMALL, loc="left")
        for ax in panels[len(panels_shown) :]:
            ax.set_visible(False)
        scale = figure.colorbar(mesh, ax=list(panels), fraction=0.05, aspect=30, label=f"{metric} (%)")
        scale.outline.set_visible(False)


def _separate_families(ax: Axes, corruptions: Sequence[str]) -> None:
    """Draw a white line into a heat map between rows of different families. corruptions: of the rows, from the top."""
    for y, (family_above, family_below) in enumerate(pairwise(map(family_of, corruptions)), start=1):
        if family_above != family_below:
            ax.axhline(y, color="#FFFFFF", lw=2.5)
