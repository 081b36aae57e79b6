"""`hoicli confusion`: which verbs and objects are confused."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Annotated

from hoicli.interface import options
from hoicli.interface.command import command
from hoicli.interface.option_values import count_of, names_of, text_of
from hoicli.interface.options import Option, Unpack, Viewed
from hoicli.interface.results import Result
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.figures.styles import Look


@command(
    reads="predictions, and ground truth with --gt",
    writes="result rows: number, share and cost of each confusion",
    examples="""
        hoicli confusion --gt gt.jsonl preds.jsonl  # the twenty costliest confusions of each kind
        hoicli confusion --gt gt.jsonl --top all --plot confusion.png preds.jsonl  # all confusions, and a heat map
    """,
    see=["diagnose", "curves"],
    plot="Draw the confusions as a heat map: .png, .svg or .pdf.",
)
def confusion(
    gt: options.Truth = None,
    predictions: options.Models = None,
    *,
    dataset: options.Dataset = None,
    protocol: options.DiagnosedProtocol = None,
    name: options.ModelNames = None,
    top: Annotated[int | str, Option("N")] = 20,
    tag: options.Tag = None,
    **shared: Unpack[Viewed],
) -> Result:
    """Which verbs are confused on correct pairs, which objects on correct boxes, and what each confusion costs.

    Each annotated triplet counts once: its predicted verb is the one with the highest score on the pair, except the
    pair's other correct verbs. A verb that is correct for the pair is never a confusion. Each annotated pair counts
    once by its object's label. Null means that nothing is annotated, or nothing predicted. The cost is the mAP gained
    if that confusion alone were fixed, as by an oracle of hoicli diagnose. Costs overlap and do not add up.

    Arguments:
        top: Write the N confusions of names that cost most mAP, and the N costliest with null; or all.
    """
    from hoicli.diagnosis.confusion_cells import confused_models
    from hoicli.diagnosis.diagnosis_options import choose_diagnosis_protocol
    from hoicli.evaluation.selection import diagnosed_protocol
    from hoicli.interface.inputs import Inputs, require_truth

    gt, limit = require_truth(gt, "confusion"), count_of("top", top)
    chosen_protocol = choose_diagnosis_protocol(names_of(protocol), text_of(dataset))
    dataset_name = text_of(dataset) or (chosen_protocol.dataset if chosen_protocol is not None else None)
    inputs = Inputs(dataset_name, shared, within="hico", gt=gt)
    models = [model.refuse_match_records("confusion") for model in inputs.models(predictions, name)]
    tags = inputs.tags_beside(tag, models)
    vocabulary = load(dataset_name or "hico")
    views, chosen_protocol = inputs.views(vocabulary), chosen_protocol or diagnosed_protocol(vocabulary)
    confused = confused_models(
        models, inputs.read_truth(gt, vocabulary), chosen_protocol, inputs.filters, inputs.policy, views
    )
    cells_of_models = [(model, model.cells()) for model in confused]
    rows = list(chain.from_iterable(model.rows(cells, top=limit, tags=tags) for model, cells in cells_of_models))

    def draw(path: str, look: Look) -> None:
        """Draw the heat maps of all models into a file."""
        from hoicli.figures.confusion_plot import plot_confusion
        from hoicli.figures.shown import caveats_of

        panels = list(chain.from_iterable(model.panels(cells) for model, cells in cells_of_models))
        plot_confusion(panels, path, look, caveats=caveats_of(rows))

    return Result(rows, draw=draw)
