"""SAMPL's semantic-aware masks (RoHOI, section 4, equation 3): a black rectangle over each instance that interacts.

The instance's mask is dilated, its bounding rectangle taken, each edge moved outwards by a random share of the side (so
that nothing can be learnt from where an instance ends), and the rectangle shrunk about its centre to the cover ratio.
Of the dilation only the bounding rectangle is kept, so dilating the rectangle is the same; without a mask the box
stands in for it. The paper's words give no amounts of dilation and expansion: those here are ours.

Random amounts depend on (seed, image_id, number of the box) alone, through BLAKE2: the same on every machine, whatever
else is masked.

    >>> mask_rectangle((10, 20, 30, 60), ratio=0.5, dilate=0, outwards=(0, 0, 0, 0), size=None)
    (15, 30, 24, 49)

(20 by 40 pixels become 10 by 20 around the same centre; the last two numbers are the last pixel that is black.)
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, product
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError, UsageError, arg
from hoicli.io.file_claims import register_input
from hoicli.io.outputs import lies_in, write_whole
from hoicli.io.streams import Line
from hoicli.records.boxes import iou
from hoicli.records.image import NULLS, problems
from hoicli.records.names import file_name_of
from hoicli.records.parsing import Record, is_number, parse
from hoicli.records.seen import NO_INTERACTION
from hoicli.robustness.masking_levels import RATIOS

DILATE = 5.0
"""Pixels; ours."""
EXPAND = 0.1
"""The largest share of a side by which an edge moves outwards; ours."""

MOST_MASKS = 1_000
"""The most masks of an image; HICO-DET has up to 322 boxes. More would not fit into a JPEG's comment, either."""

SAME_INSTANCE = 0.7
"""Boxes of one label with at least this IoU show one instance; ours."""
FARTHEST = 1e9
"""Pixels from the origin that a coordinate may be: sums of larger ones would lose the pixel."""

Pixels = NDArray[np.uint8]
Edges = tuple[float, float, float, float]
"""Left, top, right, bottom; a pixel p covers [p, p + 1], so the right edge of a box is its last pixel + 1."""
Rectangle = tuple[int, int, int, int]
"""First and last black pixel: x1, y1, x2, y2, as boxes count."""


class Change(NamedTuple):
    """A change that is made to images, such as masking. key: where a record says what was done to its image;
    of(record): what to do to the image, nothing where that is empty or 0; painted(pixels, done): a changed copy of an
    image [height, width, channels]."""

    key: str
    of: Callable[[Record], Any]
    painted: Callable[[Pixels, Any], Pixels]

    def record(self, record: Record) -> Record:
        """Return the image record with what is done under `key`. The record must have been checked (`read_record`)."""
        return {**record, self.key: self.of(record)}


def masking(ratio: str, seed: int) -> Change:
    """Return the change that masks instances, by a level's name or by number: 0 leaves the image as it is, 1 hides an
    instance. Raises `UsageError` for a ratio that is out of range."""
    try:
        number = RATIOS[ratio] if ratio in RATIOS else float(ratio)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise UsageError(f"{arg('ratio', ratio)}: choose {', '.join(RATIOS)}, or a number from 0 to 1")
    return Change("masks", partial(masks_of, ratio=number, seed=seed), blacken)


def masks_of(
    record: Record, *, ratio: float, seed: int = 0, dilate: float = DILATE, expand: float = EXPAND
) -> list[list[int]]:
    """Return the rectangles to blacken in an image."""
    segments = record.get("segmentations") or [None] * len(record["boxes"])
    size = (record["width"], record["height"]) if "width" in record and "height" in record else None
    rectangles = []
    for number in chosen_boxes(record) if ratio else ():
        segment = segments[number]
        edges = box_edges(record["boxes"][number]) if segment is None else segment_edges(segment)
        if edges is None:
            continue
        outwards = [share * expand for share in chances(seed, str(record["image_id"]), number)]
        rectangle = mask_rectangle(edges, ratio=ratio, dilate=dilate, outwards=outwards, size=size)
        if rectangle is not None:
            rectangles.append([*rectangle])
    return rectangles


def blacken(pixels: Pixels, rectangles: Sequence[Sequence[int]]) -> Pixels:
    """Return a copy of an image with its rectangles black."""
    copy = pixels.copy()
    for x1, y1, x2, y2 in rectangles:
        copy[y1 : y2 + 1, x1 : x2 + 1] = 0
    return copy


def chosen_boxes(record: Mapping[str, Any]) -> list[int]:
    """Return the numbers of the boxes to mask, rising: subjects and objects of interactions, one box for each instance.

    HICO-DET draws an instance anew for every pair it is in: of boxes of one label that overlap by SAME_INSTANCE, the
    first stands for all. Raises `DataError` for more than MOST_MASKS.
    """
    hois = [hoi for hoi in record["hois"] if hoi["verb"] != NO_INTERACTION]
    numbers = {hoi[key] for hoi, key in product(hois, ("subject", "object")) if hoi.get(key) is not None}
    edges = np.array([box_edges(box) for box in record["boxes"]]).reshape(-1, 4).T
    by_label: dict[str | None, list[int]] = {}
    for number in sorted(numbers):
        kept = by_label.setdefault(record["labels"][number], [])
        if not (iou(edges[:, [number]], edges[:, kept], inclusive=False) >= SAME_INSTANCE).any():
            kept.append(number)
        if len(kept) > MOST_MASKS:
            break
    chosen = sorted(chain.from_iterable(by_label.values()))
    if len(chosen) > MOST_MASKS:
        raise DataError(f"more than {MOST_MASKS:,} instances to mask in an image", field="boxes")
    return chosen


def box_edges(box: Sequence[float]) -> Edges:
    """Return the edges of a record's box, whose x2, y2 is its last pixel."""
    x1, y1, x2, y2 = box
    return float(min(x1, x2)), float(min(y1, y2)), float(max(x1, x2)) + 1, float(max(y1, y2)) + 1


def segment_edges(polygons: Any) -> Edges | None:
    """Return the rectangle around COCO's polygons [[x1, y1, x2, y2, ...], ...], all that masking needs of an instance's
    mask. None without polygons. Raises `ValueError` for anything else."""
    if type(polygons) is not list:
        raise ValueError("no polygons; give COCO's, or null to use the box")
    for polygon in polygons:
        if type(polygon) is not list or len(polygon) < 6 or len(polygon) % 2 or not all(map(_is_place, polygon)):
            raise ValueError("a polygon is [x1, y1, x2, y2, x3, y3, ...], finite numbers")
    xs, ys = (list(chain.from_iterable(polygon[axis::2] for polygon in polygons)) for axis in (0, 1))
    return (float(min(xs)), float(min(ys)), float(max(xs)), float(max(ys))) if polygons else None


def _is_place(value: object) -> bool:
    return is_number(value) and abs(cast("float", value)) <= FARTHEST


def chances(seed: int, image_id: str, number: int) -> tuple[float, ...]:
    """Return four random numbers in [0, 1) for a box of an image, the same on every machine."""
    digest = hashlib.blake2b(f"{seed}\0{image_id}\0{number}".encode(), digest_size=16).digest()
    return tuple(word / 2**32 for word in struct.unpack(">4I", digest))


def mask_rectangle(
    edges: Edges, *, ratio: float, dilate: float, outwards: Sequence[float], size: tuple[float, float] | None
) -> Rectangle | None:
    """Return the black rectangle of an instance, at least one pixel wide and high; None if it lies outside the image.

    The edges are moved out by `dilate` pixels, then each (left, top, right, bottom) by its share in `outwards` of the
    side; the result is shrunk to `ratio` about its centre and cut to the image (`size`: width, height).
    """
    spans = []
    for axis, limit in enumerate(size or (None, None)):
        low, end = edges[axis] - dilate, edges[axis + 2] + dilate
        side = end - low
        low, end = low - outwards[axis] * side, end + outwards[axis + 2] * side
        middle, half = (low + end) / 2, ratio * (end - low) / 2
        first = _nearest(middle - half)
        stop = max(_nearest(middle + half), first + 1)
        first = max(first, 0)
        stop = stop if limit is None else min(stop, math.ceil(limit))
        if stop <= first:
            return None
        spans.append((first, stop - 1))
    (x1, x2), (y1, y2) = spans
    return x1, y1, x2, y2


def _nearest(value: float) -> int:
    return math.floor(value + 0.5)


def read_record(line: Line) -> Record:
    """Return an image record, checked for what masking reads of it; raise `DataError` for its first problem."""
    record = parse(line)
    for problem in problems(record, None, scored=False, besides=("size",), nulls=NULLS):
        raise problem.error(line.place)
    for number, box in enumerate(record["boxes"]):
        if max(map(abs, box)) > FARTHEST:
            raise DataError("is no place in an image", place=line.place, field=f"boxes[{number}]")
    segments = record.get("segmentations")
    if segments is not None and not (type(segments) is list and len(segments) == len(record["boxes"])):
        raise DataError("must be an array, a mask or null for each box", place=line.place, field="segmentations")
    for number, segment in enumerate(segments or ()):
        try:
            if segment is not None:
                segment_edges(segment)
        except ValueError as error:
            raise DataError(str(error), place=line.place, field=f"segmentations[{number}]") from None
    return record


def image_path(record: Record, place: str) -> PurePosixPath:
    """Return where in the folders a record's image is; raise `DataError` without a name, or for one that leads out."""
    return PurePosixPath(file_name_of(record, place).replace("\\", "/"))


def write_changed(record: Record, change: Change, images: str, out: str, place: str) -> Record:
    """Write a record's image under its name in `out`, changed; a copy byte for byte where nothing is to be changed.

    Returns the record with what was done under the change's `key`; it is empty or 0 where nothing was done. Raises
    `DataError`, in the name of `place`, for an image that cannot be read or is of another size than the record says,
    and where an image of --images would or could be overwritten.
    """
    from hoicli.corruption.images import add_stamp, encode, read_picture

    path = image_path(record, place)
    source, target = Path(images, path), Path(out, path)
    register_input(source, is_kept=False)
    data, picture = read_picture(record, source, place)
    high, wide = picture.pixels.shape[:2]
    record = change.record({**record, "width": wide, "height": high})
    # if `out` is around `images`, only a target inside `images` is a danger; else any source inside `out` is
    if lies_in(target, Path(images)) if lies_in(Path(images), Path(out)) else lies_in(source, Path(out)):
        problem = f"{path}: {arg('images')} and {arg('save_images')} are nested, and an image could be overwritten"
        raise DataError(f"{problem}; give a folder outside", place=place, field="file_name")
    if done := record[change.key]:
        pixels = picture.pixels.copy()
        pixels[:, :, :3] = change.painted(pixels[:, :, :3], done)  # not what is transparent
        data = add_stamp(picture, encode(picture, pixels), {change.key: done})
    write_whole(target, data, root=Path(out))
    return record
