"""`hoicli curves`: precision and recall against the score threshold, and calibration."""

from __future__ import annotations

from hoicli.commands import choices, options
from hoicli.commands.checks import Count
from hoicli.commands.drawing import Drawing
from hoicli.commands.manual import command
from hoicli.commands.options import flag, option
from hoicli.errors import UsageError
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load


@command(
    reads="predictions with --gt, or match records",
    writes="result rows: points of curves, the best threshold, and calibration",
    examples=[
        ("hoicli curves --gt gt.jsonl preds.jsonl", "all classes, rare and non-rare ones"),
        ("hoicli curves --gt gt.jsonl --plot curves.png old.jsonl new.jsonl", "two models, drawn"),
        (
            "hoicli curves --gt gt.jsonl --verb ride --interaction 'ride bicycle' --threshold 0.3 preds.jsonl",
            "one verb, one class, and what a threshold of 0.3 keeps",
        ),
        (
            "hoicli curves --gt gt.jsonl --per-class preds.jsonl | jq -c 'select(.metric == \"best_f1\" and .verb)'",
            "the best threshold of every class",
        ),
        ("hoicli match --gt gt.jsonl --protocol hico preds.jsonl | hoicli curves", "from the lines of match"),
    ],
    see=["eval", "diagnose", "confusion"],
)
def curves(
    predictions: list[str] | None = options.MODELS,
    gt: str | None = options.GROUND_TRUTH,
    dataset: str | None = options.DATASET_OF_MATCHES,
    protocol: str | None = option(
        None,
        "--protocol NAME",
        "Whose true positives count: the dataset's main one (default), another, or a file.",
        offer=choices.single_protocols,
    ),
    name: list[str] | None = options.NAMES,
    per_class: bool = flag("--per-class", "Add the curve of every class."),
    verb: list[str] | None = option(
        None, "--verb NAME", "Add the classes of a verb; repeatable, or several with commas."
    ),
    object_: list[str] | None = option(
        None, "--object NAME", "Add the classes of an object; repeatable, or several with commas."
    ),
    interaction: list[str] | None = option(
        None,
        "--interaction NAME",
        "Add the curve of one class: 'ride bicycle', in V-COCO 'ride instr'; repeatable, or several with commas.",
    ),
    threshold: str | None = option(
        None, "--threshold T,T,...", "Add precision, recall and F1 at these scores, whatever the curve's own points."
    ),
    points: str = option(
        "100",
        "--points N",
        "Write the points that decide precision at N + 1 evenly spaced recalls, those of as many thresholds, or all.",
    ),
    bins: int = option(15, "--bins N", "Bins of the calibration, of equal width from 0 to 1.", mark=Count(1, 1000)),
    plot: str | None = options.figure("Draw the curves and the calibration: .png, .svg or .pdf."),
    *,
    viewing: options.Viewing,
    filtering: options.Filtering,
    dumps: options.Dumps,
    drawing: Drawing,
    out: options.ResultRows,
) -> None:
    """Precision and recall with the score threshold, the threshold of the best F1, and the calibration of the scores.

    Curves are of all classes and of every subset: pooled, since one threshold serves all of them, and as the mean of
    the classes' curves, whose own mean over recalls is mAP. Single classes come with --per-class or by name. Of
    the points that another beats in precision and in what it finds, only some are there, evenly by threshold. ECE
    compares scores with the share of true positives among them.
    """
    from hoicli.diagnosis.curve_rows import Asked
    from hoicli.diagnosis.curve_run import curve_rows
    from hoicli.evaluation.predictions import Predictions
    from hoicli.evaluation.protocol_files import chosen_protocols, explicit
    from hoicli.evaluation.run import read_truth
    from hoicli.evaluation.selection import main_protocol
    from hoicli.evaluation.tally import class_vocabulary
    from hoicli.figures.curves import plot_curves
    from hoicli.records.results import Row

    look, given = drawing.look(plot), [protocol] if protocol else []
    rows_named = chosen_protocols(given, dataset) if given else []
    if len(rows_named) > 1:
        raise UsageError(f"--protocol {protocol}: curves are of one protocol; name one")
    asked = Asked(
        points=_points(points),
        bins=bins,
        thresholds=tuple(dict.fromkeys(options.numbers("--threshold", threshold))),
        per_class=per_class,
        verbs=tuple(dict.fromkeys(options.separated(verb))),
        objects=tuple(dict.fromkeys(options.separated(object_))),
        interactions=tuple(dict.fromkeys(options.separated(interaction))),
    )
    policy, filters = out.policy(), filtering.filters()
    of_named = rows_named[0].dataset if rows_named else None
    opening = dumps.opening(dataset, policy, within=dataset or of_named or "hico")
    models = Predictions.named(options.inputs(predictions, "PREDS"), options.separated(name), opening.predictions)
    tags = out.tags(*(["model"] if models[0].tagged else []), *viewing.tags())
    vocabulary = load(dataset or of_named or models[0].dataset or "hico")
    chosen = rows_named or [main_protocol(vocabulary)]
    asked.check(class_vocabulary(vocabulary, chosen[0]))
    views = viewing.views(vocabulary)
    truth = None
    if gt is not None:
        lines = Stream([gt], "ground truth", opening.truth)
        truth = read_truth(lines, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    rows: list[Row] = []
    for model in models:
        rows += curve_rows(
            model,
            truth,
            chosen,
            vocabulary,
            filters,
            policy,
            asked,
            named=explicit(given),
            views=views,
            tags={"model": model.model, **tags} if model.tagged else tags,
        )
    policy.report()
    if plot is not None:
        plot_curves(rows, plot, look)
    out.write(rows)


def _points(text: str) -> int | None:
    """The value of --points, None for all; raises `UsageError` for anything but a number or all."""
    if text.strip() == "all":
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= 10_000):
        raise UsageError(f"--points {text}: give a whole number from 1 to 10,000, or all")
    return int(text)
