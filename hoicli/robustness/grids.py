"""Result rows gathered into a grid a model: the value of every corruption at every severity, and the clean one.

A cell is a row whose tags hold `corruption` and `severity` (`hoicli eval --tag corruption=jpeg --tag severity=3`), the
clean one a row tagged `corruption=clean`. What a benchmark must not average in silence is an error here: a cell that
is there twice, one that is missing, settings that differ, fractions that pass for percent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import groupby
from typing import TYPE_CHECKING

from hoicli.corruption.families import CORRUPTIONS, RECIPE, SEVERITIES
from hoicli.errors import DataError, UsageError
from hoicli.io.streams import Line
from hoicli.records.image import result_problems
from hoicli.records.parsing import Record, parse

if TYPE_CHECKING:  # a policy needs no NumPy, but the module it lives in does
    from hoicli.records.intake import ErrorPolicy

METRIC, SUBSET = "mAP", "full"
"""What a benchmark is about, where nobody says otherwise."""
CLEAN = "clean"
"""The `corruption` of the original images' row."""
RECIPE_TAG = "recipe"
"""The tag that says what made the corrupted images: hoicli corrupt's records carry theirs under this key."""
SHOWN = 6
"""Cells, names or settings that a message spells out before it only counts."""

Cell = tuple[str, int]
"""(corruption, severity); the original images are (CLEAN, 0)."""


@dataclass(frozen=True)
class Choice:
    """Which rows of a stream are the benchmark's: a stream may hold several metrics, subsets and protocols.

    None is mAP and full, or the only kind there is; of protocols the one there is. `unit` ("percent" or "fraction")
    overrules what rows say of themselves.
    """

    metric: str | None = None
    subset: str | None = None
    protocol: str | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Benchmark:
    """The cells a complete grid has, every corruption at every severity.

    SEEN stands for those that occur; AUTO for all of RoHOI's where more than half of them occur (of the severities,
    too, in a whole benchmark), else for SEEN: what is mostly there is meant to be whole, and a few are a choice.
    """

    corruptions: tuple[str, ...] | str = "auto"
    severities: tuple[int, ...] | str = "auto"


AUTO, SEEN = "auto", "seen"


def benchmark(corruptions: str, severities: str) -> Benchmark:
    """The grid that two options ask for: names, `rohoi`, `seen` or `auto`; numbers, `seen` or `auto`.

    Raises `UsageError` for anything else.
    """
    names: tuple[str, ...] | str = CORRUPTIONS
    if corruptions in (AUTO, SEEN):
        names = corruptions
    elif corruptions != "rohoi":
        names = tuple(dict.fromkeys(part.strip() for part in corruptions.split(",")))
        if "" in names or CLEAN in names:
            raise UsageError(f"--corruption {corruptions}: give names with commas between, rohoi, seen, or auto")
    levels: tuple[int, ...] | str = severities
    if severities not in (AUTO, SEEN):
        parts = [part.strip() for part in severities.split(",")]
        if not all(_is_severity(part) for part in parts):
            raise UsageError(
                f"--severity {severities}: give whole numbers of at least 1 with commas between, seen, or auto"
            )
        levels = tuple(sorted(set(map(int, parts))))
    return Benchmark(names, levels)


@dataclass(frozen=True)
class Grid:
    """One model's values in percent. `clean` is None, and `cells` lacks those of `missing`, where that was allowed.

    `tags` are those that all its rows share; `settings` is their signature without the version; `recipe` names what
    made the corrupted images, "" where the rows do not say. Cells and missing ones stand in the benchmark's order.
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

    def levels(self, corruptions: Iterable[str] | None = None) -> dict[str, list[float]]:
        """corruption -> its values by severity, of all corruptions or the named ones that have any."""
        wanted = None if corruptions is None else set(corruptions)
        found: dict[str, list[float]] = {}
        for (corruption, _), value in self.cells.items():
            if wanted is None or corruption in wanted:
                found.setdefault(corruption, []).append(value)
        return found


@dataclass(frozen=True)
class _Value:
    """A row's value as it stands, None where it had nothing to average, and where the row is."""

    value: float | None
    unit: str
    place: str


@dataclass
class _Raw:
    """A model's rows under one protocol, as read."""

    cells: dict[Cell, _Value] = field(default_factory=dict)
    doubled: list[tuple[Cell, str, str]] = field(default_factory=list)
    tags: dict[str, str] | None = None
    settings: dict[str, str] = field(default_factory=dict)
    recipes: dict[str, str] = field(default_factory=dict)

    def add(self, cell: Cell, value: _Value, tags: Mapping[str, str], settings: str) -> None:
        """Keep a row; a second value of a cell is noted, not taken."""
        first = self.cells.setdefault(cell, value)
        if first is not value:
            self.doubled.append((cell, first.place, value.place))
        own = {key: text for key, text in tags.items() if key not in ("corruption", "severity", RECIPE_TAG)}
        self.tags = (
            own if self.tags is None else {key: self.tags[key] for key in self.tags if own.get(key) == self.tags[key]}
        )
        if settings:
            self.settings.setdefault(settings, value.place)
        if cell[0] != CLEAN:
            self.recipes.setdefault(tags.get(RECIPE_TAG, ""), value.place)


def named(paths: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """path -> model, for files that are a model each; raises `UsageError` where the names do not fit the paths."""
    if not names:
        return {}
    if len(names) != len(paths):
        raise UsageError(f"--name: {len(names)} names for {len(paths)} streams; give one a stream, in their order")
    if len(set(names)) != len(names) or len(set(paths)) != len(paths):
        raise UsageError(f"--name: {', '.join(names)}: names and streams must differ; give each stream its own")
    return dict(zip(paths, names, strict=True))


class Gathering:
    """The rows of one or several models, read line by line, then made into grids.

    `names`: display name of a file -> its model; for other files the tag `model_tag` tells, and without it all rows
    are one model's. After `grids`, `remarks` holds what a user should know.
    """

    def __init__(self, choice: Choice, *, model_tag: str = "model", names: Mapping[str, str] | None = None) -> None:
        self.remarks: list[str] = []
        self._choice = choice
        self._rows: dict[tuple[str, str], dict[str, dict[str, _Raw]]] = {}
        self._model_tag = model_tag
        self._names = names or {}
        self._raw: dict[str, dict[str, _Raw]] = {}
        self._files: dict[str, None] = {}
        self._strangers: list[str] = []

    def read(self, lines: Iterable[Line], policy: ErrorPolicy) -> None:
        """Take a stream; a bad line goes to the policy."""
        for line in lines:
            self._files[line.file] = None
            try:
                self._add(parse(line), line)
            except DataError as error:
                policy.handle(error)

    def _add(self, row: Record, line: Line) -> None:
        tags = row.get("tags")
        if type(tags) is dict and type(tags.get("severity")) is int:
            row = {**row, "tags": {**tags, "severity": str(tags["severity"])}}
        for problem in result_problems(row):
            raise problem.error(line.place)
        if "verb" in row or row.get("oracle", "none") != "none":
            return  # a class of its own, or a model with its errors repaired
        kind = (row["metric"], row["subset"])
        choice = self._choice
        wanted = (choice.metric in (None, kind[0])) and (choice.subset in (None, kind[1]))
        of_kind = self._rows.setdefault(kind, {})
        if not wanted:
            return
        texts = {}
        for key in ("protocol", "unit", "signature"):
            texts[key] = row.get(key, "")
            if type(texts[key]) is not str:
                raise DataError("must be a string; hoicli eval writes it", place=line.place, field=key)
        if texts["unit"] not in ("%", "fraction", ""):
            if choice.metric is None and kind[0] != METRIC:
                return
            text = f"{texts['unit']!r} is no share of a whole; choose a metric in % or fraction with --metric"
            raise DataError(text, place=line.place, field="unit")
        tags = row.get("tags", {})
        model = self._names.get(line.file, tags.get(self._model_tag, ""))
        if line.file in self._names:
            tags = {**tags, "model": model}
        settings = "|".join(part for part in texts["signature"].split("|") if not part.startswith("version:"))
        raw = of_kind.setdefault(texts["protocol"], {}).setdefault(model, _Raw())
        raw.add(_cell(tags, line), _Value(row["value"], texts["unit"], line.place), tags, settings)

    def grids(self, benchmark: Benchmark, *, allow_missing: bool = False) -> list[Grid]:
        """A grid a model, by name. Raises `UsageError` where the choice finds no rows or several protocols,
        `DataError` for everything that would make an average quietly wrong."""
        metric, subset = self._kind()
        protocol = self._protocol()
        models = dict(sorted(self._raw[protocol].items()))
        for model, raw in models.items():
            self._check_rows(model, raw)
        self._check_settings(models)
        corruptions, severities = self._wanted(benchmark, models)
        cells = [(name, severity) for name in corruptions for severity in severities]
        grids = []
        for model, raw in models.items():
            values = self._percent(model, raw)
            grids.append(
                Grid(
                    model=model,
                    protocol=protocol,
                    metric=metric,
                    subset=subset,
                    tags=dict(sorted((raw.tags or {}).items())),
                    settings=next(iter(raw.settings), ""),
                    recipe=next(iter(raw.recipes), ""),
                    clean=values.get((CLEAN, 0)),
                    cells={cell: values[cell] for cell in cells if cell in values},
                    missing=tuple(cell for cell in [(CLEAN, 0), *cells] if cell not in values),
                )
            )
        self._check_missing(grids, len(cells) + 1, allow_missing=allow_missing)
        self._remark_on_recipes(grids)
        return grids

    def _place(self) -> str:
        files = list(self._files)
        return files[0] if len(files) == 1 else f"{len(files)} files"

    def _of(self, model: str) -> str:
        if model:
            return f"model {model}"
        several = any(len(models) > 1 for models in self._raw.values())
        return f"the model of the rows without tag {self._model_tag}" if several else "the model"

    def _kind(self) -> tuple[str, str]:
        """The (metric, subset) that is meant: what was asked for, mAP of full, or the only one there is."""
        choice = self._choice
        if not self._rows:
            raise DataError(
                "no result rows in it; hoicli eval --tag corruption=NAME --tag severity=1 writes them",
                place=self._place() if self._files else "",
            )
        usual = (choice.metric or METRIC, choice.subset or SUBSET)
        found = [kind for kind, protocols in self._rows.items() if protocols]
        kind = usual if usual in found or len(found) != 1 else found[0]
        if kind not in found:
            kinds = _listed([f"{metric} {subset}" for metric, subset in sorted(self._rows)])
            raise UsageError(
                f"no row of metric {usual[0]}, subset {usual[1]}; there are {kinds}: choose with --metric and --subset"
            )
        if kind != usual:
            self.remarks.append(f"taking {kind[0]} of {kind[1]}, the only rows there are")
        self._raw = self._rows[kind]
        return kind

    def _protocol(self) -> str:
        """The one protocol that is meant."""
        choice = self._choice
        there = sorted(self._raw)
        if choice.protocol is not None:
            if choice.protocol not in self._raw:
                raise UsageError(f"--protocol {choice.protocol}: the rows are of {_listed(there)}")
            return choice.protocol
        if len(there) > 1:
            raise UsageError(f"the rows are of {len(there)} protocols: choose one with --protocol: {', '.join(there)}")
        return there[0]

    def _check_rows(self, model: str, raw: _Raw) -> None:
        """Raises `DataError` for a cell that is there twice, and for settings that differ."""
        if raw.doubled:
            cell, first, second = raw.doubled[0]
            more = f" (and {len(raw.doubled) - 1} more)" if len(raw.doubled) > 1 else ""
            raise DataError(
                f"{_cells([cell])} of {self._of(model)} is at {first} already{more}; keep one row a cell, "
                f"or tell models apart with --tag {self._model_tag}=NAME or --name",
                place=second,
            )
        if len(raw.settings) > 1:
            (one, first), (other, second) = list(raw.settings.items())[:2]
            raise DataError(
                f"{other!r}, but {first} has {one!r}: values of different settings do not average; "
                "evaluate with the same ones",
                place=second,
                field="signature",
            )

        if len(raw.recipes) > 1:
            (one, first), (other, second) = list(raw.recipes.items())[:2]
            raise DataError(
                f"{other or 'missing'}, but {first} has {one or 'none'}: images made in different ways do not average; "
                "corrupt with one recipe, and tag all rows with it",
                place=second,
                field=f"tags.{RECIPE_TAG}",
            )

    def _check_settings(self, models: Mapping[str, _Raw]) -> None:
        found = sorted({settings for raw in models.values() for settings in raw.settings})
        if len(found) > 1:
            self.remarks.append(f"the models were evaluated with different settings: {_listed(found)}")

    def _remark_on_recipes(self, grids: Sequence[Grid]) -> None:
        recipes = sorted({grid.recipe for grid in grids})
        if len(recipes) > 1:
            shown = _listed([recipe or "none stated" for recipe in recipes])
            self.remarks.append(f"the models' images were made by different recipes: {shown}")
        elif recipes == [RECIPE]:
            self.remarks.append(
                f"RoHOI-style, recipe {RECIPE}: compares with values of this recipe, not with RoHOI's tables, whose "
                "constants are not published"
            )
        elif recipes == [""]:
            self.remarks.append(
                f"the rows do not say what made their images; if hoicli corrupt did: eval --tag {RECIPE_TAG}={RECIPE}"
            )

    def _wanted(self, benchmark: Benchmark, models: Mapping[str, _Raw]) -> tuple[list[str], list[int]]:
        """(corruptions, severities) of a complete grid; what there is beyond them is remarked on."""
        there = {cell for raw in models.values() for cell in raw.cells if cell[0] != CLEAN}
        names = {name for name, _ in there}
        known = tuple(name for name in CORRUPTIONS if name in names)
        corruptions, severities = benchmark.corruptions, benchmark.severities
        whole = 2 * len(known) > len(CORRUPTIONS)
        if isinstance(corruptions, str):
            whole &= corruptions == AUTO
            corruptions = CORRUPTIONS if whole else (*known, *sorted(names - set(known)))
        if isinstance(severities, str):
            levels = {severity for name, severity in there if name in corruptions}
            whole &= severities == AUTO and 2 * len(levels & set(SEVERITIES)) > len(SEVERITIES)
            severities = SEVERITIES if whole else tuple(sorted(levels))
        if benchmark == Benchmark() and (corruptions, severities) != (CORRUPTIONS, SEVERITIES):
            self.remarks.append(
                f"averaging over {len(corruptions)} corruptions and severities {_listed(list(map(str, severities)))}: "
                "RoHOI has 20, at 1 to 5"
            )
        strangers = sorted(names - set(corruptions))
        self._strangers = strangers
        if strangers:
            near = get_close_matches(strangers[0], set(corruptions) - names, n=1)
            hint = f"is {strangers[0]} {near[0]}? " if near else ""
            self.remarks.append(
                f"left out, being none of the benchmark's corruptions: {_listed(strangers)}; "
                f"{hint}--corruption seen takes what occurs"
            )
        beyond = sorted({severity for name, severity in there if name in corruptions} - set(severities))
        if beyond:
            self.remarks.append(f"left out, being none of the severities: {_listed(list(map(str, beyond)))}")
        if not corruptions or not severities:
            raise DataError(
                "only the clean row, no corruption; hoicli eval --tag corruption=NAME --tag severity=1 writes more",
                place=self._place(),
            )
        return list(corruptions), list(severities)

    def _percent(self, model: str, raw: _Raw) -> dict[Cell, float]:
        """The cells that have a value, in percent; raises `DataError` for what cannot be percent."""
        unit = self._choice.unit
        values: dict[Cell, float] = {}
        taken: dict[Cell, _Value] = {}  # at their word: neither row nor caller says they are fractions
        for cell, row in raw.cells.items():
            if row.value is None:
                continue
            fraction = (unit or row.unit) == "fraction"
            values[cell] = 100.0 * row.value if fraction else float(row.value)
            if not 0 <= values[cell] <= 100:
                whole = "0 to 1" if fraction else "0 to 100"
                raise DataError(
                    f"{row.value} is outside {whole}; give a metric that is a share", place=row.place, field="value"
                )
            if not fraction:
                taken[cell] = row
        if unit is None and _look_like_fractions(taken):
            example = min(taken.values(), key=lambda row: (row.value or 0.0, row.place))
            raise DataError(
                f"{example.value} and its like look like fractions of 1, and CRI needs percent; "
                "pass --unit fraction to multiply by 100, or --unit percent if they are right",
                place=example.place,
                field="value",
            )
        return values

    def _check_missing(self, grids: list[Grid], cells: int, *, allow_missing: bool) -> None:
        lacking = [grid for grid in grids if grid.missing]
        for grid in lacking if allow_missing else lacking[:1]:
            text = f"{self._of(grid.model)} lacks {len(grid.missing)} of {cells} cells: {_cells(grid.missing)}"
            if not allow_missing:
                more = f" (and {len(lacking) - 1} more models lack some)" if len(lacking) > 1 else ""
                more += f" (there is {_listed(self._strangers)})" if self._strangers else ""
                raise DataError(
                    f"{text}{more}; evaluate them, choose with --corruption and --severity, or pass --allow-missing",
                    place=self._place(),
                )
            if not grid.cells:
                raise DataError(f"{text}; there is nothing to average", place=self._place())
            self.remarks.append(text)
        if len({grid.missing for grid in grids}) > 1:
            self.remarks.append("the models lack different cells, so their ranks compare different averages")


def _cell(tags: Mapping[str, str], line: Line) -> Cell:
    """The cell that a row's tags name."""
    corruption = tags.get("corruption", "")
    severity = tags.get("severity", "")
    if not corruption:
        raise DataError(
            "missing; hoicli eval --tag corruption=NAME --tag severity=1 says what was evaluated, "
            "--tag corruption=clean the original images",
            place=line.place,
            field="tags.corruption",
        )
    if corruption == CLEAN:
        if severity not in ("", "0"):
            raise DataError(
                f"{severity!r}, but clean images have none; leave it out", place=line.place, field="tags.severity"
            )
        return CLEAN, 0
    if not _is_severity(severity):
        shown = repr(severity) if severity else "missing"
        raise DataError(
            f"{shown}; give a whole number of at least 1 beside a corruption", place=line.place, field="tags.severity"
        )
    return corruption, int(severity)


def _is_severity(text: str) -> bool:
    return text.isascii() and text.isdigit() and not text.startswith("0") and len(text) < 10


def _look_like_fractions(taken: Mapping[Cell, _Value]) -> bool:
    """Whether values said to be percent, or not said to be anything, cannot well be.

    No detector that is worth corrupting has 1 percent. Where rows state no unit, neither side may be that low alone:
    a clean value in percent beside corrupted fractions, or the reverse.
    """
    clean = [row for cell, row in taken.items() if cell[0] == CLEAN]
    corrupted = [row for cell, row in taken.items() if cell[0] != CLEAN]

    def low(rows: Sequence[_Value]) -> bool:
        return bool(rows) and all((row.value or 0) <= 1 for row in rows)

    def unstated(rows: Sequence[_Value]) -> bool:
        return not any(row.unit for row in rows)

    return low([*clean, *corrupted]) or any(low(rows) and unstated(rows) for rows in (clean, corrupted))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _cells(cells: Sequence[Cell]) -> str:
    """Cells in words: `clean, jpeg 1 2 3, moire 5`."""
    parts = []
    for name, group in groupby(cells, key=lambda cell: cell[0]):
        severities = [str(severity) for _, severity in group if severity]
        parts.append(" ".join([name, *severities]))
    return _listed(parts)
