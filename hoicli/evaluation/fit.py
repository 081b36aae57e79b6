"""How the boxes of predictions fit the annotated ones: a question, or an error, where their numbers mean something
else than corners in pixels of the same image. A metric of such boxes would be near 0, whatever the model found.

Looked at are the subject and the object of each image's best prediction, most of which a detector finds. If few of them
overlap an annotated box, of all, of one role or of some images, the numbers are read in other known conventions, and
the one with most overlaps is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest

import numpy as np

from hoicli.errors import DataError, Place
from hoicli.evaluation.pairing import counterparts, first_largest
from hoicli.evaluation.slices import object_area
from hoicli.io.messages import note
from hoicli.records.boxes import MOST_INVERTED, find_inverted, iou
from hoicli.records.columns import Images
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.vocabulary.labels import Vocabulary

Columns = Sequence[Floats] | Floats
"""Boxes [4, N], or sizes (width, height) [2, N]."""
Reading = Callable[[Columns, Columns], Columns]
"""A reading takes the numbers of boxes as written in one convention, and the sizes of their images, and returns the
boxes as corners in pixels; NaN if that needs a size that is not known."""

ENOUGH_IMAGES = 5
"""Ours: with fewer images there is no finding."""
HALF = 0.5
"""The IoU from which a box meets another, and the share of boxes that a reading must make meet."""
MUCH_BETTER = 1.5
"""Ours: a reading is reported if it makes this many times as many boxes meet."""
OVERSHOOT, PARTS = 2, ", and none of their numbers is above 2: parts of the image's sides (0-1)?"
"""Largest number in boxes that are fractions (0-1) but may leave the image; and the message if the images' sizes are
unknown."""
IN_PARTS = "have no number above 2: parts of the image's sides (0-1)?"
"""The same of some boxes among others."""
NEXT_TO_NOTHING = 0.1
"""Ours: if fewer boxes meet, that is a finding even if no reading helps; fewer boxes or images than this share show
nothing."""
OF_THE_LOST = 0.25
"""Ours: a reading of some images must help this share of those where no box meets one."""
SOME = 0.01
"""Ours: of boxes that cannot be pixels, fewer are not said."""
ENOUGH_OF_A_ROLE = 20
"""Ours: with fewer boxes of a role there is no finding about it."""
IN_PIXELS = 20
"""Ours: annotated boxes are pixels, and none of them next to the corner, if half of them reach further than this."""
ROLES = ("subject", "object")


def _times(x: Floats, y: Floats, box: Columns) -> Columns:
    return [box[0] * x, box[1] * y, box[2] * x, box[3] * y]


def _corners_from_centre(box: Columns) -> Columns:
    x, y, width, height = box
    return [x - width / 2, y - height / 2, x + width / 2, y + height / 2]


def _y_first(box: Columns) -> Columns:
    return [box[1], box[0], box[3], box[2]]


def _short_side(side: int, longest: float = float("inf")) -> Reading:
    """Return the reading of boxes as pixels of a resized copy of the image, whose short side is `side` long, or whose
    long side is `longest` if that makes the copy smaller."""

    def read(box: Columns, size: Columns) -> Columns:
        scale = np.minimum(side / np.minimum(*size), longest / np.maximum(*size))
        return _times(1 / scale, 1 / scale, box)

    return read


def _square(side: int) -> Reading:
    return lambda box, size: _times(size[0] / side, size[1] / side, box)


READINGS: dict[str, Reading] = {
    "[x, y, w, h]": lambda box, _: [box[0], box[1], box[0] + box[2], box[1] + box[3]],
    "[cx, cy, w, h]": lambda box, _: _corners_from_centre(box),
    "[x1, x2, y1, y2]": lambda box, _: [box[0], box[2], box[1], box[3]],
    "[y1, x1, y2, x2]": lambda box, _: _y_first(box),
    "[x2, y2, x1, y1]": lambda box, _: [box[2], box[3], box[0], box[1]],
    "parts of the image's sides (0-1)": lambda box, size: _times(size[0], size[1], box),
    "parts of the image's sides as [cx, cy, w, h]": lambda box, size: _times(
        size[0], size[1], _corners_from_centre(box)
    ),
    "thousandths of the image's sides": _square(1000),
    "thousandths, y first": lambda box, size: _square(1000)(_y_first(box), size),
    "scaled with height and width exchanged": lambda box, size: _times(size[0] / size[1], size[1] / size[0], box),
    "pixels of a copy with a short side of 512": _short_side(512),
    "pixels of a copy with a short side of 800, at most 1333 long": _short_side(800, 1333),
    **{f"pixels of a copy of {side} x {side}": _square(side) for side in (224, 336, 448, 640)},
}
"""Each convention with the function that converts boxes to corners."""
BOX_FORMS = {"[x, y, w, h]": "xywh", "[cx, cy, w, h]": "cxcywh"}
"""Those that `convert --box-form` reads."""
OTHER_SCALE = "pixels of a copy of another size"
"""One scale for each image: SWIG-HOI's ground truth is of images resized to a short side of 512; predictions may not
be."""


@dataclass(frozen=True)
class BoxEvidence:
    """The boxes from which it is judged whether predictions fit the ground truth.

    subject, object [N, 4]: the two boxes of each image's best prediction, NaN for no object. annotated [A, 4]: the
    annotated boxes; image n has the count[n] boxes (at least one) from start[n] on. size [N, 2]: each image's width and
    height, NaN where not known. Below, a box "meets" an annotated one of its image if their IoU is at least HALF."""

    subject: Floats
    object: Floats
    annotated: Floats
    start: Ints
    count: Ints
    size: Floats

    def finding(self) -> tuple[str, int] | None:
        """Return what is wrong with the boxes, in words, and how many boxes it concerns; None if the boxes fit."""
        return self.odd() or self.find_misplaced()

    def odd(self) -> tuple[str, int] | None:
        """Return a finding, as `finding` does, if some of the boxes cannot be pixels, judged by their numbers alone:
        they are fractions (0-1) while others are not, or they have no area."""
        if len(self.subject) < ENOUGH_IMAGES:
            return None
        boxes = self._both_boxes
        flat = (boxes[..., :2] == boxes[..., 2:]).any(axis=2)
        fractions = (np.abs(boxes).max(axis=2) <= OVERSHOOT) & ~flat
        # If all are fractions, or the annotated boxes are no pixels either, that is not for this finding to say.
        if fractions.sum() == self._exist.sum() or np.median(self.annotated[:, 2:].max(axis=1)) <= IN_PIXELS:
            fractions[:] = False
        return self._find_many(fractions, SOME, IN_PARTS) or self._find_many(
            flat, NEXT_TO_NOTHING, "have no area, as [0, 0, 0, 0]"
        )

    def _find_many(self, odd: Bools, share: float, problem: str) -> tuple[str, int] | None:
        """Return a finding, as `finding` does, if at least a `share` of the boxes of one role or both are odd.
        odd [2, N]: which boxes are; problem: what is wrong with them, in words."""
        counts, totals = odd.sum(axis=1), self._exist.sum(axis=1)
        roles = np.flatnonzero(counts >= np.maximum(share * totals, ENOUGH_IMAGES))
        if not len(roles):
            return None
        count = int(counts[roles].sum())
        named = "" if len(roles) == len(ROLES) else f"{ROLES[roles[0]]} "
        return f"{count:,} of the {totals[roles].sum():,} {named}boxes of best predictions {problem}", count

    def find_misplaced(self) -> tuple[str, int] | None:
        """Return a finding, as `finding` does, if few boxes meet an annotated one: of all boxes, of one role, or of
        some images. It names the convention in which most of them would, if one helps."""
        if len(self.subject) < ENOUGH_IMAGES:
            return None
        exist, own_meeting = self._exist, self._meeting(lambda box, _: box)  # as recorded
        meeting_count, total = own_meeting.sum(axis=1), exist.sum(axis=1)
        lost = np.logical_not(own_meeting.any(axis=0))
        of_all = bool(own_meeting.sum() * MUCH_BETTER < exist.sum())
        of_role = (meeting_count * MUCH_BETTER < total) & (total >= ENOUGH_OF_A_ROLE)
        if not (of_all or of_role.any() or lost.sum() >= max(NEXT_TO_NOTHING * len(lost), ENOUGH_IMAGES)):
            return None
        if of_all and np.nanmax(np.abs(self._both_boxes)) <= OVERSHOOT and np.isnan(self.size).all():
            return self._text(own_meeting, exist, "") + PARTS, int(exist.sum() - own_meeting.sum())
        meeting = {convention: self._meeting(read) for convention, read in READINGS.items()}
        meeting[OTHER_SCALE] = self._meeting_scaled()
        # Judged are both roles together, then each role that is worse: (whether it is bad enough to look, its rows,
        # its name in words, whether so few boxes meet that it is a finding even if no convention helps).
        judged = [(of_all, slice(None), "", own_meeting.sum() < NEXT_TO_NOTHING * exist.sum())]
        for role in np.flatnonzero(of_role):
            alone = (
                meeting_count[role] < NEXT_TO_NOTHING * total[role]
                and meeting_count[1 - role] >= HALF * total[1 - role]
            )
            judged.append((True, slice(role, role + 1), f"{ROLES[role]} ", alone))
        for judge, roles, named, hopeless in judged:
            text, not_meeting = (
                self._text(own_meeting[roles], exist[roles], named),
                int(exist[roles].sum() - own_meeting[roles].sum()),
            )
            best = max(meeting, key=lambda convention: meeting[convention][roles].sum())
            count = meeting[best][roles].sum()
            if judge and count >= max(HALF * exist[roles].sum(), MUCH_BETTER * own_meeting[roles].sum()):
                how = f" (hoicli convert --box-form {BOX_FORMS[best]})" if best in BOX_FORMS and not named else ""
                return f"{text}, {count:,} if they are {best}{how}", not_meeting
            if judge and hopeless:
                return text, not_meeting
        return self._find_lost_images(lost, meeting)

    def _text(self, own_meeting: Bools, exist: Bools, named: str) -> str:
        return f"{own_meeting.sum():,} of the {exist.sum():,} {named}boxes of best predictions meet an annotated box"

    def _find_lost_images(self, lost: Bools, meeting: Mapping[str, Bools]) -> tuple[str, int] | None:
        """Return a finding, as `finding` does, if in one convention all boxes of many lost images meet an annotated
        one. lost [N]: images where no box meets one as recorded; meeting: for each convention, which boxes do."""
        helped = {convention: lost & (met | ~self._exist).all(axis=0) for convention, met in meeting.items()}
        best = max(helped, key=lambda convention: helped[convention].sum())
        count = int(helped[best].sum())
        if count < max(NEXT_TO_NOTHING * len(lost), OF_THE_LOST * lost.sum(), ENOUGH_IMAGES):
            return None
        text = f"the boxes of {count:,} of {len(lost):,} best predictions meet annotated ones only if they are {best}"
        return text, int(self._exist[:, helped[best]].sum())

    @cached_property
    def _both_boxes(self) -> Floats:
        """[2, N, 4] the subject boxes, then the object boxes."""
        return np.stack([self.subject, self.object])

    @cached_property
    def _exist(self) -> Bools:
        """[2, N] which of `_both_boxes` exist: a prediction may have no object."""
        return ~np.isnan(self._both_boxes[..., 0])

    def _meeting(self, read: Reading) -> Bools:
        """Return [2, N] which of `_both_boxes` meet an annotated box if `read` converts them to corners."""
        with np.errstate(all="ignore"):  # a number too large for pixels meets nothing
            images = np.arange(len(self.subject))
            return np.stack(
                [self._meets_truth(np.array(read(boxes.T, self.size.T)), images) for boxes in self._both_boxes]
            )

    def _meets_truth(self, boxes: Floats, image: Ints) -> Bools:
        """Return [M] whether each of the boxes [4, M] meets an annotated box of its image [M]."""
        met = np.zeros(len(image), dtype=bool)
        for box, row in counterparts(self.start[image], self.count[image]):
            met[box[iou(boxes[:, box], self.annotated[row].T, inclusive=False) >= HALF]] = True
        return met

    def _meeting_scaled(self) -> Bools:
        """Return [2, N] which of `_both_boxes` meet an annotated box after scaling, where one scale for the image lets
        all its boxes meet one. Tried are the scales that give the subject the area of an annotated box."""
        meets = np.zeros(len(self.subject), dtype=bool)
        for image, row in counterparts(self.start, self.count):
            with np.errstate(all="ignore"):
                scale = np.sqrt(object_area(self.annotated[row]) / object_area(self.subject[image]))
                usable = (object_area(self.subject[image]) > 0) & (scale != 0)
                image, scale = image[usable], scale[usable]
                with_object = ~np.isnan(self.object[image, 0])
                met = self._meets_truth(self.subject[image].T * scale, image)
                met &= ~with_object | self._meets_truth(self.object[image].T * scale, image)
            meets[image[met]] = True
        return meets & self._exist


SAMPLE = 100
"""Ours: images whose boxes are looked at, the first by name: the choice does not depend on their order, nor on how they
are split among processes. In their 200 boxes, shares of 1/10 or 2/3 are not chance."""


@dataclass
class Inverted:
    """Counts the inverted boxes of a stream, which end before they begin (x2 < x1 or y2 < y1) and so overlap nothing.
    The other numbers of the stream may look right, so nothing else would show them."""

    boxes: int = 0
    count: int = 0
    first: tuple[str, int, list[float]] | None = None
    """The first inverted box: the id of its image, its index in that image, and its four numbers."""

    def add(self, images: Images) -> Inverted:
        """Count the boxes of some images."""
        rows = np.flatnonzero(find_inverted(images.boxes))
        self.boxes += len(images.boxes)
        self.count += len(rows)
        if len(rows) and self.first is None:
            image = int(np.searchsorted(images.box_start, rows[0], side="right")) - 1
            place = int(rows[0] - images.box_start[image])
            self.first = images.image_ids[image], place, images.boxes[rows[0]].tolist()
        return self

    def merge(self, other: Inverted) -> None:
        """Add another part's counts."""
        self.boxes += other.boxes
        self.count += other.count
        self.first = self.first or other.first

    def report(self, name: str, *, shard: bool = False, cause: str = "") -> None:
        """Print a note about the inverted boxes if they are few. Raises `DataError` for a share above MOST_INVERTED,
        unless this is a `shard`, where a single box may be a large share. name: the stream's name; cause: what is known
        of why they are inverted, as the middle of the message."""
        if self.first is None:
            return
        image_id, row, box = self.first
        first = f"[{', '.join(f'{number:g}' for number in box)}]"
        share = f"{self.count:,} of {self.boxes:,} boxes {'is' if self.count == 1 else 'are'} inverted"
        problem = f"{first}: {share} (x2 < x1 or y2 < y1), which overlaps nothing; {cause or '[x, y, w, h]?'}"
        error = DataError(
            f"{problem}{';' if cause else ''} convert them to [x1, y1, x2, y2], or mend or drop them (hoicli validate)",
            place=Place.in_file(name, f"image {image_id}"),
            field=f"boxes[{row}]",
            code="inverted-box",
        )
        if self.count > MOST_INVERTED * self.boxes and not shard:
            raise error
        note(f"{error.place}: {error.field}: {problem}")


@dataclass
class Fit:
    """What tells whether predicted boxes fit the annotated ones, collected part by part."""

    inverted: Inverted = field(default_factory=Inverted)
    largest: float = 0.0
    """The largest number in a predicted box, whatever its sign."""
    best: list[tuple[Ints, Floats, Floats]] = field(default_factory=list)
    """For each part: the places of its images with predictions in the ground truth, and the subject boxes and object
    boxes of their best predictions (the first of equal scores), NaN for no object."""

    def add(self, images: Images, image: Ints) -> Fit:
        """Add some images of the predictions. image [N]: their places in the ground truth."""
        self.inverted.add(images)
        self.largest = max(self.largest, float(np.abs(images.boxes).max(initial=0.0)))
        scores = np.where(np.isnan(images.score), -np.inf, images.score)
        if len(best := first_largest(images.image_of_hoi, scores)):
            object_ = np.where((images.object[best] < 0)[:, np.newaxis], np.nan, images.boxes[images.object[best]])
            self.best.append((image[images.image_of_hoi[best]], images.boxes[images.subject[best]], object_))
        return self

    def merge(self, other: Fit) -> None:
        """Add another part."""
        self.inverted.merge(other.inverted)
        self.largest = max(self.largest, other.largest)
        self.best += other.best

    def off(self, truth: Images) -> str:
        """Return in words what is wrong if the boxes do not fit those of the ground truth; "" if they do."""
        if not self.best:
            return ""
        image, subject, object_ = map(np.concatenate, zip(*self.best, strict=True))
        count, no_size = np.diff(truth.box_start)[image], np.full((len(image), 2), np.nan)
        all_images = BoxEvidence(subject, object_, truth.boxes, truth.box_start[image], count, no_size)
        if (finding := all_images.odd()) is not None:
            return finding[0]
        by_id = nsmallest(SAMPLE, ((truth.image_ids[image[row]], row) for row in np.flatnonzero(count).tolist()))
        rows = np.array([row for _, row in by_id], dtype=np.int64)
        start = all_images.start[rows]
        finding = BoxEvidence(
            subject[rows], object_[rows], truth.boxes, start, count[rows], no_size[rows]
        ).find_misplaced()
        return "" if finding is None else finding[0]

    def check(self, truth: Images, name: str, *, shard: bool = False) -> None:
        """Print a note about inverted boxes if they are few. Raises `DataError` if they are many, and if all predicted
        boxes are fractions of the image's sides while the annotated ones are pixels; a `shard` is too small to tell, so
        it raises for neither. name: the name of the predictions."""
        if self.inverted.count:
            self.inverted.report(name, shard=shard, cause=self.off(truth))
        problem = self.off(truth) if 0 < self.largest <= OVERSHOOT and not shard else ""
        if problem and np.median(truth.boxes[:, 2:].max(axis=1)) > IN_PIXELS:
            raise _relative(problem, name)

    def doubt(self, truth: Images, vocabulary: Vocabulary) -> str:
        """Return the question whether the boxes fit, to be printed; "" if there is no doubt."""
        problem = self.off(truth)
        return f"do the boxes fit? {problem}; {tells_more(vocabulary)}" if problem else ""


def check_annotated(truth: Images, name: str) -> None:
    """Check the boxes of ground truth as `Fit.check` does those of predictions; print a note if there is no triplet.

    Boxes that are fractions of the image's sides are an error, since the whole pixels that some protocols add to
    corners would make everything overlap. Raises `DataError`. name: the name of the stream."""
    if not len(truth.subject):
        note(f"{name}: the ground truth holds no triplet: none can be found, and a mean of triplets shows nothing")
    Inverted().add(truth).report(name)
    starts = truth.box_start[:-1][np.diff(truth.box_start) > 0]
    if len(starts) < ENOUGH_IMAGES:
        return
    reach = np.maximum.reduceat(np.abs(truth.boxes).max(axis=1), starts)
    in_fractions = int(np.count_nonzero((reach > 0) & (reach <= OVERSHOOT)))
    if reach.max() <= OVERSHOOT:
        raise _relative(PARTS.removeprefix(", and "), name)
    if in_fractions >= max(SOME * len(reach), ENOUGH_IMAGES) and np.median(reach) > IN_PIXELS:
        note(f"{name}: the boxes of {in_fractions:,} of {len(reach):,} annotated images {IN_PARTS}")


def _relative(problem: str, name: str) -> DataError:
    fix = "multiply x by the image's width and y by its height (hoicli validate)"
    return DataError(f"{problem}; {fix}", place=name, field="boxes", code="relative-box")


def tells_more(vocabulary: Vocabulary) -> str:
    """Return the end of a question: the command that tells the user more about it."""
    return f"hoicli validate{vocabulary.option} --gt GT PREDS tells more"
