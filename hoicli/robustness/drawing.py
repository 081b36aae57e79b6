"""Grids as figures."""

from __future__ import annotations

from collections.abc import Sequence

from hoicli.figures.robustness import HeatMap, plot_heat_maps, plot_robustness
from hoicli.figures.shown import caveats_of
from hoicli.figures.styles import PAPER, Look
from hoicli.robustness.grids import Grid
from hoicli.robustness.indices import mri
from hoicli.robustness.rows import robustness_rows


def draw(grids: Sequence[Grid], path: str, *, kind: str = "curves", look: Look = PAPER) -> None:
    """The models, the best first, as `kind` (one of `figures.robustness.PLOTS`) has them.

    Raises `UsageError` where there is no matplotlib, or two models have one name.
    """
    rows = [{**row, "model": grid.model} for grid in grids for row in robustness_rows([grid])]
    if kind == "curves":
        plot_robustness(rows, path, metric=grids[0].metric, look=look)
        return
    panels = []
    for grid in grids:
        cells: dict[str, dict[int, float]] = {}
        for (corruption, severity), value in grid.cells.items():
            cells.setdefault(corruption, {})[severity] = value
        panels.append(HeatMap(grid.model, grid.clean, mri(grid.levels()), cells))
    plot_heat_maps(panels, path, metric=grids[0].metric, caveats=caveats_of(rows), look=look)
