"""`hoicli show`: ground truth and predictions drawn on the images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from hoicli.commands import options
from hoicli.commands.checks import READ_FOLDER, READ_NAMED, SHOWN, Count
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option, separated
from hoicli.errors import UsageError
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from PIL.Image import Image

    from hoicli.figures.overlays import Overlay
    from hoicli.figures.showing import Shown
    from hoicli.records.intake import ErrorPolicy

TILE = 480
"""Pixels of the longer side of a picture in a sheet."""


@command(
    reads="predictions of any number of models, ground truth with --gt, or both",
    writes="a folder of PNG files with shown.jsonl, or one sheet (.png)",
    examples=[
        ("hoicli show --images images -o drawn preds.jsonl", "what a model predicts, without ground truth"),
        ("hoicli show --gt gt.jsonl --images images --first 12 -o sheet.png preds.jsonl", "both on one sheet"),
        (
            "hoicli show --gt gt.jsonl --images images --verb ride,sit_on --score 0.3 --top 3 -o look preds.jsonl "
            "other.jsonl",
            "two models, of two verbs",
        ),
        (
            "hoicli show --gt gt.jsonl --images images --single-hoi --first 8 -o single.png preds.jsonl",
            "images of one pair, as in the SHOE supplement's Figure 6",
        ),
        ("hoicli show --gt gt.jsonl --images images --image-id HICO_test2015_00000002 -o one.png", "one image"),
    ],
    see=["explore", "diagnose", "audit"],
)
def show(
    predictions: list[str] | None = argument(
        None, "PREDS...", "Streams of predictions, one for each model; - is stdin.", mark=READ_NAMED
    ),
    gt: str | None = options.GROUND_TRUTH,
    images: str | None = option(
        None, "--images DIR", "The folder of the images; without it boxes stand on blank sheets.", mark=READ_FOLDER
    ),
    image_id: list[str] | None = option(
        None, "--image-id NAME", "Draw this image; repeatable, or several with commas."
    ),
    first: str = option("24", "--first N", "Without --image-id: the first N images by their ids; or all."),
    top: str = option("5", "--top K", "Of each model, the K best triplets of an image; or all."),
    score: float | None = option(None, "--score T", "Of predictions, only those with at least this score."),
    verb: list[str] | None = option(None, "--verb NAME", "Only triplets of these verbs; several with commas."),
    object_: list[str] | None = option(None, "--object NAME", "Only triplets with these objects; several with commas."),
    single_hoi: bool = flag(
        "--single-hoi",
        "Only images with one human-object pair in --gt, as shoe-eval has them (its supplement's Figure 6).",
    ),
    size: int | None = option(
        None,
        "--size PX",
        f"The longer side of a picture at most: 1280 in a folder, {TILE} in a sheet.",
        mark=Count(64, 8192),
    ),
    dataset: str | None = options.dataset("Labels must be of it; without it any label will do.", None),
    name: list[str] | None = options.NAMES,
    on_error: str = options.ON_ERROR,
    output: str | None = option(
        None,
        "-o --output FILE|DIR",
        "FILE.png: one sheet; DIR: a PNG for each image (new, empty, or of an earlier run).",
        mark=SHOWN,
    ),
    *,
    dumps: options.Dumps,
) -> None:
    """Draw ground truth, predictions or both on the images: a folder of pictures, or one contact sheet.

    No ground truth is needed. Ground truth is cyan, each model has a colour of its own; the subject's box is solid, the
    object's dashed. An image is looked up by the record's file_name, else by its id or number. One that is not at hand
    is a blank sheet, and a note counts them. Same input, same bytes.
    """
    from hoicli.evaluation.predictions import Predictions
    from hoicli.figures.showing import Choice, Source, chosen
    from hoicli.figures.shown_files import SHEET, kind_of

    if output is None:
        raise UsageError("show: say where to with -o: FILE.png for one sheet, or a folder")
    if not predictions and gt is None:
        raise UsageError("show: give predictions, or ground truth with --gt")
    if single_hoi and gt in (None, "-"):
        raise UsageError("--single-hoi: give the ground truth, whose pairs are counted, as a file with --gt")
    choice = Choice(
        separated(image_id),
        options.top_of(first, "--first"),
        options.top_of(top),
        score,
        frozenset(text.replace(" ", "_") for text in separated(verb)),
        frozenset(text.replace(" ", "_") for text in separated(object_)),
    )
    if choice.count == 0:
        raise UsageError("--first 0: draws nothing; give a number from 1, or all")
    if score is not None and not isfinite(score):
        raise UsageError(f"--score {score}: give a finite number")
    kind = kind_of(output)
    if kind == SHEET and choice.count is None and not image_id:
        raise UsageError("--first all: too much for one sheet; give a number, or a folder")
    vocabulary, policy = load(dataset) if dataset else None, options.policy(on_error)
    opening = dumps.opening(dataset, policy)
    models = Predictions.named(predictions, separated(name), opening.predictions) if predictions else []
    if single_hoi and gt is not None:
        choice = replace(choice, among=_single(Stream([gt], "ground truth", opening.truth), options.policy(on_error)))
    sources = [Source("ground truth", Stream([gt], "ground truth", opening.truth), scored=False)] if gt else []
    sources += [Source(model.model, model.unmatched("show"), scored=True) for model in models]
    for source in sources:
        source.read(choice, vocabulary, policy)
    policy.report()
    folder = None if images is None else Path(images)
    found = list(chosen(sources, choice, folder))
    drawing = _drawn(found, folder, size or (TILE if kind == SHEET else 1280))
    _write(output, kind, [item.overlay for item in found], drawing)


def _single(truth: Stream, policy: ErrorPolicy) -> frozenset[str]:
    """The images of one human-object pair, and a note of how many there are."""
    from hoicli.records.triplets import read_triplets
    from hoicli.shoe.single_hoi import single_pair_images

    triplets = read_triplets(truth, policy=policy, truth=True)
    keep = single_pair_images(triplets)
    note(f"--single-hoi: {int(keep.sum()):,} of {len(keep):,} images have one human-object pair")
    return frozenset(image_id for image_id, single in zip(triplets.image_ids, keep.tolist(), strict=True) if single)


def _drawn(found: list[Shown], folder: Path | None, size: int) -> Iterator[Image]:
    """The pictures one after another, then a note of the images that were not at hand."""
    from hoicli.figures.overlays import drawn, opened
    from hoicli.io.progress import Progress
    from hoicli.records.parsing import short

    missing = []
    with Progress("drawing", total=len(found), unit="image") as progress:
        for number, item in enumerate(found, start=1):
            picture = opened(folder, item.file_name)
            if picture is None:
                missing.append(short(item.file_name or f"{item.overlay.image_id}, without file_name"))
            yield drawn(item.overlay, picture, size)
            progress.to(number)
    if missing and folder is not None:
        note(
            f"--images {folder}: no picture of {len(missing):,} of {len(found):,} images (the first: {missing[0]}); "
            "their boxes stand on blank sheets"
        )


def _write(output: str, kind: str, overlays: list[Overlay], pictures: Iterator[Image]) -> None:
    from hoicli.figures.overlays import encoded, sheet
    from hoicli.figures.shown_files import FOLDER, write_pictures
    from hoicli.io.outputs import open_output

    if kind == FOLDER:
        write_pictures(output, overlays, map(encoded, pictures))
        return
    data = encoded(sheet(list(pictures)))
    with open_output(output) as write:
        write(data)
