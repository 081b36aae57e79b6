"""`hoicli confusion`: which verbs and objects are confused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from hoicli.commands import options
from hoicli.commands.command import command
from hoicli.commands.options import Option
from hoicli.commands.results import Result
from hoicli.commands.values import count_of, names_of, tags_of, text_of
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.figures.styles import Look
    from hoicli.records.results import Row


@command(
    reads="predictions, and ground truth with --gt",
    writes="result rows: number, share and cost of each confusion",
    examples=[
        ("hoicli confusion --gt gt.jsonl preds.jsonl", "the twenty of each kind that cost most mAP"),
        ("hoicli confusion --gt gt.jsonl --top all --plot confusion.png preds.jsonl", "all of them, and a heat map"),
    ],
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
    iou: options.Iou = None,
    slice: options.Slice = None,
    top_k: options.TopK = None,
    nms: options.Nms = None,
    allow_uncounted: options.AllowUncounted = False,
    from_: options.From = None,
    image_list: options.ImageList = None,
    on_error: options.OnError = "stop",
    tag: options.Tag = None,
) -> Result:
    """Which verbs are confused on correct pairs, which objects on correct boxes, and what each confusion costs.

    Every annotated triplet counts once: as the best-scored verb of its pair, leaving out other true verbs. A verb that
    is right for the pair is never a confusion. Every annotated pair counts once by its object's label. Null means
    nothing annotated, or nothing predicted. The cost is the mAP gained if that confusion alone were fixed, as the
    oracles of hoicli diagnose do it; costs overlap and do not add up.

    Arguments:
        top: Write the N confusions of names that cost most mAP, and the N costliest with null; or all.
    """
    from hoicli.commands.inputs import Inputs, policy_of, required, tags_of_views, views_of
    from hoicli.diagnosis.confusion_run import confused_models
    from hoicli.diagnosis.run import diagnosing
    from hoicli.evaluation.filters import Filters
    from hoicli.evaluation.run import read_truth
    from hoicli.evaluation.selection import protocol_of

    gt, most = required(gt, "confusion"), count_of("top", top)
    row = diagnosing(names_of(protocol), text_of(dataset))
    own = text_of(dataset) or (row.dataset if row is not None else None)
    policy, filters = policy_of(on_error), Filters.of(top_k, nms, allow_uncounted)
    inputs = Inputs(own, policy, own or "hico", from_, image_list)
    models = [model.unmatched("confusion") for model in inputs.models(predictions, name)]
    tags = tags_of(tag, *(["model"] if models[0].tagged else []), *tags_of_views(iou, slice))
    vocabulary = load(own or "hico")
    views = views_of(iou, slice, vocabulary)
    truth = read_truth(inputs.truth(gt), vocabulary, policy, allow_uncounted=allow_uncounted)
    confused = confused_models(models, truth, row or protocol_of(vocabulary), filters, policy, views)
    cells = [model.cells() for model in confused]
    rows: list[Row] = []
    for model, found in zip(confused, cells, strict=True):
        rows += model.rows(found, top=most, tags=tags)
    policy.report()

    def drawn(path: str, look: Look) -> None:
        from hoicli.figures.confusion import plot_confusion
        from hoicli.figures.shown import caveats_of

        panels = [panel for model, found in zip(confused, cells, strict=True) for panel in model.panels(found)]
        plot_confusion(panels, path, look, caveats=caveats_of(rows))

    return Result(rows, drawn=drawn)
