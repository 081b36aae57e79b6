"""`hoicli report`: everything about a prediction dump in one file, to be read, printed and passed on."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.checks import READ, READ_FOLDER
from hoicli.commands.manual import command
from hoicli.commands.options import option


@command(
    reads="predictions, ground truth with --gt, and result rows with --rows",
    writes="one HTML or Markdown file",
    examples=[
        ("hoicli report --gt gt.jsonl -o report.html preds.jsonl", "a page to open, print and pass on"),
        (
            "hoicli robust all.jsonl | hoicli report --gt gt.jsonl --rows - --images images -o report.html preds.jsonl",
            "with the rows of another command, and pictures in the gallery",
        ),
        (
            "hoicli report --gt gt.jsonl --name old --name new -o both.html old.jsonl new.jsonl",
            "two models side by side",
        ),
        (
            "hoicli report --gt gt.jsonl --bootstrap 100 --split rf-uc -o report.md preds.jsonl",
            "for a README or an issue: Markdown, with 95 % intervals",
        ),
    ],
    see=["eval", "diagnose", "compare", "explore"],
)
def report(
    predictions: list[str] | None = options.MODELS,
    gt: str | None = options.GROUND_TRUTH,
    dataset: str | None = options.dataset(f"The dataset: {options.A_DATASET}.", None),
    name: list[str] | None = options.NAMES,
    protocol: list[str] | None = options.PROTOCOLS,
    split: str | None = options.SPLIT,
    top: int = option(10, "--top N", "How many of the weakest classes, costliest confusions and worst images to list."),
    rows: list[str] | None = option(
        None,
        "--rows FILE",
        "Result rows of robust, shoe-eval, agree, compare or eval to show, too; repeatable.",
        mark=READ,
    ),
    images: str | None = option(None, "--images DIR", "The folder of the images, for the gallery.", mark=READ_FOLDER),
    title: str | None = option(None, "--title TEXT", "The report's heading."),
    tag: list[str] | None = options.TAG,
    bootstrap: int | None = options.bootstrap("every mAP"),
    seed: int = options.SEED,
    format_: str = option(
        "auto",
        "--format NAME",
        "auto, html or md; auto goes by the output's name, and is html for stdout.",
        one_of=("auto", "html", "md"),
    ),
    on_error: str = options.ON_ERROR,
    output: str = options.OUT,
    *,
    viewing: options.Viewing,
    filtering: options.Filtering,
    dumps: options.Dumps,
) -> None:
    """One self-contained page about a prediction dump, or several: HTML with figures and a gallery, or Markdown.

    What the numbers say in three sentences; protocols and subsets, curves and thresholds, the types of errors and what
    fixing each would give, what is taken for what, pair statistics, the weakest classes and images, errors drawn on
    their images, and the rows of other commands; with signatures, and the commands that give the same numbers. Several
    models stand side by side, with their differences from the first. The page needs no network and runs no script.
    Same input, same bytes.
    """
    from hoicli.report.options import Options
    from hoicli.report.run import write_report

    asked = Options(
        gt=options.required(gt, "report"),
        predictions=options.inputs(predictions, "PREDS"),
        names=options.separated(name),
        dataset=dataset or "hico",
        protocols=protocol or [],
        split=split,
        top=top,
        rows=rows or [],
        images=images,
        title=title,
        tags=tag or [],
        bootstrap=bootstrap,
        seed=seed,
        skip=on_error == "skip",
        iou=viewing.iou or [],
        slices=viewing.slice_ or [],
        filters=filtering.filters(),
        opening=dumps.opening(dataset, options.policy(on_error), within=dataset or "hico"),
    )
    write_report(asked, output, format_)
