"""A benchmark's images: from records to corrupted files and their records, in parallel and resumable.

One job is one image under every corruption and severity asked for; it is decoded once. A file that is there already and
whose stamp says that it was made of the same bytes with the same settings stays as it is; its record is written.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hoicli.corruption.catalogue import DRAWING, HOICLI_1, JPEG_QUALITY, Recipe
from hoicli.corruption.effects import apply_effect, draw, effect_of
from hoicli.corruption.images import Picture, add_stamp, check_size, decoded_pixels, encode, read_picture, stamp_of
from hoicli.corruption.pixels import Shape
from hoicli.corruption.quality import Original
from hoicli.corruption.warps import Box, moved_boxes
from hoicli.errors import DataError, HoicliError, arg
from hoicli.io.file_claims import register_input
from hoicli.io.memory import keep_memory
from hoicli.io.messages import Progress
from hoicli.io.outputs import lies_in, write_whole
from hoicli.io.spawned_workers import ordered_map
from hoicli.io.streams import Line
from hoicli.records.image import problems
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.names import file_name_of, image_id_of
from hoicli.records.parsing import Record, dump, parse

Scores = tuple[float | None, float | None]
"""PSNR and SSIM of a corrupted image."""

CLEAN_CELL = ("clean", 0)
"""The cell of the original images, with `--with-clean`."""
NO_MEMORY = -4
"""OpenCV's error code for too little memory (cv::Error::StsNoMem)."""


@dataclass(frozen=True)
class Plan:
    """What to make of every image.

    images: the folder that the file names of records start from; out: the folder to write to; cells: each (corruption,
    severity) to make, in the order of the output; seed: of the random parts; recipe: the constants; boxes_kept: whether
    boxes stay as annotated, even where content moves; alone: whether to make records alone, without image files;
    with_clean: whether the original images come first, as the cell CLEAN_CELL."""

    images: Path
    out: Path
    cells: tuple[tuple[str, int], ...]
    seed: int
    recipe: Recipe = HOICLI_1
    boxes_kept: bool = False
    alone: bool = False
    with_clean: bool = False


@dataclass(frozen=True)
class Job:
    """The work on one image: its record, with `image_id` and `file_name`; source: its file; place: the record's."""

    record: Record
    source: Path
    place: str


class _Place(Line):
    """The place of a record in the form of a line, which `ImageRegister` takes: `file` is the whole place in words."""

    @property
    def place(self) -> str:
        """Return the place as messages begin with it."""
        return self.file

    @property
    def where(self) -> str:
        """Return the place as messages have it in a sentence."""
        return f"at {self.file}"


def record_job(line: Line, plan: Plan) -> Job:
    """Return the job for the image of a record, whose file is looked for in `plan.images`. Raises `DataError` for a
    line that is no record, has no file name, or whose boxes, size or id are invalid."""
    record = parse(line)
    source = plan.images / file_name_of(record, line.place)
    record = {"image_id": image_id_of(record["file_name"]), **record}
    register_input(source, is_kept=False)
    # Only what is used here must be right: the id, the boxes and the size.
    for problem in problems(record, None, scored=False, optional_fields=("size",)):
        name = problem.field.split("[")[0]
        if name in record and name in ("image_id", "boxes", "width", "height"):
            raise problem.error(line.place)
    return Job(record, source, line.place)


def path_job(path: str, plan: Plan) -> Job:
    """Return the job for an image file named on the command line. Its id is the file's name without the suffix; its
    `file_name` is the path from `plan.images`, or its name alone if it lies elsewhere."""
    source = Path(path)
    try:
        name = source.resolve().relative_to(plan.images.resolve()).as_posix()
    except ValueError:
        name = source.name
    return Job({"image_id": source.stem, "file_name": name}, source, path)


def unique_jobs(jobs: Iterator[Job], policy: ErrorPolicy, shard: tuple[int, int]) -> Iterator[Job]:
    """Yield the jobs of one shard of the work. An image or a file that occurs twice is an error, which goes to the
    policy. shard: (its number, from 1; the number of shards). A hash of the image's id chooses its shard."""
    images, files = ImageRegister(), ImageRegister(unit="a file", field="file_name")
    shard_number, shard_count = shard
    for job in jobs:
        image_id, place_line = str(job.record["image_id"]), _Place(job.place, 0, b"")  # the place as a line
        with policy.item():
            images.add(image_id, place_line)
            files.add(str(PurePosixPath(job.record["file_name"])), place_line)
            digest = hashlib.sha256(image_id.encode("utf-8", "surrogatepass")).digest()
            if int.from_bytes(digest[:8], "big") % shard_count == shard_number - 1:
                yield job


def run(jobs: Sequence[Job], plan: Plan, *, processes: int, policy: ErrorPolicy) -> Iterator[bytes]:
    """Carry out the jobs in parallel, and yield for each that succeeds, in their order, the lines of its records as
    bytes. Errors in the data go to the policy."""
    with Progress("corrupt", total=len(jobs) * len(plan.cells), unit="image") as progress:
        for outcome in ordered_map(partial(attempt, plan=plan), jobs, processes):
            progress.advance(len(plan.cells))
            if isinstance(outcome, DataError):
                policy.handle(outcome)
            else:
                yield outcome


def attempt(job: Job, plan: Plan) -> bytes | DataError:
    """Carry out a job and return the lines of its records, or the `DataError` that it raised: as a value, an error can
    be passed on from another process."""
    cv2.setNumThreads(1)  # every processor already has a process of its own
    keep_memory()  # for the next image: new pages from the system cost time
    try:
        return corrupt_image(job, plan)
    except DataError as error:
        return error.add_place(job.place)
    except (MemoryError, cv2.error) as error:
        if isinstance(error, cv2.error) and error.code != NO_MEMORY:
            raise
        what = f"{job.record['file_name']!r} does not fit into memory"
        problem = f"{what}; use fewer {arg('jobs')}, or make it smaller first"
        return DataError(problem, place=job.place, field="file_name", code="out-of-memory")


def corrupt_image(job: Job, plan: Plan) -> bytes:
    """Make all corruptions and severities of one image: write the files that are not there yet, and return a record for
    each, as lines. If only records are wanted (`plan.alone`), the image is read only if its record has no size.

    Raises `DataError` for a source that cannot be read or does not fit its record, or for a file it cannot write."""
    record = job.record
    make_file = None
    if plan.alone and {"height", "width"} <= record.keys():
        height, width = (max(1, round(record[side])) for side in ("height", "width"))
        shape: Shape = (height, width, 3)
        try:
            check_size(width, height)
        except DataError as error:
            raise DataError(f"{record['file_name']!r} {error.problem}", place=job.place, field="width") from None
    else:
        data, picture = read_picture(record, job.source, job.place)
        colours = picture.pixels[:, :, :3]
        shape = colours.shape
        if not plan.alone:
            _check_place(job, plan)
            make_file = partial(_make_file, job, plan, picture, Original(colours), hashlib.sha256(data).hexdigest())
    make_record = partial(
        cell_record, record, seed=plan.seed, shape=shape, recipe=plan.recipe, boxes_kept=plan.boxes_kept
    )
    lines = []
    if plan.with_clean:
        original_record = make_record(CLEAN_CELL, scores=None)
        if make_file is not None:
            _copy_original(job, plan, data)
            original_record |= {"psnr": None, "ssim": 1.0}  # no pixel changed
        lines.append(dump(original_record))
    for name, cells in groupby(plan.cells, key=itemgetter(0)):
        effect = effect_of(name)
        parameters = None
        # the random part is needed for pixels, and for boxes that move with the content or are hidden
        if make_file is not None or effect.motion is not None or effect.hidden is not None:
            parameters = draw(name, shape, image_id=record["image_id"], seed=plan.seed, recipe=plan.recipe)
        for cell in cells:
            scores = None if make_file is None else make_file(cell, parameters)
            lines.append(dump(make_record(cell, scores=scores, parameters=parameters)))
    return b"".join(lines)


def _check_place(job: Job, plan: Plan) -> None:
    """Raise `DataError` for an image in a folder that corrupted images are written to: it could be overwritten."""
    if lies_in(job.source, plan.out):
        folders = Path(os.path.realpath(job.source)).relative_to(os.path.realpath(plan.out)).parts
        cells = (CLEAN_CELL, *plan.cells) if plan.with_clean else plan.cells
        if folders[:2] in {(name, str(severity)) for name, severity in cells}:  # OUT/NAME/SEVERITY/...
            problem = f"{str(job.source)!r} lies where {arg('save_images', plan.out)} is written; give another folder"
            raise DataError(problem, place=job.place, field="file_name")


def _copy_original(job: Job, plan: Plan, data: bytes) -> None:
    """Write the original image beside the corrupted ones, unless it is there already. data: the bytes of its file.
    Raises `DataError` if it cannot be written."""
    name, severity = CLEAN_CELL
    target = plan.out / name / str(severity) / job.record["file_name"]
    if not target.is_file() or target.read_bytes() != data:
        _write(target, data, job, plan)


def _write(target: Path, data: bytes, job: Job, plan: Plan) -> None:
    """Write the file of an image. Raises `DataError` if it cannot be written."""
    try:
        write_whole(target, data, root=plan.out)
    except HoicliError as error:
        raise DataError(str(error), place=job.place, field="file_name", code="unwritable") from None


def _make_file(
    job: Job,
    plan: Plan,
    picture: Picture,
    original: Original,
    source_digest: str,
    cell: tuple[str, int],
    parameters: Any,
) -> Scores:
    """Write the corrupted image of one (corruption, severity), unless the file is there, and return its (PSNR, SSIM).

    picture, original: the source image, to corrupt and to compare with; source_digest: of the bytes of its file;
    parameters: the random part of the corruption. Raises `DataError` if the file cannot be written."""
    name, severity = cell
    target = plan.out / name / str(severity) / job.record["file_name"]
    constants = plan.recipe.level(name, severity)
    image_id = str(job.record["image_id"])
    # all that the pixels depend on; a file whose stamp has the digest of the same is not made again
    made_of = [source_digest, image_id, name, severity, plan.seed, constants, DRAWING, JPEG_QUALITY]
    if name in plan.recipe.owners:
        made_of.append(plan.recipe.owners[name])
    digest = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:32]
    stamp = stamp_of(target)
    if stamp is not None and stamp.get("digest") == digest and {"psnr", "ssim"} <= stamp.keys():
        return stamp["psnr"], stamp["ssim"]
    if name == "jpeg" and picture.kind == "JPEG":  # the file itself is the corruption
        pixels, quality = picture.pixels, constants[0]
    else:
        pixels, quality = apply_effect(picture.pixels, name, parameters, constants), JPEG_QUALITY
    data = encode(picture, pixels, quality=quality)
    corrupted_pixels = decoded_pixels(picture, pixels, data)[:, :, :3]
    psnr, ssim = original.psnr(corrupted_pixels), original.ssim(corrupted_pixels)
    stamp = {"corruption": name, "severity": severity, "seed": plan.seed, "digest": digest, "psnr": psnr, "ssim": ssim}
    _write(target, add_stamp(picture, data, stamp), job, plan)
    return psnr, ssim


def cell_record(
    record: Mapping[str, Any], cell: tuple[str, int], seed: int, scores: Scores | None, shape: Shape,
    parameters: Any = None, *, recipe: Recipe = HOICLI_1, boxes_kept: bool = False,
) -> Record:  # fmt: skip
    """Return the record of a corrupted image: the record of the image, with the name of its file in the cell's folder,
    how it was made, and, if it has boxes, these where their content went and the visible share of each.

    cell: (corruption, severity); CLEAN_CELL for the original image beside corrupted ones. scores: (PSNR, None if no
    pixel changed; SSIM, None if the picture is too small); without them, if no file was made, the record has neither.
    shape: (height, width, channels) of the image. parameters: the random part of the corruption. boxes_kept: whether
    boxes stay where they are."""
    name, severity = cell
    recipe_text = recipe.recipe_text(name, boxes_kept=boxes_kept)
    file_name = {"file_name": f"{name}/{severity}/{record['file_name']}"} if "file_name" in record else {}
    result = {**record, **file_name, "corruption": name, "severity": severity, "recipe": recipe_text, "seed": seed}
    if scores is not None:
        result |= {"psnr": scores[0], "ssim": scores[1]}
    boxes = record.get("boxes")
    if boxes is not None and cell == CLEAN_CELL:
        result["visibility"] = [1.0] * len(boxes)
    elif boxes is not None:
        result["boxes"], result["visibility"] = boxes_after(
            name, shape, parameters, recipe.level(name, severity), boxes, boxes_kept=boxes_kept
        )
    return result


def boxes_after(
    name: str,
    shape: Shape,
    parameters: Any,
    constants: Sequence[Any],
    boxes: Sequence[Box],
    *,
    boxes_kept: bool = False,
) -> tuple[list[list[float]], list[float]]:
    """Return (the boxes, moved to where the corruption moves their content; the visible share of each). name: of the
    corruption; shape: (height, width, channels) of the image; parameters: the random part, from `draw`; constants: of
    the severity; boxes: [x1, y1, x2, y2] each; boxes_kept: whether boxes stay where they are."""
    effect = effect_of(name)
    moved, visible = [[*box] for box in boxes], [1.0] * len(boxes)
    if effect.motion is not None and not boxes_kept:
        moved, visible = moved_boxes(effect.motion(shape, parameters, *constants), boxes)
    if effect.hidden is not None and boxes:
        hidden = effect.hidden(shape, parameters, *constants)
        visible = [round(share * share_visible(hidden, box), 4) for share, box in zip(visible, moved, strict=True)]
    return moved, visible


def share_visible(hidden: NDArray[np.bool_], box: Box) -> float:
    """Return the share of a box's pixels that are not hidden, of those that lie in the image; 0 if none does. hidden: a
    mask [height, width] of the image's pixels.

    x2 and y2 are the first pixels that a box no longer contains; it is at least one pixel wide and high."""
    height, width = hidden.shape
    x1, y1 = int(np.floor(box[0])), int(np.floor(box[1]))
    x2, y2 = max(x1 + 1, int(np.ceil(box[2]))), max(y1 + 1, int(np.ceil(box[3])))
    hidden_in_box = hidden[max(0, y1) : min(height, max(0, y2)), max(0, x1) : min(width, max(0, x2))]
    return round(1 - float(hidden_in_box.mean()), 4) if hidden_in_box.size else 0.0
