"""Geometry and scene: moire, cracked screen, elastic warp, lens distortion, pixelation and zoom blur."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hoicli.corruption.definitions import DEFINITIONS, scale_of
from hoicli.corruption.pixels import Image, Shape, box_means, remapped, resized, rounded
from hoicli.corruption.warps import Displacement, Lens, Zoom

Grids = NDArray[np.float64]


def draw_grids(rng: Generator, _shape: Shape) -> Grids:
    """Angle of the screen's grid, turn and stretch of the camera's against it, and where the curves are centred."""
    turn = rng.uniform(0.03, 0.07) * rng.choice([-1, 1])
    return np.array([rng.uniform(0, np.pi), turn, rng.uniform(1.02, 1.06), *rng.uniform(-0.5, 0.5, 2)])


def moire(image: Image, drawn: Grids, contrast: float, lines: float) -> Image:
    """Two fine grids that do not quite agree, one slightly curved: their lines and the broad fringes between them.

    The three colours lie a third of a line apart, as on a screen.
    """
    height, width = image.shape[:2]
    side = max(height, width)
    angle, turn, stretch, *centre = drawn
    lines = min(lines, side / 3)
    x = (np.arange(width) - width / 2)[None, :] / side
    y = (np.arange(height) - height / 2)[:, None] / side
    screen = lines * (x * np.cos(angle) + y * np.sin(angle))
    camera = lines * stretch * (x * np.cos(angle + turn) + y * np.sin(angle + turn))
    camera = camera + lines * 0.12 * ((x - centre[0]) ** 2 + (y - centre[1]) ** 2)
    own = np.cos(2 * np.pi * camera)
    channels = image.shape[2]
    phases = np.arange(channels) / 3 if channels == 3 else np.zeros(1)
    result = np.empty_like(image)
    for channel, phase in enumerate(phases):
        pattern = (1 + np.cos(2 * np.pi * (screen + phase))) * (1 + own) / 2 - 0.5
        result[:, :, channel] = rounded(image[:, :, channel] + 127.5 * contrast * pattern)
    return result


@dataclass(frozen=True)
class Cracks:
    """Broken glass, in shares of the diagonal. Of each of P impacts: centres [P, 2] (of the sides), R rays as paths
    [P, R, steps, 2] from the centre outwards, and the rings that join neighbouring rays [P, rings] (steps)."""

    centres: NDArray[np.float64]
    rays: NDArray[np.float64]
    rings: NDArray[np.int64]


STEPS = 24
"""Pieces of a ray from the impact to the length of the diagonal."""
BEND = 0.17
"""Standard deviation of the angle between the pieces of a ray, in radians."""
RAYS = 15
"""Of each impact."""
SOFT_EDGES = 1.4
"""Pixels by which OpenCV's anti-aliased polygons are broader than they are."""


def draw_cracks(rng: Generator, _shape: Shape) -> Cracks:
    """As many impacts as any severity needs."""
    impacts, rays = max(level[0] for level in DEFINITIONS["screen_crack"].levels), RAYS
    centres = rng.uniform(0.2, 0.8, (impacts, 2))
    first = rng.uniform(0, 2 * np.pi, (impacts, 1)) + np.arange(rays) * (2 * np.pi / rays)
    turns = np.cumsum(rng.normal(0, BEND, (impacts, rays, STEPS)), axis=2)
    heading = first[:, :, None] + rng.normal(0, 0.15, (impacts, rays, 1)) + turns
    length = rng.uniform(0.5, 1.5, (impacts, rays, STEPS)) / STEPS
    pieces = np.stack([np.cos(heading), np.sin(heading)], axis=3) * length[..., None]
    paths = np.concatenate([np.zeros((impacts, rays, 1, 2)), np.cumsum(pieces, axis=2)], axis=2)
    rings = np.sort(rng.integers(1, STEPS, (impacts, 7)), axis=1)
    return Cracks(centres, paths, rings)


def screen_crack(image: Image, drawn: Cracks, impacts: int, reach: float, width: float, glare: float) -> Image:
    """Dark cracks with bright edges, and splinters between them that reflect white light."""
    height, across = image.shape[:2]
    scale = scale_of(height, across)
    reflection = np.zeros((height, across), dtype=np.uint8)
    for number, splinter in enumerate(_splinters(image.shape, drawn, impacts, reach)):
        if number % 3 == 0:
            cv2.fillPoly(reflection, [_fixed(splinter)], 255, lineType=cv2.LINE_AA, shift=4)
    result = _covered(image, 255, reflection, glare)
    for offset, colour in ((0.75 * width * scale, 255), (0.0, 15)):
        line = _lines(image.shape, drawn, impacts, reach, width, offset)
        result = _covered(result, colour, line, 0.85 if offset else 1.0)
    return result


def _covered(image: Image, colour: int, cover: NDArray[np.uint8], opacity: float) -> Image:
    """The image under paint of one grey; cover [height, width] 0 to 255."""
    share = cover[:, :, None] * (opacity / 255)
    return rounded(image * (1 - share) + colour * share)


def cracked(shape: Shape, drawn: Cracks, impacts: int, reach: float, width: float, _glare: float) -> NDArray[np.bool_]:
    """[height, width] what lies under the dark lines; a reflection lets the scene shine through."""
    return _lines(shape, drawn, impacts, reach, width, 0.0) >= 128


def _lines(shape: Shape, drawn: Cracks, impacts: int, reach: float, width: float, offset: float) -> NDArray[np.uint8]:
    """[height, width] 0 to 255: how far each pixel is covered by cracks, drawn `offset` pixels to the lower right.

    OpenCV's own lines are of a few breadths alone (3.4 pixels for 1.5, 2 and 2.5). So a crack is drawn as polygons as
    broad as it should be, less what their soft edges add; where that leaves too little, on a canvas twice as fine.
    """
    scale = scale_of(*shape[:2])
    finer = 1 if scale >= 2 else 2
    canvas = np.zeros((shape[0] * finer, shape[1] * finer), dtype=np.uint8)
    last = max(1, round(reach * STEPS))
    diagonal = float(np.hypot(shape[0], shape[1]))
    centres = drawn.centres[:impacts, None, None] * (shape[1], shape[0])
    cracks = [*(centres + drawn.rays[:impacts, :, : last + 1] * diagonal)]
    outer = [s[len(s) // 2 - 1 : len(s) // 2 + 1] for s in _splinters(shape, drawn, impacts, reach)]
    if outer:
        cracks.append(np.stack(outer))
    for paths in cracks:
        _stroke(canvas, (paths + offset + 0.5) * finer - 0.5, width * scale * finer - SOFT_EDGES)
    cover: NDArray[np.uint8] = canvas if finer == 1 else box_means(canvas[:, :, None], *shape[:2])[:, :, 0]
    return cover


def _stroke(canvas: NDArray[np.uint8], paths: NDArray[np.float64], breadth: float) -> None:
    """Paths [paths, points, 2] onto the canvas. Pieces are longer by half the breadth, which closes the joints."""
    start, end = paths[:, :-1].reshape(-1, 2), paths[:, 1:].reshape(-1, 2)
    ahead = end - start
    ahead *= breadth / 2 / np.maximum(np.hypot(ahead[:, :1], ahead[:, 1:]), 1e-9)
    aside = ahead[:, ::-1] * (1, -1)
    start, end = start - ahead, end + ahead
    for corners in _fixed(np.stack([start + aside, end + aside, end - aside, start - aside], axis=1)):
        cv2.fillConvexPoly(canvas, corners, 255, cv2.LINE_AA, 4)


def _splinters(shape: Shape, drawn: Cracks, impacts: int, reach: float) -> list[NDArray[np.float64]]:
    """Outlines [corners, 2] in pixels of the pieces between neighbouring rays and rings: up one ray to the ring, over
    to the next ray, and back. Every other one of them only: real rings are not whole."""
    last = max(1, round(reach * STEPS))
    diagonal = float(np.hypot(shape[0], shape[1]))
    splinters = []
    for impact in range(impacts):
        centre = drawn.centres[impact] * (shape[1], shape[0])
        for ring in drawn.rings[impact][drawn.rings[impact] <= last]:
            inner = max(0, int(ring) - 3)
            for ray in range(int(ring) % 2, RAYS, 2):
                up = drawn.rays[impact, ray, inner : ring + 1]
                down = drawn.rays[impact, (ray + 1) % RAYS, inner : ring + 1][::-1]
                splinters.append(centre + np.concatenate([up, down]) * diagonal)
    return splinters


def _fixed(points: NDArray[np.float64]) -> NDArray[np.int32]:
    """Points in 16ths of a pixel, as OpenCV draws them."""
    return np.rint(np.clip(points, -30000, 60000) * 16).astype(np.int32)


Field = NDArray[np.float64]


def draw_field(rng: Generator, shape: Shape) -> Field:
    """[x and y, height, width] random numbers in [-1, 1) smoothed over a hundredth of the sides, times 0.5 % of the
    height: what the amplitude multiplies."""
    height, width = shape[:2]
    share = DEFINITIONS["elastic"].levels[0][1]
    sigma_y, sigma_x = (max(2.0, side * share) for side in (height, width))
    size = 2 * int(3 * sigma_x + 0.5) + 1, 2 * int(3 * sigma_y + 0.5) + 1
    rough = rng.random((2, height, width)) * 2 - 1
    smooth = [cv2.GaussianBlur(part, size, sigma_x, sigmaY=sigma_y, borderType=cv2.BORDER_REFLECT) for part in rough]
    field: Field = np.stack(smooth).astype(np.float64) * (0.005 * height)
    return field


def elastic_motion(shape: Shape, field: Field, amplitude: float, _sigma: float) -> Displacement:
    """Where the elastic warp takes things."""
    dx, dy = field * (amplitude * scale_of(*shape[:2]))
    return Displacement(dx, dy)


def elastic(image: Image, field: Field, amplitude: float, sigma: float) -> Image:
    """Every pixel from a little away, neighbours from about the same side; the picture is mirrored at its border."""
    warp = elastic_motion(image.shape, field, amplitude, sigma)
    height, width = warp.size
    x, y = np.arange(width) + warp.dx, np.arange(height)[:, None] + warp.dy
    return remapped(image, x, y, border=cv2.BORDER_REFLECT)


def draw_lens(rng: Generator, _shape: Shape) -> bool:
    """Barrel or pincushion."""
    return bool(rng.random() < 0.5)


def lens_motion(shape: Shape, is_barrel: bool, barrel: float, pincushion: float) -> Lens:
    """Where the lens takes things."""
    return Lens((shape[0], shape[1]), barrel if is_barrel else pincushion)


def perspective(image: Image, is_barrel: bool, barrel: float, pincushion: float) -> Image:
    """A barrel, whose corners show nothing (black), or a pincushion, whose corners are lost."""
    x, y = lens_motion(image.shape, is_barrel, barrel, pincushion).sources()
    return remapped(image, x, y, border=cv2.BORDER_CONSTANT)


def pixelate(image: Image, _: None, resolution: float) -> Image:
    """Shrunk to this share of its sides, each pixel the mean of what it covers, and enlarged into blocks."""
    height, width = image.shape[:2]
    share = resolution / scale_of(height, width)
    size = max(1, int(height * share)), max(1, int(width * share))
    means = box_means(image, *size)
    # the block that a pixel's centre lies in, or ends at: the one whose mean it went into
    rows = ((2 * np.arange(height) + 1) * size[0] - 1) // (2 * height)
    columns = ((2 * np.arange(width) + 1) * size[1] - 1) // (2 * width)
    result: Image = means.take(columns, axis=1).take(rows, axis=0)
    return result


def zoom_motion(shape: Shape, _: None, largest: float, layers: int) -> Zoom:
    """The mean of the layers' magnifications, in which the original counts twice."""
    return Zoom((shape[0], shape[1]), (1 + layers * (1 + largest) / 2) / (layers + 1))


def zoom_blur(image: Image, _: None, largest: float, layers: int) -> Image:
    """The mean of growing magnifications about the centre, and the original once more."""
    height, width = image.shape[:2]
    total = image.astype(np.uint32) * 2
    for layer in range(1, layers):
        # widened by whole pixels on both sides, so that the middle stays the middle
        right, down = (round(side * (largest - 1) * layer / (layers - 1) / 2) for side in (width, height))
        large = resized(image, height + 2 * down, width + 2 * right, cv2.INTER_LINEAR_EXACT)
        total += large[down : down + height, right : right + width]
    return ((total + (layers + 1) // 2) // (layers + 1)).astype(np.uint8)
