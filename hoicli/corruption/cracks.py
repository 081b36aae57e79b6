"""A cracked screen: bright cracks from where it was hit, splinters that show what lies beside them, and reflections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hoicli.corruption.catalogue import Effect, Levels, scale_of
from hoicli.corruption.pixels import Image, Shape, remap_image, round_to_bytes
from hoicli.corruption.warps import Displacement

STEPS = 20
"""The number of straight pieces of a crack as long as the diagonal; those near the impact are shorter."""
RAYS = 13
"""The number of cracks of each impact."""
BEND = 0.08
"""Standard deviation of the angle between the pieces of a crack, in radians."""
SOFT_EDGES = 1.4
"""Pixels by which OpenCV's anti-aliased polygons are broader than they are."""
BRIGHT, DARK = (235, 0.9), (20, 0.45)
"""(grey, opacity) of a crack, whose edge scatters light, and of its shadow beside it."""

Path = NDArray[np.float64]
"""Points [M, 2], (x, y) in pixels."""


@dataclass(frozen=True, eq=False)
class Cracks:
    """The random part of broken glass: P impacts, from each of which R = RAYS cracks run outwards, each as a path of
    STEPS straight pieces. The sector between a crack and the next one is cut across into splinters.

    centres [P, 2]: the impacts (x, y), as shares of width and height; rays [P, R, STEPS + 1, 2]: the corners (x, y) of
    each crack's path, relative to its impact, as shares of the diagonal; lengths [P, R]: how far each crack goes, as a
    share of the constant `reach`. For the sector that begins at each crack, at each corner: cuts [P, R, STEPS + 1]:
    whether a crack runs across the sector there; shifts [P, R, STEPS + 1, 2]: the shift (x, y), in [-1, 1), of the
    splinter that begins there; shining [P, R, STEPS + 1]: whether that splinter reflects light."""

    centres: NDArray[np.float64]
    rays: NDArray[np.float64]
    lengths: NDArray[np.float64]
    cuts: NDArray[np.bool_]
    shifts: NDArray[np.float64]
    shining: NDArray[np.bool_]


def draw_cracks(rng: Generator, _shape: Shape, levels: Levels) -> Cracks:
    """Draw as many impacts, with their cracks, as any severity needs. levels: of each severity, impacts first."""
    impacts = max(level[0] for level in levels)
    centres = rng.uniform(0.2, 0.8, (impacts, 2))
    sector = 2 * np.pi / RAYS
    # headings are angles: one for each crack at first, evenly spread and shaken, then one for each of its pieces
    first_heading = rng.uniform(0, 2 * np.pi, (impacts, 1)) + np.arange(RAYS) * sector
    first_heading = first_heading + rng.uniform(-0.35, 0.35, (impacts, RAYS)) * sector
    heading = first_heading[:, :, None] + np.cumsum(rng.normal(0, BEND, (impacts, RAYS, STEPS)), axis=2)
    # a piece is a vector (x, y); a path, which has one corner more, begins at (0, 0) and adds its pieces up
    pieces = np.stack([np.cos(heading), np.sin(heading)], axis=3) * np.diff(_distances())[:, None]
    paths = np.concatenate([np.zeros((impacts, RAYS, 1, 2)), np.cumsum(pieces, axis=2)], axis=2)
    lengths = rng.uniform(0.6, 1.0, (impacts, RAYS))
    shape = (impacts, RAYS, STEPS + 1)
    return Cracks(
        centres=centres,
        rays=paths,
        lengths=lengths,
        cuts=rng.random(shape) < 0.4,
        shifts=rng.uniform(-1, 1, (*shape, 2)),
        shining=rng.random(shape) < 0.3,
    )


def _distances() -> NDArray[np.float64]:
    """Return [STEPS + 1] how far along a crack each of its corners is from the impact, as a share of the diagonal. The
    power makes the pieces near the impact shorter."""
    return np.linspace(0, 1, STEPS + 1) ** 1.5


def screen_crack(
    image: Image, cracks: Cracks, impacts: int, reach: float, width: float, shift: float, glare: float
) -> Image:
    """Return the image behind a broken screen: splinters are shifted against each other, some reflect white light, and
    between them run bright cracks with a shadow.

    The constants of a severity: how many impacts; how far cracks reach, as a share of the diagonal; their width and the
    largest shift of a splinter, in pixels; glare: the opacity of reflections, in [0, 1]."""
    scale = scale_of(*image.shape[:2])
    sources = splinter_motion(image.shape, cracks, impacts, reach, width, shift, glare).sources()
    result = remap_image(image, *sources, border=cv2.BORDER_REFLECT)
    reflection = np.zeros(image.shape[:2], dtype=np.uint8)
    _, splinters = _lines_and_splinters(image.shape, cracks, impacts, reach)
    for outline, index in splinters:
        if cracks.shining[index]:
            cv2.fillPoly(reflection, [_to_fixed_point(outline)], 255, lineType=cv2.LINE_AA, shift=4)
    result = _paint_over(result, 255, reflection, glare)
    for offset, (grey, opacity) in ((0.75 * width * scale, DARK), (0.0, BRIGHT)):
        result = _paint_over(result, grey, _crack_cover(image.shape, cracks, impacts, reach, width, offset), opacity)
    return result


@lru_cache(maxsize=1)  # the picture and its boxes need the same
def splinter_motion(
    shape: Shape, cracks: Cracks, impacts: int, reach: float, _width: float, shift: float, _glare: float
) -> Displacement:
    """Return where each pixel's content comes from: a splinter shows what lies beside it, at most `shift` pixels away
    in x and in y. impacts: how many are drawn; reach: how far their cracks go, as a share of the diagonal. The lines'
    width and the glare move nothing."""
    largest_shift = shift * scale_of(*shape[:2])
    # the splinter that covers each pixel, from 1; 0 for none, which is not shifted
    splinter_number, shifts = np.zeros(shape[:2], dtype=np.uint16), [np.zeros(2)]
    _, splinters = _lines_and_splinters(shape, cracks, impacts, reach)
    for outline, index in splinters:
        # cut off far outside the picture, where nothing is drawn: OpenCV takes no coordinates of any size
        corners = np.rint(np.clip(outline, -30000, 30000)).astype(np.int32)
        cv2.fillPoly(splinter_number, [corners], len(shifts))
        shifts.append(np.rint(cracks.shifts[index] * largest_shift * 32) / 32)  # `remap_image` takes 32nds of a pixel
    dx, dy = (np.array(amounts, dtype=np.float32).take(splinter_number) for amounts in zip(*shifts, strict=True))
    return Displacement(dx, dy)


def covered_by_cracks(
    shape: Shape, cracks: Cracks, impacts: int, reach: float, width: float, _shift: float, _glare: float
) -> NDArray[np.bool_]:
    """Return a mask [height, width] of the pixels that the bright cracks hide; shadow and reflections let the scene
    shine through. The arguments are those of `screen_crack`."""
    return _crack_cover(shape, cracks, impacts, reach, width, 0.0) >= 128


def _paint_over(image: Image, grey: int, cover: NDArray[np.uint8], opacity: float) -> Image:
    """Paint one grey over the image, which is changed, and return it. grey: 0 to 255; cover: [height, width] how far
    the paint covers each pixel, 0 to 255; opacity: of the paint where it covers all, in [0, 1]."""
    share = np.arange(256)[:, None] * (opacity / 255)
    # the result for every pair (cover, pixel value) is in the table at cover * 256 + value
    table = round_to_bytes(np.arange(256) * (1 - share) + grey * share)
    pixels, covered = image.reshape(-1, image.shape[2]), np.flatnonzero(cover != 0)
    row_starts = cover.ravel().take(covered).astype(np.intp)[:, None] << 8
    pixels[covered] = table.take(row_starts | pixels.take(covered, axis=0))
    return image


@lru_cache(maxsize=1)
def _lines_and_splinters(
    shape: Shape, cracks: Cracks, impacts: int, reach: float
) -> tuple[NDArray[np.float64], list[tuple[Path, tuple[int, int, int]]]]:
    """Return (the lines [M, 2, 2] of all cracks within reach, each a start and an end; the splinters between them, each
    with its outline and its index in `cracks.shifts` and `cracks.shining`). All coordinates are (x, y) in pixels.
    impacts: how many to draw; reach: how far cracks go, as a share of the diagonal."""
    lines, crossing_lines, splinters = [], [], []
    diagonal = float(np.hypot(shape[0], shape[1]))
    for impact in range(impacts):
        within = _distances()[None, :] <= (cracks.lengths[impact] * reach)[:, None] + 1e-9
        paths = cracks.centres[impact] * (shape[1], shape[0]) + cracks.rays[impact] * diagonal
        last_corners = np.maximum(1, within.sum(axis=1) - 1)  # every crack has a piece at least
        for ray, (path, last_corner) in enumerate(zip(paths, last_corners, strict=True)):
            lines.append(np.stack([path[:last_corner], path[1 : last_corner + 1]], axis=1))
            next_ray = (ray + 1) % len(paths)
            next_path, shared_end = paths[next_ray], int(min(last_corner, last_corners[next_ray]))
            cuts = [0, *(step for step in range(1, shared_end) if cracks.cuts[impact, ray, step]), shared_end]
            crossing_lines.append(np.stack([path[cuts[1:]], next_path[cuts[1:]]], axis=1))
            for start, stop in pairwise(cuts):  # up one crack, over to the next, and back
                outline = np.concatenate([path[start : stop + 1], next_path[start : stop + 1][::-1]])
                splinters.append((outline, (impact, ray, start)))
    return np.concatenate(lines + crossing_lines), splinters


@lru_cache(maxsize=1)
def _crack_cover(
    shape: Shape, cracks: Cracks, impacts: int, reach: float, width: float, offset: float
) -> NDArray[np.uint8]:
    """Return [height, width] how far each pixel is covered by cracks, 0 to 255. offset: how many pixels to the right
    and down the cracks are drawn; impacts: how many there are; reach: how far cracks go, as a share of the diagonal;
    width: of a crack in pixels.

    OpenCV draws lines of only a few breadths (3.4 pixels for 1.5, 2 and 2.5). So a crack is drawn as polygons of the
    right breadth, less what their soft edges add; where that leaves too little, on a canvas twice as fine."""
    scale = scale_of(*shape[:2])
    finer = 1 if scale >= 2 else 2
    canvas = np.zeros((shape[0] * finer, shape[1] * finer), dtype=np.uint8)
    lines, _ = _lines_and_splinters(shape, cracks, impacts, reach)
    # 0.5: a pixel's centre is at a whole number, on the fine canvas, too
    _draw_lines(canvas, (lines + offset + 0.5) * finer - 0.5, width * scale * finer - SOFT_EDGES)
    if finer == 1:
        return canvas
    # Back to full size: the mean of each two pixels of a row, then of each two rows. As 16-bit numbers, two
    # neighbouring bytes are one number: its lower and its upper 8 bits.
    pairs = canvas.view(np.uint16)
    mean_of_two = ((pairs & 255) + (pairs >> 8) + 1) >> 1
    return ((mean_of_two[::2] + mean_of_two[1::2] + 1) >> 1).astype(np.uint8)


def _draw_lines(canvas: NDArray[np.uint8], lines: NDArray[np.float64], breadth: float) -> None:
    """Draw lines [M, 2, 2], each with a start and an end (x, y), onto the canvas. Each is half the breadth longer at
    both ends, which closes the joints."""
    start, end = lines[:, 0], lines[:, 1]
    ahead = end - start
    ahead = ahead * breadth / 2 / np.maximum(np.hypot(ahead[:, :1], ahead[:, 1:]), 1e-9)  # half the breadth long
    aside = ahead[:, ::-1] * (1, -1)  # at a right angle
    start, end = start - ahead, end + ahead
    for corners in _to_fixed_point(np.stack([start + aside, end + aside, end - aside, start - aside], axis=1)):
        cv2.fillConvexPoly(canvas, corners, 255, cv2.LINE_AA, 4)


def _to_fixed_point(points: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return points in whole 16ths of a pixel, as OpenCV draws them if told that 4 bits are the fraction."""
    return np.rint(np.clip(points, -30000, 60000) * 16).astype(np.int32)


EFFECTS = {"screen_crack": Effect(screen_crack, draw_cracks, hidden=covered_by_cracks, motion=splinter_motion)}
