"""What each of the twenty corruptions does to pixels and boxes.

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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.corruption import cracks, environment, geometry, optical, sensor
from hoicli.corruption.definitions import HOICLI_1, Levels, Recipe
from hoicli.corruption.pixels import Image, Shape
from hoicli.corruption.warps import Warp


def _draw_nothing(_rng: np.random.Generator, _shape: Shape, _levels: Levels) -> None:
    return None


@dataclass(frozen=True)
class Effect:
    """What a corruption does. The four functions take what `draw` gave and the severity's constants.

    draw(rng, shape, levels): the random part, shared by the severities, for all levels of the recipe.
    apply(image, drawn, *constants): the corrupted image.
    hidden(shape, drawn, *constants): [height, width] pixels whose content cannot be seen any more, where it takes any
    away.
    motion(shape, drawn, *constants): where content goes, for a corruption that moves it.
    """

    apply: Callable[..., Image]
    draw: Callable[[np.random.Generator, Shape, Levels], Any] = _draw_nothing
    hidden: Callable[..., NDArray[np.bool_]] | None = None
    motion: Callable[..., Warp] | None = None


EFFECTS = {
    "motion_blur": Effect(optical.motion_blur, optical.draw_angle, motion=optical.blur_motion),
    "defocus_blur": Effect(optical.defocus_blur),
    "gaussian_blur": Effect(optical.soft_blur),
    "glass_blur": Effect(optical.glass_blur, optical.draw_shifts),
    "gaussian_noise": Effect(sensor.gaussian_noise, sensor.draw_normal),
    "shot_noise": Effect(sensor.shot_noise, sensor.draw_bits),
    "salt_pepper_noise": Effect(sensor.salt_pepper_noise, sensor.draw_pixel_bits),
    "jpeg": Effect(sensor.jpeg),
    "speckle_noise": Effect(sensor.speckle_noise, sensor.draw_normal),
    "packet_loss": Effect(sensor.packet_loss, sensor.draw_slices, hidden=sensor.lost_pixels),
    "exposure": Effect(environment.exposure, environment.draw_direction),
    "rainbow": Effect(environment.rainbow, environment.draw_rainbow),
    "occlusion": Effect(environment.occlusion, environment.draw_rectangles, hidden=environment.occluded),
    "vignette": Effect(environment.vignette),
    "moire": Effect(geometry.moire, geometry.draw_grids),
    "screen_crack": Effect(
        cracks.screen_crack, cracks.draw_cracks, hidden=cracks.cracked, motion=cracks.splinter_motion
    ),
    "elastic": Effect(geometry.elastic, geometry.draw_field, motion=geometry.elastic_motion),
    "perspective": Effect(geometry.perspective, geometry.draw_lens, motion=geometry.lens_motion),
    "pixelate": Effect(geometry.pixelate),
    "zoom_blur": Effect(geometry.zoom_blur, motion=geometry.zoom_motion),
}


def draw(name: str, shape: Shape, *, image_id: object, seed: int, recipe: Recipe = HOICLI_1) -> Any:
    """The random part of a corruption of an image of `shape` (height, width, channels)."""
    text = json.dumps([str(image_id), name, seed])
    digest = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(digest)))
    return EFFECTS[name].draw(rng, shape, recipe.levels[name])


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
    return EFFECTS[name].apply(image, drawn, *recipe.level(name, severity))
