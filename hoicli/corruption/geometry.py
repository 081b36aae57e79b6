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
"""[5] the angle of a screen's grid of lines in radians; the turn (radians) and the stretch (a factor) of the camera's
grid against it; and the centre (x, y) of the camera grid's curvature, in longer sides from the middle."""


def draw_grids(rng: Generator, _shape: Shape, _levels: Levels) -> Grids:
    """Draw the geometry of the two grids whose interference is a moire."""
    turn = rng.uniform(0.03, 0.07) * rng.choice([-1, 1])
    return np.array([rng.uniform(0, np.pi), turn, rng.uniform(1.02, 1.06), *rng.uniform(-0.5, 0.5, 2)])


def moire(image: Image, grids: Grids, contrast: float, lines: float) -> Image:
    """Return the image with a moire: the lines of a screen's and of a camera's grid, which do not quite agree, and the
    broad fringes where they do. contrast: of the pattern, 1 from black to white; lines: of each grid along the longer
    side. The lines of the three colours are a third of a line apart, as on a screen."""
    height, width = image.shape[:2]
    side = max(height, width)
    angle, turn, stretch, *centre = grids
    lines = min(lines, side / 3)  # closer lines than three pixels would be another pattern
    x, y = (np.arange(width) - width / 2) / side, (np.arange(height) - height / 2) / side
    # a grid is a wave whose angle is one of the column plus one of the row: `waves` joins the two
    # a camera's lines are slightly curved, about a centre
    curved_x, curved_y = 0.12 * (x - centre[0]) ** 2, 0.12 * (y - centre[1]) ** 2
    camera_x = cos_and_sin(lines * (stretch * np.cos(angle + turn) * x + curved_x))
    camera_y = cos_and_sin(lines * (stretch * np.sin(angle + turn) * y + curved_y))
    screen_x = cos_and_sin(lines * np.cos(angle) * x)
    screens = [cos_and_sin(lines * np.sin(angle) * y + channel / 3) for channel in range(image.shape[2])]
    result = np.empty_like(image)
    for rows in strips(height):
        camera = waves(camera_y[:, rows], camera_x)
        camera += 1  # both grids from 0 to 2, in place, since new arrays would take longer
        camera *= 127.5 * contrast / 2
        for channel, screen_y in enumerate(screens):
            pattern = waves(screen_y[:, rows], screen_x)
            pattern += 1
            pattern *= camera
            pattern -= 127.5 * contrast / 2  # so that the mean of the picture stays
            pattern += image[rows, :, channel]
            result[rows, :, channel] = round_to_bytes(pattern)
    return result


Fields = Mapping[float, NDArray[np.float64]]
"""Smooth random fields of shifts [2 (x, y), height, width], by the share `sigma` of the sides that they are smoothed
over. The shift of a pixel is the field times the amplitude of a severity."""


def draw_field(rng: Generator, shape: Shape, levels: Levels) -> Fields:
    """Draw random numbers in [-1, 1) for each pixel; return them smoothed over each `sigma` of the levels (the second
    constant of each severity), times 0.5 % of the height."""
    height, width = shape[:2]
    rough = rng.random((2, height, width)) * 2 - 1
    fields = {}
    for share in {sigma for _, sigma in levels}:
        sigmas = [max(2.0, side * share) for side in (height, width)]
        down, across = (cv2.getGaussianKernel(2 * int(3 * sigma + 0.5) + 1, sigma) for sigma in sigmas)
        # One large kernel instead of two passes: OpenCV sends it through a Fourier transform, which takes half the
        # time, and a tenth for large pictures.
        kernel = down @ across.T
        smooth = [cv2.filter2D(shifts, cv2.CV_64F, kernel, borderType=cv2.BORDER_REFLECT) for shifts in rough]
        fields[share] = np.stack(smooth).astype(np.float64) * (0.005 * height)
    return fields


def elastic_motion(shape: Shape, fields: Fields, amplitude: float, sigma: float) -> Displacement:
    """Return where the elastic warp takes each pixel from: a shift by the field of this sigma, times the amplitude."""
    dx, dy = fields[sigma] * (amplitude * scale_of(*shape[:2]))
    return Displacement(dx, dy)


def elastic(image: Image, fields: Fields, amplitude: float, sigma: float) -> Image:
    """Return the image warped at random: every pixel is taken from a few pixels away, its neighbours from nearly the
    same direction. Beyond its border, the picture is mirrored."""
    sources = elastic_motion(image.shape, fields, amplitude, sigma).sources()
    return remap_image(image, *sources, border=cv2.BORDER_REFLECT)


def lens_motion(shape: Shape, is_barrel: bool, barrel: float, pincushion: float) -> Lens:
    """Return how the lens moves content: as a barrel or as a pincushion, with the strength that `Lens` takes."""
    return Lens((shape[0], shape[1]), barrel if is_barrel else pincushion)


def perspective(image: Image, is_barrel: bool, barrel: float, pincushion: float) -> Image:
    """Return the image with the distortion of a lens. A barrel leaves gaps at the border, where the nearest pixels are
    repeated (black corners would change the picture more than the lens); a pincushion loses the corners."""
    sources = lens_motion(image.shape, is_barrel, barrel, pincushion).sources()
    return remap_image(image, *sources, border=cv2.BORDER_REPLICATE)


def pixelate(image: Image, _: None, resolution: float) -> Image:
    """Return the image in coarse blocks, each of the mean colour of what it covers. resolution: the number of blocks as
    a share of the number of pixels, along each side."""
    height, width = image.shape[:2]
    share = resolution / scale_of(height, width)
    size = max(1, int(height * share)), max(1, int(width * share))
    means = box_means(image, *size)
    # the block of each row and column of pixels, by where the pixel's centre lies: as `box_means` has it
    rows = ((2 * np.arange(height) + 1) * size[0] - 1) // (2 * height)
    columns = ((2 * np.arange(width) + 1) * size[1] - 1) // (2 * width)
    result: Image = means.take(columns, axis=1).take(rows, axis=0)
    return result


def zoom_motion(shape: Shape, _: None, largest: float, layers: int) -> Zoom:
    """Return the mean of the magnifications that `zoom_blur` averages: it is where content is on average."""
    return Zoom((shape[0], shape[1]), (1 + layers * (1 + largest) / 2) / (layers + 1))


def zoom_blur(image: Image, _: None, largest: float, layers: int) -> Image:
    """Return the mean of `layers` magnifications of the image about its centre, in equal steps from 1 to `largest`, and
    of the image itself once more."""
    height, width, channels = image.shape
    if channels == 3:  # OpenCV enlarges four channels faster than three
        image = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2RGBA), dtype=np.uint8)
    total = 2 * image.astype(np.float32)  # floats are faster than whole numbers here, and exact
    for layer in range(1, layers):
        # enlarged by a whole number of pixels on each side, so that the middle stays the middle
        right, down = (round(side * (largest - 1) * layer / (layers - 1) / 2) for side in (width, height))
        cv2.accumulate(_enlarge_middle(image, down, right), total)
    total += (layers + 1) // 2  # so that the whole-number division below rounds to the nearest
    mean = (total.astype(np.uint16) // np.uint16(layers + 1)).astype(np.uint8)
    return np.asarray(cv2.cvtColor(mean, cv2.COLOR_RGBA2RGB), dtype=np.uint8) if channels == 3 else mean


def _enlarge_middle(image: Image, down: int, right: int) -> Image:
    """Return the image enlarged by `down` pixels above and below and by `right` pixels to the left and right, then
    cropped to its middle, of the image's own size.

    What the crop loses below and to the right is not computed; above and to the left it has to be. OpenCV's fastest
    interpolation computes with whole numbers: a value is at most 1 from the exact one."""
    height, width = image.shape[:2]
    times_y, times_x = (height + 2 * down) / height, (width + 2 * right) / width
    # two pixels more than can be seen, since the interpolation of the last ones needs them
    needed = image[: int((height + down) / times_y) + 3, : int((width + right) / times_x) + 3]
    large = cv2.resize(needed, None, fx=times_x, fy=times_y, interpolation=cv2.INTER_LINEAR)
    middle = np.asarray(large, dtype=np.uint8)[down : down + height, right : right + width]
    return middle.reshape(image.shape)


EFFECTS = {
    "moire": Effect(moire, draw_grids),
    "elastic": Effect(elastic, draw_field, motion=elastic_motion),
    "perspective": Effect(perspective, draw_side, motion=lens_motion),
    "pixelate": Effect(pixelate),
    "zoom_blur": Effect(zoom_blur, motion=zoom_motion),
}
