"""Result rows gathered by model and cell, as they are read.

A cell is a row whose tags hold `corruption` and `severity` (`hoicli eval --tag corruption=jpeg --tag severity=3`), the
clean one a row tagged `corruption=clean`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from hoicli.errors import DataError, UsageError, arg
from hoicli.io.streams import Line
from hoicli.records.image import result_problems
from hoicli.records.parsing import Record, parse
from hoicli.records.results import BAR, joined_settings, settings_of
from hoicli.robustness.cells import CellFiles, is_cell
from hoicli.robustness.cells import cell_of as cell_files
from hoicli.robustness.selection import (
    CLEAN,
    METRIC,
    SUBSET,
    VCOCO_PROTOCOL,
    VCOCO_SUBSET,
    Selection,
    is_severity,
    is_vcoco,
)

if TYPE_CHECKING:  # a policy needs no NumPy, but the module it lives in does
    from hoicli.records.intake import ErrorPolicy

RECIPE_TAG = "recipe"
"""The tag that says what made the corrupted images: hoicli corrupt's records carry theirs under this key."""
SHOWN = 6
"""Cells, names or settings that a message spells out before it only counts."""

Cell = tuple[str, int]
"""(corruption, severity); the original images are (CLEAN, 0)."""


class Value(NamedTuple):
    """A row's value as it stands, None where it had nothing to average, where the row is, and its settings with the
    ground truth's digest (`gt`)."""

    value: float | None
    unit: str
    place: str
    settings: Mapping[str, str]

    @property
    def truth(self) -> str:
        """The digest of the ground truth, "" where the row does not say it."""
        return self.settings.get("gt", "")


@dataclass
class ModelRows:
    """A model's rows under one protocol. `tags` are those that all share; settings and recipes by where they first
    stand; `doubled` says of a cell that is there twice where."""

    cells: dict[Cell, Value] = field(default_factory=dict)
    doubled: list[tuple[Cell, str, str]] = field(default_factory=list)
    tags: dict[str, str] | None = None
    settings: dict[str, str] = field(default_factory=dict)
    recipes: dict[str, str] = field(default_factory=dict)

    def add(self, cell: Cell, value: Value, tags: Mapping[str, str], settings: str) -> None:
        """Keep a row; a second value of a cell is noted, not taken."""
        first = self.cells.setdefault(cell, value)
        if first is not value:
            self.doubled.append((cell, first.place, value.place))
        own = {key: text for key, text in tags.items() if key not in ("corruption", "severity", RECIPE_TAG)}
        shared = own if self.tags is None else self.tags
        self.tags = {key: text for key, text in shared.items() if own.get(key) == text}
        if settings:
            self.settings.setdefault(settings, value.place)
        if cell[0] != CLEAN:
            self.recipes.setdefault(tags.get(RECIPE_TAG, ""), value.place)


class Gathering:
    """The rows of one or several models, read line by line; `hoicli.robustness.grids` makes them into grids.

    `names`: display name of a file -> its model; for other files the tag `model_tag` tells, and without it all rows
    are one model's.
    """

    def __init__(self, wanted: Selection, *, model_tag: str = "model", names: Mapping[str, str] | None = None) -> None:
        self.wanted = wanted
        self.model_tag = model_tag
        self._names = names or {}
        self._rows: dict[tuple[str, str], dict[str, dict[str, ModelRows]]] = {}
        self._files: dict[str, None] = {}
        self.cells: list[CellFiles] = []
        """Those that are still to be evaluated (`hoicli.robustness.sampling`)."""
        self.remarks: list[str] = []
        """What evaluating them said, for a user to know if all goes well."""

    def read(self, lines: Iterable[Line], policy: ErrorPolicy) -> None:
        """Take a stream of rows and of cells to be evaluated; a bad line goes to the policy."""
        for line in lines:
            self._files[line.file] = None
            try:
                record = parse(line)
                if is_cell(record):
                    cell = cell_files(record, line, model_tag=self.model_tag)
                    self.cell_of(cell.tags, line)
                    self.cells.append(cell)
                else:
                    self.add(record, line)
            except DataError as error:
                policy.handle(error)

    def name_of(self, tags: Mapping[str, str], line: Line) -> str:
        """The model of a line with these tags."""
        return self._names.get(line.file, tags.get(self.model_tag, ""))

    def add(self, row: Record, line: Line) -> None:
        """Take a row, which `line` has or names; raises `DataError` for a bad one."""
        tags = row.get("tags")
        if type(tags) is dict and type(tags.get("severity")) is int:
            row = {**row, "tags": {**tags, "severity": str(tags["severity"])}}
        for problem in result_problems(row):
            raise problem.error(line.place)
        if "verb" in row or row.get("oracle", "none") != "none":
            return  # a class of its own, or a model with its errors repaired
        metric, subset = kind = (row["metric"], row["subset"])
        of_kind = self._rows.setdefault(kind, {})
        if self.wanted.metric not in (None, metric) or self.wanted.subset not in (None, subset):
            return
        for key in ("protocol", "unit", "signature"):
            if type(row.get(key, "")) is not str:
                raise DataError("must be a string; hoicli eval writes it", place=line.place, field=key)
        unit = row.get("unit", "")
        if unit not in ("%", "fraction", ""):
            if self.wanted.metric is None and metric != METRIC:
                return
            text = f"{unit!r} is no share of a whole; choose a metric in % or fraction with {arg('metric')}"
            raise DataError(text, place=line.place, field="unit")
        tags = row.get("tags", {})
        model = self.name_of(tags, line)
        if line.file in self._names:
            tags = {**tags, "model": model}
        rows = of_kind.setdefault(row.get("protocol", ""), {}).setdefault(model, ModelRows())
        settings = settings_of(row)
        # Where boxes move with the pixels, each cell has a ground truth of its own (grids compares them).
        shared = joined_settings({key: value for key, value in settings.items() if key != "gt"})
        rows.add(self.cell_of(tags, line), Value(row["value"], unit, line.place, settings), tags, shared)

    @staticmethod
    def cell_of(tags: Mapping[str, str], line: Line) -> Cell:
        """The cell that a row's tags name; raises `DataError` where they name none."""
        corruption, severity = tags.get("corruption", ""), tags.get("severity", "")
        for key in ("corruption", RECIPE_TAG):
            if BAR in tags.get(key, ""):
                raise DataError(f"{tags[key]!r} has a |, which parts signatures", place=line.place, field=f"tags.{key}")
        problem, key = "", "severity"
        if not corruption:
            key, problem = (
                "corruption",
                (
                    "missing; hoicli eval --tag corruption=NAME --tag severity=1 says what was evaluated, "
                    f"{arg('tag', 'corruption=clean')} the original images"
                ),
            )
        elif corruption == CLEAN and severity not in ("", "0"):
            problem = f"{severity!r}, but clean images have none; leave it out"
        elif corruption != CLEAN and not is_severity(severity):
            shown = repr(severity) if severity else "missing"
            problem = f"{shown}; give a whole number of at least 1 beside a corruption"
        if problem:
            raise DataError(problem, place=line.place, field=f"tags.{key}")
        return (CLEAN, 0) if corruption == CLEAN else (corruption, int(severity))

    @property
    def place(self) -> str:
        """The file of all rows, or how many there are."""
        files = list(self._files)
        return files[0] if len(files) == 1 else f"{len(files)} files" if files else ""

    def choice(self) -> tuple[str, str, str | None]:
        """(metric, subset, protocol) that is meant: what was asked for, else the benchmark's; protocol None is any.

        The paper's M is mAP of full on HICO-DET, and on V-COCO AP of scenario 2 over 24 action-roles.
        """
        wanted = self.wanted
        metric, subset, protocol = wanted.metric or METRIC, wanted.subset, wanted.protocol
        if self.of_vcoco(metric):
            found = {(of, name) for (kind, of), named in self._rows.items() if kind == metric for name in named}
            if protocol is None and any(name == VCOCO_PROTOCOL and subset in (None, of) for of, name in found):
                protocol = VCOCO_PROTOCOL
            if subset is None and any(of == VCOCO_SUBSET and protocol in (None, name) for of, name in found):
                subset = VCOCO_SUBSET
        return metric, subset or SUBSET, protocol

    def of_vcoco(self, metric: str) -> bool:
        """Whether all rows of a metric are by protocols of V-COCO."""
        names = [name for (kind, _), protocols in self._rows.items() if kind == metric for name in protocols]
        return bool(names) and all(map(is_vcoco, names))

    def kind(self) -> tuple[str, str]:
        """The (metric, subset) that is meant: that of `choice`, or the only one there is.

        Raises `UsageError` where the selection finds no rows, `DataError` where there are none at all.
        """
        if not self._rows:
            text = "no result rows in it; hoicli eval --tag corruption=NAME --tag severity=1 writes them"
            raise DataError(text, place=self.place)
        usual = self.choice()[:2]
        found = [kind for kind, protocols in self._rows.items() if protocols]
        kind = usual if usual in found or len(found) != 1 else found[0]
        if kind not in found:
            kinds = listed([f"{metric} {subset}" for metric, subset in sorted(self._rows)])
            raise UsageError(
                f"no row of metric {usual[0]}, subset {usual[1]}; there are {kinds}: choose with {arg('metric')} and "
                f"{arg('subset')}"
            )
        return kind

    def models(self, kind: tuple[str, str]) -> tuple[str, dict[str, ModelRows]]:
        """(the one protocol that is meant, its models by name); raises `UsageError` where it is none or several."""
        there = self._rows[kind]
        wanted = self.choice()[2]
        protocol = next(iter(there)) if wanted is None else wanted
        if protocol not in there:
            raise UsageError(f"{arg('protocol', protocol)}: the rows are of {listed(sorted(there))}")
        if wanted is None and len(there) > 1:
            names = ", ".join(sorted(there))
            raise UsageError(f"the rows are of {len(there)} protocols: choose one with {arg('protocol')}: {names}")
        return protocol, dict(sorted(there[protocol].items()))

    def called(self, model: str) -> str:
        """A model in a message."""
        if model:
            return f"model {model}"
        several = any(len(models) > 1 for models in self._rows[self.kind()].values())
        return f"the model of the rows without tag {self.model_tag}" if several else "the model"


def listed(names: Iterable[object]) -> str:
    """The first names with commas between, and how many more there are."""
    texts = list(map(str, names))
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more
