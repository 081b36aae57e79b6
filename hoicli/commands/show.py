"""`hoicli show`: ground truth and predictions drawn on the images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import options
from hoicli.interface.checks import READ, READ_FOLDER, SHOWN, Count
from hoicli.interface.command import command
from hoicli.interface.option_values import count_of, names_of, text_of
from hoicli.interface.options import Argument, Files, Names, Option, Streams, Unpack
from hoicli.interface.results import Notes

if TYPE_CHECKING:
    from PIL.Image import Image

    from hoicli.figures.overlays import Overlay

TILE, PICTURE = 480, 1280
"""The most pixels of the longer side of a picture without --size: of one on a sheet, and of one in a folder."""


@command(
    reads="predictions of any number of models, ground truth with --gt, or both",
    writes="a folder of PNG files with shown.jsonl, or one sheet (.png)",
    examples="""
        hoicli show --images images -o drawn preds.jsonl  # what a model predicts, without ground truth
        hoicli show --gt gt.jsonl --images images --first 12 -o sheet.png preds.jsonl  # both on one sheet
        hoicli show --gt gt.jsonl --images images --top 3 -o look preds.jsonl other.jsonl  # two models
        hoicli show --gt gt.jsonl --images images --image-id HICO_test2015_00000002 -o one.png  # one image
    """,
    see=["explore", "diagnose", "audit"],
)
def show(
    gt: options.Truth = None,
    predictions: Annotated[Streams | None, Argument("PREDS...", check=READ)] = None,
    *,
    images: Annotated[options.Path | None, Option("DIR", check=READ_FOLDER)] = None,
    image_id: Annotated[Names, Option("NAME", several=True)] = None,
    first: Annotated[int | str, Option("N")] = 24,
    top: Annotated[int | str, Option("N")] = 5,
    size: Annotated[int | None, Option("PX", check=Count(64, 8192))] = None,
    dataset: Annotated[
        options.Path | None, options.dataset(f"For dumps that are not JSONL: {options.A_DATASET}.")
    ] = None,
    name: options.ModelNames = None,
    output: Annotated[options.Path | None, Option("FILE|DIR", check=SHOWN, short="-o")] = None,
    **shared: Unpack[Files],
) -> Notes:
    """Draw ground truth, predictions or both on the images: a folder of pictures, or one contact sheet.

    No ground truth is needed. It is cyan; each model has a colour of its own. The subject's box is solid, the object's
    dashed, and the labels of each number stand below the picture. An image is found by the record's file_name, else by
    its id or number. A missing image is a blank sheet.

    Arguments:
        predictions: Predictions, one file for each model; - is stdin.
        images: The folder of the images; without it boxes are drawn on blank sheets.
        image_id: Draw this image; repeatable, or several with commas.
        first: Without --image-id: the first N images by their ids; or all.
        top: The N best triplets of each model in an image, or all.
        size: The maximum of a picture's longer side, in pixels (default: 1280 in a folder, 480 on a sheet).
        output: FILE.png: one sheet; DIR: a PNG for each image (new, empty, or of an earlier run).
    """
    from hoicli.figures.overlays import draw_legend, encode_png, sheet, stack
    from hoicli.figures.showing import Source, choose_images, is_sheet, write_pictures
    from hoicli.interface.inputs import Inputs
    from hoicli.io.outputs import write_output

    target = text_of(output)
    if target is None:
        raise UsageError(f"show: say where to write with {arg('output')}: FILE.png for one sheet, or a folder")
    if predictions is None and gt is None:
        raise UsageError(f"show: give predictions, or ground truth with {arg('gt')}")
    image_ids, limit, best = names_of(image_id), count_of("first", first), count_of("top", top)
    if limit == 0:
        raise UsageError(f"{arg('first', 0)}: draws nothing; give a number from 1, or all")
    one_sheet = is_sheet(target)
    if one_sheet and limit is None and not image_ids:
        raise UsageError(f"{arg('first', 'all')}: too much for one sheet; give a number, or a folder")
    inputs = Inputs(text_of(dataset), shared, gt=gt)
    models = inputs.models(predictions, name) if predictions is not None else []
    sources = [] if gt is None else [Source("ground truth", inputs.truth(gt), scored=False)]
    sources += [Source(model.model, model.refuse_match_records("show"), scored=True) for model in models]
    for source in sources:
        source.read(image_ids, limit, inputs.policy)
    inputs.policy.report()
    folder = None if images is None else Path(images)
    overlays = list(choose_images(sources, image_ids, limit, best, folder))
    pictures = _draw_pictures(overlays, folder, size or (TILE if one_sheet else PICTURE))
    if one_sheet:
        whole = sheet(list(pictures))
        write_output(target, encode_png(stack([whole, draw_legend(overlays[0].layers, whole.width)])))
    else:
        explained = (stack([picture, draw_legend(overlays[0].layers, picture.width)]) for picture in pictures)
        write_pictures(target, overlays, map(encode_png, explained))
    return Notes()


def _draw_pictures(overlays: list[Overlay], folder: Path | None, longest: int) -> Iterator[Image]:
    """Yield the drawn picture of each image; then print a note if image files were missing. folder: of the image files,
    None for blank sheets; longest: the most pixels of a picture's longer side. Raises `DataError` for an image file
    that does not fit its record."""
    from hoicli.figures.overlays import check_fits, draw_overlay, open_image, tell_missing
    from hoicli.io.messages import Progress
    from hoicli.records.parsing import short

    missing = []
    with Progress("drawing", total=len(overlays), unit="image") as progress:
        for number, overlay in enumerate(overlays, start=1):
            picture = open_image(folder, overlay.file_name)
            if picture is None:
                missing.append(short(overlay.file_name or f"{overlay.image_id}, without file_name"))
            else:
                check_fits(overlay, picture)
            yield draw_overlay(overlay, picture, longest)
            progress.advance_to(number)
    tell_missing(folder, missing, len(overlays))
