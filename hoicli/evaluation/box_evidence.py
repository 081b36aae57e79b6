"""Evidence that the numbers of predicted boxes mean something else than corners in pixels of the same image.

Looked at are the subject and the object of each image's best prediction, most of which a detector finds. If few of them
overlap an annotated box, of all, of one role or of some images, the numbers are read in other known conventions, and
the one with most overlaps is reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hoicli.evaluation.pairing import iterate_pairs
from hoicli.evaluation.slice_parts import object_area
from hoicli.records.boxes import iou
from hoicli.records.columns import Images
from hoicli.records.kit import Bools, Floats, Ints, median

Columns = Sequence[Floats] | Floats
"""Boxes [4, N], or sizes (width, height) [2, N]."""
Reading = Callable[[Columns, Columns], Columns]
"""A function that reads boxes in one convention: from their four numbers as written, and the sizes of their images, it
returns the boxes' corners in pixels; NaN if that needs a size that is not known."""

ENOUGH_IMAGES = 5
"""Ours: with fewer images there is no finding."""
HALF = 0.5
"""The IoU from which a box meets another, and the share of boxes that a reading must make meet."""
MUCH_BETTER = 1.5
"""Ours: a reading is reported if it makes this many times as many boxes meet."""
OVERSHOOT = 2
"""The largest number in boxes that are fractions (0-1) but may leave the image."""
PARTS = ", and none of their numbers is above 2: parts of the image's sides (0-1)?"
"""The end of the message about boxes that may all be fractions, if the images' sizes are unknown."""
IN_PARTS = "have no number above 2: parts of the image's sides (0-1)?"
"""The end of the message if only some boxes may be."""
NEXT_TO_NOTHING = 0.1
"""Ours: if fewer boxes meet, that is a finding even if no reading helps; fewer boxes or images than this share show
nothing."""
OF_THE_LOST = 0.25
"""Ours: a reading of some images must help this share of those where no box meets one."""
WORTH_SAYING = 0.01
"""Ours: boxes that cannot be pixels are not reported if they are a smaller share."""
ENOUGH_OF_A_ROLE = 20
"""Ours: with fewer boxes of a role there is no finding about it."""
IN_PIXELS = 20
"""Ours: annotated boxes are pixels, and none of them next to the corner, if half of them reach further than this."""
ROLES = ("subject", "object")
ROLE_BITS = (1, 2)
"""The bits of the two roles in a number that says which of them a box has."""


def _scale_box(x: Floats, y: Floats, box: Columns) -> Columns:
    """Return boxes [4, N] whose x coordinates are multiplied by x [N] and whose y coordinates by y [N]."""
    return [box[0] * x, box[1] * y, box[2] * x, box[3] * y]


def _corners_from_centre(box: Columns) -> Columns:
    """Return the corners x1, y1, x2, y2 of boxes [4, N] given as centre x, centre y, width, height."""
    x, y, width, height = box
    return [x - width / 2, y - height / 2, x + width / 2, y + height / 2]


def _exchange_axes(box: Columns) -> Columns:
    """Return boxes [4, N] with x and y exchanged: [y1, x1, y2, x2] becomes [x1, y1, x2, y2]."""
    return [box[1], box[0], box[3], box[2]]


def _reading_of_short_side(side: int, longest: float = float("inf")) -> Reading:
    """Return the reading of boxes as pixels of a resized copy of the image, whose short side is `side` long, or whose
    long side is `longest` if that makes the copy smaller."""

    def read(box: Columns, size: Columns) -> Columns:
        """Return the boxes [4, N] of the copies in pixels of the original images; size [2, N]: width and height."""
        scale = np.minimum(side / np.minimum(*size), longest / np.maximum(*size))
        return _scale_box(1 / scale, 1 / scale, box)

    return read


def _reading_of_square(side: int) -> Reading:
    """Return the reading of boxes as pixels of a copy of the image that was resized to `side` x `side`."""
    return lambda box, size: _scale_box(size[0] / side, size[1] / side, box)


READINGS: dict[str, Reading] = {
    "[x, y, w, h]": lambda box, _: [box[0], box[1], box[0] + box[2], box[1] + box[3]],
    "[cx, cy, w, h]": lambda box, _: _corners_from_centre(box),
    "[x1, x2, y1, y2]": lambda box, _: [box[0], box[2], box[1], box[3]],
    "[y1, x1, y2, x2]": lambda box, _: _exchange_axes(box),
    "[x2, y2, x1, y1]": lambda box, _: [box[2], box[3], box[0], box[1]],
    "parts of the image's sides (0-1)": lambda box, size: _scale_box(size[0], size[1], box),
    "parts of the image's sides as [cx, cy, w, h]": lambda box, size: _scale_box(
        size[0], size[1], _corners_from_centre(box)
    ),
    "thousandths of the image's sides": _reading_of_square(1000),
    "thousandths, y first": lambda box, size: _reading_of_square(1000)(_exchange_axes(box), size),
    "scaled with height and width exchanged": lambda box, size: _scale_box(size[0] / size[1], size[1] / size[0], box),
    "pixels of a copy with a short side of 512": _reading_of_short_side(512),
    "pixels of a copy with a short side of 800, at most 1333 long": _reading_of_short_side(800, 1333),
    **{f"pixels of a copy of {side} x {side}": _reading_of_square(side) for side in (224, 336, 448, 640)},
}
"""Each convention with the function that converts boxes to corners."""
BOX_FORMS = {"[x, y, w, h]": "xywh", "[cx, cy, w, h]": "cxcywh"}
"""Those that `convert --box-form` reads."""
OTHER_SCALE = "pixels of a copy of another size"
"""One scale for each image: SWIG-HOI's ground truth is of images resized to a short side of 512; predictions may not
be."""


def roles_of_boxes(images: Images) -> Ints:
    """Return the roles of each box in the triplets of its image, as a sum of ROLE_BITS."""
    roles = np.zeros(len(images.boxes) + 1, dtype=np.int64)  # the last is that of no object, -1
    for role_bit, rows in zip(ROLE_BITS, (images.subject, images.object), strict=True):
        roles[rows] |= role_bit
    return roles[:-1]


class Misfit(NamedTuple):
    """What is wrong with predicted boxes, in words, and how many boxes it concerns."""

    text: str
    boxes: int


class _Judged(NamedTuple):
    """Boxes that are judged together, of both roles or of one. name: the role with a space, "" for both; roles: which
    rows of arrays [2, N] they are (subjects, objects); few_meet: so few meet an annotated box that it is a misfit even
    if no convention helps."""

    name: str
    roles: slice
    few_meet: bool


@dataclass(frozen=True)
class BoxEvidence:
    """The boxes from which it is judged whether predictions fit the ground truth.

    subject, object [N, 4]: the two boxes of each image's best prediction, NaN for no object. annotated [A, 4]: the
    annotated boxes; roles [A]: their roles (`roles_of_boxes`). Image n has the count[n] annotated boxes (at least one)
    from start[n] on. size [N, 2]: each image's width and height, NaN where not known. Below, a box "meets" an annotated
    one of its image if their IoU is at least 0.5."""

    subject: Floats
    object: Floats
    annotated: Floats
    roles: Ints
    start: Ints
    count: Ints
    size: Floats

    def find_misfit(self) -> Misfit | None:
        """Return what is wrong with the boxes; None if they fit the ground truth."""
        return self.find_impossible() or self.find_misplaced() or self.find_exchanged()

    def find_impossible(self) -> Misfit | None:
        """Return a misfit if some of the boxes cannot be pixels, judged by their numbers alone: they are fractions
        (0-1) while others are not, or they have no area; else None."""
        if len(self.subject) < ENOUGH_IMAGES:
            return None
        boxes = self._both_boxes
        is_flat = (boxes[..., :2] == boxes[..., 2:]).any(axis=2)  # [2, N]
        is_fraction = (np.abs(boxes).max(axis=2) <= OVERSHOOT) & ~is_flat
        # `find_misplaced` says it if all are fractions, and `fit.check_annotated` if the annotated boxes are.
        all_are_fractions = is_fraction.sum() == self._exist.sum()
        truth_is_pixels = len(self.annotated) and median(self.annotated[:, 2:].max(axis=1)) > IN_PIXELS
        if truth_is_pixels and not all_are_fractions:
            misfit = self._find_many(is_fraction, share=WORTH_SAYING, problem=IN_PARTS)
            if misfit is not None:
                return misfit
        return self._find_many(is_flat, share=NEXT_TO_NOTHING, problem="have no area, as [0, 0, 0, 0]")

    def _find_many(self, odd: Bools, share: float, problem: str) -> Misfit | None:
        """Return a misfit if at least a `share` of the boxes of one role or both are odd; else None. odd [2, N]: which
        subject and object boxes are; problem: what is wrong with them, as the end of a sentence."""
        counts = odd.sum(axis=1)  # of the subjects, of the objects
        totals = self._exist.sum(axis=1)
        roles = np.flatnonzero(counts >= np.maximum(share * totals, ENOUGH_IMAGES))
        if not len(roles):
            return None
        count = int(counts[roles].sum())
        role_name = "" if len(roles) == len(ROLES) else f"{ROLES[roles[0]]} "
        text = f"{count:,} of the {totals[roles].sum():,} {role_name}boxes of best predictions {problem}"
        return Misfit(text, count)

    def find_misplaced(self) -> Misfit | None:
        """Return a misfit if few boxes meet an annotated one: few of all boxes, of one role, or of some images; else
        None. The misfit names the convention of numbers in which most of them would meet one, if there is one."""
        if len(self.subject) < ENOUGH_IMAGES:
            return None
        exist = self._exist
        recorded = self._meeting(lambda box, _: box)  # which boxes meet an annotated one as they are recorded
        meeting_count = recorded.sum(axis=1)  # of the subjects, of the objects
        total = exist.sum(axis=1)
        lost = np.logical_not(recorded.any(axis=0))  # the images in which no box meets one

        # Few meet one if a convention could make MUCH_BETTER (1.5) times as many do so.
        few_of_all = bool(recorded.sum() * MUCH_BETTER < exist.sum())
        few_of_role = (meeting_count * MUCH_BETTER < total) & (total >= ENOUGH_OF_A_ROLE)
        many_lost = lost.sum() >= max(NEXT_TO_NOTHING * len(lost), ENOUGH_IMAGES)
        if not (few_of_all or few_of_role.any() or many_lost):
            return None
        # Without the size of an image, fractions of its sides cannot be tried as pixels: the message (PARTS) asks.
        if few_of_all and np.nanmax(np.abs(self._both_boxes)) <= OVERSHOOT and np.isnan(self.size).all():
            return Misfit(self._text(recorded, exist, role_name="") + PARTS, int(exist.sum() - recorded.sum()))
        meeting = {convention: self._meeting(read) for convention, read in READINGS.items()}
        meeting[OTHER_SCALE] = self._meeting_scaled()

        # First both roles are judged together, then each role that seems wrong alone. Without a convention that helps,
        # a role is a misfit only if the boxes of the other role do fit.
        judged = []
        if few_of_all:
            few_meet = bool(recorded.sum() < NEXT_TO_NOTHING * exist.sum())
            judged.append(_Judged(name="", roles=slice(None), few_meet=few_meet))
        for role in np.flatnonzero(few_of_role):
            other = 1 - role
            few_meet = bool(meeting_count[role] < NEXT_TO_NOTHING * total[role])
            few_meet &= bool(meeting_count[other] >= HALF * total[other])  # the boxes of the other role do fit
            judged.append(_Judged(name=f"{ROLES[role]} ", roles=slice(role, role + 1), few_meet=few_meet))
        for boxes in judged:
            if (misfit := self._explain_misfit(boxes, recorded, meeting)) is not None:
                return misfit
        return self._find_lost_images(lost, meeting)

    def find_exchanged(self) -> Misfit | None:
        """Return a misfit if most subject boxes meet an annotated object, and most object boxes an annotated subject,
        rather than one of their own role; else None."""
        if len(self.subject) < ENOUGH_IMAGES:
            return None
        images, total = np.arange(len(self.subject)), int(self._exist.sum())
        # of each role: how many predicted boxes meet an annotated box of that role, and of the other role
        own_role, other_role = 0, 0
        with np.errstate(all="ignore"):  # a number too large for pixels meets nothing
            for role, boxes in enumerate(self._both_boxes):
                own_role += int(self._meets_truth(boxes.T, images, ROLE_BITS[role]).sum())
                other_role += int(self._meets_truth(boxes.T, images, ROLE_BITS[1 - role]).sum())
        if other_role < max(HALF * total, MUCH_BETTER * own_role):
            return None
        text = f"{own_role:,} of the {total:,} boxes of best predictions meet an annotated box of their role"
        return Misfit(f"{text}, {other_role:,} if subject and object are exchanged", total - own_role)

    def _explain_misfit(self, judged: _Judged, recorded: Bools, meeting: Mapping[str, Bools]) -> Misfit | None:
        """Return a misfit if in some convention many more of the judged boxes meet an annotated one than as recorded,
        or hardly any do; else None."""
        exist_count = self._exist[judged.roles].sum()
        recorded_count = recorded[judged.roles].sum()
        text = self._text(recorded[judged.roles], self._exist[judged.roles], judged.name)
        count_in = {convention: met[judged.roles].sum() for convention, met in meeting.items()}
        best = max(count_in, key=lambda convention: count_in[convention])
        if count_in[best] >= max(HALF * exist_count, MUCH_BETTER * recorded_count):
            how = f" (hoicli convert --box-form {BOX_FORMS[best]})" if best in BOX_FORMS and not judged.name else ""
            text = f"{text}, {count_in[best]:,} if they are {best}{how}"
        elif not judged.few_meet:
            return None
        return Misfit(text, int(exist_count - recorded_count))

    def _text(self, meeting: Bools, exist: Bools, role_name: str) -> str:
        """Return the sentence on how many boxes meet an annotated one, from masks of the boxes that do and of those
        that exist. role_name: "subject " or "object ", "" for both."""
        return f"{meeting.sum():,} of the {exist.sum():,} {role_name}boxes of best predictions meet an annotated box"

    def _find_lost_images(self, lost: Bools, meeting: Mapping[str, Bools]) -> Misfit | None:
        """Return a misfit if in one convention all boxes of many lost images meet an annotated one; else None. lost
        [N]: images where no box meets one as recorded; meeting: for each convention, which boxes [2, N] do."""
        # which of the lost images have all of their boxes (an object may not exist) on annotated ones
        helped = {convention: lost & (met | ~self._exist).all(axis=0) for convention, met in meeting.items()}
        best = max(helped, key=lambda convention: helped[convention].sum())
        count = int(helped[best].sum())
        if count < max(NEXT_TO_NOTHING * len(lost), OF_THE_LOST * lost.sum(), ENOUGH_IMAGES):
            return None
        text = f"the boxes of {count:,} of {len(lost):,} best predictions meet annotated ones only if they are {best}"
        return Misfit(text, int(self._exist[:, helped[best]].sum()))

    @cached_property
    def _both_boxes(self) -> Floats:
        """[2, N, 4] the subject boxes of all images, then their object boxes."""
        return np.stack([self.subject, self.object])

    @cached_property
    def _exist(self) -> Bools:
        """A mask [2, N] of the subject and object boxes that exist: a prediction may have no object."""
        return ~np.isnan(self._both_boxes[..., 0])

    def _meeting(self, read: Reading) -> Bools:
        """Return a mask [2, N] of the subject and object boxes that meet an annotated box (IoU >= 0.5) when `read`
        converts their numbers to corners in pixels."""
        images = np.arange(len(self.subject))
        with np.errstate(all="ignore"):  # a number too large for pixels meets nothing
            subjects = np.array(read(self.subject.T, self.size.T))
            objects = np.array(read(self.object.T, self.size.T))
            return np.stack([self._meets_truth(subjects, images), self._meets_truth(objects, images)])

    def _meets_truth(self, boxes: Floats, image: Ints, role_bit: int | None = None) -> Bools:
        """Return a mask of the boxes [4, M] that have an IoU >= 0.5 with an annotated box of their image [M], or with
        one in the role of a bit in ROLE_BITS."""
        meets = np.zeros(len(image), dtype=bool)
        for box, row in iterate_pairs(self.start[image], self.count[image]):
            overlap = iou(boxes[:, box], self.annotated[row].T, inclusive=False)
            is_met = overlap >= HALF
            if role_bit is not None:
                is_met &= (self.roles[row] & role_bit) > 0
            meets[box[is_met]] = True
        return meets

    def _meeting_scaled(self) -> Bools:
        """Return a mask [2, N] of the boxes of those images in which one scale makes all boxes meet an annotated one.
        Tried are the scales that give the subject box the area of an annotated box of the image."""
        all_meet = np.zeros(len(self.subject), dtype=bool)
        for image, row in iterate_pairs(self.start, self.count):  # each image with each of its annotated boxes
            with np.errstate(all="ignore"):
                subject_area = object_area(self.subject[image])
                scale = np.sqrt(object_area(self.annotated[row]) / subject_area)
                usable = (subject_area > 0) & (scale != 0)
                image, scale = image[usable], scale[usable]
                has_object = ~np.isnan(self.object[image, 0])
                meets = self._meets_truth(self.subject[image].T * scale, image)
                meets &= ~has_object | self._meets_truth(self.object[image].T * scale, image)
            all_meet[image[meets]] = True
        return all_meet & self._exist
