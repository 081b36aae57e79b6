"""The first view of the page: three sentences that sum up the numbers, and the tables that a paper or a supervisor asks
for. Every number is one of a command's result rows, or a mean of `measurements.Numbers`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import numpy as np

from hoicli.comparison.sentences import SURE, answers
from hoicli.diagnosis.confusions import NOTHING
from hoicli.errors import visible
from hoicli.explorer.measurements import TOP, Measured, Model, Numbers
from hoicli.explorer.page_columns import STATES
from hoicli.figures.styles import STYLES
from hoicli.records.kit import Floats, Ints
from hoicli.records.parsing import Record
from hoicli.records.result_rows import Row
from hoicli.tables.arrangement import tables_of
from hoicli.tables.cells import number_text

FEW = 10
"""The AP of a class with less ground truth than this says little."""

Cell = str | list[str]
"""A cell of a table or a piece of a sentence: a text; or [text, address of the view that it links to], with "go" as a
third element for a text that is there only for the link."""


def address(**words: object) -> str:
    """Return the address of a view of the page, such as "#view=errors&type=missed". words: {name: value}, as
    page/state.js reads them."""
    return f"#{urlencode(words, quote_via=quote)}"


def findings(measured: Measured) -> list[list[Cell]]:
    """Return about three sentences that sum up the page, each as a list of texts and of links to views."""
    if not measured.several:
        sentences = [_map_cells(measured), _repair_cells(measured), _confusion_cells(measured)]
        return [cells for cells in sentences if cells]
    compared: list[list[Cell]] = [[f"{sentence}. "] for sentence in answers(measured.comparison)]
    if compared:
        # a link: text, address, and "go" where the text is there only for the link
        compared[0].append(["What each finds", address(view="compare", side="b"), "go"])
    if len(compared) > 1:
        compared[1].append(["The classes by their difference", address(view="classes", by="-diff"), "go"])
    repair = _repair_cells(measured)
    return [*compared, repair] if repair else compared


def tables(measured: Measured) -> Iterator[Record]:
    """Yield the tables in their order, as objects for JSON (`_table`)."""
    yield from _difference_table(measured)
    for table in tables_of(measured.evaluation) if measured.evaluation else ():
        lines: list[list[Cell]] = []
        for number, line in enumerate(table.lines):
            lines.append([f"{cell}{table.marks.get((number, column), '')}" for column, cell in enumerate(line)])
        yield _table(
            "mAP by protocol and subset",
            [head.replace("_", "-") for head in table.heads],
            lines,
            names=table.name_columns,
            above=[words.replace("_", " ") for words in table.above],
            notes=[f"{mark} {text}" for mark, text in table.notes],
        )
    yield _error_table(measured)
    yield from _confusion_table(measured)
    yield from _changed_classes(measured) if measured.several else _weakest_classes(measured)
    yield from _part_table(measured)


def signatures(measured: Measured, model: Model) -> list[str]:
    """Return the different signatures of a model's numbers: of its mAP by the main protocol, then of its errors."""
    rows = [row for row in measured.comparison if row["tags"].get("model", model.name) == model.name]
    return list(dict.fromkeys(str(row["signature"]) for row in [*rows[:1], *model.rows[:1]]))


def _table(
    caption: str, heads: Sequence[str], lines: Sequence[Sequence[Cell]], *, names: int = 1, **others: Any
) -> Record:
    """Return a table as an object for JSON. names: how many first cells of a line say what it is of; others: `above`
    (the groups above the heads), `bars` (the numbers of columns that are drawn as bars), `notes` (sentences below)."""
    return {"caption": caption, "heads": list(heads), "lines": list(map(list, lines)), "names": names, **others}


def _number(value: float | None, digits: int = 2, *, signed: bool = False) -> str:
    """Return a number as tables write it, None and NaN as their sign for no value. signed: write + before it, too."""
    return number_text(None if value is None or np.isnan(value) else value, digits, signed=signed)


def _interval(row: Row) -> str:
    """Return a row's 95 % interval in words, "" if it has none."""
    return "" if row.get("ci_low") is None else f"{_number(row['ci_low'])} to {_number(row['ci_high'])}"


def _names_above(measured: Measured, names: int) -> list[str] | None:
    """Return the line above a table's heads: the models' names, each over two columns, after `names` columns without
    one; None for a single model."""
    above = [""] * names + list(chain.from_iterable((model.name, "") for model in measured.models))
    return above if measured.several else None


def tiles(measured: Measured) -> list[list[str]]:
    """Return [label, value, interval] of each number in large print: a single model's mAP of each subset."""
    rows = [] if measured.several else [row for row in measured.comparison if row["metric"] == "mAP"]
    return [[row["subset"].replace("_", "-"), _number(row["value"]), _interval(row)] for row in rows]


# Sentences


def _map_cells(measured: Measured) -> list[Cell]:
    """Return the sentence on a single model's mAP over the most classes, with its interval; [] without one."""
    rows = [row for row in measured.comparison if row["metric"] == "mAP" and row["value"] is not None]
    if not rows:
        return []
    row = max(rows, key=lambda row: int(row["n"]))
    interval = _interval(row)
    interval_text = f", 95 % interval {interval} over resampled images" if interval else ""
    text = f"mAP ({row['protocol']}, {row['subset']}) is {_number(row['value'])}{interval_text}. "
    return [text, ["Its classes", address(view="classes"), "go"]]


def _repair_cells(measured: Measured) -> list[Cell]:
    """Return the sentence on the type of error whose repair would raise each model's mAP most; [] without errors."""
    words: list[Cell] = []
    all_classes, _ = measured.every  # the name of the subset
    for letter, model in zip("ab", measured.models, strict=False):  # addresses call the models a and b
        rows = [row for row in model.rows if row["metric"] == "delta_mAP" and row["oracle"] in STATES]
        rows = [row for row in rows if row["subset"] == all_classes and row["value"]]  # a gain of 0 is worth no word
        if rows:
            best = max(rows, key=lambda row: float(row["value"]))
            link = [STYLES[best["oracle"]].words, address(view="errors", model=letter, type=best["oracle"])]
            model_text = f" for {model.name}" if measured.several else ""
            gain = f" {_number(best['value'], signed=True)} mAP{model_text}"
            words += ["; " if words else "Worth most to fix: ", link, gain]
    return [*words, f" ({measured.request.protocol.name})."] if words else []


def _confusion_cells(measured: Measured) -> list[Cell]:
    """Return the sentence on a single model's confusion of two verbs that costs most mAP; [] without any."""
    confusions = _verb_confusions(measured)
    if not confusions:
        return []
    costliest = confusions[0]
    words = f"{costliest.predicted} for {costliest.true}"
    link = [words, address(view="errors", type="interaction", verb=costliest.predicted)]
    cost = f": {costliest.counts[0]:,} times; repaired alone, {_number(costliest.gains[0], signed=True)} mAP."
    return ["The costliest confusion is ", link, cost]


# Tables


def _difference_table(measured: Measured) -> Iterator[Record]:
    """Yield the table of the differences between two models, subset by subset, if there are two."""
    rows = [row for row in measured.comparison if row["metric"] == "mAP_diff"]
    if rows:
        tested = any(row["p"] is not None for row in rows)
        lines: list[list[Cell]] = []
        for row in rows:
            line = [row["subset"].replace("_", "-"), *map(_number, (row["from"], row["to"]))]
            test_cells = [_interval(row) or "-", _number(row["p"], 4), _number(row["p_bootstrap"], 4)] if tested else []
            lines.append([*line, _number(row["value"], signed=True), *test_cells])
        names = [model.name for model in measured.models]
        heads = ["subset", *names, "difference", *(["95 % interval", "p", "p bootstrap"] if tested else [])]
        yield _table(f"Difference of mAP ({rows[0]['protocol']})", heads, lines)


def _error_table(measured: Measured) -> Record:
    """Return the table of how many errors of each type the models make, and how much repairing all of a type would add
    to mAP, the largest gain first."""
    lines: list[tuple[float, list[Cell]]] = []  # (largest gain, line)
    all_classes, _ = measured.every  # the name of the subset
    for name in STATES[1:]:  # the first is no error: true positives
        line: list[Cell] = [[STYLES[name].words, address(view="errors", type=name)]]
        gains = []
        for model in measured.models:
            of_type = [row for row in model.rows if name in (row.get("error"), row.get("oracle"))]
            values = {row["metric"]: row["value"] for row in of_type if row["subset"] == all_classes}
            gains.append(values.get("delta_mAP"))
            line += [_number(values.get("count")), _number(gains[-1], signed=True)]
        lines.append((max(gain or 0.0 for gain in gains), line))
    lines.sort(key=lambda line: -line[0])
    truth = len(measured.truth.image)
    # state: 0 for ground truth that is found
    counts_by_model = {model.name: f"{np.count_nonzero(model.table.state):,}" for model in measured.models}
    missed = " and ".join(f"{count} ({name})" if measured.several else count for name, count in counts_by_model.items())
    return _table(
        "Errors of each type, and what fixing the type would add to mAP",
        ["type", *["errors", "gain"] * len(measured.models)],
        [line for _, line in lines],
        above=_names_above(measured, 1),
        bars=[2 + 2 * number for number in range(len(measured.models))],
        notes=[
            f"Protocol {measured.request.protocol.name}. Errors overlap: the gains do not add up to 100 less the mAP.",
            f"Of {truth:,} annotated triplets, {missed} are not found; missed GT is what no repair could find, either.",
        ],
    )


class _VerbConfusion(NamedTuple):
    """A verb that is predicted where another one is annotated. counts: how often by each model; gains: what repairing
    this confusion alone would add to each model's mAP, in points; None for a model that does not make it."""

    predicted: str
    true: str
    counts: list[int]
    gains: list[float | None]


def _verb_confusions(measured: Measured) -> list[_VerbConfusion]:
    """Return all confusions of two verbs, those with the largest gain for any model first."""
    confusions: dict[tuple[int, int], tuple[list[int], list[float | None]]] = {}
    models = len(measured.models)
    for number, model in enumerate(measured.models):
        cells = model.cells
        verb_pairs = np.flatnonzero(
            (cells.true != NOTHING) & (cells.predicted != NOTHING) & (cells.true != cells.predicted)
        )
        for cell in verb_pairs.tolist():
            pair = int(cells.predicted[cell]), int(cells.true[cell])
            counts, gains = confusions.setdefault(pair, ([0] * models, [None] * models))
            counts[number], gains[number] = int(cells.count[cell]), 100.0 * float(cells.gain[cell])

    def order(pair: tuple[int, int]) -> tuple[float, int, tuple[int, int]]:
        """Return the key by which pairs of verbs are sorted: largest gain, largest count, numbers of the verbs."""
        counts, gains = confusions[pair]
        return -max(gain or 0.0 for gain in gains), -max(counts), pair

    names = measured.names
    pairs = sorted(confusions, key=order)
    return [_VerbConfusion(names[predicted], names[true], *confusions[predicted, true]) for predicted, true in pairs]


def _confusion_table(measured: Measured) -> Iterator[Record]:
    """Yield the table of the costliest confusions of two verbs, if there are any."""
    lines: list[list[Cell]] = []
    for predicted, true, counts, gains in _verb_confusions(measured)[:TOP]:
        # The page shows the first model's errors unless the address names the second one, "b".
        words = {"type": "interaction", "verb": predicted} | ({} if counts[0] else {"model": "b"})
        line: list[Cell] = [[predicted, address(view="errors", **words)], true]
        for count, gain in zip(counts, gains, strict=True):
            line += [f"{count:,}", _number(gain, signed=True)]
        lines.append(line)
    if lines:
        yield _table(
            "Verbs taken for verbs on the right pair: those whose repair alone would give most",
            ["predicted", "annotated", *["times", "gain"] * len(measured.models)],
            lines,
            names=2,
            above=_names_above(measured, 2),
        )


def _weakest_classes(measured: Measured) -> Iterator[Record]:
    """Yield the table of a single model's classes with the lowest AP, unless all have too little ground truth."""
    numbers = measured.numbers["", ""]
    ap, enough_truth = numbers.ap[0], np.flatnonzero(numbers.positives >= FEW)
    weakest = enough_truth[np.argsort(ap[enough_truth], kind="stable")][:TOP]
    lines: list[list[Cell]] = [
        [_class_cell(measured, number), f"{numbers.positives[number]:,}", _number(ap[number])]
        for number in weakest.tolist()
    ]
    caption = f"The weakest classes with at least {FEW} annotated triplets ({measured.request.protocol.name})"
    if lines:
        yield _table(caption, ["class", "GT", "AP"], lines, bars=[2])


def _changed_classes(measured: Measured) -> Iterator[Record]:
    """Yield the table of the classes whose AP differs most surely between two models, if any were compared."""
    vocabulary = measured.request.vocabulary
    rows = [row for row in measured.comparison if row["metric"] == "AP_diff"][:TOP]
    if not rows:
        return
    chances = ["p", "q"] if any(row["p"] is not None for row in rows) else []  # a class in too few images has none
    lines: list[list[Cell]] = []
    for row in rows:
        number = vocabulary.interaction_ids.get((row["verb"], row[vocabulary.qualifier] or ""))
        # a verb with any object is no single class, and has no view to link to
        name = visible(row["verb"]) if number is None else _class_cell(measured, number)
        values = [_number(row["from"]), _number(row["to"]), _number(row["value"], signed=True)]
        lines.append([name, f"{row['n']:,}", *values, *(_number(row[chance], 4) for chance in chances)])
    names = [model.name for model in measured.models]
    heads = ["class", "GT", *names, "difference", *chances]
    any_sure = any(row["q"] is not None and row["q"] < SURE for row in rows)
    notes = [f"None of them is sure: no q is below {SURE}."] if chances and not any_sure else []
    caption = f"Classes that changed, the surest first: AP ({rows[0]['protocol']})"
    yield _table(caption, heads, lines, notes=notes)


def _class_cell(measured: Measured, number: int) -> Cell:
    """Return the name of a class with a link to its view. number: the class's."""
    name = " ".join(filter(None, measured.request.vocabulary.interactions[number]))
    return [visible(name), address(view="class", **{"class": number})]


def mean_ap(numbers: Numbers, classes: Ints) -> list[float]:
    """Return each model's mAP over those of some classes that have ground truth, in percent; NaN if none has."""
    ap: Floats = numbers.ap[:, classes]
    defined = ap[:, ~np.isnan(ap[0])]
    return [float(mean) for mean in defined.mean(axis=1)] if defined.size else [float("nan")] * len(ap)


def _part_table(measured: Measured) -> Iterator[Record]:
    """Yield the table of mAP on each part of the data, if there is any part."""
    _, classes_averaged = measured.every
    lines: list[list[Cell]] = []
    for (slice_, part), numbers in measured.numbers.items():
        classes, means = int((numbers.positives[classes_averaged] > 0).sum()), mean_ap(numbers, classes_averaged)
        link: Cell = [part, address(view="classes", slice=f"{slice_}:{part}")] if slice_ else ""
        truth = f"{numbers.positives[classes_averaged].sum():,}"
        difference = [_number(means[1] - means[0], signed=True)] if measured.several else []
        if classes:
            lines.append([slice_ or "all data", link, f"{classes:,}", truth, *map(_number, means), *difference])
    names = [model.name for model in measured.models] if measured.several else ["mAP"]
    if len(lines) > 1:
        yield _table(
            f"mAP on parts of the data ({measured.request.protocol.name})",
            ["slice", "part", "classes", "GT", *names, *(["difference"] if measured.several else [])],
            lines,
            names=2,
            bars=list(range(4, 4 + len(measured.models))),
            notes=["Each mean is over the classes with ground truth in the part, so compare models, not parts."],
        )
