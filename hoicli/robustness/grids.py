"""A grid a model, of all rows gathered: the value of every corruption at every severity, and the clean one.

What a benchmark must not average in silence is an error here: a cell that is there twice, one that is missing, settings
or ground truths that differ, fractions that pass for percent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, product

from hoicli.corruption.catalogue import (
    CORRUPTIONS,
    KEPT,
    RECIPE,
    RECIPES,
    ROHOI,
    SEVERITIES,
    family_of,
    split_recipe_text,
)
from hoicli.errors import DataError, UsageError, arg, did_you_mean
from hoicli.records.result_rows import joined_settings
from hoicli.robustness.gathering import (
    CLEAN,
    CLEAN_CELL,
    METRIC,
    RECIPE_TAG,
    VCOCO_PROTOCOL,
    VCOCO_SUBSET,
    Cell,
    CellRow,
    Gathering,
    Kind,
    is_severity,
    is_vcoco,
    list_names,
)


@dataclass(frozen=True)
class Grid:
    """One model's values in percent, by cell (corruption and severity).

    `tags` are those that all its rows share. `settings` is the rows' signature without the version, naming the ground
    truth whose boxes do not move. `recipe` names what made the corrupted images, "" where the rows do not say. `clean`
    is None, and `cells` lacks those of `missing`, where that was allowed. Cells and missing ones are in the benchmark's
    order.
    """

    model: str
    protocol: str
    metric: str
    subset: str
    tags: Mapping[str, str]
    settings: str
    recipe: str
    clean: float | None
    cells: Mapping[Cell, float]
    missing: tuple[Cell, ...]

    def levels(
        self, *, corruption: str | None = None, family: str | None = None, severity: int | None = None
    ) -> dict[str, list[float]]:
        """Return corruption -> its values by severity: of all cells, or of one corruption, one family, one severity."""
        values_by_corruption: dict[str, list[float]] = {}
        for (name, level), value in self.cells.items():
            if corruption in (None, name) and family in (None, family_of(name)) and severity in (None, level):
                values_by_corruption.setdefault(name, []).append(value)
        return values_by_corruption

    @property
    def severities(self) -> list[int]:
        """Return the severities that occur, rising."""
        return sorted({severity for _, severity in self.cells})


@dataclass(frozen=True)
class Benchmark:
    """The corruptions and severities that a complete grid has. Without names these are all of RoHOI's where more than
    half of them occur, else those that occur: what is mostly there is meant to be complete, while a few are a choice.
    The same goes for severities."""

    corruptions: tuple[str, ...] = ()
    severities: tuple[int, ...] = ()

    @classmethod
    def from_options(cls, corruptions: Sequence[str], severities: Sequence[str]) -> Benchmark:
        """Return what a command's options name (or `rohoi`); raise `UsageError` for names or numbers that cannot be."""
        if "" in corruptions or CLEAN in corruptions:
            raise UsageError(f"{arg('corruption', ','.join(corruptions))}: give names with commas between, or rohoi")
        if not all(map(is_severity, severities)):
            raise UsageError(f"{arg('severity', ','.join(severities))}: give whole numbers of at least 1")
        names = ROHOI if list(corruptions) == ["rohoi"] else tuple(dict.fromkeys(corruptions))
        return cls(names, tuple(sorted(set(map(int, severities)))))


def grids(
    gathering: Gathering, benchmark: Benchmark, *, unit: str | None = None, allow_missing: bool = False
) -> tuple[list[Grid], list[str]]:
    """Return (a grid for each model, by name; remarks for the user). unit: "percent" or "fraction", whatever rows say.

    Raises `UsageError` where the selection finds no rows or several kinds, `DataError` for everything that would make
    an average quietly wrong.
    """
    kind, models = gathering.choose_rows()
    remarks = _vcoco_notes(gathering, kind)
    rows_of = {model: _index_cells(model, rows) for model, rows in models.items()}
    settings = sorted({row.shared for row in chain.from_iterable(models.values()) if row.shared})
    if len(settings) > 1:
        remarks.append(f"the models were evaluated with different settings: {list_names(settings)}")
    order_stated = {"listed" in row.settings for row in chain.from_iterable(models.values()) if row.truth}
    if len(order_stated) > 1:
        remarks.append("some rows do not say in which order their ground truth is listed, as those of hoicli 1.0")
    cells_found = {cell for cell in chain.from_iterable(rows_of.values()) if cell != CLEAN_CELL}
    corruptions, severities = _intended_grid(benchmark, cells_found)
    names = {name for name, _ in cells_found}
    if names and names.isdisjoint(corruptions):
        meant = next(
            filter(None, (did_you_mean(name, names) for name in corruptions)), f"there are {list_names(sorted(names))}"
        )
        raise UsageError(f"{arg('corruption', ','.join(corruptions))}: no row is of it; {meant}")
    remarks += _beyond(benchmark, cells_found, corruptions, severities)
    if not corruptions or not severities:
        text = "only the clean row, no corruption; hoicli eval --tag corruption=NAME --tag severity=1 writes more"
        raise DataError(text, place=gathering.place)
    cells = [CLEAN_CELL, *((name, severity) for name, severity in product(corruptions, severities))]
    _check_models(rows_of, cells)
    complete_grids = [_grid(model, kind, rows, cells, unit) for model, rows in rows_of.items()]
    others = sorted(names - set(corruptions))
    remarks += _lacking(gathering, complete_grids, len(cells), others, allow_missing=allow_missing)
    return complete_grids, remarks + _alike(complete_grids) + _recipes({grid.recipe for grid in complete_grids})


def _index_cells(model: str, rows: Sequence[CellRow]) -> dict[Cell, CellRow]:
    """Return the rows of a model by their cells. Raises `DataError` for a cell that is there twice, and for settings or
    recipes that differ."""
    rows_by_cell: dict[Cell, CellRow] = {}
    for row in rows:
        first = rows_by_cell.setdefault(row.cell, row)
        if first is not row:
            advice = f"keep one row a cell, or tell models apart with {arg('tag')} model=NAME"
            doubled = f"{_cells([row.cell])} of {_model_text(model)} is at {first.place} already"
            raise DataError(f"{doubled}; {advice}", place=row.place)
    settings = [(repr(row.shared), row.place) for row in rows if row.shared]
    _check_same(settings, "signature", "values of different settings do not average; evaluate with the same ones")
    recipes = [(*split_recipe_text(row.recipe), row.place) for row in rows if row.cell != CLEAN_CELL]
    by_package: dict[str, list[tuple[str, str]]] = {}  # each package must have the same version in all rows
    for _, package, place in recipes:  # package: NAME@VERSION of the one that made the corruption, or ""
        by_package.setdefault(package.partition("@")[0], []).append((package, place))
    for must_agree in ([(shared, place) for shared, _, place in recipes], *by_package.values()):
        problem = "images made in different ways do not average; corrupt with one recipe, and tag all rows with it"
        _check_same(must_agree, f"tags.{RECIPE_TAG}", problem)
    return rows_by_cell


def _check_same(values: Iterable[tuple[str, str]], field: str, problem: str) -> None:
    """Raise `DataError` if two values differ among (value, place)."""
    places: dict[str, str] = {}
    for value, place in values:
        places.setdefault(value, place)
    if len(places) > 1:
        (first_value, first_place), (other_value, other_place) = list(places.items())[:2]
        text = f"{other_value or 'missing'}, but {first_place} has {first_value or 'none'}: {problem}"
        raise DataError(text, place=other_place, field=field)


def _grid(model: str, kind: Kind, rows: Mapping[Cell, CellRow], cells: Sequence[Cell], unit: str | None) -> Grid:
    """Return the grid of a model. cells: those of a complete grid, the clean one first."""
    metric, subset, protocol = kind
    values = _percent(rows, unit)
    recipes = [split_recipe_text(row.recipe) for cell, row in rows.items() if cell != CLEAN_CELL]
    packages = sorted({package for _, package in recipes if package})
    return Grid(
        model=model,
        protocol=protocol,
        metric=metric,
        subset=subset,
        tags=dict(sorted(set.intersection(*(set(row.tags.items()) for row in rows.values())))),
        settings=_standing(model, rows, cells) or next((row.shared for row in rows.values() if row.shared), ""),
        recipe="+".join([*(shared for shared, _ in recipes[:1]), *packages]),
        clean=values.get(CLEAN_CELL),
        cells={cell: values[cell] for cell in cells[1:] if cell in values},
        missing=tuple(cell for cell in cells if cell not in values),
    )


def _alike(complete_grids: Sequence[Grid]) -> list[str]:
    """Return remarks on corruptions that have one value at all severities; at 0 and 100 that is to be expected."""
    return [
        f"{_model_text(grid.model)} has one value at all severities of {list_names(constant)}: the same predictions?"
        for grid in complete_grids
        if (constant := [name for name, values in grid.levels().items() if _is_constant(values)])
    ]


def _is_constant(values: Sequence[float]) -> bool:
    return len(values) > 1 and 0 < min(values) == max(values) < 100


def _vcoco_notes(gathering: Gathering, kind: Kind) -> list[str]:
    """Return remarks on which of V-COCO's numbers M is, and whether it is the paper's, unless the user named it."""
    metric, subset, protocol = kind
    if not is_vcoco(protocol):
        return []
    if kind != (METRIC, VCOCO_SUBSET, VCOCO_PROTOCOL):
        text = f"RoHOI's on V-COCO is {METRIC} of {VCOCO_PROTOCOL} over {VCOCO_SUBSET} action-roles"
        return [f"M is {metric} of {protocol}, subset {subset}; {text}"]
    if gathering.protocol and gathering.subset:
        return []
    choose = f"{arg('protocol')} and {arg('subset')} choose"
    return [f"M is {metric} of {protocol} over {subset} action-roles, as in RoHOI (AP#2); {choose}"]


def _standing(model: str, rows: Mapping[Cell, CellRow], cells: Sequence[Cell]) -> str:
    """Return the settings with the ground truth whose boxes do not move, that of the original images; "" where no row
    has it.

    Raises `DataError` for a cell with another ground truth. Boxes that move do so differently in every cell, so two
    cells that share a ground truth have it from the original images, too.
    """
    boxes_kept = any(
        split_recipe_text(row.recipe)[0].endswith(KEPT) for cell, row in rows.items() if cell != CLEAN_CELL
    )
    standing = {CLEAN, *(name for name, entry in CORRUPTIONS.items() if boxes_kept or not entry.moves)}
    stated = {cell: rows[cell] for cell in cells if cell in rows and rows[cell].truth}
    stated_row = next((row for cell, row in stated.items() if cell[0] in standing), None)
    if stated_row is None:
        return ""
    moved: dict[str, Cell] = {}
    for cell, row in stated.items():
        stands = cell[0] in standing
        first_cell = cell if stands else moved.setdefault(row.truth, cell)  # the first cell with this ground truth
        if not row.is_of(stated_row) and (stands or first_cell != cell):
            why = "its boxes" if stands else f"{_cells([first_cell])} has the same, so its boxes"
            raise _other_truth(model, row, stated_row, f"{why} do not move: evaluate all cells on the same annotations")
    return joined_settings(stated_row.settings)


def _check_models(models: Mapping[str, Mapping[Cell, CellRow]], cells: Sequence[Cell]) -> None:
    """Raise `DataError` for a cell that two models were evaluated on with different ground truths."""
    for cell in cells:
        stated = [(model, rows[cell]) for model, rows in models.items() if cell in rows and rows[cell].truth]
        for model, row in stated[1:]:
            first_row = stated[0][1]
            if not row.is_of(first_row):
                raise _other_truth(model, row, first_row, "evaluate all models on one")


def _other_truth(model: str, row: CellRow, first_row: CellRow, advice: str) -> DataError:
    truths = f"is of the ground truth {row.truth}, but {first_row.place} of {first_row.truth}"
    text = f"{_cells([row.cell])} of {_model_text(model)} {truths}; {advice}"
    return DataError(text, place=row.place, field="signature", code="mixed")


def _intended_grid(benchmark: Benchmark, cells_found: set[Cell]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return (corruptions, severities) of the grid that was meant, given the cells that occur. What the benchmark does
    not fix is RoHOI's if more than half of RoHOI's are there, else just what occurs."""
    names = {name for name, _ in cells_found}
    published = tuple(name for name in ROHOI if name in names)
    mostly_there = 2 * len(published) > len(ROHOI)
    corruptions = benchmark.corruptions or (ROHOI if mostly_there else (*published, *sorted(names - set(published))))
    levels = {severity for name, severity in cells_found if name in corruptions}
    mostly_there &= 2 * len(levels & set(SEVERITIES)) > len(SEVERITIES)
    return corruptions, benchmark.severities or (SEVERITIES if mostly_there else tuple(sorted(levels)))


def _beyond(
    benchmark: Benchmark, cells_found: set[Cell], corruptions: Sequence[str], severities: Sequence[int]
) -> list[str]:
    """Return remarks where the grid is not RoHOI's own, or where cells occur that are not in it."""
    remarks = []
    if benchmark == Benchmark() and (corruptions, severities) != (ROHOI, SEVERITIES):
        averaged = f"{len(corruptions)} corruptions and severities {list_names(severities)}"
        remarks.append(f"averaging over {averaged}: RoHOI has 20, at 1 to 5")
    not_in_grid = sorted({name for name, _ in cells_found} - set(corruptions))
    not_in_grid += sorted(
        {str(severity) for name, severity in cells_found if name in corruptions} - set(map(str, severities))
    )
    if not_in_grid:
        remarks.append(
            f"left out, not in the grid: {list_names(not_in_grid)}; {arg('corruption')} and {arg('severity')} choose"
        )
    return remarks


def _percent(rows: Mapping[Cell, CellRow], unit: str | None) -> dict[Cell, float]:
    """Return the values in percent of the cells that have one; raise `DataError` for what cannot be percent.

    unit: overrules the unit that rows give.
    """
    values: dict[Cell, float] = {}
    unchecked: dict[Cell, CellRow] = {}  # those that neither row nor caller says are fractions
    for cell, row in rows.items():
        if row.value is None:
            continue
        fraction = (unit or row.unit) == "fraction"
        values[cell] = 100.0 * row.value if fraction else float(row.value)
        if not 0 <= values[cell] <= 100:
            text = f"{row.value} is outside 0 to {1 if fraction else 100}; give a metric that is a share"
            raise DataError(text, place=row.place, field="value")
        if not fraction:
            unchecked[cell] = row
    if unit is None and _look_like_fractions(unchecked):
        example = min((row for row in unchecked.values() if row.value), key=lambda row: (row.value or 0.0, row.place))
        text = f"{example.value} looks like a fraction of 1, and CRI needs percent; say which it is with {arg('unit')}"
        raise DataError(text, place=example.place, field="value")
    return values


def _look_like_fractions(values: Mapping[Cell, CellRow]) -> bool:
    """Return whether values that should be percent look like fractions of 1.

    No detector that is worth corrupting has 1 percent, or loses nearly all but not all in every cell. Clean and
    corrupted values are judged apart, since one may be in percent beside the other in fractions.
    """
    sides: dict[bool, list[float]] = {}
    for cell, row in values.items():
        sides.setdefault(cell == CLEAN_CELL, []).append(row.value or 0.0)
    return any(0 < max(side) <= 1 for side in sides.values())


def _lacking(
    gathering: Gathering, complete_grids: Sequence[Grid], cells: int, others: Sequence[str], *, allow_missing: bool
) -> list[str]:
    """Return remarks on the cells that models lack; raise `DataError` unless that is allowed. cells: how many a
    complete grid has; others: the corruptions that occur beside the benchmark's."""
    remarks = []
    for grid in (grid for grid in complete_grids if grid.missing):
        text = f"{_model_text(grid.model)} lacks {len(grid.missing)} of {cells} cells: {_cells(grid.missing)}"
        if not allow_missing:
            more = f" (there is {list_names(others)})" if others else ""
            choose = f"choose with {arg('corruption')} and {arg('severity')}"
            advice = f"evaluate them, {choose}, or pass {arg('allow_missing')}"
            raise DataError(f"{text}{more}; {advice}", place=gathering.place, code="not-whole")
        if not grid.cells:
            raise DataError(f"{text}; there is nothing to average", place=gathering.place)
        remarks.append(text)
    if len({grid.missing for grid in complete_grids}) > 1:
        remarks.append("the models lack different cells, so their ranks compare different averages")
    return remarks


def _recipes(recipes: set[str]) -> list[str]:
    """Return remarks on what made the images."""
    if len(recipes) > 1:
        names = list_names(name or "none stated" for name in sorted(recipes))
        return [f"the models' images were made by different recipes: {names}"]
    (recipe,) = recipes
    if recipe.removesuffix(KEPT) in RECIPES or "@" in recipe:
        return [
            f"RoHOI-style, recipe {recipe}: comparable with values of this recipe, not with RoHOI's tables, whose "
            "constants are not published"
        ]
    if recipes == {""}:
        return [f"the rows do not say what made their images; if hoicli corrupt did: eval --tag {RECIPE_TAG}={RECIPE}"]
    return []


def _cells(cells: Sequence[Cell]) -> str:
    """Return cells in words: `clean, jpeg 1 2 3, moire 5`."""
    groups = groupby(cells, key=lambda cell: cell[0])
    return list_names(" ".join([name, *(str(severity) for _, severity in group if severity)]) for name, group in groups)


def _model_text(model: str) -> str:
    """Return how a message names a model."""
    return f"model {model}" if model else "the model"
