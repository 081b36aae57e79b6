"""`hoicli mask`: SAMPL's semantic-aware masks on training images, and the random pixelation they are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hoicli.commands.corrupt import require_libraries
from hoicli.errors import UsageError, arg
from hoicli.interface import options
from hoicli.interface.checks import FOLDER, READ_FOLDER
from hoicli.interface.command import command
from hoicli.interface.option_values import text_of
from hoicli.interface.options import Files, Given, Option, Piped, Unpack
from hoicli.interface.results import Records

if TYPE_CHECKING:
    from hoicli.io.streams import Line
    from hoicli.records.parsing import Record


@command(
    reads="image records, and with --images their images",
    writes="the records with masks; with --save-images masked images",
    examples="""
        hoicli mask --ratio low --rectangles gt.jsonl > masks.jsonl  # rectangles for a data loader to paint
        mkdir -p masked; hoicli mask --seed 7 --images images --save-images masked gt.jsonl > masked.jsonl
            # masked copies of the images, seed 7 for epoch 7
        mkdir -p rpp; hoicli mask --pixelate 0.5 --seed 7 --images images --save-images rpp gt.jsonl > rpp.jsonl
            # the baseline RPP: every other image pixelated as a whole
    """,
    see=["curriculum", "corrupt"],
)
def mask(
    records: Annotated[Given | None, Piped("RECORDS...")] = None,
    *,
    ratio: Annotated[str | float, Option("LEVEL", offer="robustness.masking_levels:RATIOS")] = "middle",
    seed: Annotated[int, Option("N")] = 0,
    images: Annotated[options.Path | None, Option("DIR", check=READ_FOLDER)] = None,
    save_images: Annotated[options.Path | None, Option("DIR", check=FOLDER)] = None,
    rectangles: bool = False,
    pixelate: Annotated[float | None, Option("F")] = None,
    **shared: Unpack[Files],
) -> Records:
    """Put a black rectangle over each instance that interacts, for training on partial cues (SAMPL).

    The rectangle's sides are the cover ratio times those of the instance (of its COCO mask in `segmentations`, else of
    its box), and chance moves it by up to a twentieth of a side. The records come back with the rectangles as `masks`
    ([x1, y1, x2, y2], first and last black pixel). No image is needed unless --images and --save-images ask for masked
    ones. With --pixelate whole images are pixelated instead, and `pixelated` is 8, the side of their blocks, or 0.

    Arguments:
        records: Files of image records, read as one; - or nothing is stdin.
        ratio: Cover ratio: clean (no mask), low (0.4), middle (0.5), high (0.6), or a number: the
            rectangle's sides as a share of the instance's.
        seed: Another seed moves the masks; use the epoch's number, for example.
        images: The folder of the images; needs --save-images.
        save_images: Write the masked images to this folder, under their names.
        rectangles: Write only image_id and masks (or pixelated), for a data loader that paints the rectangles itself.
        pixelate: Instead of masks: pixelate whole images, each with probability F (SAMPL's baseline RPP: 0.5).
    """
    from hoicli.interface.inputs import Inputs
    from hoicli.records.intake import ImageRegister
    from hoicli.robustness.masks import image_path, masking, pixelation, read_record, write_changed

    source, target = text_of(images), text_of(save_images)
    if (source is None) != (target is None):
        both = f"{arg('images')} and {arg('save_images')}"
        raise UsageError(f"{both} go together: the folder of the images, and that of the masked ones")
    change = masking(str(ratio), seed)
    if pixelate is not None:
        if ratio != "middle":  # the default
            raise UsageError(f"{arg('pixelate')} takes the place of masks: leave out {arg('ratio')}")
        change = pixelation(pixelate, seed)
    if source is not None and target is not None:
        require_libraries(arg("images"))
        if Path(source).resolve() == Path(target).resolve():
            problem = "is the folder of the images; give another, or they would be overwritten"
            raise UsageError(f"{arg('save_images', target)}: {problem}")
    inputs = Inputs(None, shared)
    policy, lines = inputs.policy, inputs.records(records, "records", "RECORDS", name="records").refuse_empty()

    def read_records() -> Iterator[tuple[Line, Record]]:
        """Yield (line, its record) of all good records; bad ones are skipped, or raise, as --on-error says."""
        register, files = ImageRegister(), ImageRegister(unit="a file", field="file_name")
        for line in lines:
            with policy.item(line.place):
                record = read_record(line)
                register.add(str(record["image_id"]), line)
                if target is not None:  # a second record of a file would be painted over the first
                    files.add(str(image_path(record, line.place)), line)
                yield line, record

    def mask_records() -> Iterator[Record]:
        """Yield the records with masks, and write the masked images if these are asked for."""
        # read all before the first image is written, so that a bad record leaves no images behind
        for line, record in read_records() if target is None else list(read_records()):
            with policy.item(line.place):
                if source is None or target is None:
                    changed = change.record(record)
                else:
                    changed = write_changed(record, change, source, target, line.place)
                yield {"image_id": record["image_id"], change.key: changed[change.key]} if rectangles else changed

    return Records(policy.report_at_end(mask_records()))
