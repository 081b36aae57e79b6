"""Why SHOE gives what it gives: a record for each ground truth and each unmatched prediction (supplement, Figure 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hoicli.shoe.matching import UNIT, Matching, Shoe

if TYPE_CHECKING:
    from hoicli.arrays.kit import Ints

Record = dict[str, Any]


def explain(shoe: Shoe, matching: Matching, **common: str) -> Iterator[Record]:
    """By image id: every ground truth with what it was matched with, then every prediction that was not matched, with
    the ground truth most similar to it.

    `outcome` is matched, missed (no prediction on its boxes was left), false_positive (counts against that class) or
    ignored (less similar than delta, or no ground truth in the image). `gt` and `prediction` are places in the records'
    `hois`; similarities are those of the verbs, of the objects (null where neither triplet has one) and of both.
    Predictions that `--min-score` or `--min-rank` left out have no record. `common` is in every one.
    """
    truths, found = shoe.truth, shoe.predictions
    image_of = {int(number): at for at, number in enumerate(shoe.image)}
    words = _Words(shoe, matching)
    counts_against = shoe.counts_against
    for number in sorted(range(len(truths.image_ids)), key=truths.image_ids.__getitem__):
        named = {"image_id": truths.image_ids[number], **common}
        for truth in range(truths.hoi_start[number], truths.hoi_start[number + 1]):
            prediction = int(matching.prediction_of[truth])
            if prediction < 0:
                yield {**named, "outcome": "missed", **words.truth(truth), "prediction": None}
            else:
                overlaps = words.overlaps(truth, prediction)
                yield {**named, "outcome": "matched", **words.truth(truth), **words.prediction(prediction), **overlaps}
        if number not in image_of:
            continue
        at = image_of[number]
        for prediction in range(found.hoi_start[at], found.hoi_start[at + 1]):
            if matching.kept[prediction] and matching.truth_of[prediction] < 0:
                truth = int(shoe.nearest[prediction])
                outcome = "false_positive" if counts_against[prediction] else "ignored"
                nearest = words.truth(truth) if truth >= 0 else {"gt": None}
                if shoe.settings.against == "dataset":
                    nearest["gt"] = None  # what stands for the class may be in any image
                yield {**named, "outcome": outcome, **nearest, **words.prediction(prediction)}


class _Words:
    """What to say about single triplets, from arrays computed for all of them at once."""

    def __init__(self, shoe: Shoe, matching: Matching) -> None:
        self._shoe = shoe
        self._partner = np.where(matching.truth_of >= 0, matching.truth_of, shoe.nearest)
        has = np.flatnonzero(self._partner >= 0)
        self._verb, self._object, self._both = (np.full(len(self._partner), np.nan) for _ in range(3))
        self._verb[has], self._object[has] = shoe.parts(self._partner[has], has)
        self._both[has] = shoe.similarities(self._partner[has], has) / UNIT
        self._truth_place = _places(shoe.truth.hoi_start)
        self._place = _places(shoe.predictions.hoi_start)
        self._meeting = shoe.meetings.truth * max(len(self._partner), 1) + shoe.meetings.prediction
        self._verb_sense, self._object_sense = cache(shoe.verbs.sense), cache(shoe.objects.sense)

    def truth(self, truth: int) -> Record:
        """A ground-truth triplet."""
        classes = self._shoe.classes
        verb, thing = classes.verbs[classes.verb_row[truth]], classes.objects[classes.object_row[truth]]
        return {
            "gt": int(self._truth_place[truth]),
            "verb": verb[0],
            "object": thing[0],
            "verb_synset": verb[1],
            "object_synset": thing[1],
        }

    def prediction(self, prediction: int) -> Record:
        """A predicted triplet, and how similar it is to the ground truth it is shown with."""
        found, classes, truth = self._shoe.predictions, self._shoe.classes, int(self._partner[prediction])
        verb, thing = int(found.verb[prediction]), int(found.label[prediction])
        record: Record = {
            "prediction": int(self._place[prediction]),
            "predicted_verb": found.verbs[verb][0],
            "predicted_object": found.objects[thing][0],
            "score": _number(found.score[prediction]),
        }
        if truth < 0:
            return record
        return {
            **record,
            "predicted_verb_synset": self._verb_sense(int(classes.verb_row[truth]), verb),
            "predicted_object_synset": self._object_sense(int(classes.object_row[truth]), thing),
            "verb_similarity": _number(self._verb[prediction]),
            "object_similarity": _number(self._object[prediction]),
            "similarity": _number(self._both[prediction]),
        }

    def overlaps(self, truth: int, prediction: int) -> Record:
        """The IoU of both boxes of a match."""
        at = int(np.searchsorted(self._meeting, truth * max(len(self._partner), 1) + prediction))
        meetings = self._shoe.meetings
        return {"iou_subject": _number(meetings.iou_subject[at]), "iou_object": _number(meetings.iou_object[at])}


def _places(start: Ints) -> Ints:
    """[T] the place of each triplet in its record."""
    return np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start))


def _number(value: float) -> float | None:
    """A number for JSON; NaN is null."""
    return None if math.isnan(value) else float(value)
