"""What each corruption does to pixels and boxes.

A corruption draws its random part once for an image, whatever the severity: the severities of an image share the
direction of a blur, the noise, the cracks. The random part follows from (image id, corruption, seed) by a hash, so
pixels depend on nothing else but the recipe's constants.

A box goes where its content goes. Where light is spread over several places (motion_blur's trail, zoom_blur's layers),
that is the mean of the places, each weighted by its share of the light. Light that is spread alike to all sides (the
other blurs, pixelate) or changed where it is (noise, exposure) moves no box.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from hoicli.corruption import cracks, environment, geometry, optical, sensor
from hoicli.corruption.catalogue import HOICLI_1, Effect, Recipe, added
from hoicli.corruption.pixels import Image, Shape

EFFECTS: Mapping[str, Effect] = {
    **optical.EFFECTS,
    **sensor.EFFECTS,
    **environment.EFFECTS,
    **geometry.EFFECTS,
    **cracks.EFFECTS,
}
"""Of hoicli's own corruptions."""


def effect_of(name: str) -> Effect:
    """What a corruption does that a recipe has, hoicli's own or another package's."""
    if name in EFFECTS:
        return EFFECTS[name]
    found = added(name)
    if found is None:
        raise KeyError(name)
    return found.effect


def draw(name: str, shape: Shape, *, image_id: object, seed: int, recipe: Recipe = HOICLI_1) -> Any:
    """The random part of a corruption of an image of `shape` (height, width, channels)."""
    text = json.dumps([str(image_id), name, seed])
    digest = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(digest)))
    return effect_of(name).draw(rng, shape, recipe.levels[name])


def corrupt(
    image: Image, name: str, severity: int, *, image_id: object = "", seed: int = 0, recipe: Recipe = HOICLI_1
) -> Image:
    """One of the corruptions on an image, uint8 [height, width, 1 or 3 (RGB)]; the image is left as it is.

    Raises `ValueError` for another kind of array, a name that the recipe lacks or a severity that is not 1 to 5.
    """
    if name not in recipe.levels or not 1 <= severity <= 5:
        raise ValueError(f"no corruption {name!r} of severity {severity}")
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3):
        raise ValueError(f"an image is uint8 [height, width, 1 or 3], not {image.dtype} {list(image.shape)}")
    drawn = draw(name, image.shape, image_id=image_id, seed=seed, recipe=recipe)
    return effect_of(name).apply(image, drawn, *recipe.level(name, severity))
