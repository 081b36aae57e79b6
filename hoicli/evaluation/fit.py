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
from hoicli.evaluation.ground_truth import object_area
from hoicli.evaluation.pairing import counterparts, first_largest
from hoicli.io.messages import note
from hoicli.records.boxes import MOST_INVERTED, find_inverted, iou
from hoicli.records.columns import Images
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.vocabulary.labels import Vocabulary

Columns = Sequence[Floats] | Floats
"""Boxes [4, N], or sizes (width, height) [2, N]."""
Reading = Callable[[Columns, Columns], Columns]
"""(boxes, the sizes of their images) -> the boxes as corners, NaN if that needs a size that is not known."""

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
    """Boxes in a copy of the image with a short side of `side`, or a long side of `longest` if that is smaller."""

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
    """The two boxes of each image's best prediction: subject, object [N, 4], NaN for no object. annotated [A, 4] boxes,
    of which those of image n are the count[n] (one at least) from start[n] on. size [N, 2]: width and height, NaN where
    not known."""

    subject: Floats
    object: Floats
    annotated: Floats
    start: Ints
    count: Ints
    size: Floats

    def finding(self) -> tuple[str, int] | None:
        """(the finding in words, how many boxes are concerned), or None if the boxes fit."""
        return self.odd() or self.find_misplaced()

    def odd(self) -> tuple[str, int] | None:
        """Return a finding as `finding` does, of boxes that are no pixels by their numbers alone, while others are:
        those of one role, or of some images."""
        if len(self.subject) < ENOUGH_IMAGES:
            return None
        ends = self._ends
        flat = (ends[..., :2] == ends[..., 2:]).any(axis=2)
        parts = (np.abs(ends).max(axis=2) <= OVERSHOOT) & ~flat
        if parts.sum() == self._there.sum() or np.median(self.annotated[:, 2:].max(axis=1)) <= IN_PIXELS:
            parts[:] = False
        return self._many(parts, SOME, IN_PARTS) or self._many(flat, NEXT_TO_NOTHING, "have no area, as [0, 0, 0, 0]")

    def _many(self, odd: Bools, share: float, problem: str) -> tuple[str, int] | None:
        """A finding if at least a `share` of the boxes of a role are `odd` [2, N]."""
        counts, totals = odd.sum(axis=1), self._there.sum(axis=1)
        roles = np.flatnonzero(counts >= np.maximum(share * totals, ENOUGH_IMAGES))
        if not len(roles):
            return None
        count = int(counts[roles].sum())
        named = "" if len(roles) == len(ROLES) else f"{ROLES[roles[0]]} "
        return f"{count:,} of the {totals[roles].sum():,} {named}boxes of best predictions {problem}", count

    def find_misplaced(self) -> tuple[str, int] | None:
        """Return a finding as `finding` does, of boxes that do not lie where annotated ones do: of all, of one role, or
        of some images."""
        if len(self.subject) < ENOUGH_IMAGES:
            return None
        there, own_meeting = self._there, self._meeting(lambda box, _: box)
        meeting_count, total = own_meeting.sum(axis=1), there.sum(axis=1)
        lost = np.logical_not(own_meeting.any(axis=0))
        of_all = bool(own_meeting.sum() * MUCH_BETTER < there.sum())
        of_role = (meeting_count * MUCH_BETTER < total) & (total >= ENOUGH_OF_A_ROLE)
        if not (of_all or of_role.any() or lost.sum() >= max(NEXT_TO_NOTHING * len(lost), ENOUGH_IMAGES)):
            return None
        if of_all and np.nanmax(np.abs(self._ends)) <= OVERSHOOT and np.isnan(self.size).all():
            return self._text(own_meeting, there, "") + PARTS, int(there.sum() - own_meeting.sum())
        meeting = {what: self._meeting(read) for what, read in READINGS.items()}
        meeting[OTHER_SCALE] = self._meeting_scaled()
        judged = [(of_all, slice(None), "", own_meeting.sum() < NEXT_TO_NOTHING * there.sum())]
        for role in np.flatnonzero(of_role):
            alone = (
                meeting_count[role] < NEXT_TO_NOTHING * total[role]
                and meeting_count[1 - role] >= HALF * total[1 - role]
            )
            judged.append((True, slice(role, role + 1), f"{ROLES[role]} ", alone))
        for judge, roles, named, hopeless in judged:
            text, not_meeting = (
                self._text(own_meeting[roles], there[roles], named),
                int(there[roles].sum() - own_meeting[roles].sum()),
            )
            best = max(meeting, key=lambda what: meeting[what][roles].sum())
            count = meeting[best][roles].sum()
            if judge and count >= max(HALF * there[roles].sum(), MUCH_BETTER * own_meeting[roles].sum()):
                how = f" (hoicli convert --box-form {BOX_FORMS[best]})" if best in BOX_FORMS and not named else ""
                return f"{text}, {count:,} if they are {best}{how}", not_meeting
            if judge and hopeless:
                return text, not_meeting
        return self._find_lost_images(lost, meeting)

    def _text(self, own_meeting: Bools, there: Bools, named: str) -> str:
        return f"{own_meeting.sum():,} of the {there.sum():,} {named}boxes of best predictions meet an annotated box"

    def _find_lost_images(self, lost: Bools, meeting: Mapping[str, Bools]) -> tuple[str, int] | None:
        """A finding if many of the `lost` images [N], where no box meets one, have boxes that all do in one reading."""
        helped = {what: lost & (met | ~self._there).all(axis=0) for what, met in meeting.items()}
        best = max(helped, key=lambda what: helped[what].sum())
        count = int(helped[best].sum())
        if count < max(NEXT_TO_NOTHING * len(lost), OF_THE_LOST * lost.sum(), ENOUGH_IMAGES):
            return None
        text = f"the boxes of {count:,} of {len(lost):,} best predictions meet annotated ones only if they are {best}"
        return text, int(self._there[:, helped[best]].sum())

    @cached_property
    def _ends(self) -> Floats:
        """[2, N, 4] both boxes."""
        return np.stack([self.subject, self.object])

    @cached_property
    def _there(self) -> Bools:
        """[2, N] which there are."""
        return ~np.isnan(self._ends[..., 0])

    def _meeting(self, read: Reading) -> Bools:
        """[2, N] which boxes meet an annotated one as `read` has them."""
        with np.errstate(all="ignore"):  # a number too large for pixels meets nothing
            images = np.arange(len(self.subject))
            return np.stack([self._meets_truth(np.array(read(end.T, self.size.T)), images) for end in self._ends])

    def _meets_truth(self, boxes: Floats, image: Ints) -> Bools:
        """[M] whether each of the boxes [4, M] meets an annotated one of its image."""
        met = np.zeros(len(image), dtype=bool)
        for box, row in counterparts(self.start[image], self.count[image]):
            met[box[iou(boxes[:, box], self.annotated[row].T, inclusive=False) >= HALF]] = True
        return met

    def _meeting_scaled(self) -> Bools:
        """[2, N] which boxes meet if one scale makes both of an image meet: that of its subject and an annotated
        box."""
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
        return meets & self._there


SAMPLE = 100
"""Ours: images whose boxes are looked at, the first by name: the choice does not depend on their order, nor on how they
are split among processes. In their 200 boxes, shares of 1/10 or 2/3 are not chance."""


@dataclass
class Inverted:
    """How many boxes of a stream end before they begin, which overlap nothing: its other numbers may be right, so that
    nothing else shows it."""

    boxes: int = 0
    count: int = 0
    first: tuple[str, int, list[float]] | None = None
    """(image, place in it, box)."""

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
        """A note about a few; raises `DataError` for more than MOST_INVERTED of all, unless this is a `shard`, of which
        one box may be many. name: the stream's; cause: what is known of it."""
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
    """What is known of predicted boxes, collected part by part."""

    inverted: Inverted = field(default_factory=Inverted)
    largest: float = 0.0
    """The largest number in a predicted box, whatever its sign."""
    best: list[tuple[Ints, Floats, Floats]] = field(default_factory=list)
    """Of images with predictions: their places in the ground truth, and the two boxes of their best prediction, the
    first of equal scores, NaN for no object."""

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
        """Return what is wrong if the boxes do not fit those of the ground truth; "" if they do."""
        if not self.best:
            return ""
        image, subject, object_ = map(np.concatenate, zip(*self.best, strict=True))
        count, no_size = np.diff(truth.box_start)[image], np.full((len(image), 2), np.nan)
        every = BoxEvidence(subject, object_, truth.boxes, truth.box_start[image], count, no_size)
        if (finding := every.odd()) is not None:
            return finding[0]
        by_id = nsmallest(SAMPLE, ((truth.image_ids[image[row]], row) for row in np.flatnonzero(count).tolist()))
        rows = np.array([row for _, row in by_id], dtype=np.int64)
        start = every.start[rows]
        finding = BoxEvidence(
            subject[rows], object_[rows], truth.boxes, start, count[rows], no_size[rows]
        ).find_misplaced()
        return "" if finding is None else finding[0]

    def check(self, truth: Images, name: str, *, shard: bool = False) -> None:
        """A note about a few inverted boxes; raises `DataError` for too many, and if all boxes are parts of the image's
        sides, and the annotated ones pixels, but for a `shard`, which is too small to tell. name: the predictions'."""
        if self.inverted.count:
            self.inverted.report(name, shard=shard, cause=self.off(truth))
        off = self.off(truth) if 0 < self.largest <= OVERSHOOT and not shard else ""
        if off and np.median(truth.boxes[:, 2:].max(axis=1)) > IN_PIXELS:
            raise _relative(off, name)

    def doubt(self, truth: Images, vocabulary: Vocabulary) -> str:
        """The question whether the boxes fit; "" if there is none."""
        off = self.off(truth)
        return f"do the boxes fit? {off}; {tells_more(vocabulary)}" if off else ""


def check_annotated(truth: Images, name: str) -> None:
    """Check as `Fit.check` does, the boxes of ground truth: pixels that a rule adds to parts of the image's sides would
    make everything overlap; and a note if there is no triplet. Raises `DataError`. name: the stream's."""
    if not len(truth.subject):
        note(f"{name}: the ground truth holds no triplet: none can be found, and a mean of triplets shows nothing")
    Inverted().add(truth).report(name)
    starts = truth.box_start[:-1][np.diff(truth.box_start) > 0]
    if len(starts) < ENOUGH_IMAGES:
        return
    reach = np.maximum.reduceat(np.abs(truth.boxes).max(axis=1), starts)
    parts = int(np.count_nonzero((reach > 0) & (reach <= OVERSHOOT)))
    if reach.max() <= OVERSHOOT:
        raise _relative(PARTS.removeprefix(", and "), name)
    if parts >= max(SOME * len(reach), ENOUGH_IMAGES) and np.median(reach) > IN_PIXELS:
        note(f"{name}: the boxes of {parts:,} of {len(reach):,} annotated images {IN_PARTS}")


def _relative(problem: str, name: str) -> DataError:
    fix = "multiply x by the image's width and y by its height (hoicli validate)"
    return DataError(f"{problem}; {fix}", place=name, field="boxes", code="relative-box")


def tells_more(vocabulary: Vocabulary) -> str:
    """Where more is told about a question."""
    return f"hoicli validate{vocabulary.option} --gt GT PREDS tells more"
