"""`hoicli shoe-eval`: open-vocabulary predictions, scored by how close in meaning they are."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import OUTPUT, READ
from hoicli.commands.common import (
    Format,
    GroundTruthOption,
    OnError,
    Output,
    Predictions,
    Tag,
    WordNet,
    inputs,
    skips,
)
from hoicli.commands.manual import page

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    cls=page(
        reads="predictions, ground truth with --gt, similarities with --sim",
        writes="result rows; with --explain a line for every match and miss",
        examples=[
            ("hoicli shoe-sim --backend wordnet:wup --gt gt.jsonl preds.jsonl > sim.jsonl", "how alike the labels are"),
            ("hoicli shoe-eval --gt gt.jsonl --sim sim.jsonl preds.jsonl", "soft mAP and mF1"),
            (
                "hoicli shoe-eval --gt gt.jsonl --sim sim.jsonl --min-rank 0.5 --explain why.jsonl preds.jsonl",
                "of the better half of all predictions (a reading), with reasons",
            ),
        ],
        see=["shoe-sim", "synsets", "agree"],
    )
)
def shoe_eval(
    predictions: Predictions = None,
    gt: GroundTruthOption = None,
    sim: Annotated[
        list[str] | None,
        typer.Option("--sim", metavar="FILE", help="Similarities of senses, as hoicli shoe-sim writes; repeatable."),
        READ,
    ] = None,
    dataset: Annotated[
        str,
        typer.Option(
            "--dataset",
            metavar="NAME",
            help="Whose table gives ground truth its senses: hico, vcoco or swig.",
            autocompletion=choices.datasets,
        ),
    ] = "hico",
    wordnet: WordNet = None,
    delta: Annotated[
        float,
        typer.Option(
            "--delta",
            metavar="D",
            help="An unmatched prediction counts against the most similar class from this similarity on.",
        ),
    ] = 0.5,
    against: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="WHERE",
            help="That class is sought in the prediction's image (the paper's algorithms) or the dataset (its figure).",
            autocompletion=choices.against,
        ),
    ] = "image",
    combine: Annotated[
        str,
        typer.Option(
            "--combine",
            metavar="HOW",
            help="Verb and object similarity become one by mean, geometric or min.",
            autocompletion=choices.combinations,
        ),
    ] = "mean",
    verb_weight: Annotated[
        float, typer.Option("--verb-weight", metavar="W", help="The verb's weight in it; the object has 1 - W.")
    ] = 0.5,
    ap: Annotated[
        str,
        typer.Option(
            "--ap",
            metavar="AREA",
            help="Area under precision and recall: envelope (best precision at a recall or beyond), 11-point, or step "
            "(no envelope).",
            autocompletion=choices.areas,
        ),
    ] = "envelope",
    min_score: Annotated[
        float | None,
        typer.Option("--min-score", metavar="S", help="mF1 and miss rates: only predictions that score at least S."),
    ] = None,
    min_rank: Annotated[
        float | None,
        typer.Option(
            "--min-rank",
            metavar="R",
            help="mF1 and miss rates: only predictions that at least a share R of all do not outscore (0.5: the better "
            "half). A reading: the paper's confidence score rank is not defined, and its Table 2 is not of this one.",
        ),
    ] = None,
    single_hoi: Annotated[
        bool,
        typer.Option(
            "--single-hoi",
            help="Only images with one human-object pair, boxes of one label that overlap at IoU > 0.8 being one (the "
            "supplement's Table 2).",
        ),
    ] = False,
    per_class: Annotated[bool, typer.Option("--per-class", help="Adds rows per class: soft_ap, f1 and ap.")] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="FILE",
            help="Write why: a line per ground truth and per unmatched prediction, with senses and similarities.",
        ),
        OUTPUT,
    ] = None,
    tag: Tag = None,
    format_: Format = "auto",
    on_error: OnError = "stop",
    output: Output = "-",
) -> None:
    """Soft mAP and mF1 of open-vocabulary predictions: the SHOE metric.

    A prediction on the right boxes is worth how similar its verb and object are to the ground truth's, from 0 to 1.
    soft_map ranks by score; mf1, gt_miss_rate and prediction_miss_rate need no scores; map is plain mAP by equal
    spelling, with the same boxes and area. Values are in percent. Labels are free text, and a label may have any of its
    WordNet senses; `verb_synset` and `synsets` in a record name one.
    """
    from hoicli.errors import UsageError
    from hoicli.evaluation.predictions import Predictions
    from hoicli.io.outputs import open_output
    from hoicli.io.streams import Stream
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.parsing import dump
    from hoicli.records.results import parse_tags
    from hoicli.shoe.explanation import explain as explained
    from hoicli.shoe.matching import ShoeSettings
    from hoicli.shoe.rows import shoe_rows
    from hoicli.shoe.run import run
    from hoicli.shoe.scores import scores_of
    from hoicli.tables.notations import chosen_format, render
    from hoicli.wordnet.selection import choose, in_use

    if gt is None:
        raise UsageError("shoe-eval: give the ground truth with --gt FILE")
    if not sim:
        raise UsageError("shoe-eval: give similarities with --sim FILE; hoicli shoe-sim makes them")
    paths = inputs(predictions, "PREDS")
    settings = ShoeSettings(delta=delta, verb_weight=verb_weight, combine=combine, area=ap, against=against)
    output_format = chosen_format(format_, output)
    tags = parse_tags(tag or [])
    policy = ErrorPolicy(skip=skips(on_error))
    choose(wordnet)
    done = run(
        Predictions(paths),
        Stream([gt], "ground truth"),
        Stream(sim, "similarities"),
        settings,
        policy,
        dataset=dataset,
        min_score=min_score,
        min_rank=min_rank,
        single_hoi=single_hoi,
    )
    scores = scores_of(done.shoe, done.matching)
    policy.report()
    if explain is not None:
        with open_output(explain) as write:
            filters = {key: done.signature[key] for key in ("minscore", "minrank") if key in done.signature}
            for record in explained(done.shoe, done.matching, **filters):
                write(dump(record))
    with open_output(output) as write:
        rows = shoe_rows(scores, subset=done.subset, settings=done.signature | in_use(), tags=tags, per_class=per_class)
        write(render(rows, output_format))
