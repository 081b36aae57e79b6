"""Makes a grid for each model of the rows gathered: its value for every corruption at every severity (a cell), and for
the clean images.

What a benchmark must not average in silence is an error here: a cell that occurs twice, one that is missing, settings
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
    expand_groups,
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
    """One model's values of a metric, in percent, for the clean images and by cell (corruption, severity).

    tags: those that all its rows share. settings: of the rows' signatures, without the version, with the digest of the
    ground truth of the original images. recipe: the name of what made the corrupted images, "" if the rows do not say.
    clean: None, if the clean row is missing. missing: the cells without a row, which `cells` lacks; both are in the
    benchmark's order.
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

    def values_by_corruption(
        self, *, corruption: str | None = None, family: str | None = None, severity: int | None = None
    ) -> dict[str, list[float]]:
        """Return the values of each corruption, by rising severity. With an argument, only those of this corruption, of
        this family of corruptions, or at this severity."""
        values: dict[str, list[float]] = {}
        for (name, level), value in self.cells.items():
            if corruption in (None, name) and family in (None, family_of(name)) and severity in (None, level):
                values.setdefault(name, []).append(value)
        return values

    @property
    def severities(self) -> list[int]:
        """Return the severities that occur, rising."""
        return sorted({severity for _, severity in self.cells})


@dataclass(frozen=True)
class Benchmark:
    """The corruptions and severities that a complete grid must have, as the user names them.

    If no corruption is named, these are all of RoHOI's if more than half of them occur in the rows, else those that
    occur: most of them are probably meant to be all, while a few are a choice. The same goes for severities."""

    corruptions: tuple[str, ...] = ()
    severities: tuple[int, ...] = ()

    @classmethod
    def from_options(cls, corruptions: Sequence[str], severities: Sequence[str]) -> Benchmark:
        """Return the benchmark that a command's options name. corruptions: names, those of groups among them.
        Raises `UsageError` for an empty name, `clean`, and severities that are no whole numbers."""
        if "" in corruptions or CLEAN in corruptions:
            raise UsageError(f"{arg('corruption', ','.join(corruptions))}: give names with commas between, or rohoi")
        if not all(map(is_severity, severities)):
            raise UsageError(f"{arg('severity', ','.join(severities))}: give whole numbers of at least 1")
        return cls(expand_groups(corruptions), tuple(sorted(set(map(int, severities)))))


def build_grids(
    gathering: Gathering, benchmark: Benchmark, *, unit: str | None = None, allow_missing: bool = False
) -> tuple[list[Grid], list[str]]:
    """Return (a grid for each model, by name; remarks for the user). unit: "percent" or "fraction", which overrules
    what rows say; allow_missing: whether cells may be missing.

    Raises `UsageError` if the selection finds no rows, or several kinds (metric, subset, protocol), and `DataError` for
    everything that would make an average quietly wrong."""
    kind, models = gathering.choose_rows()
    rows_of = {model: _index_cells(model, rows) for model, rows in models.items()}
    remarks = _vcoco_remarks(gathering, kind) + _setting_remarks([*chain.from_iterable(models.values())])
    present_cells = {cell for cell in chain.from_iterable(rows_of.values()) if cell != CLEAN_CELL}
    corruptions, severities = _intended_grid(benchmark, present_cells)
    present_names = {name for name, _ in present_cells}
    if present_names and present_names.isdisjoint(corruptions):
        suggestions = filter(None, (did_you_mean(name, present_names) for name in corruptions))
        hint = next(suggestions, f"there are {list_names(sorted(present_names))}")
        raise UsageError(f"{arg('corruption', ','.join(corruptions))}: no row is of it; {hint}")
    remarks += _extent_remarks(benchmark, present_cells, corruptions, severities)
    if not corruptions or not severities:
        text = "only the clean row, no corruption; hoicli eval --tag corruption=NAME --tag severity=1 writes more"
        raise DataError(text, place=gathering.place)
    cells = [CLEAN_CELL, *product(corruptions, severities)]
    _check_same_truth(rows_of, cells)
    complete_grids = [_grid(model, kind, rows, cells, unit) for model, rows in rows_of.items()]
    others = sorted(present_names - set(corruptions))
    remarks += _missing_remarks(gathering, complete_grids, len(cells), others, allow_missing=allow_missing)
    for grid in complete_grids:
        # The same value at all severities: the predictions may be the same by mistake, unless it is 0 or 100 percent.
        items = grid.values_by_corruption().items()
        constant = [name for name, values in items if len(values) > 1 and 0 < min(values) == max(values) < 100]
        if constant:
            problem = f"has one value at all severities of {list_names(constant)}: the same predictions?"
            remarks.append(f"{_model_text(grid.model)} {problem}")
    return complete_grids, remarks + _recipe_remarks({grid.recipe for grid in complete_grids})


def _setting_remarks(rows: Sequence[CellRow]) -> list[str]:
    """Return remarks on settings that differ between the models' rows, on rows that do not say in which order their
    ground truth is listed, and on rows with a note."""
    remarks = []
    settings = sorted({row.shared for row in rows if row.shared})
    if len(settings) > 1:
        remarks.append(f"the models were evaluated with different settings: {list_names(settings)}")
    has_order = {"listed" in row.settings for row in rows if row.truth}
    if len(has_order) > 1:
        remarks.append("some rows do not say in which order their ground truth is listed, as those of hoicli 1.0")
    if noted := [row for row in rows if row.note]:
        remarks.append(f"{len(noted):,} of {len(rows):,} rows have a note, first {noted[0].place}: {noted[0].note}")
    return remarks


def _index_cells(model: str, rows: Sequence[CellRow]) -> dict[Cell, CellRow]:
    """Return the rows of a model by their cells. Raises `DataError` for a cell that occurs twice, and for settings or
    recipes that differ."""
    rows_by_cell: dict[Cell, CellRow] = {}
    for row in rows:
        first = rows_by_cell.setdefault(row.cell, row)
        if first is not row:
            advice = f"keep one row a cell, or tell models apart with {arg('tag')} model=NAME"
            tags = dict.fromkeys((*first.tags, *row.tags))
            if differing := ",".join(name for name in tags if first.tags.get(name) != row.tags.get(name)):
                advice = f"the rows differ in {differing}: {arg('by', differing)} makes a benchmark of each value"
            doubled = f"{_cells_text([row.cell])} of {_model_text(model)} is at {first.place} already"
            raise DataError(f"{doubled}; {advice}", place=row.place)
    # shared: the settings of a row's signature but for the ground truth, whose boxes some corruptions move
    settings = [(repr(row.shared), row.place) for row in rows if row.shared]
    _check_same(settings, "signature", "values of different settings do not average; evaluate with the same ones")
    # What made the corrupted images must be the same in all rows: the recipe, and of each package that adds
    # corruptions, the version.
    recipes: list[tuple[str, str]] = []
    versions_by_package: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        if row.cell != CLEAN_CELL:
            recipe, package = split_recipe_text(row.recipe)  # package: NAME@VERSION, or ""
            recipes.append((recipe, row.place))
            versions_by_package.setdefault(package.partition("@")[0], []).append((package, row.place))
    for values_and_places in (recipes, *versions_by_package.values()):
        problem = "images made in different ways do not average; corrupt with one recipe, and tag all rows with it"
        _check_same(values_and_places, f"tags.{RECIPE_TAG}", problem)
    return rows_by_cell


def _check_same(values_and_places: Iterable[tuple[str, str]], field: str, problem: str) -> None:
    """Raise `DataError` if two of the values differ. values_and_places: (value, place of its row); field: that has the
    value in the row; problem: the end of the message, why they must not differ."""
    place_of_value: dict[str, str] = {}
    for value, place in values_and_places:
        place_of_value.setdefault(value, place)
    if len(place_of_value) > 1:
        (first_value, first_place), (other_value, other_place) = list(place_of_value.items())[:2]
        text = f"{other_value or 'missing'}, but {first_place} has {first_value or 'none'}: {problem}"
        raise DataError(text, place=other_place, field=field)


def _grid(model: str, kind: Kind, rows: Mapping[Cell, CellRow], cells: Sequence[Cell], unit: str | None) -> Grid:
    """Return the grid of a model. kind: the (metric, subset, protocol) of its rows; rows: by their cells; cells: those
    of a complete grid, the clean one first; unit: "percent" or "fraction", None for what the rows say."""
    metric, subset, protocol = kind
    values = _percent(rows, unit)
    recipes = [split_recipe_text(row.recipe) for cell, row in rows.items() if cell != CLEAN_CELL]
    packages = sorted({package for _, package in recipes if package})
    shared_tags = set.intersection(*(set(row.tags.items()) for row in rows.values()))
    shared_settings = next((row.shared for row in rows.values() if row.shared), "")  # all that have some agree
    return Grid(
        model=model,
        protocol=protocol,
        metric=metric,
        subset=subset,
        tags=dict(sorted(shared_tags)),
        settings=_settings_with_truth(model, rows, cells) or shared_settings,
        recipe="+".join([*(recipe for recipe, _ in recipes[:1]), *packages]),  # all cells have one recipe
        clean=values.get(CLEAN_CELL),
        cells={cell: values[cell] for cell in cells[1:] if cell in values},
        missing=tuple(cell for cell in cells if cell not in values),
    )


def _vcoco_remarks(gathering: Gathering, kind: Kind) -> list[str]:
    """Return a remark that says which of V-COCO's numbers is averaged, unless the user named it, and whether it is the
    one that the RoHOI paper calls M; none on another dataset. kind: (metric, subset, protocol) of the rows."""
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


def _settings_with_truth(model: str, rows: Mapping[Cell, CellRow], cells: Sequence[Cell]) -> str:
    """Return, as signatures write them, the settings of a row on the ground truth of the original images; "" if no row
    has its digest. rows: of one model, by their cells; cells: those to look at, in the benchmark's order.

    Raises `DataError` for a cell with another ground truth, unless its corruption moves boxes. Boxes that move do so
    differently in every cell, so cells that share a ground truth must have it from the original images, too.
    """
    # KEPT ends the recipe's name if boxes stayed as annotated, even under corruptions that move content (`moves`)
    recipes = [split_recipe_text(row.recipe)[0] for cell, row in rows.items() if cell != CLEAN_CELL]
    boxes_kept = any(recipe.endswith(KEPT) for recipe in recipes)
    without_motion = {CLEAN, *(name for name, entry in CORRUPTIONS.items() if boxes_kept or not entry.moves)}
    rows_with_truth = {cell: rows[cell] for cell in cells if cell in rows and rows[cell].truth}
    # the row with which all others are compared: its boxes are where they were annotated
    original_row = next((row for (name, _), row in rows_with_truth.items() if name in without_motion), None)
    if original_row is None:
        return ""
    advice = "its boxes do not move: evaluate all cells on the same annotations"
    first_cell_of_truth = {original_row.truth: original_row.cell}
    for cell, row in rows_with_truth.items():
        if row.has_same_truth(original_row):
            continue
        if cell[0] in without_motion:
            raise _other_truth(model, row, original_row, advice)
        first_cell = first_cell_of_truth.setdefault(row.truth, cell)
        if first_cell != cell:
            raise _other_truth(model, row, original_row, f"{_cells_text([first_cell])} has the same, so {advice}")
    return joined_settings(original_row.settings)


def _check_same_truth(models: Mapping[str, Mapping[Cell, CellRow]], cells: Sequence[Cell]) -> None:
    """Raise `DataError` for a cell for which two models were evaluated on different ground truths. models: the rows of
    each model, by their cells; cells: those to check."""
    for cell in cells:
        with_truth = [(model, rows[cell]) for model, rows in models.items() if cell in rows and rows[cell].truth]
        for model, row in with_truth[1:]:
            _, first_row = with_truth[0]
            if not row.has_same_truth(first_row):
                raise _other_truth(model, row, first_row, "evaluate all models on one")


def _other_truth(model: str, row: CellRow, first_row: CellRow, advice: str) -> DataError:
    """Return the error of a model's row that has another ground truth than the first one had. advice: what to do."""
    truths = f"is of the ground truth {row.truth}, but {first_row.place} of {first_row.truth}"
    if row.truth == first_row.truth:
        truths = f"is of the ground truth {row.truth}, listed in another order than in {first_row.place}"
    text = f"{_cells_text([row.cell])} of {_model_text(model)} {truths}; {advice}"
    return DataError(text, place=row.place, field="signature", code="mixed")


def _intended_grid(benchmark: Benchmark, present_cells: set[Cell]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return (corruptions, severities) of the grid that is probably meant, as `Benchmark` describes it. present_cells:
    those that occur in the rows."""
    names = {name for name, _ in present_cells}
    present_of_rohoi = tuple(name for name in ROHOI if name in names)
    is_mostly_there = 2 * len(present_of_rohoi) > len(ROHOI)
    present_in_order = (*present_of_rohoi, *sorted(names - set(present_of_rohoi)))
    corruptions = benchmark.corruptions or (ROHOI if is_mostly_there else present_in_order)
    levels = {severity for name, severity in present_cells if name in corruptions}
    is_mostly_there &= 2 * len(levels & set(SEVERITIES)) > len(SEVERITIES)
    return corruptions, benchmark.severities or (SEVERITIES if is_mostly_there else tuple(sorted(levels)))


def _extent_remarks(
    benchmark: Benchmark, present_cells: set[Cell], corruptions: Sequence[str], severities: Sequence[int]
) -> list[str]:
    """Return remarks if the grid of these corruptions and severities was not named by the user and is not RoHOI's, and
    on cells in the rows that are not in the grid."""
    remarks = []
    if benchmark == Benchmark() and (corruptions, severities) != (ROHOI, SEVERITIES):  # the user named none
        extent = f"{len(corruptions)} corruptions and severities {list_names(severities)}"
        remarks.append(f"averaging over {extent}: RoHOI has 20, at 1 to 5")
    not_in_grid = sorted({name for name, _ in present_cells} - set(corruptions))
    present_severities = {severity for name, severity in present_cells if name in corruptions}
    not_in_grid += sorted(map(str, present_severities - set(severities)))
    if not_in_grid:
        choose = f"{arg('corruption')} and {arg('severity')} choose"
        remarks.append(f"left out, not in the grid: {list_names(not_in_grid)}; {choose}")
    return remarks


def _percent(rows: Mapping[Cell, CellRow], unit: str | None) -> dict[Cell, float]:
    """Return the values, in percent, of the cells that have one. unit: "percent" or "fraction", if the user says it,
    which overrules the unit of the rows. Raises `DataError` for what cannot be percent or looks like a fraction."""
    values: dict[Cell, float] = {}
    unchecked: dict[Cell, CellRow] = {}  # rows that should be percent
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
    # Fractions of 1, if the largest value is at most 1: no detector that is worth corrupting has 1 percent, or loses
    # nearly all but not all in every cell. Clean and corrupted values are judged separately, since one may be in
    # percent and the other in fractions.
    clean = [row.value or 0.0 for cell, row in unchecked.items() if cell == CLEAN_CELL]
    corrupted = [row.value or 0.0 for cell, row in unchecked.items() if cell != CLEAN_CELL]
    if unit is None and any(0 < max(side, default=0.0) <= 1 for side in (clean, corrupted)):
        example = min((row for row in unchecked.values() if row.value), key=lambda row: (row.value or 0.0, row.place))
        text = f"{example.value} looks like a fraction of 1, whatever its row's unit, and CRI needs percent"
        text += f"; {arg('unit', 'percent')} (true of what hoicli computed) or fraction says which it is"
        raise DataError(text, place=example.place, field="value")
    return values


def _missing_remarks(
    gathering: Gathering, complete_grids: Sequence[Grid], cells: int, others: Sequence[str], *, allow_missing: bool
) -> list[str]:
    """Return remarks on the cells that models lack. Raises `DataError` if a model lacks any and that is not allowed, or
    if it has none. cells: how many a complete grid has; others: corruptions in the rows that the benchmark does not
    have, for the message."""
    remarks = []
    for grid in complete_grids:
        if not grid.missing:
            continue
        text = f"{_model_text(grid.model)} lacks {len(grid.missing)} of {cells} cells: {_cells_text(grid.missing)}"
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


def _recipe_remarks(recipes: set[str]) -> list[str]:
    """Return a remark on what made the corrupted images, and with which values it can be compared. recipes: of the
    models' grids, "" where rows do not say."""
    if len(recipes) > 1:
        names = list_names(name or "none stated" for name in sorted(recipes))
        return [f"the models' images were made by different recipes: {names}"]
    (recipe,) = recipes
    # one of hoicli's own; or NAME@DIGEST, the name of one from a file (or of a package that adds corruptions)
    if recipe.removesuffix(KEPT) in RECIPES or "@" in recipe:
        return [
            f"RoHOI-style, recipe {recipe}: comparable with values of this recipe, not with RoHOI's tables, whose "
            "constants are not published"
        ]
    if recipes == {""}:
        return [f"the rows do not say what made their images; if hoicli corrupt did: eval --tag {RECIPE_TAG}={RECIPE}"]
    return []


def _cells_text(cells: Sequence[Cell]) -> str:
    """Return cells in words: `clean, jpeg 1 2 3, moire 5`. Those of a corruption must stand together."""
    texts = []
    for name, group in groupby(cells, key=lambda cell: cell[0]):
        texts.append(" ".join([name, *(str(severity) for _, severity in group if severity)]))
    return list_names(texts)


def _model_text(model: str) -> str:
    """Return how a message names a model; rows without the tag `model` have an empty name."""
    return f"model {model}" if model else "the model"
