"""`hoicli diagnose`: the type of every error, and what fixing each type would give."""

from __future__ import annotations

from hoicli.commands import choices, options
from hoicli.commands.drawing import Drawing
from hoicli.commands.manual import command
from hoicli.commands.options import flag, option
from hoicli.errors import UsageError
from hoicli.io.messages import note
from hoicli.io.outputs import open_output
from hoicli.io.progress import READING, READING_TRUTH, Job
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load


@command(
    reads="predictions with --gt, or match records",
    writes="result rows; with --emit predictions each prediction with its type",
    examples=[
        ("hoicli diagnose --gt gt.jsonl preds.jsonl", "counts of each type, and what fixing it would give"),
        (
            "hoicli diagnose --gt gt.jsonl --name old --name new --plot errors.png old.jsonl new.jsonl",
            "two models side by side, drawn",
        ),
        ("hoicli diagnose --gt gt.jsonl --slice people preds.jsonl", "the errors in crowds, and where one is alone"),
        ("hoicli diagnose --gt gt.jsonl --top 5 preds.jsonl", "the worst classes and images"),
        ("hoicli match --gt gt.jsonl --protocol diag preds.jsonl | hoicli diagnose", "from the lines of match"),
        (
            "hoicli diagnose --gt gt.jsonl --emit predictions preds.jsonl "
            "| jq -r '.predictions[].error' | sort | uniq -c",
            "every prediction's type, counted by other tools",
        ),
    ],
    see=["explore", "match", "eval", "pairstats"],
)
def diagnose(
    predictions: list[str] | None = options.MODELS,
    gt: str | None = options.GROUND_TRUTH,
    dataset: str | None = options.DATASET_OF_MATCHES,
    protocol: str | None = options.DIAGNOSED_PROTOCOL,
    name: list[str] | None = options.NAMES,
    as_released: bool = flag(
        "--as-released",
        "Repair, average and count as the released code does, to the digit but for entries listed twice (hico).",
    ),
    independent: bool = flag("--independent", "Apply each oracle on its own, as if there were no others."),
    progressive: str | None = option(
        None,
        "--progressive ORDER",
        "Add the mAP with one oracle after another applied: names with commas between, or all.",
        offer=choices.oracles,
        several=True,
    ),
    per_class: bool = flag("--per-class", "Add counts and oracles of every class."),
    top: int = option(0, "--top N", "Add the N classes and images that fixing would help most."),
    emit: str | None = option(
        None,
        "--emit predictions",
        "Instead of rows, write each prediction with its type and its repair.",
        one_of=("predictions",),
    ),
    plot: str | None = options.figure("Draw the deltas and the errors: .png, .svg or .pdf."),
    explain: bool = flag("--explain", "Say what each oracle fixes, and stop."),
    *,
    viewing: options.Viewing,
    filtering: options.Filtering,
    dumps: options.Dumps,
    drawing: Drawing,
    out: options.ResultRows,
) -> None:
    """Why a detector fails: how many errors of each type, and the mAP that fixing each type would give.

    Every prediction is a true positive, a duplicate, an interaction error (right boxes, wrong verb), an association
    error (right boxes that do not interact), an object box, human box or both boxes error. The deltas do not add up to
    100 - mAP: errors overlap. V-COCO is diagnosed person first, by scenario 1.
    """
    from hoicli.diagnosis.applied import explanation, progressive_order
    from hoicli.diagnosis.repairs import Reading
    from hoicli.diagnosis.run import check_reading, diagnose_models, diagnosing, emit_predictions
    from hoicli.evaluation.predictions import Predictions
    from hoicli.figures.diagnosis import plot_diagnosis

    if explain:
        if predictions or gt is not None:
            raise UsageError("--explain reads nothing: leave out PREDS and --gt, or --explain")
        print(explanation())
        return
    look = drawing.look(plot)
    paths = options.inputs(predictions, "PREDS")
    if emit and (gt is None or len(paths) != 1):
        raise UsageError("--emit needs --gt and one stream of predictions")
    if as_released and (independent or progressive is not None):
        raise UsageError("--as-released: the released code has neither --independent nor --progressive")
    if independent and progressive is not None:
        raise UsageError("--progressive: oracles that follow one another share their repairs; leave out --independent")
    unseen = {
        "--plot": plot,
        "--progressive": progressive,
        "--per-class": per_class,
        "--tag": out.tag,
    }
    if emit and any(unseen.values()):
        given = ", ".join(option for option, value in unseen.items() if value)
        raise UsageError(f"{given}: of the result rows, which --emit predictions does not write; leave one of them out")
    if independent and emit:
        raise UsageError("--emit predictions: shows the one repair of a ground truth; leave out --independent")
    options.at_least_zero("--top", top)
    reading: Reading = "released" if as_released else "independent" if independent else "shared"
    row = diagnosing([protocol] if protocol else [], dataset, reading)
    if row is not None:
        dataset = dataset or row.dataset
    policy, filters = out.policy(), filtering.filters()
    opening = dumps.opening(dataset, policy, within=dataset or "hico")
    models = Predictions.named(paths, options.separated(name), opening.predictions)
    tags = out.tags(*(["model"] if models[0].tagged else []), *viewing.tags())
    order = () if progressive is None else progressive_order(progressive)
    check_reading(load(dataset or "hico"), reading)
    if as_released and (viewing.iou or viewing.slice_):
        raise UsageError("--as-released: the released code has neither --iou nor --slice")
    truth = None if gt is None else Stream([gt], "ground truth", opening.truth)
    if emit and truth is not None:
        with open_output(out.output) as write:
            emit_predictions(
                write, truth, models[0], load(dataset or "hico"), filters, policy, reading, viewing.views, row
            )
        policy.report()
        return
    with Job("diagnose", READING_TRUTH + READING * len(models)):
        diagnosed = diagnose_models(
            models,
            truth,
            dataset,
            filters,
            policy,
            reading=reading,
            asked=viewing.views,
            protocol=row,
        )
    rows = [row for model in diagnosed for row in model.rows(per_class=per_class, top=top, order=order, tags=tags)]
    policy.report()
    if plot is not None:
        drawn = [row | {"model": model.label} for model in diagnosed for row in model.plotted]
        plot_diagnosis(drawn, {model.label: model.composition() for model in diagnosed}, plot, look)
    out.write(rows)
    if out.notation() == "table" and plot is None:  # the figure's note says it
        note("the deltas do not add up to 100 - mAP: errors overlap (--explain says what each oracle fixes)")
