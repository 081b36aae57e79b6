"""SHOE: soft mAP and soft mF1 of open-vocabulary predictions (supplement of the SHOE paper, Algorithms 1 and 2).

A predicted triplet is worth the similarity of its verb and object to the ground truth it is matched with, from 0 to 1.
Where the supplement leaves a choice, or its parts disagree:

- A box pair matches at IoU >= 0.5 on both boxes, as both algorithms write it (section 6.4 says > 0.5). x2, y2 are far
  edges (`geometry.iou`, inclusive=False): the supplement names no convention, and the detector it uses has this one.
- Ground truth is served in the order of its record and takes the most similar unmatched prediction, of equals the
  highest score, then the first of its record. Similarity 0 is taken too, as line 14 of both algorithms has no floor.
- An unmatched prediction counts against the most similar class of its image, of equals the first annotated, at
  similarity >= delta, as both algorithms write it; in an image without ground truth it counts against no class. Figure
  6 shows otherwise: where only `pet giraffe` is annotated, `feed giraffe` goes to the class `feed giraffe` at 1.000, so
  that there the class is sought among all of the dataset. `against="dataset"` does that; of equals it takes the class
  that is spelled alike, then the first by name.
- Unmatched ground truth is a pair (0, 0) of Algorithm 1. It adds to no recall, so it is left out and counts in the
  number of ground truth alone. That is the same for positive scores, and right for scores below 0 too (log
  probabilities), which a pair at score 0 would outrank.
- The small constant in the denominators only keeps them from 0; here 0 / 0 is 0 instead, so that perfect is 100.
- Algorithm 1's recall is over the number of ground truth, Algorithm 2's over TP + FN, where a match of similarity 0.4
  adds 0.4 to TP and nothing to FN. Both are followed.

Similarities are whole numbers of UNIT, a billionth: sums are exact in any order, and 0.1 + 0.7 ties with 0.3 + 0.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hoicli.arrays.boxes import iou
from hoicli.arrays.images import NO_BOX
from hoicli.arrays.kit import expanded, rank_by_id, run_starts
from hoicli.arrays.triplets import NOTHING, Triplets
from hoicli.errors import UsageError
from hoicli.evaluation.protocols import GRID_ARANGE
from hoicli.shoe.labels import Likeness, TruthClasses, predicted_classes
from hoicli.shoe.names import AGAINST, AREAS, COMBINE

if TYPE_CHECKING:
    from hoicli.arrays.kit import Bools, Floats, Ints

IOU_THRESHOLD = 0.5
UNIT = 1_000_000_000
IMAGES_AT_ONCE = 256
"""Images whose boxes are compared together: their overlaps stay in cache."""


@dataclass(frozen=True)
class Settings:
    """delta: the similarity from which an unmatched prediction counts against a class (not published; 0.5 is ours).
    verb_weight: of the verb in the combined similarity, the object having the rest."""

    delta: float = 0.5
    verb_weight: float = 0.5
    combine: str = "mean"
    area: str = "envelope"
    against: str = "image"

    @classmethod
    def checked(cls, *, delta: float, verb_weight: float, combine: str, area: str, against: str) -> Settings:
        """The settings, or a `UsageError` that names the option at fault."""
        for option, value in (("--delta", delta), ("--verb-weight", verb_weight)):
            if not 0 <= value <= 1:
                raise UsageError(f"{option} {value:g}: give a number from 0 to 1")
        for option, name, known in (
            ("--combine", combine, COMBINE),
            ("--ap", area, AREAS),
            ("--against", against, AGAINST),
        ):
            if name not in known:
                raise UsageError(f"{option} {name}: choose from {', '.join(known)}")
        if combine == "min" and verb_weight != 0.5:
            raise UsageError("--verb-weight: the minimum of two similarities has no weights; leave it out")
        return cls(delta, verb_weight, combine, area, against)

    def signature(self) -> dict[str, str]:
        """All of them, as none is canonical."""
        weight = {} if self.combine == "min" else {"verb": f"{self.verb_weight:g}"}
        chosen = {"delta": f"{self.delta:g}", "against": self.against, "combine": self.combine}
        return {**chosen, **weight, "ap": self.area}


@dataclass(frozen=True)
class Meetings:
    """The K pairs of a ground-truth and a predicted triplet that overlap enough on both boxes, in ascending order of
    (truth, prediction). iou_object is NaN where neither has an object."""

    truth: Ints
    prediction: Ints
    iou_subject: Floats
    iou_object: Floats


@dataclass(frozen=True)
class Matching:
    """The outcome of Algorithm 1, lines 5 to 31. prediction_of [G] the prediction that each ground truth took, truth_of
    [P] the other way round, -1 for none; kept [P] the predictions that took part."""

    prediction_of: Ints
    truth_of: Ints
    kept: Bools


@dataclass(frozen=True)
class ClassScores:
    """Of one (verb, object), fractions. soft_ap and ap are None without scores."""

    verb: str
    object: str
    positives: int
    soft_ap: float | None
    f1: float
    ap: float | None


@dataclass(frozen=True)
class Scores:
    """The means over the classes that have ground truth, fractions, None where there is nothing to average.

    gt_miss_rate of `truths`, prediction_miss_rate of `predictions` (those the mF1 kept).
    """

    classes: list[ClassScores]
    soft_map: float | None
    mf1: float | None
    map: float | None
    gt_miss_rate: float | None
    prediction_miss_rate: float | None
    truths: int
    predictions: int


class Shoe:
    """Ground truth and predictions of the same images, and what both algorithms need of them, computed once."""

    def __init__(
        self,
        truth: Triplets,
        predictions: Triplets,
        classes: TruthClasses,
        verbs: Likeness,
        objects: Likeness,
        settings: Settings,
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
        meetings = []
        for start in range(0, len(self.image), IMAGES_AT_ONCE):
            end = min(start + IMAGES_AT_ONCE, len(self.image))
            image, prediction, row = self._pairs(start, end)
            if settings.against == "image":
                self._seek(prediction, row)
            meetings.append(self._meet(start, end, image, prediction, row))
        self.meetings = _in_order(meetings)
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
            meet = Meetings(meet.truth[rows], meet.prediction[rows], meet.iou_subject[rows], meet.iou_object[rows])
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

    def scores(self, strict: Matching) -> Scores:
        """All numbers: soft mAP and mAP over all predictions, mF1 and the miss rates over those of `strict`."""
        counts = len(self.classes.classes)
        positives = np.bincount(self.classes.class_of, minlength=counts)
        f1 = self._f1(strict, counts)
        soft = plain = None
        if len(self.predictions.score) == 0 or not np.isnan(self.predictions.score).any():
            loose = strict if strict.kept.all() else self.match()
            soft = self._areas(*self._soft_entries(loose), positives)
            plain = self._areas(*self._plain_entries(), positives)
        none = [None] * counts
        columns = (self.classes.classes, positives.tolist(), soft or none, f1, plain or none)
        rows = [ClassScores(verb, name, *rest) for (verb, name), *rest in zip(*columns, strict=True)]
        truths, kept = len(self.truth.verb), int(strict.kept.sum())
        missed = int((strict.prediction_of < 0).sum())
        return Scores(
            classes=rows,
            soft_map=_mean(soft),
            mf1=_mean(f1),
            map=_mean(plain),
            gt_miss_rate=missed / truths if truths else None,
            prediction_miss_rate=(kept - (truths - missed)) / kept if kept else None,
            truths=truths,
            predictions=kept,
        )

    @property
    def counts_against(self) -> Bools:
        """[P] whether the most similar ground truth is near enough (delta) for a false positive of its class."""
        return self.nearest_similarity >= round(self.settings.delta * UNIT)

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
        """Which of the pairs that `_pairs` gives overlap enough."""
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
        return Meetings(row[enough], prediction[enough], iou_subject[enough], iou_object[enough])

    def _box_pairs(self, start: int, end: int) -> tuple[Ints, Ints, Ints]:
        """(predicted box, ground-truth box) of every two boxes of an image, and where those of each predicted box
        start; predicted boxes count from the first of image `start`."""
        truth, found = self.truth, self.predictions
        image = np.repeat(self.image[start:end], np.diff(found.box_start[start : end + 1]))
        count = np.diff(truth.box_start)[image]
        box, truth_box = expanded(truth.box_start[image], count)
        return box + found.box_start[start], truth_box, np.cumsum(count) - count

    def _soft_entries(self, matching: Matching) -> tuple[Ints, Ints]:
        """(class or -1, similarity gained in UNITs), each [P]: Algorithm 1's lists S and L."""
        entry = np.where(self.counts_against, self._class_of(self.nearest), -1)
        gain = np.zeros(len(entry), dtype=np.int64)
        taken = np.flatnonzero(matching.truth_of >= 0)
        entry[taken] = self.classes.class_of[matching.truth_of[taken]]
        gain[taken] = self.similarities(matching.truth_of[taken], taken)
        return entry, gain

    def _class_of(self, truth: Ints) -> Ints:
        """[M] the class of ground-truth rows, -1 of row -1."""
        return np.append(self.classes.class_of, -1)[truth]

    def _plain_entries(self) -> tuple[Ints, Ints]:
        """(class or -1, UNIT for a true positive) of each prediction by hoicli's own matching: a prediction belongs to
        the ground truth of its class with the largest min(IoU), the first of equals, and the highest score takes it."""
        entry = predicted_classes(self.predictions, self.classes.classes)
        meet = self.meetings
        same = np.flatnonzero(entry[meet.prediction] == self.classes.class_of[meet.truth])
        truth, prediction = meet.truth[same], meet.prediction[same]
        overlap = np.fmin(meet.iou_subject[same], meet.iou_object[same])
        order = np.lexsort((truth, -overlap, prediction))
        best = order[run_starts(prediction[order])]
        truth, prediction = truth[best], prediction[best]
        order = np.lexsort((prediction, -self.predictions.score[prediction], truth))
        gain = np.zeros(len(entry), dtype=np.int64)
        gain[prediction[order[run_starts(truth[order])]]] = UNIT
        return entry, gain

    def _areas(self, entry: Ints, gain: Ints, positives: Ints) -> list[float]:
        """[C] the average precision of each class; predictions by score, then image id, then place in the record."""
        used = np.flatnonzero(entry >= 0)
        image = rank_by_id(self.predictions.image_ids)[self.predictions.image_of_hoi[used]]
        used = used[np.lexsort((used, image, -self.predictions.score[used], entry[used]))]
        bounds = np.searchsorted(entry[used], np.arange(len(positives) + 1)).tolist()
        gains = gain[used]
        return [
            average_precision(gains[begin:end], count, self.settings.area)
            for begin, end, count in zip(bounds[:-1], bounds[1:], positives.tolist(), strict=True)
        ]

    def _f1(self, matching: Matching, count: int) -> list[float]:
        """[C] Algorithm 2, lines 15 to 28 and 30 to 35."""
        found = np.flatnonzero(matching.prediction_of >= 0)
        gain = self.similarities(found, matching.prediction_of[found])
        of_found = self.classes.class_of[found]
        loose = np.flatnonzero(matching.kept & (matching.truth_of < 0) & self.counts_against)
        # Weights are whole numbers, so these float sums are exact.
        true = np.bincount(of_found, weights=gain, minlength=count)
        false = np.bincount(of_found, weights=UNIT - gain, minlength=count)
        false += UNIT * np.bincount(self._class_of(self.nearest[loose]), minlength=count)
        missed = UNIT * np.bincount(self.classes.class_of[matching.prediction_of < 0], minlength=count)
        none = np.zeros(count)
        precision = np.divide(true, true + false, out=none.copy(), where=true > 0)
        recall = np.divide(true, true + missed, out=none.copy(), where=true > 0)
        f1: list[float] = np.divide(2 * precision * recall, precision + recall, out=none, where=true > 0).tolist()
        return f1


def average_precision(gain: Ints, positives: int, area: str) -> float:
    """Algorithm 1, lines 35 to 39, in [0, 1]: of gains in UNITs, best score first, for a class of `positives` ground
    truth, under the curve of soft precision and recall that `area` (a key of AREAS) names. Nothing gained is 0."""
    rank = np.flatnonzero(gain) + 1  # precision is highest where something is gained, and recall only moves there
    if len(rank) == 0 or positives == 0:
        return 0.0
    found = np.cumsum(gain)[rank - 1]
    precision, recall = found / (rank * UNIT), found / (positives * UNIT)
    if area == "step":
        return math.fsum((gain[rank - 1] * precision).tolist()) / (positives * UNIT)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    if area == "envelope":
        return math.fsum((gain[rank - 1] * envelope).tolist()) / (positives * UNIT)
    at = np.searchsorted(recall, GRID_ARANGE)
    return math.fsum(envelope[at[at < len(recall)]].tolist()) / len(GRID_ARANGE)


def _in_order(parts: list[Meetings]) -> Meetings:
    """All of them, by truth, then prediction."""
    rows, overlap = np.zeros(0, dtype=np.int64), np.zeros(0)
    parts = [Meetings(rows, rows, overlap, overlap), *parts]
    truth, prediction = (np.concatenate([getattr(part, name) for part in parts]) for name in ("truth", "prediction"))
    order = np.lexsort((prediction, truth))
    overlaps = [
        np.concatenate([getattr(part, name) for part in parts])[order] for name in ("iou_subject", "iou_object")
    ]
    return Meetings(truth[order], prediction[order], overlaps[0], overlaps[1])


def _mean(values: list[float] | None) -> float | None:
    return math.fsum(values) / len(values) if values else None
