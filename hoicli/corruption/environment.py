"""The environment: exposure, rainbow bands, occlusion and vignette."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hoicli.corruption.catalogue import Effect, Levels
from hoicli.corruption.pixels import Image, Shape, cos_and_sin, draw_side, round_to_bytes, strips, waves


def exposure(image: Image, is_over: bool, over_stops: float, under_stops: float) -> Image:
    """Return the image with so many stops more or less light, of which the sensor keeps what lies between black and
    white.

    Light is linear and pixels are sRGB, so a table of the 256 pixel values does it."""
    value = np.arange(256) / 255
    light = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    light = np.minimum(light * 2.0 ** (over_stops if is_over else -under_stops), 1)
    value = np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.asarray(cv2.LUT(image, round_to_bytes(255 * value)), dtype=np.uint8).reshape(image.shape)


def draw_rainbow(rng: Generator, _shape: Shape, _levels: Levels) -> tuple[float, float]:
    """Draw the direction of the bands (radians) and the hue they begin with (in [0, 1), a turn of the colour
    circle)."""
    return float(rng.uniform(0, np.pi)), float(rng.random())


def rainbow(image: Image, shifts: tuple[float, float], strength: float, bands: float, shift: float) -> Image:
    """Return the image with bands of all hues across it, and red and blue shifted apart along them, as a projector's
    colour wheel does. A grey picture gets three channels."""
    height, width = image.shape[:2]
    side = max(height, width)
    angle, hue = shifts
    along = np.array([np.cos(angle), np.sin(angle)])
    step = np.rint(along * shift * side).astype(int)
    # the middle of the picture keeps its hue when the bands widen
    x, y = (np.arange(width) - width / 2) / side, (np.arange(height) - height / 2) / side
    result = np.empty((height, width, 3), dtype=np.uint8)
    for channel in range(3):
        shifted = _shift_channel(image[:, :, min(channel, image.shape[2] - 1)], step * (1 - channel))
        across, down = cos_and_sin(bands * along[0] * x), cos_and_sin(bands * along[1] * y + hue - channel / 3)
        for rows in strips(height):
            tints = waves(down[:, rows], across)
            tints += 1
            tints *= 127.5 * strength
            tints += shifted[rows] * np.float32(1 - strength)
            result[rows, :, channel] = round_to_bytes(tints)
    return result


def _shift_channel(channel: Image, step: NDArray[np.int64]) -> Image:
    """Return the channel moved by (x, y) pixels, its border repeated."""
    height, width = channel.shape
    right, down = step.tolist()
    above, left = max(-down, 0), max(-right, 0)
    wider = cv2.copyMakeBorder(channel, max(down, 0), above, max(right, 0), left, cv2.BORDER_REPLICATE)
    return np.asarray(wider, dtype=np.uint8)[above : above + height, left : left + width]


Rectangles = NDArray[np.float64]

LARGEST_RECTANGLE = 1.5
"""The side of the largest rectangle as a multiple of the mean side; the smallest side is half the mean."""


def draw_rectangles(rng: Generator, _shape: Shape, levels: Levels) -> Rectangles:
    """Draw the rectangles of the highest severity [rectangles, 4]: centres as shares of the width and height, the
    natural logarithm of width by height, and the size as a multiple of the mean size. Of each two, one is as much
    smaller as the other is larger, so that chance decides little of how much is hidden."""
    count = max(level[0] for level in levels)
    numbers = rng.random((count, 4))
    numbers[:, 2] = (numbers[:, 2] - 0.5) * 1.2
    large = LARGEST_RECTANGLE
    for first in range(0, count, 2):
        numbers[first : first + 2, 3] = (
            1 + (large - 1) * (2 * numbers[first, 3] - 1) * np.array([1, -1])[: count - first]
        )
    return numbers


def occlusion(image: Image, boxes: Rectangles, rectangles: int, side: float) -> Image:
    """Return the image with the first `rectangles` of `boxes` in black. side: their mean side, as a share of the
    image's. A higher severity enlarges the rectangles of the lower ones, and adds some."""
    result = image.copy()
    result[covered_by_rectangles(image.shape, boxes, rectangles, side)] = 0
    return result


def covered_by_rectangles(shape: Shape, boxes: Rectangles, rectangles: int, side: float) -> NDArray[np.bool_]:
    """Return which pixels [height, width] the rectangles hide."""
    height, width = shape[:2]
    hidden = np.zeros((height, width), dtype=bool)
    for x, y, aspect, size in boxes[:rectangles]:
        half = side * size / 2 * np.array([np.exp(aspect / 2), np.exp(-aspect / 2)])
        left, right = ((x - half[0]) * width, (x + half[0]) * width)
        top, bottom = ((y - half[1]) * height, (y + half[1]) * height)
        hidden[max(0, round(top)) : max(0, round(bottom)), max(0, round(left)) : max(0, round(right))] = True
    return hidden


def vignette(image: Image, _: None, start: float, strength: float) -> Image:
    """Return the image darker towards the corners; the middle, up to `start` of the half diagonal, stays as it is."""
    height, width = image.shape[:2]
    x, y = np.arange(width) - (width - 1) / 2, np.arange(height) - (height - 1) / 2
    half_diagonal = max(float(np.hypot(x[-1], y[-1])), 0.5)
    x2, y2 = (x / half_diagonal) ** 2, (y / half_diagonal) ** 2
    result = np.empty_like(image)
    for rows in strips(height):
        distance = np.sqrt((y2[rows, None] + x2).astype(np.float32))
        rise = np.clip((distance - np.float32(start)) / np.float32(1 - start), 0, 1)
        light = 1 - np.float32(strength) * rise * rise * (3 - 2 * rise)
        values = cv2.merge([light] * image.shape[2]).reshape(image[rows].shape)
        values *= image[rows]
        result[rows] = round_to_bytes(values)
    return result


EFFECTS = {
    "exposure": Effect(exposure, draw_side),
    "rainbow": Effect(rainbow, draw_rainbow),
    "occlusion": Effect(occlusion, draw_rectangles, hidden=covered_by_rectangles),
    "vignette": Effect(vignette),
}
