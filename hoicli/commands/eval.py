"""`hoicli eval`: the published numbers of a prediction dump."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands.common import (
    NMS,
    Alpha,
    Beta,
    DatasetOfProtocols,
    Format,
    GroundTruthOption,
    OnError,
    Output,
    Predictions,
    Protocols,
    Tag,
    TopK,
    inputs,
    skips,
)

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    epilog="Example: hoicli eval --gt gt.jsonl --protocol hico,hico-ko --split rf-uc preds.jsonl; "
    "hoicli match --gt gt.jsonl preds.jsonl | hoicli eval"
)
def evaluate(
    predictions: Predictions = None,
    gt: GroundTruthOption = None,
    protocol: Protocols = None,
    dataset: DatasetOfProtocols = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            metavar="NAME",
            help="Adds unseen and seen: rare_first (rf-uc), non_rare_first (nf-uc), unseen_object (uo), "
            "unseen_verb (uv), uc0 to uc4.",
        ),
    ] = None,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Adds a row per interaction: AP and max_recall.")
    ] = False,
    ignore_no_interaction: Annotated[
        bool,
        typer.Option(
            "--ignore-no-interaction", help="Leave the no_interaction classes out of every mean (520 of 600)."
        ),
    ] = False,
    tag: Tag = None,
    top_k: TopK = None,
    nms: NMS = None,
    nms_alpha: Alpha = 1.0,
    nms_beta: Beta = 0.5,
    format_: Format = "auto",
    on_error: OnError = "stop",
    output: Output = "-",
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what the protocols do, in five lines each, and stop.")
    ] = False,
) -> None:
    """Every published mAP of a prediction dump: predictions with --gt, or the lines of hoicli match.

    Values are in percent; every row carries the signature of the settings that made it. Without --protocol all
    protocols of the dataset are printed side by side.
    """
    from hoicli.evaluation import means
    from hoicli.matching import Filters
    from hoicli.pairing import tallies
    from hoicli.protocols import protocols
    from hoicli.report.tables import chosen_format, render
    from hoicli.results import Row, class_rows, evaluation_rows, parse_tags
    from hoicli.scenes import ErrorPolicy
    from hoicli.streams import open_output
    from hoicli.vocabulary import load

    if explain:
        names = ",".join(protocol or ["all"]).split(",")
        print("\n".join(row.explain() for name in names for row in protocols([name], dataset)))
        return
    chosen = protocols(protocol or ["all"], dataset)
    output_format = chosen_format(format_, output)
    if split:
        load(chosen[0].dataset).split(split)  # a split there is not is said before the work
    tags = parse_tags(tag or [])
    policy = ErrorPolicy(skip=skips(on_error))
    filters = Filters.checked(top_k=top_k, nms=nms, nms_alpha=nms_alpha, nms_beta=nms_beta)
    rows: list[Row] = []
    for tally, vocabulary, settings in tallies(
        inputs(predictions, "PREDS"), gt, chosen, filters, policy, named=bool(protocol)
    ):
        settings |= {"data": vocabulary.name}
        split_name = vocabulary.split(split) if split else None
        if split_name:
            settings["split"] = split_name
        if ignore_no_interaction:
            settings["noint"] = "ignored"
        for row, results in tally.results(vocabulary):
            settings["protocol"] = row.name
            subsets = list(
                means(results, vocabulary, row, split=split_name, ignore_no_interaction=ignore_no_interaction)
            )
            rows += evaluation_rows(row, subsets, settings=settings, tags=tags)
            if per_class:
                rows += class_rows(row, results, vocabulary, settings=settings, tags=tags)
    policy.report()
    with open_output(output) as write:
        write(render(rows, output_format))
