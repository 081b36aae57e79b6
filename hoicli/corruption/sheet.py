"""The contact sheet: one picture under every corruption at every severity."""

from __future__ import annotations

import cv2
import numpy as np

from hoicli.corruption.definitions import HOICLI_1, REFERENCE_SIDE, Recipe
from hoicli.corruption.effects import corrupt
from hoicli.corruption.pixels import Image, resized
from hoicli.records.corruptions import SEVERITIES

TILE = 256
"""Pixels along the longer side of a tile."""
HEAD, GAP = 22, 4
BLOCKS = 2
"""Side by side: ten corruptions below each other are about as high as two blocks are wide."""


def contact_sheet(image: Image, *, image_id: object = "", seed: int = 0, recipe: Recipe = HOICLI_1) -> Image:
    """uint8 [height, width, 3]: a row for each corruption of the recipe, a column for each severity, in two blocks.

    The image (uint8 [height, width, 1 or 3]) is reduced to REFERENCE_SIDE if larger, corrupted, and shown smaller.
    """
    if max(image.shape[:2]) > REFERENCE_SIDE:
        image = resized(image, *_fitting(image, REFERENCE_SIDE), cv2.INTER_AREA)
    height, width = _fitting(image, TILE)
    way = cv2.INTER_AREA if height < image.shape[0] else cv2.INTER_NEAREST
    names = list(recipe.levels)
    rows = -(-len(names) // BLOCKS)
    block = len(SEVERITIES) * (width + GAP) + 3 * GAP
    row_height = HEAD + height + GAP
    sheet = np.full((rows * row_height, BLOCKS * block, 3), 255, dtype=np.uint8)
    for number, name in enumerate(names):
        top, left = number % rows * row_height, number // rows * block
        for severity in SEVERITIES:
            tile = corrupt(image, name, severity, image_id=image_id, seed=seed, recipe=recipe)
            x = left + (severity - 1) * (width + GAP)
            sheet[top + HEAD : top + HEAD + height, x : x + width] = resized(tile, height, width, way)
            cv2.putText(
                sheet, f"{name} {severity}" if severity == 1 else str(severity), (x + 2, top + HEAD - 6),
                cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 0, 0), 1, cv2.LINE_AA,
            )  # fmt: skip
    return sheet


def _fitting(image: Image, side: int) -> tuple[int, int]:
    """(height, width) of the image with its longer side as given."""
    share = side / max(image.shape[:2])
    return max(1, round(image.shape[0] * share)), max(1, round(image.shape[1] * share))
