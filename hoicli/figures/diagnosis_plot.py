"""Figure of a diagnosis: delta mAP by oracle, and errors along the ranked list, after Fig. 7 of the Diag-HOI paper
(IJCV 2024)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.figures.canvas import Bar, add_legend, add_title, draw_bars, fill, hide_frame, save_figure
from hoicli.figures.shown import ALL_CLASSES, caveats_of, label, model_name, value_of
from hoicli.figures.styles import BESIDE, COLUMN_WIDTH, PAGE_WIDTH, PAPER, STYLES, Look
from hoicli.records.oracles import OF_A_SIDE, ORACLES
from hoicli.records.result_rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

COMPOSITIONS_SHOWN = 4
"""How many models' compositions a figure has room for; the bars beside them have no such limit."""
_NAMES = 1.1
"""Inches that the names of the bars take."""
NO_SUM = "Deltas do not add up to 100 \N{MINUS SIGN} mAP."


def plot_diagnosis(
    rows: Iterable[Row], compositions: Mapping[str, Mapping[str, Any]], path: str, look: Look = PAPER
) -> None:
    """Write a figure of a diagnosis: delta mAP by oracle, and beside it (below it if narrow) each model's share of
    every error type along the ranked list.

    rows: those of metric `delta_mAP` over ALL_CLASSES are drawn; a value of None is a dash. compositions: by model
    (`model_name` of the rows); `edges` are evenly spaced ranks, `counts` says how many predictions of each error type
    are between them. Raises `UsageError` if there is nothing to draw, two rows claim one bar, the file's ending is
    unknown or matplotlib is missing."""
    rows = list(rows)
    deltas = _deltas(rows)
    bars = _bars(deltas)
    names = [model for model in dict.fromkeys([*deltas, *compositions]) if model in compositions]
    remark = NO_SUM
    if len(names) > COMPOSITIONS_SHOWN:
        remark += f"  Composition: the first {COMPOSITIONS_SHOWN} of {len(names)} models."
    compositions_shown = {model: compositions[model] for model in names[:COMPOSITIONS_SHOWN]}
    with save_figure(path, look, remark, caveats_of(rows)) as figure:
        from matplotlib.patches import Patch

        width = look.room(PAGE_WIDTH if compositions_shown else COLUMN_WIDTH)
        side_by_side = bool(compositions_shown) and width >= BESIDE
        panel = (width / 2 if side_by_side else width) - _NAMES
        pitch = 0.19 if len(deltas) == 1 else 0.15
        above, below = max(pitch * len(bars), 1.5) + 0.75, max(1.25 * len(compositions_shown), 1.7) + 0.45
        figure.set_size_inches(width, max(above, below) if side_by_side else above + below * bool(compositions_shown))
        grid = figure.add_gridspec(1, 2) if side_by_side else figure.add_gridspec(2, 1, height_ratios=(above, below))
        ax = figure.add_subplot(grid[0] if compositions_shown else grid[:])
        draw_bars(ax, bars)
        ax.set_xlabel("\N{GREEK CAPITAL LETTER DELTA}mAP (points)")
        title = _title_with_model("mAP gained by oracle", next(iter(deltas)) if len(deltas) == 1 else "")
        add_title(ax, title, panel)
        _add_compositions(figure, grid[1], compositions_shown, panel)
        counts_shown = chain.from_iterable(shown["counts"].items() for shown in compositions_shown.values())
        present = {name for name, counts in counts_shown if any(counts)}
        add_legend(
            figure, [Patch(label=style.words, **fill(style)) for name, style in STYLES.items() if name in present]
        )


def _add_compositions(
    figure: Figure, place: SubplotSpec, compositions: Mapping[str, Mapping[str, Any]], width: float
) -> None:
    """Draw the models' compositions at a place of the figure, one below the other. width: of their titles, in
    inches."""
    panels = place.subgridspec(len(compositions) or 1, 1)
    for number, (model, composition) in enumerate(compositions.items()):
        ax = figure.add_subplot(panels[number, 0])
        _draw_composition(ax, **composition)
        first_title = _title_with_model("Predictions by rank", model if len(compositions) > 1 else "")
        add_title(ax, label(model) if number else first_title, width)
        if number == len(compositions) - 1:
            ax.set_xlabel("rank in descending score")


def _title_with_model(title: str, model: str) -> str:
    return f"{title}: {label(model)}" if model else title


def _deltas(rows: Iterable[Row]) -> dict[str, dict[str, float | None]]:
    """Return the delta mAP over all classes by model and oracle, in order of first appearance."""
    deltas: dict[str, dict[str, float | None]] = {}
    for row in rows:
        if row.get("metric") == "delta_mAP" and row.get("subset") in ALL_CLASSES:
            model, oracle = model_name(row), row["oracle"]
            if oracle in deltas.setdefault(model, {}):
                value_text = f"oracle {oracle} for model {model or 'without a name'}"
                advice = f"give each file its own {arg('tag', 'model=NAME')}"
                raise UsageError(f"{arg('plot')}: two values of {value_text}; {advice}")
            deltas[model][oracle] = value_of(row)
    if not deltas:
        raise UsageError(f"{arg('plot')}: there is no delta_mAP over all classes (subset full, or 25) to draw")
    return deltas


def _bars(deltas: Mapping[str, Mapping[str, float | None]]) -> list[Bar]:
    """Return the bars from the top down: one per oracle, or with several models one per model below the oracle's name.
    The oracles OF_A_SIDE follow after a gap."""
    bars: list[Bar] = []
    for oracle in (oracle for oracle in ORACLES if any(oracle in values for values in deltas.values())):
        style = STYLES[oracle]
        if oracle == OF_A_SIDE[0] and bars:
            bars.append(Bar())
        if len(deltas) > 1:
            bars.append(Bar(style.words))
        for model, values in deltas.items():
            name = style.words if len(deltas) == 1 else label(model) or "no name"
            bars.append(Bar(name, values.get(oracle), style))
    return bars


def _draw_composition(ax: Axes, edges: Sequence[float], counts: Mapping[str, Sequence[float]]) -> None:
    """Draw stacked shares of the error types; a bin without predictions stays empty."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    total = np.maximum(np.sum(list(counts.values()), axis=0), 1)
    floor = np.zeros(len(total))
    for name, style in STYLES.items():
        if any(counts.get(name, ())):
            roof = floor + 100 * np.asarray(counts[name]) / total
            ax.stairs(roof, edges, baseline=floor, fill=True, **fill(style))
            floor = roof
    hide_frame(ax)
    ax.set_xlim(edges[0], max(edges[-1], 1))
    ax.set_ylim(0, 100)
    ax.set_yticks([0, 50, 100])
    ax.set_ylabel("share (%)")
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], integer=True))
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
