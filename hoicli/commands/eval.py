"""`hoicli eval`: the mAP of a prediction dump by the published protocols."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.manual import command
from hoicli.commands.options import flag, option
from hoicli.errors import UsageError
from hoicli.io.progress import READING, READING_TRUTH, Job
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load


@command(
    reads="predictions with --gt, or match records",
    writes="result rows: mAP and mean_max_recall of every subset",
    examples=[
        ("hoicli eval --gt gt.jsonl preds.jsonl", "every protocol of HICO-DET, side by side"),
        ("hoicli eval --gt gt.jsonl --protocol hico,hico-ko --split rf-uc preds.jsonl", "a zero-shot split"),
        ("hoicli eval --gt gt.jsonl --protocol hico --bootstrap 1000 preds.jsonl", "how sure the numbers are"),
        (
            "hoicli eval --gt gt.jsonl --protocol hico --iou 0.5:0.95:0.05 --slice objects preds.jsonl",
            "at COCO's thresholds, and for small, medium and large objects",
        ),
        ("hoicli eval --gt gt.jsonl --protocol hico --mpd preds.jsonl", "how much worse a verb is with other objects"),
        ("hoicli match --gt gt.jsonl preds.jsonl | hoicli eval", "the same numbers from a match stream"),
        ("hoicli eval --explain --protocol upt", "what a protocol does, exactly"),
        ("hoicli eval --explain --protocol upt --format jsonl", "its row, to make a protocol of your own from"),
    ],
    see=["match", "compare", "diagnose"],
)
def evaluate(
    predictions: list[str] | None = options.PREDICTIONS,
    gt: str | None = options.GROUND_TRUTH,
    protocol: list[str] | None = options.PROTOCOLS,
    dataset: str | None = options.DATASET_OF_PROTOCOLS,
    split: str | None = options.SPLIT,
    per_class: bool = flag("--per-class", "Add AP and max_recall of every interaction."),
    ignore_no_interaction: bool = options.IGNORE_NO_INTERACTION,
    mpd: bool = flag(
        "--mpd",
        "Add mPD (mean performance degradation, OC-Immunity): how far the AP of a verb's objects stays below that of "
        "the best, on average; 0 is no bias towards objects.",
    ),
    bootstrap: int | None = options.bootstrap("every mAP"),
    seed: int = options.SEED,
    count_images: str | None = options.COUNT_IMAGES,
    grid: str | None = option(
        None,
        "--grid NAME",
        "The recall values of 11-point AP, where not the protocol's own: arange, linspace or tenths.",
        one_of="evaluation.grids:GRIDS",
    ),
    explain: bool = flag("--explain", "Say in a few lines what each protocol does, and stop."),
    *,
    viewing: options.Viewing,
    filtering: options.Filtering,
    dumps: options.Dumps,
    out: options.ResultRows,
) -> None:
    """The mAP of a dump by each published protocol: predictions with --gt, or the lines of hoicli match.

    Values are in percent; every row carries the signature of the settings that made it. Without --protocol all
    protocols of the dataset are printed side by side. An interval (--bootstrap) says how far the mAP of another test
    set of this size may be from this one: it is the spread over resampled test sets.
    """
    from hoicli.evaluation.explanation import explained
    from hoicli.evaluation.predictions import Predictions
    from hoicli.evaluation.protocol_files import chosen_protocols, explicit, protocol_record
    from hoicli.evaluation.rows import Wanted, tally_rows
    from hoicli.evaluation.run import tallies
    from hoicli.evaluation.selection import adjusted
    from hoicli.records.results import Row
    from hoicli.resampling.draws import Resampling
    from hoicli.resampling.rounds import RESAMPLING

    if explain:
        if predictions or gt is not None:
            raise UsageError("--explain reads nothing: leave out PREDS and --gt, or --explain")
        names = ",".join(protocol or ["all"]).split(",")
        rows_of = (chosen_protocols([name], dataset) for name in names)
        explain_rows = [row for rows in rows_of for row in adjusted(rows, images=count_images, grid=grid)]
        if out.format_ == "jsonl":
            out.write([protocol_record(row) for row in explain_rows])
        else:
            print("\n".join(map(explained, explain_rows)))
        return
    chosen = adjusted(chosen_protocols(protocol or [], dataset), images=count_images, grid=grid)
    known = load(dataset or chosen[0].dataset)
    views = viewing.views(known)
    if split:
        known.split(split)  # an unknown split fails before the work
    tags, policy, filters = out.tags(*viewing.tags()), out.policy(), filtering.filters()
    resampling = Resampling.asked(bootstrap, seed)
    opening = dumps.opening(dataset, policy, within=chosen[0].dataset)
    rows: list[Row] = []
    views_of_each = max(1, len(views.thresholds.values))
    rounds = RESAMPLING * (bootstrap or 0) * len(chosen) * views_of_each
    with Job("eval", READING_TRUTH + READING + rounds):
        for tally, vocabulary, settings in tallies(
            Predictions(options.inputs(predictions, "PREDS"), opening.predictions),
            None if gt is None else Stream([gt], "ground truth", opening.truth),
            chosen,
            filters,
            policy,
            named=explicit(protocol or []),
            views=views,
            vocabulary=known,
        ):
            wanted = Wanted(
                vocabulary.split(split) if split else None, ignore_no_interaction, per_class, views.of_classes, mpd
            )
            rows += tally_rows(tally, vocabulary, wanted, resampling, settings=settings, tags=tags)
    policy.report()
    out.write(rows)
