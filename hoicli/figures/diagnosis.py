"""Figures of a diagnosis and of a corrupted benchmark: delta mAP by oracle, errors along the ranked list, pair recall
against pair precision; mAP by severity, corruption and family.

Rows of results go in (values in percent), a .png, .svg or .pdf file comes out; the same rows give the same bytes. What
is drawn of a diagnosis follows Fig. 7 of the Diag-HOI paper (IJCV 2024). matplotlib is an extra, imported only to draw.

Made for paper: the page's full width, a column's for `plot_pairs`, no print under 8 pt. An error type has
one colour (Okabe and Ito's, which colour-blind readers can tell apart) and one hatch, so grey prints read too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hoicli.figures.canvas import add_caption, bare_axes, look_of, name_bars, saved
from hoicli.figures.shown import delta_places, deltas_of, short_name
from hoicli.figures.styles import CAPTION, COLUMN_WIDTH, LEGEND_LINE, NORMAL, PAGE_WIDTH, SMALL, STYLES
from hoicli.records.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COMPOSITIONS_SHOWN = 4
"""Compositions a figure has room for; the bars beside them have no such limit."""

NO_SUM = "Deltas do not add up to 100 \N{MINUS SIGN} mAP."

Composition = Mapping[str, Any]
"""`edges`: n + 1 ranks; `counts`: for each error type, how many of its predictions lie in each of the n bins."""


def plot_diagnosis(rows: Iterable[Row], compositions: Mapping[str, Composition], path: str) -> None:
    """Delta mAP by oracle, and beside it the share of each error type along the ranked list of each model.

    Drawn are the rows of metric `delta_mAP` over ALL_CLASSES; a value of None is a dash. `compositions` is keyed by
    model (`model_name` of the rows). Raises `UsageError` where there is nothing to draw, two rows claim one bar, the
    file's ending is unknown or matplotlib is missing.
    """
    deltas = deltas_of(rows)
    shown = [model for model in dict.fromkeys([*deltas, *compositions]) if model in compositions]
    notes = [NO_SUM]
    if len(shown) > COMPOSITIONS_SHOWN:
        notes.append(f"Composition: the first {COMPOSITIONS_SHOWN} of {len(shown)} models.")
        shown = shown[:COMPOSITIONS_SHOWN]
    with saved(path) as figure:
        pitch = 0.19 if len(deltas) == 1 else 0.15
        height = max(pitch * len(delta_places(deltas)), 1.1 * len(shown), 1.5) + (1.2 if shown else 0.75)
        figure.set_size_inches(PAGE_WIDTH if shown else COLUMN_WIDTH, height)
        grid = figure.add_gridspec(1, 2 if shown else 1)
        _draw_deltas(figure.add_subplot(grid[0, 0]), deltas)
        if shown:
            panels = grid[0, 1].subgridspec(len(shown), 1)
            axes = [figure.add_subplot(panels[at, 0]) for at in range(len(shown))]
            for at, (ax, model) in enumerate(zip(axes, shown, strict=True)):
                _draw_composition(ax, compositions[model], short_name(model))
                if at == 0:
                    named = f": {short_name(model)}" if model and len(shown) > 1 else ""
                    ax.set_title(f"Predictions by rank{named}", fontsize=NORMAL, loc="left")
                if at == len(shown) - 1:
                    ax.set_xlabel("rank in descending score")
        legend = _add_legend(figure, [compositions[model] for model in shown])
        add_caption(figure, "  ".join(notes), above=legend)


def _draw_deltas(ax: Axes, deltas: Mapping[str, Mapping[str, float | None]]) -> None:
    places = delta_places(deltas)
    one = len(deltas) == 1
    ticks: list[tuple[int, str, bool]] = []
    for y, (oracle, model) in enumerate(places):
        if model is None:
            if oracle:
                ticks.append((y, STYLES[oracle].words, True))
            continue
        ticks.append((y, STYLES[oracle].words if one else short_name(model) or "no name", False))
        value = deltas[model].get(oracle)
        if value is not None:
            ax.barh([y], [value], height=0.78, **look_of(STYLES[oracle]))
            ax.barh([y], [value], height=0.78, facecolor="none", edgecolor="#000000", linewidth=0.5)
        text = "\N{EN DASH}" if value is None else f"{value:.1f}".replace("-", "\N{MINUS SIGN}")
        ax.annotate(text, (max(value or 0.0, 0.0), y), (3, 0), textcoords="offset points", va="center", fontsize=SMALL)
    name_bars(ax, len(places), ticks)
    known = [value for values in deltas.values() for value in values.values() if value is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    room = (high - low) or 1.0
    ax.set_xlim(low - 0.03 * room if low < 0 else 0.0, high + 0.16 * room)  # the longest bar's number needs the rest
    ax.set_xlabel("\N{GREEK CAPITAL LETTER DELTA}mAP (points)")
    only = next(iter(deltas))
    named = f": {short_name(only)}" if one and only else ""
    ax.set_title(f"mAP gained by oracle{named}", fontsize=NORMAL, loc="left")


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
        ax.stairs(tops, range(bins + 1), baseline=floor, fill=True, **look_of(STYLES[name]))
        floor = tops
    bare_axes(ax)
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

    handles = [Patch(label=STYLES[name].words, **look_of(STYLES[name])) for name in _present(compositions)]
    if not handles:
        return 0.0
    at = (0.5, CAPTION / figure.get_figheight())
    figure.legend(
        handles=handles, loc="lower center", bbox_to_anchor=at, ncols=4, frameon=False, fontsize=SMALL, borderpad=0.2
    )
    return LEGEND_LINE * math.ceil(len(handles) / 4)
