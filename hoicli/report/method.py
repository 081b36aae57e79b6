"""How a report's numbers were made: the command lines that give them again, what was read, and the signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoicli.records.results import Row
from hoicli.report.document import Block, Cell, Lines, Paragraph, Section, Table, number, pivoted
from hoicli.report.measured import Measured, facts
from hoicli.report.options import Options, file_name


def method(measured: Measured, options: Options, given: Mapping[str, Sequence[Row]]) -> Section:
    """The section with command lines that give the same numbers, what was read, and all signatures."""
    signed: dict[str, dict[str, None]] = {}
    own = (("eval", measured.evaluation), ("diagnose", measured.diagnosis), ("pairstats", measured.pairs))
    for what, rows in (*own, *((f"rows: {kind}", rows) for kind, rows in given.items())):
        for row in rows:
            signed.setdefault(str(row.get("signature", "")), {})[what] = None
    signed.pop("", None)
    lines = [[Cell(", ".join(whats)), Cell(signature, code=True)] for signature, whats in signed.items()]
    counted = [[Cell(what), Cell(number(count))] for what, count in facts(measured)]
    averaged = pivoted(
        [{**row, "value": row["n"]} for row in measured.evaluation if row["metric"] == "mAP"],
        "How many classes each mean is over",
        index=("protocol",),
        own=True,
        column=lambda row: ("", row["subset"]),
    )
    files = f"; the rows of other commands came from {', '.join(map(file_name, options.rows))}" if options.rows else ""
    again = f"These commands print the rows that the tables are made of{files}."
    blocks: list[Block] = [
        Paragraph([again]),
        Lines(options.commands(measured.request.primary.name, diagnosed=bool(measured.diagnosis))),
        Table("What was read", ["", ""], counted, 1),
        averaged,
        Table("Signatures: equal ones were made by the same computation", ["rows of", "signature"], lines, 2),
    ]
    return Section("method", "How these numbers were made", blocks)
