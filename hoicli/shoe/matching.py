"""SHOE's matching: which prediction each ground-truth triplet takes (supplement of the SHOE paper, Algorithms 1 and 2).

A predicted triplet is worth the similarity of its verb and object to the ground truth it is matched with, from 0 to 1.
Where the supplement leaves a choice, or its parts disagree:

- A box pair matches at IoU >= 0.5 on both boxes, as both algorithms write it (section 6.4 says > 0.5). x2, y2 are far
  edges (`boxes.iou`, inclusive=False): the supplement names no convention, and the detector it uses has this one.
- Ground truth is served in the order of its record and takes the most similar unmatched prediction, of equals the
  highest score, then the first of its record. Similarity 0 is taken too, as line 14 of both algorithms has no floor.
- An unmatched prediction counts against the most similar class of its image, of equals the first annotated, at
  similarity >= delta, as both algorithms write it; in an image without ground truth it counts against no class. Figure
  6 shows otherwise: where only `pet giraffe` is annotated, `feed giraffe` goes to the class `feed giraffe` at 1.000, so
  that there the class is sought among all of the dataset. `against="dataset"` does that; of equals it takes the class
  that is spelled alike, then the first by name.

Similarities are whole numbers of UNIT, a billionth: sums are exact in any order, and 0.1 + 0.7 ties with 0.3 + 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hoicli.arrays.boxes import iou
from hoicli.arrays.images import NO_BOX
from hoicli.arrays.kit import expanded, run_starts
from hoicli.arrays.triplets import NOTHING, Triplets
from hoicli.errors import UsageError
from hoicli.shoe.labels import Likeness, TruthClasses, predicted_classes
from hoicli.shoe.names import AGAINST, AREAS, COMBINE

if TYPE_CHECKING:
    from hoicli.arrays.kit import Bools, Floats, Ints

IOU_THRESHOLD = 0.5
UNIT = 1_000_000_000
IMAGES_AT_ONCE = 256
"""Images whose boxes are compared together: their overlaps stay in cache."""


@dataclass(frozen=True)
class ShoeSettings:
    """delta: the similarity from which an unmatched prediction counts against a class (not published; 0.5 is ours).
    verb_weight: of the verb in the combined similarity, the object having the rest. Raises `UsageError` for a setting
    that cannot be, by the name of its option."""

    delta: float = 0.5
    verb_weight: float = 0.5
    combine: str = "mean"
    area: str = "envelope"
    against: str = "image"

    def __post_init__(self) -> None:
        for option, value in (("--delta", self.delta), ("--verb-weight", self.verb_weight)):
            if not 0 <= value <= 1:
                raise UsageError(f"{option} {value:g}: give a number from 0 to 1")
        for option, name, known in (
            ("--combine", self.combine, COMBINE),
            ("--ap", self.area, AREAS),
            ("--against", self.against, AGAINST),
        ):
            if name not in known:
                raise UsageError(f"{option} {name}: choose from {', '.join(known)}")
        if self.combine == "min" and self.verb_weight != 0.5:
            raise UsageError("--verb-weight: the minimum of two similarities has no weights; leave it out")

    def signature(self) -> dict[str, str]:
        """All of them, as none is canonical."""
        weight = {} if self.combine == "min" else {"verb": f"{self.verb_weight:g}"}
        chosen = {"delta": f"{self.delta:g}", "against": self.against, "combine": self.combine}
        return {**chosen, **weight, "ap": self.area}


class Meetings(NamedTuple):
    """The K pairs of a ground-truth and a predicted triplet that overlap enough on both boxes, in ascending order of
    (truth, prediction). iou_object is NaN where neither has an object."""

    truth: Ints
    prediction: Ints
    iou_subject: Floats
    iou_object: Floats

    def at(self, rows: Ints | Bools) -> Meetings:
        """Some of them."""
        return Meetings(self.truth[rows], self.prediction[rows], self.iou_subject[rows], self.iou_object[rows])


@dataclass(frozen=True)
class Matching:
    """The outcome of Algorithm 1, lines 5 to 31. prediction_of [G] the prediction that each ground truth took, truth_of
    [P] the other way round, -1 for none; kept [P] the predictions that took part."""

    prediction_of: Ints
    truth_of: Ints
    kept: Bools


class Shoe:
    """Ground truth and predictions of the same images, and what both algorithms need of them, computed once."""

    def __init__(
        self,
        truth: Triplets,
        predictions: Triplets,
        classes: TruthClasses,
        verbs: Likeness,
        objects: Likeness,
        settings: ShoeSettings,
    ) -> None:
        """Every image of the predictions is in the truth; `classes` are the truth's, the likenesses of their names."""
        self.truth, self.predictions, self.classes, self.settings = truth, predictions, classes, settings
        self.verbs, self.objects = verbs, objects
        self._truth_alone = np.array([name == NOTHING for name in classes.objects], dtype=bool)
        self._alone = np.array([name == NOTHING for name in predictions.objects], dtype=bool)
        position = {image_id: number for number, image_id in enumerate(truth.image_ids)}
        self.image = np.array([position[image_id] for image_id in predictions.image_ids], dtype=np.int64)
        self.nearest = np.full(len(predictions.verb), -1, dtype=np.int64)
        self.nearest_similarity = np.full(len(predictions.verb), -1, dtype=np.int64)
        if settings.against == "dataset":
            self._seek_in_dataset()
        nothing = np.zeros(0, dtype=np.int64)
        meetings = [Meetings(nothing, nothing, np.zeros(0), np.zeros(0))]
        for start in range(0, len(self.image), IMAGES_AT_ONCE):
            end = min(start + IMAGES_AT_ONCE, len(self.image))
            image, prediction, row = self._pairs(start, end)
            if settings.against == "image":
                self._seek(prediction, row)
            meetings.append(self._meet(start, end, image, prediction, row))
        every = Meetings(*map(np.concatenate, zip(*meetings, strict=True)))
        self.meetings = every.at(np.lexsort((every.prediction, every.truth)))
        self.similarity = self.similarities(self.meetings.truth, self.meetings.prediction)

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
        # Two actions without an object have nothing but their verbs to compare.
        combined = np.where(np.isnan(object_), verb, combined)
        return np.rint(combined * UNIT).astype(np.int64)

    def parts(self, truth: Ints, prediction: Ints) -> tuple[Floats, Floats]:
        """[M] similarity of the verbs, and of the objects, which is NaN where neither triplet has one."""
        label, row = self.predictions.label[prediction], self.classes.object_row[truth]
        verb = self.verbs.of(self.classes.verb_row[truth], self.predictions.verb[prediction])
        alone = self._truth_alone[row] & self._alone[label]
        return verb, np.where(alone, np.nan, self.objects.of(row, label))

    def match(self, kept: Bools | None = None) -> Matching:
        """Lines 9 to 22 of both algorithms, over the `kept` predictions [P] (None: all)."""
        kept = np.ones(len(self.predictions.verb), dtype=bool) if kept is None else kept
        meet, similarity = self.meetings, self.similarity
        if not kept.all():
            rows = kept[meet.prediction]
            similarity = similarity[rows]
            meet = meet.at(rows)
        turn = np.arange(len(self.truth.verb)) - self.truth.hoi_start[self.truth.image_of_hoi]
        score = np.nan_to_num(self.predictions.score, nan=-np.inf)
        order = np.lexsort((meet.prediction, -score[meet.prediction], -similarity, meet.truth, turn[meet.truth]))
        wanting, wanted = meet.truth[order], meet.prediction[order]
        prediction_of = np.full(len(turn), -1, dtype=np.int64)
        truth_of = np.full(len(score), -1, dtype=np.int64)
        bounds = np.searchsorted(turn[wanting], np.arange(turn.max(initial=-1) + 2))
        # The first triplets of all images choose at once, then the second: an image has one of each, so none compete.
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            free = begin + np.flatnonzero(truth_of[wanted[begin:end]] < 0)
            first = free[run_starts(wanting[free])]
            prediction_of[wanting[first]] = wanted[first]
            truth_of[wanted[first]] = wanting[first]
        return Matching(prediction_of, truth_of, kept)

    def kept(self, *, min_score: float | None = None, min_rank: float | None = None) -> Bools:
        """[P] the predictions of at least that score and rank: the rank is the share of all predictions that do not
        score higher, so 0.5 keeps the better half and their ties.

        That rank is a reading. The supplement has a "confidence score rank s >= tau" in line 2 of Algorithm 2, before
        the loop over images, and does not say of what; its Table 2 cannot be this one. Detectors miss 19 to 21 % of the
        ground truth there and 36 to 39 % of their predictions: of the subset's 6,616 triplets some 5,300 are matched,
        by some 8,400 predictions, two an image, where half of a detector's hundred an image are fifty.
        """
        score = self.predictions.score
        keep = np.ones(len(score), dtype=bool)
        if min_score is not None:
            keep &= score >= min_score
        if min_rank is not None and len(score):
            keep &= np.searchsorted(np.sort(score), score, side="right") / len(score) >= min_rank
        return keep

    @property
    def counts_against(self) -> Bools:
        """[P] whether the most similar ground truth is near enough (delta) for a false positive of its class."""
        return self.nearest_similarity >= round(self.settings.delta * UNIT)

    def class_of(self, truth: Ints) -> Ints:
        """[M] the class of ground-truth rows, -1 of row -1."""
        return np.append(self.classes.class_of, -1)[truth]

    def _pairs(self, start: int, end: int) -> tuple[Ints, Ints, Ints]:
        """(image, prediction, ground truth) of every two triplets of an image, for the predictions of images start to
        end: by prediction, then ground truth; `image` is the truth's."""
        found = self.predictions
        image = np.repeat(self.image[start:end], np.diff(found.hoi_start[start : end + 1]))
        run, row = expanded(self.truth.hoi_start[image], np.diff(self.truth.hoi_start)[image])
        return image[run], run + found.hoi_start[start], row

    def _seek(self, prediction: Ints, row: Ints) -> None:
        """Note for each of the predictions (runs) which of the ground-truth rows beside it is the most similar, the
        first of equals, and how similar."""
        runs = run_starts(prediction)
        if len(runs) == 0:
            return
        similarity = self.similarities(row, prediction)
        top = np.maximum.reduceat(similarity, runs)
        reached = similarity == np.repeat(top, np.diff(np.r_[runs, len(row)]))
        place = np.where(reached, np.arange(len(row)), len(row))
        self.nearest[prediction[runs]] = row[np.minimum.reduceat(place, runs)]
        self.nearest_similarity[prediction[runs]] = top

    def _seek_in_dataset(self) -> None:
        """The same among all ground truth, a triplet standing for all that are called the same; of equally similar
        classes the one that is spelled as the prediction, then the first by name."""
        classes, found = self.classes, self.predictions
        width = len(classes.objects) * len(classes.verbs)
        key = classes.class_of * width + classes.verb_row * len(classes.objects) + classes.object_row
        _, rows = np.unique(key, return_index=True)
        names = found.verb * len(found.objects) + found.label
        _, speakers, speaker_of = np.unique(names, return_index=True, return_inverse=True)
        for start in range(0, len(speakers), IMAGES_AT_ONCE):
            part = speakers[start : start + IMAGES_AT_ONCE]
            self._seek(np.repeat(part, len(rows)), np.tile(rows, len(part)))
        own = predicted_classes(found, classes.classes)[speakers]
        alike = np.flatnonzero(own >= 0)
        of_own = rows[np.searchsorted(classes.class_of[rows], own[alike])]
        best = self.similarities(of_own, speakers[alike]) == self.nearest_similarity[speakers[alike]]
        self.nearest[speakers[alike[best]]] = of_own[best]
        self.nearest = self.nearest[speakers][speaker_of]
        self.nearest_similarity = self.nearest_similarity[speakers][speaker_of]

    def _meet(self, start: int, end: int, image: Ints, prediction: Ints, row: Ints) -> Meetings:
        """Those of the pairs that `_pairs` gives which overlap enough."""
        truth, found = self.truth, self.predictions
        box, truth_box, pair_start = self._box_pairs(start, end)
        overlap = iou(
            np.ascontiguousarray(found.boxes[box].T), np.ascontiguousarray(truth.boxes[truth_box].T), inclusive=False
        )

        def overlaps(own: Ints, other: Ints, image: Ints) -> Floats:
            """IoU of each (predicted box, ground-truth box of the image)."""
            value: Floats = overlap[pair_start[own - found.box_start[start]] + other - truth.box_start[image]]
            return value

        iou_subject = overlaps(found.subject[prediction], truth.subject[row], image)
        near = np.flatnonzero(iou_subject >= IOU_THRESHOLD)
        row, prediction, iou_subject, image = row[near], prediction[near], iou_subject[near], image[near]
        own, other = found.object[prediction], truth.object[row]
        neither, both = (own == NO_BOX) & (other == NO_BOX), (own != NO_BOX) & (other != NO_BOX)
        iou_object = np.where(neither, np.nan, 0.0)
        iou_object[both] = overlaps(own[both], other[both], image[both])
        enough = neither | (iou_object >= IOU_THRESHOLD)
        return Meetings(row, prediction, iou_subject, iou_object).at(enough)

    def _box_pairs(self, start: int, end: int) -> tuple[Ints, Ints, Ints]:
        """(predicted box, ground-truth box) of every two boxes of an image, and where those of each predicted box
        start; predicted boxes count from the first of image `start`."""
        truth, found = self.truth, self.predictions
        image = np.repeat(self.image[start:end], np.diff(found.box_start[start : end + 1]))
        count = np.diff(truth.box_start)[image]
        box, truth_box = expanded(truth.box_start[image], count)
        return box + found.box_start[start], truth_box, np.cumsum(count) - count
