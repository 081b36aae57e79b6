"""`hoicli pairstats`: pair localisation and interaction classification, measured separately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import choices, options
from hoicli.interface.command import command
from hoicli.interface.option_values import names_of, numbers_of, text_of
from hoicli.interface.options import GroupedCounted, Numbers, Option, Unpack
from hoicli.interface.results import Result
from hoicli.io.messages import note
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.evaluation.ground_truth import GroundTruth
    from hoicli.pairs.statistics import PairStatistics
    from hoicli.records.result_rows import Row


@command(
    reads="predictions, and ground truth with --gt",
    writes="result rows",
    examples="""
        hoicli pairstats --gt gt.jsonl preds.jsonl  # how well pairs are found and classified
        hoicli pairstats --gt gt.jsonl --nms-sweep 0.3,0.5,0.7 --format md preds.jsonl  # the same after pair NMS
        hoicli pairstats --gt gt.jsonl --verb-score triplet old.jsonl new.jsonl
            # two models whose dumps have no verb_score
        hoicli convert pairs.pkl | hoicli pairstats --gt gt.jsonl --as-released
            # Diag-HOI's pairs, and its code's numbers
        hoicli pairstats --gt gt.jsonl --interactiveness preds.jsonl
            # how well interacting pairs are found, for all verbs together
    """,
    see=["diagnose", "convert"],
    plot="Draw recall against precision over the sweep: .png, .svg or .pdf.",
)
def pairstats(
    gt: options.Truth = None,
    predictions: options.Models = None,
    *,
    dataset: options.Dataset = None,
    protocol: options.DiagnosedProtocol = None,
    name: options.ModelNames = None,
    verb_score: Annotated[str, Option(one_of=("verb", "triplet"))] = "verb",
    one_to_one: bool = False,
    as_released: bool = False,
    interactiveness: bool = False,
    nms_sweep: Annotated[Numbers, Option("T,T,...")] = None,
    det_threshold: Annotated[Numbers, Option("S,S,...")] = None,
    tag: options.Tag = None,
    **shared: Unpack[GroupedCounted],
) -> Result:
    """How well humans and objects are paired, and how well their interactions are classified.

    Pairs per image, pair recall and pair precision count the pairs that a record lists (`pairs`), else the distinct
    pairs of its triplets. Negative AP says whether pairs that do not interact score low; compare it with the share of
    such pairs. Interaction mAP ranks verbs on correctly localised pairs. Both need scores that do not include the boxes
    (--verb-score). mAP is the protocol's. There are rows for full, rare and non_rare, except negative AP (full only)
    and V-COCO (full only; interaction mAP over action-roles). Values are in percent (pairs_per_image: a count). Each
    value of --nms-sweep and of --det-threshold adds rows to those of all pairs.

    Arguments:
        verb_score: The score for interaction mAP and negative AP: verb_score, or the triplet's, which includes those of
            the boxes.
        one_to_one: A detected pair finds at most one true pair, the best detected first (the Diag-HOI paper); without
            it, all that it matches (the released code).
        as_released: The numbers of Diag-HOI's code, to the digit: negative AP over 110 recall values (at best 91.8),
            without verbs that have no true positive and images that have no predictions.
        interactiveness: Add interactiveness AP (TIN++, Body-Part Map): the AP of interacting pairs as a single class,
            by boxes alone.
        nms_sweep: Add rows after pair NMS, for each threshold T: a pair is dropped, with its triplets, if IoU_subject *
            IoU_object^0.5 with a better one of its object label exceeds T.
        det_threshold: Add rows for only the pairs whose boxes both score at least S, for each S; needs `scores` in the
            records.
    """
    from hoicli.diagnosis.diagnosis_options import choose_diagnosis_protocol
    from hoicli.evaluation.coverage import check_computable, check_counted
    from hoicli.evaluation.selection import diagnosed_protocol
    from hoicli.interface.inputs import Inputs, require_truth
    from hoicli.pairs.pair_batches import sweeps
    from hoicli.pairs.statistic_rows import pair_rows
    from hoicli.pairs.statistics import pair_statistics

    gt = require_truth(gt, "pairstats")
    chosen = choose_diagnosis_protocol(names_of(protocol), text_of(dataset), as_released=as_released)
    dataset_name = text_of(dataset) or (chosen.dataset if chosen is not None else None)
    inputs, vocabulary = Inputs(dataset_name, shared, within="hico", gt=gt), load(dataset_name or "hico")
    models = inputs.models(predictions, name)
    tags = inputs.tags_beside(tag, models)
    settings = sweeps(numbers_of("nms_sweep", nms_sweep), numbers_of("det_threshold", det_threshold))
    chosen_protocol = chosen or diagnosed_protocol(vocabulary)
    if as_released and chosen_protocol.person_first:
        # neu-vi/Diag-HOI pair_localization.py calls `get_overlap` with single boxes where it needs lists of boxes
        problem = "for HICO-DET only; the released pair statistics of vcoco fail at their first pair"
        raise UsageError(f"{arg('as_released')}: {problem}")
    truth = inputs.read_truth(gt, vocabulary)
    check_computable(truth, chosen_protocol)
    rows: list[Row] = []
    for model in models:
        statistics = pair_statistics(
            model.refuse_match_records("pairstats"), truth, settings, inputs.policy,
            protocol=chosen_protocol, one_to_one=one_to_one, as_released=as_released,
            triplet_scores=verb_score == "triplet", interactiveness=interactiveness,
        )  # fmt: skip
        check_counted(statistics.tally, vocabulary, model.name, allowed=inputs.filters.allow_uncounted)
        model_tags = {"model": model.model, **tags} if model.tagged else tags
        # leave: for the signatures, whether results were allowed though most triplets have no class
        rows += pair_rows(statistics, settings=statistics.tally.uncounted_setting, tags=model_tags)
        _note_what_is_missing(statistics, truth, f"{model.model}: " if len(models) > 1 else "")
    return Result(rows, draw=lambda path, look: choices.load_object("figures.curve_plots:plot_pairs")(rows, path, look))


def _note_what_is_missing(statistics: PairStatistics, truth: GroundTruth, prefix: str) -> None:
    """Print notes about what the rows do not show: how many images have no predictions, whether the boxes fit the
    images, and why a metric has no value. prefix: the model's name, before each note, if there are several models."""
    from hoicli.pairs.statistic_rows import METRICS

    total, counts = len(truth.scenes.image_ids), statistics.gathered.numbers
    images = len(statistics.gathered.lines["image"])
    if without_predictions := total - images:
        consequence = "left out, as released" if statistics.as_released else "their pairs are missed"
        note(f"{prefix}{without_predictions:,} of {total:,} ground-truth images have no predictions: {consequence}")
    if images and not counts["triplets"] + counts["pairs"]:
        note(f"{prefix}the predictions hold no pair: nothing can be found")
    if other_subjects := counts["other subjects"]:
        subjects = " or ".join(statistics.vocabulary.subjects)
        of_all = f"{other_subjects:,} of {counts['triplets']:,} triplets"
        note(f"{prefix}{of_all} have a subject that is no {subjects}: they are no pairs")
    if doubt := statistics.gathered.fit.doubt(truth.scenes, truth.vocabulary):
        note(f"{prefix}{doubt}")
    for metric, reason in statistics.reasons.items():
        advice = f"; {arg('verb_score', 'triplet')} uses the triplet's score instead"
        note(f"{prefix}no {METRICS[metric].words}: {reason}{advice if 'verb_score' in reason else ''}")
