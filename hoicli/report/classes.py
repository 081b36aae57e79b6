"""The classes in a report: how their AP is spread, what would lift them most, the weakest, and all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import median_low

from hoicli.figures import svg
from hoicli.records.results import Row
from hoicli.report.document import (
    Block,
    Cell,
    Code,
    Figure,
    Figures,
    Paragraph,
    Section,
    Values,
    listed,
    number,
    value_cell,
)
from hoicli.report.measured import Measured

ENOUGH = 10
"""Ground-truth triplets from which on a class's AP says something; in small sets, half of the classes have enough."""

BINS = 10
"""Columns of the distribution of AP."""


def class_section(measured: Measured) -> Section:
    """The classes under the primary protocol; empty where there are none."""
    qualifier, top = measured.request.vocabulary.qualifier, measured.request.top
    ap = [row for row in measured.classes if row["metric"] == "AP"]
    if not ap:
        return Section("classes", "Classes", [])
    recall = {(row["verb"], row[qualifier]): row for row in measured.classes if row["metric"] == "max_recall"}
    names = {key: key for key in ("verb", qualifier, "subset")}
    values: Values = {
        "GT": _count,
        "AP": lambda row: replace(value_cell(row), share=row["value"] / 100),
        "max recall": lambda row: value_cell(recall[row["verb"], row[qualifier]]),
    }
    known = [row for row in ap if row["n"]]
    zeros = sum(row["value"] == 0 for row in known)
    blocks: list[Block] = [
        Paragraph(
            [
                "AP of each class by protocol ",
                Code(measured.request.primary.name),
                f": {len(ap):,} classes, {len(known):,} with ground truth; {zeros:,} of these have an AP of 0. GT is "
                "how many ground-truth triplets a class has.",
            ]
        ),
        Figures([_spread(known)]),
    ]
    gains = [row for row in measured.diagnosis if row["metric"] == "top_delta_AP"]
    if gains:
        gained: Values = {"GT": _count, "delta AP": partial(value_cell, signed=True)}
        caption = "Classes that fixing one type of error would lift most"
        blocks.append(listed(gains, caption, {**names, "what to fix": "oracle"}, gained))
    enough = min(ENOUGH, median_low([row["n"] for row in known] or [1]))
    solid = [row for row in known if row["n"] >= enough]
    weakest = sorted(solid, key=lambda row: (row["value"], -row["n"], row["verb"], row[qualifier] or ""))[:top]
    if weakest:
        caption = f"The weakest classes with at least {enough} ground-truth triplets"
        blocks.append(listed(weakest, caption, names, values))
    order = sorted(ap, key=lambda row: (row["verb"], row[qualifier] or ""))
    blocks.append(listed(order, f"All {len(ap):,} classes", names, values, folded=True))
    return Section("classes", "Classes", blocks)


def _count(row: Row) -> Cell:
    return Cell(number(row["n"]))


def _spread(known: Sequence[Row]) -> Figure:
    caption = "How many classes with ground truth have which AP"
    counts = {row["subset"]: [0] * BINS for row in known}
    for row in known:
        counts[row["subset"]][min(int(row["value"] * BINS / 100), BINS - 1)] += 1
    labels = [f"{at * 100 // BINS}" for at in range(BINS + 1)]
    return Figure(svg.histogram(counts, labels, caption, "AP (%)"), caption)
