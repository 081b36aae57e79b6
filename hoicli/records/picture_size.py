"""Whether a picture is the one that a record describes, by its size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

TURNED = " (are they those of the picture as its EXIF mark turns it? hoicli reads it unturned)"
"""The likely reason where a record's size or boxes fit a picture only with its width and height exchanged."""


def misfit(size: tuple[float, float] | None, boxes: Iterable[Sequence[float]], pixels: tuple[int, int]) -> str:
    """Return the text that shows that a picture is not the one of a record, "" if nothing does. size: the record's
    width and height, of which the picture may be another scale; without them, it is checked whether the boxes fit only
    the picture with its width and height exchanged. pixels: the picture's width and height."""
    width, height = pixels
    file = f"the file has {width} x {height} pixels"
    if size is None:
        x, y = (max(chain.from_iterable(box[axis::2] for box in boxes), default=0.0) for axis in (0, 1))
        fits_turned = (x > 1.1 * width or y > 1.1 * height) and x <= height + 1 and y <= width + 1
        return f"the boxes reach to {x:g}, {y:g}, {file}{TURNED}" if fits_turned else ""
    if _alike(size, pixels):
        return ""
    return f"the record says {size[0]:g} x {size[1]:g}, {file}{TURNED if _alike(size, pixels[::-1]) else ''}"


def _alike(size: tuple[float, float], pixels: tuple[int, int]) -> bool:
    """Return whether two sizes are the same but for their scale, rounded to whole pixels."""
    (width, height), (other_width, other_height) = size, pixels
    fits_in_width = abs(other_width - width * other_height / height) <= 1.5
    return fits_in_width or abs(other_height - height * other_width / width) <= 1.5
