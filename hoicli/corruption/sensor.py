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
    """Draw a standard normal value for each channel of each pixel."""
    return rng.standard_normal(shape, dtype=np.float32)


def _add_noise(image: Image, noise: Noise) -> Image:
    """Return the image plus the noise, which is whole numbers, cut off at 0 and 255."""
    total = cv2.add(image, noise.astype(np.int16), dtype=cv2.CV_8U)
    return np.asarray(total, dtype=np.uint8).reshape(image.shape)


def gaussian_noise(image: Image, noise: Noise, deviation: float) -> Image:
    """Return the image with normal noise. deviation: its standard deviation, as a share of white."""
    return _add_noise(image, np.rint(noise * np.float32(255 * deviation)))


def speckle_noise(image: Image, noise: Noise, deviation: float) -> Image:
    """Return the image with normal noise that is in proportion to each value. deviation: its standard deviation, as a
    share of the value."""
    return _add_noise(image, np.rint(noise * np.float32(deviation) * image))


RANDOM_BITS = 14
"""The bits of a random number that choose a photon count: counts rarer than 1 in 16,384 are left out."""


def shot_noise(image: Image, bits: Bits, photons: float) -> Image:
    """Return the image as few photons show it: each value becomes a random (Poisson) count of photons whose mean is in
    proportion to the value. bits: sixteen random bits for each value; photons: the mean count of white."""
    table, result = poisson_table(photons), np.empty_like(image)
    for rows in strips(image.shape[0]):
        table_index = image[rows].astype(np.intp) << RANDOM_BITS
        table_index |= bits[rows] >> (16 - RANDOM_BITS)
        result[rows] = table.take(table_index)
    return result


@lru_cache(maxsize=5)
def poisson_table(photons: float) -> Image:
    """Return [256 * 2^RANDOM_BITS] the noisy value for each pair (pixel value, random number), at pixel value *
    2^RANDOM_BITS + random number: the inverse of the Poisson distribution whose mean belongs to the pixel value.
    photons: the mean for white."""
    counts = np.arange(int(photons + 12 * np.sqrt(photons) + 12))  # larger ones practically do not occur
    values = np.clip(np.rint(counts * (255 / photons)), 0, 255).astype(np.uint8)
    means = np.arange(1, 256)[:, None] / 255 * photons
    log_factorials = np.array([math.lgamma(count + 1) for count in counts.tolist()])
    probabilities = np.exp(counts * np.log(means) - means - log_factorials)
    # up to which random number each count is chosen
    limits = np.rint(np.cumsum(probabilities, axis=1) * (1 << RANDOM_BITS)).astype(np.int64)
    limits[:, -1] = 1 << RANDOM_BITS
    rows = [np.repeat(values, widths) for widths in np.diff(limits, axis=1, prepend=0)]
    return np.concatenate([np.zeros(1 << RANDOM_BITS, dtype=np.uint8), *rows])  # black has no photons


def salt_pepper_noise(image: Image, bits: Bits, share: float) -> Image:
    """Return the image with a share of its pixels replaced, one half by black and the other by white. bits: [height,
    width, 1] sixteen random bits for each pixel."""
    black_limit = np.uint16(round(share / 2 * 65536))
    result = image.copy()
    pixels = result.reshape(-1, image.shape[2])
    pixels[np.flatnonzero(bits < black_limit)] = 0
    pixels[np.flatnonzero(bits >= np.uint16(65536 - int(black_limit)))] = 255
    return result


def jpeg(image: Image, _: None, quality: int) -> Image:
    """Return the image as it is after compression as a JPEG file of this quality (1 to 100), with colours at half the
    resolution, as is usual."""
    return decode_jpeg(encode_jpeg(image, quality)).reshape(image.shape)


def encode_jpeg(image: Image, quality: int, *, full_colour: bool = False) -> bytes:
    """Return the bytes of a baseline JPEG file of a grey or RGB picture: the same as Pillow's, in less time. quality: 1
    to 100; full_colour: whether colours have full resolution, not half of it."""
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
    """The random part of packet loss: slices (runs of blocks) that may get lost, as many as any severity needs.

    places: [M, 4], in [0, 1), for each slice: where it begins, as a share of all blocks; its kind, black if below 0.5,
    else filled by a copy of another piece; and how far down and across from it the copy is taken. levels: the constants
    of all severities."""

    places: NDArray[np.float64]
    levels: Levels


def draw_slices(rng: Generator, shape: Shape, levels: Levels) -> Slices:
    """Draw as many slices as there are rows of blocks, of the smallest size of blocks of any severity."""
    smallest_block = min(block for _, _, block in levels)
    rows = -(-shape[0] // smallest_block)  # rounded up
    return Slices(rng.random((max(1, rows), 4)), levels)


def packet_loss(image: Image, slices: Slices, per_row: float, slice_width: float, block: int) -> Image:
    """Return the image without slices of blocks that never arrived: they are black, or filled with a piece from
    elsewhere in the picture. per_row: lost slices for each row of blocks; slice_width: their length, as a share of the
    width; block: the side of a block in pixels."""
    height, width = image.shape[:2]
    side = round(block * scale_of(height, width))
    slice_of_block = _lost_blocks(image.shape, slices, (per_row, slice_width, block))
    block_rows, block_columns = slice_of_block.shape
    result = image.copy()
    for row, column in np.argwhere(slice_of_block >= 0):
        _, kind, down, across = slices.places[slice_of_block[row, column]]  # numbers in [0, 1), drawn with the slice
        rows, columns = slice(row * side, (row + 1) * side), slice(column * side, (column + 1) * side)
        if kind < 0.5:  # half of the slices are black
            result[rows, columns] = 0
            continue
        # at least one block away, round the edge of the picture to the other side
        source_rows = (np.arange(height)[rows] + side * (1 + int(down * block_rows * 0.9))) % height
        source_columns = (np.arange(width)[columns] + side * (1 + int(across * block_columns * 0.9))) % width
        result[rows, columns] = image[source_rows[:, None], source_columns]
    return result


def lost_pixels(shape: Shape, slices: Slices, per_row: float, slice_width: float, block: int) -> NDArray[np.bool_]:
    """Return a mask [height, width] of the pixels that packet loss takes away, whether they are black or replaced. The
    arguments are those of `packet_loss`."""
    side = round(block * scale_of(*shape[:2]))
    lost = _lost_blocks(shape, slices, (per_row, slice_width, block)) >= 0
    return lost.repeat(side, axis=0).repeat(side, axis=1)[: shape[0], : shape[1]]


def _lost_blocks(shape: Shape, slices: Slices, level: Level) -> NDArray[np.int64]:
    """Return [block rows, block columns] the number of the slice that each block was lost with; -1 where it arrived.
    level: the constants of the severity.

    A higher severity loses what the lower ones lose, in the same way, and more: longer slices, and more of them."""
    _, _, block = level
    side = round(block * scale_of(*shape[:2]))
    rows, columns = -(-shape[0] // side), -(-shape[1] // side)  # rounded up
    slice_of_block = np.full(rows * columns, -1)
    for per_row, width, _ in slices.levels[: slices.levels.index(level) + 1]:
        for number in range(max(1, round(per_row * rows))):
            start = int(slices.places[number, 0] * len(slice_of_block))
            run = slice_of_block[start : start + max(1, round(width * columns))]
            run[run < 0] = number  # a block that a lower severity lost stays with its slice
    return slice_of_block.reshape(rows, columns)


EFFECTS = {
    "gaussian_noise": Effect(gaussian_noise, draw_normal),
    "shot_noise": Effect(shot_noise, lambda rng, shape, _: random_bits(rng, shape)),
    "salt_pepper_noise": Effect(salt_pepper_noise, lambda rng, shape, _: random_bits(rng, (*shape[:2], 1))),
    "jpeg": Effect(jpeg),
    "speckle_noise": Effect(speckle_noise, draw_normal),
    "packet_loss": Effect(packet_loss, draw_slices, hidden=lost_pixels),
}
