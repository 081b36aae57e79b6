"""A benchmark's images: from records to corrupted files and their records, in parallel and resumable.

One job is one image under every corruption and severity asked for; it is decoded once. A file that is there already and
whose stamp says that it was made of the same bytes with the same settings is left as it is, and its record is
written all the same.
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

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png")
"""The endings of arguments that are images and not streams of records."""

Scores = tuple[float | None, float | None]
"""PSNR and SSIM of a corrupted image."""

NO_MEMORY = -4
"""OpenCV's error code for too little memory (cv::Error::StsNoMem)."""


@dataclass(frozen=True)
class Plan:
    """What to make of every image. cells: each (corruption, severity), in the order of the records; images: the folder
    that file names start from; out: the folder to write to; boxes_kept: boxes stay as annotated; alone: make records
    and no files."""

    images: Path
    out: Path
    cells: tuple[tuple[str, int], ...]
    seed: int
    recipe: Recipe = HOICLI_1
    boxes_kept: bool = False
    alone: bool = False


@dataclass(frozen=True)
class Job:
    """The work on one image: its record (with image_id and file_name), its file, and the place of the record for
    messages."""

    record: Record
    source: Path
    place: str


class _Place(Line):
    """A record's place in the form of a line; messages say `file` and nothing else of it."""

    @property
    def place(self) -> str:
        return self.file

    @property
    def where(self) -> str:
        return f"at {self.file}"


def record_job(line: Line, plan: Plan) -> Job:
    """Return the job of a record. Raises `DataError` for a record without a file name, or whose boxes, size or id are
    invalid."""
    record = parse(line)
    source = plan.images / file_name_of(record, line.place)
    record = {"image_id": image_id_of(record["file_name"]), **record}
    register_input(source, is_kept=False)
    for problem in problems(record, None, scored=False, besides=("size",)):
        name = problem.field.split("[")[0]
        if name in record and name in ("image_id", "boxes", "width", "height"):
            raise problem.error(line.place)
    return Job(record, source, line.place)


def path_job(path: str, plan: Plan) -> Job:
    """Return the job of an image named on the command line; its id is the file's name without the suffix."""
    source = Path(path)
    try:
        name = source.resolve().relative_to(plan.images.resolve()).as_posix()
    except ValueError:
        name = source.name
    return Job({"image_id": source.stem, "file_name": name}, source, path)


def unique_jobs(jobs: Iterator[Job], policy: ErrorPolicy, shard: tuple[int, int]) -> Iterator[Job]:
    """Yield the jobs of one shard, and refuse an image or a file that occurs twice. shard: (its number from 1, the
    number of shards). A hash of the image's id chooses its shard, whatever the order of the records."""
    register, names = ImageRegister(), ImageRegister(unit="a file", field="file_name")
    for job in jobs:
        image_id, place_line = str(job.record["image_id"]), _Place(job.place, 0, b"")
        with policy.item():
            register.add(image_id, place_line)
            names.add(str(PurePosixPath(job.record["file_name"])), place_line)
            digest = hashlib.sha256(image_id.encode("utf-8", "surrogatepass")).digest()
            if int.from_bytes(digest[:8], "big") % shard[1] == shard[0] - 1:
                yield job


def run(jobs: Sequence[Job], plan: Plan, *, processes: int, policy: ErrorPolicy) -> Iterator[bytes]:
    """Yield the records of every job that went well, as lines in the order of the jobs; errors go to the policy."""
    with Progress("corrupt", total=len(jobs) * len(plan.cells), unit="image") as progress:
        for outcome in ordered_map(partial(attempt, plan=plan), jobs, processes):
            progress.advance(len(plan.cells))
            if isinstance(outcome, DataError):
                policy.handle(outcome)
            else:
                yield outcome


def attempt(job: Job, plan: Plan) -> bytes | DataError:
    """Return what `corrupt_image` returns, or its `DataError` as a value, which can come back from another process."""
    cv2.setNumThreads(1)  # the processes share out the processors
    keep_memory()
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
    """Make all corruptions and severities of one image: write the files that are not there yet, and return a record of
    each, as lines. For records alone the image is read only if the record does not say its size.

    Raises `DataError` for a source that cannot be read or does not fit its record, and for a file that cannot be
    written."""
    record, make = job.record, None
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
            make = partial(_make_cell, job, plan, picture, Original(colours), hashlib.sha256(data).hexdigest())
    lines = []
    for name, cells in groupby(plan.cells, key=itemgetter(0)):
        effect, parameters = effect_of(name), None
        if make is not None or effect.motion is not None or effect.hidden is not None:
            parameters = draw(name, shape, image_id=record["image_id"], seed=plan.seed, recipe=plan.recipe)
        for cell in cells:
            scores = None if make is None else make(cell, parameters)
            cell_made = cell_record(
                record, cell, plan.seed, scores, shape, parameters, recipe=plan.recipe, boxes_kept=plan.boxes_kept
            )
            lines.append(dump(cell_made))
    return b"".join(lines)


def _check_place(job: Job, plan: Plan) -> None:
    """Raise `DataError` for a source that could be overwritten, as it lies where some image's corruption is written."""
    if lies_in(job.source, plan.out):
        parts = Path(os.path.realpath(job.source)).relative_to(os.path.realpath(plan.out)).parts
        if parts[:2] in {(name, str(severity)) for name, severity in plan.cells}:
            problem = f"{str(job.source)!r} lies where {arg('save_images', plan.out)} is written; give another folder"
            raise DataError(problem, place=job.place, field="file_name")


def _make_cell(
    job: Job, plan: Plan, picture: Picture, original: Original, source: str, cell: tuple[str, int], parameters: Any
) -> Scores:
    """Return the (PSNR, SSIM) of the file of one corruption and severity, which is made unless it is there already.
    source: the digest of the original image's file."""
    name, severity = cell
    target = plan.out / name / str(severity) / job.record["file_name"]
    constants = plan.recipe.level(name, severity)
    made_of = [source, str(job.record["image_id"]), name, severity, plan.seed, constants, DRAWING, JPEG_QUALITY]
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
    try:
        write_whole(target, add_stamp(picture, data, stamp), root=plan.out)
    except HoicliError as error:
        raise DataError(str(error), place=job.place, field="file_name", code="unwritable") from None
    return psnr, ssim


def cell_record(
    record: Mapping[str, Any], cell: tuple[str, int], seed: int, scores: Scores | None, shape: Shape,
    parameters: Any, *, recipe: Recipe = HOICLI_1, boxes_kept: bool = False,
) -> Record:  # fmt: skip
    """Return the record of a corrupted image: the image's own with the new file, how it was made, and boxes and their
    visibility.

    All other fields are passed on. psnr is null where no pixel changed, ssim for a picture that is too small; a record
    made without a file (`scores` None) has neither."""
    name, severity = cell
    how_made = {
        "corruption": name,
        "severity": severity,
        "recipe": recipe.recipe_text(name, boxes_kept=boxes_kept),
        "seed": seed,
    }
    if scores is not None:
        how_made |= {"psnr": scores[0], "ssim": scores[1]}
    result = {**record, "file_name": f"{name}/{severity}/{record['file_name']}", **how_made}
    boxes = record.get("boxes")
    if boxes is not None:
        moved = boxes_after(name, shape, parameters, recipe.level(name, severity), boxes, boxes_kept=boxes_kept)
        result["boxes"], result["visibility"] = moved
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
    """Return (the boxes where their content went, the visible share of each). parameters: what `draw` returned;
    boxes_kept: leave boxes where they are."""
    effect = effect_of(name)
    moved, visible = [[*box] for box in boxes], [1.0] * len(boxes)
    if effect.motion is not None and not boxes_kept:
        moved, visible = moved_boxes(effect.motion(shape, parameters, *constants), boxes)
    if effect.hidden is not None and boxes:
        hidden = effect.hidden(shape, parameters, *constants)
        visible = [round(share * share_visible(hidden, box), 4) for share, box in zip(visible, moved, strict=True)]
    return moved, visible


def share_visible(hidden: NDArray[np.bool_], box: Box) -> float:
    """Return the share of a box's pixels in the image that are not hidden; 0 for a box without pixels in it.

    A box holds the pixels from x1 and y1 up to x2 and y2, which are not counted, and at least one in each direction."""
    height, width = hidden.shape
    x1, y1 = int(np.floor(box[0])), int(np.floor(box[1]))
    x2, y2 = max(x1 + 1, int(np.ceil(box[2]))), max(y1 + 1, int(np.ceil(box[3])))
    part = hidden[max(0, y1) : min(height, max(0, y2)), max(0, x1) : min(width, max(0, x2))]
    return round(1 - float(part.mean()), 4) if part.size else 0.0
