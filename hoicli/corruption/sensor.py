"""Sensor, compression and transmission: five kinds of noise, JPEG, and lost packets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hoicli.corruption.catalogue import Effect, Level, Levels, scale_of
from hoicli.corruption.pixels import Image, Shape, random_bits, strips

Noise = NDArray[np.float32]
Bits = NDArray[np.uint16]


def draw_normal(rng: Generator, shape: Shape, _levels: Levels) -> Noise:
    """Draw standard normal values, one for each channel of each pixel."""
    return rng.standard_normal(shape, dtype=np.float32)


def _add(image: Image, noise: Noise) -> Image:
    """Return the image plus whole-numbered noise, within 0 and 255."""
    total = cv2.add(image, noise.astype(np.int16), dtype=cv2.CV_8U)
    return np.asarray(total, dtype=np.uint8).reshape(image.shape)


def gaussian_noise(image: Image, noise: Noise, deviation: float) -> Image:
    """Return the image with normal noise of this standard deviation, as a share of white."""
    return _add(image, np.rint(noise * np.float32(255 * deviation)))


def speckle_noise(image: Image, noise: Noise, deviation: float) -> Image:
    """Return the image with normal noise in proportion to the pixel's own value."""
    return _add(image, np.rint(noise * np.float32(deviation) * image))


STEPS = 14
"""The bits of a random number that choose a photon count: counts rarer than 1 in 16,384 are left out."""


def shot_noise(image: Image, bits: Bits, photons: float) -> Image:
    """Return the image with each value counted in photons, of which white has `photons` on average: a Poisson number
    for each."""
    table, result = poisson_table(photons), np.empty_like(image)
    for rows in strips(image.shape[0]):
        place = image[rows].astype(np.intp) << STEPS
        place |= bits[rows] >> (16 - STEPS)
        result[rows] = table.take(place)
    return result


@lru_cache(maxsize=5)
def poisson_table(photons: float) -> Image:
    """Return the result [256 * 2^STEPS] for each pixel value and random number: the inverse of the Poisson
    distribution."""
    counts = np.arange(int(photons + 12 * np.sqrt(photons) + 12))
    results = np.clip(np.rint(counts * (255 / photons)), 0, 255).astype(np.uint8)
    means = np.arange(1, 256)[:, None] / 255 * photons
    factorials = np.array([math.lgamma(count + 1) for count in counts.tolist()])  # their logarithms
    shares = np.exp(counts * np.log(means) - means - factorials)
    below = np.rint(np.cumsum(shares, axis=1) * (1 << STEPS)).astype(np.int64)
    below[:, -1] = 1 << STEPS
    rows = [np.repeat(results, widths) for widths in np.diff(below, axis=1, prepend=0)]
    return np.concatenate([np.zeros(1 << STEPS, dtype=np.uint8), *rows])  # black has no photons


def salt_pepper_noise(image: Image, bits: Bits, share: float) -> Image:
    """Return the image with this share of the pixels black or white, half of them each."""
    bound = np.uint16(round(share / 2 * 65536))
    result = image.copy()
    pixels = result.reshape(-1, image.shape[2])
    pixels[np.flatnonzero(bits < bound)] = 0
    pixels[np.flatnonzero(bits >= np.uint16(65536 - int(bound)))] = 255
    return result


def jpeg(image: Image, _: None, quality: int) -> Image:
    """Return the image after a JPEG file of this quality (colours at half the resolution, as is usual)."""
    return decode_jpeg(encode_jpeg(image, quality)).reshape(image.shape)


def encode_jpeg(image: Image, quality: int, *, full_colour: bool = False) -> bytes:
    """Return a baseline JPEG file of a grey or an RGB picture: the same bytes as Pillow's, in less time."""
    sampling = cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444 if full_colour else cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420
    options = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling]
    ordered = cv2.cvtColor(image, cv2.COLOR_RGB2BGR) if image.shape[2] == 3 else image
    return cv2.imencode(".jpg", ordered, options)[1].tobytes()


def decode_jpeg(data: bytes) -> Image:
    """Return the pixels of a JPEG file that `encode_jpeg` made: [height, width] grey, or [height, width, 3] RGB."""
    channels = cv2.IMREAD_ANYCOLOR | cv2.IMREAD_IGNORE_ORIENTATION
    pixels = np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), channels), dtype=np.uint8)
    return pixels if pixels.ndim == 2 else np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), dtype=np.uint8)


@dataclass(frozen=True)
class Slices:
    """The slices that may get lost, as many as any severity needs. places [slices, 4], all in [0, 1): where each slice
    begins, whether it is black (below a half) or a copy, and from where the copy is taken (down, across); levels: of
    all severities."""

    places: NDArray[np.float64]
    levels: Levels


def draw_slices(rng: Generator, shape: Shape, levels: Levels) -> Slices:
    """Draw the slices: at most one for each row of blocks."""
    rows = -(-shape[0] // min(level[2] for level in levels))
    return Slices(rng.random((max(1, rows), 4)), levels)


def packet_loss(image: Image, slices: Slices, per_row: float, slice_width: float, block: int) -> Image:
    """Return the image with slices of blocks that never arrived: black, or filled with a piece from elsewhere in the
    picture."""
    height, width = image.shape[:2]
    side = round(block * scale_of(height, width))
    lost = _lost_blocks(image.shape, slices, (per_row, slice_width, block))
    result = image.copy()
    for row, column in np.argwhere(lost >= 0):
        _, kind, down, across = slices.places[lost[row, column]]
        here = np.s_[row * side : (row + 1) * side, column * side : (column + 1) * side]
        if kind < 0.5:
            result[here] = 0
            continue
        rows = (np.arange(height)[here[0]] + side * (1 + int(down * lost.shape[0] * 0.9))) % height
        columns = (np.arange(width)[here[1]] + side * (1 + int(across * lost.shape[1] * 0.9))) % width
        result[here] = image[rows[:, None], columns]
    return result


def lost_pixels(shape: Shape, slices: Slices, per_row: float, slice_width: float, block: int) -> NDArray[np.bool_]:
    """Return the pixels [height, width] that packet loss takes away, black or replaced."""
    side = round(block * scale_of(*shape[:2]))
    lost = _lost_blocks(shape, slices, (per_row, slice_width, block)) >= 0
    return lost.repeat(side, axis=0).repeat(side, axis=1)[: shape[0], : shape[1]]


def _lost_blocks(shape: Shape, slices: Slices, level: Level) -> NDArray[np.int64]:
    """Return the slice [block rows, block columns] that each block was lost with; -1 where it arrived.

    A higher severity loses what the lower ones lose, in the same way, and more: longer slices, and more of them."""
    side = round(level[2] * scale_of(*shape[:2]))
    rows, columns = -(-shape[0] // side), -(-shape[1] // side)
    lost = np.full(rows * columns, -1)
    for per_row, width, _ in slices.levels[: slices.levels.index(level) + 1]:
        for number in range(max(1, round(per_row * rows))):
            start = int(slices.places[number, 0] * len(lost))
            run = lost[start : start + max(1, round(width * columns))]
            run[run < 0] = number
    return lost.reshape(rows, columns)


EFFECTS = {
    "gaussian_noise": Effect(gaussian_noise, draw_normal),
    "shot_noise": Effect(shot_noise, lambda rng, shape, _: random_bits(rng, shape)),
    "salt_pepper_noise": Effect(salt_pepper_noise, lambda rng, shape, _: random_bits(rng, (*shape[:2], 1))),
    "jpeg": Effect(jpeg),
    "speckle_noise": Effect(speckle_noise, draw_normal),
    "packet_loss": Effect(packet_loss, draw_slices, hidden=lost_pixels),
}
