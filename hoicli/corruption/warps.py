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
"""Points on each side of a box that are followed: on a side of 640 pixels a curve between two of them bends by less
than 0.05 pixels."""
GRID = 64
"""Points along each side of the grid that samples how much of a box's area stays in the frame."""


def moved_boxes(warp: Warp, boxes: Sequence[Box]) -> tuple[list[list[float]], list[float]]:
    """Return (the boxes after the warp, the visible share of each). A box that left the image lies flat on its border,
    with share 0."""
    height, width = warp.size
    moved = []
    for box in boxes:
        sides = zip(warp.bounds(box), (width, height, width, height), strict=True)
        moved.append([round(float(min(max(0, value), limit)), 2) for value, limit in sides])
    return moved, [share_in_frame(warp, box) for box in boxes]


def share_in_frame(warp: Warp, box: Box) -> float:
    """Return the share of the box's area, as far as it was in the image, that is still there; 0 if none was."""
    height, width = warp.size
    x1, x2 = (float(min(max(0, value), width - 1)) for value in (box[0], box[2]))
    y1, y2 = (float(min(max(0, value), height - 1)) for value in (box[1], box[3]))
    if x2 <= x1 or y2 <= y1:
        return 0.0
    steps = (np.arange(GRID) + 0.5) / GRID
    x, y = np.meshgrid(x1 + steps * (x2 - x1), y1 + steps * (y2 - y1))
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    if np.isfinite(warp.margin):  # what is farther from the border stays
        points = points[np.minimum(points, (width - 1, height - 1) - points).min(axis=1) < warp.margin]
    if not len(points):
        return 1.0
    outside = np.count_nonzero(~_inside(warp.forward(points), warp.size))
    return round(1 - outside / GRID**2, 4)


def _outline(box: Box) -> Points:
    x1, y1, x2, y2 = box
    along_x, along_y = np.linspace(x1, x2, OUTLINE), np.linspace(y1, y2, OUTLINE)
    sides = [(along_x, np.full(OUTLINE, y1)), (along_x, np.full(OUTLINE, y2))]
    sides += [(np.full(OUTLINE, x1), along_y), (np.full(OUTLINE, x2), along_y)]
    return np.concatenate([np.stack(side, axis=1) for side in sides])


def _around(points: Points) -> tuple[float, float, float, float]:
    (x1, y1), (x2, y2) = points.min(axis=0), points.max(axis=0)
    return float(x1), float(y1), float(x2), float(y2)


def _around_shown(box: Box, x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float, float, float] | None:
    """Return the box around all pixels that show something of a box, None if no pixel does. x, y: where each pixel
    comes from."""
    in_box = (x >= box[0]) & (x <= box[2]) & (y >= box[1]) & (y <= box[3])
    rows, columns = np.flatnonzero(in_box.any(axis=1)), np.flatnonzero(in_box.any(axis=0))
    if not len(rows):
        return None
    return float(columns[0]), float(rows[0]), float(columns[-1]), float(rows[-1])


def _inside(points: Points, size: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which points [N] are in the frame, whose first and last pixels reach half a pixel beyond their centres."""
    x, y = points[:, 0], points[:, 1]
    return (x > -0.51) & (y > -0.51) & (x < size[1] - 0.49) & (y < size[0] - 0.49)


class Warp(ABC):
    """A map of the picture onto itself. size: (height, width); margin: how far a point may move, in pixels."""

    margin = np.inf

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size
        self.centre = np.array([(size[1] - 1) / 2, (size[0] - 1) / 2])

    @abstractmethod
    def forward(self, points: Points) -> Points:
        """Return where [N, 2] the content of these points (x, y) is after the warp."""

    def bounds(self, box: Box) -> tuple[float, float, float, float]:
        """Return x1, y1, x2, y2 around the part of the box's area that is in the frame after the warp; outside the
        frame if none is. By default they are the moved corners, which is right if a box stays a box."""
        return _around(self.forward(np.array([box[:2], box[2:]], dtype=np.float64)))


class Lens(Warp):
    """Radial distortion: a point at r shows what was at r (1 + k r^2) / (1 + k n^2), in half diagonals from the centre,
    where n is the distance of the nearest side: that side's middle stays where it is, and both signs move as much.

    k > 0 is a barrel, k < 0 a pincushion; k must exceed -1/3, or the map folds inside the picture.
    """

    def __init__(self, size: tuple[int, int], k: float) -> None:
        super().__init__(size)
        self.k = k
        self.radius = max(float(np.hypot(*self.centre)), 0.5)
        self.shrink = 1 + k * (float(self.centre.min()) / self.radius) ** 2

    def sources(self) -> tuple[Points, Points]:
        """Return (x, y), each [height, width]: where every pixel of the result comes from."""
        x = (np.arange(self.size[1]) - self.centre[0])[None, :]
        y = (np.arange(self.size[0]) - self.centre[1])[:, None]
        factor = x * x + y * y
        factor *= self.k
        factor /= self.radius**2
        factor += 1
        factor /= self.shrink
        from_x, from_y = x * factor, np.multiply(y, factor, out=factor)
        from_x += self.centre[0]
        from_y += self.centre[1]
        return from_x, from_y

    def forward(self, points: Points) -> Points:
        """Return the moved points, found by Newton's method on r (1 + k r^2) = R (1 + k n^2); points far outside stay
        outside."""
        offset = points - self.centre
        # a pincushion's map has an end: nothing beyond it is ever shown, so it may stay at the end
        limit = np.inf if self.k >= 0 else float(np.sqrt(1 / (3 * -self.k)))
        start = np.hypot(offset[:, 0], offset[:, 1]) / self.radius
        target = start * self.shrink
        reachable = np.minimum(target, limit * (1 + self.k * limit**2) if np.isfinite(limit) else np.inf)
        r = np.minimum(reachable, limit)
        for _ in range(50):
            slope = np.maximum(1 + 3 * self.k * r * r, 1e-9)
            last_r, r = r, np.clip(r - (r + self.k * r**3 - reachable) / slope, 0, limit)
            if np.abs(last_r - r).max() < 1e-12:  # the last bits may change for ever
                break
        ratio = np.divide(r, start, out=np.ones_like(r), where=start > 0)
        moved: Points = self.centre + offset * ratio[:, None]
        return moved

    def bounds(self, box: Box) -> tuple[float, float, float, float]:
        """Return the bounds as `Warp.bounds` does."""
        moved = self.forward(_outline(box))
        if _inside(moved, self.size).all():
            return _around(moved)
        # a side that is cut off is curved: look which pixels show something of the box
        return _around_shown(box, *self.sources()) or _around(moved)


class Zoom(Warp):
    """Everything enlarged about the centre, then moved by (x, y) pixels to the right and down. For several
    magnifications that are averaged, a box is where their mean puts it."""

    def __init__(self, size: tuple[int, int], magnification: float, step: tuple[float, float] = (0, 0)) -> None:
        super().__init__(size)
        self.magnification, self.step = magnification, np.array(step)

    def forward(self, points: Points) -> Points:
        """Return the moved points as `Warp.forward` does."""
        moved: Points = self.centre + (points - self.centre) * self.magnification + self.step
        return moved


class Displacement(Warp):
    """A field of shifts: the pixel at p shows what was at p + (dx, dy)(p). It may be small and rough, so it may fold.

    dx, dy [height, width]: in pixels."""

    def __init__(self, dx: NDArray[Any], dy: NDArray[Any]) -> None:
        super().__init__((dx.shape[0], dx.shape[1]))
        self.dx, self.dy = dx, dy
        self.margin = int(np.ceil(max(cv2.norm(dx, cv2.NORM_INF), cv2.norm(dy, cv2.NORM_INF)))) + 1

    def sources(self) -> tuple[Points, Points]:
        """Return the sources as `Lens.sources` does."""
        return np.arange(self.size[1]) + self.dx, np.arange(self.size[0])[:, None] + self.dy

    def forward(self, points: Points) -> Points:
        """Return the moved points: the fixed point of p = q - d(p), with the field of the nearest pixel; good to a
        pixel where the field folds."""
        moved = points.copy()
        for _ in range(20):
            column = np.clip(np.rint(moved[:, 0]), 0, self.size[1] - 1).astype(np.intp)
            row = np.clip(np.rint(moved[:, 1]), 0, self.size[0] - 1).astype(np.intp)
            step = points - np.stack([self.dx[row, column], self.dy[row, column]], axis=1) - moved
            moved += 0.5 * step
        return moved

    def bounds(self, box: Box) -> tuple[float, float, float, float]:
        """Return the box around all pixels that show something of the box, which is right where the field folds,
        too."""
        height, width = self.size
        x1, y1, x2, y2 = box
        left, right = (int(min(max(0, value), width)) for value in (x1 - self.margin, x2 + self.margin + 1))
        top, bottom = (int(min(max(0, value), height)) for value in (y1 - self.margin, y2 + self.margin + 1))
        window = np.s_[top:bottom, left:right]
        x = np.arange(left, right)[None, :] + self.dx[window]
        y = np.arange(top, bottom)[:, None] + self.dy[window]
        around = _around_shown(box, x, y)
        if around is None:  # thinner than a pixel, or outside the image: follow its corners
            return super().bounds(box)
        return around[0] + left, around[1] + top, around[2] + left, around[3] + top
