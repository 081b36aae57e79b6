"""`hoicli compare`: whether one detector is better than another, by how much, and where."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Annotated, Any

from hoicli.errors import UsageError, arg
from hoicli.interface import choices, options
from hoicli.interface.command import command
from hoicli.interface.option_values import chosen_of, count_of, names_of, tags_of, text_of
from hoicli.interface.options import GroupedViewed, Names, Option, Piped, Streams, Unpack
from hoicli.interface.results import Result
from hoicli.vocabulary.datasets import load

_Row = dict[str, Any]
"""A result row."""


@command(
    reads="predictions, one file for each model, and ground truth with --gt",
    writes="result rows: mAP with its interval, and differences with interval and p",
    examples="""
        hoicli compare --gt gt.jsonl preds.jsonl other.jsonl  # is other better than preds, and where
        hoicli compare --gt gt.jsonl --slice objects --no-errors preds.jsonl other.jsonl  # for small objects, too?
        hoicli compare --gt gt.jsonl --metric soft_map,mf1 --sim lexical preds.jsonl other.jsonl  # SHOE's metrics
        hoicli compare --gt gt.jsonl --no-errors --fail-if-worse --margin 0.5 old.jsonl new.jsonl
            # for a CI job: exit code 3 if new is worse than old by more than half a point
    """,
    see=["eval", "diagnose", "explore"],
    exits={3: "with --fail-if-worse: a model is worse than the baseline; everything was written"},
)
def compare(
    gt: options.Truth = None,
    predictions: Annotated[Streams | None, Piped("PREDS...")] = None,
    *,
    protocol: Annotated[Names, Option("NAME", offer=choices.PROTOCOLS, several=True)] = None,
    dataset: options.Dataset = None,
    name: options.ModelNames = None,
    split: options.Split = None,
    ignore_no_interaction: options.IgnoreNoInteraction = False,
    bootstrap: Annotated[int, Option("N", check=options.ROUNDS_OR_NONE)] = 1000,
    seed: options.Seed = 0,
    errors: bool = True,
    per_class: bool = False,
    top: Annotated[int | str, Option("N")] = 10,
    metric: Annotated[Names, Option("NAME", offer="shoe.settings:METRICS", several=True)] = None,
    sim: options.Sim = None,
    fail_if_worse: bool = False,
    margin: Annotated[float | None, Option("POINTS")] = None,
    tag: options.Tag = None,
    **shared: Unpack[GroupedViewed],
) -> Result:
    """Is the difference between two detectors real, and where does it come from?

    The answer comes first, in a sentence above a table and on stderr. Each row is a difference between the first model
    and another: in the mAP of a subset, the AP of a class, or a type of error. It has a 95 % interval over resampled
    images, and how likely so large a difference would be between equally good detectors, by swapping their output at
    random (p) and by resampling (p_bootstrap).

    Arguments:
        predictions: Predictions, one file for each model: the baseline first.
        protocol: As in eval. Default: the dataset's main protocol (hico, vcoco-s1, swig).
        bootstrap: How many resamples of the images, and how many swaps; 0: neither intervals nor p.
        errors: Compare the types of errors, too.
        per_class: Show every class, not only the --top N.
        top: Show the N classes with the smallest p, and the N images that changed most, or all.
        metric: SHOE's metrics in place of mAP, with shoe-eval's defaults and --sim: soft_map, mf1, gt_miss_rate,
            prediction_miss_rate, map; several with commas.
        fail_if_worse: End with exit code 3 if a model is worse than the baseline (the first): if the whole interval of
            the difference is below 0, or below -POINTS with --margin.
        margin: The loss that --fail-if-worse accepts, in points (default: 0).
    """
    from hoicli.comparison.comparison_rows import compare as compared
    from hoicli.comparison.sentences import answers, failure, readable
    from hoicli.evaluation.evaluation_rows import RECALL, Wanted
    from hoicli.evaluation.filters import Filters
    from hoicli.evaluation.selection import choose_protocols, main_protocol, names_asked_for
    from hoicli.interface.inputs import Inputs, require_truth
    from hoicli.resampling.draws import Resampling

    gt = require_truth(gt, "compare")
    dataset_name, names = text_of(dataset), names_of(protocol)
    limit = count_of("top", top)
    if limit is None:  # all
        limit = sys.maxsize
    resampling = Resampling.from_options(bootstrap, seed, or_none=True)  # or_none: 0 rounds are allowed
    if margin is not None and not (fail_if_worse and 0 <= margin < inf):
        problem = "give a number of at least 0" if fail_if_worse else f"goes with {arg('fail_if_worse')}"
        raise UsageError(f"{arg('margin', margin)}: {problem}")
    if fail_if_worse and not bootstrap:
        raise UsageError(f"{arg('fail_if_worse')} goes by the interval: leave {arg('bootstrap', 0)} out")

    chosen = []  # with --metric it stays empty: SHOE's metrics have no protocols
    if not metric:
        protocol_names = names or [main_protocol(load(dataset_name or "hico")).name]
        chosen = choose_protocols(protocol_names, dataset_name)
    inputs = Inputs(dataset_name, shared, within=chosen[0].dataset if chosen else "hico", gt=gt)
    policy, filters = inputs.policy, inputs.filters
    models = inputs.models(predictions, name, what="two or more PREDS")
    if len(models) < 2:
        raise UsageError("compare needs two or more streams of predictions: the baseline first")
    truth = inputs.truth(gt)
    if metric:
        if names or split or per_class or shared["iou"] or shared["slice"] or filters != Filters():
            problem = f"SHOE has no protocols, splits, {arg('iou')}, {arg('slice')} or filters of compare's"
            raise UsageError(f"{arg('metric')}: {problem}; leave them out")
        from hoicli.comparison.shoe import compare_shoe
        from hoicli.interface.inputs import similarities_or_table
        from hoicli.shoe.settings import METRICS, ShoeOptions
        from hoicli.shoe.shoe_evaluation import Evaluation

        metrics = chosen_of("metric", metric, METRICS)
        shoe_options = ShoeOptions(ignore_no_interaction=ignore_no_interaction)
        tags = tags_of(tag, "model", "baseline", *shoe_options.tags)
        evaluation = Evaluation(
            truth, similarities_or_table(sim, "compare --metric"), shoe_options, policy, dataset=dataset_name or "hico"
        )
        streams = [(model.model, model) for model in models]
        rows = list(compare_shoe(streams, evaluation, metrics, resampling, tags))
    else:
        if sim:
            raise UsageError(f"{arg('sim')}: goes with {arg('metric')}, for example {arg('metric', 'soft_map,mf1')}")
        vocabulary = load(dataset_name or chosen[0].dataset)
        views = inputs.views(vocabulary)
        unseen = vocabulary.split(split) if split else None
        requested = Wanted(
            split=unseen,
            ignore_no_interaction=ignore_no_interaction,
            per_class=per_class,
            slices=views.of_classes,
            metrics=[RECALL],
        )
        tags = inputs.tags(tag, "model", "baseline")
        # named: the protocols that must be computed, or else it is an error; without --protocol, the main one
        named = names_asked_for(names) if names else {protocol.name for protocol in chosen}
        rows = list(
            compared(
                models, truth, vocabulary, chosen, filters, policy, requested, resampling,
                named=named, errors=errors, top=limit, tags=tags, views=views,
            )
        )  # fmt: skip

    above = answers(rows)  # they need the rows that are then left out
    # how many rows of a metric are kept: with --per-class all of the classes, else the first ones, and no recall
    limits = {"image_diff": limit} if per_class else {"image_diff": limit, "AP_diff": limit, RECALL: 0}
    rows = list(_limit_rows(rows, limits))
    return Result(
        rows,
        above=above,
        readable=readable,
        failed=failure(rows, margin or 0.0) if fail_if_worse else None,
    )


def _limit_rows(rows: Iterable[_Row], limits: Mapping[str, int]) -> Iterator[_Row]:
    """Yield rows, but of each comparison (of two models, by a protocol) only the first ones of some metrics. limits:
    how many of a metric; of metrics that are not in it, all."""
    counts = Counter[tuple[str, ...]]()
    for row in rows:
        comparison = row["metric"], row["protocol"], *row["tags"].values()
        counts[comparison] += 1
        if counts[comparison] <= limits.get(row["metric"], sys.maxsize):
            yield row
