"""The classes in a report: how their AP is spread and goes with verbs and objects, what would lift them most, the
weakest, where models differ, and all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, median_low

from hoicli.figures import svg
from hoicli.figures.shown import Bar, label
from hoicli.records.results import Row
from hoicli.report import document
from hoicli.report.measured import Dump, Measured

ENOUGH = 10
"""Ground-truth triplets from which on a class's AP says something; in small sets, half of the classes have enough."""

BINS = 10
"""Columns of the distribution of AP."""


def class_section(measured: Measured) -> document.Section:
    """The classes under the primary protocol; empty where there are none."""
    qualifier, top, several = measured.request.vocabulary.qualifier, measured.request.top, measured.several
    first = measured.dumps[0]
    ap = _ap(first)
    if not ap:
        return document.Section("classes", "Classes", [])
    names = {key: key for key in ("verb", qualifier, "subset")}
    values = _values(measured)
    known = [row for row in ap if row["n"]]
    words = (
        f": {len(ap):,} classes, {len(known):,} with ground truth{'' if several else _zeros(known)}. GT is how many "
        "ground-truth triplets a class has."
    )
    blocks: list[document.Block] = [
        document.Paragraph(["AP of each class by protocol ", document.Code(measured.request.primary.name), words]),
        document.Figures([_spread(dump, several=several) for dump in measured.dumps]),
        *_grouped(measured),
    ]
    gains = [row for row in measured.rows("diagnosis") if row["metric"] == "top_delta_AP"]
    if gains:
        gained: document.Values = {"GT": _count, "delta AP": partial(document.value_cell, signed=True)}
        caption = "Classes that fixing one type of error would lift most"
        whose = {"model": "model"} if several else {}
        blocks.append(document.listed(gains, caption, {**whose, **names, "what to fix": "oracle"}, gained))
    enough, weakest = solid_classes(ap)
    if weakest[:top]:
        whose_words = f" of {first.name}" if several else ""
        caption = f"The weakest classes{whose_words} with at least {enough} ground-truth triplets"
        blocks.append(document.listed(weakest[:top], caption, names, values, id_="weakest"))
    order = sorted(ap, key=lambda row: (row["verb"], row[qualifier] or ""))
    blocks.append(document.listed(order, f"All {len(ap):,} classes", names, values, folded=True))
    return document.Section("classes", "Classes", blocks)


def solid_classes(classes: Sequence[Row]) -> tuple[int, list[Row]]:
    """(how many ground-truth triplets are enough, the AP rows of the classes that have as many, the weakest first)."""
    ap = [row for row in classes if row["metric"] == "AP"]
    enough = min(ENOUGH, median_low([row["n"] for row in ap if row["n"]] or [1]))
    solid = [row for row in ap if row["n"] >= enough]
    return enough, sorted(solid, key=lambda row: (row["value"], -row["n"], *_name(row)))


def _ap(dump: Dump) -> list[Row]:
    return [row for row in dump.classes if row["metric"] == "AP"]


def _name(row: Row) -> tuple[str, str]:
    """(verb, object or role) of a class."""
    return str(row["verb"]), str(row.get("object") or row.get("role") or "")


def _zeros(known: Sequence[Row]) -> str:
    return f"; {sum(row['value'] == 0 for row in known):,} of these have an AP of 0"


def _values(measured: Measured) -> document.Values:
    """The columns of a class: of one dump its AP and maximal recall, of several the AP of each."""

    def of(dump: Dump, metric: str, *, bar: bool = False) -> Callable[[Row], document.Cell]:
        found = {_name(row): row for row in dump.classes if row["metric"] == metric}

        def cell(row: Row) -> document.Cell:
            own = found[_name(row)]
            drawn = document.value_cell(own)
            return replace(drawn, share=own["value"] / 100) if bar else drawn

        return cell

    if measured.several:
        return {"GT": _count, **{f"AP, {dump.name}": of(dump, "AP") for dump in measured.dumps}}
    (dump,) = measured.dumps
    return {"GT": _count, "AP": of(dump, "AP", bar=True), "max recall": of(dump, "max_recall")}


def _count(row: Row) -> document.Cell:
    return document.Cell(document.number(row["n"]))


def _spread(dump: Dump, *, several: bool) -> document.Figure:
    known = [row for row in _ap(dump) if row["n"]]
    caption = f"How many classes with ground truth have which AP{f', {dump.name}' if several else ''}"
    counts = {row["subset"]: [0] * BINS for row in known}
    for row in known:
        counts[row["subset"]][min(int(row["value"] * BINS / 100), BINS - 1)] += 1
    labels = [f"{at * 100 // BINS}" for at in range(BINS + 1)]
    return document.Figure(svg.histogram(counts, labels, caption, "AP (%)"), caption)


def _grouped(measured: Measured) -> list[document.Block]:
    """The mean AP by verb, and by object or role: bars of those with most ground truth, and all as folded tables."""
    figures: list[document.Figure] = []
    tables: list[document.Block] = []
    for key in ("verb", measured.request.vocabulary.qualifier):
        of_dump = [_by(_ap(dump), key) for dump in measured.dumps]
        if len(of_dump[0]) < 2:
            continue
        order = sorted(of_dump[0], key=lambda name: (-sum(row["n"] for row in of_dump[0][name]), name))
        shown = order[: measured.request.top]
        bars: list[Bar] = []
        for name in shown:
            if measured.several:
                bars.append(Bar(label(name)))
            for at, found in enumerate(of_dump):
                words = measured.labels[measured.dumps[at].name] if measured.several else label(name)
                bars.append(Bar(words, _mean(found[name]), f"s{at % svg.SERIES}"))
        drawn = f" (the {len(shown)} with most ground truth)" if len(shown) < len(order) else ""
        caption = f"Mean AP by {key}{drawn}"
        if bars:
            figures.append(document.Figure(svg.bars(bars, caption, document.number), caption))
        heads = [f"mean AP, {dump.name}" for dump in measured.dumps] if measured.several else ["mean AP"]
        lines = [
            [
                document.Cell(name),
                document.Cell(document.number(len(of_dump[0][name]))),
                document.Cell(document.number(sum(row["n"] for row in of_dump[0][name]))),
                *(document.Cell(document.number(_mean(found[name]))) for found in of_dump),
            ]
            for name in order
        ]
        caption = f"All {len(order):,} {key}s: mean AP over the classes with ground truth"
        tables.append(document.Table(caption, [key, "classes", "GT", *heads], lines, 1, folded=True))
    return [document.Figures(figures), *tables]


def _by(ap: Sequence[Row], key: str) -> dict[str, list[Row]]:
    """Name -> its classes with ground truth."""
    found: dict[str, list[Row]] = {}
    for row in ap:
        if row["n"] and row.get(key):
            found.setdefault(str(row[key]), []).append(row)
    return found


def _mean(rows: Sequence[Row]) -> float:
    return fmean(float(row["value"]) for row in rows)
