"""`hoicli compare`: whether one detector is better than another, by how much, and where."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import READ
from hoicli.commands.common import (
    NMS,
    ROUNDS,
    AllowUncounted,
    Alpha,
    Beta,
    Format,
    GroundTruthOption,
    IgnoreNoInteraction,
    OnError,
    Output,
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
        reads="predictions, one stream a model, and ground truth with --gt",
        writes="result rows: mAP with its interval, and differences with interval and p",
        examples=[
            ("hoicli compare --gt gt.jsonl preds.jsonl other.jsonl", "is other better than preds, and where"),
            (
                "hoicli compare --gt gt.jsonl --protocol upt --no-errors --name base,ours preds.jsonl other.jsonl",
                "another protocol, no error types, names of your own",
            ),
            (
                "hoicli compare --gt gt.jsonl --per-class --format csv -o classes.csv preds.jsonl other.jsonl",
                "every class, for a spreadsheet",
            ),
        ],
        see=["eval", "diagnose", "report"],
    )
)
def compare(
    predictions: Annotated[
        list[str] | None,
        typer.Argument(metavar="PREDS...", help="Prediction streams, a model each: the baseline, then the others."),
        READ,
    ] = None,
    gt: GroundTruthOption = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            "--protocol",
            metavar="NAME",
            help="As in eval. Without one: hico, vcoco-s1 or swig, by --dataset.",
            autocompletion=choices.several(choices.protocols),
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", metavar="NAME", help="hico (default), vcoco or swig.", autocompletion=choices.datasets
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="NAME", help="A model's name, in PREDS' order; several with commas."),
    ] = None,
    split: Split = None,
    ignore_no_interaction: IgnoreNoInteraction = False,
    bootstrap: Annotated[
        int,
        typer.Option("--bootstrap", metavar="N", help="Rounds: N resamples of the images, and N swaps."),
        ROUNDS,
    ] = 1000,
    seed: Seed = 0,
    errors: Annotated[
        bool, typer.Option("--errors/--no-errors", help="Compare the types of errors as well (hico and vcoco).")
    ] = True,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Every class, and not only those that moved most.")
    ] = False,
    top: Annotated[
        int, typer.Option("--top", metavar="K", help="The K classes and the K images that moved most.")
    ] = 10,
    tag: Tag = None,
    top_k: TopK = None,
    nms: NMS = None,
    nms_alpha: Alpha = 1.0,
    nms_beta: Beta = 0.5,
    allow_uncounted: AllowUncounted = False,
    format_: Format = "auto",
    on_error: OnError = "stop",
    output: Output = "-",
) -> None:
    """Is the difference between two detectors real, and where does it come from?

    Every difference from the first stream to another: of the mAP of each subset, of each class, of each type of error;
    with its 95 % interval over resampled images, and p, the chance of one as large if the two were alike, by swapping
    their output at random (p) and by resampling (p_bootstrap). Without --protocol, that of the headline number.
    """
    from hoicli.comparison.run import compare as compared
    from hoicli.diagnosis.run import Model
    from hoicli.errors import UsageError
    from hoicli.evaluation.filters import Filters
    from hoicli.evaluation.protocols import MAIN, explicit, protocols
    from hoicli.evaluation.rows import Wanted
    from hoicli.io.outputs import open_output
    from hoicli.io.streams import Stream
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.results import parse_tags
    from hoicli.resampling.draws import Resampling
    from hoicli.tables.notations import chosen_format, render
    from hoicli.vocabulary.datasets import load

    paths = inputs(predictions, "two or more PREDS")
    if gt is None:
        raise UsageError("compare needs --gt FILE, the ground truth of both")
    if len(paths) < 2:
        raise UsageError("compare needs two or more streams of predictions: the baseline first")
    if top < 0:
        raise UsageError(f"--top {top}: give a whole number of at least 0")
    chosen = protocols(protocol or [MAIN.get(dataset or "hico", "all")], dataset)
    vocabulary = load(chosen[0].dataset)
    resampling = Resampling.checked(bootstrap, seed)
    wanted = Wanted(vocabulary.split(split) if split else None, ignore_no_interaction, per_class)
    names = [part for names in name or [] for part in names.split(",")]
    models = Model.named(paths, names)
    output_format = chosen_format(format_, output)
    tags = parse_tags(tag or [], taken=("model", "baseline"))
    policy = ErrorPolicy(skip=skips(on_error))
    filters = Filters(top_k=top_k, nms=nms, nms_alpha=nms_alpha, nms_beta=nms_beta, allow_uncounted=allow_uncounted)
    rows = list(
        compared(
            models, Stream([gt], "ground truth"), vocabulary, chosen, filters, policy, wanted, resampling,
            named=explicit(protocol) if protocol else None, errors=errors, top=top, tags=tags,
        )
    )  # fmt: skip
    policy.report()
    with open_output(output) as write:
        write(render(rows, output_format))
