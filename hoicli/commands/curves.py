"""`hoicli curves`: precision and recall against the score threshold, and calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from hoicli.interface import choices, options
from hoicli.interface.command import command
from hoicli.interface.option_values import names_of, text_of
from hoicli.interface.options import Names, Option, Unpack, Viewed
from hoicli.interface.results import Result
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.records.result_rows import Row


@command(
    reads="predictions with --gt, or match records",
    writes="result rows: points of curves, the best threshold, and calibration",
    examples="""
        hoicli curves --gt gt.jsonl preds.jsonl  # all classes, rare and non-rare ones
        hoicli curves --gt gt.jsonl --plot curves.png old.jsonl new.jsonl  # a figure of two models
        hoicli curves --gt gt.jsonl --interaction 'ride bicycle' preds.jsonl  # one class, too
        hoicli match --gt gt.jsonl --protocol hico preds.jsonl | hoicli curves  # from a match stream
    """,
    see=["eval", "diagnose", "confusion"],
    plot="Draw the curves and the calibration: .png, .svg or .pdf.",
)
def curves(
    gt: options.Truth = None,
    predictions: options.Models = None,
    *,
    dataset: options.DatasetOfMatches = None,
    protocol: Annotated[str | None, Option("NAME", offer="evaluation.protocols:PROTOCOLS")] = None,
    name: options.ModelNames = None,
    per_class: bool = False,
    interaction: Annotated[Names, Option("NAME", several=True)] = None,
    tag: options.Tag = None,
    **shared: Unpack[Viewed],
) -> Result:
    """Precision and recall by score threshold, the threshold with the best F1, and the calibration of the scores.

    There are two curves for all classes and for every subset: that of all predictions in one list, as when one
    threshold serves all classes, and the mean of the classes' curves, whose mean over recall is mAP. --per-class and
    --interaction add those of single classes. Not every point is written, but enough to compute AP exactly. ECE
    (expected calibration error) compares scores with the share of true positives.

    Arguments:
        protocol: The protocol that decides what is correct: the dataset's main one (default), another, or a file.
        per_class: Add the curve of every class.
        interaction: Add the curve of one class: 'ride bicycle', in V-COCO 'ride instr'; repeatable, or several with
            commas.
    """
    from hoicli.diagnosis.score_curves import classes_named, curve_rows
    from hoicli.evaluation.selection import main_protocol, names_asked_for, one_protocol
    from hoicli.evaluation.tally import class_vocabulary
    from hoicli.interface.inputs import Inputs

    protocol_names, dataset_name = names_of(protocol), text_of(dataset)
    chosen_protocol = one_protocol(protocol_names, dataset_name)
    protocol_dataset = None if chosen_protocol is None else chosen_protocol.dataset
    inputs = Inputs(dataset_name, shared, within=protocol_dataset or "hico", gt=gt)
    models = [model.refuse_another_dataset(dataset_name) for model in inputs.models(predictions, name)]
    tags = inputs.tags_beside(tag, models)
    vocabulary = load(dataset_name or protocol_dataset or models[0].dataset or "hico")
    chosen = [chosen_protocol or main_protocol(vocabulary)]
    single_classes = classes_named(names_of(interaction), class_vocabulary(vocabulary, chosen[0]))
    # named: the protocols that the user asked for; views: the thresholds of --iou and the parts of --slice
    views, named = inputs.views(vocabulary), names_asked_for(protocol_names)
    truth = None if gt is None else inputs.read_truth(gt, vocabulary)
    # what is the same for all models; the last: the classes with a curve of their own, None for all
    settings = chosen, vocabulary, inputs.filters, inputs.policy, None if per_class else single_classes
    rows: list[Row] = []
    for model in models:
        model_tags = {"model": model.model, **tags} if model.tagged else tags
        rows += curve_rows(model, truth, *settings, named=named, views=views, tags=model_tags)
    return Result(
        rows, draw=lambda path, look: choices.load_object("figures.curve_plots:plot_curves")(rows, path, look)
    )
