"""A grid as result rows (MRI, CRI and their parts), as the tables a person reads, and as figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from statistics import fmean
from typing import Any

from hoicli.corruption.catalogue import FAMILIES, ROHOI, SEVERITIES, family_of
from hoicli.figures.robustness_plots import CLEAN as CLEAN_MEAN
from hoicli.figures.robustness_plots import Means, plot_heat_maps, plot_robustness
from hoicli.figures.shown import caveats_of
from hoicli.figures.styles import PAPER, Look
from hoicli.records.kinds import PARTS
from hoicli.records.result_rows import Row, Setting, result_row, signature
from hoicli.robustness.gathering import CLEAN
from hoicli.robustness.grids import Grid
from hoicli.robustness.indices import cri, cri_term, deviation, mri, relative_drop

OVER = "over severities"
"""The heading of a table's columns that summarise all severities."""

_Part = Mapping[str, Any]
"""The part of a grid that a value is about: its `corruption`, `family` or `severity`, or several of them (PARTS); {} is
the whole grid."""
_Value = tuple[str, _Part, float | None, int, str]
"""(metric, part of the grid, value, number of cells it is over, unit)."""


def rank_grids(grids: Sequence[Grid]) -> list[Grid]:
    """Return the grids by falling MRI, those with equal MRI by the model's name."""
    return sorted(grids, key=lambda grid: (-_ranking_mri(grid), grid.model))


def _ranking_mri(grid: Grid) -> float:
    """Return the MRI that models are ranked by: rounded, since equal means may differ in their last digits."""
    return round(mri(grid.values_by_corruption()), 9)


def robustness_rows(grids: Sequence[Grid], *, tags: Mapping[str, str] | None = None) -> list[Row]:
    """Return the result rows of all grids, one after another. tags: further tags for every row.

    A row is about the whole grid, or about the part that its keys `corruption`, `family` and `severity` name. Metrics
    of the whole grid: `rank` (with several models: how many have a higher MRI, plus 1), `clean`, `mri`, `cri`,
    `relative_drop` and `worst` (the lowest cell, which it names). Of each corruption: `mean`, `sigma`, `cri_term` and
    `relative_drop`. Of each family, each severity, and each family at each severity: `mean` and `relative_drop`. A mean
    over several corruptions is the mean of their means; `n` is the number of cells. A value that needs a clean value
    above 0 is null without one.
    """
    rows: list[Row] = []
    mris = [_ranking_mri(grid) for grid in grids]
    for grid, own_mri in zip(grids, mris, strict=True):
        all_tags = {**grid.tags, **(tags or {})}
        common_keys = {"protocol": grid.protocol, "tags": all_tags, "signature": grid_signature(grid)}
        rank = 1 + sum(other_mri > own_mri for other_mri in mris)
        rank_values: list[_Value] = [("rank", {}, rank, len(grids), "models")] if len(grids) > 1 else []
        for metric, part, value, n, unit in (*rank_values, *_values(grid)):
            rows.append(result_row(metric, subset=grid.subset, **part, value=value, n=n, unit=unit, **common_keys))
    return rows


def _values(grid: Grid) -> Iterator[_Value]:
    """Yield the values of the whole grid, then of each corruption over its severities, then of each family, each
    severity, and each family at each severity. A part without cells has none."""
    by_corruption, count = grid.values_by_corruption(), len(grid.cells)
    yield "clean", {}, grid.clean, int(grid.clean is not None), "%"
    yield "mri", {}, mri(by_corruption), count, "%"
    yield "cri", {}, cri(by_corruption, grid.clean) if grid.clean else None, count, "ratio"
    yield "relative_drop", {}, relative_drop(mri(by_corruption), grid.clean), count, "%"
    worst_cell = min(grid.cells, key=grid.cells.__getitem__)  # of equally low ones the first
    corruption, severity = worst_cell
    part: _Part = {"corruption": corruption, "family": family_of(corruption), "severity": severity}
    yield "worst", part, grid.cells[worst_cell], count, "%"
    for corruption, values in by_corruption.items():
        part = {"corruption": corruption, "family": family_of(corruption)}
        yield "mean", part, fmean(values), len(values), "%"
        yield "sigma", part, deviation(values), len(values), "%"
        yield "cri_term", part, cri_term(values, grid.clean) if grid.clean else None, len(values), "ratio"
        yield "relative_drop", part, relative_drop(fmean(values), grid.clean), len(values), "%"
    families: list[_Part] = [{"family": family} for family in FAMILIES]
    severities: list[_Part] = [{"severity": severity} for severity in grid.severities]
    families_at_severities = [{**family, **severity} for family, severity in product(families, severities)]
    for part in (*families, *severities, *families_at_severities):
        if of_part := grid.values_by_corruption(**part):
            count = sum(map(len, of_part.values()))
            yield "mean", part, mri(of_part), count, "%"
            yield "relative_drop", part, relative_drop(mri(of_part), grid.clean), count, "%"


def grid_signature(grid: Grid) -> str:
    """Return the signature of a grid's rows: the settings of the rows it is made of, then what was averaged: the metric
    and subset, the corruptions and severities, the recipe of the images, and how many cells are missing."""
    cells = [cell for cell in (*grid.cells, *grid.missing) if cell[0] != CLEAN]
    names = {name for name, _ in cells}
    levels = sorted({severity for _, severity in cells})
    if names == set(ROHOI) and tuple(levels) == SEVERITIES:
        extent = "rohoi"
    else:
        extent = f"{'+'.join(sorted(names))}@{'+'.join(map(str, levels))}"
    settings: dict[str, Setting] = {
        "of": f"{grid.metric}/{grid.subset}",
        "grid": extent,
        "recipe": grid.recipe or "unstated",
    }
    if grid.missing:
        settings["missing"] = len(grid.missing)
    return signature(settings, inherited=grid.settings)


def tables(grids: Sequence[Grid], rows: Sequence[Row]) -> list[Sequence[Row]]:
    """Return tables for people, each as a list of rows for `tables.notations.render`. rows: `robustness_rows` of grids.

    The first table is the summary, a line for each model. The others have, for one model, its values of every
    corruption and of every family at each severity; for several models, their means side by side (the paper's Table 4).
    """
    summary = [row for row in rows if row["metric"] == "worst" or not any(key in row for key in PARTS)]
    if len(grids) == 1:
        (grid,) = grids
        names = grid.values_by_corruption()
        corruptions = [_severity_cells(grid, corruption=name, family=family_of(name)) for name in names]
        families = [_severity_cells(grid, family=family) for family in (*FAMILIES, None)]
        return [summary, list(chain.from_iterable(corruptions)), list(chain.from_iterable(families))]
    # a part of the grid is named by these keys of its rows; each kind of part is a table
    means_by_keys: dict[tuple[str, ...], list[Row]] = {
        ("corruption", "family"): [], ("family",): [], ("severity",): [],
    }  # fmt: skip
    for grid in grids:
        for metric, part, value, *_ in _values(grid):
            if metric == "mean" and tuple(part) in means_by_keys:
                texts = {key: str(text) for key, text in part.items()}
                means_by_keys[tuple(part)].append(_cell("mean", grid.model, value, texts))
    return [summary, *means_by_keys.values()]


def _cell(metric: str, column: str, value: float | None, line: Mapping[str, str]) -> Row:
    """Return a cell of a table in the form of a row. column: the heading of its column, below `metric`; line: the names
    of its line, by the headings of the columns that have them."""
    return {"metric": metric, "subset": column, "value": value, "tags": line}


def _severity_cells(grid: Grid, **part: Any) -> list[Row]:
    """Return the cells of one line of a table: the means of a part of the grid at each severity, then those over all
    severities. part: `corruption` and its `family`, or a `family` (None for all). A part without cells has no line."""
    line = {key: name or "all" for key, name in part.items()}
    by_corruption = grid.values_by_corruption(**part)
    if not by_corruption:
        return []
    cells = []
    for severity in grid.severities:
        by_corruption_at_severity = grid.values_by_corruption(**part, severity=severity)
        value = mri(by_corruption_at_severity) if by_corruption_at_severity else None
        cells.append(_cell(f"{grid.metric} at severity", str(severity), value, line))
    cells.append(_cell(OVER, "mean", mri(by_corruption), line))
    if "corruption" in part:
        (values,) = by_corruption.values()
        cells.append(_cell(OVER, "sigma", deviation(values), line))
    cells.append(_cell(OVER, "drop %", relative_drop(mri(by_corruption), grid.clean), line))
    return cells


def draw(grids: Sequence[Grid], path: str, *, kind: str = "curves", look: Look = PAPER) -> None:
    """Draw the grids into the file at `path`. grids: the best model first; kind: of figure, one of
    `figures.robustness_plots.PLOTS`; look: its style. Raises `UsageError` if matplotlib is not installed."""
    means_of_models = {grid.model: _figure_means(grid) for grid in grids}
    caveats = caveats_of(robustness_rows(grids))
    if kind == "curves":
        plot_robustness(means_of_models, path, metric=grids[0].metric, caveats=caveats, look=look)
    else:
        cells = [grid.cells for grid in grids]
        plot_heat_maps(means_of_models, cells, path, metric=grids[0].metric, caveats=caveats, look=look)


def _figure_means(grid: Grid) -> Means:
    """Return the means of a grid by (corruption, family, severity), with "" and 0 for "all"; and the clean value."""
    means = {} if grid.clean is None else {CLEAN_MEAN: grid.clean}
    for metric, part, value, _, _ in _values(grid):
        if metric in ("mri", "mean") and value is not None:
            means[str(part.get("corruption", "")), str(part.get("family", "")), int(part.get("severity", 0))] = value
    return means
