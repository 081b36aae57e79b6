"""Geometry and scene: moire, elastic warp, lens distortion, pixelation and zoom blur."""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hoicli.corruption.catalogue import Effect, Levels, scale_of
from hoicli.corruption.pixels import (
    Image,
    Shape,
    box_means,
    cos_and_sin,
    draw_side,
    remap_image,
    round_to_bytes,
    strips,
    waves,
)
from hoicli.corruption.warps import Displacement, Lens, Zoom

Grids = NDArray[np.float64]


def draw_grids(rng: Generator, _shape: Shape, _levels: Levels) -> Grids:
    """Draw the angle of the screen's grid, the turn and stretch of the camera's grid against it, and the centre (x, y)
    of its curvature."""
    turn = rng.uniform(0.03, 0.07) * rng.choice([-1, 1])
    return np.array([rng.uniform(0, np.pi), turn, rng.uniform(1.02, 1.06), *rng.uniform(-0.5, 0.5, 2)])


def moire(image: Image, grids: Grids, contrast: float, lines: float) -> Image:
    """Return the image under two fine grids that do not quite agree, one slightly curved: their lines and the broad
    fringes between them. The three colours lie a third of a line apart, as on a screen."""
    height, width = image.shape[:2]
    side = max(height, width)
    angle, turn, stretch, *centre = grids
    lines = min(lines, side / 3)
    x, y = (np.arange(width) - width / 2) / side, (np.arange(height) - height / 2) / side
    curved_x, curved_y = 0.12 * (x - centre[0]) ** 2, 0.12 * (y - centre[1]) ** 2
    camera_x = cos_and_sin(lines * (stretch * np.cos(angle + turn) * x + curved_x))
    camera_y = cos_and_sin(lines * (stretch * np.sin(angle + turn) * y + curved_y))
    screen_x = cos_and_sin(lines * np.cos(angle) * x)
    screens = [cos_and_sin(lines * np.sin(angle) * y + channel / 3) for channel in range(image.shape[2])]
    result = np.empty_like(image)
    for rows in strips(height):
        own_waves = waves(camera_y[:, rows], camera_x)
        own_waves += 1
        own_waves *= 127.5 * contrast / 2
        for channel, screen_y in enumerate(screens):
            pattern = waves(screen_y[:, rows], screen_x)
            pattern += 1
            pattern *= own_waves
            pattern -= 127.5 * contrast / 2
            pattern += image[rows, :, channel]
            result[rows, :, channel] = round_to_bytes(pattern)
    return result


Fields = Mapping[float, NDArray[np.float64]]
"""For each sigma of the recipe, the field [x and y, height, width] that the amplitude multiplies."""


def draw_field(rng: Generator, shape: Shape, levels: Levels) -> Fields:
    """Draw random numbers in [-1, 1), smoothed over a share `sigma` of the sides, times 0.5 % of the height."""
    height, width = shape[:2]
    rough = rng.random((2, height, width)) * 2 - 1
    fields = {}
    for share in {level[1] for level in levels}:
        sigmas = [max(2.0, side * share) for side in (height, width)]
        down, across = (cv2.getGaussianKernel(2 * int(3 * sigma + 0.5) + 1, sigma) for sigma in sigmas)
        # as one kernel, which OpenCV takes through a Fourier transform: in half the time, for large pictures in a tenth
        smooth = [cv2.filter2D(part, cv2.CV_64F, down @ across.T, borderType=cv2.BORDER_REFLECT) for part in rough]
        fields[share] = np.stack(smooth).astype(np.float64) * (0.005 * height)
    return fields


def elastic_motion(shape: Shape, fields: Fields, amplitude: float, sigma: float) -> Displacement:
    """Return the displacement of the elastic warp."""
    dx, dy = fields[sigma] * (amplitude * scale_of(*shape[:2]))
    return Displacement(dx, dy)


def elastic(image: Image, fields: Fields, amplitude: float, sigma: float) -> Image:
    """Return the image with every pixel taken from a little away, and neighbours from about the same side; the picture
    is mirrored at its border."""
    sources = elastic_motion(image.shape, fields, amplitude, sigma).sources()
    return remap_image(image, *sources, border=cv2.BORDER_REFLECT)


def lens_motion(shape: Shape, is_barrel: bool, barrel: float, pincushion: float) -> Lens:
    """Return the displacement of the lens."""
    return Lens((shape[0], shape[1]), barrel if is_barrel else pincushion)


def perspective(image: Image, is_barrel: bool, barrel: float, pincushion: float) -> Image:
    """Return the image through a barrel, beside which the border is repeated (black corners would weigh more than the
    lens), or a pincushion, whose corners are lost."""
    sources = lens_motion(image.shape, is_barrel, barrel, pincushion).sources()
    return remap_image(image, *sources, border=cv2.BORDER_REPLICATE)


def pixelate(image: Image, _: None, resolution: float) -> Image:
    """Return the image shrunk to this share of its sides, each pixel the mean of what it covers, and enlarged into
    blocks."""
    height, width = image.shape[:2]
    share = resolution / scale_of(height, width)
    size = max(1, int(height * share)), max(1, int(width * share))
    means = box_means(image, *size)
    # the block that a pixel's centre lies in, or ends at: the one whose mean it went into
    rows = ((2 * np.arange(height) + 1) * size[0] - 1) // (2 * height)
    columns = ((2 * np.arange(width) + 1) * size[1] - 1) // (2 * width)
    result: Image = means.take(columns, axis=1).take(rows, axis=0)
    return result


def zoom_motion(shape: Shape, _: None, largest: float, layers: int) -> Zoom:
    """Return the zoom by the mean of the layers' magnifications, in which the original counts twice."""
    return Zoom((shape[0], shape[1]), (1 + layers * (1 + largest) / 2) / (layers + 1))


def zoom_blur(image: Image, _: None, largest: float, layers: int) -> Image:
    """Return the mean of growing magnifications about the centre and of the original once more."""
    height, width, channels = image.shape
    if channels == 3:  # OpenCV enlarges four channels faster than three
        image = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2RGBA), dtype=np.uint8)
    total = 2 * image.astype(np.float32)  # faster than whole numbers, and exact
    for layer in range(1, layers):
        # widened by whole pixels on both sides, so that the middle stays the middle
        right, down = (round(side * (largest - 1) * layer / (layers - 1) / 2) for side in (width, height))
        cv2.accumulate(_enlarge_middle(image, down, right), total)
    total += (layers + 1) // 2
    mean = (total.astype(np.uint16) // np.uint16(layers + 1)).astype(np.uint8)
    return np.asarray(cv2.cvtColor(mean, cv2.COLOR_RGBA2RGB), dtype=np.uint8) if channels == 3 else mean


def _enlarge_middle(image: Image, down: int, right: int) -> Image:
    """Return the middle of the image after it is widened by so many pixels on each side.

    What lies beyond the middle below and to the right is not computed; above and to the left it has to be. OpenCV's
    faster interpolation is in whole numbers, too; each layer is at most a level from the exact one."""
    height, width = image.shape[:2]
    times_y, times_x = (height + 2 * down) / height, (width + 2 * right) / width
    # two pixels more, which the interpolation of the last ones looks at
    part = image[: int((height + down) / times_y) + 3, : int((width + right) / times_x) + 3]
    large = cv2.resize(part, None, fx=times_x, fy=times_y, interpolation=cv2.INTER_LINEAR)
    middle = np.asarray(large, dtype=np.uint8)[down : down + height, right : right + width]
    return middle.reshape(image.shape)


EFFECTS = {
    "moire": Effect(moire, draw_grids),
    "elastic": Effect(elastic, draw_field, motion=elastic_motion),
    "perspective": Effect(perspective, draw_side, motion=lens_motion),
    "pixelate": Effect(pixelate),
    "zoom_blur": Effect(zoom_blur, motion=zoom_motion),
}
