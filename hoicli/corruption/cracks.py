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
"""The number of pieces of a crack as long as the diagonal; those near the impact are shorter."""
RAYS = 13
"""The number of cracks of each impact."""
BEND = 0.08
"""Standard deviation of the angle between the pieces of a crack, in radians."""
SOFT_EDGES = 1.4
"""Pixels by which OpenCV's anti-aliased polygons are broader than they are."""
BRIGHT, DARK = (235, 0.9), (20, 0.45)
"""(grey, opacity) of a crack, whose edge scatters light, and of its shadow beside it."""

Path = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cracks:
    """Broken glass with P impacts, each with R cracks; the sector between two neighbouring cracks is cut into
    splinters.

    centres [P, 2]: the impacts, as shares of the sides; rays [P, R, STEPS + 1, 2]: the path of each crack from its
    impact outwards, as shares of the diagonal; lengths [P, R]: how far each crack goes, as a share of the reach; cuts
    [P, R, STEPS + 1]: whether a crack runs across the sector at that step; shifts [P, R, STEPS + 1, 2]: the shift, in
    [-1, 1), of the splinter that begins there; shining [P, R, STEPS + 1]: whether that splinter reflects."""

    centres: NDArray[np.float64]
    rays: NDArray[np.float64]
    lengths: NDArray[np.float64]
    cuts: NDArray[np.bool_]
    shifts: NDArray[np.float64]
    shining: NDArray[np.bool_]


def draw_cracks(rng: Generator, _shape: Shape, levels: Levels) -> Cracks:
    """Draw as many impacts, with their cracks, as any severity needs."""
    impacts, rays = max(level[0] for level in levels), RAYS
    centres = rng.uniform(0.2, 0.8, (impacts, 2))
    first_heading = rng.uniform(0, 2 * np.pi, (impacts, 1)) + np.arange(rays) * (2 * np.pi / rays)
    first_heading = first_heading + rng.uniform(-0.35, 0.35, (impacts, rays)) * (2 * np.pi / rays)
    heading = first_heading[:, :, None] + np.cumsum(rng.normal(0, BEND, (impacts, rays, STEPS)), axis=2)
    pieces = np.stack([np.cos(heading), np.sin(heading)], axis=3) * np.diff(_distances())[:, None]
    paths = np.concatenate([np.zeros((impacts, rays, 1, 2)), np.cumsum(pieces, axis=2)], axis=2)
    lengths = rng.uniform(0.6, 1.0, (impacts, rays))
    shape = (impacts, rays, STEPS + 1)
    return Cracks(
        centres, paths, lengths, rng.random(shape) < 0.4, rng.uniform(-1, 1, (*shape, 2)), rng.random(shape) < 0.3
    )


def _distances() -> NDArray[np.float64]:
    """Return how far [STEPS + 1] from the impact the corners of a crack lie along it, as shares of the diagonal."""
    return np.linspace(0, 1, STEPS + 1) ** 1.5


def screen_crack(
    image: Image, cracks: Cracks, impacts: int, reach: float, width: float, shift: float, glare: float
) -> Image:
    """Return the image with splinters shifted against each other, some of which reflect white light, and bright cracks
    with a shadow."""
    scale = scale_of(*image.shape[:2])
    sources = splinter_motion(image.shape, cracks, impacts, reach, width, shift, glare).sources()
    result = remap_image(image, *sources, border=cv2.BORDER_REFLECT)
    reflection = np.zeros(image.shape[:2], dtype=np.uint8)
    for outline, splinter in _broken(image.shape, cracks, impacts, reach)[1]:
        if cracks.shining[splinter]:
            cv2.fillPoly(reflection, [_to_fixed_point(outline)], 255, lineType=cv2.LINE_AA, shift=4)
    result = _paint_over(result, 255, reflection, glare)
    for offset, (grey, opacity) in ((0.75 * width * scale, DARK), (0.0, BRIGHT)):
        result = _paint_over(result, grey, _lines(image.shape, cracks, impacts, reach, width, offset), opacity)
    return result


@lru_cache(maxsize=1)  # the picture and its boxes ask for the same
def splinter_motion(
    shape: Shape, cracks: Cracks, impacts: int, reach: float, _width: float, shift: float, _glare: float
) -> Displacement:
    """Return the displacement of every splinter: it shows what lies a little beside it, up to `shift` pixels each
    way."""
    length = shift * scale_of(*shape[:2])
    splinter_number, shifts = np.zeros(shape[:2], dtype=np.uint16), [np.zeros(2)]
    for outline, splinter in _broken(shape, cracks, impacts, reach)[1]:
        corners = np.rint(np.clip(outline, -30000, 30000)).astype(np.int32)
        cv2.fillPoly(splinter_number, [corners], len(shifts))
        shifts.append(np.rint(cracks.shifts[splinter] * length * 32) / 32)
    dx, dy = (np.array(amounts, dtype=np.float32).take(splinter_number) for amounts in zip(*shifts, strict=True))
    return Displacement(dx, dy)


def covered_by_cracks(
    shape: Shape, cracks: Cracks, impacts: int, reach: float, width: float, _shift: float, _glare: float
) -> NDArray[np.bool_]:
    """Return which pixels [height, width] lie under the bright lines; shadow and reflections let the scene shine
    through."""
    return _lines(shape, cracks, impacts, reach, width, 0.0) >= 128


def _paint_over(image: Image, grey: int, cover: NDArray[np.uint8], opacity: float) -> Image:
    """Paint one grey over the image, which is changed, and return it. cover [height, width]: how far each pixel is
    covered, 0 to 255; opacity: of the paint where it covers all."""
    share = np.arange(256)[:, None] * (opacity / 255)
    table = round_to_bytes(np.arange(256) * (1 - share) + grey * share)
    # `table` has the result for every (cover, pixel value), looked up by cover * 256 + value
    pixels, under = image.reshape(-1, image.shape[2]), np.flatnonzero(cover != 0)
    places = cover.ravel().take(under).astype(np.intp)[:, None] << 8
    pixels[under] = table.take(places | pixels.take(under, axis=0))
    return image


@lru_cache(maxsize=1)
def _broken(
    shape: Shape, cracks: Cracks, impacts: int, reach: float
) -> tuple[NDArray[np.float64], list[tuple[Path, tuple[int, int, int]]]]:
    """Return the lines [lines, 2 (start, end), 2] of all cracks within reach, and the splinters between them, each an
    outline [corners, 2] and its place in `shifts`. All are in pixels."""
    lines, crossing_lines, splinters = [], [], []
    for impact in range(impacts):
        within = _distances()[None, :] <= (cracks.lengths[impact] * reach)[:, None] + 1e-9
        paths = cracks.centres[impact] * (shape[1], shape[0]) + cracks.rays[impact] * float(
            np.hypot(shape[0], shape[1])
        )
        last_corners = np.maximum(1, within.sum(axis=1) - 1)
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
def _lines(shape: Shape, cracks: Cracks, impacts: int, reach: float, width: float, offset: float) -> NDArray[np.uint8]:
    """Return how far each pixel [height, width] is covered by cracks, 0 to 255, drawn `offset` pixels to the lower
    right.

    OpenCV draws lines of only a few breadths (3.4 pixels for 1.5, 2 and 2.5). So a crack is drawn as polygons of the
    right breadth, less what their soft edges add; where that leaves too little, on a canvas twice as fine."""
    scale = scale_of(*shape[:2])
    finer = 1 if scale >= 2 else 2
    canvas = np.zeros((shape[0] * finer, shape[1] * finer), dtype=np.uint8)
    all_lines, _ = _broken(shape, cracks, impacts, reach)
    _stroke(canvas, (all_lines + offset + 0.5) * finer - 0.5, width * scale * finer - SOFT_EDGES)
    if finer == 1:
        return canvas
    # two neighbouring bytes in one number: the mean of each two pixels of a row, then of each two rows
    pairs = canvas.view(np.uint16)
    mean_of_two = ((pairs & 255) + (pairs >> 8) + 1) >> 1
    return ((mean_of_two[::2] + mean_of_two[1::2] + 1) >> 1).astype(np.uint8)


def _stroke(canvas: NDArray[np.uint8], pieces: NDArray[np.float64], breadth: float) -> None:
    """Draw lines [pieces, 2 (start, end), 2] onto the canvas, longer by half the breadth, which closes the joints."""
    start, end = pieces[:, 0], pieces[:, 1]
    ahead = end - start
    ahead = ahead * breadth / 2 / np.maximum(np.hypot(ahead[:, :1], ahead[:, 1:]), 1e-9)
    aside = ahead[:, ::-1] * (1, -1)
    start, end = start - ahead, end + ahead
    for corners in _to_fixed_point(np.stack([start + aside, end + aside, end - aside, start - aside], axis=1)):
        cv2.fillConvexPoly(canvas, corners, 255, cv2.LINE_AA, 4)


def _to_fixed_point(points: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return points in 16ths of a pixel, as OpenCV draws them."""
    return np.rint(np.clip(points, -30000, 60000) * 16).astype(np.int32)


EFFECTS = {"screen_crack": Effect(screen_crack, draw_cracks, hidden=covered_by_cracks, motion=splinter_motion)}
