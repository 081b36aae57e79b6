"""`hoicli validate`: what is wrong with a stream, or with a pair of them, before any number is computed."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands.common import Dataset, Format, GroundTruthOption, Output, inputs

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(epilog="Example: hoicli validate --gt gt.jsonl preds.jsonl")
def validate(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Streams to check, taken together; - or nothing is stdin."),
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
    from hoicli.pairing import check_streams
    from hoicli.report.tables import chosen_format, render
    from hoicli.streams import display_name, note, open_output, read_lines
    from hoicli.validation import validate_images
    from hoicli.vocabulary import load

    paths = inputs(files, "FILE")
    output_format = chosen_format(format_, output)
    vocabulary = None if open_vocabulary else load(dataset)
    checked = []
    truth = None
    if gt is not None:
        check_streams(gt, paths)
        checked.append(validate_images(read_lines([gt], label="ground truth"), vocabulary, display_name(gt)))
        truth = checked[0].images
    name = ", ".join(map(display_name, paths))
    checked.append(validate_images(read_lines(paths, label="records"), vocabulary, name, truth=truth))
    rows = [finding.row() for stream in checked for finding in stream.findings]
    with open_output(output) as write:
        write(render(rows, output_format))
    kinds = "one kind of fault" if len(rows) == 1 else f"{len(rows) or 'no'} kinds of fault"
    verdict = checked[-1].verdict and f"; {checked[-1].verdict}"
    note(f"checked {sum(stream.lines for stream in checked):,} lines: {kinds}{verdict}")
    if not checked[-1].lines:
        raise DataError("is empty: no lines to check", place=name)
    if any(stream.findings.has_errors for stream in checked):
        raise typer.Exit(1)
