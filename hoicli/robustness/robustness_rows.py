"""A grid as result rows (MRI, CRI and their parts), as the tables a person reads, and as figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
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
from hoicli.robustness.indices import cri, cri_term, deviation, mean, mri, relative_drop

OVER = "over severities"
"""The heading of a table's columns that summarise all severities."""

_PartOf = Mapping[str, Any]
"""A part of a grid, by keys of PARTS (corruption, family, severity); {} is the whole grid."""
_Value = tuple[str, _PartOf, float | None, int, str]
"""(metric, the part it is of, value, n, unit)."""


def rank_grids(grids: Sequence[Grid]) -> list[Grid]:
    """Return the grids by falling MRI, those with equal MRI by the model's name."""
    return sorted(grids, key=lambda grid: (-_measure(grid), grid.model))


def _measure(grid: Grid) -> float:
    """Return the MRI that models are ranked by, rounded, since equal means may differ in their last digits."""
    return round(mri(grid.levels()), 9)


def robustness_rows(grids: Sequence[Grid], *, tags: Mapping[str, str] | None = None) -> list[Row]:
    """Return all result rows of all models, which must come in the order of their rank.

    Of a whole grid: `rank` (of several models: how many have a higher MRI, plus 1), `clean`, `mri`, `cri`,
    `relative_drop` and `worst` (the lowest cell, which it names). With a key `corruption` (and its `family`): `mean`,
    `sigma`, `cri_term`, `relative_drop`. With `family`, with `severity`, and with both: `mean` and `relative_drop`. A
    mean is over corruptions of their means; `n` counts the cells it is over. A value that needs a clean value above 0
    is null without one.
    """
    rows: list[Row] = []
    measures = [_measure(grid) for grid in grids]
    for grid, measure in zip(grids, measures, strict=True):
        all_tags = {**grid.tags, **(tags or {})}
        common_keys = {"protocol": grid.protocol, "tags": all_tags, "signature": grid_signature(grid)}
        rank = 1 + sum(other > measure for other in measures)
        rank_values: list[_Value] = [("rank", {}, rank, len(grids), "models")] if len(grids) > 1 else []
        for metric, part, value, n, unit in (*rank_values, *_values(grid)):
            rows.append(result_row(metric, subset=grid.subset, **part, value=value, n=n, unit=unit, **common_keys))
    return rows


def _values(grid: Grid) -> Iterator[_Value]:
    """Yield the values of the whole grid, then of each corruption, then of the other parts."""
    return chain(_overall(grid), _corruptions(grid), _means(grid))


def _overall(grid: Grid) -> Iterator[_Value]:
    levels, count = grid.levels(), len(grid.cells)
    yield "clean", {}, grid.clean, int(grid.clean is not None), "%"
    yield "mri", {}, mri(levels), count, "%"
    yield "cri", {}, cri(levels, grid.clean) if grid.clean else None, count, "ratio"
    yield "relative_drop", {}, _drop(mri(levels), grid), count, "%"
    (corruption, severity), lowest = min(grid.cells.items(), key=lambda item: item[1])  # of equals the first in order
    part: _PartOf = {"corruption": corruption, "family": family_of(corruption), "severity": severity}
    yield "worst", part, lowest, count, "%"


def _corruptions(grid: Grid) -> Iterator[_Value]:
    for corruption, values in grid.levels().items():
        part = {"corruption": corruption, "family": family_of(corruption)}
        yield "mean", part, mean(values), len(values), "%"
        yield "sigma", part, deviation(values), len(values), "%"
        yield "cri_term", part, cri_term(values, grid.clean) if grid.clean else None, len(values), "ratio"
        yield "relative_drop", part, _drop(mean(values), grid), len(values), "%"


def _means(grid: Grid) -> Iterator[_Value]:
    """Yield the means of each family, each severity, and each family at each severity; nothing for a part without
    cells."""
    families: list[_PartOf] = [{"family": family} for family in FAMILIES]
    severities: list[_PartOf] = [{"severity": severity} for severity in grid.severities]
    for part in (
        *families,
        *severities,
        *({**family, **severity} for family, severity in product(families, severities)),
    ):
        if levels := grid.levels(**part):
            count = sum(map(len, levels.values()))
            yield "mean", part, mri(levels), count, "%"
            yield "relative_drop", part, _drop(mri(levels), grid), count, "%"


def _drop(value: float, grid: Grid) -> float | None:
    return relative_drop(value, grid.clean) if grid.clean else None


def grid_signature(grid: Grid) -> str:
    """Return the rows' own settings, followed by what was averaged: metric, grid, recipe of the images, what is
    missing."""
    cells = [cell for cell in (*grid.cells, *grid.missing) if cell[0] != CLEAN]
    names = {name for name, _ in cells}
    levels = sorted({severity for _, severity in cells})
    if names == set(ROHOI) and tuple(levels) == SEVERITIES:
        size = "rohoi"
    else:
        size = f"{'+'.join(sorted(names))}@{'+'.join(map(str, levels))}"
    settings: dict[str, Setting] = {
        "of": f"{grid.metric}/{grid.subset}",
        "grid": size,
        "recipe": grid.recipe or "unstated",
    }
    if grid.missing:
        settings["missing"] = len(grid.missing)
    return signature(settings, inherited=grid.settings)


def tables(grids: Sequence[Grid], rows: Sequence[Row]) -> list[Sequence[Row]]:
    """Return the rows arranged for a reader, each list a table of its own for `tables.notations.render`.

    The first is the summary, a line for each model. The others have, of one model, every corruption and family by
    severity; of several models, their means side by side, as in the paper's Table 4.
    """
    summary = [row for row in rows if row["metric"] == "worst" or not _part_of(row)]
    if len(grids) == 1:
        (grid,) = grids
        corruptions = [_severity_cells(grid, corruption=name, family=family_of(name)) for name in grid.levels()]
        families = [_severity_cells(grid, family=family) for family in (*FAMILIES, None)]
        return [summary, *(list(chain.from_iterable(lines)) for lines in (corruptions, families))]
    means = [(_part_of(row), row) for row in rows if row["metric"] == "mean"]
    return [
        summary,
        *(
            [_cell("mean", row["tags"].get("model", ""), row["value"], part) for part, row in means if [*part] == keys]
            for keys in (["corruption", "family"], ["family"], ["severity"])
        ),
    ]


def _part_of(row: Row) -> dict[str, str]:
    """Return the part of a grid that a row is about, {} for the whole grid."""
    return {key: str(row[key]) for key in PARTS if key in row}


def _cell(metric: str, column: str, value: float | None, line: Mapping[str, str]) -> Row:
    """Return a cell of a table: `line` names its line, `column` stands below `metric`."""
    return {"metric": metric, "subset": column, "value": value, "tags": line}


def _severity_cells(grid: Grid, **part: Any) -> list[Row]:
    """Return the table line of a part of the grid, a corruption with its family or a family; [] where it has no
    cells."""
    line = {key: name or "all" for key, name in part.items()}
    levels = grid.levels(**part)
    if not levels:
        return []
    by_severity = {severity: grid.levels(**part, severity=severity) for severity in grid.severities}
    means = {str(severity): mri(values) if values else None for severity, values in by_severity.items()}
    sigma = {"sigma": deviation(*levels.values())} if "corruption" in part else {}
    summary = {"mean": mri(levels), **sigma, "drop %": _drop(mri(levels), grid)}
    return [
        _cell(metric, column, value, line)
        for metric, columns in ((f"{grid.metric} at severity", means), (OVER, summary))
        for column, value in columns.items()
    ]


def draw(grids: Sequence[Grid], path: str, *, kind: str = "curves", look: Look = PAPER) -> None:
    """Draw the models, the best first, as `kind` (one of `figures.robustness_plots.PLOTS`) has them.

    Raises `UsageError` where there is no matplotlib.
    """
    models, caveats = {grid.model: _figure_means(grid) for grid in grids}, caveats_of(robustness_rows(grids))
    if kind == "curves":
        plot_robustness(models, path, metric=grids[0].metric, caveats=caveats, look=look)
    else:
        cells = [grid.cells for grid in grids]
        plot_heat_maps(models, cells, path, metric=grids[0].metric, caveats=caveats, look=look)


def _figure_means(grid: Grid) -> Means:
    """Return the means of a grid, in the form that its figures need."""
    means = {} if grid.clean is None else {CLEAN_MEAN: grid.clean}
    for metric, part, value, _, _ in _values(grid):
        if metric in ("mri", "mean") and value is not None:
            means[str(part.get("corruption", "")), str(part.get("family", "")), int(part.get("severity", 0))] = value
    return means
