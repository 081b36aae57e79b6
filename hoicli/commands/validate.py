"""`hoicli validate`: what is wrong with a stream, or with a pair of them, before any number is computed."""

from __future__ import annotations

from itertools import chain
from typing import Annotated

from hoicli.errors import DataError
from hoicli.interface import options
from hoicli.interface.command import command
from hoicli.interface.option_values import text_of
from hoicli.interface.options import Given, Piped
from hoicli.interface.results import Result
from hoicli.io.messages import note
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
) -> Result:
    """Check files of records, with --gt against their ground truth: each kind of fault, its count and an example.

    Ground truth, predictions, match records and result rows are recognised. With --gt, the images, labels and boxes of
    predictions are compared with those of the ground truth.

    Arguments:
        open_vocabulary: Labels and verbs are free text: do not look them up.
    """
    from hoicli.interface.inputs import Inputs
    from hoicli.validation.stream import validate_images

    dataset_name = text_of(dataset)
    vocabulary = None if open_vocabulary else load(dataset_name or "hico")
    files_given = {"from_": from_, "image_list": image_list}
    inputs = Inputs(dataset_name, files_given, within=None if open_vocabulary else "hico", gt=gt)
    checked = []  # what was found out about each stream; that of `files` is last
    if gt is None:
        stream = inputs.records(files, "records", "FILE", name="files")
        checked.append(validate_images(stream, vocabulary))
    else:
        truth, stream = inputs.truth(gt), inputs.records(files, "records", "FILE", name="files", scored=True)
        # facts: the images, labels and boxes of the ground truth, which predictions are compared with
        checked.append(validate_images(truth, vocabulary, facts=True))
        checked.append(validate_images(stream, vocabulary, truth=checked[0].facts))
    if not checked[-1].lines:
        raise DataError("is empty: no lines to check", place=stream.name, code="empty")
    rows = [finding.row() for finding in chain.from_iterable(checking.findings for checking in checked)]
    kinds = "one kind of fault" if len(rows) == 1 else f"{len(rows) or 'no'} kinds of fault"
    verdict = checked[-1].verdict and f"; {checked[-1].verdict}"
    broken = any(row["severity"] == "error" for row in rows)
    note(f"checked {sum(checking.lines for checking in checked):,} lines: {kinds}{verdict}")
    return Result(rows, failed=DataError("") if broken else None)  # exit code 1 without a message: the rows say it
