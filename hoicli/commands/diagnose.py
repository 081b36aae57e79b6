"""`hoicli diagnose`: the type of every error, and what fixing each type would give."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import FIGURE, PAGE_FOLDER, READ
from hoicli.commands.common import (
    NMS,
    AllowUncounted,
    Alpha,
    Beta,
    Format,
    GroundTruthOption,
    OnError,
    Output,
    Tag,
    TopK,
    inputs,
    skips,
)
from hoicli.commands.manual import page

app = typer.Typer(add_completion=False, rich_markup_mode=None)

EXAMPLES = 40
"""Errors of each type on a gallery page: enough to see a pattern, few enough to look at."""


@app.command(
    cls=page(
        reads="predictions with --gt, or match records",
        writes="result rows; with --emit predictions each prediction with its type",
        examples=[
            ("hoicli diagnose --gt gt.jsonl preds.jsonl", "counts of each type, and what fixing it would give"),
            (
                "hoicli diagnose --gt gt.jsonl --name old --name new --plot errors.png old.jsonl new.jsonl",
                "two models side by side, drawn",
            ),
            (
                "hoicli diagnose --gt gt.jsonl --top 5 --gallery page --images images preds.jsonl",
                "the worst classes and images, and the errors as a web page",
            ),
            (
                "hoicli match --gt gt.jsonl --protocol diag preds.jsonl | hoicli diagnose",
                "from the lines of match",
            ),
            (
                "hoicli diagnose --gt gt.jsonl --emit predictions preds.jsonl "
                "| jq -r '.predictions[].error' | sort | uniq -c",
                "every prediction's type, counted by other tools",
            ),
        ],
        see=["match", "eval", "pairstats"],
    )
)
def diagnose(
    predictions: Annotated[
        list[str] | None,
        typer.Argument(metavar="PREDS...", help="Prediction streams, each a model of its own; - or nothing is stdin."),
        READ,
    ] = None,
    gt: GroundTruthOption = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            metavar="NAME",
            help="hico (default) or vcoco; a match stream says it itself.",
            autocompletion=choices.one_of("hico", "vcoco"),
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="NAME", help="A model's name, in PREDS' order; repeatable."),
    ] = None,
    as_released: Annotated[
        bool,
        typer.Option(
            "--as-released",
            help="The released code's repairs, means and counts, to the digit but for entries listed twice (hico).",
        ),
    ] = False,
    independent: Annotated[
        bool, typer.Option("--independent", help="Each oracle on its own: none leaves what another one fixes.")
    ] = False,
    progressive: Annotated[
        str | None,
        typer.Option(
            "--progressive",
            metavar="ORDER",
            help="Adds mAP with one oracle upon another: names with commas between, or all.",
            autocompletion=choices.several(choices.oracles),
        ),
    ] = None,
    per_class: Annotated[bool, typer.Option("--per-class", help="Adds counts and oracles for every class.")] = False,
    top: Annotated[
        int, typer.Option("--top", metavar="N", help="Adds the N classes and images that fixing would help most.")
    ] = 0,
    emit: Annotated[
        str | None,
        typer.Option(
            "--emit",
            metavar="predictions",
            help="Instead of rows: each prediction, its type and repair.",
            autocompletion=choices.one_of("predictions"),
        ),
    ] = None,
    tag: Tag = None,
    top_k: TopK = None,
    nms: NMS = None,
    nms_alpha: Alpha = 1.0,
    nms_beta: Beta = 0.5,
    allow_uncounted: AllowUncounted = False,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="FILE", help="Draw the deltas and the errors: .png, .svg or .pdf."),
        FIGURE,
    ] = None,
    gallery: Annotated[
        str | None,
        typer.Option("--gallery", metavar="DIR", help="Write an HTML page of errors on their images."),
        PAGE_FOLDER,
    ] = None,
    images: Annotated[
        str | None, typer.Option("--images", metavar="DIR", help="The folder of the images for --gallery."), READ
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say what each oracle fixes, and stop.")] = False,
    format_: Format = "auto",
    on_error: OnError = "stop",
    output: Output = "-",
) -> None:
    """Why a detector fails: how many errors of each type, and the mAP that fixing each type would give.

    Every prediction is a true positive, a duplicate, an interaction error (right boxes, wrong verb), an association
    error (right boxes that do not interact), an object box, human box or both boxes error. The deltas do not add up to
    what is missing to 100: errors overlap. V-COCO is diagnosed person first, by scenario 1.
    """
    from hoicli.diagnosis.applied import explanation, progressive_order
    from hoicli.diagnosis.repairs import Reading
    from hoicli.diagnosis.run import Model, check_reading, diagnose_models, emit_predictions
    from hoicli.errors import UsageError
    from hoicli.evaluation.filters import Filters
    from hoicli.figures.diagnosis import plot_diagnosis
    from hoicli.io.messages import note
    from hoicli.io.outputs import open_output
    from hoicli.io.streams import Stream
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.results import parse_tags
    from hoicli.tables.notations import chosen_format, render
    from hoicli.vocabulary.datasets import load

    if explain:
        print(explanation())
        return
    paths = inputs(predictions, "PREDS")
    if emit not in (None, "predictions"):
        raise UsageError(f"--emit {emit}: choose predictions")
    if (emit or gallery) and (gt is None or len(paths) != 1):
        raise UsageError("--emit and --gallery need --gt and one stream of predictions")
    if gallery and gt == "-":
        raise UsageError("--gallery reads the ground truth twice: give it as a file")
    if images is not None and gallery is None:
        raise UsageError("--images goes with --gallery DIR")
    if as_released and (independent or progressive is not None):
        raise UsageError("--as-released: the released code has neither --independent nor --progressive")
    if independent and progressive is not None:
        raise UsageError("--progressive: oracles that follow one another share their repairs; leave out --independent")
    unseen = {
        "--plot": plot,
        "--gallery": gallery,
        "--progressive": progressive,
        "--per-class": per_class,
        "--tag": tag,
    }
    if emit and any(unseen.values()):
        given = ", ".join(option for option, value in unseen.items() if value)
        raise UsageError(f"{given}: of the result rows, which --emit predictions does not write; leave one of them out")
    if independent and emit:
        raise UsageError("--emit predictions: shows the one repair of a ground truth; leave out --independent")
    if top < 0:
        raise UsageError(f"--top {top}: give a whole number of at least 0")
    models = Model.named(paths, name or [])
    output_format = chosen_format(format_, output)
    tags = parse_tags(tag or [], taken=("model",) if models[0].tagged else ())
    policy = ErrorPolicy(skip=skips(on_error))
    filters = Filters(top_k=top_k, nms=nms, nms_alpha=nms_alpha, nms_beta=nms_beta, allow_uncounted=allow_uncounted)
    reading: Reading = "released" if as_released else "independent" if independent else "shared"
    order = () if progressive is None else progressive_order(progressive)
    check_reading(dataset or "hico", reading)
    truth = None if gt is None else Stream([gt], "ground truth")
    if emit and truth is not None:
        with open_output(output) as write:
            emit_predictions(write, truth, models[0].stream, load(dataset or "hico"), filters, policy, reading)
        policy.report()
        return
    diagnosed = diagnose_models(
        models, truth, dataset, filters, policy, examples=EXAMPLES if gallery else 0, reading=reading
    )
    rows = [row for model in diagnosed for row in model.rows(per_class=per_class, top=top, order=order, tags=tags)]
    policy.report()
    if plot is not None:
        drawn = [row | {"model": model.name} for model in diagnosed for row in model.plotted]
        plot_diagnosis(drawn, {model.name: model.composition() for model in diagnosed}, plot)
    if gallery is not None:
        from hoicli.report.gallery import write_gallery

        write_gallery(gallery, diagnosed[0].examples, images)
    with open_output(output) as write:
        write(render(rows, output_format))
    if output_format == "table":
        note("the deltas do not add up to 100 - mAP: errors overlap (--explain says what each oracle fixes)")
