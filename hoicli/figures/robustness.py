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
"""Heat maps in one figure."""
_ACROSS = 3
_LINE, _ABOVE, _BELOW, _NAMES = 0.15, 0.42, 0.32, 1.25
"""Inches: of a heat map a line's height, what its title and its severities take, and the corruptions' names."""
_SCALE, _PANEL, _ROOM = 0.5, 1.6, 0.24
"""Inches of the scale of colours, of the narrowest heat map, whose title has 22 letters, and of a number in a cell."""

Means = Mapping[tuple[str, str, int], float]
"""(corruption, family, severity), "" and 0 for all -> mean; the clean value is of CLEAN."""
CLEAN = ("clean", "", 0)
Cells = Mapping[tuple[str, int], float]
"""(corruption, severity) -> value in percent."""


def plot_robustness(
    models: Mapping[str, Means], path: str, *, metric: str = "mAP", caveats: Sequence[str] = (), look: Look = PAPER
) -> None:
    """How models stand corruption, of as many of the first models as LINES can tell apart. On the left the mean by
    severity, from the clean value on: of one model a line a family and one of all, of several a line a model. On the
    right bars of the means over severities, by family.

    `metric` is what the means are of, in percent. Raises `UsageError` as `plot_diagnosis` does.
    """
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
    """Yield the bars of each family and of all: of one model in the colours of its lines, of several each model's under
    a heading."""
    families = [family for family in FAMILIES if any(("", family, 0) in means for means in models.values())]
    for series_style, family in zip(SERIES, [*families, ""], strict=False):
        words = FAMILIES.get(family, "All: MRI")
        if len(models) > 1:
            yield Bar(words)
        for style, (model, means) in zip(SERIES, models.items(), strict=False):
            name, look = (model or "no name", style) if len(models) > 1 else (words, series_style)
            yield Bar(name, means.get(("", family, 0)), look)


def _lines(models: Mapping[str, Means]) -> dict[str, list[tuple[float, float]]]:
    """name -> its (severity, mean), the clean value at 0."""
    lines = {}
    for model, means in models.items():
        clean = [(0.0, means[CLEAN])] if CLEAN in means else []
        families = [family for family in FAMILIES if ("", family, 0) in means] if len(models) == 1 else []
        for family in [*families, ""]:
            name = model or "no name" if len(models) > 1 else FAMILIES.get(family, "All")
            points = [(level, value) for (*of, level), value in means.items() if level and of == ["", family]]
            lines[name] = sorted([*clean, *points])
    return lines


def plot_heat_maps(
    models: Mapping[str, Means], cells: Sequence[Cells], path: str, *, metric: str = "mAP",
    caveats: Sequence[str] = (), look: Look = PAPER,
) -> None:  # fmt: skip
    """Every corruption at every severity by colour and number, a panel for each of the first MOST_PANELS models; cells:
    of each model, in the order to be drawn, what is missing left out.

    All panels have one scale, from 0 to the highest value of any, and one set of lines and columns: those that any of
    the models has. Families are set apart by a white line.
    """
    panels_shown = list(zip(labels(list(models)), models.values(), cells, strict=True))[:MOST_PANELS]
    corruptions = list(dict.fromkeys(name for name, _ in chain.from_iterable(of for *_, of in panels_shown)))
    severities = sorted({level for _, level in chain.from_iterable(of for *_, of in panels_shown)})
    top = max(chain.from_iterable((means.get(CLEAN, 0.0), *of.values()) for _, means, of in panels_shown)) or 1.0
    # one or two panels have no need of the page
    width = look.room(PAGE_WIDTH if len(panels_shown) >= _ACROSS else _NAMES + 2.3 * len(panels_shown) + _SCALE)
    across = max(1, min(len(panels_shown), _ACROSS, int((width - _NAMES - _SCALE) / _PANEL)))
    down = math.ceil(len(panels_shown) / across)
    numbered = (width - _NAMES - _SCALE) / across / max(len(severities), 1) >= _ROOM
    with save_figure(path, look, first_of(len(panels_shown), len(models), "models"), caveats) as figure:
        figure.set_size_inches(width, down * (_LINE * len(corruptions) + _ABOVE + _BELOW) + 0.3)
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for at, (ax, (name, means, of)) in enumerate(zip(panels, panels_shown, strict=False)):
            rows = [[of.get((what, level), math.nan) for level in severities] for what in corruptions]
            names = [label(what.replace("_", " ")) for what in corruptions]
            mesh = draw_cells(ax, rows, names, list(map(str, severities)), 0, top, digits=1 if numbered else None)
            if at % across:
                ax.set_yticks([])
            families = enumerate(pairwise(map(family_of, corruptions)), start=1)
            for y in [y for y, (above, below) in families if above != below]:
                ax.axhline(y, color="#FFFFFF", lw=2.5)
            ax.set_xlabel("severity")
            whole = (("clean", CLEAN), ("MRI", ("", "", 0)))
            below = ", ".join(f"{what} {means[part]:.1f}" for what, part in whole if part in means)
            ax.set_title("\n".join(filter(None, (name, below))), fontsize=SMALL, loc="left")
        for ax in panels[len(panels_shown) :]:
            ax.set_visible(False)
        scale = figure.colorbar(mesh, ax=list(panels), fraction=0.05, aspect=30, label=f"{metric} (%)")
        scale.outline.set_visible(False)
