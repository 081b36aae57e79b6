"""The figures of a diagnosis, after the Diag-HOI paper (IJCV 2024): the mAP that correcting each type of error would
gain, and the types of errors by rank (Fig. 7); the gains of rare and of non-rare classes (Fig. 8); and those of fixing
association errors without and with the no_interaction classes (Fig. 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.figures.canvas import LETTER, Bar, add_legend, add_title, draw_bars, fill_keywords, hide_frame, save_figure
from hoicli.figures.shown import ALL_CLASSES, caveats_of, model_name, short_label, value_of
from hoicli.figures.styles import BESIDE, COLUMN_WIDTH, PAGE_WIDTH, PAPER, STYLES, Look
from hoicli.records.oracles import OF_A_SIDE, ORACLES
from hoicli.records.result_rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

COMPOSITIONS_SHOWN = 4
"""How many models' panels of errors by rank a figure has room for; the bars beside them have no such limit."""
_NAMES = 1.1
"""The width in inches of the bars' names."""
_BAR, _MARGIN = 0.15, 0.2
"""Inches: the height of a bar among many, and the room beside the bars' names and titles."""
NO_SUM = "Deltas do not add up to 100 \N{MINUS SIGN} mAP."


def plot_diagnosis(
    rows: Iterable[Row], compositions: Mapping[str, Mapping[str, Any]], path: str, look: Look = PAPER
) -> None:
    """Write the figure of a diagnosis. Its bars are the mAP that each oracle, a correction of one type of error, would
    gain (delta_mAP). Beside or below them is a panel for each model: the share of every type of error by rank.

    rows: those of the metric delta_mAP over all classes are drawn; a value of None is a dash. compositions: what is in
    the panels, by model: `edges`, the limits of ranks [bins + 1], and `counts`, how many predictions of each type are
    between them, {type: [bins]}. Raises `UsageError` if there is nothing to draw, and for two values of one bar."""
    rows = list(rows)
    deltas = _deltas(rows)
    bars = _bars(deltas)
    names = [model for model in dict.fromkeys([*deltas, *compositions]) if model in compositions]  # as in the bars
    remark = NO_SUM
    if len(names) > COMPOSITIONS_SHOWN:
        remark += f"  Composition: the first {COMPOSITIONS_SHOWN} of {len(names)} models."
    compositions_shown = {model: compositions[model] for model in names[:COMPOSITIONS_SHOWN]}
    with save_figure(path, look, remark, caveats_of(rows)) as figure:
        from matplotlib.patches import Patch

        width = look.room(PAGE_WIDTH if compositions_shown else COLUMN_WIDTH)
        side_by_side = bool(compositions_shown) and width >= BESIDE
        title_width = (width / 2 if side_by_side else width) - _NAMES
        bar_height = 0.19 if len(deltas) == 1 else _BAR  # in inches, as all lengths here
        height_of_bars = max(bar_height * len(bars), 1.5) + 0.75
        height_of_panels = max(1.25 * len(compositions_shown), 1.7) + 0.45
        if side_by_side:
            figure.set_size_inches(width, max(height_of_bars, height_of_panels))
            grid = figure.add_gridspec(1, 2)
        else:
            figure.set_size_inches(width, height_of_bars + (height_of_panels if compositions_shown else 0))
            grid = figure.add_gridspec(2, 1, height_ratios=(height_of_bars, height_of_panels))

        # The bars, the panels, and a legend of the types of error that occur in the panels.
        ax = figure.add_subplot(grid[0] if compositions_shown else grid[:])
        draw_bars(ax, bars)
        ax.set_xlabel("\N{GREEK CAPITAL LETTER DELTA}mAP (points)")
        title = _title_with_model("mAP gained by fixing errors", next(iter(deltas)) if len(deltas) == 1 else "")
        add_title(ax, title, title_width)
        _add_compositions(figure, grid[1], compositions_shown, title_width)
        counts_shown = chain.from_iterable(composition["counts"].items() for composition in compositions_shown.values())
        present = {name for name, counts in counts_shown if any(counts)}
        add_legend(
            figure,
            [Patch(label=style.words, **fill_keywords(style)) for name, style in STYLES.items() if name in present],
        )


def plot_frequency(rows: Iterable[Row], path: str, look: Look = PAPER) -> None:
    """Write a figure of what each oracle gains for rare and for non-rare classes, or for other groups of classes: a bar
    for each model and group below the oracle's name, the first group hatched.

    rows: those of the metric delta_mAP are drawn: of each part of the data, if they are tagged so, else of every subset
    but that of all classes. Raises `UsageError` if there is none, and for two values of one bar."""
    rows = list(rows)
    deltas = _deltas_by_group(rows, _class_group)
    groups = list(dict.fromkeys(group for _, group in deltas))
    models = list(dict.fromkeys(model for model, _ in deltas))
    bars: list[Bar] = []
    for oracle in [oracle for oracle in ORACLES if any(oracle in values for values in deltas.values())]:
        bars.append(Bar(STYLES[oracle].words))
        for (model, group), values in deltas.items():
            style = STYLES[oracle] if group == groups[0] else replace(STYLES[oracle], hatch="")
            words = group.replace("_", "-")
            label = words if len(models) == 1 else short_label(f"{words}, {model}")
            bars.append(Bar(label, values.get(oracle), style))
    title = _title_with_model("mAP gained by fixing errors, by group of classes", models[0] if len(models) == 1 else "")
    _save_bars(bars, title, path, look, rows)


def plot_no_interaction(rows: Iterable[Row], path: str, look: Look = PAPER) -> None:
    """Write a figure of what fixing association errors gains without and with the no_interaction classes: two bars for
    each model. rows: those of the metric delta_mAP over all classes are drawn; those that count no_interaction are
    tagged noint. Raises `UsageError` if there is none, and for two values of one bar."""
    rows = [row for row in rows if row.get("subset") in ALL_CLASSES and row.get("oracle") == "association"]
    deltas = _deltas_by_group(rows, lambda row: "with" if "noint" in row["tags"] else "without")
    models = list(dict.fromkeys(model for model, _ in deltas))
    bars: list[Bar] = []
    for model in models:
        bars += [Bar(short_label(model))] if len(models) > 1 else []
        for group, hatch in (("without", ""), ("with", STYLES["association"].hatch)):
            value = deltas.get((model, group), {}).get("association")
            bars.append(Bar(f"{group} no_interaction", value, replace(STYLES["association"], hatch=hatch)))
    title = _title_with_model("mAP gained by fixing association errors", models[0] if len(models) == 1 else "")
    _save_bars(bars, title, path, look, rows)


def _class_group(row: Row) -> str:
    """Return the group of classes that a row is of: the part that its tags name, else its subset; "" for all."""
    part = (row.get("tags") or {}).get("part")
    if part is not None:
        return str(part) if row["subset"] in ALL_CLASSES else ""
    return "" if row["subset"] in (*ALL_CLASSES, "24") else str(row["subset"])


def _deltas_by_group(
    rows: Iterable[Row], group_of: Callable[[Row], str]
) -> dict[tuple[str, str], dict[str, float | None]]:
    """Return the delta mAP by (model, group) and then oracle, in the order of the rows. group_of: returns the group of
    a row, "" for a row to leave out. Raises `UsageError` if there is none, and for two rows of one bar."""
    deltas: dict[tuple[str, str], dict[str, float | None]] = {}
    for row in rows:
        if row.get("metric") == "delta_mAP" and (group := group_of(row)):
            key, oracle = (model_name(row), group), row["oracle"]
            if oracle in deltas.setdefault(key, {}):
                raise UsageError(f"{arg('plot')}: two values of {oracle}, {group}; draw one slice at one threshold")
            deltas[key][oracle] = value_of(row)
    if not deltas:
        raise UsageError(f"{arg('plot_kind')}: there is no delta_mAP of such groups of classes in this dataset to draw")
    return deltas


def _save_bars(bars: Sequence[Bar], title: str, path: str, look: Look, rows: Iterable[Row]) -> None:
    """Write a figure with one panel of bars. rows: their caveats go with the figure."""
    with save_figure(path, look, NO_SUM, caveats_of(rows)) as figure:
        width = look.room(COLUMN_WIDTH)
        figure.set_size_inches(width, max(_BAR * len(bars), 0.6) + 0.75)
        ax = figure.add_subplot()
        draw_bars(ax, bars)
        ax.set_xlabel("\N{GREEK CAPITAL LETTER DELTA}mAP (points)")
        add_title(ax, title, width - LETTER * max(len(bar.label) for bar in bars) - _MARGIN)


def _add_compositions(
    figure: Figure, place: SubplotSpec, compositions: Mapping[str, Mapping[str, Any]], title_width: float
) -> None:
    """Draw a panel for each model at a place of the figure, one below the other: the shares of error types by rank.
    compositions: as for `plot_diagnosis`; title_width: in inches."""
    panels = place.subgridspec(len(compositions) or 1, 1)
    for number, (model, composition) in enumerate(compositions.items()):
        ax = figure.add_subplot(panels[number, 0])
        _draw_composition(ax, **composition)
        first_title = _title_with_model("Predictions by rank", model if len(compositions) > 1 else "")
        add_title(ax, short_label(model) if number else first_title, title_width)
        if number == len(compositions) - 1:
            ax.set_xlabel("rank in descending score")


def _title_with_model(title: str, model: str) -> str:
    """Return a title with a model's name behind it, if that is not empty."""
    return f"{title}: {short_label(model)}" if model else title


def _deltas(rows: Iterable[Row]) -> dict[str, dict[str, float | None]]:
    """Return the delta mAP over all classes by model and then oracle, in the order of the rows. Raises `UsageError` if
    there is none, and if two rows have the same model and oracle."""
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
    """Return the bars from the top down: one for each oracle, or with several models one for each model below a heading
    with the oracle's name. The oracles OF_A_SIDE, which correct all false positives or all false negatives, follow
    after a gap. deltas: by model and oracle."""
    bars: list[Bar] = []
    oracles = [oracle for oracle in ORACLES if any(oracle in values for values in deltas.values())]
    for oracle in oracles:
        style = STYLES[oracle]
        if oracle == OF_A_SIDE[0] and bars:
            bars.append(Bar())  # a gap
        if len(deltas) > 1:
            bars.append(Bar(style.words))  # a heading
        for model, values in deltas.items():
            name = style.words if len(deltas) == 1 else short_label(model) or "no name"
            bars.append(Bar(name, values.get(oracle), style))
    return bars


def _draw_composition(ax: Axes, edges: Sequence[float], counts: Mapping[str, Sequence[float]]) -> None:
    """Draw the shares of error types by rank into a panel, stacked; a bin of ranks without predictions stays empty.
    edges [bins + 1]: the limits of ranks; counts: how many predictions of each type are between them, {type: [bins]}.
    """
    from matplotlib.ticker import EngFormatter, MaxNLocator

    total = np.maximum(np.sum(list(counts.values()), axis=0), 1)  # of each bin; 1 where there are none
    bottom = np.zeros(len(total))
    for name, style in STYLES.items():
        if any(counts.get(name, ())):
            top = bottom + 100 * np.asarray(counts[name]) / total
            ax.stairs(top, edges, baseline=bottom, fill=True, **fill_keywords(style))
            bottom = top
    hide_frame(ax)
    ax.set_xlim(edges[0], max(edges[-1], 1))
    ax.set_ylim(0, 100)
    ax.set_yticks([0, 50, 100])
    ax.set_ylabel("share (%)")
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], integer=True))
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
