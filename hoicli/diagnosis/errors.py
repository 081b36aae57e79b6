"""The type of every prediction, and which prediction could repair each missed or badly found ground truth.

Within an image, by protocol `diag` (a box is correct when it matches a ground-truth box of its label with IoU >= 0.5):

1. a prediction that belongs to a ground-truth triplet of its class is its true positive, or a duplicate;
2. both boxes correct: an interaction error (wrong verb) where some ground-truth pair joins exactly those two, else an
   association error (the two do not interact);
3. only the human box correct: an object box error; only the object box: a human box error; neither: both boxes.

A ground-truth triplet is repaired by the best-scored prediction above its own true positive that is no true positive
and repairs nothing else yet, and whose human box matches its human box, or, where that matches nothing at all, whose
object box matches its object box. Triplets take their repairs in annotation order. Without a true positive and without
a repair a triplet is missed. (Diag-HOI section 3; neu-vi/Diag-HOI map_improvement_hicodet.py precompute_data.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hoicli.matching import TRUE_POSITIVE, Batch, Outcomes
from hoicli.protocols import Protocol
from hoicli.scenes import Bools, Floats, Ints, expanded

if TYPE_CHECKING:
    from numpy.typing import NDArray

ERRORS = (
    "true_positive",
    "duplicate",
    "interaction",
    "association",
    "object_box",
    "human_box",
    "both_boxes",
)
"""What a counted prediction is, in the order of the definition; `missed_gt` is about ground truth."""
MISSED = "missed_gt"
HIT, DUPLICATE, INTERACTION, ASSOCIATION, OBJECT_BOX, HUMAN_BOX, BOTH_BOXES = range(len(ERRORS))
NOT_COUNTED = 255


@dataclass(frozen=True)
class Located:
    """A matched batch without its boxes: all that the error types need, from a `Batch` or from match records.

    Predictions: image [T] of image_ids; subject, object [T] predicted boxes; interaction, score [T]; counted, hit [T];
    truth [T] the row of the ground truth below that a prediction belongs to (taken or not), else -1. Ground truth that
    the protocol counts, image by image in annotation order: truth_image, truth_subject, truth_object (boxes),
    truth_interaction [G]. box_match, truth_box_match [K]: each (predicted box, ground-truth box) that match. An object
    is -1 where there is none. person [T], of a protocol that looks at the person first: the ground-truth box of the
    person each prediction belongs to, -1 where its subject overlaps nobody enough.
    """

    image_ids: list[str]
    image: Ints
    subject: Ints
    object: Ints
    interaction: Ints
    score: Floats
    counted: Bools
    hit: Bools
    truth: Ints
    truth_image: Ints
    truth_subject: Ints
    truth_object: Ints
    truth_interaction: Ints
    box_match: Ints
    truth_box_match: Ints
    person: Ints | None = None


@dataclass(frozen=True)
class ErrorTypes:
    """error [T] indexes ERRORS (NOT_COUNTED for what the protocol drops); repairs [T] the ground truth a prediction
    repairs, else -1; found [G] the true positive of each ground truth, else -1; repair [G] its repair, else -1."""

    error: NDArray[np.uint8]
    repairs: Ints
    found: Ints
    repair: Ints

    @property
    def missed(self) -> Bools:
        """[G] ground truth with neither a true positive nor a repair."""
        return (self.found < 0) & (self.repair < 0)


def located(batch: Batch, outcomes: Outcomes, protocol: Protocol) -> Located:
    """The batch (made with `all_boxes`) and its outcomes as `Located`."""
    scenes, truth = batch.predictions, batch.truth.scenes
    start = truth.hoi_start[batch.image]
    count = truth.hoi_start[batch.image + 1] - start
    image, laid = expanded(start, count)  # the ground truth of the batch's images, one image after another
    counted = batch.truth.counted(protocol)[laid]
    row_of = np.where(counted, np.cumsum(counted) - 1, -1)
    rows = laid[counted]
    belongs = np.full(len(scenes.score), -1, dtype=np.int64)
    owner = outcomes.row[outcomes.enough]
    first = (np.cumsum(count) - count - start)[scenes.image_of_hoi[owner]]
    belongs[owner] = row_of[first + outcomes.truth[outcomes.enough]]
    box, truth_box = batch.matched_boxes(protocol)
    return Located(
        image_ids=scenes.image_ids,
        image=scenes.image_of_hoi,
        subject=scenes.subject,
        object=np.where(batch.empty_object, -1, scenes.object) if protocol.person_first else scenes.object,
        interaction=scenes.interaction,
        score=scenes.score,
        counted=outcomes.code <= TRUE_POSITIVE,
        hit=outcomes.code == TRUE_POSITIVE,
        truth=belongs,
        truth_image=image[counted],
        truth_subject=truth.subject[rows],
        truth_object=truth.object[rows],
        truth_interaction=truth.interaction[rows],
        box_match=box,
        truth_box_match=truth_box,
        person=batch.found_people(protocol) if protocol.person_first else None,
    )


class BoxMatches:
    """Which predicted box matches which ground-truth box."""

    def __init__(self, found: Located) -> None:
        self._width = int(max(found.truth_box_match.max(initial=0), found.truth_subject.max(initial=0))) + 1
        self._width = max(self._width, int(found.truth_object.max(initial=0)) + 1)
        self._keys = np.unique(found.box_match * self._width + found.truth_box_match)

    def __call__(self, box: Ints, truth_box: Ints) -> Bools:
        """Row by row, whether the two match."""
        if len(self._keys) == 0:
            return np.zeros(len(box), dtype=bool)
        key = box * self._width + truth_box
        at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        matched: Bools = self._keys[at] == key
        return matched


def error_types(found: Located) -> ErrorTypes:
    """The error types and repairs of a batch. Images do not see one another."""
    boxes = int(max(found.subject.max(initial=-1), found.object.max(initial=-1), found.box_match.max(initial=-1))) + 1
    correct = np.zeros(boxes, dtype=bool)
    correct[found.box_match] = True
    human, thing = correct[found.subject], correct[found.object]

    # Everything about two boxes is decided once for each pair of them, not for each of its verbs.
    key = found.subject * boxes + found.object
    pair_key, first, pair = np.unique(key, return_index=True, return_inverse=True)
    pair_of, truth_of = beside(found.image[first], found.truth_image)
    matches = BoxMatches(found)
    subject_fits = matches(found.subject[first][pair_of], found.truth_subject[truth_of])
    object_fits = matches(found.object[first][pair_of], found.truth_object[truth_of])
    joined = np.zeros(len(pair_key), dtype=bool)
    joined[pair_of[subject_fits & object_fits]] = True

    error = np.select(
        [found.hit, found.truth >= 0, human & thing & joined[pair], human & thing, human, thing],
        [HIT, DUPLICATE, INTERACTION, ASSOCIATION, OBJECT_BOX, HUMAN_BOX],
        BOTH_BOXES,
    ).astype(np.uint8)
    error[~found.counted] = NOT_COUNTED
    taken = np.full(len(found.truth_image), -1, dtype=np.int64)
    taken[found.truth[found.hit]] = np.flatnonzero(found.hit)
    fits = subject_fits | (~human[first][pair_of] & object_fits)
    free = found.counted & ~found.hit
    repairs, repair = chosen_repairs(found, free, taken, pair, pair_of[fits], truth_of[fits])
    return ErrorTypes(error, repairs, taken, repair)


def beside(image: Ints, truth_image: Ints) -> tuple[Ints, Ints]:
    """All (row of `image`, row of `truth_image`) of one image; `truth_image` is ascending."""
    start = np.searchsorted(truth_image, image)
    return expanded(start, np.searchsorted(truth_image, image, side="right") - start)


def chosen_repairs(
    found: Located, free: Bools, taken: Ints, pair: Ints, pair_of: Ints, truth_of: Ints
) -> tuple[Ints, Ints]:
    """(repairs [T], repair [G]): free [T] marks the predictions that can be repairs, taken [G] are the true positives,
    pair [T] numbers pairs of boxes, and pair_of, truth_of [K] are the (pair of boxes, ground truth) that fit.

    The k-th ground truth of every image takes its repair in one step: within an image they go in annotation order, as
    an earlier one may take what a later one wants.
    """
    repairs = np.full(len(found.score), -1, dtype=np.int64)
    repair = np.full(len(found.truth_image), -1, dtype=np.int64)
    by_pair = np.argsort(pair, kind="stable")
    by_pair = by_pair[free[by_pair]]
    bounds = np.searchsorted(pair[by_pair], np.arange(int(pair.max(initial=-1)) + 2))
    run, entry = expanded(bounds[pair_of], np.diff(bounds)[pair_of])
    truth, candidate = truth_of[run], by_pair[entry]

    rank = np.empty(len(found.score), dtype=np.int64)
    rank[np.lexsort((-found.score, found.image))] = np.arange(len(rank))
    limit = np.where(taken >= 0, rank[taken], len(rank)) if len(rank) else taken
    above = rank[candidate] < limit[truth]
    candidate, truth = candidate[above], truth[above]
    starts = np.flatnonzero(np.r_[True, found.truth_image[1:] != found.truth_image[:-1]]) if len(repair) else taken
    turn = np.arange(len(repair)) - np.repeat(starts, np.diff(np.r_[starts, len(repair)]))
    order = np.lexsort((rank[candidate], truth, turn[truth]))
    candidate, truth = candidate[order], truth[order]
    rounds = np.searchsorted(turn[truth], np.arange(int(turn.max(initial=-1)) + 2))
    for begin, end in zip(rounds[:-1].tolist(), rounds[1:].tolist(), strict=True):
        rows = begin + np.flatnonzero(repairs[candidate[begin:end]] < 0)
        if len(rows):
            best = rows[np.flatnonzero(np.r_[True, truth[rows][1:] != truth[rows][:-1]])]
            repair[truth[best]] = candidate[best]
            repairs[candidate[best]] = truth[best]
    return repairs, repair
