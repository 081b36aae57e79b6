"""Night and weather, which RoHOI's list does not have: night, rain, fog and snow.

They are made only where they are named (`--corruption weather` names all four). None knows how far away anything is, so
fog and the veil of rain and snow do not grow with distance. Everything is whole numbers, tables of 256 or 4096 values,
or elementary operations, so that pixels do not depend on the processor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hoicli.corruption.catalogue import Effect, Levels, scale_of
from hoicli.corruption.pixels import (
    Image,
    Shape,
    gaussian_blur,
    linear_light,
    random_bits,
    resize_image,
    resize_in_whole_numbers,
    round_to_bytes,
    srgb_values,
    strips,
)

# Night

LAMPS = 3
LAMP_LIGHT = np.array([1.0, 0.6, 0.25])
"""Red, green and blue of a lamp in linear light: the square root of a black body's at 2,500 K (sRGB 255, 161, 72), as a
camera balances half of it."""
SKY_LIGHT = np.array([0.10, 0.13, 0.20])
"""Red, green and blue of the light that is everywhere, as a share of that below a lamp."""
LIGHT_STEPS = 4096
"""How many values of linear light are told apart on the way back to bytes: less than a byte's step each."""


@dataclass(frozen=True)
class Night:
    """The random part of a night. lamp_light: [height, width], from 0 to 1, how much of the lamps' light each pixel
    gets; noise: [height, width, channels] standard normal values."""

    lamp_light: NDArray[np.float32]
    noise: NDArray[np.float32]


def draw_night(rng: Generator, shape: Shape, _levels: Levels) -> Night:
    """Draw where LAMPS lamps stand, in the upper two thirds of the picture, how far each one reaches, and the noise."""
    height, width = shape[:2]
    side = max(height, width)
    lamp_light = np.zeros((height, width), dtype=np.float32)
    for number, (across, down, reach) in enumerate(rng.random((LAMPS, 3)).tolist()):
        # a part of the width for each lamp, so that chance decides little of how dark it is
        x = (np.arange(width) + 0.5 - (number + across) / LAMPS * width) / side
        y = (np.arange(height) + 0.5 - down * 2 / 3 * height) / side
        squared_distance = ((y * y)[:, None] + x * x).astype(np.float32)
        lamp_light = np.maximum(lamp_light, 1 / (1 + squared_distance / np.float32((0.12 + 0.08 * reach) ** 2)))
    return Night(lamp_light, rng.standard_normal(shape, dtype=np.float32))


def night(image: Image, darkness: Night, stops: float, lamps: float, photons: float, deviation: float) -> Image:
    """Return the image as a camera shows it at night: less light, the colour of lamps, and noise.

    stops: how much less light there is, a stop a factor of two; lamps: the share of the light that comes from lamps and
    a dark sky, the rest being white and even; photons: the mean count of white; deviation: of the noise of reading, as
    a share of white. Noise is that of Foi et al. (2008): of variance light / photons + deviation^2, in linear light."""
    light = linear_light(np.arange(256)).astype(np.float32)
    brightness = srgb_values(np.arange(LIGHT_STEPS) / (LIGHT_STEPS - 1))
    colours = np.stack([LAMP_LIGHT, SKY_LIGHT])
    if image.shape[2] == 1:
        colours = colours.mean(axis=1, keepdims=True)
    gain, lamp, sky = (np.asarray(part, dtype=np.float32) for part in (2.0**-stops, *(lamps * colours)))
    result = np.empty_like(image)
    for rows in strips(image.shape[0]):
        illumination = gain * (np.float32(1 - lamps) + sky + lamp * darkness.lamp_light[rows][:, :, None])
        values = light[image[rows]] * illumination
        values += np.sqrt(values * np.float32(1 / photons) + np.float32(deviation**2)) * darkness.noise[rows]
        values *= LIGHT_STEPS - 1
        result[rows] = brightness[np.clip(np.rint(values), 0, LIGHT_STEPS - 1).astype(np.intp)]
    return result


# Fog

FOG_COLOUR = 225
OCTAVES = 6
"""The clouds of fog are a sum of this many layers, each of half the size and half the weight of the one before."""


def draw_clouds(rng: Generator, shape: Shape, _levels: Levels) -> Image:
    """Draw clouds: uint8 [height, width], at least one pixel 0 and one 255."""
    height, width = shape[:2]
    total = np.zeros((height, width), dtype=np.int32)
    for octave in range(OCTAVES):
        cells = 2 << octave  # along the longer side
        rows, columns = (max(2, -(-cells * side // max(height, width))) for side in (height, width))
        layer = (random_bits(rng, (rows, columns, 1)) >> 8).astype(np.uint8)
        total += resize_in_whole_numbers(layer, height, width)[:, :, 0].astype(np.int32) << (OCTAVES - octave)
    total -= total.min()
    clouds: Image = (255 * total // max(1, int(total.max()))).astype(np.uint8)
    return clouds


def fog(image: Image, clouds: Image, density: float, patchiness: float) -> Image:
    """Return the image behind fog: light * t + fog's colour * (1 - t), where t = exp(-thickness) is the share of light
    that passes (Koschmieder's law, as in Foggy Cityscapes).

    density: the mean thickness; patchiness: by which share of it the thickness differs, at most, between clouds and
    gaps, half of it up and half down."""
    thickness = density * (1 + patchiness * (np.arange(256) / 255 - 0.5))
    opacity = round_to_bytes(255 * (1 - np.exp(-thickness)))
    return _blend(image, np.asarray(cv2.LUT(clouds, opacity), dtype=np.uint8), FOG_COLOUR)


def _blend(image: Image, opacity: Image, colour: int) -> Image:
    """Return the image behind something grey. opacity: uint8 [height, width], 255 where the image cannot be seen;
    colour: the grey, from 0 to 255."""
    share = opacity[:, :, None].astype(np.uint16)
    mixture = image * (255 - share) + np.uint16(colour) * share
    return ((mixture + 127) // 255).astype(np.uint8)


# Rain and snow

LAYERS = 3
"""Drops and flakes fall in so many layers, each twice as near as the one before: a quarter as many, twice as large."""
RAIN_COLOUR, SNOW_COLOUR, VEIL_COLOUR = 215, 250, 200


@dataclass(frozen=True)
class Falling:
    """The random part of rain and snow. slope: how far to the right what falls goes for each pixel down; layers: for
    each layer, the farthest first, sixteen random bits [rows, columns] for each place where a drop may be."""

    slope: float
    layers: tuple[NDArray[np.uint16], ...]


def draw_falling(rng: Generator, shape: Shape, _levels: Levels) -> Falling:
    """Draw in which direction rain or snow falls, at most 20 degrees off the vertical, and the places of what falls."""
    height, width = shape[:2]
    slope = float(rng.uniform(-0.36, 0.36))
    scale = scale_of(height, width)
    sizes = [(math.ceil(height / (scale * 2**near)), math.ceil(width / (scale * 2**near))) for near in range(LAYERS)]
    return Falling(slope, tuple(random_bits(rng, size) for size in sizes))


def rain(image: Image, fall: Falling, share: float, length: int, opacity: float, veil: float) -> Image:
    """Return the image behind falling rain: streaks, and a grey veil of the drops too far to be seen (the model of Li
    et al. 2019 for heavy rain).

    share: of the farthest layer's pixels, in how many a streak begins; length: of its streaks, in pixels; opacity: of a
    streak; veil: of the veil."""
    streaks = _falling_opacity(image.shape, fall, share, (1, length), opacity)
    return _blend(_add_veil(image, veil), streaks, RAIN_COLOUR)


def snow(image: Image, fall: Falling, share: float, size: int, opacity: float, veil: float) -> Image:
    """Return the image behind falling snow: flakes, and a grey veil of those too far to be seen. share: of the farthest
    layer's pixels, in how many there is a flake; size: of its flakes, in pixels; opacity: of a flake; veil: of the
    veil."""
    flakes = _falling_opacity(image.shape, fall, share, (size, size + 1), opacity)
    return _blend(_add_veil(image, veil), flakes, SNOW_COLOUR)


def _add_veil(image: Image, veil: float) -> Image:
    """Return the image behind an even veil of this opacity (from 0 to 1)."""
    opacity = np.full((1, 256), round(255 * veil), dtype=np.uint8)
    values = _blend(np.arange(256, dtype=np.uint8)[None, :, None], opacity, VEIL_COLOUR)  # of each value
    return np.asarray(cv2.LUT(image, values.reshape(256)), dtype=np.uint8).reshape(image.shape)


def _falling_opacity(shape: Shape, fall: Falling, share: float, size: tuple[int, int], opacity: float) -> Image:
    """Return the opacity, uint8 [height, width], of everything that falls. share: of the farthest layer's pixels, in
    how many something is; size: (width, height) of one of these, in pixels; opacity: the largest, from 0 to 1.

    A higher share keeps what a lower one has, and adds to it."""
    height, width = shape[:2]
    limit = np.uint16(round(share * 65535))
    kernel = _slanted_mask(size, fall.slope)
    total: Image = np.zeros((height, width), dtype=np.uint8)
    for bits in fall.layers:
        # between half and full opacity
        strength = np.rint(255 * opacity * (0.5 + (bits & 255) / 510)).astype(np.uint8)
        starts = np.where(bits < limit, strength, 0).astype(np.uint8)
        layer = gaussian_blur(np.asarray(cv2.dilate(starts, kernel), dtype=np.uint8)[:, :, None], 0.6)
        layer = resize_image(layer, height, width, cv2.INTER_LINEAR_EXACT)
        total = np.maximum(total, layer[:, :, 0])
    return total


def _slanted_mask(size: tuple[int, int], slope: float) -> Image:
    """Return the shape of a streak or flake as a mask: `size` (width, height), each row further right by `slope`."""
    width, height = size
    offsets = np.rint(np.arange(height) * slope).astype(int)
    offsets -= offsets.min()
    mask = np.zeros((height, int(offsets.max()) + width), dtype=np.uint8)
    for row, offset in enumerate(offsets.tolist()):
        mask[row, offset : offset + width] = 1
    return mask


EFFECTS = {
    "night": Effect(night, draw_night),
    "rain": Effect(rain, draw_falling),
    "fog": Effect(fog, draw_clouds),
    "snow": Effect(snow, draw_falling),
}
