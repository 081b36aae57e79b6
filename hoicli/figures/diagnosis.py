"""Figure of a diagnosis: delta mAP by oracle, and errors along the ranked list, after Fig. 7 of the Diag-HOI paper
(IJCV 2024).

Rows of results go in (values in percent), a .png, .svg or .pdf file comes out; the same rows give the same bytes.
matplotlib is an extra, imported only to draw. An error type
has one colour (Okabe and Ito's, which colour-blind readers can tell apart) and one hatch, so grey prints read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hoicli.figures.canvas import add_foot, draw_bars, fill, hide_frame, saved, titled
from hoicli.figures.shown import Composition, caveats_of, composition_of, delta_bars, deltas_of, label
from hoicli.figures.styles import BESIDE, COLUMN_WIDTH, PAGE_WIDTH, PAPER, STYLES, Look
from hoicli.records.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COMPOSITIONS_SHOWN = 4
"""Compositions a figure has room for; the bars beside them have no such limit."""

_NAMES = 1.1
"""Inches of the names of the bars."""

NO_SUM = "Deltas do not add up to 100 \N{MINUS SIGN} mAP."


def plot_diagnosis(
    rows: Iterable[Row], compositions: Mapping[str, Mapping[str, Any]], path: str, look: Look = PAPER
) -> None:
    """Delta mAP by oracle, and beside it (in a narrow figure below it) the share of each error type along the ranked
    list of each model.

    Drawn are the rows of metric `delta_mAP` over ALL_CLASSES; a value of None is a dash. `compositions` is keyed by
    model (`model_name` of the rows) and has `edges` and `counts` of each, as `composition_of` takes them. Raises
    `UsageError` where there is nothing to draw, two rows claim one bar, the file's ending is unknown or matplotlib is
    missing.
    """
    rows = list(rows)
    deltas = deltas_of(rows)
    bars = delta_bars(deltas)
    names = [model for model in dict.fromkeys([*deltas, *compositions]) if model in compositions]
    notes = [NO_SUM]
    if len(names) > COMPOSITIONS_SHOWN:
        notes.append(f"Composition: the first {COMPOSITIONS_SHOWN} of {len(names)} models.")
    shown = {model: composition_of(**compositions[model]) for model in names[:COMPOSITIONS_SHOWN]}
    with saved(path, look) as figure:
        from matplotlib.patches import Patch

        width = look.room(PAGE_WIDTH if shown else COLUMN_WIDTH)
        beside = bool(shown) and width >= BESIDE
        pitch = 0.19 if len(deltas) == 1 else 0.15
        above, below = max(pitch * len(bars), 1.5) + 0.75, max(1.25 * len(shown), 1.7) + 0.45
        figure.set_size_inches(width, max(above, below) if beside else above + below * bool(shown))
        panel = width / 2 if beside else width
        grid = figure.add_gridspec(1, 2) if beside else figure.add_gridspec(2, 1, height_ratios=(above, below))
        left = figure.add_subplot(grid[0] if shown else grid[:])
        draw_bars(left, bars)
        left.set_xlabel("\N{GREEK CAPITAL LETTER DELTA}mAP (points)")
        first = next(iter(deltas))
        titled(left, _named("mAP gained by oracle", first if len(deltas) == 1 else ""), panel - _NAMES)
        if shown:
            panels = grid[1].subgridspec(len(shown), 1)
            axes = [figure.add_subplot(panels[at, 0]) for at in range(len(shown))]
            for at, (ax, (model, composition)) in enumerate(zip(axes, shown.items(), strict=True)):
                _draw_composition(ax, composition)
                words = _named("Predictions by rank", model if len(shown) > 1 else "") if at == 0 else label(model)
                titled(ax, words, panel - _NAMES)
            axes[-1].set_xlabel("rank in descending score")
        present = {name for composition in shown.values() for name, _, _ in composition.bands}
        legend = [Patch(label=style.words, **fill(style)) for name, style in STYLES.items() if name in present]
        add_foot(figure, "  ".join(notes), caveats_of(rows), legend=legend)


def _named(title: str, model: str) -> str:
    return f"{title}: {label(model)}" if model else title


def _draw_composition(ax: Axes, composition: Composition) -> None:
    """Stacked shares; a bin without predictions stays empty."""
    for name, floor, roof in composition.bands:
        ax.stairs(roof, range(composition.bins + 1), baseline=floor, fill=True, **fill(STYLES[name]))
    hide_frame(ax)
    ax.set_xlim(0, max(composition.bins, 1))
    ax.set_ylim(0, 100)
    ax.set_yticks([0, 50, 100])
    ax.set_ylabel("share (%)")
    ax.set_xticks([at for at, _ in composition.ticks], [words for _, words in composition.ticks])
