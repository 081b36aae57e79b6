"""Which name is taken for which, in a report: the costliest cells of hoicli confusion."""

from __future__ import annotations

from hoicli.records.results import Row
from hoicli.report.document import Block, Cell, Code, Paragraph, Section, number, pivoted
from hoicli.report.measured import Measured

HEADS = {"confusion": "number", "confusion_share": "share", "confusion_delta_mAP": "delta mAP"}
"""Metric -> its column."""


def confusion_section(measured: Measured) -> Section:
    """A table of each kind; empty where nothing is taken for anything."""
    words: list[str | Code] = [
        "Of each annotated triplet, the verb that comes first for its pair, other true verbs set aside; of each "
        "annotated pair, the label that comes first for its boxes. The share is of all that have the annotated name; "
        "the delta is what mAP gains if that confusion alone is repaired. Costs overlap and do not add up. ",
        Code("hoicli confusion --top all"),
        " has every one, and what is said of nothing.",
    ]
    if measured.several:
        words.append(f" A dash: not among the {measured.request.top:,} costliest of that model.")
    blocks: list[Block] = [Paragraph(words)]
    for kind, caption in (("verb", "Verbs taken for verbs"), ("object", "Objects taken for objects")):
        rows = [
            {**row, "annotated": row["truth"], "said": row["predicted"]}
            for row in measured.rows("confusions")
            if row["kind"] == kind and row["truth"] and row["predicted"] and row["metric"] in HEADS
        ]
        if rows:
            table = pivoted(
                rows,
                f"{caption}: the costliest",
                index=("annotated", "said"),
                column=lambda row: (row["tags"]["model"] if measured.several else "", HEADS[row["metric"]]),
                cell=_cell,
                own=True,
                id_=f"confusions-{kind}",
            )
            blocks.append(table)
    return Section("confusions", "Confusions", blocks if len(blocks) > 1 else [])


def _cell(row: Row) -> Cell:
    """A number with what it is out of; a share or a gain."""
    if row["metric"] == "confusion":
        return Cell(f"{row['value']:,} of {row['n']:,}")
    return Cell(number(row["value"], signed=row["metric"] == "confusion_delta_mAP"))
