"""The type of every prediction.

Within an image, by protocol `diag` (a box is correct when it matches a ground-truth box of its label with IoU >= 0.5):

1. a prediction that belongs to a ground-truth triplet of its class is its true positive, or a duplicate;
2. both boxes correct: an interaction error (wrong verb) if some ground-truth pair has exactly these two, else an
   association error (the two do not interact);
3. only the human box correct: an object box error; only the object box: a human box error; neither: both boxes.

A subject that is no person is never a correct human box ("incorrect classification of the human category"). The
released evaluator leaves such predictions out of its lists, so they have a type, and may be repairs, but mAP without an
oracle is without them; the released diagnosis has no type for them.

`hoicli.diagnosis.repairs` finds the prediction that can repair a ground truth. (Diag-HOI section 3.1; neu-vi/Diag-HOI
map_improvement_hicodet.py precompute_data.)

V-COCO's official matching is person-first (scenario 1): a statement belongs to the annotated person its subject
overlaps most. Its human box is right with IoU >= 0.5 there, an object box with IoU >= 0.5; labels are ignored. Its
type is the first of:

1. true positive; duplicate (right, but a higher score has that ground truth);
2. the human right: interaction, where the person is annotated with that very object in another action or role; else
   association, where the object box lies on some other ground-truth box; else object box;
3. the human wrong, the object box that of some annotated role of the image: association, where the human box lies on a
   ground-truth box (which is no person); else human box;
4. both boxes.

A statement may say that its role has no object, and so may the annotation, which then decides the type:

- no object predicted, one annotated: object box;
- no object predicted, and the person, who is right, does not do the action: interaction, since the action is all that
  the statement claims;
- no object predicted, the human wrong: human box (association, as in 3) where somebody in the image does the action
  with no object, since the right human would make it true; else both boxes;
- an object predicted, none annotated: as any wrong object (interaction, association or object box).

neu-vi/Diag-HOI map_improvement_vcoco.py compares the object box only with that of the best person for this action and
role. So it finds interaction errors only if no object is predicted, and calls a right object with a wrong action an
association error; the paper defines both as above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hoicli.evaluation.matching import Batch, Outcomes
from hoicli.evaluation.pairing import OUTCOME_CODES, TRUE_POSITIVE, check_pairs
from hoicli.evaluation.protocols import Protocol
from hoicli.records.kit import Bools, Floats, Ints, distinct, expanded, find, ranks_in_groups, starts_of
from hoicli.records.scenes import class_columns
from hoicli.vocabulary.labels import Vocabulary

ERRORS = ("true_positive", "duplicate", "interaction", "association", "object_box", "human_box", "both_boxes")
"""The types of counted predictions, in the order of the definition; `missed_gt` is about ground truth."""
MISSED = "missed_gt"
HIT, DUPLICATE, INTERACTION, ASSOCIATION, OBJECT_BOX, HUMAN_BOX, BOTH_BOXES = range(len(ERRORS))
NOT_COUNTED = 255
MISNAMED = OUTCOME_CODES["subject_not_person"]
REPAIR_CANDIDATES = 100
"""How many statements of an image in V-COCO can be repairs, the best-scored first (neu-vi/Diag-HOI); otherwise a
detector that scores every action of every person would miss nothing."""


@dataclass(frozen=True)
class Located:
    """A matched batch without box coordinates: what the error types need, from a `Batch` or from match records.

    Predictions: image [T] of image_ids; subject, object [T] predicted boxes; interaction, score [T]; counted, hit [T];
    truth [T] the row in the ground truth below that a prediction belongs to (even if a better one takes it), else -1.
    Ground truth that the protocol counts, image by image in annotation order: truth_image, truth_subject, truth_object
    (boxes), truth_interaction [G]. box_match, truth_box_match [K]: each (predicted box, ground-truth box) that match.
    A missing object is -1. action_of [C] is `actions` of the vocabulary. person [T], only of a person-first protocol:
    the ground-truth box of the person each prediction belongs to, -1 if its subject overlaps nobody enough. misnamed
    [T]: predictions that do not count because their subject is no person; None: none is.
    """

    image_ids: Sequence[str]
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
    action_of: Ints
    person: Ints | None = None
    misnamed: Bools | None = None

    @property
    def typed(self) -> Bools:
        """[T] the predictions that have a type."""
        return self.counted if self.misnamed is None else self.counted | self.misnamed

    @property
    def true_positive(self) -> Ints:
        """[G] the true positive of each ground truth, else -1."""
        rows, found = np.flatnonzero(self.hit), np.full(len(self.truth_image), -1, dtype=np.int64)
        found[self.truth[rows]] = rows
        return found


@cache
def actions(vocabulary: Vocabulary) -> Ints:
    """[C] the action of each class: its verb; in a dataset with roles, the class itself (a verb in one role)."""
    return np.arange(len(vocabulary.interactions)) if vocabulary.roles else class_columns(vocabulary)[0]


@dataclass(frozen=True)
class Typed:
    """The type of each prediction of a batch, and which boxes match which ground truth. error [T] indexes ERRORS
    (NOT_COUNTED for what the protocol drops). Predictions with the same boxes (in V-COCO, without an object, also the
    same action) form a group of one type, apart from true positives and duplicates: group_of [T] numbers the groups,
    type_of_group [P] is their type. group, truth [K] are all (group, ground truth) of one image; same_human,
    same_object, same_pair [K] say whether the group's human box, its object box, or both match that ground truth.
    may_repair [T] marks the predictions that may be repairs.
    """

    error: NDArray[np.uint8]
    group_of: Ints
    type_of_group: NDArray[np.uint8]
    group: Ints
    truth: Ints
    same_human: Bools
    same_object: Bools
    same_pair: Bools
    may_repair: Bools


def located(batch: Batch, outcomes: Outcomes, protocol: Protocol) -> Located:
    """The batch and its outcomes as `Located`."""
    scenes, truth = batch.predictions, batch.truth.scenes
    before = batch.truth.counted_before(protocol)
    start, end = truth.hoi_start[batch.image], truth.hoi_start[batch.image + 1]
    image, rows = counted_truth(batch, protocol)
    # The row of each counted triplet: its place in its image, after all of the images before.
    first = starts_of(before[end] - before[start])
    belongs = np.full(len(scenes.score), -1, dtype=np.int64)
    owner, owned = outcomes.row[outcomes.enough], outcomes.truth[outcomes.enough]
    of_owner = scenes.image_of_hoi[owner]
    belongs[owner] = first[of_owner] + before[owned] - before[start[of_owner]]
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
        truth_image=image,
        truth_subject=truth.subject[rows],
        truth_object=truth.object[rows],
        truth_interaction=truth.interaction[rows],
        box_match=box,
        truth_box_match=truth_box,
        action_of=actions(batch.truth.vocabulary),
        person=batch.found_people(protocol) if protocol.person_first else None,
        misnamed=outcomes.code == MISNAMED,
    )


def counted_truth(batch: Batch, protocol: Protocol) -> tuple[Ints, Ints]:
    """The ground truth of `Located`, image by image in annotation order: ([G] images of the batch, [G] triplets as rows
    of the ground truth's Scenes)."""
    hoi_start = batch.truth.scenes.hoi_start
    start, end = hoi_start[batch.image], hoi_start[batch.image + 1]
    image, rows = expanded(start, end - start)
    counted = batch.truth.counted(protocol)[rows]
    return image[counted], rows[counted]


class BoxMatches:
    """Which predicted box matches which ground-truth box. some [B + 1]: whether each of B predicted boxes matches any;
    the last, of no box, does not."""

    def __init__(self, found: Located) -> None:
        boxes = max(int(column.max(initial=-1)) for column in (found.subject, found.object, found.box_match)) + 1
        self.some = np.zeros(boxes + 1, dtype=bool)
        self.some[found.box_match] = True
        truth_boxes = (found.truth_box_match, found.truth_subject, found.truth_object)
        self._width = max(int(boxes.max(initial=0)) for boxes in truth_boxes) + 1
        self._keys = distinct(found.box_match * self._width + found.truth_box_match)

    def __call__(self, box: Ints, truth_box: Ints) -> Bools:
        """Row by row, whether the two match."""
        return find(self._keys, box * self._width + truth_box)[1]


def error_types(found: Located) -> Typed:
    """The error types of a batch, by its protocol's rules; each image is independent of the others."""
    return _by_pair(found) if found.person is None else _by_person(found)


def _by_pair(found: Located) -> Typed:
    matches = BoxMatches(found)
    # Everything about two boxes is computed once for each pair, not for each of its verbs.
    pair = found.subject * len(matches.some) + found.object
    _, first, group_of = np.unique(pair, return_index=True, return_inverse=True)
    subject, object_ = found.subject[first], found.object[first]
    images = found.image[first]
    annotated = np.bincount(found.truth_image, minlength=len(found.image_ids))
    check_pairs(annotated[images], images, found.image_ids, "pairs and triplets")
    group, truth = beside(images, found.truth_image)
    person = np.ones(len(first), dtype=bool)
    person[group_of[found.typed & ~found.counted]] = False
    same_human = matches(subject[group], found.truth_subject[truth]) & person[group]
    same_object = matches(object_[group], found.truth_object[truth])
    same_pair = same_human & same_object
    interacts = np.zeros(len(first), dtype=bool)
    interacts[group[same_pair]] = True

    right_human, right_object = matches.some[subject] & person, matches.some[object_]
    both = right_human & right_object
    type_of_group = np.select(
        [both & interacts, both, right_human, right_object],
        [INTERACTION, ASSOCIATION, OBJECT_BOX, HUMAN_BOX],
        BOTH_BOXES,
    ).astype(np.uint8)
    error = each_error(found, type_of_group[group_of])
    return Typed(error, group_of, type_of_group, group, truth, same_human, same_object, same_pair, found.typed)


def _by_person(found: Located) -> Typed:
    """The types of a batch with `person`."""
    assert found.person is not None
    matches = BoxMatches(found)
    # Everything is computed once for each pair of boxes; a statement without object is identified by its action, too.
    no_object = found.object < 0
    action = np.where(no_object, found.interaction, -1) + 1
    key = (found.subject * len(matches.some) + found.object + 1) * (int(action.max(initial=0)) + 1) + action
    _, first, group_of = np.unique(key, return_index=True, return_inverse=True)
    group, truth = beside(found.image[first], found.truth_image)
    row, empty = first[group], no_object[first]
    of_person = found.person[row] == found.truth_subject[truth]  # -1 is nobody's
    same_action = found.interaction[row] == found.truth_interaction[truth]
    truth_empty = found.truth_object[truth] < 0
    both, neither = ~empty[group] & ~truth_empty, empty[group] & truth_empty
    of_object = np.zeros(len(row), dtype=bool)
    of_object[both] = matches(found.object[row[both]], found.truth_object[truth[both]])
    of_object |= neither & same_action

    def some(which: Bools) -> Bools:
        """[P] whether `which` holds between a group and some ground truth of its image."""
        marked = np.zeros(len(first), dtype=bool)
        marked[group[which]] = True
        return marked

    human = found.person[first] >= 0
    joined = some(of_person & of_object)
    does_it = some(of_person & same_action)
    object_found = some(of_object)
    kind = np.select(
        [
            human & ~empty & joined,
            human & empty & ~does_it,
            human & matches.some[found.object[first]],
            human,
            object_found & matches.some[found.subject[first]],
            object_found,
        ],
        [INTERACTION, INTERACTION, ASSOCIATION, OBJECT_BOX, ASSOCIATION, HUMAN_BOX],
        BOTH_BOXES,
    ).astype(np.uint8)
    pair = of_person & (of_object | neither)
    counted = np.flatnonzero(found.counted)
    may_repair = np.zeros(len(found.score), dtype=bool)
    may_repair[counted[ranks_in_groups(found.image[counted], found.score[counted]) < REPAIR_CANDIDATES]] = True
    error = each_error(found, kind[group_of])
    return Typed(error, group_of, kind, group, truth, of_person, of_object, pair, may_repair)


def each_error(found: Located, kind: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """[T] the type of each prediction; `kind` [T] is its type if it belongs to no ground truth of its class."""
    error = kind.copy()
    error[found.truth >= 0] = DUPLICATE
    error[found.hit] = HIT
    error[~found.typed] = NOT_COUNTED
    return error


def beside(image: Ints, truth_image: Ints) -> tuple[Ints, Ints]:
    """All (row of `image`, row of `truth_image`) of the same image; `truth_image` is ascending."""
    start = np.searchsorted(truth_image, image)
    return expanded(start, np.searchsorted(truth_image, image, side="right") - start)


def members(group_of: Ints, groups: int, wanted: Ints) -> tuple[Ints, Ints]:
    """(place in `wanted`, row) of every row of each wanted group. group_of [M]: that of each row, below `groups`."""
    start = starts_of(np.bincount(group_of, minlength=groups))
    run, entry = expanded(start[wanted], np.diff(start)[wanted])
    return run, np.argsort(group_of, kind="stable")[entry]
