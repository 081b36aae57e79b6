"""The reasons for SHOE's numbers: a record for each ground truth and unmatched prediction (supplement, Figure 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from hoicli.records.kit import Ints, run_starts
from hoicli.records.triplets import Triplets
from hoicli.shoe.triplet_matching import UNIT, Matching, Shoe

Record = dict[str, Any]


def explain(shoe: Shoe, matching: Matching) -> Iterator[Record]:
    """Yield the records of each image, in the order of image ids: one for every ground-truth triplet, with its matched
    prediction, then one for every unmatched prediction, with the class most similar to it.

    The keys of a record:
    - outcome: "matched"; "missed" (ground truth without a free prediction on its boxes); "false_positive" (a prediction
      that counts against its most similar class); "ignored" (a prediction that is less similar than delta, the least
      similarity that counts against a class, or in an image without ground truth, or whose class has none anywhere).
    - gt, prediction: the positions of the two triplets in their records' `hois`; gt is null of a class that was looked
      for in the whole dataset.
    - verb_similarity, object_similarity (null where neither triplet has an object), similarity (of both together).
    - better_prediction, better_similarity, better_taken_by: a prediction on the boxes of this ground truth that is more
      similar than its own, and the other ground truth that took it (under the greedy assignment, an earlier one).

    Predictions that `--min-score` or `--min-rank` left out have no record."""
    truths, predictions = shoe.truth, shoe.predictions
    truth_places, _ = shoe.places  # of each triplet in its record
    # Ground truth and predictions number the images separately.
    predicted_image_of = {int(truth_image): image for image, truth_image in enumerate(shoe.image)}
    records = _Records(shoe, matching)
    for truth_image in sorted(range(len(truths.image_ids)), key=truths.image_ids.__getitem__):
        image_key = {"image_id": truths.image_ids[truth_image]}
        for truth in sorted(_triplets_of(truths, truth_image), key=truth_places.__getitem__):
            yield {**image_key, **records.explain_truth(truth)}
        image = predicted_image_of.get(truth_image)
        for prediction in () if image is None else _triplets_of(predictions, image):
            if matching.keep[prediction] and matching.truth_of[prediction] < 0:
                yield {**image_key, **records.explain_unmatched(prediction)}


def _triplets_of(triplets: Triplets, image: int) -> range:
    """Return the rows of the triplets of an image, given the image's number."""
    return range(int(triplets.hoi_start[image]), int(triplets.hoi_start[image + 1]))


class _Records:
    """Makes the record of one triplet, from arrays that are computed for all triplets together."""

    def __init__(self, shoe: Shoe, matching: Matching) -> None:
        """Compute the arrays for all triplets of an evaluation and its matching."""
        self._shoe, self._matching = shoe, matching
        self._better_pair = _find_better_pairs(shoe, matching)
        self._counts_against = shoe.counts_against
        # The verb and the object that each prediction is shown with: its match's, else those of the most similar class.
        is_matched = matching.truth_of >= 0
        self._partner = np.where(is_matched, shoe.names_of(matching.truth_of), shoe.nearest_names)
        paired = np.flatnonzero(self._partner[0] >= 0)
        self._verb, self._object, self._both = (np.full(len(is_matched), np.nan) for _ in range(3))
        verb_row, object_row = self._partner[:, paired]
        self._verb[paired], self._object[paired] = shoe.verb_and_object(verb_row, object_row, paired)
        self._both[paired] = shoe.combine(self._verb[paired], self._object[paired]) / UNIT  # in [0, 1]
        self._truth_place, self._place = shoe.places
        # [G, 2]: the subject's and the object's IoU of each ground truth with the prediction it took
        self._overlap = np.full((len(matching.prediction_of), 2), np.nan)
        pairs = shoe.overlapping_pairs
        matched = pairs.select(matching.prediction_of[pairs.truth] == pairs.prediction)
        self._overlap[matched.truth] = np.stack([matched.iou_subject, matched.iou_object], axis=1)
        self._verb_sense, self._object_sense = cache(shoe.verbs.sense), cache(shoe.objects.sense)

    def explain_truth(self, truth: int) -> Record:
        """Return the record of a ground truth (a row): the prediction it took, and a more similar one that another
        ground truth took, if there is one."""
        prediction, pairs = int(self._matching.prediction_of[truth]), self._shoe.overlapping_pairs
        if prediction < 0:
            record = {"outcome": "missed", **self._truth(truth), "prediction": None}
        else:
            subject, object_ = map(_number, self._overlap[truth])
            overlaps = {"iou_subject": subject, "iou_object": object_}
            record = {"outcome": "matched", **self._truth(truth), **self._prediction(prediction), **overlaps}
        pair = int(self._better_pair[truth])
        if pair < 0:
            return record
        better = int(pairs.prediction[pair])
        return {
            **record,
            "better_prediction": int(self._place[better]),
            "better_similarity": _number(pairs.similarity[pair] / UNIT),
            "better_taken_by": int(self._truth_place[self._matching.truth_of[better]]),
        }

    def explain_unmatched(self, prediction: int) -> Record:
        """Return the record of an unmatched prediction (a row), with the class most similar to it."""
        outcome = "false_positive" if self._counts_against[prediction] else "ignored"
        shoe, verb = self._shoe, int(self._partner[0, prediction])
        truth = int(shoe.nearest[prediction]) if shoe.classes.compared is None else -1
        position: Record = {"gt": int(self._truth_place[truth]) if truth >= 0 else None}
        nearest = self._names(verb, int(self._partner[1, prediction])) if verb >= 0 else {}
        return {"outcome": outcome, **position, **nearest, **self._prediction(prediction)}

    def _truth(self, truth: int) -> Record:
        """Return the keys of a ground truth: its position in its record, and its labels with their senses."""
        classes = self._shoe.classes
        names = self._names(int(classes.verb_row[truth]), int(classes.object_row[truth]))
        return {"gt": int(self._truth_place[truth]), **names}

    def _names(self, verb_row: int, object_row: int) -> Record:
        """Return the labels and senses of a verb and an object, given as rows of `TruthClasses`."""
        verb, object_ = self._shoe.classes.verbs[verb_row], self._shoe.classes.objects[object_row]
        return {"verb": verb[0], "object": object_[0], "verb_synset": verb[1], "object_synset": object_[1]}

    def _prediction(self, prediction: int) -> Record:
        """Return the keys of a prediction, with its similarity to the ground truth or class that it is shown with."""
        predictions = self._shoe.predictions
        truth_verb, truth_label = self._partner[:, prediction].tolist()
        verb, label = int(predictions.verb[prediction]), int(predictions.label[prediction])
        record: Record = {
            "prediction": int(self._place[prediction]),
            "predicted_verb": predictions.verbs[verb][0],
            "predicted_object": predictions.objects[label][0],
            "score": _number(predictions.score[prediction]),
        }
        if truth_verb < 0:
            return record
        return {
            **record,
            "predicted_verb_synset": self._verb_sense(truth_verb, verb),
            "predicted_object_synset": self._object_sense(truth_label, label),
            "verb_similarity": _number(self._verb[prediction]),
            "object_similarity": _number(self._object[prediction]),
            "similarity": _number(self._both[prediction]),
        }


def _find_better_pairs(shoe: Shoe, matching: Matching) -> Ints:
    """Return [G]: for each ground truth the row of `shoe.overlapping_pairs` with a prediction that overlaps it, is more
    similar than its own prediction and was taken by another ground truth; -1 if the most similar prediction is no such
    one. Only predictions that the filters keep are looked at."""
    pairs = shoe.overlapping_pairs
    # For each ground truth its pairs in the order of `greedy`: the most similar prediction first, then by rank.
    order = np.lexsort((shoe.rank[pairs.prediction], -pairs.similarity, pairs.truth))
    order = order[shoe.allowed_rows(matching.keep)[order]]
    best = order[run_starts(pairs.truth[order])]
    own_similarity = np.full(len(matching.prediction_of), -1, dtype=np.int64)
    matched = np.flatnonzero(matching.prediction_of >= 0)
    own_similarity[matched] = shoe.similarities(matched, matching.prediction_of[matched])
    better = np.full(len(own_similarity), -1, dtype=np.int64)
    taken = matching.truth_of[pairs.prediction[best]] >= 0
    best = best[taken & (pairs.similarity[best] > own_similarity[pairs.truth[best]])]
    better[pairs.truth[best]] = best
    return better


def _number(value: float) -> float | None:
    """Return a number for JSON: NaN as null."""
    return None if math.isnan(value) else float(value)
