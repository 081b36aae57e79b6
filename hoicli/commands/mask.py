"""`hoicli mask`: SAMPL's semantic-aware masks on training images, and the random pixelation they are compared with."""

from __future__ import annotations

from collections.abc import Iterable

from hoicli.commands import options
from hoicli.commands.checks import FOLDER, READ, READ_FOLDER, Count
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.errors import DataError, UsageError
from hoicli.io.outputs import open_output
from hoicli.io.streams import Line, Stream


@command(
    reads="image records, and with --images their images",
    writes="the records with masks and visibility; with --save-images masked images",
    examples=[
        ("hoicli mask --ratio low --rectangles gt.jsonl > masks.jsonl", "rectangles for a data loader to paint"),
        (
            "mkdir -p masked; hoicli mask --seed 7 --images images --save-images masked gt.jsonl > masked.jsonl",
            "masked copies of the images, seed 7 for epoch 7",
        ),
        (
            "mkdir -p rpp; hoicli mask --pixelate 0.5 --seed 7 --images images --save-images rpp gt.jsonl > rpp.jsonl",
            "the baseline RPP: every other image pixelated as a whole",
        ),
    ],
    see=["curriculum", "corrupt"],
)
def mask(
    records: list[str] | None = argument(
        None, "RECORDS...", "Streams of image records, read as one; - or nothing is stdin.", mark=READ
    ),
    ratio: str = option(
        "middle",
        "--ratio LEVEL",
        "Cover ratio: clean (no mask), low (0.4), middle (0.5), high (0.6), or a number: the share of an instance's "
        "sides that is black.",
        offer="robustness.curriculum:RATIOS",
    ),
    seed: int = option(
        0, "--seed N", "Places the masks, together with the image and the box; the number of the epoch, for example."
    ),
    images: str | None = option(
        None, "--images DIR", "The folder of the images; needs --save-images.", mark=READ_FOLDER
    ),
    save_images: str | None = option(
        None, "--save-images DIR", "Write the masked images to this folder, under their names.", mark=FOLDER
    ),
    rectangles: bool = flag(
        "--rectangles",
        "Write only image_id and masks (or pixelated), for a data loader that paints the rectangles itself.",
    ),
    all_boxes: bool = flag("--all-boxes", "Mask every box, not only the subjects and objects of interactions."),
    dilate: float = option(5.0, "--dilate PX", "How many pixels an instance is dilated first."),
    expand: float = option(0.1, "--expand F", "Each edge moves outwards by a random share of its side, up to F."),
    pixelate: float | None = option(
        None,
        "--pixelate F",
        "No masks: pixelate whole images, each with probability F, as SAMPL's baseline RPP does with 0.5.",
    ),
    block: int | None = option(
        None, "--block PX", "The side of a block with --pixelate: 8 pixels unless given.", mark=Count(2, 10_000)
    ),
    on_error: str = options.ON_ERROR,
    output: str = options.OUT,
    *,
    dumps: options.Dumps,
) -> None:
    """A black rectangle over each instance that interacts, for training on partial cues (SAMPL).

    Of each instance (its mask in COCO's form in `segmentations`, else its box) the dilated bounding rectangle is shrunk
    to the cover ratio. The records come back with the rectangles as `masks` ([x1, y1, x2, y2], first and last black
    pixel) and with the `visibility` of every box. No image is needed unless --images and --save-images ask for masked
    ones. With --pixelate whole images are pixelated instead, and `pixelated` is the side of their blocks, or 0.
    """
    from hoicli.records.intake import ImageRegister
    from hoicli.records.parsing import dump
    from hoicli.robustness.masking import (
        Perturbation,
        check_folders,
        check_names,
        painted_files,
        read_image,
        write_changed,
    )
    from hoicli.robustness.masks import Masking, read_record
    from hoicli.robustness.pixelation import BLOCK, Pixelation

    if (images is None) != (save_images is None):
        raise UsageError(
            "--images and --save-images go together: the folder of the images, and that of the masked ones"
        )
    masking = Masking.checked(ratio=ratio, seed=seed, dilate=dilate, expand=expand, all_boxes=all_boxes)
    change: Perturbation = masking
    if pixelate is not None:
        if masking != Masking.checked(ratio="middle", seed=seed, dilate=5.0, expand=0.1, all_boxes=False):
            raise UsageError("--pixelate takes the place of masks: leave out --ratio, --dilate, --expand, --all-boxes")
        change = Pixelation.checked(probability=pixelate, block=BLOCK if block is None else block, seed=seed)
    elif block is not None:
        raise UsageError(f"--block {block}: is the side of a pixelated block; give --pixelate F, too")
    if images is not None and save_images is not None:
        check_folders(images, save_images)
    policy = options.policy(on_error)
    register = ImageRegister()
    lines: Iterable[Line] = Stream(options.inputs(records, "RECORDS"), "records", dumps.opening(None, policy))
    if save_images is not None and not policy.skip:  # report bad names before painting
        lines = list(lines)
        check_names(lines)
    painted = painted_files()
    with open_output(output) as write:
        for line in lines:
            try:
                record = read_record(line)
                register.add(str(record["image_id"]), line)
                if images is None or save_images is None:
                    record = change.record(record)
                else:
                    image = read_image(record, images, line.place)
                    painted.add(str(image.name), line)
                    high, wide = image.picture.pixels.shape[:2]
                    record = change.record({**record, "width": wide, "height": high})
                    write_changed(image, record, change, images, save_images, line.place)
            except DataError as error:
                policy.handle(DataError(error.problem, place=error.place or line.place, field=error.field))
                continue
            if rectangles:
                record = {"image_id": record["image_id"], change.key: record[change.key]}
            write(dump(record))
    policy.report()
