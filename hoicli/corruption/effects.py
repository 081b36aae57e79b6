"""What each corruption does to pixels and boxes.

A corruption draws its random part once for an image, whatever the severity: the severities of an image share the
direction of a blur, the noise, the cracks. The random part follows from (image id, corruption, seed) by a hash, so
pixels depend on nothing else but the recipe's constants.

A box goes where its content goes. Where light is spread over several places (motion_blur's trail, zoom_blur's layers),
that is the mean of the places, each weighted by its share of the light. Light that is spread alike to all sides (the
other blurs, pixelate) or changed where it is (noise, exposure) moves no box. `contact_sheet` shows them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import cv2
import numpy as np

from hoicli.corruption import cracks, environment, geometry, optical, sensor, weather
from hoicli.corruption.catalogue import CORRUPTIONS, HOICLI_1, REFERENCE_SIDE, Effect, Recipe, added_corruption
from hoicli.corruption.pixels import Image, Shape, resize_image
from hoicli.io.row_tables import check_row, rows_by_name

_MODULES = (optical, sensor, environment, geometry, cracks, weather)
EFFECTS: Mapping[str, Effect] = rows_by_name(
    "EFFECTS in hoicli/corruption", chain.from_iterable(each.EFFECTS.items() for each in _MODULES)
)
"""The effects of hoicli's own corruptions, by name."""
for _name in CORRUPTIONS.keys() ^ EFFECTS.keys():
    check_row(
        f"corruption {_name}",
        ("EFFECTS", _name in EFFECTS, "add it to EFFECTS of the module of its family, hoicli/corruption/FAMILY.py"),
        ("_ROWS", _name in CORRUPTIONS, "it has an effect, and no row in _ROWS of hoicli/corruption/catalogue.py"),
    )


def effect_of(name: str) -> Effect:
    """Return the effect of the corruption of this name, hoicli's own or another package's. There must be one."""
    added = None if name in EFFECTS else added_corruption(name)
    return EFFECTS[name] if added is None else added.effect


def draw(name: str, shape: Shape, *, image_id: object, seed: int, recipe: Recipe = HOICLI_1) -> Any:
    """Return the random part of the corruption `name` for an image of `shape` (height, width, channels), in whatever
    form its `apply` takes it. All severities share it; it depends only on the arguments."""
    text = json.dumps([str(image_id), name, seed])
    digest = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(digest)))
    return effect_of(name).draw(rng, shape, recipe.levels[name])


def corrupt(
    image: Image, name: str, severity: int, *, image_id: object = "", seed: int = 0, recipe: Recipe = HOICLI_1
) -> Image:
    """Return a corrupted copy of an image, uint8 [height, width, channels] with 1 channel, 3 (RGB) or 4 (RGBA).

    name: a corruption that the recipe has; severity: 1 to 5; image_id, seed: what the random part depends on. The copy
    has the image's size and channels, except that `rainbow` makes grey images RGB."""
    parameters = draw(name, image[:, :, :3].shape, image_id=image_id, seed=seed, recipe=recipe)
    return apply_effect(image, name, parameters, recipe.level(name, severity))


def apply_effect(image: Image, name: str, parameters: Any, constants: Sequence[Any]) -> Image:
    """Return a corrupted copy of an image. name: of the corruption; parameters: its random part, from `draw`;
    constants: of the severity, in the order of the recipe. An alpha channel is moved if the corruption moves content;
    otherwise it stays as it is."""
    effect = effect_of(name)
    if image.shape[2] < 4 or effect.motion is not None:
        return effect.apply(np.ascontiguousarray(image), parameters, *constants)
    pixels = effect.apply(np.ascontiguousarray(image[:, :, :3]), parameters, *constants)
    return np.concatenate([pixels, image[:, :, 3:]], axis=2)


LARGE_TILE, SMALL_TILE = 192, 128
"""Pixels along the longer side of a tile; small ones are for sheets of more than MANY_TILES."""
MANY_TILES = 30
HEAD, GAP = 22, 4
"""Pixels of a line of text, and between tiles."""
_SEVERITY_WIDTH = 80
"""Pixels of a tile over which there is room for "severity 5"."""
LONG_BLOCK = 5
"""Up to this many corruptions stand in one block; more stand in two blocks side by side, so that the sheet of RoHOI's
twenty is about as wide as high."""
WHOLE_AND_MIDDLE = "above: the whole image; below: its middle, pixel by pixel"
"""What is written under a sheet that shows both."""


def contact_sheet(
    image: Image, cells: Iterable[tuple[str, int]], *, image_id: object = "", seed: int = 0, recipe: Recipe = HOICLI_1
) -> Image:
    """Return a picture, uint8 [height, width, 3], that shows what corruptions do to an image: a row for each, with the
    clean image and then a column for each severity. cells: (corruption, severity) to show, each at the same severities.

    The image (uint8 [height, width, 1 or 3]) is reduced to REFERENCE_SIDE if larger, then corrupted. Each corrupted
    image is shown at the size of a tile; where that reduces it, its middle is shown below, pixel by pixel, since noise,
    blur and compression are lost in a small picture. Texts stand between the tiles, never on them."""
    names, severities = (list(dict.fromkeys(part)) for part in zip(*cells, strict=True))
    if max(image.shape[:2]) > REFERENCE_SIDE:
        image = resize_image(image, *_size_for(image, REFERENCE_SIDE), cv2.INTER_AREA)
    is_large = len(names) * (1 + len(severities)) <= MANY_TILES
    height, width = _size_for(image, LARGE_TILE if is_large else SMALL_TILE)
    is_reduced = height < image.shape[0]
    interpolation = cv2.INTER_AREA if is_reduced else cv2.INTER_NEAREST
    middle_y, middle_x = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
    blocks = 1 if len(names) <= LONG_BLOCK else 2
    rows = -(-len(names) // blocks)  # rounded up
    block_width = (1 + len(severities)) * (width + GAP) + 3 * GAP
    row_height = HEAD + (2 if is_reduced else 1) * (height + GAP)
    sheet_height = HEAD + rows * row_height + (HEAD if is_reduced else 0)
    sheet = np.full((sheet_height, blocks * block_width, 3), 255, dtype=np.uint8)
    severity_word = "severity " if width > _SEVERITY_WIDTH else ""
    for block in range(blocks):
        for column, severity in enumerate((0, *severities)):
            title = f"{severity_word}{severity}" if severity else "clean"
            _write_text(sheet, title, block * block_width + column * (width + GAP), HEAD)
    for number, name in enumerate(names):
        y, x = HEAD + number % rows * row_height + HEAD, number // rows * block_width
        _write_text(sheet, name, x, y)
        for severity in (0, *severities):
            tile = corrupt(image, name, severity, image_id=image_id, seed=seed, recipe=recipe) if severity else image
            sheet[y : y + height, x : x + width] = resize_image(tile, height, width, interpolation)
            if is_reduced:
                middle = tile[middle_y : middle_y + height, middle_x : middle_x + width]
                middle_top = y + height + GAP
                sheet[middle_top : middle_top + height, x : x + width] = middle
            x += width + GAP
    if is_reduced:
        _write_text(sheet, WHOLE_AND_MIDDLE, 0, sheet_height)
    return sheet


def _write_text(sheet: Image, text: str, x: int, y: int) -> None:
    """Write a line of text into a picture, above what begins at (x, y)."""
    cv2.putText(sheet, text, (x + 2, y - 6), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (0, 0, 0), 1, cv2.LINE_AA)


def _size_for(image: Image, side: int) -> tuple[int, int]:
    """Return the (height, width) of the image scaled so that its longer side has `side` pixels."""
    share = side / max(image.shape[:2])
    return max(1, round(image.shape[0] * share)), max(1, round(image.shape[1] * share))
