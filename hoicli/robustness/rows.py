"""A grid as result rows (MRI, CRI and their parts) and as the tables a person reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from hoicli.corruption.catalogue import FAMILIES, ROHOI, SEVERITIES, family_of
from hoicli.records.results import Row, signature
from hoicli.robustness.grids import Grid
from hoicli.robustness.indices import cri, cri_term, deviation, mean, mri, relative_drop
from hoicli.robustness.selection import CLEAN
from hoicli.tables.kinds import PARTS

RANKED_BY = ("mri", "cri", "clean", "relative_drop")
"""What models can be ranked by: the metrics of a whole grid. Of the last, less is better."""

PRINTED = {
    "rank": "Rank", "clean": "Clean", "mri": "MRI", "cri": "CRI", "relative_drop": "Drop (%)", "worst": "Worst",
}  # fmt: skip
"""Metrics of a whole grid as papers head their columns."""

OVER = "over severities"
"""The heading of what a table's line says of all severities."""

_PartOf = Mapping[str, str | int]
"""Of PARTS, those that name a part of a grid; none is the whole."""
_Value = tuple[str, _PartOf, float | None, int, str]
"""(metric, the part it is of, value, n, unit)."""
Key = tuple[str, tuple[tuple[str, str | int], ...]]
"""A metric and the part it is of."""
Interval = tuple[float, float]


def ranked(grids: Sequence[Grid], by: str = "mri") -> list[Grid]:
    """The best model first, equals by name, those without a value last. `by`: one of RANKED_BY."""
    sign = 1 if by == "relative_drop" else -1

    def merit(grid: Grid) -> tuple[bool, float, str]:
        value = next(value for metric, part, value, _, _ in _overall(grid) if metric == by and not part)
        return value is None, sign * (value or 0.0), grid.model

    return sorted(grids, key=merit)


def values_of(grid: Grid) -> Iterator[tuple[Key, float | None]]:
    """All values of a grid but the worst cell, which names another part wherever other images are drawn."""
    for metric, part, value, _, _ in (*_overall(grid), *_corruptions(grid), *_means(grid)):
        if metric != "worst":
            yield (metric, tuple(part.items())), value


def robustness_rows(
    grids: Sequence[Grid],
    *,
    tags: Mapping[str, str] | None = None,
    intervals: Mapping[str, Mapping[Key, Interval | None]] | None = None,
    drawn: Mapping[str, str] | None = None,
) -> list[Row]:
    """All rows of all models, which come in the order of their rank.

    Of a whole grid: `rank` (of several models), `clean`, `mri`, `cri`, `relative_drop` and `worst` (the lowest cell,
    which it names). With a key `corruption` (and its `family`): `mean`, `sigma`, `cri_term`, `relative_drop`. With
    `family`, with `severity`, and with both: `mean` and `relative_drop`. A mean is over corruptions of their means; `n`
    counts the cells it is over. What needs a clean value above 0 is null without one. `intervals` are by model, and
    `drawn` what they add to signatures.
    """
    rows: list[Row] = []
    for number, grid in enumerate(grids, start=1):
        found = (intervals or {}).get(grid.model, {})
        ends = {"protocol": grid.protocol, "tags": {**grid.tags, **(tags or {})}}
        place: list[_Value] = [("rank", {}, number, len(grids), "models")] if len(grids) > 1 else []
        plain, sampled = grid_signature(grid), grid_signature(grid, drawn)
        for metric, part, value, n, unit in (*place, *_overall(grid), *_corruptions(grid), *_means(grid)):
            row: Row = {"metric": metric, "subset": grid.subset, **part, "value": value, "n": n}
            key: Key = metric, tuple(part.items())
            if key in found:
                row["ci_low"], row["ci_high"] = found[key] or (None, None)
            rows.append({**row, "unit": unit, **ends, "signature": sampled if key in found else plain})
    return rows


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
    """Of each family, each severity, and each family at each severity; nothing for a part without cells."""
    families: list[str | None] = [*FAMILIES]
    severities: list[int | None] = [*grid.severities]
    whole: list[None] = [None]
    for some, several in ((families, whole), (whole, severities), (families, severities)):
        for family in some:
            for severity in several:
                levels = grid.levels(family=family, severity=severity)
                if levels:
                    named = {"family": family, "severity": severity}
                    part: _PartOf = {key: name for key, name in named.items() if name is not None}
                    count = sum(map(len, levels.values()))
                    yield "mean", part, mri(levels), count, "%"
                    yield "relative_drop", part, _drop(mri(levels), grid), count, "%"


def _drop(value: float, grid: Grid) -> float | None:
    return relative_drop(value, grid.clean) if grid.clean else None


def grid_signature(grid: Grid, drawn: Mapping[str, str] | None = None) -> str:
    """The rows' own settings, then what was averaged: the metric, the grid, what made its images, what is missing.
    `drawn`: how an interval was found."""
    cells = [cell for cell in (*grid.cells, *grid.missing) if cell[0] != CLEAN]
    names = {name for name, _ in cells}
    levels = sorted({severity for _, severity in cells})
    if names == set(ROHOI) and tuple(levels) == SEVERITIES:
        size = "rohoi"
    else:
        size = f"{'+'.join(sorted(names))}@{'+'.join(map(str, levels))}"
    settings = {"of": f"{grid.metric}/{grid.subset}", "grid": size, "recipe": grid.recipe or "unstated"}
    if grid.missing:
        settings["missing"] = str(len(grid.missing))
    return signature({**settings, **(drawn or {})}, inherited=grid.settings)


def arranged(
    grids: Sequence[Grid], rows: Sequence[Row], differences: Sequence[Row], published: Sequence[Row], notation: str
) -> list[Sequence[Row]]:
    """The rows as blocks to be written in a notation: one of all, or the `tables`, with the published ones after one's
    own; in LaTeX under heads as papers have them."""
    if notation in ("jsonl", "csv"):
        return [[*rows, *differences, *published]]
    own, others = tables(grids, rows), published_tables(published)
    if notation == "latex":  # the first of each, the summary, has a layout
        own, others = [[*blocks[:1], *map(for_print, blocks[1:])] for blocks in (own, others)]
    return [*own, *([differences] if differences else []), *others]


def tables(grids: Sequence[Grid], rows: Sequence[Row]) -> list[Sequence[Row]]:
    """The rows arranged for a reader, each list a table of its own for `tables.notations.render`.

    The summary, a line a model; then of one model every corruption and family by severity, of several their means side
    by side, as the paper's Table 4 has them.
    """
    summary = [row for row in rows if row["metric"] == "worst" or not any(key in row for key in PARTS)]
    if len(grids) == 1:
        (grid,) = grids
        corruptions = [_by_severity(grid, corruption=name, family=family_of(name)) for name in grid.levels()]
        families = [_by_severity(grid, family=family) for family in (*FAMILIES, None)]
        return [summary, *(list(chain.from_iterable(lines)) for lines in (corruptions, families))]
    return [summary, *(_side_by_side(grids, keys) for keys in (("corruption", "family"), ("family",), ("severity",)))]


def published_tables(rows: Sequence[Row]) -> list[Sequence[Row]]:
    """Published rows as tables: a line a model, and their means by corruption side by side."""
    summary = [row for row in rows if "corruption" not in row]
    means = [
        {**row, **_shown("mean", row["tags"]["model"], row["value"], **{key: row[key] for key in PARTS if key in row})}
        for row in rows
        if "corruption" in row
    ]
    return [block for block in (summary, means) if block]


def for_print(rows: Sequence[Row]) -> list[Row]:
    """A table of `tables` under heads as papers have them, without the subset, which all columns share."""

    def head(row: Row) -> str:
        metric, column = str(row["metric"]), str(row["subset"])
        if metric == OVER:
            return {"mean": "Mean", "sigma": "Deviation", "drop %": "Drop (%)"}[column]
        return PRINTED.get(metric) or (column if metric == "mean" else f"Severity {column}")

    return [{**row, "metric": "", "subset": head(row)} for row in rows]


def _shown(metric: str, column: str, value: float | None, **line: str) -> Row:
    """A cell of a table: `line` names its line, `column` stands below `metric`."""
    return {"metric": metric, "subset": column, "value": value, "tags": line}


def _by_severity(grid: Grid, **part: Any) -> list[Row]:
    """The line of a part of the grid, a corruption with its family, or a family; none where it has no cells."""
    metric, line = f"{grid.metric} at severity", {key: name or "all" for key, name in part.items()}
    levels, rows = grid.levels(**part), []
    if not levels:
        return []
    for severity in grid.severities:
        there = grid.levels(**part, severity=severity)
        rows.append(_shown(metric, str(severity), mri(there) if there else None, **line))
    rows.append(_shown(OVER, "mean", mri(levels), **line))
    if "corruption" in part:
        rows += [_shown(OVER, "sigma", deviation(values), **line) for values in levels.values()]
    return [*rows, _shown(OVER, "drop %", _drop(mri(levels), grid), **line)]


def _side_by_side(grids: Sequence[Grid], keys: tuple[str, ...]) -> list[Row]:
    rows = []
    for grid in grids:
        for metric, part, value, _, _ in (*_corruptions(grid), *_means(grid)):
            if metric == "mean" and tuple(part) == keys:
                rows.append(_shown("mean", grid.model, value, **{key: str(name) for key, name in part.items()}))
    return rows
