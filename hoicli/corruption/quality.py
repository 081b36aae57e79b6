"""PSNR and SSIM of many versions of one picture, compared with the original.

SSIM is Wang et al. (2004) with a uniform window of 7 x 7 pixels and the sample covariance, the mean over all windows
inside the picture and over the channels: what scikit-image's `structural_similarity` computes by default.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from hoicli.corruption.pixels import Image

WINDOW = 7
C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
"""The constants of the SSIM paper for values from 0 to 255."""

ROWS = 60
"""Rows of windows that are computed at a time: so few that they fit the processor's cache, which halves the time."""

Sums = NDArray[np.int32]


class Original:
    """A picture, uint8 [height, width, channels], that corrupted versions of it are compared with."""

    def __init__(self, image: Image) -> None:
        """Keep the image; its sums in windows, by the number of channels, are computed when they are first needed."""
        self._image = image
        self._sums: dict[int, tuple[Sums, Sums, Sums]] = {}

    def psnr(self, image: Image) -> float | None:
        """Return the PSNR of an image of the same size, in decibels; None if the two pictures are equal."""
        squared_error = cv2.norm(self._like(image), image, cv2.NORM_L2SQR) / image.size
        return None if squared_error == 0 else round(10 * math.log10(255**2 / squared_error), 4)

    def ssim(self, image: Image) -> float | None:
        """Return the SSIM of an image of the same size, between -1 and 1; None if it is less than 7 pixels wide or
        high. The formula is evaluated in place, in whole numbers as long as possible, for speed.

        Sums are over all windows of 7 x 7 pixels, one window a place; `sums`, `squares` and `variances` are the
        original's (sum; its square; the variance times n (n - 1), for n pixels), `other_sums` the sums of the image."""
        if min(image.shape[:2]) < WINDOW:
            return None
        original = self._like(image)
        sums, squares, variances = self._windows(original)
        count, half = WINDOW * WINDOW, WINDOW // 2
        mean_constant, variance_constant = np.float32(C1 * count**2), np.float32(C2 * count * (count - 1))
        total = 0.0
        for top in range(0, len(sums), ROWS):
            rows, pixels = slice(top, top + ROWS), slice(top, top + ROWS + WINDOW - 1)
            wide = image[pixels].astype(np.uint16)
            other_sums = _window_sums(wide)
            product = sums[rows] * other_sums
            other_sums *= other_sums
            # n * sum(x^2) - sum(x)^2 is the variance times n (n - 1), exact, since it is a whole number below 2^31
            covariance = _window_sums(original[pixels] * wide)
            covariance *= count
            covariance -= product
            total_variance = _window_sums(np.multiply(wide, wide, out=wide))
            total_variance *= count
            total_variance -= other_sums
            total_variance += variances[rows]
            other_sums += squares[rows]
            # SSIM is (2 a + c) (2 b + d) / denominator, of which (a + c / 2) (b + d / 2) is exactly a quarter
            quarter = _add_constant(product, mean_constant / 2)
            quarter *= _add_constant(covariance, variance_constant / 2)
            denominator = _add_constant(other_sums, mean_constant)
            denominator *= _add_constant(total_variance, variance_constant)
            quarter /= denominator
            total += 4 * sum(cv2.sumElems(quarter[:, half:-half]))
        return round(total / (sums.size - sums[:, : 2 * half].size), 6)

    def _like(self, image: Image) -> Image:
        """Return the original with as many channels as the image: if a corruption made a grey picture RGB, its grey
        channel three times."""
        original, channels = self._image, image.shape[2]
        return original if original.shape[2] == channels else np.repeat(original, channels, axis=2)

    def _windows(self, original: Image) -> tuple[Sums, Sums, Sums]:
        """Return, for each window of the original: (the sum of its n values, the square of that, the variance of the
        values times n (n - 1)). original: with as many channels as the image to compare. They are kept for the
        next image of as many."""
        channels = original.shape[2]
        if channels not in self._sums:
            wide = original.astype(np.uint16)
            sums = _window_sums(wide)
            squared = sums * sums
            self._sums[channels] = sums, squared, _window_sums(wide * wide) * (WINDOW * WINDOW) - squared
        return self._sums[channels]


def _window_sums(values: NDArray[np.uint16]) -> Sums:
    """Return [height - 6, width, channels] the sum of the values in the window around each pixel; the upper and lower
    three rows, whose windows reach out of the picture, are left out.

    The windows of the first and last three pixels of a row reach out of it, too. They stay because an array without
    gaps is computed faster, and the caller leaves them out at the end."""
    half = WINDOW // 2
    sums = np.asarray(cv2.boxFilter(values, cv2.CV_32S, (WINDOW, WINDOW), normalize=False), dtype=np.int32)
    return sums.reshape(values.shape)[half:-half]


def _add_constant(values: Sums, constant: np.float32) -> NDArray[np.float32]:
    """Return values + constant in float32, without an array of float64 in between."""
    sums = values.astype(np.float32)
    sums += constant
    return sums
