"""How the boxes of predictions fit the annotated ones: a question, or an error, where their numbers mean something
else than corners in pixels of the same image. A metric of such boxes would be near 0, whatever the model found."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from heapq import nsmallest

import numpy as np

from hoicli.errors import DataError, Place
from hoicli.evaluation.box_evidence import (
    ENOUGH_IMAGES,
    IN_PARTS,
    IN_PIXELS,
    OVERSHOOT,
    PARTS,
    WORTH_SAYING,
    BoxEvidence,
    roles_of_boxes,
)
from hoicli.evaluation.pairing import first_largest
from hoicli.io.messages import note
from hoicli.records import caveats
from hoicli.records.boxes import MOST_INVERTED, find_inverted
from hoicli.records.columns import Images
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats, Ints, median
from hoicli.records.scenes import Scenes
from hoicli.vocabulary.labels import Vocabulary

SAMPLE = 100
"""Ours: images whose boxes are looked at, the first by name: the choice does not depend on their order, nor on how they
are split among processes. In their 200 boxes, shares of 1/10 or 2/3 are not chance."""


@dataclass
class Inverted:
    """Counts the inverted boxes of a stream, which end before they begin (x2 < x1 or y2 < y1) and so overlap nothing.
    The other numbers of the stream may look right, so nothing else would show them.

    boxes: how many boxes there are; count: how many of them are inverted; first: the first inverted box, as the id of
    its image, its index in that image, and its four numbers."""

    boxes: int = 0
    count: int = 0
    first: tuple[str, int, list[float]] | None = None

    def add(self, images: Images) -> Inverted:
        """Count the boxes of some images and the inverted ones, and keep the first of these; return this counter."""
        rows = np.flatnonzero(find_inverted(images.boxes))
        self.boxes += len(images.boxes)
        self.count += len(rows)
        if len(rows) and self.first is None:
            image = int(np.searchsorted(images.box_start, rows[0], side="right")) - 1
            index_in_image = int(rows[0] - images.box_start[image])
            self.first = images.image_ids[image], index_in_image, images.boxes[rows[0]].tolist()
        return self

    def merge(self, other: Inverted) -> None:
        """Add the counts of other images of the stream."""
        self.boxes += other.boxes
        self.count += other.count
        self.first = self.first or other.first

    def report(self, name: str, *, shard: bool = False, cause: str = "") -> None:
        """Print a note about the inverted boxes, if there are any. Raises `DataError` if their share is above
        MOST_INVERTED, unless this is a `shard` (some images only), where a single box may be a large share. cause: why,
        for the message."""
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
    """Collects, batch by batch, what tells whether predicted boxes fit the annotated ones.

    inverted: counts boxes that end before they begin. largest: the largest absolute number in a predicted box. best:
    for each batch three columns about its images with predictions: the image's row in the ground truth, and the subject
    box and the object box of its best-scored prediction, NaN for no object."""

    inverted: Inverted = field(default_factory=Inverted)
    largest: float = 0.0
    best: list[tuple[Ints, Floats, Floats]] = field(default_factory=list)

    def add(self, images: Images, image: Ints) -> Fit:
        """Add the predictions of some images, rows `image` [N] of the ground truth; return this collection."""
        self.inverted.add(images)
        self.largest = max(self.largest, float(np.abs(images.boxes).max(initial=0.0)))
        scores = np.where(np.isnan(images.score), -np.inf, images.score)
        best = first_largest(images.image_of_hoi, scores)  # the best-scored prediction of each image that has some
        if len(best):
            has_none = images.object[best] < 0
            object_ = np.where(has_none[:, np.newaxis], np.nan, images.boxes[images.object[best]])
            self.best.append((image[images.image_of_hoi[best]], images.boxes[images.subject[best]], object_))
        return self

    def merge(self, other: Fit) -> None:
        """Add what was collected from other images."""
        self.inverted.merge(other.inverted)
        self.largest = max(self.largest, other.largest)
        self.best += other.best

    def misfit_text(self, truth: Images) -> str:
        """Return in words what is wrong with the predicted boxes if they do not fit the annotated ones, else "". Boxes
        that cannot be pixels are looked for in all images, others in a SAMPLE of images that have annotated boxes."""
        if not self.best:
            return ""
        image, subject, object_ = map(np.concatenate, zip(*self.best, strict=True))
        count = np.diff(truth.box_start)[image]
        no_size = np.full((len(image), 2), np.nan)  # the sizes of the images are not known here
        all_images = BoxEvidence(
            subject,
            object_,
            truth.boxes,
            roles_of_boxes(truth),
            start=truth.box_start[image],
            count=count,
            size=no_size,
        )
        if (misfit := all_images.find_impossible()) is not None:
            return misfit.text
        # The images with the first ids are the sample, so that the order of the input is no matter.
        ids_and_rows = ((truth.image_ids[image[row]], row) for row in np.flatnonzero(count).tolist())
        rows = np.array([row for _, row in nsmallest(SAMPLE, ids_and_rows)], dtype=np.int64)
        sample = replace(
            all_images,
            subject=subject[rows],
            object=object_[rows],
            start=all_images.start[rows],
            count=count[rows],
            size=no_size[rows],
        )
        misfit = sample.find_misplaced() or sample.find_exchanged()
        return "" if misfit is None else misfit.text

    def check(self, truth: Images, name: str, *, shard: bool = False) -> None:
        """Print a note about inverted boxes, if there are any. Raises `DataError` if they are many, and if all
        predicted boxes are fractions of the image's sides while the annotated ones are pixels. A `shard` (some images
        only) is too small to tell, so it raises nothing."""
        if self.inverted.count:
            self.inverted.report(name, shard=shard, cause=self.misfit_text(truth))
        if 0 < self.largest <= OVERSHOOT and not shard:
            problem = self.misfit_text(truth)
            if problem and median(truth.boxes[:, 2:].max(axis=1)) > IN_PIXELS:
                raise _relative_box_error(problem, name)

    def doubt(self, truth: Images, vocabulary: Vocabulary) -> str:
        """Return a question for the user if the predicted boxes seem not to fit the annotated ones; "" if they do."""
        problem = self.misfit_text(truth)
        return f"do the boxes fit? {problem}; {tells_more(vocabulary)}" if problem else ""


def check_annotated(truth: Images, name: str, policy: ErrorPolicy) -> None:
    """Check the boxes of ground truth: print notes about inverted boxes and boxes that may be fractions of the image's
    sides, and about ground truth without a triplet.

    Raises `DataError` if many boxes are inverted; if all are fractions (the whole pixel that some protocols add to
    corners would make everything overlap); and if there is no triplet, but the `policy` dropped lines that may have
    held some."""
    has_labels = isinstance(truth, Scenes) and truth.every_caveat & caveats.mask([caveats.WHOLE_IMAGE])
    if not len(truth.subject) and not has_labels:
        policy.report(some_left=False)
        note(f"{name}: the ground truth holds no triplet: none can be found, and a mean of triplets shows nothing")
    Inverted().add(truth).report(name)
    starts = truth.box_start[:-1][np.diff(truth.box_start) > 0]
    if len(starts) < ENOUGH_IMAGES:
        return
    largest = np.maximum.reduceat(np.abs(truth.boxes).max(axis=1), starts)  # by image: the largest number in its boxes
    in_fractions = int(np.count_nonzero((largest > 0) & (largest <= OVERSHOOT)))
    if largest.max() <= OVERSHOOT:
        raise _relative_box_error(PARTS.removeprefix(", and "), name)  # PARTS is written as the end of a sentence
    if in_fractions >= max(WORTH_SAYING * len(largest), ENOUGH_IMAGES) and median(largest) > IN_PIXELS:
        note(f"{name}: the boxes of {in_fractions:,} of {len(largest):,} annotated images {IN_PARTS}")


def _relative_box_error(problem: str, name: str) -> DataError:
    """Return the error that boxes are fractions of the image's sides. problem: how that shows; name: of the stream."""
    fix = "multiply x by the image's width and y by its height (hoicli validate)"
    return DataError(f"{problem}; {fix}", place=name, field="boxes", code="relative-box")


def tells_more(vocabulary: Vocabulary) -> str:
    """Return the end of a question: the `hoicli validate` command that tells the user more about it."""
    return f"hoicli validate{vocabulary.option} --gt GT PREDS tells more"
