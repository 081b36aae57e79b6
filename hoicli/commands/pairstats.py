"""`hoicli pairstats`: pair localisation and interaction classification, each on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import FIGURE, READ
from hoicli.commands.common import (
    AllowUncounted,
    Alpha,
    Beta,
    Format,
    GroundTruthOption,
    OnError,
    Output,
    Tag,
    inputs,
    skips,
)
from hoicli.commands.manual import page

if TYPE_CHECKING:
    from hoicli.evaluation.ground_truth import GroundTruth
    from hoicli.pairs.statistics import PairStatistics
    from hoicli.records.results import Row

VERB_SCORES = ("verb", "triplet")
"""What `--verb-score` takes."""

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    cls=page(
        reads="predictions, and ground truth with --gt",
        writes="result rows",
        examples=[
            ("hoicli pairstats --gt gt.jsonl preds.jsonl", "how well pairs are found and told apart"),
            ("hoicli pairstats --gt gt.jsonl --nms 0.3,0.5,0.7 --format md preds.jsonl", "the same after pair NMS"),
            (
                "hoicli pairstats --gt gt.jsonl --verb-score triplet old.jsonl new.jsonl",
                "two models whose dumps have no verb_score",
            ),
            (
                "hoicli convert pairs.pkl | hoicli pairstats --gt gt.jsonl --as-released",
                "Diag-HOI's pairs and Diag-HOI's figures",
            ),
        ],
        see=["diagnose", "convert"],
    )
)
def pairstats(
    predictions: Annotated[
        list[str] | None,
        typer.Argument(metavar="PREDS...", help="Prediction streams, each a model of its own; - or nothing is stdin."),
        READ,
    ] = None,
    gt: GroundTruthOption = None,
    dataset: Annotated[
        str,
        typer.Option(
            "--dataset",
            metavar="NAME",
            help="The benchmark: hico or vcoco.",
            autocompletion=choices.one_of("hico", "vcoco"),
        ),
    ] = "hico",
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="NAME", help="A model's name, in PREDS' order; repeatable."),
    ] = None,
    verb_score: Annotated[
        str,
        typer.Option(
            "--verb-score",
            metavar="|".join(VERB_SCORES),
            help="What interaction mAP and negative AP go by: verb_score, or the triplet's score, which has the boxes "
            "in it.",
            autocompletion=choices.one_of(*VERB_SCORES),
        ),
    ] = "verb",
    one_to_one: Annotated[
        bool,
        typer.Option(
            "--one-to-one",
            help="A detected pair finds one true pair at most, the best detected first (the Diag-HOI paper); "
            "otherwise all it matches (its code).",
        ),
    ] = False,
    as_released: Annotated[
        bool,
        typer.Option(
            "--as-released",
            help="Diag-HOI's code to the digit: negative AP over 110 recall values (at best 91.8), verbs without a "
            "true positive and images without predictions left out as it does.",
        ),
    ] = False,
    nms: Annotated[
        str | None,
        typer.Option(
            "--nms",
            metavar="T,T,...",
            help="Rows after pair NMS too: a pair goes, with its triplets, when IoU_subject^a * IoU_object^b with a "
            "better one of its object label exceeds T.",
        ),
    ] = None,
    nms_alpha: Alpha = 1.0,
    nms_beta: Beta = 0.5,
    allow_uncounted: AllowUncounted = False,
    det_threshold: Annotated[
        str | None,
        typer.Option(
            "--det-threshold",
            metavar="S,S,...",
            help="Rows for only the pairs whose boxes both score at least S too; needs the records' scores.",
        ),
    ] = None,
    tag: Tag = None,
    format_: Format = "auto",
    on_error: OnError = "stop",
    output: Output = "-",
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Draw recall against precision over the sweep."), FIGURE
    ] = None,
) -> None:
    """How well humans and objects are paired, and how well their pairs are told apart.

    Pairs an image, pair recall and pair precision are of the pairs a record lists (`pairs`), else of the distinct ones
    of its triplets. Negative AP says whether pairs that do nothing score low, beside the share of such pairs;
    interaction mAP ranks verbs on correctly localised pairs; both need scores without the boxes in them
    (--verb-score). mAP is protocol diag's (V-COCO: vcoco-s1's). All of it for full, rare and non_rare, but negative AP,
    which only full has; V-COCO, whose pairs belong to people first, has full alone, and its interaction mAP is over
    action-roles. Values are in percent (pairs_per_image: pairs). Each value of --nms and of --det-threshold adds rows
    beside those of all pairs.
    """
    from functools import partial

    from hoicli.diagnosis.run import Model
    from hoicli.errors import UsageError
    from hoicli.evaluation.coverage import check_counted, served
    from hoicli.evaluation.filters import Filters
    from hoicli.evaluation.protocols import protocol_of
    from hoicli.evaluation.run import read_truth
    from hoicli.figures.pairs import plot_pairs
    from hoicli.io.outputs import open_output
    from hoicli.io.streams import Stream
    from hoicli.pairs.rows import pair_rows
    from hoicli.pairs.settings import sweeps
    from hoicli.pairs.statistics import NOT_RELEASED, pair_statistics
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.results import parse_tags
    from hoicli.tables.notations import chosen_format, render
    from hoicli.vocabulary.datasets import load

    if gt is None:
        raise UsageError("pairstats: give the ground truth with --gt FILE")
    paths = inputs(predictions, "PREDS")
    if verb_score not in VERB_SCORES:
        raise UsageError(f"--verb-score {verb_score}: choose {' or '.join(VERB_SCORES)}")
    models = Model.named(paths, name or [])
    output_format = chosen_format(format_, output)
    tags = parse_tags(tag or [], taken=("model",) if models[0].tagged else ())
    settings = sweeps(
        _numbers("--nms", nms), _numbers("--det-threshold", det_threshold), alpha=nms_alpha, beta=nms_beta
    )
    policy = ErrorPolicy(skip=skips(on_error))
    vocabulary = load(dataset)
    protocol = protocol_of(vocabulary)
    if as_released and protocol.person_first:
        raise UsageError(NOT_RELEASED)
    truth = read_truth(Stream([gt], "ground truth"), vocabulary, policy, allow_uncounted=allow_uncounted)
    served(truth, [protocol])
    allowance = Filters(allow_uncounted=allow_uncounted).allowance()
    measure = partial(
        pair_statistics, one_to_one=one_to_one, as_released=as_released, triplet_scores=verb_score == "triplet"
    )
    rows: list[Row] = []
    for model in models:
        statistics = measure(model.stream.unmatched("pairstats"), truth, settings, policy)
        check_counted(statistics.tally, vocabulary, model.stream.name, allowed=allow_uncounted)
        rows += pair_rows(statistics, settings=allowance, tags={"model": model.name, **tags} if model.tagged else tags)
        _tell(statistics, truth, f"{model.name}: " if len(models) > 1 else "")
    policy.report()
    with open_output(output) as write:
        write(render(rows, output_format))
    if plot is not None:
        plot_pairs(rows, plot)


def _tell(statistics: PairStatistics, truth: GroundTruth, whose: str) -> None:
    """Say on stderr what a table of the rows does not: images without predictions, and why a metric is empty."""
    from hoicli.io.messages import note
    from hoicli.pairs.rows import METRICS

    total = len(truth.scenes.image_ids)
    if without := total - statistics.images:
        fate = "left out, as released" if statistics.as_released else "their pairs are missed"
        note(f"{whose}{without:,} of {total:,} ground-truth images have no predictions: {fate}")
    for metric, reason in statistics.reasons().items():
        advice = "" if "verb_score" not in reason else "; --verb-score triplet puts the triplet's score in its place"
        note(f"{whose}no {METRICS[metric]}: {reason}{advice}")


def _numbers(option: str, text: str | None) -> list[float]:
    """A comma-separated list of finite numbers; raises `UsageError` that quotes what is none."""
    from math import isfinite

    from hoicli.errors import UsageError

    numbers = []
    for part in (text or "").split(",") if text is not None else ():
        try:
            number = float(part)
        except ValueError:
            number = float("nan")
        if not isfinite(number):
            raise UsageError(f"{option} {text}: {part.strip()!r} is no number; give numbers with commas between")
        numbers.append(number)
    return numbers
