"""Checks, by its size, that a picture is the one a record describes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

TURNED = " (are they those of the picture as its EXIF mark turns it? hoicli reads it unturned)"
"""The likely reason where a record's size or boxes fit a picture only with its width and height exchanged."""


def describe_misfit(size: tuple[float, float] | None, boxes: Iterable[Sequence[float]], pixels: tuple[int, int]) -> str:
    """Return a message if a picture cannot be the one of a record; "" if it can.

    size: (width, height) in the record, None if it has none; the picture may be a scaled copy. boxes: [x1, y1, x2, y2]
    each; if the record has no size, they may show that width and height are exchanged. pixels: the picture's (width,
    height)."""
    width, height = pixels
    file = f"the file has {width} x {height} pixels"
    if size is None:
        x = max(chain.from_iterable(box[0::2] for box in boxes), default=0.0)
        y = max(chain.from_iterable(box[1::2] for box in boxes), default=0.0)
        # ours: a tenth beyond the picture is no rounding; turned, a box may reach a pixel beyond
        reaches_beyond = x > 1.1 * width or y > 1.1 * height
        fits_turned = x <= height + 1 and y <= width + 1
        if reaches_beyond and fits_turned:
            return f"the boxes reach to {x:g}, {y:g}, {file}{TURNED}"
        return ""
    if _have_same_shape(size, pixels):
        return ""
    turned = TURNED if _have_same_shape(size, (height, width)) else ""
    return f"the record says {size[0]:g} x {size[1]:g}, {file}{turned}"


def _have_same_shape(size: tuple[float, float], pixels: tuple[int, int]) -> bool:
    """Return whether two sizes (width, height) have the same ratio of sides, as far as rounding to pixels allows."""
    width, height = size
    other_width, other_height = pixels
    fits_in_width = abs(other_width - width * other_height / height) <= 1.5
    return fits_in_width or abs(other_height - height * other_width / width) <= 1.5
