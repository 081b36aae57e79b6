"""Whether predicted boxes overlap annotated ones, and if not, which box convention would make them overlap.

The check uses the subject and the object of each image's best prediction, most of which a detector finds. If few of
them overlap an annotated box, the numbers are read in other known conventions, and the one with most overlaps is
reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from hoicli.arrays.boxes import iou_of_two

Box = Sequence[float]
Size = tuple[float, float]
Reading = Callable[[Box, "Size | None"], "Box | None"]

ENOUGH_IMAGES = 5
"""Ours: with fewer images there is no finding."""
HALF = 0.5
"""The IoU from which a box meets another, and the share of boxes that a reading must make meet."""
MUCH_BETTER = 1.5
"""Ours: a reading is reported if it makes this many times as many boxes meet."""
SAMPLE = 100
"""Ours: images of a `BoxSample`; in 200 boxes, shares of 1/10 or 2/3 are not chance."""
OVERSHOOT, PARTS = 2, ", and none of their numbers is above 2: parts of the image's sides (0-1)?"
"""Largest number in boxes that are fractions (0-1) but may leave the image; and the message if the images' sizes are
unknown."""
NEXT_TO_NOTHING = 0.1
"""Ours: if fewer boxes meet, that is a finding even if no reading helps."""


def _times(x: float, y: float, box: Box) -> Box:
    return [box[0] * x, box[1] * y, box[2] * x, box[3] * y]


def _from_centre(box: Box) -> Box:
    x, y, width, height = box
    return [x - width / 2, y - height / 2, x + width / 2, y + height / 2]


def _short_side(side: int, most: float = float("inf")) -> Callable[[Box, Size], Box]:
    """Boxes in a copy of the image with a short side of `side`, or a long side of `most` if that is smaller."""

    def read(box: Box, size: Size) -> Box:
        scale = min(side / min(size), most / max(size))
        return _times(1 / scale, 1 / scale, box)

    return read


def _square(side: int) -> Callable[[Box, Size], Box]:
    return lambda box, size: _times(size[0] / side, size[1] / side, box)


def _sized(read: Callable[[Box, Size], Box]) -> Reading:
    """A reading that needs the image's size."""
    return lambda box, size: None if size is None else read(box, size)


READINGS: dict[str, Reading] = {
    "[x, y, w, h]": lambda box, _: [box[0], box[1], box[0] + box[2], box[1] + box[3]],
    "[cx, cy, w, h]": lambda box, _: _from_centre(box),
    "[x1, x2, y1, y2]": lambda box, _: [box[0], box[2], box[1], box[3]],
    "[y1, x1, y2, x2]": lambda box, _: [box[1], box[0], box[3], box[2]],
    "[x2, y2, x1, y1]": lambda box, _: [box[2], box[3], box[0], box[1]],
    "parts of the image's sides (0-1)": _sized(lambda box, size: _times(*size, box)),
    "parts of the image's sides as [cx, cy, w, h]": _sized(lambda box, size: _times(*size, _from_centre(box))),
    "thousandths of the image's sides": _sized(lambda box, size: _times(size[0] / 1000, size[1] / 1000, box)),
    "thousandths, y first": _sized(
        lambda box, size: _times(size[0] / 1000, size[1] / 1000, [box[i] for i in (1, 0, 3, 2)])
    ),
    "scaled with height and width exchanged": _sized(
        lambda box, size: _times(size[0] / size[1], size[1] / size[0], box)
    ),
    "pixels of a copy with a short side of 512": _sized(_short_side(512)),
    "pixels of a copy with a short side of 800, at most 1333 long": _sized(_short_side(800, 1333)),
    **{f"pixels of a copy of {side} x {side}": _sized(_square(side)) for side in (224, 336, 448, 640)},
}
"""Each convention with the function that converts a box to corners; None if that needs an unknown image size."""
OTHER_SCALE = "pixels of a copy of another size"
"""One scale for each image: SWIG-HOI's ground truth is of images resized to a short side of 512; predictions may not
be."""


@dataclass
class BoxEvidence:
    """Collects the two boxes of each image's best prediction, with the image's annotated boxes and its size."""

    images: list[tuple[list[Box], Sequence[Box], Size | None]] = field(default_factory=list)

    def compare(self, boxes: list[Box], annotated: Sequence[Box], size: Size | None) -> None:
        """Add an image's best prediction; images without annotated boxes are ignored."""
        if annotated:
            self.images.append((boxes, annotated, size))

    def finding(self) -> tuple[str, int] | None:
        """(the finding in words, how many boxes meet nothing), or None if the boxes fit."""
        total = sum(len(boxes) for boxes, _, _ in self.images)
        if len(self.images) < ENOUGH_IMAGES:
            return None
        own = self._meeting(lambda box, _: box)
        if own * MUCH_BETTER >= total:
            return None
        text = f"{own:,} of the {total:,} boxes of best predictions meet an annotated box"
        largest = max(abs(side) for boxes, _, _ in self.images for box in boxes for side in box)
        if largest <= OVERSHOOT and all(size is None for _, _, size in self.images):
            return text + PARTS, total - own
        meeting = {what: self._meeting(read) for what, read in READINGS.items()}
        meeting[OTHER_SCALE] = sum(_met_after_scaling(boxes, annotated) for boxes, annotated, _ in self.images)
        best = max(meeting, key=lambda what: meeting[what])
        if meeting[best] >= max(HALF * total, MUCH_BETTER * own):
            return f"{text}, {meeting[best]:,} if they are {best}", total - own
        return (text, total - own) if own < NEXT_TO_NOTHING * total else None

    def _meeting(self, read: Reading) -> int:
        count = 0
        for boxes, annotated, size in self.images:
            for box in boxes:
                meant = read(box, size)
                count += meant is not None and any(iou_of_two(meant, other) >= HALF for other in annotated)
        return count


@dataclass
class BoxSample:
    """The same evidence from SAMPLE images, to save time: the first by name, so the choice does not depend on the order
    of the images or on how they are split among processes. The images' sizes are not known."""

    images: dict[str, tuple[list[Box], Sequence[Box]]] = field(default_factory=dict)
    _last: str | None = None

    def wanted(self, image_ids: Sequence[str]) -> list[int]:
        """The places of the images that `add` may keep."""
        last = self._last
        return [row for row, image_id in enumerate(image_ids) if last is None or image_id < last]

    def further(self) -> BoxSample:
        """An empty sample that wants only what this one would keep."""
        return BoxSample(_last=self._last)

    def add(self, images: Mapping[str, tuple[list[Box], Sequence[Box]]]) -> None:
        """Add images: (boxes of the best prediction, annotated boxes, not empty) by image id."""
        self.images |= images
        for image_id in sorted(self.images)[SAMPLE:]:
            del self.images[image_id]
        if len(self.images) == SAMPLE:
            self._last = max(self.images)

    def finding(self) -> tuple[str, int] | None:
        """As `BoxEvidence.finding`."""
        return BoxEvidence([(boxes, annotated, None) for boxes, annotated in self.images.values()]).finding()


def _met_after_scaling(boxes: list[Box], annotated: Sequence[Box]) -> int:
    """The number of boxes if one scale makes them all meet annotated boxes, else 0."""
    for target in annotated:
        scale = sqrt(max(_area(target), 0.0) / _area(boxes[0])) if _area(boxes[0]) > 0 else 0.0
        if scale and all(
            any(iou_of_two(_times(scale, scale, box), other) >= HALF for other in annotated) for box in boxes
        ):
            return len(boxes)
    return 0


def _area(box: Box) -> float:
    return max(box[2] - box[0], 0.0) * max(box[3] - box[1], 0.0)
