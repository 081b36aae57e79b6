"""The bounding rectangle of an instance mask as COCO writes masks: polygons, or run lengths, plain or packed.

A mask is all that SAMPL's rectangle needs of an instance, and its bounding rectangle is all that is needed of the
mask: nothing is ever rasterised, so a hostile size costs nothing.
"""

from __future__ import annotations

from typing import Any, cast

from hoicli.records.parsing import is_number

Edges = tuple[float, float, float, float]
"""Left, top, right, bottom; a pixel p covers [p, p + 1], so the right edge of a box is its last pixel + 1."""


def segment_edges(segment: Any) -> Edges | None:
    """The rectangle around a COCO segmentation; None around an empty one.

    Polygons [[x1, y1, x2, y2, ...], ...]; run lengths {"size": [height, width], "counts": [...] or "packed"}, columns
    first, background first (cocodataset/cocoapi maskApi.c). Raises `ValueError` that says what is wrong.
    """
    if type(segment) is list:
        return _polygons(segment)
    if type(segment) is dict:
        return _runs(segment)
    raise ValueError("neither polygons nor run lengths; give COCO's segmentation, or null to use the box")


def _polygons(polygons: list[Any]) -> Edges | None:
    for polygon in polygons:
        if type(polygon) is not list or len(polygon) < 6 or len(polygon) % 2 or not all(map(_is_place, polygon)):
            raise ValueError("a polygon is [x1, y1, x2, y2, x3, y3, ...], finite numbers")
    xs = [x for polygon in polygons for x in polygon[0::2]]
    ys = [y for polygon in polygons for y in polygon[1::2]]
    return (float(min(xs)), float(min(ys)), float(max(xs)), float(max(ys))) if polygons else None


def _is_place(value: object) -> bool:
    return is_number(value) and abs(cast("float", value)) < 1e9


def _runs(segment: dict[str, Any]) -> Edges | None:
    size, counts = segment.get("size"), segment.get("counts")
    if type(size) is not list or len(size) != 2 or not all(type(side) is int and 0 < side < 1 << 20 for side in size):
        raise ValueError("run lengths need their size [height, width]")
    height, width = size
    if type(counts) is str:
        counts = unpacked(counts)
    if type(counts) is not list or not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError("counts must be run lengths, whole numbers of at least 0, or their packed text")
    if sum(counts) != height * width:
        raise ValueError(f"the run lengths cover {sum(counts)} pixels, the size {height * width}")
    left, top, right, bottom = width, height, 0, 0
    position = 0
    for number, count in enumerate(counts):
        if number % 2 and count:
            first, last = position, position + count - 1
            left, right = min(left, first // height), max(right, last // height + 1)
            if first // height == last // height:
                top, bottom = min(top, first % height), max(bottom, last % height + 1)
            else:  # over the end of a column: its last row, and the first of the next
                top, bottom = 0, height
        position += count
    return None if right == 0 else (float(left), float(top), float(right), float(bottom))


def unpacked(text: str) -> list[int]:
    """COCO's packed run lengths: six bits a character from "0" on, five of number and one of "more to come", the
    lowest first; the sign is the last one's fifth bit; from the third run on, the difference to the run before last.

    Raises `ValueError` for text that is none.
    """
    counts: list[int] = []
    at = 0
    while at < len(text):
        value, shift, more = 0, 0, True
        while more:
            if at == len(text) or shift > 40:
                raise ValueError("the packed run lengths are cut off")
            code = ord(text[at]) - 48
            if not 0 <= code < 64:
                raise ValueError(f"{text[at]!r} is no character of packed run lengths")
            value |= (code & 31) << shift
            shift += 5
            more = bool(code & 32)
            at += 1
            if not more and code & 16:
                value -= 1 << shift
        counts.append(value + counts[-2] if len(counts) > 2 else value)
    return counts
