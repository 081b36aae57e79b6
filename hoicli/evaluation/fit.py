"""How the boxes of predictions fit the annotated ones: a question, or an error, where their numbers mean something
else than corners in pixels of the same image. A metric of such boxes would be near 0, whatever the model found."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import nsmallest

import numpy as np

from hoicli.errors import DataError, Place
from hoicli.evaluation.box_conventions import ENOUGH_IMAGES, OVERSHOOT, PARTS, BoxEvidence
from hoicli.evaluation.pairing import first_largest
from hoicli.io.messages import note
from hoicli.records.boxes import MOST_INVERTED, inverted
from hoicli.records.columns import Images
from hoicli.records.kit import Floats, Ints
from hoicli.vocabulary.labels import Vocabulary

SAMPLE = 100
"""Ours: images whose boxes are looked at, the first by name: the choice does not depend on their order, nor on how they
are split among processes. In their 200 boxes, shares of 1/10 or 2/3 are not chance."""

IN_PIXELS = 20
"""Ours: annotated boxes are pixels, and none of them next to the corner, if half of them reach further than this."""


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
        rows = np.flatnonzero(inverted(images.boxes))
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
            place=Place.of(name, f"image {image_id}"),
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

    def add(self, found: Images, image: Ints) -> Fit:
        """Add some images of the predictions. image [N]: their places in the ground truth."""
        self.inverted.add(found)
        self.largest = max(self.largest, float(np.abs(found.boxes).max(initial=0.0)))
        scores = np.where(np.isnan(found.score), -np.inf, found.score)
        if len(best := first_largest(found.image_of_hoi, scores)):
            object_ = np.where((found.object[best] < 0)[:, np.newaxis], np.nan, found.boxes[found.object[best]])
            self.best.append((image[found.image_of_hoi[best]], found.boxes[found.subject[best]], object_))
        return self

    def merge(self, other: Fit) -> None:
        """Add another part."""
        self.inverted.merge(other.inverted)
        self.largest = max(self.largest, other.largest)
        self.best += other.best

    def off(self, truth: Images) -> str:
        """What is wrong if the boxes do not fit those of the ground truth; "" if they do."""
        if not self.best:
            return ""
        image, subject, object_ = map(np.concatenate, zip(*self.best, strict=True))
        count = np.diff(truth.box_start)[image]
        by_id = nsmallest(SAMPLE, ((truth.image_ids[image[row]], row) for row in np.flatnonzero(count).tolist()))
        rows = np.array([row for _, row in by_id], dtype=np.int64)
        start, no_size = truth.box_start[image[rows]], np.full((len(rows), 2), np.nan)
        found = BoxEvidence(subject[rows], object_[rows], truth.boxes, start, count[rows], no_size).finding()
        return "" if found is None else found[0]

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
    """As `Fit.check`, of the boxes of ground truth: pixels that a rule adds to parts of the image's sides would make
    everything overlap. Raises `DataError`. name: the stream's."""
    Inverted().add(truth).report(name)
    if np.count_nonzero(np.diff(truth.box_start)) >= ENOUGH_IMAGES and np.abs(truth.boxes).max() <= OVERSHOOT:
        raise _relative(PARTS.removeprefix(", and "), name)


def _relative(problem: str, name: str) -> DataError:
    fix = "multiply x by the image's width and y by its height (hoicli validate)"
    return DataError(f"{problem}; {fix}", place=name, field="boxes", code="relative-box")


def tells_more(vocabulary: Vocabulary) -> str:
    """Where more is told about a question."""
    return f"hoicli validate{vocabulary.option} --gt GT PREDS tells more"
