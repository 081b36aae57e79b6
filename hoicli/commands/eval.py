"""`hoicli eval`: the mAP of a prediction dump by the published protocols."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.common import (
    NMS,
    AllowUncounted,
    Alpha,
    Beta,
    Bootstrap,
    CountImages,
    DatasetOfProtocols,
    Format,
    GroundTruthOption,
    IgnoreNoInteraction,
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
        reads="predictions with --gt, or match records",
        writes="result rows: mAP and mean_max_recall of every subset",
        examples=[
            ("hoicli eval --gt gt.jsonl preds.jsonl", "every protocol of HICO-DET, side by side"),
            ("hoicli eval --gt gt.jsonl --protocol hico,hico-ko --split rf-uc preds.jsonl", "a zero-shot split"),
            ("hoicli eval --gt gt.jsonl --protocol hico --bootstrap 1000 preds.jsonl", "how sure the numbers are"),
            ("hoicli match --gt gt.jsonl preds.jsonl | hoicli eval", "the same numbers from a match stream"),
            ("hoicli eval --explain --protocol upt", "what a protocol does, exactly"),
        ],
        see=["match", "compare", "diagnose", "report"],
    )
)
def evaluate(
    predictions: Predictions = None,
    gt: GroundTruthOption = None,
    protocol: Protocols = None,
    dataset: DatasetOfProtocols = None,
    split: Split = None,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Adds a row per interaction: AP and max_recall.")
    ] = False,
    ignore_no_interaction: IgnoreNoInteraction = False,
    bootstrap: Bootstrap = None,
    seed: Seed = 0,
    tag: Tag = None,
    top_k: TopK = None,
    nms: NMS = None,
    nms_alpha: Alpha = 1.0,
    nms_beta: Beta = 0.5,
    allow_uncounted: AllowUncounted = False,
    count_images: CountImages = None,
    grid: Annotated[
        str | None,
        typer.Option(
            "--grid",
            metavar="NAME",
            help="Other recall values for 11-point AP than the protocol's own: arange, linspace or tenths.",
            autocompletion=choices.grids,
        ),
    ] = None,
    format_: Format = "auto",
    on_error: OnError = "stop",
    output: Output = "-",
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what the protocols do, in a few lines each, and stop.")
    ] = False,
) -> None:
    """The mAP of a dump by each published protocol: predictions with --gt, or the lines of hoicli match.

    Values are in percent; every row carries the signature of the settings that made it. Without --protocol all
    protocols of the dataset are printed side by side. An interval (--bootstrap) is for the mAP to be expected of a test
    set of this size: the spread of resampled test sets, about the value itself.
    """
    from hoicli.evaluation.filters import Filters
    from hoicli.evaluation.predictions import Predictions
    from hoicli.evaluation.protocols import adjusted, explicit, protocols
    from hoicli.evaluation.rows import Wanted, tally_rows
    from hoicli.evaluation.run import tallies
    from hoicli.io.outputs import open_output
    from hoicli.io.streams import Stream
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.results import Row, parse_tags
    from hoicli.resampling.draws import Resampling
    from hoicli.tables.notations import chosen_format, render
    from hoicli.vocabulary.datasets import load

    if explain:
        names = ",".join(protocol or ["all"]).split(",")
        rows_of = (protocols([name], dataset) for name in names)
        print("\n".join(row.explain() for rows in rows_of for row in adjusted(rows, images=count_images, grid=grid)))
        return
    chosen = adjusted(protocols(protocol or ["all"], dataset), images=count_images, grid=grid)
    output_format = chosen_format(format_, output)
    if split:
        load(chosen[0].dataset).split(split)  # a split there is not is said before the work
    tags = parse_tags(tag or [])
    policy = ErrorPolicy(skip=skips(on_error))
    filters = Filters(top_k=top_k, nms=nms, nms_alpha=nms_alpha, nms_beta=nms_beta, allow_uncounted=allow_uncounted)
    resampling = None if bootstrap is None else Resampling.checked(bootstrap, seed)
    rows: list[Row] = []
    for tally, vocabulary, settings in tallies(
        Predictions(inputs(predictions, "PREDS")),
        None if gt is None else Stream([gt], "ground truth"),
        chosen,
        filters,
        policy,
        named=explicit(protocol or []),
    ):
        wanted = Wanted(vocabulary.split(split) if split else None, ignore_no_interaction, per_class)
        rows += tally_rows(tally, vocabulary, wanted, resampling, settings=settings, tags=tags)
    policy.report()
    with open_output(output) as write:
        write(render(rows, output_format))
