"""`hoicli validate`: what is wrong with a stream, or with a pair of them, before any number is computed."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands.checks import READ
from hoicli.commands.common import Dataset, Format, GroundTruthOption, Output, inputs
from hoicli.commands.manual import page

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    cls=page(
        reads="ground truth, predictions, match records or result rows",
        writes="a row a kind of fault: check, severity, count, example, mend",
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
)
def validate(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Streams to check, taken together; - or nothing is stdin."),
        READ,
    ] = None,
    gt: GroundTruthOption = None,
    dataset: Dataset = "hico",
    open_vocabulary: Annotated[
        bool, typer.Option("--open-vocabulary", help="Labels and verbs are free text: do not look them up.")
    ] = False,
    format_: Format = "auto",
    output: Output = "-",
) -> None:
    """Check a stream of records, and with --gt the pair: each kind of fault with its count and one example.

    Ground truth, predictions, match records and result rows are recognised. Exit code 0: nothing worse than warnings;
    1: something no metric can use.
    """
    from hoicli.errors import DataError
    from hoicli.io.messages import display_name, note
    from hoicli.io.outputs import open_output
    from hoicli.io.streams import Stream
    from hoicli.tables.notations import chosen_format, render
    from hoicli.validation.stream import validate_images
    from hoicli.vocabulary.datasets import load

    paths = inputs(files, "FILE")
    output_format = chosen_format(format_, output)
    vocabulary = None if open_vocabulary else load(dataset)
    checked = []
    truth = None
    if gt is not None:
        checked.append(validate_images(Stream([gt], "ground truth"), vocabulary, display_name(gt)))
        truth = checked[0].images
    name = ", ".join(map(display_name, paths))
    checked.append(validate_images(Stream(paths, "records"), vocabulary, name, truth=truth))
    if not checked[-1].lines:
        raise DataError("is empty: no lines to check", place=name)
    rows = [finding.row() for stream in checked for finding in stream.findings]
    with open_output(output) as write:
        write(render(rows, output_format))
    kinds = "one kind of fault" if len(rows) == 1 else f"{len(rows) or 'no'} kinds of fault"
    verdict = checked[-1].verdict and f"; {checked[-1].verdict}"
    note(f"checked {sum(stream.lines for stream in checked):,} lines: {kinds}{verdict}")
    if any(stream.findings.has_errors for stream in checked):
        raise typer.Exit(1)
