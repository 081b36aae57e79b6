"""Arithmetic on pictures that gives the same pixels on every processor.

Pictures are uint8 [height, width, channels]. OpenCV's floating-point filters round differently with and without fused
multiply-add, which moves a pixel now and then; so filters here work on whole numbers, whose sums are exact in any
order, and everything else is elementary operations that IEEE 754 rounds one way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import cv2
import numpy as np
import PIL.Image
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Shape = tuple[int, ...]

STRIP = 32
"""Rows computed at a time, where a pixel takes many steps in floating point: they stay in the processor's cache."""
LARGEST_SIGMA = 12.0
"""The widest blur, in pixels, on the picture itself; a wider one runs on a reduced picture and takes no longer."""
FEW_WEIGHTS = 200
"""With up to this many weights of a kernel, OpenCV adds them up faster than it transforms the picture."""
TRANSFORMED = 130
"""From this many cells of a kernel on, OpenCV uses a Fourier transform, however many of them are 0."""


def round_to_bytes(values: NDArray[np.floating]) -> Image:
    """Return values, which must be below 2^31, rounded to whole numbers (halves to the even one) from 0 to 255.

    OpenCV does all of it in one pass when it stores a sum as bytes, so nothing (0 times the values) is added."""
    return np.asarray(cv2.addWeighted(values, 1, values, 0, 0, dtype=cv2.CV_8U), dtype=np.uint8).reshape(values.shape)


def draw_side(rng: np.random.Generator, *_: object) -> bool:
    """Draw which of two kinds a corruption is (over- or underexposed, barrel or pincushion): True for the first."""
    return bool(rng.random() < 0.5)


def random_bits(rng: np.random.Generator, shape: Shape) -> NDArray[np.uint16]:
    """Return an array of this shape of random whole numbers of sixteen bits."""
    count = math.prod(shape)
    raw = rng.bit_generator.random_raw(-(-count // 4))  # of 64 bits, four values each, rounded up
    bits: NDArray[np.uint16] = raw.view(np.uint16)[:count]
    return bits.reshape(shape)


def strips(height: int) -> Iterator[slice]:
    """Yield slices of STRIP rows, the last perhaps of fewer, that cover all rows of a picture of this height."""
    for top in range(0, height, STRIP):
        yield slice(top, min(top + STRIP, height))


def linear_light(values: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the light, from 0 to 1, that sRGB's values from 0 to 255 stand for."""
    shares = values / 255
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def srgb_values(light: NDArray[np.float64]) -> Image:
    """Return the bytes that stand for linear light from 0 to 1 in sRGB."""
    return round_to_bytes(255 * np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055))


def cos_and_sin(turns: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return [2, N] the cosines and the sines of angles [N] given in turns (1 is a full circle)."""
    angles = 2 * np.pi * turns
    return np.stack([np.cos(angles), np.sin(angles)]).astype(np.float32)


def waves(down: NDArray[np.float32], across: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return [rows, columns] the cosine of the sum of two angles, one of the row and one of the column. down, across:
    [2, rows] and [2, columns] the cosines and sines of these angles (`cos_and_sin`). To compute a cosine for each pixel
    would take ten times as long."""
    # cos(a + b) = cos a cos b - sin a sin b
    cosines: NDArray[np.float32] = down[0][:, None] * across[0]
    cosines -= down[1][:, None] * across[1]
    return cosines


def resize_image(image: Image, height: int, width: int, interpolation: int) -> Image:
    """Return the image resized by OpenCV. interpolation: one of OpenCV's constants, such as cv2.INTER_AREA. Of a grey
    image, OpenCV drops the axis of channels, which is put back."""
    result = cv2.resize(image, (width, height), interpolation=interpolation)
    return np.asarray(result, dtype=np.uint8).reshape(height, width, -1)


def box_means(image: Image, height: int, width: int) -> Image:
    """Return the image, grey or RGB, reduced to [height, width]: each value is the mean of the pixels whose centres lie
    in its part of the picture.

    Pillow computes it in whole numbers, OpenCV in floating point. The width is reduced first, then the height, each
    mean rounded: Pillow itself begins with the height of a tall picture, and how tall depends on its version."""
    return resize_in_whole_numbers(image, height, width, PIL.Image.Resampling.BOX)


def resize_in_whole_numbers(
    image: Image, height: int, width: int, filter_name: PIL.Image.Resampling = PIL.Image.Resampling.BICUBIC
) -> Image:
    """Return the image, grey or RGB, resized to [height, width] by Pillow in whole numbers, first the width."""
    full = PIL.Image.fromarray(image if image.shape[2] == 3 else image[:, :, 0])
    narrow = full.resize((width, image.shape[0]), filter_name)
    return np.asarray(narrow.resize((width, height), filter_name), dtype=np.uint8).reshape(height, width, -1)


def gaussian_blur(image: Image, sigma: float) -> Image:
    """Return the image under Gaussian blur. sigma: in pixels. As in scikit-image's `gaussian`, the Gaussian is cut off
    at four sigma, and the pixels of the border are repeated outwards.

    For a wide blur the image is reduced, blurred and enlarged again, which is faster."""
    if sigma <= LARGEST_SIGMA:
        return _blur_exactly(image, sigma)
    shrink = int(2 * sigma / LARGEST_SIGMA)
    height, width = image.shape[:2]
    small = box_means(image, -(-height // shrink), -(-width // shrink))
    # to average blocks of n pixels and to interpolate between them is itself a blur, with a variance of (n^2 - 1) / 4
    remaining_sigma = float(np.sqrt(sigma**2 - (shrink**2 - 1) / 4) / shrink)
    return resize_image(_blur_exactly(small, remaining_sigma), height, width, cv2.INTER_LINEAR_EXACT)


def _blur_exactly(image: Image, sigma: float) -> Image:
    """Return the image under Gaussian blur, computed with whole numbers by OpenCV's filter of 16-bit images: its filter
    of 8-bit images rounds the weights of a wide kernel too coarsely. sigma: in pixels."""
    side = 2 * int(4 * sigma + 0.5) + 1
    wide = np.left_shift(image, 8, dtype=np.uint16)
    wide = np.asarray(cv2.GaussianBlur(wide, (side, side), sigma, borderType=cv2.BORDER_REPLICATE), dtype=np.uint16)
    # + 128 rounds to the nearest; values are at most 255 * 256, so it does not overflow
    return ((wide + np.uint16(128)) >> 8).astype(np.uint8).reshape(image.shape)


def filter_image(image: Image, kernel: NDArray[np.float64], *, anchor: tuple[int, int], border: int) -> Image:
    """Return the image filtered: each pixel becomes the mean of its neighbourhood, weighted by a kernel of sum 1.
    anchor: the (x, y) in the kernel that lies over the pixel; border: how OpenCV continues the picture beyond its
    border.

    Weights are rounded to whole numbers of 65536ths, so that all sums are exact. OpenCV sends a large kernel through a
    Fourier transform, which is not exact, but in float64 so nearly that the whole number is known. A few weights are
    added up in float32, which holds all whole numbers up to 2^24."""
    weights = np.rint(kernel * 65536)
    weights.flat[np.argmax(weights)] += 65536 - weights.sum()  # the largest weight makes up for the rounding
    if np.count_nonzero(weights) > FEW_WEIGHTS:
        sums = np.rint(cv2.filter2D(image, cv2.CV_64F, weights, anchor=anchor, borderType=border)).astype(np.int32)
    else:
        sums = _weighted_sums(image, weights, anchor, border).astype(np.int32)
    return ((sums + 32768) >> 16).astype(np.uint8).reshape(image.shape)  # / 65536, rounded to the nearest


def _weighted_sums(
    image: Image, weights: NDArray[np.float64], anchor: tuple[int, int], border: int
) -> NDArray[np.float32]:
    """Return what `cv2.filter2D` returns, computed with pieces of the kernel that are so small that OpenCV adds the
    weights up and does not use a Fourier transform. weights: the kernel; anchor: the (x, y) in it that lies over the
    pixel; border: how OpenCV continues the picture beyond its border."""
    (before_x, before_y), (kernel_height, kernel_width), (height, width) = anchor, weights.shape, image.shape[:2]
    border_widths = before_y, kernel_height - 1 - before_y, before_x, kernel_width - 1 - before_x
    padded = cv2.copyMakeBorder(image, *border_widths, border).astype(np.float32)
    total = np.zeros((height, width, *padded.shape[2:]), dtype=np.float32)
    for rows, columns in _split_kernel(weights):
        under_piece = padded[rows.start : rows.stop - 1 + height, columns.start : columns.stop - 1 + width]
        total += cv2.filter2D(under_piece, cv2.CV_32F, weights[rows, columns], anchor=(0, 0))[:height, :width]
    return total


def _split_kernel(weights: NDArray[np.float64]) -> Iterator[tuple[slice, slice]]:
    """Yield the (rows, columns) of pieces of a kernel that together hold all its weights but zeros. Each piece is of as
    many columns as have fewer than TRANSFORMED cells together, with the rows from the first to the last weight."""
    used = weights != 0
    columns = np.flatnonzero(used.any(axis=0))
    tops, ends = used.argmax(axis=0), len(used) - used[::-1].argmax(axis=0)  # the rows of each column's weights
    first_column, top, end = columns[0], tops[columns[0]], ends[columns[0]]
    for previous, column in pairwise(columns):
        new_top, new_end = min(top, tops[column]), max(end, ends[column])
        if (column + 1 - first_column) * (new_end - new_top) >= TRANSFORMED:  # begin a new piece with this column
            yield slice(top, end), slice(first_column, previous + 1)
            first_column, new_top, new_end = column, tops[column], ends[column]
        top, end = new_top, new_end
    yield slice(top, end), slice(first_column, columns[-1] + 1)


def remap_image(image: Image, x: NDArray[np.float64], y: NDArray[np.float64], *, border: int) -> Image:
    """Return the image with each pixel taken from elsewhere in it, interpolated linearly between pixels.

    x, y: [height, width] where each pixel comes from, in pixels; rounded to 32nds, so that the result does not depend
    on the processor. border: how OpenCV continues the picture beyond its border."""
    result = np.empty_like(image)
    for rows in strips(image.shape[0]):
        fixed_x, fixed_y = _in_32nds(x[rows]), _in_32nds(y[rows])
        # OpenCV takes the whole pixels as one array, and the 32nds as another: those of y in the upper five bits
        whole = np.empty((*fixed_x.shape, 2), dtype=np.int16)
        whole[:, :, 0], whole[:, :, 1] = fixed_x >> 5, fixed_y >> 5
        fraction = (((fixed_y & 31) << 5) | (fixed_x & 31)).astype(np.uint16)
        moved = cv2.remap(image, whole, fraction, cv2.INTER_LINEAR, borderMode=border, borderValue=0)
        result[rows] = np.asarray(moved, dtype=np.uint8).reshape(-1, *image.shape[1:])
    return result


def _in_32nds(values: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return values as whole numbers of 32nds, rounded to the nearest (halves to the even one) and cut off at what
    OpenCV's maps of 16 bits hold."""
    fixed = np.asarray(cv2.addWeighted(values, 32, values, 0, 0, dtype=cv2.CV_32S), dtype=np.int32)
    return np.clip(fixed.reshape(values.shape), -32000 * 32, 32000 * 32)
