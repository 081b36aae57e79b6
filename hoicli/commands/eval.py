"""`hoicli eval`: the mAP of a prediction dump by the published protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import options
from hoicli.interface.command import command
from hoicli.interface.option_values import chosen_of, names_of, tags_of, text_of
from hoicli.interface.options import Given, Names, Option, Unpack, Viewed
from hoicli.interface.results import Result
from hoicli.io.messages import note
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.evaluation.protocols import Protocol
    from hoicli.evaluation.slices import Slice
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
    **shared: Unpack[Viewed],
) -> Result:
    """The mAP by each published protocol, of predictions with --gt or of the lines of hoicli match.

    Values are in percent; every row has the signature of its settings. An interval (--bootstrap) says how much the mAP
    may differ on another test set of this size, from resampled test sets.

    Arguments:
        per_class: Add AP and max_recall of every interaction, and mean_max_recall.
        metric: Add to mAP: mean_max_recall, or mPD (mean performance degradation, OC-Immunity), how far a verb's mean
            AP over its objects is below that of its best object (0: no bias towards objects); several with commas.
        explain: Say in a few lines what each protocol does and each metric is, and stop.
        boxes: AP and recall of the detector's own boxes instead, whatever interaction they are in: persons, objects,
            and with --per-class every label. --protocol: coco-boxes, voc-boxes, voc07-boxes, diag-boxes (recall alone);
            default: all.
        same: With --boxes, annotated boxes of one label with at least this IoU count as one. Default: 0.7 for HICO-DET,
            which draws an object again for each class; else 1 (only equal boxes).
    """
    from hoicli.evaluation.detector_boxes import BOX_RULES
    from hoicli.evaluation.evaluating import tallies
    from hoicli.evaluation.evaluation_rows import METRICS, check_metrics
    from hoicli.evaluation.selection import chosen_protocols, explicit
    from hoicli.interface.inputs import Inputs, require_truth
    from hoicli.resampling.draws import Resampling

    names, dataset_name = names_of(protocol), text_of(dataset)
    if explain and (predictions is not None or gt is not None):
        raise UsageError(f"{arg('explain')} reads nothing: leave out PREDS and {arg('gt')}, or {arg('explain')}")
    if boxes:
        of_triplets: dict[str, object] = {"split": split, "metric": metric, "bootstrap": bootstrap}
        of_triplets |= {name: shared[name] for name in ("iou", "slice", "top_k", "nms")}
        of_triplets["ignore_no_interaction"] = ignore_no_interaction or None
        if others := [arg(name) for name, value in of_triplets.items() if value is not None]:
            raise UsageError(f"{', '.join(others)}: for triplets, not for {arg('boxes')}; leave out one or the other")
        inputs, vocabulary = Inputs(dataset_name, shared, within="hico"), load(dataset_name or "hico")
        truth = None if explain else require_truth(gt, "eval --boxes")
        return _evaluate_boxes(names, vocabulary, inputs, truth, predictions, same, tags_of(tag), per_class)
    if same is not None:
        raise UsageError(f"{arg('same')}: is for {arg('boxes')}; leave it out")
    if of_boxes := [
        part for part in chain.from_iterable(name.split(",") for name in names) if part.strip() in BOX_RULES
    ]:
        raise UsageError(f"{arg('protocol', of_boxes[0])}: is for {arg('boxes')}, which evaluates boxes alone; add it")
    if explain:
        return _explain_protocols(
            list(chain.from_iterable(chosen_protocols([name], dataset_name) for name in (names or ["all"]))),
            dataset_name,
        )
    chosen = chosen_protocols(names, dataset_name)
    own_vocabulary = load(dataset_name or chosen[0].dataset)
    inputs = Inputs(dataset_name, shared, within=own_vocabulary.path or own_vocabulary.name)
    views = inputs.views(own_vocabulary)
    metrics = chosen_of("metric", metric, METRICS)
    check_metrics(metrics, chosen)
    if split:
        own_vocabulary.split(split)  # an unknown split fails before the work
    tags, resampling = inputs.tags(tag), Resampling.from_rounds(bootstrap, seed)
    streams = inputs.predictions(predictions), None if gt is None else inputs.truth(gt)
    each_tally = list(
        tallies(
            *streams,
            chosen,
            inputs.filters,
            inputs.policy,
            named=explicit(names),
            views=views,
            vocabulary=own_vocabulary,
        )
    )

    maker = partial(rows_of, each_tally, split, ignore_no_interaction, resampling, tags, views.of_classes)
    signed = inputs.policy.sign_skipped
    result_rows = signed(maker(per_class=per_class, metrics=metrics))
    return Result(result_rows, classes=lambda: signed([row for row in maker(per_class=True) if "verb" in row]))


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
    """The rows of boxes by the rules of these names; without `gt` what these do."""
    from hoicli.evaluation.detector_boxes import BOX_RULES, DRAWN_ANEW, evaluated_boxes
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
    once = drawn_once(truth, same)
    if not once.all():
        note(f"{once.sum():,} of {len(once):,} annotated boxes count in AP, others repeat one ({arg('same', same)})")
    evaluation = evaluated_boxes(stream, truth, rules[0], inputs.policy, once)
    rows = partial(evaluation.rows, rules, {"same": same} if same < 1 else {}, tags)
    signed = inputs.policy.sign_skipped
    result_rows = signed([*rows(per_class=per_class)])
    return Result(result_rows, classes=lambda: signed([row for row in rows(per_class=True) if "object" in row]))


def rows_of(
    tallies: Sequence[tuple[Tally, Vocabulary, Mapping[str, str]]],
    split: str | None,
    ignore_no_interaction: bool,
    resampling: Resampling | None,
    tags: Mapping[str, str],
    slices: tuple[Slice, ...],
    *,
    per_class: bool,
    metrics: Sequence[str] = (),
) -> list[Row]:
    """The rows of tallies, each with its vocabulary and settings."""
    from hoicli.evaluation.evaluation_rows import Wanted, tally_rows

    rows: list[Row] = []
    for tally, vocabulary, settings in tallies:
        unseen = vocabulary.split(split) if split else None
        requested = Wanted(unseen, ignore_no_interaction, per_class, slices, metrics)
        rows += tally_rows(tally, vocabulary, requested, resampling, settings=settings, tags=tags)
    return rows


def _explain_protocols(chosen: list[Protocol], dataset_name: str | None) -> Result:
    """Return protocols as --protocol FILE reads them; where people read, in words, with what the metrics are."""
    from hoicli.evaluation.protocol_files import explain_protocol, protocol_record
    from hoicli.records.metrics import explain_metrics
    from hoicli.records.parsing import dump

    records, vocabulary = [protocol_record(row) for row in chosen], load(dataset_name or chosen[0].dataset)

    def render(notation: str) -> bytes:
        if notation == "jsonl":
            return b"".join(map(dump, records))
        protocols = "".join(f"{explain_protocol(row, vocabulary.subjects)}\n" for row in chosen)
        return f"{protocols}\nThe metrics of the rows:\n{explain_metrics('eval')}".encode()

    return Result(records, rendered=render, piped="table")
