"""`hoicli explore`: one page to find out why, from every prediction of one model or two."""

from __future__ import annotations

from typing import Annotated

from hoicli.commands import choices, options
from hoicli.commands.checks import PAGE_FOLDER, READ_FOLDER, Count
from hoicli.commands.command import command
from hoicli.commands.options import Names, Option
from hoicli.commands.results import Notes
from hoicli.commands.values import names_of, text_of
from hoicli.errors import UsageError, arg
from hoicli.vocabulary.datasets import load

SLICES = "people,pairs,objects,distance"
"""What the page filters by, besides its groups of classes, without --slice."""


@command(
    reads="predictions of one model or two, and ground truth with --gt",
    writes="a folder with a page that opens from disk, or with --serve no files: the page is served to this machine",
    examples=[
        ("hoicli explore --gt gt.jsonl --images images -o explorer preds.jsonl", "then open explorer/index.html"),
        (
            "hoicli explore --gt gt.jsonl --name old --name new --pictures copy --images images -o both old.jsonl "
            "new.jsonl",
            "two models side by side, in a folder to send on",
        ),
        ("hoicli explore --gt gt.jsonl --slice people,distance:0.5:1 -o near preds.jsonl", "other filters"),
    ],
    see=["diagnose", "compare"],
    exits={0: "done, or --serve was ended by Ctrl-C"},
)
def explore(
    gt: options.Truth = None,
    predictions: options.Models = None,
    *,
    dataset: options.Dataset = None,
    protocol: Annotated[str | None, Option("NAME", offer="evaluation.protocols:PROTOCOLS")] = None,
    name: options.ModelNames = None,
    images: Annotated[options.Path | None, Option("DIR", mark=READ_FOLDER)] = None,
    pictures: Annotated[str, Option(one_of=("link", "copy"))] = "link",
    slice: Annotated[Names, Option("NAME", offer=choices.slices, several=True)] = None,
    serve: bool = False,
    port: Annotated[int, Option("N", mark=Count(0, 65535))] = 0,
    top_k: options.TopK = None,
    nms: options.Nms = None,
    allow_uncounted: options.AllowUncounted = False,
    from_: options.From = None,
    image_list: options.ImageList = None,
    on_error: options.OnError = "stop",
    output: Annotated[options.Path | None, Option("DIR", mark=PAGE_FOLDER, short="-o")] = None,
) -> Notes:
    """One page to find out why: linked classes, errors and images, with filters, of one model or two side by side.

    Click a class for its precision-recall curve, its errors by type and gain, and its images; filter by type, verb,
    object, score, IoU and slice; see what A finds and B does not. The page's address holds the view, so you can share
    it; ? lists the keys. The numbers are diagnose's. The page loads nothing from the network. Same input, same bytes.

    Arguments:
        protocol: The protocol that decides what is correct, as in diagnose: diag (default; for V-COCO vcoco-s1 or
            vcoco-s2), or a file.
        images: The folder of the images; without it boxes are drawn on blank sheets.
        pictures: How images get into the folder: symbolic links (default; nothing is copied), or copies, to send it on.
        slice: What the page can filter by: people, pairs, objects, distance (default), other cuts (distance:0.5:1), or
            a file of image_id<TAB>slice lines; several with commas.
        serve: Serve the page at 127.0.0.1, for this machine only, and write nothing.
        port: The port of --serve; 0 (default) takes a free one.
        output: The folder to write, whole or not at all: new, empty, or an earlier explorer, which is replaced.
    """
    from hoicli.commands.inputs import Inputs, policy_of, required
    from hoicli.diagnosis.run import diagnose_models, diagnosing
    from hoicli.evaluation.filters import Filters
    from hoicli.evaluation.slices import CLASSES, parse_slices
    from hoicli.explorer.run import Collecting, serve_explorer, write_explorer

    gt, own, folder = required(gt, "explore"), text_of(dataset), text_of(output)
    if (folder is None) != serve:
        how = f"{arg('output', like='DIR')}, the folder to write, or {arg('serve')} to look at the page now"
        raise UsageError(f"explore: give {how}; one of the two")
    if port and not serve:
        raise UsageError(f"{arg('port', port)}: goes with {arg('serve')}")
    if serve and pictures == "copy":
        how = f"{arg('serve')} reads pictures where they are; leave it out, or give {arg('output', like='DIR')}"
        raise UsageError(f"{arg('pictures', pictures)}: {how}")
    row = diagnosing(names_of(protocol), own, "shared")
    own = own or (row.dataset if row else None)
    vocabulary = load(own or "hico")
    slices = parse_slices(names_of(slice) or SLICES.split(","), vocabulary)
    if of_classes := [made.name for made in slices if made.of == CLASSES]:
        problem = f"the page filters by verb, {vocabulary.qualifier} and frequency anyway; leave it out"
        raise UsageError(f"{arg('slice', ','.join(of_classes))}: {problem}")
    policy, filters = policy_of(on_error), Filters.of(top_k, nms, allow_uncounted)
    inputs = Inputs(own, policy, own or "hico", from_, image_list)
    models = inputs.models(predictions, name)
    if len(models) > 2:
        raise UsageError(f"{models[2].name}: the page shows one model or two; give at most two streams")
    for model in models:
        model.unmatched("explore")
    truth, collecting = inputs.truth(gt), Collecting(slices)
    with truth.rereadable():
        diagnosed = diagnose_models(models, truth, own, filters, policy, protocol=row, collector=collecting)
        policy.report()
        explored = collecting.explored(diagnosed, truth)
    if folder is None:
        serve_explorer(explored, port, text_of(images))
    else:
        write_explorer(explored, folder, text_of(images), pictures)
    return Notes()
