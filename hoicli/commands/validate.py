"""`hoicli validate`: what is wrong with a stream, or with a pair of them, before any number is computed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Annotated

from hoicli.errors import DataError
from hoicli.interface import options
from hoicli.interface.command import command
from hoicli.interface.option_values import names_of, text_of
from hoicli.interface.options import Given, Names, Option, Piped
from hoicli.interface.results import Result
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.datasets import load


@command(
    reads="ground truth, predictions, match records or result rows",
    writes="one row for each kind of fault: check, severity, count, example, and what to do",
    examples="""
        hoicli validate gt.jsonl  # one file alone
        hoicli validate --gt gt.jsonl preds.jsonl  # against ground truth: do images, labels and boxes fit?
        hoicli convert results.json | hoicli validate --gt gt.jsonl  # before a dump is evaluated
    """,
    see=["convert", "eval", "vocab"],
    exits={0: "nothing worse than warnings", 1: "something no metric can use, or an unreadable file"},
)
def validate(
    gt: options.Truth = None,
    files: Annotated[Given | None, Piped("FILE...", "Streams to check, read as one; - or nothing is stdin.")] = None,
    *,
    dataset: Annotated[options.Path | None, options.dataset(f"The dataset of the labels: {options.A_DATASET}.")] = None,
    open_vocabulary: bool = False,
    from_: options.From = None,
    image_list: options.ImageList = None,
    by: Annotated[Names, Option("FIELD", several=True)] = None,
) -> Result:
    """Check files of records, with --gt against their ground truth: each kind of fault, its count and an example.

    Ground truth, predictions, match records and result rows are recognised. With --gt, the images, labels and boxes of
    predictions are compared with those of the ground truth.

    Arguments:
        open_vocabulary: Labels and verbs are free text: do not look them up.
        by: Check the images of each value of these fields of the ground truth's records (corruption,severity) by
            themselves, as eval does.
    """
    from hoicli.interface.inputs import Inputs
    from hoicli.validation.findings import Findings
    from hoicli.validation.stream import validate_images

    dataset_name = text_of(dataset)
    vocabulary = None if open_vocabulary else load(dataset_name or "hico")
    files_given = {"from_": from_, "image_list": image_list}
    inputs = Inputs(dataset_name, files_given, within=None if open_vocabulary else "hico", gt=gt)
    stream = inputs.records(files, "records", "FILE", name="files", scored=None if gt is None else True)
    truth = None if gt is None else inputs.truth(gt)
    pairs = [(truth, stream)] if by is None else _divide(truth, stream, names_of(by), inputs.policy)
    truth_findings, findings, lines, verdict = Findings(), Findings(), 0, ""
    for truth_part, part in pairs:
        facts = None  # the images, labels and boxes of the ground truth, which predictions are compared with
        if truth_part is not None:
            truth_checking = validate_images(truth_part, vocabulary, facts=True)
            truth_findings.merge(truth_checking.findings)
            lines, facts = lines + truth_checking.lines, truth_checking.facts
        checking = validate_images(part, vocabulary, truth=facts)
        findings.merge(checking.findings)
        lines, verdict = lines + checking.lines, checking.verdict and f"; {checking.verdict}"
        if not checking.lines:
            raise DataError("is empty: no lines to check", place=stream.name, code="empty")
    rows = [finding.row() for finding in chain(truth_findings, findings)]
    kinds = "one kind of fault" if len(rows) == 1 else f"{len(rows) or 'no'} kinds of fault"
    broken = any(row["severity"] == "error" for row in rows)
    note(f"checked {lines:,} lines: {kinds}{verdict}")
    return Result(rows, failed=DataError("") if broken else None)  # exit code 1 without a message: the rows say it


def _divide(
    truth: Stream | None, stream: Stream, by: Sequence[str], policy: ErrorPolicy
) -> list[tuple[Stream | None, Stream]]:
    """Return the ground truth, if there is any, and the records of each group. by: the fields whose values make the
    groups. Raises `DataError` for a line that is of no group, and for a group without records."""
    from hoicli.evaluation.groups import Grouping

    grouping = Grouping(by, policy)
    if truth is not None:
        grouping.add_truth(truth)
    grouping.add_predictions(stream)
    pairs: list[tuple[Stream | None, Stream]] = []
    for group in grouping.finish():
        truth_lines, (lines,) = group.truth, group.predictions
        truth_part = None
        if truth_lines is not None:
            truth_part = Stream([truth_lines.name], "ground truth", lines_held=truth_lines)
        pairs.append((truth_part, Stream([lines.name], stream.label, lines_held=lines)))
    return pairs
