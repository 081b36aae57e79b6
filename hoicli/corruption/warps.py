"""Where a geometric corruption moves the image: points, boxes and what stays in the frame.

Coordinates are pixels with the first pixel's centre at 0. A moved box is the smallest that holds all of the box's area
after the warp, clipped to the image; its visibility is the share of its area that did not leave the frame.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Box = Sequence[float]

OUTLINE = 65
"""Points on each side of a box that are followed: on 640 pixels, a curve between two bends by less than 0.05 pixels."""
GRID = 64
"""Points along each side of the grid that samples how much of a box's area stays in the frame."""


def moved_boxes(warp: Warp, boxes: Sequence[Box]) -> tuple[list[list[float]], list[float]]:
    """Return (the boxes after the warp, clipped to the image; the share of each that is still in the image). A box that
    left the image becomes flat, on the image's border, with the share 0."""
    height, width = warp.size
    moved = []
    for box in boxes:
        bounds_and_limits = zip(warp.bounds(box), (width, height, width, height), strict=True)
        moved.append([round(float(min(max(0, value), limit)), 2) for value, limit in bounds_and_limits])
    return moved, [share_in_frame(warp, box) for box in boxes]


def share_in_frame(warp: Warp, box: Box) -> float:
    """Return the share of a box's area that is still in the image after the warp, of the area that was in it before; 0
    if none was. It is estimated by GRID x GRID points in the box."""
    height, width = warp.size
    x1, x2 = (float(min(max(0, value), width - 1)) for value in (box[0], box[2]))
    y1, y2 = (float(min(max(0, value), height - 1)) for value in (box[1], box[3]))
    if x2 <= x1 or y2 <= y1:
        return 0.0
    steps = (np.arange(GRID) + 0.5) / GRID
    x, y = np.meshgrid(x1 + steps * (x2 - x1), y1 + steps * (y2 - y1))
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    if np.isfinite(warp.margin):  # only points near the border can leave, so only these are followed
        distance_to_border = np.minimum(points, (width - 1, height - 1) - points).min(axis=1)
        points = points[distance_to_border < warp.margin]
    if not len(points):
        return 1.0
    outside = np.count_nonzero(~_inside(warp.forward(points), warp.size))
    return round(1 - outside / GRID**2, 4)


def _outline(box: Box) -> Points:
    """Return points (x, y) on all four sides of a box, OUTLINE on each."""
    x1, y1, x2, y2 = box
    along_x, along_y = np.linspace(x1, x2, OUTLINE), np.linspace(y1, y2, OUTLINE)
    sides = [(along_x, np.full(OUTLINE, y1)), (along_x, np.full(OUTLINE, y2))]
    sides += [(np.full(OUTLINE, x1), along_y), (np.full(OUTLINE, x2), along_y)]
    return np.concatenate([np.stack(side, axis=1) for side in sides])


def _box_around(points: Points) -> tuple[float, float, float, float]:
    """Return the smallest box (x1, y1, x2, y2) that holds all points."""
    (x1, y1), (x2, y2) = points.min(axis=0), points.max(axis=0)
    return float(x1), float(y1), float(x2), float(y2)


def _box_around_content(
    box: Box, x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[float, float, float, float] | None:
    """Return the smallest box around the pixels that show content of `box` after a warp, None if no pixel does. x, y:
    [height, width] where the content of each pixel was before."""
    in_box = (x >= box[0]) & (x <= box[2]) & (y >= box[1]) & (y <= box[3])
    rows, columns = np.flatnonzero(in_box.any(axis=1)), np.flatnonzero(in_box.any(axis=0))
    if not len(rows):
        return None
    return float(columns[0]), float(rows[0]), float(columns[-1]), float(rows[-1])


def _inside(points: Points, size: tuple[int, int]) -> NDArray[np.bool_]:
    """Return [N] a mask of the points in an image of size (height, width), whose first and last pixels reach half a
    pixel beyond their centres (and a hundredth more, for rounding)."""
    x, y = points[:, 0], points[:, 1]
    return (x > -0.51) & (y > -0.51) & (x < size[1] - 0.49) & (y < size[0] - 0.49)


class Warp(ABC):
    """A way in which a corruption moves the content of a picture. size: (height, width) of the picture; centre: its
    middle (x, y); margin: how far content may move, in pixels."""

    margin = np.inf

    def __init__(self, size: tuple[int, int]) -> None:
        """Set the size and the centre."""
        self.size = size
        self.centre = np.array([(size[1] - 1) / 2, (size[0] - 1) / 2])

    @abstractmethod
    def forward(self, points: Points) -> Points:
        """Return [N, 2] where the content of these points [N, 2], (x, y) in pixels, is after the warp."""

    def bounds(self, box: Box) -> tuple[float, float, float, float]:
        """Return the smallest box (x1, y1, x2, y2) around the content of a box after the warp, as far as it is in the
        image; if none is, a box outside of it. Here two corners are moved, which is right if a box stays a box."""
        return _box_around(self.forward(np.array([box[:2], box[2:]], dtype=np.float64)))


class Lens(Warp):
    """The radial distortion of a lens: the point at the distance r from the centre shows what was at r (1 + k r^2) /
    (1 + k n^2). Distances are in half diagonals; n is that of the nearest side, whose middle so stays where it is.

    k > 0 is a barrel, k < 0 a pincushion; k must exceed -1/3, or the map folds inside the picture.
    """

    def __init__(self, size: tuple[int, int], k: float) -> None:
        """Set the strength k; radius: half the diagonal in pixels; shrink: 1 + k n^2."""
        super().__init__(size)
        self.k = k
        self.radius = max(float(np.hypot(*self.centre)), 0.5)
        self.shrink = 1 + k * (float(self.centre.min()) / self.radius) ** 2

    def sources(self) -> tuple[Points, Points]:
        """Return (x, y), each [height, width]: where every pixel of the result comes from. It is computed in place,
        since pictures are large."""
        x = (np.arange(self.size[1]) - self.centre[0])[None, :]
        y = (np.arange(self.size[0]) - self.centre[1])[:, None]
        factor = x * x + y * y  # becomes (1 + k r^2) / (1 + k n^2), of which `shrink` is the divisor
        factor *= self.k
        factor /= self.radius**2
        factor += 1
        factor /= self.shrink
        from_x, from_y = x * factor, np.multiply(y, factor, out=factor)
        from_x += self.centre[0]
        from_y += self.centre[1]
        return from_x, from_y

    def forward(self, points: Points) -> Points:
        """Return [N, 2] where the content of points [N, 2], (x, y) in pixels, is after the warp. A point at the
        distance R moves to the r with r (1 + k r^2) = R (1 + k n^2), which Newton's method finds."""
        offset = points - self.centre
        # a pincushion's r (1 + k r^2) has a largest value, at `limit`: content beyond it is never shown, and stays
        # there
        limit = np.inf if self.k >= 0 else float(np.sqrt(1 / (3 * -self.k)))
        start = np.hypot(offset[:, 0], offset[:, 1]) / self.radius
        target = start * self.shrink
        reachable = np.minimum(target, limit * (1 + self.k * limit**2) if np.isfinite(limit) else np.inf)
        r = np.minimum(reachable, limit)
        for _ in range(50):
            slope = np.maximum(1 + 3 * self.k * r * r, 1e-9)
            last_r, r = r, np.clip(r - (r + self.k * r**3 - reachable) / slope, 0, limit)
            if np.abs(last_r - r).max() < 1e-12:  # waiting for no change at all might take for ever
                break
        ratio = np.divide(r, start, out=np.ones_like(r), where=start > 0)
        moved: Points = self.centre + offset * ratio[:, None]
        return moved

    def bounds(self, box: Box) -> tuple[float, float, float, float]:
        """Return the smallest box around the content of a box after the warp, as far as it is in the image: around the
        moved outline, since straight sides become curves."""
        moved = self.forward(_outline(box))
        if _inside(moved, self.size).all():
            return _box_around(moved)
        # of a box that the image cuts off, only some of a curved side is left: look at the pixels
        return _box_around_content(box, *self.sources()) or _box_around(moved)


class Zoom(Warp):
    """Everything is enlarged about the centre, then shifted. Of a blur that averages several, it is their mean."""

    def __init__(self, size: tuple[int, int], magnification: float, shift: tuple[float, float] = (0, 0)) -> None:
        """Set the magnification, a factor, and the shift (x, y) to the right and down, in pixels."""
        super().__init__(size)
        self.magnification, self.shift = magnification, np.array(shift)

    def forward(self, points: Points) -> Points:
        """Return the moved points as `Warp.forward` does."""
        moved: Points = self.centre + (points - self.centre) * self.magnification + self.shift
        return moved


class Displacement(Warp):
    """A shift for each pixel: the pixel at (x, y) shows what was at (x + dx, y + dy). Shifts may differ so much between
    neighbours that content folds: it is shown in several places, or in none."""

    def __init__(self, dx: NDArray[Any], dy: NDArray[Any]) -> None:
        """Set the shifts dx and dy, each [height, width], in pixels; the largest is how far content may move."""
        super().__init__((dx.shape[0], dx.shape[1]))
        self.dx, self.dy = dx, dy
        self.margin = int(np.ceil(max(cv2.norm(dx, cv2.NORM_INF), cv2.norm(dy, cv2.NORM_INF)))) + 1

    def sources(self) -> tuple[Points, Points]:
        """Return (x, y), each [height, width]: where every pixel of the result comes from."""
        return np.arange(self.size[1]) + self.dx, np.arange(self.size[0])[:, None] + self.dy

    def forward(self, points: Points) -> Points:
        """Return [N, 2] where the content of points [N, 2], (x, y) in pixels, is after the warp. Content at q moves to
        the p with p + d(p) = q, where d is the shift of the nearest pixel; p is found by iteration, and may be wrong by
        a pixel where content folds."""
        moved = points.copy()
        for _ in range(20):
            column = np.clip(np.rint(moved[:, 0]), 0, self.size[1] - 1).astype(np.intp)
            row = np.clip(np.rint(moved[:, 1]), 0, self.size[0] - 1).astype(np.intp)
            step = points - np.stack([self.dx[row, column], self.dy[row, column]], axis=1) - moved
            moved += 0.5 * step  # full steps might go back and forth for ever
        return moved

    def bounds(self, box: Box) -> tuple[float, float, float, float]:
        """Return the smallest box around the content of a box after the warp: around all pixels that show it, which is
        right even where content folds. Only pixels that the box can have moved to are looked at."""
        height, width = self.size
        x1, y1, x2, y2 = box
        first_x, end_x = (int(min(max(0, value), width)) for value in (x1 - self.margin, x2 + self.margin + 1))
        first_y, end_y = (int(min(max(0, value), height)) for value in (y1 - self.margin, y2 + self.margin + 1))
        x = np.arange(first_x, end_x)[None, :] + self.dx[first_y:end_y, first_x:end_x]
        y = np.arange(first_y, end_y)[:, None] + self.dy[first_y:end_y, first_x:end_x]
        around = _box_around_content(box, x, y)
        if around is None:  # the box is thinner than a pixel, or outside the image: move its corners
            return super().bounds(box)
        return around[0] + first_x, around[1] + first_y, around[2] + first_x, around[3] + first_y
