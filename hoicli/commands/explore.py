"""`hoicli explore`: one HTML page about one model or two, with a summary and the errors and images behind it."""

from __future__ import annotations

from typing import Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import choices, options
from hoicli.interface.checks import PAGE, READ_FOLDER
from hoicli.interface.command import command
from hoicli.interface.option_values import names_of, text_of
from hoicli.interface.options import Filtered, Names, Option, Unpack
from hoicli.interface.results import Notes
from hoicli.vocabulary.datasets import load

SLICES = "people,pairs,objects,distance"
"""The parts of the data that the page can filter by if --slice is not given (besides groups of classes)."""


@command(
    reads="predictions of one model or two, and ground truth with --gt",
    writes="a folder with a page that opens from disk, or one file; with --serve the page is served to this machine",
    examples="""
        hoicli explore --gt gt.jsonl --images images -o explorer preds.jsonl  # then open explorer/index.html
        hoicli explore --gt gt.jsonl -o page.html preds.jsonl other.jsonl  # two models, in one file
        hoicli explore --gt gt.jsonl --slice people,distance:0.5:1 -o near preds.jsonl  # other parts of the data
    """,
    see=["diagnose", "compare", "table"],
    exits={0: "done, or --serve was ended by Ctrl-C"},
)
def explore(
    gt: options.Truth = None,
    predictions: options.Models = None,
    *,
    dataset: options.Dataset = None,
    protocol: Annotated[str | None, Option("NAME", offer="evaluation.protocols:PROTOCOLS")] = None,
    name: options.ModelNames = None,
    images: Annotated[options.Path | None, Option("DIR", check=READ_FOLDER)] = None,
    slice: Annotated[Names, Option("NAME", offer=choices.SLICES, several=True)] = None,
    bootstrap: Annotated[int, Option("N", check=options.ROUNDS_OR_NONE)] = 1000,
    seed: options.Seed = 0,
    serve: bool = False,
    output: Annotated[options.Path | None, Option("DIR|FILE.html", check=PAGE, short="-o")] = None,
    **shared: Unpack[Filtered],
) -> Notes:
    """Make one HTML page: a summary, and the classes, errors and images behind each number.

    The summary has the findings in words, all protocols, types of errors, confusions, classes and parts of the data;
    for two models, also whether one is better. From there, go to a class's curve, its errors and images, or to what one
    model finds and the other does not. You can filter by type, verb, object, score, IoU and slice. The page's address
    holds the view, so you can share it; ? lists the keys. The page works offline.

    Arguments:
        protocol: The protocol that decides what is an error, as in diagnose: diag (default) or diag-paper; for V-COCO
            vcoco-s1 (default) or vcoco-s2; or a file.
        images: The folder of the images, which the page links to; without it boxes are drawn on blank sheets.
        slice: The parts of the data that the page shows: people, pairs, objects, distance (default), other limits
            (distance:0.5:1), or a file of image_id<TAB>slice lines; several with commas. For slices of images that you
            name, the gains are computed, too.
        bootstrap: The number of resamples of the images, and for two models of swaps; 0: neither intervals nor p.
        serve: Serve the page at 127.0.0.1, for this machine only, and write nothing.
        output: The folder to write, whole or not at all: new, empty, or an earlier page, which is replaced; or
            FILE.html: the page as one file, without pictures.
    """
    from hoicli.diagnosis.diagnosis_options import choose_diagnosis_protocol
    from hoicli.evaluation.selection import choose_protocols, diagnosed_protocol
    from hoicli.evaluation.slices import CLASSES, parse_slices
    from hoicli.evaluation.views import slice_applies
    from hoicli.explorer.content import page_server, write_page
    from hoicli.explorer.folder import is_file
    from hoicli.explorer.measurements import PageRequest, measure
    from hoicli.interface.inputs import Inputs, require_truth
    from hoicli.resampling.draws import Resampling

    gt, dataset_name, path = require_truth(gt, "explore"), text_of(dataset), text_of(output)
    if (path is None) != serve:
        how = f"{arg('output', like='PAGE.html')}, the page to write, or {arg('serve')} to look at it now"
        raise UsageError(f"explore: give {how}; one of the two")
    if path is not None and images is not None and is_file(path):
        problem = f"one file holds no pictures; leave it out, or give {arg('output', like='DIR')}"
        raise UsageError(f"{arg('images', text_of(images))}: {problem}")

    chosen_protocol = choose_diagnosis_protocol(names_of(protocol), dataset_name)
    dataset_name = dataset_name or (chosen_protocol.dataset if chosen_protocol else None)
    vocabulary = load(dataset_name or "hico")
    chosen_protocol = chosen_protocol or diagnosed_protocol(vocabulary)
    slices = parse_slices(names_of(slice) or SLICES.split(","), vocabulary)
    if class_slices := [slice_.name for slice_ in slices if slice_.of == CLASSES]:
        problem = f"the page filters by verb, {vocabulary.qualifier} and frequency anyway; leave it out"
        raise UsageError(f"{arg('slice', ','.join(class_slices))}: {problem}")
    if slice and (unusable := [slice_.name for slice_ in slices if not slice_applies(slice_, chosen_protocol)]):
        problem = (
            f"{chosen_protocol.name} goes by the person first, and may need no object; use people, pairs or a file"
        )
        raise UsageError(f"{arg('slice', ','.join(unusable))}: {problem}")
    slices = [slice_ for slice_ in slices if slice_applies(slice_, chosen_protocol)]

    resampling = Resampling.from_options(bootstrap, seed, or_none=True)  # or_none: 0 rounds are allowed
    inputs = Inputs(dataset_name, shared, within="hico", gt=gt)
    models = inputs.models(predictions, name)
    if len(models) > 2:
        raise UsageError(f"{models[2].name}: the page shows one model or two; give at most two streams")
    models = [model.refuse_match_records("explore") for model in models]
    protocols = choose_protocols((), vocabulary.path or vocabulary.name)
    # gains on parts of the data take long: they are computed for slices that the user asked for
    request = PageRequest(
        vocabulary, chosen_protocol, protocols, slices,
        repaired=slice is not None, filters=inputs.filters, resampling=resampling,
    )  # fmt: skip
    truth, folder = inputs.truth(gt), text_of(images)
    with truth.rereadable():  # the page reads the ground truth again
        measured = measure(models, truth, request, inputs.policy)
        if path is not None:
            write_page(measured, truth, path, folder)
            return Notes()
        server = page_server(measured, truth, folder)
    server.run()
    return Notes()
