"""How models stand corruption: by severity, corruption and family."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise

from hoicli.corruption.catalogue import FAMILIES, family_of
from hoicli.figures.canvas import Bar, add_legend, add_title, draw_bars, draw_cells, hide_frame, save_figure
from hoicli.figures.shown import first_of, label, labels
from hoicli.figures.styles import BESIDE, LINES, PAGE_WIDTH, PAPER, SERIES, SMALL, Look

PLOTS = ("curves", "heatmap")
"""The figures of a corrupted benchmark: means by severity beside those by family, and every cell by its colour."""
MOST_PANELS = 6
"""How many heat maps one figure shows at most."""
_ACROSS = 3
_LINE, _ABOVE, _BELOW, _NAMES = 0.15, 0.42, 0.32, 1.25
"""Inches: of a heat map a line's height, what its title and its severities take, and the corruptions' names."""
_SCALE, _PANEL, _ROOM = 0.5, 1.6, 0.24
"""Inches of the scale of colours, of the narrowest heat map, whose title has 22 letters, and of a number in a cell."""

Means = Mapping[tuple[str, str, int], float]
"""The mean by (corruption, family, severity), where "" and 0 stand for all; the clean value is at CLEAN."""
CLEAN = ("clean", "", 0)
Cells = Mapping[tuple[str, int], float]
"""The value in percent by (corruption, severity)."""


def plot_robustness(
    models: Mapping[str, Means], path: str, *, metric: str = "mAP", caveats: Sequence[str] = (), look: Look = PAPER
) -> None:
    """Write a figure of how as many of the first models as LINES can tell apart stand corruption. On the left, the mean
    by severity, from the clean value on: a line per model, or for a single model a line per family and one for all. On
    the right, bars of the means over severities by family.

    metric: what the means are of, in percent. Raises `UsageError` as `plot_diagnosis` does."""
    models_shown = dict(zip(labels(list(models)), models.values(), strict=True)) if len(models) > 1 else models
    models_shown = dict(list(models_shown.items())[: len(LINES)])
    lines, bars = _lines(models_shown), list(_bars(models_shown))
    with save_figure(path, look, first_of(len(models_shown), len(models), "models"), caveats) as figure:
        width = look.room(PAGE_WIDTH)
        side_by_side, high = width >= BESIDE, max(0.15 * len(bars), 1.35) + 0.75
        figure.set_size_inches(width, high if side_by_side else high + 2.4)
        left, right = (
            figure.subplots(1, 2) if side_by_side else figure.subplots(2, 1, gridspec_kw={"height_ratios": (2.4, high)})
        )
        for (colour, marker, stroke), (name, points) in zip(LINES, lines.items(), strict=False):
            left.plot(*zip(*points, strict=True), color=colour, marker=marker, ls=stroke, ms=4, lw=1.2, label=name)
        hide_frame(left)
        ticks = sorted({severity for severity, _ in chain.from_iterable(lines.values())})
        left.set_xticks(ticks, [str(severity or "clean") for severity in ticks])
        left.set_ylim(bottom=0)
        left.set(xlabel="severity", ylabel=f"{metric} (%)")
        title = "Mean over corruptions"
        for model, means in models_shown.items() if len(models_shown) == 1 else ():
            title += f": {label(model) or 'one model'}" + (f", clean {means[CLEAN]:.1f}" if CLEAN in means else "")
        draw_bars(right, bars)
        right.set_xlabel(f"{metric} (%)")
        for ax, words in ((left, title), (right, "Mean over severities")):
            add_title(ax, words, width / 2 - 1.2 if side_by_side else width - 1.8)
        add_legend(figure, left.get_legend_handles_labels()[0])


def _bars(models: Mapping[str, Means]) -> Iterator[Bar]:
    """Yield a bar for each family and for all, in the colours of the lines; with several models a heading for each
    family, then a bar for each model."""
    families = [family for family in FAMILIES if any(("", family, 0) in means for means in models.values())]
    for series_style, family in zip(SERIES, [*families, ""], strict=False):
        words = FAMILIES.get(family, "All: MRI")
        if len(models) > 1:
            yield Bar(words)
        for style, (model, means) in zip(SERIES, models.items(), strict=False):
            name, look = (model or "no name", style) if len(models) > 1 else (words, series_style)
            yield Bar(name, means.get(("", family, 0)), look)


def _lines(models: Mapping[str, Means]) -> dict[str, list[tuple[float, float]]]:
    """Return by name the points (severity, mean) of each line, with the clean value at severity 0."""
    lines = {}
    for model, means in models.items():
        clean = [(0.0, means[CLEAN])] if CLEAN in means else []
        families = [family for family in FAMILIES if ("", family, 0) in means] if len(models) == 1 else []
        for family in [*families, ""]:
            name = model or "no name" if len(models) > 1 else FAMILIES.get(family, "All")
            points = [(level, value) for (*group, level), value in means.items() if level and group == ["", family]]
            lines[name] = sorted([*clean, *points])
    return lines


def plot_heat_maps(
    models: Mapping[str, Means], cells: Sequence[Cells], path: str, *, metric: str = "mAP",
    caveats: Sequence[str] = (), look: Look = PAPER,
) -> None:  # fmt: skip
    """Write a figure with a heat map for each of the first MOST_PANELS models: every corruption at every severity, by
    colour and number. cells: each model's values, in the order to be drawn; values that are missing are left out.

    All panels share one scale, from 0 to the highest value, and the lines and columns that any of the models has. White
    lines separate the families."""
    panels_shown = list(zip(labels(list(models)), models.values(), cells, strict=True))[:MOST_PANELS]
    corruptions = list(dict.fromkeys(name for name, _ in chain.from_iterable(values for *_, values in panels_shown)))
    severities = sorted({level for _, level in chain.from_iterable(values for *_, values in panels_shown)})
    highest = max(chain.from_iterable((means.get(CLEAN, 0.0), *values.values()) for _, means, values in panels_shown))
    top = highest or 1.0
    # one or two panels have no need of the page
    width = look.room(PAGE_WIDTH if len(panels_shown) >= _ACROSS else _NAMES + 2.3 * len(panels_shown) + _SCALE)
    across = max(1, min(len(panels_shown), _ACROSS, int((width - _NAMES - _SCALE) / _PANEL)))
    down = math.ceil(len(panels_shown) / across)
    numbered = (width - _NAMES - _SCALE) / across / max(len(severities), 1) >= _ROOM
    with save_figure(path, look, first_of(len(panels_shown), len(models), "models"), caveats) as figure:
        figure.set_size_inches(width, down * (_LINE * len(corruptions) + _ABOVE + _BELOW) + 0.3)
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for number, (ax, (name, means, values)) in enumerate(zip(panels, panels_shown, strict=False)):
            rows = [[values.get((kind, level), math.nan) for level in severities] for kind in corruptions]
            names = [label(kind.replace("_", " ")) for kind in corruptions]
            mesh = draw_cells(ax, rows, names, list(map(str, severities)), 0, top, digits=1 if numbered else None)
            if number % across:
                ax.set_yticks([])
            families = enumerate(pairwise(map(family_of, corruptions)), start=1)
            for y in [y for y, (above, below) in families if above != below]:
                ax.axhline(y, color="#FFFFFF", lw=2.5)
            ax.set_xlabel("severity")
            overall = (("clean", CLEAN), ("MRI", ("", "", 0)))
            second_line = ", ".join(f"{word} {means[key]:.1f}" for word, key in overall if key in means)
            ax.set_title("\n".join(filter(None, (name, second_line))), fontsize=SMALL, loc="left")
        for ax in panels[len(panels_shown) :]:
            ax.set_visible(False)
        scale = figure.colorbar(mesh, ax=list(panels), fraction=0.05, aspect=30, label=f"{metric} (%)")
        scale.outline.set_visible(False)
