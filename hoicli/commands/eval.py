"""`hoicli eval`: the mAP of a prediction dump by the published protocols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import options
from hoicli.interface.command import command
from hoicli.interface.option_values import chosen_of, names_of, tags_of, text_of
from hoicli.interface.options import Given, GroupedViewed, Names, Option, Unpack
from hoicli.interface.results import Result
from hoicli.io.messages import note
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.evaluation.evaluation_rows import Wanted
    from hoicli.evaluation.protocols import Protocol
    from hoicli.evaluation.tally import Tally
    from hoicli.interface.inputs import Inputs
    from hoicli.records.result_rows import Row
    from hoicli.resampling.draws import Resampling
    from hoicli.vocabulary.labels import Vocabulary


@command(
    reads="predictions with --gt, or match records",
    writes="result rows: the mAP of every subset",
    examples="""
        hoicli eval --gt gt.jsonl preds.jsonl  # every protocol of HICO-DET, side by side
        hoicli eval --gt gt.jsonl --protocol hico,hico-ko --split rf-uc preds.jsonl  # a zero-shot split
        hoicli eval --gt gt.jsonl --protocol hico --bootstrap 1000 preds.jsonl  # with 95 % intervals
        hoicli eval --gt gt.jsonl --protocol hico --iou 0.5:0.95:0.05 --slice objects preds.jsonl
            # at COCO's thresholds, and for small, medium and large objects
        hoicli eval --gt gt.jsonl --protocol hico --metric mPD preds.jsonl  # how much a verb's AP depends on the object
        hoicli match --gt gt.jsonl preds.jsonl | hoicli eval  # the same numbers from a match stream
        hoicli eval --boxes --gt gt.jsonl preds.jsonl  # AP and recall of the detector's own boxes
        hoicli eval --explain --protocol upt  # what a protocol does, exactly
        hoicli eval --explain --protocol upt --format jsonl  # a starting point for a protocol of your own
    """,
    see=["match", "compare", "diagnose"],
)
def evaluate(
    gt: options.Truth = None,
    predictions: options.Predictions = None,
    *,
    protocol: options.Protocols = None,
    dataset: options.DatasetOfProtocols = None,
    split: options.Split = None,
    per_class: bool = False,
    ignore_no_interaction: options.IgnoreNoInteraction = False,
    metric: Annotated[Names, Option("NAME", offer="evaluation.evaluation_rows:METRICS", several=True)] = None,
    bootstrap: Annotated[int | None, options.bootstrap("every mAP")] = None,
    seed: options.Seed = 0,
    explain: bool = False,
    boxes: bool = False,
    same: Annotated[float | None, Option("T")] = None,
    tag: options.Tag = None,
    **shared: Unpack[GroupedViewed],
) -> Result:
    """The mAP by each published protocol, of predictions with --gt or of the lines of hoicli match.

    Values are in percent; every row has the signature of its settings. An interval (--bootstrap) says how much the mAP
    may differ on another test set of this size, from resampled test sets.

    Arguments:
        per_class: Add AP and max_recall of every interaction, and mean_max_recall.
        metric: Add to mAP: mean_max_recall, or mPD (mean performance degradation, OC-Immunity), how far a verb's mean
            AP over its objects is below that of its best object (0: no bias towards objects), or with --split hm, the
            harmonic mean of unseen and seen; several with commas.
        explain: Say in a few lines what each protocol does and each metric is, and stop.
        boxes: AP and recall of the detector's own boxes instead, whatever interaction they are in: persons, objects,
            and with --per-class every label. --protocol: coco-boxes, voc-boxes, voc07-boxes, diag-boxes (recall alone);
            default: all.
        same: With --boxes, annotated boxes of one label with at least this IoU count as one. Default: 0.7 for HICO-DET,
            which draws an object again for each class; else 1 (only equal boxes).
    """
    from hoicli.evaluation.box_rules import BOX_RULES
    from hoicli.evaluation.evaluating import gather_tallies
    from hoicli.evaluation.evaluation_rows import METRICS, Wanted, check_metrics
    from hoicli.evaluation.selection import choose_protocols, names_asked_for
    from hoicli.interface.inputs import Inputs, require_truth
    from hoicli.resampling.draws import Resampling

    names, dataset_name = names_of(protocol), text_of(dataset)
    if explain and (predictions is not None or gt is not None):
        raise UsageError(f"{arg('explain')} reads nothing: leave out PREDS and {arg('gt')}, or {arg('explain')}")
    if boxes:
        triplet_options: dict[str, object] = {"split": split, "metric": metric, "bootstrap": bootstrap}
        triplet_options |= {name: shared[name] for name in ("iou", "slice", "top_k", "nms")}
        triplet_options["ignore_no_interaction"] = ignore_no_interaction or None
        if options_given := [arg(name) for name, value in triplet_options.items() if value is not None]:
            problem = f"for triplets, not for {arg('boxes')}; leave out one or the other"
            raise UsageError(f"{', '.join(options_given)}: {problem}")
        inputs, vocabulary = Inputs(dataset_name, shared, within="hico", gt=gt), load(dataset_name or "hico")
        truth = None if explain else require_truth(gt, "eval --boxes")
        return _evaluate_boxes(names, vocabulary, inputs, truth, predictions, same, tags_of(tag), per_class)
    if same is not None:
        raise UsageError(f"{arg('same')}: is for {arg('boxes')}; leave it out")
    if box_protocols := [name for name in names if name in BOX_RULES]:
        problem = f"is for {arg('boxes')}, which evaluates boxes alone; add it"
        raise UsageError(f"{arg('protocol', box_protocols[0])}: {problem}")
    if explain:
        protocols = [choose_protocols([name], dataset_name) for name in names or ["all"]]
        return _explain_protocols(list(chain.from_iterable(protocols)), dataset_name)

    chosen = choose_protocols(names, dataset_name)
    vocabulary = load(dataset_name or chosen[0].dataset)
    inputs = Inputs(dataset_name, shared, within=vocabulary.path or vocabulary.name, gt=gt)
    views = inputs.views(vocabulary)
    metrics = chosen_of("metric", metric, METRICS)
    check_metrics(metrics, chosen, split)
    vocabulary.check_split(split)  # before the work
    tags, resampling = inputs.tags(tag), Resampling.from_rounds(bootstrap, seed)
    stream = inputs.predictions(predictions).refuse_another_dataset(dataset_name)
    truth_stream = None if gt is None else inputs.truth(gt)
    # named: protocols that the user asked for one by one must be computed; of `all`, some may be left out with a note
    each_tally = list(
        gather_tallies(
            stream, truth_stream, chosen, inputs.filters, inputs.policy,
            named=names_asked_for(names), views=views, vocabulary=vocabulary,
        )
    )  # fmt: skip

    requested = Wanted(split, ignore_no_interaction, per_class, views.of_classes, metrics)
    make_rows = partial(rows_of, each_tally, resampling=resampling, tags=tags)
    every_class = replace(requested, per_class=True, metrics=())
    return Result(make_rows(requested), classes=lambda: [row for row in make_rows(every_class) if "verb" in row])


def _evaluate_boxes(
    names: Sequence[str],
    vocabulary: Vocabulary,
    inputs: Inputs,
    gt: Given | None,
    predictions: Given | None,
    same: float | None,
    tags: Mapping[str, str],
    per_class: bool,
) -> Result:
    """Return the result of --boxes: AP and recall of a detector's own boxes by the protocols for boxes of these names
    (none: all). Without `gt`, return the text that explains these protocols.

    same: annotated boxes of one label with at least this IoU count as one; None for the dataset's default. tags: of all
    rows. per_class: whether every label has rows."""
    from hoicli.evaluation.box_rules import BOX_RULES, DRAWN_ANEW
    from hoicli.evaluation.detector_boxes import evaluate_boxes
    from hoicli.validation.duplicates import drawn_once

    chosen = set(chosen_of("protocol", names, ("all", *BOX_RULES)) or ["all"])
    rules = [rule for name, rule in BOX_RULES.items() if {name, "all"} & chosen]
    if gt is None:
        return Result([], rendered=lambda _: "".join(f"{rule.explain()}\n" for rule in rules).encode())
    same = DRAWN_ANEW.get(vocabulary.name, 1.0) if same is None else same
    if not 0 < same <= 1:
        raise UsageError(f"{arg('same', same)}: the threshold is an overlap, above 0 and at most 1")
    stream = inputs.predictions(predictions).refuse_match_records("eval --boxes")
    truth = inputs.read_truth(gt, vocabulary)
    counts = drawn_once(truth, same)  # whether each annotated box counts, and repeats no other
    if not counts.all():
        note(
            f"{counts.sum():,} of {len(counts):,} annotated boxes count in AP, others repeat one ({arg('same', same)})"
        )
    # detections are gathered once for all rules; the first stands for what any of them needs of predictions
    evaluation = evaluate_boxes(stream, truth, rules[0], inputs.policy, counts)
    make_rows = partial(evaluation.rows, rules, {"same": same} if same < 1 else {}, tags)
    result_rows = [*make_rows(per_class=per_class)]
    return Result(result_rows, classes=lambda: [row for row in make_rows(per_class=True) if "object" in row])


def rows_of(
    tallies: Iterable[tuple[Tally, Vocabulary, Mapping[str, str]]],
    requested: Wanted,
    resampling: Resampling | None,
    tags: Mapping[str, str],
) -> list[Row]:
    """Return the result rows of tallies, which hold the matched predictions of a protocol. tallies: each with its
    vocabulary and the settings for the rows' signatures; requested: which rows, with the zero-shot split as the user
    named it; resampling: for intervals, None for none; tags: of all rows."""
    from hoicli.evaluation.evaluation_rows import tally_rows

    rows: list[Row] = []
    for tally, vocabulary, settings in tallies:
        split = vocabulary.split(requested.split) if requested.split else None
        of_dataset = replace(requested, split=split)
        rows += tally_rows(tally, vocabulary, of_dataset, resampling, settings=settings, tags=tags)
    return rows


def _explain_protocols(chosen: list[Protocol], dataset_name: str | None) -> Result:
    """Return the result of --explain: as a table, texts that say what protocols do and what the metrics are; as JSON
    lines, the protocols in the form that --protocol FILE reads."""
    from hoicli.evaluation.protocol_files import explain_protocol, protocol_record
    from hoicli.records.metrics import explain_metrics
    from hoicli.records.parsing import dump

    records = [protocol_record(protocol) for protocol in chosen]
    vocabulary = load(dataset_name or chosen[0].dataset)

    def render(notation: str) -> bytes:
        """Return what is printed in a --format."""
        if notation == "jsonl":
            return b"".join(map(dump, records))
        protocols = "".join(f"{explain_protocol(protocol, vocabulary.subjects)}\n" for protocol in chosen)
        return f"{protocols}\nThe metrics of the rows:\n{explain_metrics('eval')}".encode()

    return Result(records, rendered=render, piped="table")
