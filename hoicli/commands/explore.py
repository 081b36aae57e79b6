"""`hoicli explore`: one page to find out why, from every prediction of one model or two."""

from __future__ import annotations

from hoicli.commands import choices, options
from hoicli.commands.checks import PAGE_FOLDER, READ_FOLDER, Count
from hoicli.commands.manual import command
from hoicli.commands.options import flag, option
from hoicli.errors import UsageError
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load

SLICES = "people,pairs,objects,distance"
"""What the page filters by, besides its groups of classes, where --slice says nothing."""


@command(
    reads="predictions of one model or two, and ground truth with --gt",
    writes="a folder with a page that opens from disk, or with --serve the page itself, for this machine",
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
    predictions: list[str] | None = options.MODELS,
    gt: str | None = options.GROUND_TRUTH,
    dataset: str | None = options.dataset(f"{options.A_DATASET}.", None),
    protocol: str | None = option(
        None,
        "--protocol NAME",
        "Whose rules say what is right, as in diagnose: diag (default; of V-COCO vcoco-s1 or vcoco-s2), or a file.",
        offer=choices.single_protocols,
    ),
    name: list[str] | None = options.NAMES,
    images: str | None = option(
        None, "--images DIR", "The folder of the images; without it boxes stand on empty sheets.", mark=READ_FOLDER
    ),
    pictures: str = option(
        "link",
        "--pictures",
        "What of the images stands in the folder: symbolic links (default: nothing is copied), or copies, to send on.",
        one_of=("link", "copy"),
    ),
    slice_: list[str] | None = option(
        None,
        "--slice NAME",
        f"What the page can filter by: {SLICES} (default), other cuts (distance:0.5:1), or a file of "
        "image_id<TAB>slice lines; several with commas.",
        offer=choices.slices,
        several=True,
    ),
    serve: bool = flag("--serve", "Serve the page at 127.0.0.1, for this machine only, and write nothing."),
    port: int = option(0, "--port N", "The port of --serve; 0 (default) takes a free one.", mark=Count(0, 65535)),
    on_error: str = options.ON_ERROR,
    output: str | None = option(
        None,
        "-o --output DIR",
        "The folder to write, whole or not at all: new, empty, or an explorer, which is replaced.",
        mark=PAGE_FOLDER,
    ),
    *,
    filtering: options.Filtering,
    dumps: options.Dumps,
) -> None:
    """One page to find out why: classes, errors and images, linked, filtered at once, and two models side by side.

    Click a class for its precision-recall curve, its errors by type and gain, and its images; filter by type, verb,
    object, score, IoU and slice; see what A finds and B does not. The page's address holds the view, so that it can be
    sent; ? lists its keys. Numbers are those of diagnose. The page loads nothing from the network. Same input, same
    bytes.
    """
    from hoicli.diagnosis.run import diagnose_models, diagnosing
    from hoicli.evaluation.predictions import Predictions
    from hoicli.evaluation.slices import CLASSES, parse_slices
    from hoicli.explorer.run import Collecting, serve_explorer, write_explorer

    gt = options.required(gt, "explore")
    if (output is None) != serve:
        raise UsageError("explore: give -o DIR, the folder to write, or --serve to look at once; one of the two")
    if port and not serve:
        raise UsageError(f"--port {port}: goes with --serve")
    if serve and pictures == "copy":
        raise UsageError("--pictures copy: --serve reads pictures where they are; leave it out, or give -o DIR")
    paths = options.inputs(predictions, "PREDS")
    if len(paths) > 2:
        raise UsageError(f"{paths[2]}: the page shows one model or two; give at most two streams")
    row = diagnosing([protocol] if protocol else [], dataset, "shared")
    dataset = dataset or (row.dataset if row else None)
    vocabulary = load(dataset or "hico")
    slices = parse_slices(slice_ or [SLICES], vocabulary)
    if of_classes := [made.name for made in slices if made.of == CLASSES]:
        raise UsageError(
            f"--slice {','.join(of_classes)}: the page filters by verb, {vocabulary.qualifier} and "
            "frequency anyway; leave it out"
        )
    policy = options.policy(on_error)
    opening = dumps.opening(dataset, policy, within=dataset or "hico")
    models = Predictions.named(paths, options.separated(name), opening.predictions)
    for model in models:
        model.unmatched("explore")
    truth, collecting = Stream([gt], "ground truth", opening.truth), Collecting(slices)
    with truth.rereadable():
        diagnosed = diagnose_models(
            models, truth, dataset, filtering.filters(), policy, protocol=row, collector=collecting
        )
        policy.report()
        explored = collecting.explored(diagnosed, truth)
    if output is None:
        serve_explorer(explored, port, images)
    else:
        write_explorer(explored, output, images, pictures)
