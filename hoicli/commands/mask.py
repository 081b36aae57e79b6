"""`hoicli mask`: SAMPL's semantic-aware masks on training images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import FOLDER, READ
from hoicli.commands.common import OnError, Output, inputs, skips
from hoicli.commands.manual import page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hoicli.io.streams import Line

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    cls=page(
        reads="image records, and with --images their images",
        writes="the records with masks and visibility; with --out masked images",
        examples=[
            ("hoicli mask --ratio low --rectangles gt.jsonl > masks.jsonl", "rectangles for a data loader to paint"),
            (
                "mkdir -p masked; hoicli mask --seed 7 --images images --out masked gt.jsonl > masked.jsonl",
                "masked copies of the images, seed 7 for epoch 7",
            ),
        ],
        see=["curriculum", "corrupt"],
    )
)
def mask(
    records: Annotated[
        list[str] | None,
        typer.Argument(metavar="RECORDS...", help="Image records, taken together; - or nothing is stdin."),
        READ,
    ] = None,
    ratio: Annotated[
        str,
        typer.Option(
            "--ratio",
            metavar="LEVEL",
            help="Cover ratio: clean (no mask), low (0.4), middle (0.5), high (0.6), or a number: the share of an "
            "instance's sides that is black.",
            autocompletion=choices.mask_levels,
        ),
    ] = "middle",
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Chance, with the image and the box; the epoch, say.")
    ] = 0,
    images: Annotated[
        str | None, typer.Option("--images", metavar="DIR", help="The folder of the images; needs --out."), READ
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Write the masked images here, under their names."),
        FOLDER,
    ] = None,
    rectangles: Annotated[
        bool, typer.Option("--rectangles", help="Only image_id and masks, for a data loader that paints them itself.")
    ] = False,
    all_boxes: Annotated[
        bool, typer.Option("--all-boxes", help="Every box, not only the subjects and objects of interactions.")
    ] = False,
    dilate: Annotated[
        float, typer.Option("--dilate", metavar="PX", help="Pixels by which an instance is dilated first.")
    ] = 5.0,
    expand: Annotated[
        float,
        typer.Option("--expand", metavar="F", help="Each edge moves outwards by a random share of its side, up to F."),
    ] = 0.1,
    on_error: OnError = "stop",
    output: Output = "-",
) -> None:
    """A black rectangle over each instance that interacts, for training on partial cues (SAMPL).

    Of each instance (its mask in COCO's form in `segmentations`, else its box) the dilated bounding rectangle is shrunk
    to the cover ratio. The records come back with the rectangles as `masks` ([x1, y1, x2, y2], first and last black
    pixel) and with the `visibility` of every box. No image is needed unless --images and --out ask for masked ones.
    """
    from hoicli.errors import DataError, UsageError
    from hoicli.io.outputs import open_output
    from hoicli.io.streams import Stream
    from hoicli.records.intake import ErrorPolicy, ImageRegister
    from hoicli.records.parsing import dump
    from hoicli.sampl.apply import Painted, check_folders, check_names, read_image, write_masked
    from hoicli.sampl.masks import Masking, masked_record, read_record

    if (images is None) != (out is None):
        raise UsageError("--images and --out go together: where the images are, and where the masked ones go")
    masking = Masking.checked(ratio=ratio, seed=seed, dilate=dilate, expand=expand, all_boxes=all_boxes)
    if images is not None and out is not None:
        check_folders(images, out)
    policy = ErrorPolicy(skip=skips(on_error))
    register = ImageRegister()
    lines: Iterable[Line] = Stream(inputs(records, "RECORDS"), "records")
    if out is not None and not policy.skip:  # told before anything is painted
        lines = list(lines)
        check_names(lines)
    painted = Painted()
    with open_output(output) as write:
        for line in lines:
            try:
                record = read_record(line)
                register.add(str(record["image_id"]), line)
                if images is None or out is None:
                    record = masked_record(record, masking)
                else:
                    image = read_image(record, images, line.place)
                    painted.add(image.name, line)
                    high, wide = image.picture.pixels.shape[:2]
                    record = masked_record({**record, "width": wide, "height": high}, masking)
                    write_masked(image, record, out)
            except DataError as error:
                policy.handle(error)
                continue
            if rectangles:
                record = {"image_id": record["image_id"], "masks": record["masks"]}
            write(dump(record))
    policy.report()
