"""Result rows gathered by model, as they are read.

A benchmark has a cell for each corruption at each severity, and one for the clean images. The row of a cell has the
tags `corruption` and `severity` (`hoicli eval --tag corruption=jpeg --tag severity=3`), or `corruption=clean`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from hoicli.errors import DataError, UsageError, arg, did_you_mean
from hoicli.evaluation.groups import write_fields
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.result_rows import BAR, joined_settings, settings_of
from hoicli.tables.cells import PlacedRow
from hoicli.tables.row_files import parse_result_row

METRIC, SUBSET = "mAP", "full"
"""The metric and subset that a benchmark is about unless the user names others."""
VCOCO_PROTOCOL, VCOCO_SUBSET = "vcoco-s2", "24"
"""The paper's M on V-COCO (evidence: docs/robustness.md): AP#2, the official scenario 2, over 24 action-roles."""
CLEAN = "clean"
"""The `corruption` of the original images' row."""
RECIPE_TAG = "recipe"
"""The tag that says what made the corrupted images: hoicli corrupt's records carry theirs under this key."""
_SHOWN = 6
"""How many cells, names or settings a message spells out; it only counts further ones."""

Cell = tuple[str, int]
"""(corruption, severity); the original images are CLEAN_CELL."""
CLEAN_CELL: Cell = (CLEAN, 0)
Kind = tuple[str, str, str]
"""The (metric, subset, protocol) of a row."""


class CellRow(NamedTuple):
    """The result row of one cell.

    value, unit: as the row has them, the value None if there was nothing to average. place: the file and line of the
    row, for messages. tags: without those that name the cell and the recipe of its images, which is `recipe`. settings:
    of the row's signature, key to value. note: what its reader must know, "" for nothing."""

    cell: Cell
    value: float | None
    unit: str
    place: str
    tags: Mapping[str, str]
    recipe: str
    settings: Mapping[str, str]
    note: str = ""

    @property
    def truth(self) -> str:
        """Return the digest of the ground truth, "" if the row does not have it."""
        return self.settings.get("gt", "")

    @property
    def shared(self) -> str:
        """Return, as signatures write them, the settings that all cells must share: all but the digest of the ground
        truth and of its order, which corruptions that move boxes change."""
        return joined_settings({key: value for key, value in self.settings.items() if key not in ("gt", "listed")})

    def has_same_truth(self, other: CellRow) -> bool:
        """Return whether two rows have the same ground truth; if both also say in which order it is listed (rows of
        hoicli 1.0 do not), in the same order."""
        order_digests = {row.settings["listed"] for row in (self, other) if "listed" in row.settings}
        return self.truth == other.truth and len(order_digests) < 2


class Gathering:
    """Collects the rows of one or several models, line by line; `hoicli.robustness.grids` makes grids of them.

    A stream may hold rows of several metrics, subsets and protocols; `choose_rows` picks one of each.
    """

    def __init__(
        self, metric: str | None = None, subset: str | None = None, protocol: str | None = None, *, group: str = ""
    ) -> None:
        """Start without rows. metric, subset, protocol: what the user asked for, None for the benchmark's own. group:
        what messages call the group that the rows are of, "" without --by."""
        self.metric, self.subset, self.protocol, self.group = metric, subset, protocol, group
        self._rows: dict[Kind, dict[str, list[CellRow]]] = {}  # by the model's name
        self._files: dict[str, None] = {}  # a set that keeps the order

    def add(self, row: PlacedRow) -> None:
        """Add a result row, unless it is about a single class or a model whose errors were repaired. Raises `DataError`
        for a row of the wanted metric that is no share of a whole, or whose tags name no cell."""
        self._files[row.line.file] = None
        if "verb" in row or row.get("oracle", "none") != "none":
            return
        tags, unit = row["tags"], row["unit"]
        if unit not in ("%", "fraction", ""):
            if row["metric"] != (self.metric or METRIC):
                return
            text = f"{unit!r} is no share of a whole; choose a metric in % or fraction with {arg('metric')}"
            raise DataError(text, place=row.line.place, field="unit")
        model_tags = {key: text for key, text in tags.items() if key not in ("corruption", "severity", RECIPE_TAG)}
        cell_row = CellRow(
            cell=_cell_of(tags, row.line),
            value=row["value"],
            unit=unit,
            place=row.line.place,
            tags=model_tags,
            recipe=tags.get(RECIPE_TAG, ""),
            settings=settings_of(row),
            note=row.get("note", ""),
        )
        rows_by_model = self._rows.setdefault((row["metric"], row["subset"], row.get("protocol", "")), {})
        rows_by_model.setdefault(tags.get("model", ""), []).append(cell_row)

    @property
    def place(self) -> str:
        """Return what messages call the input: the file that all rows are from, or "3 files"."""
        files = list(self._files)
        place = f"{len(files)} files" if files else ""
        if len(files) == 1:
            place = files[0]
        return f"{place} ({self.group})" if self.group else place

    def choose_rows(self) -> tuple[Kind, dict[str, list[CellRow]]]:
        """Return ((metric, subset, protocol), the rows of each model by its name) of the rows to average.

        What the user asked for is taken. Where the user left a choice, the only kind of rows there is is taken, or that
        of the RoHOI paper: mAP over all classes on HICO-DET; AP in scenario 2 over 24 action-roles on V-COCO. Raises
        `UsageError` if no kind fits, or several do; `DataError` if there are no rows."""
        if not self._rows:
            text = "no result rows in it; hoicli eval --tag corruption=NAME --tag severity=1 writes them"
            raise DataError(text, place=self.place)
        metric = self.metric or METRIC
        fitting = [kind for kind in self._rows if kind[0] == metric]
        if not fitting and self.metric is None:
            fitting = list(self._rows)  # the user did not insist on METRIC
        vcoco = all(is_vcoco(protocol) for _, _, protocol in fitting)
        fitting = [kind for kind in fitting if self.subset in (None, kind[1]) and self.protocol in (None, kind[2])]
        # of what is left, the paper's protocol and subset, if any rows are of them
        for usual in (VCOCO_PROTOCOL, VCOCO_SUBSET) if vcoco else (SUBSET,):
            fitting = [kind for kind in fitting if usual in kind[1:]] or fitting  # kind[1:]: subset and protocol
        if len(fitting) != 1:
            kinds_text = list_names(" ".join(kind).strip() for kind in sorted(fitting or self._rows))
            options = f"{arg('metric')}, {arg('subset')} and {arg('protocol')}"
            problem = "the rows are of several kinds" if fitting else "no such rows"
            raise UsageError(f"{problem}; there are {kinds_text}: choose with {options}")
        return fitting[0], dict(sorted(self._rows[fitting[0]].items()))


def gather(
    lines: Iterable[Line], by: Sequence[str], policy: ErrorPolicy, make: Callable[[str], Gathering]
) -> dict[tuple[str, ...], Gathering]:
    """Return the result rows of a stream, gathered by the values of the tags in `by`; all together without such tags.

    policy: for the errors of bad lines. make: returns an empty gathering for a group, whose name it is given. Raises
    `DataError` for a row that lacks such a tag."""
    gatherings: dict[tuple[str, ...], Gathering] = {}
    for line in lines:
        with policy.item():
            row = parse_result_row(line)
            values = {name: row["tags"].get(name, "") for name in by}
            if lacking := [name for name, text in values.items() if not text]:
                advice = did_you_mean(lacking[0], row["tags"], f"{arg('by')} groups the rows by it")
                raise DataError(f"missing; {advice}", place=line.place, field=f"tags.{lacking[0]}")
            key = tuple(values.values())
            if key not in gatherings:
                gatherings[key] = make(write_fields(values))
            gatherings[key].add(row)
    return dict(sorted(gatherings.items())) or {(): make("")}


def _cell_of(tags: Mapping[str, str], line: Line) -> Cell:
    """Return the cell (corruption, severity) that a row's tags name. Raises `DataError`, with the place of the line, if
    they name none."""
    corruption, severity = tags.get("corruption", ""), tags.get("severity", "")
    for key in ("corruption", RECIPE_TAG):
        if BAR in tags.get(key, ""):
            raise DataError(f"{tags[key]!r} has a |, which parts signatures", place=line.place, field=f"tags.{key}")
    if not corruption:
        text = (
            "missing; hoicli eval --tag corruption=NAME --tag severity=1 says what was evaluated, "
            f"{arg('tag', 'corruption=clean')} the original images"
        )
        raise DataError(text, place=line.place, field="tags.corruption")
    if corruption == CLEAN:
        if severity not in ("", "0"):
            text = f"{severity!r}, but clean images have none; leave it out"
            raise DataError(text, place=line.place, field="tags.severity")
        return CLEAN_CELL
    if not is_severity(severity):
        severity_text = repr(severity) if severity else "missing"
        text = f"{severity_text}; give a whole number of at least 1 beside a corruption"
        raise DataError(text, place=line.place, field="tags.severity")
    return corruption, int(severity)


def is_severity(text: str) -> bool:
    """Return whether a text is a whole number of at least 1, without leading zeros and with at most nine digits."""
    return text.isascii() and text.isdigit() and not text.startswith("0") and len(text) < 10


def is_vcoco(protocol: str) -> bool:
    """Return whether a protocol is one of V-COCO's."""
    return protocol.startswith("vcoco-")


def list_names(names: Iterable[object]) -> str:
    """Return names for a message: the first few, separated by commas, and how many more there are."""
    texts = list(map(str, names))
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
