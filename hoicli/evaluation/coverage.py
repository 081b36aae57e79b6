"""How well predictions and ground truth fit together: notes about gaps, and errors for what cannot be evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

import numpy as np

from hoicli.errors import DataError, Place, arg
from hoicli.evaluation.box_conventions import ENOUGH_IMAGES, OVERSHOOT, BoxEvidence
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import first_largest
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import distinct
from hoicli.evaluation.slices import FILE
from hoicli.evaluation.tally import Tally
from hoicli.io.messages import note
from hoicli.records import caveats
from hoicli.records.boxes import MOST_INVERTED, inverted
from hoicli.records.images import Images
from hoicli.records.kit import Floats, Ints
from hoicli.records.scenes import other_subjects
from hoicli.vocabulary.labels import Vocabulary

OF_NO_CLASS = (
    "no {0} interaction (verb and object) and count for nothing: labels of another dataset, or another numbering? "
    "hoicli validate finds out"
)

SAMPLE = 100
"""Ours: images whose boxes are looked at, the first by name: the choice does not depend on their order, nor on how they
are split among processes. In their 200 boxes, shares of 1/10 or 2/3 are not chance."""

IN_PIXELS = 20
"""Ours: annotated boxes are pixels, and none of them next to the corner, if half of them reach further than this."""


def allow() -> str:
    """What to do where most has no class, as the end of a message."""
    return f"; {arg('allow_uncounted')} computes with the others only"


def check_counted(tally: Tally, vocabulary: Vocabulary, place: str, *, allowed: bool) -> None:
    """Note in the tally whether most predictions have no class. Raises `DataError` at `place` if that is so and not
    `allowed`."""
    problem = without_class(tally, vocabulary)
    if problem and not allowed:
        raise DataError(problem + allow(), place=place, code="another-dataset")
    tally.uncounted |= bool(problem)


def without_class(tally: Tally, vocabulary: Vocabulary) -> str:
    """What is wrong if most predictions have no class in the vocabulary; else "". Most is more than half of all
    predictions, and of the best predictions of the images: a dump that scores every verb for every pair has many
    predictions without a class, but not at the top. Of too few images nothing is concluded."""
    classless, total = tally.listed.classless(), len(tally.listed)
    if 2 * classless <= total:
        return ""
    best, images = tally.listed.classless_best()
    if not 2 * best > images >= ENOUGH_IMAGES:
        return ""
    counted = f"{classless:,} of {total:,} predictions, the best of {best:,} of {images:,} images among them"
    return f"{counted}, are {OF_NO_CLASS.format(vocabulary.name)}"


def served(truth: GroundTruth, protocols: Sequence[Protocol], named: Container[str] | None = None) -> list[Protocol]:
    """The protocols that can be computed with this ground truth; a note names the others. Raises `DataError` if a
    protocol in `named` (None: every one) cannot be computed, or none is left.
    """
    refused = [row for row in protocols if not truth.serves(row)]
    if refused:
        lacks = caveats.CAVEATS[caveats.names(refused[0].refuses & truth.caveats)[0]].lacks
        _leave_out(refused, protocols, named, lacks, truth.name)
    return [row for row in protocols if row not in refused]


def unserved(views: Mapping[Protocol, Tally], named: Container[str], place: str) -> list[Protocol]:
    """The views that find objects by their labels, where no object of the predictions has one; a note names them.
    Raises `DataError` at `place` if one of them is of a protocol in `named`, or no other is left."""
    lacking = [row for row, tally in views.items() if tally.without_labels and not row.person_first]
    if lacking:
        problem = "no object of the predictions has a label, as in official V-COCO lists; it needs a dump with labels"
        _leave_out(lacking, views, named, problem, place)
    return lacking


def _leave_out(
    rows: Sequence[Protocol], of: Collection[Protocol], named: Container[str] | None, problem: str, place: str
) -> None:
    """A note that some rows cannot be served; `DataError` if they are all, or one of them is `named`."""
    names = ", ".join(row.name for row in distinct(rows))
    if len(rows) == len(of) or named is None or any(row.name in named for row in rows):
        raise DataError(f"cannot serve {names}: {problem}", place=place, code="cannot-serve")
    note(f"left out: {names}: {problem}")


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
class Coverage:
    """How well two streams fit together, collected while matching; `report` prints what a user should know."""

    numbers: Counter[str] = field(default_factory=Counter)
    inverted: Inverted = field(default_factory=Inverted)
    largest: float = 0.0
    """The largest number in a predicted box, whatever its sign."""
    best: list[tuple[Ints, Floats, Floats]] = field(default_factory=list)
    """Of images with predictions: their places in the ground truth, and the two boxes of their best prediction, the
    first of equal scores, NaN for no object."""

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        found = batch.predictions
        self.numbers += Counter(
            {
                "images": len(found.image_ids),
                "triplets": len(found.score),
                "no class": int((found.interaction < 0).sum()),
                "no label": found.unlabelled_objects,
                "other subjects": other_subjects(found, batch.truth.vocabulary),
            }
        )
        self.inverted.add(found)
        self.largest = max(self.largest, float(np.abs(found.boxes).max(initial=0.0)))
        if len(best := first_largest(found.image_of_hoi, found.score)):
            object_ = np.where((found.object[best] < 0)[:, np.newaxis], np.nan, found.boxes[found.object[best]])
            self.best.append((batch.image_of_hoi[best], found.boxes[found.subject[best]], object_))

    def merge(self, other: Coverage) -> None:
        """Add another part's counts."""
        self.numbers += other.numbers
        self.inverted.merge(other.inverted)
        self.largest = max(self.largest, other.largest)
        self.best += other.best

    def _off(self, truth: GroundTruth, views: Sequence[Protocol]) -> str:
        """What is wrong if the boxes do not fit the annotated ones; "" if they do, or no view looks at them."""
        if not self.best or all(row.whole_image for row in views):
            return ""
        scenes = truth.scenes
        image, subject, object_ = map(np.concatenate, zip(*self.best, strict=True))
        count = np.diff(scenes.box_start)[image]
        by_id = nsmallest(SAMPLE, ((scenes.image_ids[image[row]], row) for row in np.flatnonzero(count).tolist()))
        rows = np.array([row for _, row in by_id], dtype=np.int64)
        start, no_size = scenes.box_start[image[rows]], np.full((len(rows), 2), np.nan)
        off = BoxEvidence(subject[rows], object_[rows], scenes.boxes, start, count[rows], no_size).finding()
        return "" if off is None else off[0]

    def doubt(self, truth: GroundTruth, views: Sequence[Protocol]) -> str:
        """The question whether subjects and boxes fit; "" if there is none."""
        off = self._off(truth, views)
        tells = f"hoicli validate{truth.vocabulary.option} --gt GT PREDS tells more"
        if 0 < self.numbers["triplets"] == self.numbers["other subjects"]:
            who = " or ".join(truth.vocabulary.subjects)
            return f"are labels numbered otherwise, or subject and object swapped? no subject is {who}; {tells}"
        return f"do the boxes fit? {off}; {tells}" if off else ""

    def refuse_relative(self, truth: GroundTruth, views: Sequence[Protocol], name: str) -> None:
        """Raises `DataError` at `name` if all boxes are parts of the image's sides, and the annotated ones pixels."""
        off = self._off(truth, views) if 0 < self.largest <= OVERSHOOT else ""
        if off and np.median(truth.scenes.boxes[:, 2:].max(axis=1)) > IN_PIXELS:
            fix = "multiply x by the image's width and y by its height (hoicli validate)"
            raise DataError(f"{off}; {fix}", place=name, field="boxes", code="relative-box")

    def report(
        self, truth: GroundTruth, views: Sequence[Protocol], name: str, *, shard: bool = False, model: str | None = None
    ) -> None:
        """Print notes on stderr: images without predictions (unless this is a `shard`), triplets without a class,
        objects without a label, boxes that do not fit, classes without ground truth, derived image-level labels, images
        in no slice of a file.
        name: the predictions', in errors. `model`: the model's name, if there are several. Raises `DataError` for too
        many inverted boxes, and (but for a `shard`) for relative ones.
        """

        def tell(message: str) -> None:
            note(message if model is None else f"{model}: {message}")

        vocabulary, numbers = truth.vocabulary, self.numbers
        if self.inverted.count:
            self.inverted.report(name, shard=shard, cause=self._off(truth, views))
        if not shard:
            self.refuse_relative(truth, views, name)
        protocols, total = distinct(views), len(truth.scenes.image_ids)
        for slice_ in dict.fromkeys(row.part.slice for row in views if row.part is not None):
            if slice_.measure == FILE and (left := int((~truth.slice_members(slice_).any(axis=0)).sum())):
                tell(f"{left:,} of {total:,} ground-truth images are in no slice of {slice_.name}")
        if numbers["images"] < total and not shard:
            fate = "their triplets are missed"
            tell(f"{total - numbers['images']:,} of {total:,} ground-truth images have no predictions: {fate}")
        of_all = f"of {numbers['triplets']:,} predictions"
        if numbers["images"] and not numbers["triplets"]:
            tell("the predictions hold no triplet: nothing can be found")
        people = [row.name for row in protocols if row.person_subject]
        if others := numbers["other subjects"]:
            fate = f": not counted by {', '.join(people)}" if people else ""
            tell(f"{others:,} {of_all} have a subject that is no {' or '.join(vocabulary.subjects)}{fate}")
        if numbers["no class"]:
            what = f"no {vocabulary.name} interaction (verb and object): ignored"
            tell(f"{numbers['no class']:,} {of_all} are {what}")
        by_label = [row.name for row in protocols if not row.person_first]
        if (unlabelled := numbers["no label"]) and by_label:
            problem = "have an object box without a label, as official V-COCO lists do, and match no object there"
            tell(f"{', '.join(by_label)}: {unlabelled:,} {of_all} {problem}; it needs a dump with labels")
        if question := self.doubt(truth, views):
            tell(question)
        if absent := _classes_without_truth(truth, protocols):
            shown = ", ".join(absent[:6]) + (f" and {len(absent) - 6} more" if len(absent) > 6 else "")
            tell(f"no ground truth of {shown}: left out of the means")
        derived = truth.scenes.derived and any(protocol.known_object for protocol in protocols)
        if derived and (model is None or not truth.told_of_labels):
            truth.told_of_labels = True  # once for all models
            fix = "convert anno_bbox.mat with anno.mat for the official labels"
            fix = "image_hois in the records would name them" if vocabulary.own else fix
            note(
                f"Known Object: no image-level labels for {truth.scenes.derived:,} images, derived from their triplets "
                f"(invisible instances are missing; {fix})"
            )
        if people and (others := truth.other_subjects):
            tell(
                f"{', '.join(people)}: {others:,} ground-truth triplets have a subject that is no person, and are "
                "never found there (the released code finds them)"
            )


def _classes_without_truth(truth: GroundTruth, protocols: Sequence[Protocol]) -> list[str]:
    """The actions with roles that a protocol scores and the ground truth does not have: walk, hold_obj (V-COCO)."""
    missing = np.zeros(len(truth.vocabulary.interactions), dtype=bool)
    for protocol in protocols:
        if protocol.roles:
            missing |= truth.scored(protocol) & (truth.class_counts(protocol) == 0)
    classes = [truth.vocabulary.interactions[number] for number in np.flatnonzero(missing)]
    return ["_".join(filter(None, pair)) for pair in classes]
