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
    """Return values rounded to the nearest whole number (of two the even one), within 0 and 255; they must be below
    2^31.

    OpenCV's conversion does it in one pass; adding nothing to the values is what makes it convert."""
    return np.asarray(cv2.addWeighted(values, 1, values, 0, 0, dtype=cv2.CV_8U), dtype=np.uint8).reshape(values.shape)


def draw_side(rng: np.random.Generator, *_: object) -> bool:
    """Draw which of its two kinds a corruption is (over- or underexposed, barrel or pincushion): the first, or not."""
    return bool(rng.random() < 0.5)


def random_bits(rng: np.random.Generator, shape: Shape) -> NDArray[np.uint16]:
    """Return sixteen random bits for each value of an array."""
    count = math.prod(shape)
    bits: NDArray[np.uint16] = rng.bit_generator.random_raw(-(-count // 4)).view(np.uint16)[:count]
    return bits.reshape(shape)


def strips(height: int) -> Iterator[slice]:
    """Yield all rows as slices of STRIP rows."""
    for top in range(0, height, STRIP):
        yield slice(top, min(top + STRIP, height))


def cos_and_sin(turns: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the cosine and the sine [2, N] of angles given in turns."""
    angles = 2 * np.pi * turns
    return np.stack([np.cos(angles), np.sin(angles)]).astype(np.float32)


def waves(down: NDArray[np.float32], across: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine [rows, columns] of the sum of an angle of the row and one of the column, given as by
    `cos_and_sin`. Computing a cosine for each pixel would take ten times as long."""
    # cos(a + b) = cos a cos b - sin a sin b
    cosines: NDArray[np.float32] = down[0][:, None] * across[0]
    cosines -= down[1][:, None] * across[1]
    return cosines


def resize_image(image: Image, height: int, width: int, interpolation: int) -> Image:
    """Return the image resized by OpenCV, with the channel axis of length 1 that OpenCV loses."""
    result = cv2.resize(image, (width, height), interpolation=interpolation)
    return np.asarray(result, dtype=np.uint8).reshape(height, width, -1)


def box_means(image: Image, height: int, width: int) -> Image:
    """Return the image reduced to [height, width], each value the mean of the pixels whose centres lie in its part of
    the picture.

    Pillow computes it in whole numbers, OpenCV in floating point. Rows come first, then columns, each mean rounded:
    left to itself Pillow begins with the columns of a tall picture, and how tall depends on its version."""
    small = PIL.Image.fromarray(image if image.shape[2] == 3 else image[:, :, 0])
    widened = small.resize((width, image.shape[0]), PIL.Image.Resampling.BOX)
    means = widened.resize((width, height), PIL.Image.Resampling.BOX)
    return np.asarray(means, dtype=np.uint8).reshape(height, width, -1)


def gaussian_blur(image: Image, sigma: float) -> Image:
    """Return the image under Gaussian blur, cut off at four sigma, the border pixels repeated outwards (as
    scikit-image's `gaussian` does by default)."""
    if sigma <= LARGEST_SIGMA:
        return _blur_exactly(image, sigma)
    shrink = int(2 * sigma / LARGEST_SIGMA)
    height, width = image.shape[:2]
    small = box_means(image, -(-height // shrink), -(-width // shrink))
    # averaging blocks of n pixels and interpolating between them is itself a blur, of about this variance
    rest = float(np.sqrt(sigma**2 - (shrink**2 - 1) / 4) / shrink)
    return resize_image(_blur_exactly(small, rest), height, width, cv2.INTER_LINEAR_EXACT)


def _blur_exactly(image: Image, sigma: float) -> Image:
    """Return the image blurred by OpenCV's fixed-point filter in 16 bits, since the weights of a wide kernel are too
    coarse in 8."""
    side = 2 * int(4 * sigma + 0.5) + 1
    wide = np.left_shift(image, 8, dtype=np.uint16)
    wide = np.asarray(cv2.GaussianBlur(wide, (side, side), sigma, borderType=cv2.BORDER_REPLICATE), dtype=np.uint16)
    # 255 * 256 is the most there can be: half of 256 more does not overflow
    return ((wide + np.uint16(128)) >> 8).astype(np.uint8).reshape(image.shape)


def filter_image(image: Image, kernel: NDArray[np.float64], *, anchor: tuple[int, int], border: int) -> Image:
    """Return the correlation with a kernel of sum 1, whose weights are taken as whole numbers of 65536ths; anchor: (x,
    y).

    OpenCV sends large kernels through a Fourier transform, which is not exact; in float64 its result is so near the
    whole number that it is known. Few weights are added up in float32, which holds all whole numbers up to 2^24."""
    weights = np.rint(kernel * 65536)
    weights.flat[np.argmax(weights)] += 65536 - weights.sum()
    if np.count_nonzero(weights) > FEW_WEIGHTS:
        summed = cv2.filter2D(image, cv2.CV_64F, weights, anchor=anchor, borderType=border)
        whole = np.rint(summed).astype(np.int32)
    else:
        whole = _added_up(image, weights, anchor, border).astype(np.int32)
    return ((whole + 32768) >> 16).astype(np.uint8).reshape(image.shape)


def _added_up(image: Image, weights: NDArray[np.float64], anchor: tuple[int, int], border: int) -> NDArray[np.float32]:
    """Return what OpenCV's filter2D does, with the kernel in pieces too small to be transformed."""
    (left, above), (kernel_height, kernel_width), (height, width) = anchor, weights.shape, image.shape[:2]
    border_widths = above, kernel_height - 1 - above, left, kernel_width - 1 - left
    padded = cv2.copyMakeBorder(image, *border_widths, border).astype(np.float32)
    total = np.zeros((height, width, *padded.shape[2:]), dtype=np.float32)
    for rows, columns in _pieces(weights):
        part = padded[rows.start : rows.stop - 1 + height, columns.start : columns.stop - 1 + width]
        total += cv2.filter2D(part, cv2.CV_32F, weights[rows, columns], anchor=(0, 0))[:height, :width]
    return total


def _pieces(weights: NDArray[np.float64]) -> Iterator[tuple[slice, slice]]:
    """Yield (rows, columns) that together hold all weights but zeros, as many columns at a time as OpenCV adds up."""
    used = weights != 0
    columns = np.flatnonzero(used.any(axis=0))
    tops, ends = used.argmax(axis=0), len(used) - used[::-1].argmax(axis=0)
    left, top, end = columns[0], tops[columns[0]], ends[columns[0]]
    for before, column in pairwise(columns):
        new_top, new_end = min(top, tops[column]), max(end, ends[column])
        if (column + 1 - left) * (new_end - new_top) >= TRANSFORMED:
            yield slice(top, end), slice(left, before + 1)
            left, new_top, new_end = column, tops[column], ends[column]
        top, end = new_top, new_end
    yield slice(top, end), slice(left, columns[-1] + 1)


def remap_image(image: Image, x: NDArray[np.float64], y: NDArray[np.float64], *, border: int) -> Image:
    """Return the image with each pixel taken from (x, y), interpolated linearly in steps of a 32nd of a pixel; x, y:
    [height, width]."""
    result = np.empty_like(image)
    for rows in strips(image.shape[0]):
        fixed_x, fixed_y = _in_32nds(x[rows]), _in_32nds(y[rows])
        # OpenCV takes the whole pixels, and the 32nds of y and x as one number
        whole = np.empty((*fixed_x.shape, 2), dtype=np.int16)
        whole[:, :, 0], whole[:, :, 1] = fixed_x >> 5, fixed_y >> 5
        part = (((fixed_y & 31) << 5) | (fixed_x & 31)).astype(np.uint16)
        moved = cv2.remap(image, whole, part, cv2.INTER_LINEAR, borderMode=border, borderValue=0)
        result[rows] = np.asarray(moved, dtype=np.uint8).reshape(-1, *image.shape[1:])
    return result


def _in_32nds(values: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return values as whole numbers of 32nds, rounded to the nearest (of two the even one), within what OpenCV's maps
    hold."""
    fixed = np.asarray(cv2.addWeighted(values, 32, values, 0, 0, dtype=cv2.CV_32S), dtype=np.int32)
    return np.clip(fixed.reshape(values.shape), -32000 * 32, 32000 * 32)
