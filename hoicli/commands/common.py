"""Options that several commands share, each declared once so that it reads the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import OUTPUT, READ, Count

ON_ERROR = ("stop", "skip")
"""What `--on-error` takes."""

ROUNDS = Count(2, 100_000)
"""Of resampling. A round holds two numbers a class and model, which for HICO-DET come to 1 GB a model; and with so many
the ends of an interval stand within a hundredth of the standard error of where any number of rounds would put them."""
JOBS = Count(1, 1024)
"""Processes, or questions under way: no machine has so many processors, and no more files may be open by default."""

Output = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write here, whole or not at all (.gz compresses), onto no input; - is stdout.",
    ),
    OUTPUT,
]
OnError = Annotated[
    str,
    typer.Option(
        "--on-error",
        metavar="|".join(ON_ERROR),
        help="A bad line stops the run, or is dropped, counted and reported.",
        autocompletion=choices.one_of(*ON_ERROR),
    ),
]
Dataset = Annotated[
    str,
    typer.Option(
        "--dataset",
        metavar="NAME",
        help="The benchmark whose labels are meant: hico, vcoco, swig.",
        autocompletion=choices.datasets,
    ),
]
DatasetOfProtocols = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="NAME",
        help="All protocols of hico (default), vcoco or swig, where none is named.",
        autocompletion=choices.datasets,
    ),
]

Predictions = Annotated[
    list[str] | None,
    typer.Argument(metavar="PREDS...", help="Prediction streams, taken together; - or nothing is stdin."),
    READ,
]
GroundTruthOption = Annotated[str | None, typer.Option("--gt", metavar="FILE", help="Ground truth records."), READ]
Protocols = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help="hico, hico-ko, qpic, upt, diag, inp-cc; vcoco-agent, vcoco-s1, vcoco-s2, vcoco-qpic; swig; several "
        "with commas, or all (default).",
        autocompletion=choices.several(choices.protocols),
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="NAME",
        help="Adds unseen and seen: rare_first (rf-uc), non_rare_first (nf-uc), unseen_object (uo), "
        "unseen_verb (uv), uc0 to uc4.",
        autocompletion=choices.splits,
    ),
]
IgnoreNoInteraction = Annotated[
    bool,
    typer.Option("--ignore-no-interaction", help="Leave the no_interaction classes out of every mean (520 of 600)."),
]
Bootstrap = Annotated[
    int | None,
    typer.Option(
        "--bootstrap",
        metavar="N",
        help="A 95 % interval for every mAP, from N resamples of the images (1000 is usual).",
    ),
    ROUNDS,
]
Seed = Annotated[int, typer.Option("--seed", metavar="S", help="Which resamples: same seed, same intervals.")]
TopK = Annotated[int | None, typer.Option("--top-k", metavar="K", help="Keep the best K triplets of an image.")]
NMS = Annotated[
    float | None,
    typer.Option(
        "--nms",
        metavar="T",
        help="Pair NMS: drop a triplet whose IoU_subject^a * IoU_object^b with a better one exceeds T (CDN: 0.7).",
    ),
]
Alpha = Annotated[float, typer.Option("--nms-alpha", metavar="A", help="The exponent of the subjects' IoU.")]
Beta = Annotated[float, typer.Option("--nms-beta", metavar="B", help="The exponent of the objects' IoU.")]
AllowUncounted = Annotated[
    bool,
    typer.Option(
        "--allow-uncounted",
        help="Compute although most of the ground truth, or of the predictions, is of no class of the dataset.",
    ),
]
WordNet = Annotated[
    str | None,
    typer.Option(
        "--wordnet",
        metavar="NAME|DIR",
        help="In place of the embedded WordNet 3.0: another that nltk reads, from its data folders (wordnet31) or DIR; "
        "with :LANG, words of another language for the senses of 3.0 (omw-1.4:fra).",
    ),
    READ,
]
CountImages = Annotated[
    str | None,
    typer.Option(
        "--count-images",
        metavar="NAME",
        help="Other images than the protocol's own in which predictions count: all, boxes (annotated with some) or "
        "interactions (the same; UPT's loader).",
        autocompletion=choices.counted_images,
    ),
]
Tag = Annotated[
    list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="Put a tag onto every row; repeatable.")
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="auto, table, jsonl, csv, md or latex; auto is a table on a terminal, else jsonl.",
        autocompletion=choices.formats,
    ),
]


def inputs(paths: list[str] | None, what: str) -> list[str]:
    """The streams to read; stdin when none is named, unless it is a terminal, where a command would seem to hang."""
    import sys

    from hoicli.errors import UsageError

    if not paths and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(f"give {what}, or pipe them in (- reads the terminal)")
    return paths or ["-"]


def skips(on_error: str) -> bool:
    """Whether bad lines are to be skipped; refuses anything but stop and skip."""
    from hoicli.errors import UsageError

    if on_error not in ON_ERROR:
        raise UsageError(f"--on-error {on_error}: choose {' or '.join(ON_ERROR)}")
    return on_error == "skip"
