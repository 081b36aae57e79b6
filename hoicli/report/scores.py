"""Precision, recall and scores in a report: the curves of each group of classes, and what a threshold would keep."""

from __future__ import annotations

from hoicli.figures import svg
from hoicli.records.results import Row
from hoicli.report.document import Block, Cell, Code, Figure, Figures, Paragraph, Section, Table, number
from hoicli.report.measured import Dump, Measured

MARKS = 20
"""Points of a curve from one mark to the next: its marks tell lines apart, and hide none of it."""


def curve_section(measured: Measured) -> Section:
    """curves' rows under the primary protocol; empty where there are none."""
    rows = measured.rows("curves")
    if not rows:
        return Section("curves", "Curves and thresholds", [])
    words: list[str | Code] = [
        "Precision at each recall is the mean over classes of protocol ",
        Code(measured.request.primary.name),
        ", where a class has the best precision at that recall or beyond. For a threshold the classes are pooled: "
        "the one with the best F1, what it finds, and how far scores are from the share of right predictions (ECE; 0: "
        "a score is a probability).",
    ]
    subsets = list(dict.fromkeys(row["subset"] for row in rows if row["metric"] == "mean_precision"))
    heads = [*(["model"] if measured.several else []), "classes", "threshold"]
    lines = [
        [*([Cell(dump.name)] if measured.several else []), Cell(subset), *_cells(dump, subset)]
        for dump in measured.dumps
        for subset in subsets
    ]
    caption = "The threshold of the best F1, and how far scores are probabilities"
    table = Table(caption, [*heads, "precision", "recall", "F1", "ECE"], lines, len(heads) - 1, id="thresholds")
    blocks: list[Block] = [Paragraph(words), Figures(_figures(measured, subsets)), table]
    return Section("curves", "Curves and thresholds", blocks)


def _figures(measured: Measured, subsets: list[str]) -> list[Figure]:
    """Of one dump one figure with a line a subset, of several one a subset with a line a dump."""
    if not measured.several:
        caption = "Mean precision at each recall"
        return [_figure({subset: _points(measured.dumps[0], subset) for subset in subsets}, caption)]
    return [
        _figure(
            {measured.labels[dump.name]: _points(dump, subset) for dump in measured.dumps}, f"Mean precision, {subset}"
        )
        for subset in subsets
    ]


def _figure(series: dict[str, list[tuple[float, float, str]]], caption: str) -> Figure:
    ticks = {float(tick): f"{tick}" for tick in range(0, 101, 20)}
    drawn = svg.lines(series, caption, across="recall (%)", up="precision (%)", ticks=ticks, every=MARKS)
    return Figure(drawn, caption)


def _points(dump: Dump, subset: str) -> list[tuple[float, float, str]]:
    return [(row["recall"], row["value"], "") for row in _of(dump, subset, "mean_precision")]


def _of(dump: Dump, subset: str, metric: str) -> list[Row]:
    return [row for row in dump.curves if (row["metric"], row["subset"]) == (metric, subset) and "verb" not in row]


def _cells(dump: Dump, subset: str) -> list[Cell]:
    """threshold, precision, recall, F1 and ECE."""
    (best,) = _of(dump, subset, "best_f1")
    (ece,) = _of(dump, subset, "ece")
    there = {
        row["metric"]: row["value"]
        for metric in ("precision", "recall")
        for row in _of(dump, subset, metric)
        if row["rank"] == best["rank"]
    }
    threshold = best["threshold"]
    return [
        Cell(number(None) if threshold is None else f"{threshold:.4g}"),
        Cell(number(there.get("precision"))),
        Cell(number(there.get("recall"))),
        Cell(number(best["value"])),
        Cell(number(ece["value"])),
    ]
