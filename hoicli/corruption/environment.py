"""The environment: exposure, rainbow bands, occlusion and vignette."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hoicli.corruption.catalogue import Effect, Levels
from hoicli.corruption.pixels import (
    Image,
    Shape,
    cos_and_sin,
    draw_side,
    linear_light,
    round_to_bytes,
    srgb_values,
    strips,
    waves,
)


def exposure(image: Image, is_over: bool, over_stops: float, under_stops: float) -> Image:
    """Return the image overexposed (`is_over`) by `over_stops`, or underexposed by `under_stops`; a stop is a factor of
    two of light, and more light than white is cut off.

    The result depends on the pixel value alone, so it is looked up in a table of 256 values."""
    light = np.minimum(linear_light(np.arange(256)) * 2.0 ** (over_stops if is_over else -under_stops), 1)
    return np.asarray(cv2.LUT(image, srgb_values(light)), dtype=np.uint8).reshape(image.shape)


def rainbow(image: Image, angle_and_hue: tuple[float, float], strength: float, bands: float, shift: float) -> Image:
    """Return the image, always with three channels, with bands of all hues across it, and red and blue shifted apart,
    as by a projector's colour wheel. angle_and_hue: the direction in which hues change, in radians, and the hue of the
    middle, 1 for a turn of the colour circle; strength: the share of the bands in the mixture; bands: how many turns
    fit along the longer side; shift: of red and of blue, as a share of that side."""
    height, width = image.shape[:2]
    side = max(height, width)
    angle, hue = angle_and_hue
    direction = np.array([np.cos(angle), np.sin(angle)])
    step = np.rint(direction * shift * side).astype(int)
    # from the middle, which so keeps its hue when the bands widen
    x, y = (np.arange(width) - width / 2) / side, (np.arange(height) - height / 2) / side
    result = np.empty((height, width, 3), dtype=np.uint8)
    for channel in range(3):
        # red goes one step ahead, green stays, blue goes one step back
        shifted = _shift_channel(image[:, :, min(channel, image.shape[2] - 1)], step * (1 - channel))
        across = cos_and_sin(bands * direction[0] * x)
        down = cos_and_sin(bands * direction[1] * y + hue - channel / 3)
        for rows in strips(height):
            tints = waves(down[:, rows], across)  # then in place, since new arrays would take longer
            tints += 1
            tints *= 127.5 * strength
            tints += shifted[rows] * np.float32(1 - strength)
            result[rows, :, channel] = round_to_bytes(tints)
    return result


def _shift_channel(channel: Image, step: NDArray[np.int64]) -> Image:
    """Return the channel moved to the right and down by step = (x, y) pixels, which may be negative; the pixels of its
    border are repeated where it leaves a gap."""
    height, width = channel.shape
    right, down = step.tolist()
    top, x1 = max(-down, 0), max(-right, 0)
    wider = cv2.copyMakeBorder(channel, max(down, 0), top, max(right, 0), x1, cv2.BORDER_REPLICATE)
    return np.asarray(wider, dtype=np.uint8)[top : top + height, x1 : x1 + width]


Rectangles = NDArray[np.float64]
"""[M, 4]; of each rectangle: the x and the y of its centre, as shares of width and height; the natural logarithm of
width / height; and its size as a multiple of the mean size."""

LARGEST_RECTANGLE = 1.5
"""The side of the largest rectangle as a multiple of the mean side; the smallest side is half the mean."""


def draw_rectangles(rng: Generator, _shape: Shape, levels: Levels) -> Rectangles:
    """Draw as many rectangles as any severity needs. levels: the constants of each severity, the number of rectangles
    first. They come in pairs: one is as much smaller than the mean as the other is larger, so that chance decides
    little of how much is hidden."""
    count = max(level[0] for level in levels)
    rectangles = rng.random((count, 4))  # columns: x, y, logarithm of width / height, size as a multiple of the mean
    rectangles[:, 2] = (rectangles[:, 2] - 0.5) * 1.2
    for first in range(0, count, 2):
        deviation = (LARGEST_RECTANGLE - 1) * (2 * rectangles[first, 3] - 1)
        rectangles[first : first + 2, 3] = 1 + deviation * np.array([1, -1])[: count - first]
    return rectangles


def occlusion(image: Image, rectangles: Rectangles, count: int, side: float) -> Image:
    """Return the image with the first `count` rectangles in black. side: their mean side, as a share of the image's. A
    higher severity enlarges the rectangles of the lower ones, and adds some."""
    result = image.copy()
    result[covered_by_rectangles(image.shape, rectangles, count, side)] = 0
    return result


def covered_by_rectangles(shape: Shape, rectangles: Rectangles, count: int, side: float) -> NDArray[np.bool_]:
    """Return a mask [height, width] of the pixels that the first `count` rectangles hide: rows of x, y (of the
    centre, as shares of the image), logarithm of width / height, size. side: their mean, a share of the image's."""
    height, width = shape[:2]
    hidden = np.zeros((height, width), dtype=bool)
    for x, y, log_aspect, size in rectangles[:count]:
        half_width = side * size / 2 * np.exp(log_aspect / 2)
        half_height = side * size / 2 * np.exp(-log_aspect / 2)
        columns = slice(max(0, round((x - half_width) * width)), max(0, round((x + half_width) * width)))
        rows = slice(max(0, round((y - half_height) * height)), max(0, round((y + half_height) * height)))
        hidden[rows, columns] = True
    return hidden


def vignette(image: Image, _: None, start: float, strength: float) -> Image:
    """Return the image darker towards its corners. start: the distance from the middle, as a share of half the
    diagonal, up to which it stays as it is; strength: the share of light that the corners lose."""
    height, width = image.shape[:2]
    x, y = np.arange(width) - (width - 1) / 2, np.arange(height) - (height - 1) / 2
    half_diagonal = max(float(np.hypot(x[-1], y[-1])), 0.5)
    x2, y2 = (x / half_diagonal) ** 2, (y / half_diagonal) ** 2
    result = np.empty_like(image)
    for rows in strips(height):
        distance = np.sqrt((y2[rows, None] + x2).astype(np.float32))
        rise = np.clip((distance - np.float32(start)) / np.float32(1 - start), 0, 1)
        light = 1 - np.float32(strength) * rise * rise * (3 - 2 * rise)  # a smooth step from 0 to 1
        values = cv2.merge([light] * image.shape[2]).reshape(image[rows].shape)
        values *= image[rows]
        result[rows] = round_to_bytes(values)
    return result


EFFECTS = {
    "exposure": Effect(exposure, draw_side),
    # the direction in which hues change, in radians, and the hue of the middle, a share of the colour circle
    "rainbow": Effect(rainbow, lambda rng, *_: (float(rng.uniform(0, np.pi)), float(rng.random()))),
    "occlusion": Effect(occlusion, draw_rectangles, hidden=covered_by_rectangles),
    "vignette": Effect(vignette),
}
