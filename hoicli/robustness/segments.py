"""The bounding rectangle of an instance mask as COCO writes masks: polygons, or run lengths.

A mask is all that SAMPL's rectangle needs of an instance, and its bounding rectangle is all that is needed of the
mask: nothing is ever rasterised, so a hostile size costs nothing.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from hoicli.records.parsing import is_number

Edges = tuple[float, float, float, float]
"""Left, top, right, bottom; a pixel p covers [p, p + 1], so the right edge of a box is its last pixel + 1."""


def segment_edges(segment: Any) -> Edges | None:
    """The rectangle around a COCO segmentation; None around an empty one.

    Polygons [[x1, y1, x2, y2, ...], ...]; run lengths {"size": [height, width], "counts": [...]}, columns first,
    background first (cocodataset/cocoapi maskApi.c). Raises `ValueError` that says what is wrong.
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
    if type(counts) is not list or not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError("counts must be run lengths, whole numbers of at least 0 (pycocotools unpacks packed ones)")
    height, width = size
    if sum(counts) != height * width:
        raise ValueError(f"the run lengths cover {sum(counts)} pixels, the size {height * width}")
    ends = np.cumsum(counts)
    first, last = ends[:-1:2], ends[1::2] - 1
    first, last = first[first <= last], last[first <= last]
    if not len(first):
        return None
    top, bottom = int((first % height).min()), int((last % height).max()) + 1
    if (first // height < last // height).any():  # over the end of a column: its last row, and the first of the next
        top, bottom = 0, height
    return float(first[0] // height), float(top), float(last[-1] // height + 1), float(bottom)
