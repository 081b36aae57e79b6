"""How a report's numbers were made: the command lines that give them again, what was read, and the signatures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from hoicli.records.results import Row
from hoicli.report.document import Block, Cell, Lines, Paragraph, Section, Table, Words, number, pivoted, with_codes
from hoicli.report.measured import PAIR_NMS, Measured, facts


@dataclass(frozen=True)
class Source:
    """Where the numbers come from, for the title and the command lines: names of files, and the options given."""

    gt: str
    predictions: Sequence[str]
    options: Sequence[str]
    protocol: Sequence[str]
    filters: Sequence[str]
    split: Sequence[str]
    bootstrap: Sequence[str]
    rows: Sequence[str]
    title: str | None = None

    def command(self, name: str, *options: str, together: bool = True) -> str:
        """A command line that computes the same; `together`: the command takes several streams as one."""
        streams = [file_name(path) for path in self.predictions]
        words = ["hoicli", name, *options, *self.options, "--gt", file_name(self.gt)]
        if together or len(streams) == 1:
            return shlex.join([*words, *streams])
        return f"{shlex.join(['cat', *streams])} | {shlex.join(words)}"


def file_name(path: str) -> str:
    """What a path is called in a report: its last part, so that the same files give the same report everywhere."""
    return path if path == "-" else PurePath(path).name


def method(measured: Measured, source: Source, given: Mapping[str, Sequence[Row]]) -> Section:
    """The section with command lines that give the same numbers, what was read, and all signatures."""
    commands = [source.command("eval", *source.protocol, *source.split, *source.bootstrap, *source.filters)]
    primary = measured.request.primary.name
    commands.append(
        source.command("eval", "--per-class", "--protocol", primary, *source.split, *source.bootstrap, *source.filters)
    )
    if measured.diagnosis:
        top = ["--top", str(measured.request.top)] if measured.request.top else []
        commands.append(source.command("diagnose", *top, *source.filters, together=False))
        nms = ",".join(f"{value:g}" for value in PAIR_NMS)
        commands.append(source.command("pairstats", "--nms-sweep", nms, together=False))
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
        column=lambda row: ("", row["subset"]),
    )
    again: Words = [
        "These commands print the rows that the tables are made of"
        + (f"; the rows of other commands came from {', '.join(map(file_name, source.rows))}." if source.rows else ".")
    ]
    blocks: list[Block] = [
        Paragraph(again),
        Lines(commands),
        Table("What was read", ["", ""], counted, 1),
        with_codes(averaged),
        Table("Signatures: equal ones were made by the same computation", ["rows of", "signature"], lines, 2),
    ]
    return Section("method", "How these numbers were made", blocks)
