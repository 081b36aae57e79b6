"""SHOE's matching: which prediction each ground-truth triplet takes (SHOE supplement, Algorithms 1 and 2).

A predicted triplet is worth the similarity of its verb and object to the ground truth it is matched with, from 0 to 1.
Where the supplement leaves a choice, or its parts disagree:

- A box pair matches at IoU >= 0.5 on both boxes, as both algorithms write it (section 6.4 says > 0.5). x2, y2 are far
  edges (`boxes.iou`, inclusive=False): the supplement names no convention, and the detector it uses has this one.
- Ground truth takes, in the order of its record, the most similar unmatched prediction, of equals the
  highest score (`ties` in signatures), then the first of its record. Similarity 0 is taken too, as line 14 of both
  algorithms has no floor; section 2 speaks of an "IoU and similarity threshold", which `min_similarity` sets.
- A predicted object without a label (V-COCO's) is compared by its verb alone.
- An unmatched prediction counts against the most similar class of its image, of equals the first annotated, at
  similarity >= delta, as both algorithms write it; in an image without ground truth it counts against no class. Figure
  6 shows otherwise: where only `pet giraffe` is annotated, `feed giraffe` goes to the class `feed giraffe` at 1.000, so
  it searches all classes of the dataset. `against="dataset"` does that; of equals it takes the class with the same
  spelling, then the first by name.

Similarities are whole numbers of UNIT, a billionth: sums are exact in any order, and 0.1 + 0.7 ties with 0.3 + 0.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hoicli.errors import DataError, UsageError, arg
from hoicli.evaluation.pairing import PAIRS_AT_ONCE, blocks_of, check_pairs
from hoicli.io.workers import shared_out
from hoicli.records.boxes import iou
from hoicli.records.images import NO_BOX
from hoicli.records.kit import Bools, Floats, Ints, expanded, rank_by_id, run_starts, starts_of
from hoicli.records.triplets import NOTHING, UNLABELLED, Triplets
from hoicli.shoe.assignment import greedy, optimal
from hoicli.shoe.labels import Learned, Likeness, TruthClasses, predicted_classes
from hoicli.shoe.names import AGAINST, AREAS, ASSIGNMENTS, COMBINE

IOU_THRESHOLD = 0.5
UNIT = 1_000_000_000
IMAGES_AT_ONCE = 256
"""Images whose boxes are compared together: their overlaps stay in cache."""
MOST_MEETINGS = 1 << 22
"""Pairs of triplets that may overlap in one image: a hundred thousand predictions on forty annotations, all in one
place."""
FEWEST_BLOCKS = 8
"""So many that are worth several processes."""


@dataclass(frozen=True)
class ShoeSettings:
    """delta: the similarity from which an unmatched prediction counts against a class (not published; 0.5 is ours).
    verb_weight: weight of the verb in the combined similarity; the object has the rest. min_similarity: a match's least
    similarity, 0 for any. The others are names out of shoe/names.py. Raises `UsageError` that names the option of an
    impossible value."""

    delta: float = 0.5
    verb_weight: float = 0.5
    combine: str = "mean"
    area: str = "envelope"
    against: str = "image"
    assignment: str = "greedy"
    min_similarity: float = 0.0

    def __post_init__(self) -> None:
        shares = {"delta": self.delta, "verb_weight": self.verb_weight, "min_similarity": self.min_similarity}
        for share, value in shares.items():
            if not 0 <= value <= 1:
                raise UsageError(f"{arg(share, value)}: give a number from 0 to 1")
        for option, name, known in (
            ("combine", self.combine, COMBINE),
            ("ap", self.area, AREAS),
            ("against", self.against, AGAINST),
            ("assignment", self.assignment, ASSIGNMENTS),
        ):
            if name not in known:
                raise UsageError(f"{arg(option, name)}: choose from {', '.join(known)}")
        if self.combine == "min" and self.verb_weight != 0.5:
            raise UsageError(f"{arg('verb_weight')}: the minimum of two similarities has no weights; leave it out")

    def signature(self) -> dict[str, str]:
        """All settings, for signatures, since none has a standard value; but for the two that depart from the
        algorithms."""
        weight = {} if self.combine == "min" else {"verb": f"{self.verb_weight:g}"}
        chosen = {"delta": f"{self.delta:g}", "against": self.against, "combine": self.combine}
        departs = {} if self.assignment == "greedy" else {"assign": self.assignment}
        departs |= {"minsim": f"{self.min_similarity:g}"} if self.min_similarity else {}
        return {**chosen, **weight, "ap": self.area, "ties": "higher-score", **departs}


class Meetings(NamedTuple):
    """The K pairs of a ground-truth and a predicted triplet that overlap enough on both boxes, in ascending order of
    (truth, prediction). iou_object is NaN where neither has an object. similarity: combined, in UNITs."""

    truth: Ints
    prediction: Ints
    iou_subject: Floats
    iou_object: Floats
    similarity: Ints

    def at(self, rows: Ints | Bools) -> Meetings:
        """The meetings of some rows."""
        columns: Any = (column[rows] for column in self)
        return Meetings(*columns)


class _Compared(NamedTuple):
    """What comes of some images: their meetings, by prediction; `nearest` and its similarity, of their predictions;
    and what was learned of names on the way, of verbs and of objects."""

    meetings: Meetings
    nearest: Ints
    nearest_similarity: Ints
    learned: tuple[Learned, Learned]


class _BoxPairs(NamedTuple):
    """iou: of every two boxes of some images, by predicted box. place: of each predicted box, from `box` on, the place
    of its pair with ground-truth box 0, if that were of its image; subject: that of the subject of each predicted
    triplet, from `triplet` on."""

    iou: Floats
    place: Ints
    box: int
    subject: Ints
    triplet: int


@dataclass(frozen=True)
class Matching:
    """The outcome of Algorithm 1, lines 5 to 31. prediction_of [G] the prediction that each ground truth took, truth_of
    [P] the other way round, -1 for none; kept [P] the predictions that took part."""

    prediction_of: Ints
    truth_of: Ints
    kept: Bools


def places_of(triplets: Triplets) -> Ints:
    """[T] the place of each triplet among those of its image."""
    return np.arange(len(triplets.verb)) - triplets.hoi_start[triplets.image_of_hoi]


class Shoe:
    """Ground truth and predictions of the same images, and the columns that both algorithms need. places: of both, the
    place of each triplet in its record."""

    def __init__(
        self,
        truth: Triplets,
        predictions: Triplets,
        classes: TruthClasses,
        verbs: Likeness,
        objects: Likeness,
        settings: ShoeSettings,
    ) -> None:
        """Every image of the predictions must be in the truth; `classes`, `verbs`, `objects`: classes and similarities
        of names."""
        self.truth, self.predictions, self.classes, self.settings = truth, predictions, classes, settings
        self.places = places_of(truth), places_of(predictions)
        self.verbs, self.objects = verbs, objects
        self._truth_alone = np.array([name == NOTHING for name in classes.objects], dtype=bool)
        self._alone = np.array([name == NOTHING for name in predictions.objects], dtype=bool)
        self._unlabelled = np.array([name == UNLABELLED for name in predictions.objects], dtype=bool)
        self._both_alone = bool(self._truth_alone.any() and self._alone.any())
        position = {image_id: number for number, image_id in enumerate(truth.image_ids)}
        self.image = np.array([position[image_id] for image_id in predictions.image_ids], dtype=np.int64)
        self.nearest = np.full(len(predictions.verb), -1, dtype=np.int64)
        self.nearest_similarity = np.full(len(predictions.verb), -1, dtype=np.int64)
        if settings.against == "dataset":
            self._seek_in_dataset()
        blocks = self._blocks()
        parts = shared_out(self._compared, blocks) if len(blocks) >= FEWEST_BLOCKS else [self._compared(blocks)]
        own = 0
        for part in parts:
            end = own + len(part.nearest)
            self.nearest[own:end], self.nearest_similarity[own:end] = part.nearest, part.nearest_similarity
            own = end
            for likeness, learned in zip((verbs, objects), part.learned, strict=True):
                likeness.learn(learned)
        truth_of = np.concatenate([part.meetings.truth for part in parts])
        # The predictions on one ground truth are of one image, and follow one another.
        order = np.sort(truth_of * max(len(truth_of), 1) + np.arange(len(truth_of))) % max(len(truth_of), 1)
        columns: Any = (
            np.concatenate(column)[order] for column in zip(*(part.meetings for part in parts), strict=True)
        )
        self.meetings = Meetings(*columns)

    def similarities(self, truth: Ints, prediction: Ints) -> Ints:
        """[M] of ground-truth and predicted triplets, combined, in UNITs."""
        verb, object_ = self.parts(truth, prediction)
        weight = self.settings.verb_weight
        if self.settings.combine == "mean":
            combined = weight * verb + (1 - weight) * object_
        elif self.settings.combine == "geometric":
            combined = verb**weight * object_ ** (1 - weight)
        else:
            combined = np.minimum(verb, object_)
        if self._both_alone or self.unlabelled:  # there is nothing but the verbs to compare
            combined = np.where(np.isnan(object_), verb, combined)
        return np.rint(combined * UNIT).astype(np.int64)

    def parts(self, truth: Ints, prediction: Ints) -> tuple[Floats, Floats]:
        """[M] similarity of the verbs, and of the objects, which is NaN where neither triplet has one or the predicted
        one has no label."""
        label, row = self.predictions.label[prediction], self.classes.object_row[truth]
        verb = self.verbs.of(self.classes.verb_row[truth], self.predictions.verb[prediction])
        object_ = self.objects.of(row, label)
        if self._both_alone:
            object_[self._truth_alone[row] & self._alone[label]] = np.nan
        if self.unlabelled:
            bare = self._unlabelled[label]
            object_[bare] = np.where(self._truth_alone[row[bare]], 0.0, np.nan)
        return verb, object_

    def allowed_rows(self, kept: Bools) -> Bools:
        """[K] the meetings with the `kept` predictions [P] that are similar enough to be a match (min_similarity)."""
        least = round(self.settings.min_similarity * UNIT)
        allowed: Bools = kept[self.meetings.prediction] & (self.meetings.similarity >= least)
        return allowed

    def match(self, kept: Bools | None = None) -> Matching:
        """Lines 9 to 22 of both algorithms, over the `kept` predictions [P] (None: all)."""
        kept = np.ones(len(self.predictions.verb), dtype=bool) if kept is None else kept
        allowed = self.allowed_rows(kept)
        meet = self.meetings if allowed.all() else self.meetings.at(allowed)
        pairs = meet.truth, meet.prediction, meet.similarity, self.rank
        if self.settings.assignment == "optimal":
            prediction_of = optimal(*pairs, self.truth.image_of_hoi)
        else:
            prediction_of = greedy(*pairs, places_of(self.truth))
        truth_of = np.full(len(kept), -1, dtype=np.int64)
        found = np.flatnonzero(prediction_of >= 0)
        truth_of[prediction_of[found]] = found
        return Matching(prediction_of, truth_of, kept)

    def at_delta(self, delta: float) -> Shoe:
        """The same evaluation at another delta, which changes what counts against a class, and no match."""
        other = copy(self)
        other.settings = replace(self.settings, delta=delta)
        return other

    @cached_property
    def ranking(self) -> Ints:
        """[P] the predictions by score, then image id, then place in the record; without a score they are last."""
        found = self.predictions
        image = np.argsort(rank_by_id(found.image_ids))
        _, rows = expanded(found.hoi_start[image], np.diff(found.hoi_start)[image])
        score = np.nan_to_num(found.score, nan=-np.inf)
        ranking: Ints = rows[np.argsort(-score[rows], kind="stable")]
        return ranking

    @cached_property
    def rank(self) -> Ints:
        """[P] the place of each prediction in the ranking."""
        rank = np.empty(len(self.ranking), dtype=np.int64)
        rank[self.ranking] = np.arange(len(rank))
        return rank

    @property
    def scored(self) -> bool:
        """Whether every prediction has a score."""
        return not np.isnan(self.predictions.score).any()

    @property
    def unlabelled(self) -> bool:
        """Whether some predicted object has no label."""
        return bool(self._unlabelled.any())

    @property
    def counts_against(self) -> Bools:
        """[P] whether the most similar ground truth is near enough (delta) for a false positive of its class."""
        return self.nearest_similarity >= round(self.settings.delta * UNIT)

    def class_of(self, truth: Ints) -> Ints:
        """[M] the class of ground-truth rows, -1 of row -1."""
        return np.append(self.classes.class_of, -1)[truth]

    def _blocks(self) -> list[slice]:
        """The images that are compared together, one after the other. Raises `DataError` for an image of too many
        pairs."""
        most = np.zeros(len(self.image), dtype=np.int64)
        for what, found, annotated in (
            ("triplets", self.predictions.hoi_start, self.truth.hoi_start),
            ("boxes", self.predictions.box_start, self.truth.box_start),
        ):
            pairs = np.diff(found) * np.diff(annotated)[self.image]
            check_pairs(pairs, np.arange(len(pairs)), self.predictions.image_ids, what)
            most = np.maximum(most, pairs)
        return blocks_of(np.maximum(most, PAIRS_AT_ONCE // IMAGES_AT_ONCE))

    def _compared(self, blocks: Sequence[slice]) -> _Compared:
        """What comes of the images of some blocks, one after the other."""
        nothing = np.zeros(0, dtype=np.int64)
        meetings = [Meetings(nothing, nothing, np.zeros(0), np.zeros(0), nothing)]
        for block in blocks:
            boxes, met = self._box_pairs(block), 0
            for prediction, row in self._pairs(block):
                similarity = None
                if self.settings.against == "image":
                    similarity = self.similarities(row, prediction)
                    self._seek(prediction, row, similarity)
                meetings.append(self._meet(boxes, prediction, row, similarity))
                met += len(meetings[-1].truth)
                if met > MOST_MEETINGS:  # so many are of an image that is a block by itself
                    raise DataError(
                        f"image {self.predictions.image_ids[block.start]!r}: more than {MOST_MEETINGS:,} pairs of "
                        "predicted and annotated triplets overlap; does the record hold many images?"
                    )
        own = slice(*self.predictions.hoi_start[[blocks[0].start, blocks[-1].stop]]) if blocks else slice(0)
        return _Compared(
            Meetings(*map(np.concatenate, zip(*meetings, strict=True))),
            self.nearest[own],
            self.nearest_similarity[own],
            (self.verbs.learned, self.objects.learned),
        )

    def _pairs(self, block: slice) -> Iterator[tuple[Ints, Ints]]:
        """(prediction, ground truth) of every two triplets of an image, for the predictions of some images: by
        prediction, then ground truth, and few at a time."""
        starts = self.predictions.hoi_start[block.start : block.stop + 1]
        image = np.repeat(self.image[block], np.diff(starts))
        first, count = self.truth.hoi_start[image], np.diff(self.truth.hoi_start)[image]
        for part in blocks_of(count):
            run, row = expanded(first[part], count[part])
            yield run + starts[0] + part.start, row

    def _seek(self, prediction: Ints, row: Ints, similarity: Ints) -> None:
        """Set `nearest` for each prediction (runs): the most similar of its ground-truth rows, the first of equals, and
        the similarity."""
        runs = run_starts(prediction)
        if len(runs) == 0:
            return
        top = np.maximum.reduceat(similarity, runs)
        reached = np.flatnonzero(similarity == np.repeat(top, np.diff(runs, append=len(row))))
        first = reached[run_starts(prediction[reached])]
        self.nearest[prediction[first]] = row[first]
        self.nearest_similarity[prediction[first]] = top

    def _seek_in_dataset(self) -> None:
        """The same among all ground truth, with one triplet for each name; of equally similar classes the one with the
        prediction's spelling, then the first by name."""
        classes, found = self.classes, self.predictions
        width = len(classes.objects) * len(classes.verbs)
        key = classes.class_of * width + classes.verb_row * len(classes.objects) + classes.object_row
        _, rows = np.unique(key, return_index=True)
        names = found.verb * len(found.objects) + found.label
        _, samples, sample_of = np.unique(names, return_index=True, return_inverse=True)
        for block in blocks_of(np.full(len(samples), len(rows))):
            part = samples[block]
            prediction, row = np.repeat(part, len(rows)), np.tile(rows, len(part))
            self._seek(prediction, row, self.similarities(row, prediction))
        own = predicted_classes(found, classes.classes)[samples]
        alike = np.flatnonzero(own >= 0)
        of_own = rows[np.searchsorted(classes.class_of[rows], own[alike])]
        best = self.similarities(of_own, samples[alike]) == self.nearest_similarity[samples[alike]]
        self.nearest[samples[alike[best]]] = of_own[best]
        self.nearest = self.nearest[samples][sample_of]
        self.nearest_similarity = self.nearest_similarity[samples][sample_of]

    def _meet(self, boxes: _BoxPairs, prediction: Ints, row: Ints, similarity: Ints | None) -> Meetings:
        """The pairs from `_pairs` that overlap enough; similarity: theirs, if it is known."""
        truth, found = self.truth, self.predictions
        iou_subject = boxes.iou[boxes.subject[prediction - boxes.triplet] + truth.subject[row]]
        near = np.flatnonzero(iou_subject >= IOU_THRESHOLD)
        row, prediction, iou_subject = row[near], prediction[near], iou_subject[near]
        object_, other = found.object[prediction], truth.object[row]
        neither, both = (object_ == NO_BOX) & (other == NO_BOX), (object_ != NO_BOX) & (other != NO_BOX)
        iou_object = np.where(neither, np.nan, 0.0)
        iou_object[both] = boxes.iou[boxes.place[object_[both] - boxes.box] + other[both]]
        enough = neither | (iou_object >= IOU_THRESHOLD)
        row, prediction = row[enough], prediction[enough]
        similarity = self.similarities(row, prediction) if similarity is None else similarity[near[enough]]
        return Meetings(row, prediction, iou_subject[enough], iou_object[enough], similarity)

    def _box_pairs(self, block: slice) -> _BoxPairs:
        """The overlaps of every two boxes of some images."""
        truth, found = self.truth, self.predictions
        starts = found.box_start[block.start : block.stop + 1]
        image = np.repeat(self.image[block], np.diff(starts))
        first, count = truth.box_start[image], np.diff(truth.box_start)[image]
        overlap = np.empty(int(count.sum()))
        done = starts_of(count)
        for part in blocks_of(count):
            box, truth_box = expanded(first[part], count[part])
            overlap[done[part.start] : done[part.stop]] = iou(
                np.ascontiguousarray(found.boxes[box + starts[0] + part.start].T),
                np.ascontiguousarray(truth.boxes[truth_box].T),
                inclusive=False,
            )
        place, triplets = done[:-1] - first, slice(*found.hoi_start[[block.start, block.stop]])
        return _BoxPairs(overlap, place, starts[0], place[found.subject[triplets] - starts[0]], triplets.start)
