"""The contact sheet: one picture under every corruption at every severity, whole and at full size."""

from __future__ import annotations

import cv2
import numpy as np

from hoicli.corruption.catalogue import HOICLI_1, REFERENCE_SIDE, SEVERITIES, Recipe
from hoicli.corruption.effects import corrupt
from hoicli.corruption.pixels import Image, resized

TILE = 256
"""Pixels along the longer side of a tile."""
HEAD, GAP = 22, 4
BLOCKS = 2
"""Side by side: ten corruptions below each other are about as high as two blocks are wide."""


def contact_sheet(image: Image, *, image_id: object = "", seed: int = 0, recipe: Recipe = HOICLI_1) -> Image:
    """uint8 [height, width, 3]: a row for each usual corruption of the recipe, in two blocks: the clean original, then
    a column for each severity. Below a picture that is shown smaller than it is stands its middle, pixel by pixel: what
    noise, blur and compression do is lost in a small picture.

    The image (uint8 [height, width, 1 or 3]) is reduced to REFERENCE_SIDE if larger, then corrupted.
    """
    if max(image.shape[:2]) > REFERENCE_SIDE:
        image = resized(image, *_fitting(image, REFERENCE_SIDE), cv2.INTER_AREA)
    height, width = _fitting(image, TILE)
    smaller = height < image.shape[0]
    way = cv2.INTER_AREA if smaller else cv2.INTER_NEAREST
    top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
    names = recipe.usual
    rows = -(-len(names) // BLOCKS)
    block = (1 + len(SEVERITIES)) * (width + GAP) + 3 * GAP
    row_height = HEAD + (1 + smaller) * (height + GAP)
    sheet = np.full((rows * row_height, BLOCKS * block, 3), 255, dtype=np.uint8)
    for number, name in enumerate(names):
        y, x = number % rows * row_height + HEAD, number // rows * block
        for severity in (0, *SEVERITIES):
            tile = corrupt(image, name, severity, image_id=image_id, seed=seed, recipe=recipe) if severity else image
            sheet[y : y + height, x : x + width] = resized(tile, height, width, way)
            if smaller:
                below = y + height + GAP
                sheet[below : below + height, x : x + width] = tile[top : top + height, left : left + width]
            cv2.putText(
                sheet, str(severity) if severity else f"{name}: clean", (x + 2, y - 6),
                cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 0, 0), 1, cv2.LINE_AA,
            )  # fmt: skip
            x += width + GAP
    return sheet


def _fitting(image: Image, side: int) -> tuple[int, int]:
    """(height, width) of the image with its longer side as given."""
    share = side / max(image.shape[:2])
    return max(1, round(image.shape[0] * share)), max(1, round(image.shape[1] * share))
