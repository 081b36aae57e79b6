"""The error type of every prediction, from its boxes and its match.

Types, within an image by protocol `diag` (a box is correct when it matches a box of its label with IoU >= 0.5):

1. a prediction that belongs to a ground-truth triplet of its class is its true positive, or a duplicate;
2. both boxes correct: an interaction error (wrong verb) if some ground-truth pair has exactly these two, else an
   association error (the two do not interact);
3. only the human box correct: an object box error; only the object box: a human box error; neither: both boxes.

A subject that is no person is never a correct human box ("incorrect classification of the human category"). The
released evaluator leaves such predictions out of its lists, so they have a type, and may be repairs, but mAP without an
oracle is without them; the released diagnosis has no type for them. (Diag-HOI section 3.1; neu-vi/Diag-HOI
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
association error; the paper defines both as above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.located import Located
from hoicli.evaluation.pairing import check_pairs
from hoicli.evaluation.ranking import order_by_class
from hoicli.records.kit import Bools, Ints, distinct, expand_runs, find, ranks_in_groups, starts_of

ERRORS = ("true_positive", "duplicate", "interaction", "association", "object_box", "human_box", "both_boxes")
"""The types of counted predictions, in the order of the definition; `missed_gt` is about ground truth."""
MISSED = "missed_gt"
HIT, DUPLICATE, INTERACTION, ASSOCIATION, OBJECT_BOX, HUMAN_BOX, BOTH_BOXES = range(len(ERRORS))
NOT_COUNTED = 255
REPAIR_CANDIDATES = 100
"""How many statements of an image in V-COCO can be repairs, the best-scored first (neu-vi/Diag-HOI); otherwise a
detector that scores every action of every person would miss nothing."""
REPAIRED = {"interaction": INTERACTION, "association": ASSOCIATION, "object_box": OBJECT_BOX, "human_box": HUMAN_BOX}
"""The types whose oracle corrects predictions, with their codes."""


@dataclass(frozen=True)
class Typed:
    """The error type of each prediction of a batch, and which boxes match which ground truth.

    Predictions with the same two boxes (in V-COCO, if they have no object, also with the same action) form a group. A
    group has one type, which all its predictions have but its true positives and duplicates. error [T]: the type of
    each prediction, an index of ERRORS (NOT_COUNTED if the protocol drops it). group_of [T]: the group of each
    prediction. type_of_group [P]: the type of each group. group, truth [K]: every combination of a group and a ground
    truth of the same image; same_human, same_object, same_pair [K]: whether the group's human box, its object box, or
    both match those of the ground truth. may_repair [T]: which predictions may be repairs."""

    error: NDArray[np.uint8]
    group_of: Ints
    type_of_group: NDArray[np.uint8]
    group: Ints
    truth: Ints
    same_human: Bools
    same_object: Bools
    same_pair: Bools
    may_repair: Bools


class _BoxMatches:
    """Which predicted box matches which ground-truth box. matches_any [B + 1]: whether each of B predicted boxes
    matches a ground-truth box; the last entry, which index -1 (a missing box) reads, is False."""

    def __init__(self, located: Located) -> None:
        """Prepare a batch for look-ups: each matching pair of boxes becomes one number, and these are sorted."""
        boxes = max(int(column.max(initial=-1)) for column in (located.subject, located.object, located.box_match)) + 1
        self.matches_any = np.zeros(boxes + 1, dtype=bool)
        self.matches_any[located.box_match] = True
        truth_boxes = (located.truth_box_match, located.truth_subject, located.truth_object)
        self._width = max(int(boxes.max(initial=0)) for boxes in truth_boxes) + 1
        self._keys = distinct(located.box_match * self._width + located.truth_box_match)

    def __call__(self, box: Ints, truth_box: Ints) -> Bools:
        """Return [M] whether each predicted box matches the ground-truth box in its row. box, truth_box [M]."""
        return find(self._keys, box * self._width + truth_box)[1]


def error_types(located: Located) -> Typed:
    """Return the error types of a batch by its protocol's rules; each image is independent of the others."""
    return _type_by_pair(located) if located.person is None else _type_by_person(located)


def _type_by_pair(located: Located) -> Typed:
    """Return the error types of HICO-DET and the like: a prediction that is no true positive nor duplicate has the type
    that its two boxes give it, by which of them match ground-truth boxes, and whether these are annotated as a pair."""
    matches = _BoxMatches(located)
    # Predictions with the same two boxes are a group: what depends on boxes is computed once for each group.
    pair = located.subject * len(matches.matches_any) + located.object
    _, first_of_group, group_of = np.unique(pair, return_index=True, return_inverse=True)
    subject, object_ = located.subject[first_of_group], located.object[first_of_group]
    images = located.image[first_of_group]
    annotated = np.bincount(located.truth_image, minlength=len(located.image_ids))
    check_pairs(annotated[images], images, located.image_ids, "pairs and triplets")
    group, truth = join_by_image(images, located.truth_image)
    # Predictions that have a type but do not count are those whose subject is no person.
    is_person = np.ones(len(first_of_group), dtype=bool)
    is_person[group_of[located.typed & ~located.counted]] = False
    same_human = matches(subject[group], located.truth_subject[truth]) & is_person[group]
    same_object = matches(object_[group], located.truth_object[truth])
    same_pair = same_human & same_object
    interacts = np.zeros(len(first_of_group), dtype=bool)
    interacts[group[same_pair]] = True

    right_human, right_object = matches.matches_any[subject] & is_person, matches.matches_any[object_]
    both = right_human & right_object
    type_of_group = np.select(  # the first condition that holds decides
        [both & interacts, both, right_human, right_object],
        [INTERACTION, ASSOCIATION, OBJECT_BOX, HUMAN_BOX],
        BOTH_BOXES,
    ).astype(np.uint8)
    error = _each_error(located, type_of_group[group_of])
    return Typed(error, group_of, type_of_group, group, truth, same_human, same_object, same_pair, located.typed)


def _type_by_person(located: Located) -> Typed:
    """Return the error types by V-COCO's person-first rules: a prediction belongs to the annotated person that its
    subject overlaps most, and its type says what is wrong with it as a prediction about that person."""
    assert located.person is not None
    matches = _BoxMatches(located)
    first_of_group, group_of = _group_predictions(located, len(matches.matches_any))
    group, truth = join_by_image(located.image[first_of_group], located.truth_image)
    first_row = first_of_group[group]
    neither_has_object = (located.object[first_row] < 0) & (located.truth_object[truth] < 0)
    same_action = located.interaction[first_row] == located.truth_interaction[truth]
    # Predictions with the same boxes are a group; each group is compared with each ground truth of its image.
    fit = _GroupFit(
        group,
        same_person=located.person[first_row] == located.truth_subject[truth],  # a person of -1 matches no box
        same_object=_matching_objects(located, matches, first_row, truth) | (neither_has_object & same_action),
        same_action=same_action,
    )
    type_of_group = _person_first_types(located, matches, first_of_group, fit)
    same_pair = fit.same_person & (fit.same_object | neither_has_object)
    error = _each_error(located, type_of_group[group_of])
    may_repair = _foremost_predictions(located)
    return Typed(error, group_of, type_of_group, group, truth, fit.same_person, fit.same_object, same_pair, may_repair)


class _GroupFit(NamedTuple):
    """How each group of V-COCO predictions fits each ground truth of its image, K combinations in all.

    group [K]: the group. same_person [K]: whether it belongs to the person of the ground truth; same_object: whether
    its object box matches (where neither has an object: the action is the same); same_action: its action."""

    group: Ints
    same_person: Bools
    same_object: Bools
    same_action: Bools

    def holds_somewhere(self, condition: Bools, groups: int) -> Bools:
        """Return [P] whether `condition` [K] holds for each of P groups and at least one ground truth."""
        marked = np.zeros(groups, dtype=bool)
        marked[self.group[condition]] = True
        return marked


def _group_predictions(located: Located, boxes: int) -> tuple[Ints, Ints]:
    """Return [P] the first prediction of each group, and [T] the group of each prediction, so that what depends on
    boxes can be computed once for each group. Predictions with the same boxes are a group; those without an object must
    have the same action, too. boxes: a number above that of every box."""
    action = np.where(located.object < 0, located.interaction, -1) + 1
    # Subject, object and action in one number; each is raised by one where -1 stands for none.
    key = (located.subject * boxes + located.object + 1) * (int(action.max(initial=0)) + 1) + action
    _, first_of_group, group_of = np.unique(key, return_index=True, return_inverse=True)
    return first_of_group, group_of


def _matching_objects(located: Located, matches: _BoxMatches, row: Ints, truth: Ints) -> Bools:
    """Return [K] whether a prediction and a ground truth both have an object, and the boxes match."""
    both_have_object = (located.object[row] >= 0) & (located.truth_object[truth] >= 0)
    matching = np.zeros(len(row), dtype=bool)
    matching[both_have_object] = matches(
        located.object[row[both_have_object]], located.truth_object[truth[both_have_object]]
    )
    return matching


def _person_first_types(
    located: Located, matches: _BoxMatches, first_of_group: Ints, fit: _GroupFit
) -> NDArray[np.uint8]:
    """Return [P] the error type of each group of predictions by V-COCO's person-first rules (the module's docstring has
    them), apart from its true positives and duplicates. first_of_group [P]: a prediction of each group."""
    assert located.person is not None
    groups = len(first_of_group)
    has_object = located.object[first_of_group] >= 0
    human_right = located.person[first_of_group] >= 0
    pair_right = fit.holds_somewhere(fit.same_person & fit.same_object, groups)
    action_right = fit.holds_somewhere(fit.same_person & fit.same_action, groups)
    object_right = fit.holds_somewhere(fit.same_object, groups)
    return np.select(  # the first condition that holds decides
        [
            human_right & has_object & pair_right,  # the person is annotated with this object in another action
            human_right & ~has_object & ~action_right,
            human_right & matches.matches_any[located.object[first_of_group]],  # with some other annotated box
            human_right,
            object_right & matches.matches_any[located.subject[first_of_group]],  # its subject is some other box
            object_right,
        ],
        [INTERACTION, INTERACTION, ASSOCIATION, OBJECT_BOX, ASSOCIATION, HUMAN_BOX],
        BOTH_BOXES,
    ).astype(np.uint8)


def _foremost_predictions(located: Located) -> Bools:
    """Return [T] whether each prediction may be a repair, that is, be corrected to a ground truth by an oracle: whether
    it is among the REPAIR_CANDIDATES that count in its image and score highest."""
    counted = np.flatnonzero(located.counted)
    counted = order_by_class(located.interaction, counted)  # of equal scores, the lower class ranks first
    rank_in_image = ranks_in_groups(located.image[counted], located.score[counted])
    is_foremost = np.zeros(len(located.score), dtype=bool)
    is_foremost[counted[rank_in_image < REPAIR_CANDIDATES]] = True
    return is_foremost


def _each_error(located: Located, type_of_boxes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return [T] the type of each prediction. type_of_boxes [T]: if it belongs to no ground truth."""
    error = type_of_boxes.copy()
    error[located.truth >= 0] = DUPLICATE
    error[located.hit] = HIT
    error[~located.typed] = NOT_COUNTED
    return error


def join_by_image(image: Ints, truth_image: Ints) -> tuple[Ints, Ints]:
    """Return every combination of a prediction (or group) and a ground truth of the same image, as two columns of their
    numbers. image, truth_image: the image of each prediction, and of each ground truth; the latter ascending."""
    start = np.searchsorted(truth_image, image)
    return expand_runs(start, np.searchsorted(truth_image, image, side="right") - start)


def members(group_of: Ints, groups: int, chosen_groups: Ints) -> tuple[Ints, Ints]:
    """Return every item of the chosen groups, group by group, as two columns: the position in `chosen_groups` of its
    group, and the item. group_of [M]: the group of each item, a number below `groups`."""
    # Sorted by group, the items of group g are those from start[g] to start[g + 1].
    start = starts_of(np.bincount(group_of, minlength=groups))
    run, entry = expand_runs(start[chosen_groups], np.diff(start)[chosen_groups])
    return run, np.argsort(group_of, kind="stable")[entry]


def predictions_that_fit(typed: Typed, fits: Bools, chosen: Bools) -> tuple[Ints, Ints]:
    """Return each chosen prediction with each ground truth that it fits, as two columns: the ground truth, and the
    prediction. fits [K]: whether each combination of a group (predictions with the same boxes) and a ground truth in
    `typed` fits; chosen [T]: which predictions to return."""
    rows = np.flatnonzero(chosen)
    # the ground truths that group g fits are those from start[g] to start[g + 1] among all that fit
    start = starts_of(np.bincount(typed.group[fits], minlength=len(typed.type_of_group)))
    group = typed.group_of[rows]
    run, entry = expand_runs(start[group], np.diff(start)[group])
    return typed.truth[fits][entry], rows[run]
