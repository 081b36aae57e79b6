"""`hoicli compare`: whether one detector is better than another, by how much, and where."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hoicli.commands import choices, options
from hoicli.commands.checks import READ
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.commands.scoring import SIM, similarities
from hoicli.errors import UsageError
from hoicli.io.messages import note
from hoicli.io.progress import READING_TRUTH, Job
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.results import Row
    from hoicli.resampling.draws import Resampling
    from hoicli.shoe.settings import ShoeOptions


@command(
    reads="predictions, one stream for each model, and ground truth with --gt",
    writes="result rows: mAP with its interval, and differences with interval and p",
    examples=[
        ("hoicli compare --gt gt.jsonl preds.jsonl other.jsonl", "is other better than preds, and where"),
        (
            "hoicli compare --gt gt.jsonl --protocol upt --no-errors --name base,ours preds.jsonl other.jsonl",
            "another protocol, no error types, names of your own",
        ),
        ("hoicli compare --gt gt.jsonl --slice objects --no-errors preds.jsonl other.jsonl", "for small objects, too?"),
        (
            "hoicli compare --gt gt.jsonl --name base,base,ours,ours base1.jsonl base2.jsonl ours1.jsonl ours2.jsonl",
            "two models of two seeds each",
        ),
        (
            "hoicli compare --gt gt.jsonl --metric soft_map,mf1 --sim lexical preds.jsonl other.jsonl",
            "SHOE's metrics",
        ),
        (
            "hoicli compare --gt gt.jsonl --per-class --format csv -o classes.csv preds.jsonl other.jsonl",
            "every class, for a spreadsheet",
        ),
    ],
    see=["eval", "diagnose", "explore"],
)
def compare(
    predictions: list[str] | None = argument(
        None, "PREDS...", "Streams of predictions, one for each model or run: the baseline first.", mark=READ
    ),
    gt: str | None = options.GROUND_TRUTH,
    protocol: list[str] | None = option(
        None,
        "--protocol NAME",
        "As in eval. Without one: hico, vcoco-s1 or swig, by --dataset.",
        offer=choices.protocols,
        several=True,
    ),
    dataset: str | None = options.dataset(f"{options.A_DATASET}.", None),
    name: list[str] | None = option(
        None,
        "--name NAME",
        "The models' names, in the order of PREDS; repeatable, or several with commas. Streams of one name are runs of "
        "one model (seeds): their mean is compared.",
    ),
    split: str | None = options.SPLIT,
    ignore_no_interaction: bool = options.IGNORE_NO_INTERACTION,
    bootstrap: int = option(
        1000,
        "--bootstrap N",
        "How many resamples of the images, and how many swaps; 0: neither intervals nor p.",
        mark=options.ROUNDS_OR_NONE,
    ),
    seed: int = options.SEED,
    errors: bool = flag("--errors/--no-errors", "Compare the types of errors, too.", default=True),
    per_class: bool = flag("--per-class", "Show every class, not only the --top K."),
    top: int = option(10, "--top K", "Show the K classes of the smallest p, and the K images that changed most."),
    metric: list[str] | None = option(
        None,
        "--metric NAME",
        "SHOE's metrics in place of mAP, with shoe-eval's defaults, by --sim: soft_map, mf1, gt_miss_rate, "
        "prediction_miss_rate, map; several with commas.",
        offer="shoe.settings:METRICS",
        several=True,
    ),
    sim: list[str] | None = SIM,
    *,
    viewing: options.Viewing,
    filtering: options.Filtering,
    dumps: options.Dumps,
    out: options.ResultRows,
) -> None:
    """Is the difference between two detectors real, and where does it come from?

    The answer comes first, in words: above a table, and on stderr.
    Each row is a difference between the first stream and another: in the mAP of a subset, a class or a type of error.
    It has a 95 % interval over resampled images, and the chance of so large a difference between equally good
    detectors, by swapping their output at random (p) and by resampling (p_bootstrap).
    """
    from hoicli.comparison.run import compare as compared
    from hoicli.evaluation.predictions import Predictions
    from hoicli.evaluation.protocol_files import chosen_protocols, explicit
    from hoicli.evaluation.rows import Wanted
    from hoicli.evaluation.selection import main_protocol
    from hoicli.resampling.draws import Resampling
    from hoicli.shoe.settings import ShoeOptions

    paths = options.inputs(predictions, "two or more PREDS")
    gt = options.required(gt, "compare")
    if len(paths) < 2:
        raise UsageError("compare needs two or more streams of predictions: the baseline first")
    options.at_least_zero("--top", top)
    if metric:
        by_protocol = protocol or split or per_class or viewing.tags() or filtering.given()
        if by_protocol:
            raise UsageError(
                "--metric: SHOE has no protocols, splits, --iou, --slice or filters of compare's; leave them out"
            )
        asked = ShoeOptions(ignore_no_interaction=ignore_no_interaction)
        resampling = Resampling.checked(bootstrap, seed, or_none=True)
        tags, policy = out.tags("model", "baseline", *asked.tags), out.policy()
        _answer(_shoe(paths, gt, metric, sim, dataset, asked, name, dumps, policy, resampling, tags), out)
        return
    if sim:
        raise UsageError("--sim: goes with --metric, for example --metric soft_map,mf1")
    chosen = chosen_protocols(protocol or [main_protocol(load(dataset or "hico")).name], dataset)
    vocabulary = load(dataset or chosen[0].dataset)
    views = viewing.views(vocabulary)
    resampling = Resampling.checked(bootstrap, seed, or_none=True)
    wanted = Wanted(vocabulary.split(split) if split else None, ignore_no_interaction, per_class, views.of_classes)
    tags, policy = out.tags("model", "baseline", *viewing.tags()), out.policy()
    opening = dumps.opening(dataset, policy, within=chosen[0].dataset)
    models = Predictions.named(paths, options.separated(name), opening.predictions, runs=True)
    truth = Stream([gt], "ground truth", opening.truth)
    with Job("compare", READING_TRUTH):
        rows = list(
            compared(
                models, truth, vocabulary, chosen, filtering.filters(), policy, wanted, resampling,
                named=explicit(protocol) if protocol else None, errors=errors, top=top, tags=tags,
                views=views,
            )
        )  # fmt: skip
    policy.report()
    _answer(rows, out)


def _answer(rows: list[Row], out: options.ResultRows) -> None:
    """Write the rows, and what they say in words: above a table on a terminal, else on stderr."""
    from hoicli.comparison.answers import answers

    said = answers(rows)
    if out.notation() != "table" or out.output != "-" or not sys.stdout.isatty():
        for sentence in said:
            note(sentence)
    out.write(rows, above=said)


def _shoe(
    paths: list[str], gt: str, metric: list[str], sim: list[str] | None, dataset: str | None,
    asked: ShoeOptions, name: list[str] | None, dumps: options.Dumps, policy: ErrorPolicy, resampling: Resampling,
    tags: dict[str, str],
) -> list[Row]:  # fmt: skip
    """The rows of --metric."""
    from hoicli.comparison.shoe import compare_shoe
    from hoicli.evaluation.predictions import Predictions
    from hoicli.shoe.run import Evaluation
    from hoicli.shoe.settings import METRICS

    metrics = list(dict.fromkeys(options.separated(metric)))
    if unknown := [other for other in metrics if other not in METRICS]:
        raise UsageError(f"--metric {unknown[0]}: choose from {', '.join(METRICS)}")
    tables = similarities(sim, "compare --metric")
    opening = dumps.opening(dataset, policy, within=dataset or "hico")
    models = Predictions.named(paths, options.separated(name), opening.predictions)
    truth = Stream([gt], "ground truth", opening.truth)
    evaluation = Evaluation(truth, tables, asked, policy, dataset=dataset or "hico")
    named = [(model.model, model) for model in models]
    rows = list(compare_shoe(named, evaluation, metrics, resampling, tags))
    policy.report()
    return rows
