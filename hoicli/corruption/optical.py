"""The optical system: motion, defocus, Gaussian and glass blur."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hoicli.corruption.catalogue import Effect, Levels, scale_of
from hoicli.corruption.pixels import Image, Shape, filter_image, gaussian_blur, random_bits, strips
from hoicli.corruption.warps import Zoom


def motion_blur(image: Image, angle: float, radius: float, sigma: float) -> Image:
    """Return the image blurred along a line of 2 * radius + 1 pixels at this angle (degrees), whose weights fade as
    half a Gaussian of this sigma (pixels): the camera moves on, and content leaves a trail."""
    x, y, fading = _trail(image.shape, angle, radius, sigma)
    kernel = np.zeros((int(np.ptp(y)) + 1, int(np.ptp(x)) + 1))  # as small as the trail allows
    np.add.at(kernel, (y - y.min(), x - x.min()), fading)
    anchor = (int(-x.min()), int(-y.min()))
    return filter_image(image, kernel / kernel.sum(), anchor=anchor, border=cv2.BORDER_REPLICATE)


def blur_motion(shape: Shape, angle: float, radius: float, sigma: float) -> Zoom:
    """Return how the blur moves content: by the mean of its trail. A pixel gets light from (x, y) pixels ahead, so
    content moves by (-x, -y)."""
    x, y, fading = _trail(shape, angle, radius, sigma)
    total = fading.sum()
    shift = -float((x * fading).sum() / total), -float((y * fading).sum() / total)
    return Zoom((shape[0], shape[1]), 1.0, shift)


def _trail(
    shape: Shape, angle: float, radius: float, sigma: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return ([M] x, [M] y, [M] weight) of the pixels that a blurred pixel is the weighted mean of; x and y are
    relative to it. angle: in degrees from the horizontal; radius, sigma: in pixels."""
    height, width = shape[:2]
    scale = scale_of(height, width)
    steps = np.arange(2 * round(radius * scale) + 1)
    fading = np.exp(-((steps / (sigma * scale)) ** 2) / 2)
    # rounded to whole pixels, halves down, as imagecorruptions does
    x = np.ceil(steps * np.cos(np.deg2rad(angle)) - 0.5).astype(np.int64)
    y = np.ceil(steps * np.sin(np.deg2rad(angle)) - 0.5).astype(np.int64)
    inside = (np.abs(x) < width) & (np.abs(y) < height)  # a trail is no longer than the picture
    return x[inside], y[inside], fading[inside]


def defocus_blur(image: Image, _: None, radius: float, alias_sigma: float) -> Image:
    """Return the image with every point spread to a disk of this radius (pixels), whose jagged edge is smoothed by a
    Gaussian of sigma `alias_sigma` (pixels), as in ImageNet-C."""
    radius = round(radius * scale_of(*image.shape[:2]))
    reach = max(8, radius)  # this 8 and the sides of 3 and 5 are ImageNet-C's
    line = np.arange(-reach, reach + 1)
    disk = (line[:, None] ** 2 + line[None, :] ** 2 <= radius**2).astype(np.float64)
    side = 3 if radius <= 8 else 5
    disk = np.asarray(cv2.GaussianBlur(disk, (side, side), alias_sigma), dtype=np.float64)
    disk[disk < disk.max() / 65536] = 0  # too small to count in `filter_image`
    used = np.flatnonzero(disk.any(axis=0))
    disk = disk[used[0] : used[-1] + 1, used[0] : used[-1] + 1]  # rows as columns: it is symmetric
    middle = len(disk) // 2
    return filter_image(image, disk / disk.sum(), anchor=(middle, middle), border=cv2.BORDER_REFLECT_101)


def draw_shifts(rng: Generator, shape: Shape, levels: Levels) -> NDArray[np.uint16]:
    """Draw sixteen random bits for each value of [rounds, 2 (y, x), height, width], with as many rounds as any severity
    needs."""
    rounds = max(round_count for _, _, round_count in levels)
    return random_bits(rng, (rounds, 2, *shape[:2]))


def glass_blur(image: Image, shifts: NDArray[np.uint16], sigma: float, distance: int, rounds: int) -> Image:
    """Return the image seen through rough glass: it is blurred; `rounds` times, each pixel is replaced by a random one
    at most `distance` pixels away in x and y; then it is blurred again. shifts: sixteen random bits for each of
    [rounds, 2 (y, x), height, width]; sigma: of the blur, in pixels.

    The published code means to swap neighbours, but its swap of two array views copies one onto the other, and its
    shifts run from -distance to distance - 1: the picture drifts, most at severities 1 and 3, which are then further
    from the original than 2 and 4. Here the shifts are even-handed, so that the constants make each severity worse."""
    height, width = image.shape[:2]
    scale = scale_of(height, width)
    reach = round(distance * scale)
    result = gaussian_blur(image, sigma * scale)
    for shift in shifts[:rounds]:
        places = np.empty((height, width, 2), dtype=np.int16)
        for rows in strips(height):
            # 16 random bits, scaled to a whole number from 0 to 2 * reach
            y, x = (part.astype(np.int32) * (2 * reach + 1) >> 16 for part in shift[:, rows])
            y += np.arange(rows.start, rows.stop, dtype=np.int32)[:, None] - reach
            x += np.arange(width, dtype=np.int32) - reach
            places[rows, :, 0], places[rows, :, 1] = np.clip(x, 0, width - 1), np.clip(y, 0, height - 1)
        # the empty array: no fractions of pixels
        moved = cv2.remap(result, places, np.empty(0), cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE)
        result = np.asarray(moved, dtype=np.uint8).reshape(image.shape)
    return gaussian_blur(result, sigma * scale)


EFFECTS = {
    # the angle, in degrees from the horizontal
    "motion_blur": Effect(motion_blur, lambda rng, *_: float(rng.uniform(-45, 45)), motion=blur_motion),
    "defocus_blur": Effect(defocus_blur),
    "gaussian_blur": Effect(lambda image, _, sigma: gaussian_blur(image, sigma * scale_of(*image.shape[:2]))),
    "glass_blur": Effect(glass_blur, draw_shifts),
}
