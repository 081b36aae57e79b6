"""`hoicli pairstats`: pair localisation and interaction classification, measured separately."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hoicli.commands import options
from hoicli.commands.drawing import Drawing
from hoicli.commands.manual import command
from hoicli.commands.options import flag, option
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.evaluation.ground_truth import GroundTruth
    from hoicli.pairs.statistics import PairStatistics
    from hoicli.records.results import Row


@command(
    reads="predictions, and ground truth with --gt",
    writes="result rows",
    examples=[
        ("hoicli pairstats --gt gt.jsonl preds.jsonl", "how well pairs are found and told apart"),
        ("hoicli pairstats --gt gt.jsonl --nms-sweep 0.3,0.5,0.7 --format md preds.jsonl", "the same after pair NMS"),
        (
            "hoicli pairstats --gt gt.jsonl --verb-score triplet old.jsonl new.jsonl",
            "two models whose dumps have no verb_score",
        ),
        (
            "hoicli convert pairs.pkl | hoicli pairstats --gt gt.jsonl --as-released",
            "Diag-HOI's pairs and Diag-HOI's figures",
        ),
        (
            "hoicli pairstats --gt gt.jsonl --interactiveness preds.jsonl",
            "how well the pairs that interact are found, whatever they do",
        ),
    ],
    see=["diagnose", "convert"],
)
def pairstats(
    predictions: list[str] | None = options.MODELS,
    gt: str | None = options.GROUND_TRUTH,
    dataset: str | None = options.dataset(f"{options.A_DATASET}.", None),
    name: list[str] | None = options.NAMES,
    verb_score: str = option(
        "verb",
        "--verb-score",
        "The score for interaction mAP and negative AP: verb_score, or the triplet's, which includes the boxes'.",
        one_of=("verb", "triplet"),
    ),
    one_to_one: bool = flag(
        "--one-to-one",
        "A detected pair finds at most one true pair, the best detected first (the Diag-HOI paper); without it, all "
        "that it matches (the released code).",
    ),
    as_released: bool = flag(
        "--as-released",
        "Diag-HOI's code to the digit: negative AP over 110 recall values (at best 91.8), verbs without a true "
        "positive and images without predictions left out as it does.",
    ),
    interactiveness: bool = flag(
        "--interactiveness",
        "Add interactiveness AP (TIN++, Body-Part Map): the AP of pairs that interact, one class for all, by boxes "
        "alone.",
    ),
    nms_sweep: str | None = option(
        None,
        "--nms-sweep T,T,...",
        "Adds rows after pair NMS, for each threshold T: a pair goes, with its triplets, when IoU_subject^a * "
        "IoU_object^b with a better one of its object label exceeds T.",
    ),
    nms_alpha: float = options.NMS_ALPHA,
    nms_beta: float = options.NMS_BETA,
    allow_uncounted: bool = options.ALLOW_UNCOUNTED,
    det_threshold: str | None = option(
        None,
        "--det-threshold S,S,...",
        "Adds rows of only the pairs whose boxes both score at least S, for each S; needs the records' scores.",
    ),
    plot: str | None = options.figure("Draw recall against precision over the sweep."),
    *,
    dumps: options.Dumps,
    drawing: Drawing,
    out: options.ResultRows,
) -> None:
    """How well humans and objects are paired, and how well their pairs are told apart.

    Pairs per image, pair recall and pair precision count the pairs that a record lists (`pairs`), else the distinct
    pairs of its triplets. Negative AP says whether pairs that do nothing score low, beside the share of such pairs;
    interaction mAP ranks verbs on correctly localised pairs; both need scores without the boxes in them
    (--verb-score). mAP is protocol diag's (V-COCO: vcoco-s1's). All of it for full, rare and non_rare, but negative AP,
    which only full has; V-COCO, whose pairs belong to people first, has full alone, and its interaction mAP is over
    action-roles. Values are in percent (pairs_per_image: pairs). Each value of --nms-sweep and of --det-threshold adds
    rows beside those of all pairs.
    """
    from hoicli.evaluation.coverage import check_counted, served
    from hoicli.evaluation.predictions import Predictions
    from hoicli.evaluation.run import read_truth
    from hoicli.evaluation.selection import protocol_of
    from hoicli.figures.pairs import plot_pairs
    from hoicli.pairs.rows import pair_rows
    from hoicli.pairs.settings import sweeps
    from hoicli.pairs.statistics import not_released, pair_statistics

    gt, look = options.required(gt, "pairstats"), drawing.look(plot)
    paths = options.inputs(predictions, "PREDS")
    policy, vocabulary = out.policy(), load(dataset or "hico")
    opening = dumps.opening(dataset, policy, within=dataset or "hico")
    models = Predictions.named(paths, options.separated(name), opening.predictions)
    tags = out.tags(*(["model"] if models[0].tagged else []))
    settings = sweeps(
        options.numbers("--nms-sweep", nms_sweep),
        options.numbers("--det-threshold", det_threshold),
        alpha=nms_alpha,
        beta=nms_beta,
    )
    protocol = protocol_of(vocabulary)
    if as_released and protocol.person_first:
        raise not_released()
    truth_lines = Stream([gt], "ground truth", opening.truth)
    truth = read_truth(truth_lines, vocabulary, policy, allow_uncounted=allow_uncounted)
    served(truth, [protocol])
    measure = partial(
        pair_statistics,
        one_to_one=one_to_one,
        as_released=as_released,
        triplet_scores=verb_score == "triplet",
        interactiveness=interactiveness,
    )
    rows: list[Row] = []
    for model in models:
        statistics = measure(model.unmatched("pairstats"), truth, settings, policy)
        check_counted(statistics.tally, vocabulary, model.name, allowed=allow_uncounted)
        whose = {"model": model.model, **tags} if model.tagged else tags
        rows += pair_rows(statistics, settings=statistics.tally.leave, tags=whose)
        _tell(statistics, truth, f"{model.model}: " if len(models) > 1 else "")
    policy.report()
    out.write(rows)
    if plot is not None:
        plot_pairs(rows, plot, look)


def _tell(statistics: PairStatistics, truth: GroundTruth, whose: str) -> None:
    """Say on stderr what the rows do not: how many images have no predictions, and why a metric is empty."""
    from hoicli.pairs.rows import METRICS

    total = len(truth.scenes.image_ids)
    if without := total - statistics.images:
        fate = "left out, as released" if statistics.as_released else "their pairs are missed"
        note(f"{whose}{without:,} of {total:,} ground-truth images have no predictions: {fate}")
    for metric, reason in statistics.reasons().items():
        advice = "" if "verb_score" not in reason else "; --verb-score triplet puts the triplet's score in its place"
        note(f"{whose}no {METRICS[metric]}: {reason}{advice}")
