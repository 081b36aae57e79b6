"""20 corruptions after RoHOI's, five severities each, in four families: the recipe `hoicli-1`.

A corruption draws its random part once for an image, whatever the severity: the severities of an image share the
direction of a blur, the noise, the cracks. The random part follows from (image id, corruption, seed) by a hash, so
pixels depend on nothing else. The paper (RoHOI, appendix C) describes each in words and publishes no constants;
`constants` has ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.corruption import environment, geometry, optical, sensor
from hoicli.corruption.constants import CONSTANTS
from hoicli.corruption.families import family_of
from hoicli.corruption.pixels import Image, Shape
from hoicli.corruption.warps import Warp


def _draw_nothing(_rng: np.random.Generator, _shape: Shape) -> None:
    return None


@dataclass(frozen=True)
class Corruption:
    """One row of the table. The four functions take what `draw` gave and the severity's constants.

    draw(rng, shape): the random part, shared by the severities. apply(image, drawn, *constants): the corrupted image.
    hidden(shape, drawn, *constants): [height, width] pixels whose content cannot be seen any more, where it takes any
    away. motion(shape, drawn, *constants): where it moves things, where it does.
    """

    name: str
    description: str
    apply: Callable[..., Image]
    draw: Callable[[np.random.Generator, Shape], Any] = _draw_nothing
    hidden: Callable[..., NDArray[np.bool_]] | None = None
    motion: Callable[..., Warp] | None = None

    @property
    def family(self) -> str:
        """The key of FAMILIES it belongs to."""
        return family_of(self.name)


FAMILIES = {
    "optical": "optical system",
    "sensor": "sensor, compression and transmission",
    "environment": "environment",
    "geometry": "geometry and scene",
}

_ROWS = (
    Corruption("motion_blur", "the camera moved: a fading trail in one direction", optical.motion_blur,
               optical.draw_angle),
    Corruption("defocus_blur", "out of focus: every point a disk", optical.defocus_blur),
    Corruption("gaussian_blur", "scattered light: Gaussian blur", optical.soft_blur),
    Corruption("glass_blur", "through rough glass: pixels change places with near ones", optical.glass_blur,
               optical.draw_shifts),
    Corruption("gaussian_noise", "thermal noise, the same everywhere", sensor.gaussian_noise,
               sensor.draw_normal),
    Corruption("shot_noise", "few photons: Poisson noise", sensor.shot_noise, sensor.draw_bits),
    Corruption("salt_pepper_noise", "pixels that are black or white", sensor.salt_pepper_noise,
               sensor.draw_pixel_bits),
    Corruption("jpeg", "JPEG compression", sensor.jpeg),
    Corruption("speckle_noise", "noise in proportion to brightness", sensor.speckle_noise,
               sensor.draw_normal),
    Corruption("packet_loss", "slices of the picture lost: black, or filled from elsewhere",
               sensor.packet_loss, sensor.draw_slices, hidden=sensor.lost_pixels),
    Corruption("exposure", "over- or underexposed (by chance)", environment.exposure,
               environment.draw_direction),
    Corruption("rainbow", "a projector's colour bands, red and blue shifted apart", environment.rainbow,
               environment.draw_rainbow),
    Corruption("occlusion", "black rectangles before the scene", environment.occlusion,
               environment.draw_rectangles, hidden=environment.occluded),
    Corruption("vignette", "darker towards the corners", environment.vignette),
    Corruption("moire", "a screen's lines against the camera's: lines and broad fringes", geometry.moire,
               geometry.draw_grids),
    Corruption("screen_crack", "a broken screen: cracks and white reflections", geometry.screen_crack,
               geometry.draw_cracks, hidden=geometry.cracked),
    Corruption("elastic", "warped at random over short distances", geometry.elastic, geometry.draw_field,
               motion=geometry.elastic_motion),
    Corruption("perspective", "a lens with barrel or pincushion distortion (by chance)",
               geometry.perspective, geometry.draw_lens, motion=geometry.lens_motion),
    Corruption("pixelate", "coarse blocks", geometry.pixelate),
    Corruption("zoom_blur", "the lens zoomed in during the exposure", geometry.zoom_blur,
               motion=geometry.zoom_motion),
)  # fmt: skip

CORRUPTIONS = {row.name: row for row in _ROWS}


def level_of(name: str, severity: int) -> tuple[Any, ...]:
    """The constants of one of CORRUPTIONS at a severity from 1 to 5."""
    return CONSTANTS[name].levels[severity - 1]


def draw(name: str, shape: Shape, *, image_id: object, seed: int) -> Any:
    """The random part of a corruption of an image of `shape` (height, width, channels)."""
    text = json.dumps([str(image_id), name, seed])
    digest = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    return CORRUPTIONS[name].draw(np.random.Generator(np.random.Philox(np.random.SeedSequence(digest))), shape)


def corrupt(image: Image, name: str, severity: int, *, image_id: object = "", seed: int = 0) -> Image:
    """One of CORRUPTIONS on an image, uint8 [height, width, 1 or 3 (RGB)]; the image is left as it is.

    Raises `ValueError` for another kind of array, another name or a severity that is not 1 to 5.
    """
    if name not in CORRUPTIONS or not 1 <= severity <= 5:
        raise ValueError(f"no corruption {name!r} of severity {severity}")
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3):
        raise ValueError(f"an image is uint8 [height, width, 1 or 3], not {image.dtype} {list(image.shape)}")
    drawn = draw(name, image.shape, image_id=image_id, seed=seed)
    return CORRUPTIONS[name].apply(image, drawn, *level_of(name, severity))
