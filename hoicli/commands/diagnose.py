"""`hoicli diagnose`: the type of every error, and what fixing each type would give."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import choices, options
from hoicli.interface.command import command
from hoicli.interface.option_values import names_of, text_of
from hoicli.interface.options import GroupedViewed, Names, Option, Unpack
from hoicli.interface.results import Records, Result, instead

if TYPE_CHECKING:
    from hoicli.figures.styles import Look


@command(
    reads="predictions with --gt, or match records",
    writes="result rows; with --emit predictions each prediction with its type",
    examples="""
        hoicli diagnose --gt gt.jsonl preds.jsonl  # the number of errors of each type, and the gain from fixing it
        hoicli diagnose --gt gt.jsonl --name old --name new --plot errors.png old.jsonl new.jsonl
            # a figure of two models side by side
        hoicli diagnose --gt gt.jsonl --plot rare.png --plot-kind frequency preds.jsonl  # rare and non-rare classes
        hoicli diagnose --gt gt.jsonl --slice people preds.jsonl  # the errors in crowds, and with one person alone
        hoicli match --gt gt.jsonl --protocol diag preds.jsonl | hoicli diagnose  # from a match stream
        hoicli diagnose --gt gt.jsonl --emit predictions preds.jsonl | jq -r '.predictions[].error' | sort | uniq -c
            # every prediction's type, counted by other tools
    """,
    see=["explore", "match", "eval", "pairstats"],
    listed=lambda values: not values["explain"] and values["emit"] is None,
    plot="Draw the deltas and the errors, as --plot-kind says: .png, .svg or .pdf.",
)
def diagnose(
    gt: options.Truth = None,
    predictions: options.Models = None,
    *,
    dataset: options.DatasetOfMatches = None,
    protocol: options.DiagnosedProtocol = None,
    name: options.ModelNames = None,
    as_released: bool = False,
    independent: bool = False,
    progressive: Annotated[Names, Option("ORDER", offer=choices.oracles, several=True)] = None,
    per_class: bool = False,
    with_no_interaction: bool = False,
    emit: Annotated[str | None, Option("predictions", one_of=("predictions",))] = None,
    explain: bool = False,
    plot_kind: Annotated[str, Option(one_of="figures.styles:DIAGNOSIS_PLOTS")] = "errors",
    tag: options.Tag = None,
    **shared: Unpack[GroupedViewed],
) -> Result:
    """Why a detector fails: the errors of each type, and the mAP you would gain by fixing each type.

    Every prediction is a true positive, a duplicate, an interaction error (right boxes, wrong verb), an association
    error (right boxes that do not interact), or an error of the object box, the human box or both. The deltas do not
    add up to 100 - mAP: errors overlap. V-COCO is diagnosed by scenario 1, matching persons first.

    Arguments:
        as_released: The released code's numbers, to the digit, except for entries listed twice (not for V-COCO).
        independent: Let the oracle of each type choose what to fix on its own, as if there were no others.
        progressive: Add the mAP as oracles are applied one after another, in this order (names with commas between), or
            all in ours.
        per_class: Add counts and oracles for every class, and mean_max_recall.
        with_no_interaction: Count the no_interaction classes, too (the paper's Fig. 12).
        emit: Instead of rows, write each prediction with its type and the ground truth it could be corrected to.
        explain: Say what each oracle fixes and each metric is, and stop.
        plot_kind: errors: the deltas, and the errors by rank (the paper's Fig. 7); frequency: the deltas of rare and
            non-rare classes, or of the parts of --slice (Fig. 8); no-interaction: what fixing association errors gives
            without and with the no_interaction classes (Fig. 12), whose rows it adds with the tag noint.
    """
    from hoicli.diagnosis.diagnosed_models import diagnose_models
    from hoicli.diagnosis.diagnosis_options import (
        choose_diagnosis_protocol,
        count_no_interaction,
        progressive_order,
        settle_options,
    )
    from hoicli.diagnosis.emitted import emitted_predictions
    from hoicli.diagnosis.oracle_explanation import explanation
    from hoicli.diagnosis.repair_assignment import Reading
    from hoicli.interface.inputs import Inputs

    if explain:
        if predictions is not None or gt is not None:
            raise UsageError(f"{arg('explain')} reads nothing: leave out PREDS and {arg('gt')}, or {arg('explain')}")
        return instead(f"{explanation()}\n")

    # what does not go together
    if as_released and (independent or progressive is not None):
        raise UsageError(
            f"{arg('as_released')}: the released code has neither {arg('independent')} nor {arg('progressive')}"
        )
    if independent and progressive is not None:
        problem = f"oracles that follow one another share their repairs; leave out {arg('independent')}"
        raise UsageError(f"{arg('progressive')}: {problem}")
    if as_released and (shared["iou"] or shared["slice"]):
        raise UsageError(f"{arg('as_released')}: the released code has neither {arg('iou')} nor {arg('slice')}")
    row_options = {"progressive": progressive, "per_class": per_class, "tag": tag}
    if emit and any(row_options.values()):
        option_texts = ", ".join(arg(option) for option, value in row_options.items() if value)
        problem = f"is for result rows, which {arg('emit', emit)} does not write; leave one of them out"
        raise UsageError(f"{option_texts}: {problem}")
    if independent and emit:
        problem = f"shows the one repair of a ground truth; leave out {arg('independent')}"
        raise UsageError(f"{arg('emit', emit)}: {problem}")

    reading: Reading = "independent" if independent else "shared"
    if as_released:
        reading = "released"
    chosen_protocol = choose_diagnosis_protocol(
        names_of(protocol), text_of(dataset), as_released=as_released, no_interaction=with_no_interaction
    )
    dataset_name = text_of(dataset) or (chosen_protocol.dataset if chosen_protocol is not None else None)
    inputs = Inputs(dataset_name, shared, within="hico", gt=gt)
    policy, filters = inputs.policy, inputs.filters
    models = inputs.models(predictions, name)
    if emit and len(models) != 1:
        raise UsageError(f"{arg('emit', emit)}: of one stream, not {len(models)}; leave the others out")
    tags = inputs.tags_beside(tag, models, *(["noint"] if plot_kind == "no-interaction" else []))
    order = () if progressive is None else progressive_order(",".join(names_of(progressive)))
    truth = None if gt is None else inputs.truth(gt)
    # dataset (of match records: their own), protocol, and the views: IoU thresholds and parts of the data
    settings = settle_options(
        models, truth, dataset_name, filters, policy, reading=reading, views_of=inputs.views, protocol=chosen_protocol
    )
    if emit:
        emitted = emitted_predictions(models[0], settings, filters, policy, reading)
        return instead(Records(policy.report_at_end(emitted, some_left=True)))
    second_protocol = None
    if plot_kind == "no-interaction":
        matched = [model.name for model in models if model.matched]
        if as_released or matched:
            problem = f"{matched[0]} has match records" if matched else "the released code never counts no_interaction"
            raise UsageError(f"{arg('plot_kind', plot_kind)}: {problem}; give predictions, and {arg('gt')}")
        second_protocol = count_no_interaction(settings.protocol)
    diagnosed = diagnose_models(models, settings, filters, policy, reading, second_protocol=second_protocol)
    rows = list(chain.from_iterable(model.rows(per_class=per_class, order=order, tags=tags) for model in diagnosed))

    def draw(path: str, look: Look) -> None:
        """Draw the figure of `plot_kind` of all models into a file."""
        from hoicli.figures.diagnosis_plot import plot_diagnosis, plot_frequency, plot_no_interaction

        plotted_rows = list(chain.from_iterable(model.label_rows(model.plotted) for model in diagnosed))
        if plot_kind == "frequency":
            part_rows = list(chain.from_iterable(model.label_rows(model.plotted_parts) for model in diagnosed))
            # the parts of --slice, if there are any, in place of rare and non-rare
            plot_frequency(part_rows or plotted_rows, path, look)
        elif plot_kind == "no-interaction":
            plot_no_interaction(plotted_rows, path, look)
        else:
            compositions = {model.label: model.diagnosis.composition() for model in diagnosed}
            plot_diagnosis(plotted_rows, compositions, path, look)

    hint = "the deltas do not add up to 100 - mAP: errors overlap (--explain says what each oracle fixes)"
    return Result(rows, draw=draw, hint=hint)
