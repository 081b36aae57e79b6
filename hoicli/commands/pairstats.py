"""`hoicli pairstats`: pair localisation and interaction classification, each on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import FIGURE
from hoicli.commands.common import (
    Alpha,
    Beta,
    Format,
    GroundTruthOption,
    OnError,
    Output,
    Predictions,
    Tag,
    inputs,
    skips,
)
from hoicli.commands.manual import page

if TYPE_CHECKING:
    from hoicli.results import Row

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    cls=page(
        reads="predictions, and ground truth with --gt",
        writes="result rows",
        examples=[
            ("hoicli pairstats --gt gt.jsonl preds.jsonl", "how well pairs are found and told apart"),
            ("hoicli pairstats --gt gt.jsonl --nms 0.3,0.5,0.7 --format md preds.jsonl", "the same after pair NMS"),
            (
                "hoicli convert pairs.pkl | hoicli pairstats --gt gt.jsonl --as-released",
                "Diag-HOI's pairs and Diag-HOI's figures",
            ),
        ],
        see=["diagnose", "convert"],
    )
)
def pairstats(
    predictions: Predictions = None,
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
            help="Rows after pair NMS too: a pair goes when IoU_subject^a * IoU_object^b with a better one of its "
            "object label exceeds T.",
        ),
    ] = None,
    nms_alpha: Alpha = 1.0,
    nms_beta: Beta = 0.5,
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
    of its triplets. Negative AP says whether pairs that do nothing score low; interaction mAP ranks verbs on correctly
    localised pairs. All of it for full, rare and non_rare, but negative AP, which only full has; V-COCO, whose pairs
    belong to people first, has full alone, and its interaction mAP is over action-roles. Values are in percent
    (pairs_per_image: pairs). Each value of --nms and of --det-threshold adds rows beside those of all pairs.
    """
    from hoicli.diagnosis.gather import protocol_of
    from hoicli.diagnosis.pairs import NOT_RELEASED, PairStatistics, pair_rows, read_pair_batches, sweeps
    from hoicli.errors import UsageError
    from hoicli.pairing import check_streams, prediction_lines, read_truth
    from hoicli.report.plots import plot_pairs
    from hoicli.report.tables import chosen_format, render
    from hoicli.results import parse_tags, signature
    from hoicli.scenes import ErrorPolicy
    from hoicli.streams import note, open_output
    from hoicli.vocabulary import load
    from hoicli.workers import no_garbage_collection

    if gt is None:
        raise UsageError("pairstats: give the ground truth with --gt FILE")
    paths = inputs(predictions, "PREDS")
    check_streams(gt, paths)
    output_format = chosen_format(format_, output)
    tags = parse_tags(tag or [])
    settings = sweeps(
        _numbers("--nms", nms), _numbers("--det-threshold", det_threshold), alpha=nms_alpha, beta=nms_beta
    )
    policy = ErrorPolicy(skip=skips(on_error))
    vocabulary = load(dataset)
    protocol = protocol_of(vocabulary)
    if as_released and protocol.person_first:
        raise UsageError(NOT_RELEASED)
    truth = read_truth(gt, vocabulary, policy)
    _, lines = prediction_lines(paths)
    statistics = PairStatistics(truth, settings, one_to_one=one_to_one, as_released=as_released)
    with no_garbage_collection():
        for batch in read_pair_batches(
            lines, vocabulary, policy=policy, known=truth.position, box_scores=det_threshold is not None
        ):
            statistics.add(batch)
    common = {"protocol": protocol.name, "data": vocabulary.name}
    if one_to_one:
        common["pairs"] = "one-to-one"
    if as_released:
        common["released"] = "yes"
    rows: list[Row] = []
    for setting, results in statistics.results():
        settled = signature(common | setting.signature())
        rows += pair_rows(setting, results, protocol=protocol, signature=settled, tags=tags)
    policy.report()
    without = len(truth.scenes.image_ids) - statistics.images
    if without:
        fate = "left out, as released" if as_released else "their pairs are missed"
        note(f"{without:,} of {len(truth.scenes.image_ids):,} ground-truth images have no predictions: {fate}")
    if statistics.pairs and not statistics.scored:
        note("no pair has an interactiveness, and no triplet gives one: negative AP is empty")
    with open_output(output) as write:
        write(render(rows, output_format))
    if plot is not None:
        plot_pairs(rows, plot)


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
