"""`hoicli confusion`: which verb or object is taken for which."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.drawing import Drawing
from hoicli.commands.manual import command
from hoicli.commands.options import option
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load


@command(
    reads="predictions with --gt, or match records",
    writes="result rows: number, share, weight and cost of each confusion",
    examples=[
        ("hoicli confusion --gt gt.jsonl preds.jsonl", "the twenty of each kind that cost most mAP"),
        ("hoicli confusion --gt gt.jsonl --top all --plot confusion.png preds.jsonl", "all of them, and a heat map"),
        (
            "hoicli confusion --gt gt.jsonl preds.jsonl "
            "| jq -c 'select(.metric == \"confusion\" and .truth and .predicted)'",
            "names taken for names alone",
        ),
        ("hoicli match --gt gt.jsonl --protocol diag preds.jsonl | hoicli confusion", "verbs, from the lines of match"),
    ],
    see=["diagnose", "curves"],
)
def confusion(
    predictions: list[str] | None = options.MODELS,
    gt: str | None = options.GROUND_TRUTH,
    dataset: str | None = options.DATASET_OF_MATCHES,
    protocol: str | None = options.DIAGNOSED_PROTOCOL,
    name: list[str] | None = options.NAMES,
    top: str = option(
        "20",
        "--top N",
        "Of names taken for names, and of nothing annotated or said, write the N that cost most mAP, or all (all).",
    ),
    plot: str | None = options.figure("Draw the confusions as a heat map: .png, .svg or .pdf."),
    *,
    viewing: options.Viewing,
    filtering: options.Filtering,
    dumps: options.Dumps,
    drawing: Drawing,
    out: options.ResultRows,
) -> None:
    """Which verb is taken for which on right pairs, which object for which on right boxes, and what each costs.

    Every annotated triplet counts once: as the verb that comes first for its pair, other true verbs set aside. A verb
    that is right for the pair is never a confusion. Every annotated pair counts once by its object's label. Nothing
    annotated, or nothing said, is null. The cost is the mAP gained if that confusion alone were repaired, as the
    oracles of hoicli diagnose repair; costs overlap and do not add up.
    """
    from hoicli.diagnosis.confusion_run import confused_models
    from hoicli.diagnosis.run import diagnosing
    from hoicli.evaluation.predictions import Predictions
    from hoicli.evaluation.run import read_truth
    from hoicli.evaluation.selection import protocol_of
    from hoicli.figures.confusion import Panel, plot_confusion
    from hoicli.figures.shown import caveats_of
    from hoicli.records.results import Row

    most, look = options.top_of(top), drawing.look(plot)
    row = diagnosing([protocol] if protocol else [], dataset, "shared")
    if row is not None:
        dataset = dataset or row.dataset
    policy, filters = out.policy(), filtering.filters()
    opening = dumps.opening(dataset, policy, within=dataset or "hico")
    models = Predictions.named(options.inputs(predictions, "PREDS"), options.separated(name), opening.predictions)
    tags = out.tags(*(["model"] if models[0].tagged else []), *viewing.tags())
    vocabulary = load(dataset or models[0].dataset or "hico")
    views = viewing.views(vocabulary)
    truth = None
    if gt is not None:
        lines = Stream([gt], "ground truth", opening.truth)
        truth = read_truth(lines, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    rows: list[Row] = []
    panels: list[Panel] = []
    for model in confused_models(models, truth, vocabulary, row or protocol_of(vocabulary), filters, policy, views):
        cells = model.cells()
        rows += model.rows(cells, top=most, tags=tags)
        if plot is not None:
            panels += model.panels(cells)
    policy.report()
    if plot is not None:
        plot_confusion(panels, plot, look, caveats=caveats_of(rows))
    out.write(rows)
