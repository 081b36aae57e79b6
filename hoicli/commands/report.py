"""`hoicli report`: everything about a prediction dump in one file, to be read, printed and passed on."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import READ
from hoicli.commands.common import (
    NMS,
    AllowUncounted,
    Alpha,
    Beta,
    Bootstrap,
    GroundTruthOption,
    OnError,
    Output,
    Predictions,
    Protocols,
    Seed,
    Split,
    Tag,
    TopK,
    inputs,
    skips,
)
from hoicli.commands.manual import page

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    cls=page(
        reads="predictions, ground truth with --gt, and result rows with --rows",
        writes="one HTML or Markdown file",
        examples=[
            ("hoicli report --gt gt.jsonl -o report.html preds.jsonl", "a page to open, print and pass on"),
            (
                "hoicli robust all.jsonl "
                "| hoicli report --gt gt.jsonl --rows - --images images -o report.html preds.jsonl",
                "with the rows of another command, and pictures in the gallery",
            ),
            (
                "hoicli report --gt gt.jsonl --bootstrap 100 --split rf-uc -o report.md preds.jsonl",
                "for a README or an issue: Markdown, with 95 % intervals",
            ),
        ],
        see=["eval", "diagnose", "pairstats", "compare"],
    )
)
def report(
    predictions: Predictions = None,
    gt: GroundTruthOption = None,
    dataset: Annotated[
        str,
        typer.Option(
            "--dataset", metavar="NAME", help="The benchmark: hico, vcoco or swig.", autocompletion=choices.datasets
        ),
    ] = "hico",
    protocol: Protocols = None,
    split: Split = None,
    top: Annotated[
        int, typer.Option("--top", metavar="N", help="How many of the weakest classes, and of images, are listed.")
    ] = 10,
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--rows",
            metavar="FILE",
            help="Result rows of robust, shoe-eval, agree, compare or eval, to be shown as well; repeatable.",
        ),
        READ,
    ] = None,
    images: Annotated[
        str | None, typer.Option("--images", metavar="DIR", help="The folder of the images, for the gallery."), READ
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The report's heading.")] = None,
    tag: Tag = None,
    top_k: TopK = None,
    nms: NMS = None,
    nms_alpha: Alpha = 1.0,
    nms_beta: Beta = 0.5,
    allow_uncounted: AllowUncounted = False,
    bootstrap: Bootstrap = None,
    seed: Seed = 0,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="auto, html or md; auto goes by the output's name, and is html for stdout.",
            autocompletion=choices.one_of("auto", "html", "md"),
        ),
    ] = "auto",
    on_error: OnError = "stop",
    output: Output = "-",
) -> None:
    """One self-contained page about a prediction dump: HTML with figures and a gallery, or Markdown.

    Protocols and subsets, the types of errors and what fixing each would give, pair statistics, the weakest classes and
    images, errors drawn on their images, and the rows of other commands; with signatures, and the commands that give
    the same numbers. The page needs no network and runs no script. Same input, same bytes.
    """
    from hoicli.errors import UsageError
    from hoicli.report.options import Options
    from hoicli.report.run import write_report

    if gt is None:
        raise UsageError("report: give the ground truth with --gt FILE")
    options = Options(
        gt=gt,
        predictions=inputs(predictions, "PREDS"),
        dataset=dataset,
        protocols=protocol or [],
        split=split,
        top=top,
        rows=rows or [],
        images=images,
        title=title,
        tags=tag or [],
        top_k=top_k,
        nms=nms,
        nms_alpha=nms_alpha,
        nms_beta=nms_beta,
        allow_uncounted=allow_uncounted,
        bootstrap=bootstrap,
        seed=seed,
        skip=skips(on_error),
    )
    write_report(options, output, format_)
