"""SAMPL's semantic-aware masks (RoHOI, section 4, equation 3): a black rectangle over each instance that interacts.

Of the instance's mask only its bounding rectangle counts; for an instance without a mask, its box is taken. Each edge
is moved outwards by a random share of the side (so that nothing can be learnt from where an instance ends), and about
the centre of the result stands a rectangle whose sides are the cover ratio times those of the instance: the paper
says that the ratio controls "the final height and width of the generated black box" and how much is occluded "of each
instance's bounding box". So the dilation with which the paper begins changes nothing, and there is none. The largest
expansion is ours: the paper's words give none.

Random amounts depend on (seed, image_id, number of the box) alone, through BLAKE2: the same on every machine.

    >>> mask_rectangle((10, 20, 30, 60), ratio=0.5, outwards=(0, 0, 0, 0), size=None)
    (15, 30, 24, 49)

(20 by 40 pixels become 10 by 20 around the same centre; the last two numbers are the last pixel that is black.)

Random pixelation (RPP) is the baseline that the masks are compared with (section 5.3 and Table 2). The paper's words:
it "pixelates input images with the same probability as data augmentation", that is "with a 50% probability", and
"indiscriminately distorts both essential and redundant information". Read as: the whole image, or nothing of it,
decided by (seed, image_id) alone. They give no size of a block; 8 pixels are ours, meant for pictures of 640. A block
is the mean of its pixels, rounded, and those at the right and lower edge are what is left over.

    >>> pixelate(np.array([[[0], [2], [9]], [[0], [4], [7]]], dtype=np.uint8), 2)[..., 0].tolist()
    [[2, 2, 8], [2, 2, 8]]
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, product
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

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

EXPAND = 0.1
"""The largest share of a side by which an edge moves outwards; ours."""

MOST_MASKS = 1_000
"""The most masks of an image; HICO-DET has up to 322 boxes. More would not fit into a JPEG's comment, either."""

SAME_INSTANCE = 0.7
"""Boxes of one label with at least this IoU show one instance; ours."""
BLOCK = 8
"""The side of a block of a pixelated image in pixels; ours."""
FARTHEST = 1e9
"""The largest coordinate, in pixels: sums of larger ones would be off by pixels, in floating point."""

Pixels = NDArray[np.uint8]
Edges = tuple[float, float, float, float]
"""(left, top, right, bottom); the pixel p covers [p, p + 1], so the right edge of a box is its last pixel + 1."""
Rectangle = tuple[int, int, int, int]
"""(x1, y1, x2, y2): the first and the last pixel that is black, as in boxes of records."""


class Change(NamedTuple):
    """A change that is made to images, such as masking.

    key: the field of a record that says what was done to its image. choose(record): returns what to do to the image, in
    the form that records have it, such as the rectangles to blacken; [] or 0 for nothing. apply(pixels, choice):
    returns a changed copy of an image [height, width, channels]."""

    key: str
    choose: Callable[[Record], Any]
    apply: Callable[[Pixels, Any], Pixels]

    def record(self, record: Record) -> Record:
        """Return the image record, which `read_record` must have checked, with what to do to its image under `key`."""
        return {**record, self.key: self.choose(record)}


def masking(ratio: str, seed: int) -> Change:
    """Return the change that masks instances. ratio: the side of a mask as a share of its instance's side, as a number
    from 0 to 1 or as the name of a level; seed: of the random amounts. Raises `UsageError` for any other ratio."""
    try:
        number = RATIOS[ratio] if ratio in RATIOS else float(ratio)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise UsageError(f"{arg('ratio', ratio)}: choose {', '.join(RATIOS)}, or a number from 0 to 1")
    return Change(key="masks", choose=partial(masks_of, ratio=number, seed=seed), apply=blacken)


def masks_of(record: Record, *, ratio: float, seed: int = 0, expand: float = EXPAND) -> list[list[int]]:
    """Return the rectangles [x1, y1, x2, y2] to blacken in an image, one for each instance that interacts.

    record: of the image, checked; its `segmentations`, if it has them, are COCO's polygons, or None, for each box.
    ratio: the side of a mask as a share of its instance's side, 0 for no masks; expand: the largest share of the side
    by which each edge is moved outwards at random."""
    segments = record.get("segmentations") or [None] * len(record["boxes"])
    size = (record["width"], record["height"]) if "width" in record and "height" in record else None
    rectangles = []
    for number in chosen_boxes(record) if ratio else ():
        segment = segments[number]
        edges = box_edges(record["boxes"][number]) if segment is None else _segment_edges(segment)
        if edges is None:
            continue
        outwards = [share * expand for share in random_shares(seed, str(record["image_id"]), number)]
        rectangle = mask_rectangle(edges, ratio=ratio, outwards=outwards, size=size)
        if rectangle is not None:
            rectangles.append([*rectangle])
    return rectangles


def blacken(pixels: Pixels, rectangles: Sequence[Sequence[int]]) -> Pixels:
    """Return a copy of an image [height, width, channels] with these rectangles [x1, y1, x2, y2] in black."""
    copy = pixels.copy()
    for x1, y1, x2, y2 in rectangles:
        copy[y1 : y2 + 1, x1 : x2 + 1] = 0
    return copy


def chosen_boxes(record: Mapping[str, Any]) -> list[int]:
    """Return the indices of the boxes to mask, ascending: subjects and objects of interactions, one for each instance.

    HICO-DET draws an instance anew for every pair that it is in: of boxes of one label with an IoU of SAME_INSTANCE or
    more, only the first is taken. Raises `DataError` for more than MOST_MASKS boxes.
    """
    hois = [hoi for hoi in record["hois"] if hoi["verb"] != NO_INTERACTION]
    numbers = {hoi[key] for hoi, key in product(hois, ("subject", "object")) if hoi.get(key) is not None}
    edges = np.array([box_edges(box) for box in record["boxes"]]).reshape(-1, 4).T  # [4, boxes], as `iou` takes them
    chosen_by_label: dict[str | None, list[int]] = {}
    for number in sorted(numbers):
        chosen_of_label = chosen_by_label.setdefault(record["labels"][number], [])
        if not (iou(edges[:, [number]], edges[:, chosen_of_label], inclusive=False) >= SAME_INSTANCE).any():
            chosen_of_label.append(number)
        if len(chosen_of_label) > MOST_MASKS:  # already too many: comparing more would take long
            break
    chosen = sorted(chain.from_iterable(chosen_by_label.values()))
    if len(chosen) > MOST_MASKS:
        raise DataError(f"more than {MOST_MASKS:,} instances to mask in an image", field="boxes")
    return chosen


def box_edges(box: Sequence[float]) -> Edges:
    """Return the edges of a record's box [x1, y1, x2, y2], whose x2 and y2 are its last pixels."""
    x1, y1, x2, y2 = box
    return float(min(x1, x2)), float(min(y1, y2)), float(max(x1, x2)) + 1, float(max(y1, y2)) + 1


def _polygon_problem(polygons: Any) -> str:
    """Return what is wrong with an instance's mask, "" if it is COCO's polygons, [[x1, y1, x2, y2, ...], ...]."""
    if type(polygons) is not list:
        return "no polygons; give COCO's, or null to use the box"
    for polygon in polygons:
        is_even = type(polygon) is list and len(polygon) >= 6 and len(polygon) % 2 == 0
        if not is_even or not all(is_number(value) and abs(value) <= FARTHEST for value in polygon):
            return "a polygon is [x1, y1, x2, y2, x3, y3, ...], finite numbers"
    return ""


def _segment_edges(polygons: Sequence[Sequence[float]]) -> Edges | None:
    """Return the edges of the smallest rectangle around an instance's mask, None for a mask without polygons."""
    if not polygons:
        return None
    xs = list(chain.from_iterable(polygon[0::2] for polygon in polygons))
    ys = list(chain.from_iterable(polygon[1::2] for polygon in polygons))
    return float(min(xs)), float(min(ys)), float(max(xs)), float(max(ys))


def random_shares(seed: int, image_id: str, number: int) -> tuple[float, ...]:
    """Return four random numbers in [0, 1), one for each edge of a box. number: the index of the box in its image."""
    digest = hashlib.blake2b(f"{seed}\0{image_id}\0{number}".encode(), digest_size=16).digest()
    return tuple(word / 2**32 for word in struct.unpack(">4I", digest))


def mask_rectangle(
    edges: Edges, *, ratio: float, outwards: Sequence[float], size: tuple[float, float] | None
) -> Rectangle | None:
    """Return the black rectangle of an instance, at least one pixel wide and high; None if it lies outside the image.

    edges: of the instance. Each is moved outwards by its number in `outwards` (left, top, right, bottom), as a share of
    the side; the black rectangle has the same centre as the result, its sides are `ratio` times those of the instance,
    and it is cut off where the image ends. size: the (width, height) of the image, None if unknown.
    """
    spans = []
    for axis, limit in enumerate(size or (None, None)):  # x, then y
        low, end = edges[axis], edges[axis + 2]
        side = end - low
        middle = (low + end + (outwards[axis + 2] - outwards[axis]) * side) / 2
        half = ratio * side / 2  # of the rectangle's side
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
    """Return the nearest whole number, halves rounded up (Python's `round` takes the even one)."""
    return math.floor(value + 0.5)


# Pixelation


def pixelation(probability: float, seed: int) -> Change:
    """Return the change that pixelates each image with this probability; raise `UsageError` for a number that is no
    probability. seed: of the random choice."""
    if not 0 <= probability <= 1:
        problem = "give a probability from 0 to 1; SAMPL's baseline has 0.5"
        raise UsageError(f"{arg('pixelate', probability)}: {problem}")
    return Change("pixelated", partial(block_of, probability=probability, seed=seed), pixelate)


def block_of(record: Record, *, probability: float, seed: int) -> int:
    """Return BLOCK, the side of the blocks in pixels, with this probability, else 0: the image stays as it is. The
    choice depends on the seed and the image's id alone."""
    digest = hashlib.blake2b(f"{seed}\0{record['image_id']}\0pixelate".encode(), digest_size=4).digest()
    return BLOCK if int.from_bytes(digest, "big") / 2**32 < probability else 0


def pixelate(pixels: Pixels, block: int) -> Pixels:
    """Return a copy of an image [height, width, channels] in blocks of `block` by `block` pixels, each of their mean,
    with halves rounded up."""
    height, width = pixels.shape[:2]
    tops, lefts = np.arange(0, height, block), np.arange(0, width, block)
    block_heights, block_widths = np.diff(tops, append=height), np.diff(lefts, append=width)
    # reduceat adds up the rows, then the columns, from each block's first one to the next block's
    row_sums = np.add.reduceat(pixels, tops, axis=0, dtype=np.int64)
    sums = np.add.reduceat(row_sums, lefts, axis=1)
    count = (block_heights[:, np.newaxis] * block_widths)[..., np.newaxis]
    means = ((2 * sums + count) // (2 * count)).astype(np.uint8)  # sums / count, rounded in whole numbers
    blocks: Pixels = means.repeat(block_heights, axis=0).repeat(block_widths, axis=1)
    return blocks


# Records and files


def read_record(line: Line) -> Record:
    """Return the image record on a line, with everything checked that masking reads of it. Raises `DataError` for its
    first problem."""
    record = parse(line)
    # of any vocabulary, with or without scores, labels and objects
    for problem in problems(record, None, scored=False, optional_fields=("size",), nulls=NULLS):
        raise problem.error(line.place)
    for number, box in enumerate(record["boxes"]):
        if max(map(abs, box)) > FARTHEST:
            raise DataError("is no place in an image", place=line.place, field=f"boxes[{number}]")
    segments = record.get("segmentations")
    if segments is not None and not (type(segments) is list and len(segments) == len(record["boxes"])):
        raise DataError("must be an array, a mask or null for each box", place=line.place, field="segmentations")
    for number, segment in enumerate(segments or ()):
        if fault := "" if segment is None else _polygon_problem(segment):
            raise DataError(fault, place=line.place, field=f"segmentations[{number}]")
    return record


def image_path(record: Record, place: str) -> PurePosixPath:
    """Return the path of a record's image, from the folder of images on. Raises `DataError`, with the record's place,
    for a record without a `file_name`, or one that leads out of the folder."""
    return PurePosixPath(file_name_of(record, place).replace("\\", "/"))


def write_changed(record: Record, change: Change, images: str, out: str, place: str) -> Record:
    """Write the changed image of a record and return its record: with the image's size, and with what was done to it in
    the field `change.key`.

    images, out: the folders to read from and write to, under the same file name. An image that is not to be changed is
    copied byte for byte. Raises `DataError`, with the record's place, for an image that cannot be read or is of another
    size than the record says, and where an image in `images` would or could be overwritten.
    """
    from hoicli.corruption.images import add_stamp, encode, read_picture

    path = image_path(record, place)
    source, target = Path(images, path), Path(out, path)
    register_input(source, is_kept=False)
    data, picture = read_picture(record, source, place)
    height, width = picture.pixels.shape[:2]
    record = change.record({**record, "width": width, "height": height})  # decides what to do, under `change.key`
    could_overwrite = lies_in(source, Path(out))
    if lies_in(Path(images), Path(out)):  # `out` is around `images`: only what is written into `images` is in danger
        could_overwrite = lies_in(target, Path(images))
    if could_overwrite:
        problem = f"{path}: {arg('images')} and {arg('save_images')} are nested, and an image could be overwritten"
        raise DataError(f"{problem}; give a folder outside", place=place, field="file_name")
    if choice := record[change.key]:
        pixels = picture.pixels.copy()
        pixels[:, :, :3] = change.apply(pixels[:, :, :3], choice)  # transparency stays as it is
        data = add_stamp(picture, encode(picture, pixels), {change.key: choice})
    write_whole(target, data, root=Path(out))
    return record
