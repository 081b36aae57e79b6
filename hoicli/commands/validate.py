"""`hoicli validate`: what is wrong with a stream, or with a pair of them, before any number is computed."""

from __future__ import annotations

import typer

from hoicli.commands import options
from hoicli.commands.checks import READ
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag
from hoicli.errors import DataError
from hoicli.io.messages import display_name, note
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load


@command(
    reads="ground truth, predictions, match records or result rows",
    writes="one row for each kind of fault: check, severity, count, example, and what to do",
    examples=[
        ("hoicli validate gt.jsonl", "a stream by itself"),
        ("hoicli validate --gt gt.jsonl preds.jsonl", "a pair of them: also whether images, labels and boxes meet"),
        ("hoicli convert results.json | hoicli validate --gt gt.jsonl", "before a dump is evaluated"),
        (
            "hoicli validate --gt gt.jsonl preds.jsonl | jq -r 'select(.severity == \"warning\") | .example'",
            "an example of everything a metric would use without a word",
        ),
    ],
    see=["convert", "eval", "vocab"],
    exits={0: "nothing worse than warnings", 1: "something no metric can use, or an unreadable file"},
)
def validate(
    files: list[str] | None = argument(
        None, "FILE...", "Streams to check, read as one; - or nothing is stdin.", mark=READ
    ),
    gt: str | None = options.GROUND_TRUTH,
    dataset: str | None = options.dataset(f"The dataset whose labels are meant: {options.A_DATASET}.", None),
    open_vocabulary: bool = flag("--open-vocabulary", "Labels and verbs are free text: look none of them up."),
    *,
    dumps: options.Dumps,
    out: options.Listing,
) -> None:
    """Check a stream of records, and with --gt the pair: each kind of fault with its count and one example.

    Ground truth, predictions, match records and result rows are recognised. Exit code 0: nothing worse than warnings;
    1: something no metric can use.
    """
    from hoicli.validation.stream import validate_images

    paths = options.inputs(files, "FILE")
    vocabulary = None if open_vocabulary else load(dataset or "hico")
    opening = dumps.opening(dataset, within=None if open_vocabulary else dataset or "hico")
    checked = []
    truth = None
    if gt is not None:
        lines = Stream([gt], "ground truth", opening.truth)
        checked.append(validate_images(lines, vocabulary, display_name(gt), facts=True))
        truth = checked[0].facts
    name = ", ".join(map(display_name, paths))
    checked.append(
        validate_images(
            Stream(paths, "records", opening if gt is None else opening.predictions), vocabulary, name, truth=truth
        )
    )
    if not checked[-1].lines:
        raise DataError("is empty: no lines to check", place=name)
    rows = [finding.row() for stream in checked for finding in stream.findings]
    out.write(rows)
    kinds = "one kind of fault" if len(rows) == 1 else f"{len(rows) or 'no'} kinds of fault"
    verdict = checked[-1].verdict and f"; {checked[-1].verdict}"
    note(f"checked {sum(stream.lines for stream in checked):,} lines: {kinds}{verdict}")
    if any(stream.findings.has_errors for stream in checked):
        raise typer.Exit(1)
