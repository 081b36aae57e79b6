"""The type of every prediction, and the one that could find each ground truth after a fix: its repair.

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
association error; the paper defines both as above.

Repairs, which the oracles apply. A fix changes what its type names, so by its type a prediction can repair

- interaction: the ground truth of its own pair, both of whose boxes it has (it changes the verb);
- object box: ground truth with its human box; human box: ground truth with its object box;
- association: ground truth with one of its boxes.

True positives need no fix, and duplicates and both boxes errors are dropped, so these repair nothing. Each ground truth
of an image, by the number of its class as official annotations are listed, takes the first prediction by descending
score, then class, that can repair it, stands above its
own true positive and repairs nothing yet. But an association error waits while it could repair a later ground truth
with its own verb. At the end those that waited without success are assigned, in the same way, to ground truth without a
repair. A ground truth without a true positive or a repair is missed.

All oracles share these repairs: each ground truth is fixed once, each prediction repairs one ground truth, and with all
oracles applied every counted ground truth has its true positive and nothing else is left. (Diag-HOI section 3.2;
preferring the same verb is its "minimal changes necessary".) There are two other readings. `independent`: the oracles
do not share repairs, so a ground truth may have one of each type. `released` is neu-vi/Diag-HOI's code: every
prediction except true positives, duplicates included, repairs ground truth with its human box or, if that box is wrong,
with its object box. So a prediction can repair a pair that was never predicted, and no oracle fixes ground truth
assigned to a duplicate.

In V-COCO matching is person-first: a statement has a ground truth's human box if it belongs to that person, and "its
verb" is the action in the same role. Without an object, the pair of an interaction error is its person alone, who does
another action without an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.located import Located
from hoicli.evaluation.pairing import check_pairs
from hoicli.evaluation.ranking import order_by_class
from hoicli.records.kit import Bools, Ints, distinct, expand_runs, find, ranks_in_groups, run_starts, starts_of

ERRORS = ("true_positive", "duplicate", "interaction", "association", "object_box", "human_box", "both_boxes")
"""The types of counted predictions, in the order of the definition; `missed_gt` is about ground truth."""
MISSED = "missed_gt"
HIT, DUPLICATE, INTERACTION, ASSOCIATION, OBJECT_BOX, HUMAN_BOX, BOTH_BOXES = range(len(ERRORS))
NOT_COUNTED = 255
REPAIR_CANDIDATES = 100
"""How many statements of an image in V-COCO can be repairs, the best-scored first (neu-vi/Diag-HOI); otherwise a
detector that scores every action of every person would miss nothing."""
Reading: TypeAlias = Literal["shared", "independent", "released"]
"""How repairs are assigned."""
SIGNATURES: Mapping[Reading, Mapping[str, str]] = {
    "shared": {},
    "independent": {"repairs": "independent"},
    "released": {"released": "yes"},
}
"""The settings of each reading in a row's signature."""
REPAIRED = {"interaction": INTERACTION, "association": ASSOCIATION, "object_box": OBJECT_BOX, "human_box": HUMAN_BOX}
"""The types whose oracle corrects predictions, with their codes."""


@dataclass(frozen=True)
class Typed:
    """The type of each prediction of a batch, and which boxes match which ground truth.

    Predictions with the same boxes (in V-COCO, if they have no object, also with the same action) form a group. A group
    has one type, apart from its true positives and duplicates. error [T]: the type of each prediction, an index of
    ERRORS (NOT_COUNTED if the protocol drops it). group_of [T]: the group of each prediction. type_of_group [P]: the
    type of each group. group, truth [K]: every pair of a group and a ground truth of the same image; same_human,
    same_object, same_pair [K]: whether the group's human box, its object box, or both match that ground truth.
    may_repair [T]: which predictions may be repairs."""

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
    """Which predicted box matches which ground-truth box. some [B + 1]: whether each of B predicted boxes matches any;
    the last entry, for a missing box (-1), is False."""

    def __init__(self, located: Located) -> None:
        boxes = max(int(column.max(initial=-1)) for column in (located.subject, located.object, located.box_match)) + 1
        self.some = np.zeros(boxes + 1, dtype=bool)
        self.some[located.box_match] = True
        truth_boxes = (located.truth_box_match, located.truth_subject, located.truth_object)
        self._width = max(int(boxes.max(initial=0)) for boxes in truth_boxes) + 1
        self._keys = distinct(located.box_match * self._width + located.truth_box_match)

    def __call__(self, box: Ints, truth_box: Ints) -> Bools:
        """Return for each row whether the predicted box and the ground-truth box match."""
        return find(self._keys, box * self._width + truth_box)[1]


def error_types(located: Located) -> Typed:
    """Return the error types of a batch by its protocol's rules; each image is independent of the others."""
    return _type_by_pair(located) if located.person is None else _type_by_person(located)


def _type_by_pair(located: Located) -> Typed:
    """Return the error types by the rules of protocol `diag`: what counts is which boxes a prediction has."""
    matches = _BoxMatches(located)
    # Everything about two boxes is computed once for each pair, not for each of its verbs.
    pair = located.subject * len(matches.some) + located.object
    _, first_of_group, group_of = np.unique(pair, return_index=True, return_inverse=True)
    subject, object_ = located.subject[first_of_group], located.object[first_of_group]
    images = located.image[first_of_group]
    annotated = np.bincount(located.truth_image, minlength=len(located.image_ids))
    check_pairs(annotated[images], images, located.image_ids, "pairs and triplets")
    group, truth = beside(images, located.truth_image)
    person = np.ones(len(first_of_group), dtype=bool)
    person[group_of[located.typed & ~located.counted]] = False
    same_human = matches(subject[group], located.truth_subject[truth]) & person[group]
    same_object = matches(object_[group], located.truth_object[truth])
    same_pair = same_human & same_object
    interacts = np.zeros(len(first_of_group), dtype=bool)
    interacts[group[same_pair]] = True

    right_human, right_object = matches.some[subject] & person, matches.some[object_]
    both = right_human & right_object
    type_of_group = np.select(
        [both & interacts, both, right_human, right_object],
        [INTERACTION, ASSOCIATION, OBJECT_BOX, HUMAN_BOX],
        BOTH_BOXES,
    ).astype(np.uint8)
    error = _each_error(located, type_of_group[group_of])
    return Typed(error, group_of, type_of_group, group, truth, same_human, same_object, same_pair, located.typed)


def _type_by_person(located: Located) -> Typed:
    """Return the error types by person-first rules: what counts is which person a prediction belongs to."""
    assert located.person is not None
    matches = _BoxMatches(located)
    first_of_group, group_of = _statement_groups(located, len(matches.some))
    group, truth = beside(located.image[first_of_group], located.truth_image)
    first_row = first_of_group[group]
    neither_has_object = (located.object[first_row] < 0) & (located.truth_object[truth] < 0)
    same_action = located.interaction[first_row] == located.truth_interaction[truth]
    fit = _StatementFit(
        group,
        of_person=located.person[first_row] == located.truth_subject[truth],  # a person of -1 matches no box
        of_object=_matching_objects(located, matches, first_row, truth) | (neither_has_object & same_action),
        same_action=same_action,
    )
    kind = _person_first_types(located, matches, first_of_group, fit)
    same_pair = fit.of_person & (fit.of_object | neither_has_object)
    error = _each_error(located, kind[group_of])
    may_repair = _foremost_statements(located)
    return Typed(error, group_of, kind, group, truth, fit.of_person, fit.of_object, same_pair, may_repair)


class _StatementFit(NamedTuple):
    """How each group of statements fits each ground truth of its image [K]. group: the group; of_person: whether it
    belongs to the person of the ground truth; of_object: whether it has its object (without an object: also its
    action); same_action: whether it has its action."""

    group: Ints
    of_person: Bools
    of_object: Bools
    same_action: Bools

    def holds_somewhere(self, which: Bools, groups: int) -> Bools:
        """Return whether [P] each of all `groups` has a ground truth in its image for which `which` [K] holds."""
        marked = np.zeros(groups, dtype=bool)
        marked[self.group[which]] = True
        return marked


def _statement_groups(located: Located, boxes: int) -> tuple[Ints, Ints]:
    """Return the first statement [P] of each group, and the group [T] of each statement. So everything is computed once
    for each pair of boxes; a statement without object is identified by its action, too. boxes: a number above that of
    every box."""
    action = np.where(located.object < 0, located.interaction, -1) + 1
    key = (located.subject * boxes + located.object + 1) * (int(action.max(initial=0)) + 1) + action
    _, first_of_group, group_of = np.unique(key, return_index=True, return_inverse=True)
    return first_of_group, group_of


def _matching_objects(located: Located, matches: _BoxMatches, row: Ints, truth: Ints) -> Bools:
    """Return whether [K] a statement and a ground truth both have an object, and the boxes match. row, truth [K]: the
    statements and the ground truths."""
    both_have_object = (located.object[row] >= 0) & (located.truth_object[truth] >= 0)
    matching = np.zeros(len(row), dtype=bool)
    matching[both_have_object] = matches(
        located.object[row[both_have_object]], located.truth_object[truth[both_have_object]]
    )
    return matching


def _person_first_types(
    located: Located, matches: _BoxMatches, first_of_group: Ints, fit: _StatementFit
) -> NDArray[np.uint8]:
    """Return the type [P] of each group by person-first rules, apart from its true positives and duplicates; the first
    rule that holds decides. first_of_group [P]: a statement of each group."""
    assert located.person is not None
    groups = len(first_of_group)
    has_object = located.object[first_of_group] >= 0
    human_right = located.person[first_of_group] >= 0
    pair_right = fit.holds_somewhere(fit.of_person & fit.of_object, groups)
    action_right = fit.holds_somewhere(fit.of_person & fit.same_action, groups)
    object_found = fit.holds_somewhere(fit.of_object, groups)
    return np.select(
        [
            human_right & has_object & pair_right,
            human_right & ~has_object & ~action_right,
            human_right & matches.some[located.object[first_of_group]],
            human_right,
            object_found & matches.some[located.subject[first_of_group]],
            object_found,
        ],
        [INTERACTION, INTERACTION, ASSOCIATION, OBJECT_BOX, ASSOCIATION, HUMAN_BOX],
        BOTH_BOXES,
    ).astype(np.uint8)


def _foremost_statements(located: Located) -> Bools:
    """Return which statements [T] may be repairs: the best-scored REPAIR_CANDIDATES that count of each image."""
    counted = np.flatnonzero(located.counted)
    counted = order_by_class(located.interaction, counted)  # of equal scores the first class
    foremost = np.zeros(len(located.score), dtype=bool)
    foremost[counted[ranks_in_groups(located.image[counted], located.score[counted]) < REPAIR_CANDIDATES]] = True
    return foremost


def _each_error(located: Located, kind: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the type [T] of each prediction. kind [T]: its type if it belongs to no ground truth of its class."""
    error = kind.copy()
    error[located.truth >= 0] = DUPLICATE
    error[located.hit] = HIT
    error[~located.typed] = NOT_COUNTED
    return error


def beside(image: Ints, truth_image: Ints) -> tuple[Ints, Ints]:
    """Return every (row of `image`, row of `truth_image`) of the same image; `truth_image` is ascending."""
    start = np.searchsorted(truth_image, image)
    return expand_runs(start, np.searchsorted(truth_image, image, side="right") - start)


def members(group_of: Ints, groups: int, chosen_groups: Ints) -> tuple[Ints, Ints]:
    """Return (place in `chosen_groups`, row) of every row of each chosen group. group_of [M]: the group of each row, a
    number below `groups`."""
    start = starts_of(np.bincount(group_of, minlength=groups))
    run, entry = expand_runs(start[chosen_groups], np.diff(start)[chosen_groups])
    return run, np.argsort(group_of, kind="stable")[entry]


@dataclass(frozen=True)
class ErrorTypes:
    """The error types and repairs of a batch. error [T]: an index of ERRORS (NOT_COUNTED if the protocol drops the
    prediction); repairs [T]: the ground truth that it repairs, else -1; found [G]: the true positive of each, else -1.
    """

    error: NDArray[np.uint8]
    repairs: Ints
    found: Ints

    @property
    def repair(self) -> Ints:
        """The repair [G] of each ground truth, else -1; under `independent`, which may give it several, one of them."""
        repair = np.full(len(self.found), -1, dtype=np.int64)
        repairing = np.flatnonzero(self.repairs >= 0)
        repair[self.repairs[repairing]] = repairing
        return repair

    @property
    def missed(self) -> Bools:
        """The ground truth [G] with neither a true positive nor a repair."""
        return (self.found < 0) & (self.repair < 0)


def types_of(located: Located, reading: Reading = "shared") -> ErrorTypes:
    """Return the error types and repairs of a batch by its protocol's rules; each image is independent of others."""
    if reading == "released":
        located = replace(located, misnamed=None)
    typed, taken = error_types(located), located.true_positive
    return ErrorTypes(typed.error, _repairs(located, typed, taken, reading), taken)


def _repairs(located: Located, typed: Typed, taken: Ints, reading: Reading) -> Ints:
    """Return the ground truth [T] that each prediction repairs, else -1 (the module's docstring has the rules). taken
    [G]: the true positive of each ground truth, else -1. The k-th ground truth of every image takes its repair in the
    same step, since an earlier one may take a later one's candidate. Within an image, ground truth and predictions of
    one score are ordered by class; those of one class stand as in the record, the order that matching reads, too.
    `released` takes all of them as in the record."""
    as_listed = reading == "released"
    # times 0 if as listed: with one class for all, only the record's order counts
    truth_turn = _turns(located.truth_image, located.truth_interaction * (not as_listed))
    turn = _turns(located.image, located.interaction * (not as_listed))
    repairs = np.full(len(located.score), -1, dtype=np.int64)
    kind = typed.type_of_group[typed.group]
    if reading == "released":
        right_human = np.isin(kind, (INTERACTION, ASSOCIATION, OBJECT_BOX))
        fits, is_free = typed.same_human | (~right_human & typed.same_object), typed.may_repair & ~located.hit
    else:
        shared = [typed.same_pair, typed.same_human | typed.same_object, typed.same_human, typed.same_object]
        fits = np.select([kind == code for code in REPAIRED.values()], shared, False)
        is_free = typed.may_repair & np.isin(typed.error, tuple(REPAIRED.values()))
    truth, candidate = candidates(typed, fits, is_free)

    score, true_positive = located.score[candidate], taken[truth]
    lowest_score = np.append(located.score, -np.inf)[true_positive]  # no true positive is -1: the last entry
    above = (
        (score > lowest_score)
        | ((score == lowest_score) & (turn[candidate] < turn[true_positive]))
        | (true_positive < 0)
    )
    truth, candidate, score = truth[above], candidate[above], score[above]
    waits = np.zeros(len(truth), dtype=bool) if as_listed else _waits(located, typed, truth, candidate, truth_turn)
    taker = truth * len(ERRORS) + typed.error[candidate] if reading == "independent" else truth

    turns = int(truth_turn.max(initial=-1)) + 1
    step = truth_turn[truth] + turns * waits  # those that wait come after all others
    order = np.lexsort((turn[candidate], -score, taker, step))
    truth, candidate, taker = truth[order], candidate[order], taker[order]
    # one step at a time; a taker is what gets at most one repair
    is_served = np.zeros(int(taker.max(initial=-1)) + 1, dtype=bool)
    for start, stop in pairwise([*run_starts(step[order]).tolist(), len(order)]):
        rows = start + np.flatnonzero((repairs[candidate[start:stop]] < 0) & ~is_served[taker[start:stop]])
        if len(rows):
            best = rows[run_starts(taker[rows])]
            is_served[taker[best]] = True
            repairs[candidate[best]] = truth[best]
    return repairs


def _turns(image: Ints, class_: Ints) -> Ints:
    """Return for each row [M] its number in its image, by class and then as the rows stand; images are ascending."""
    order, turn = np.lexsort((class_, image)), np.empty_like(image)
    turn[order] = np.arange(len(image)) - np.searchsorted(image, image)
    return turn


def candidates(typed: Typed, fits: Bools, free: Bools) -> tuple[Ints, Ints]:
    """Return (ground truth, prediction) for each free prediction whose group fits a ground truth, by prediction. fits
    [K]: which pairs of a group and a ground truth fit; free [T]: which predictions may be taken."""
    rows = np.flatnonzero(free)
    start = starts_of(np.bincount(typed.group[fits], minlength=len(typed.type_of_group)))
    group = typed.group_of[rows]
    run, entry = expand_runs(start[group], np.diff(start)[group])
    return typed.truth[fits][entry], rows[run]


def _waits(located: Located, typed: Typed, truth: Ints, candidate: Ints, turn: Ints) -> Bools:
    """Return whether each candidate waits before it repairs its ground truth: it is an association error with another
    verb that could repair a later ground truth of the image with its own verb. turn [G]: the order in the image."""
    is_association = typed.error[candidate] == ASSOCIATION
    action = located.action_of
    own_verb = is_association & (action[located.interaction[candidate]] == action[located.truth_interaction[truth]])
    last_own_turn = np.full(len(located.score), -1, dtype=np.int64)
    np.maximum.at(last_own_turn, candidate[own_verb], turn[truth[own_verb]])
    waits: Bools = is_association & ~own_verb & (last_own_turn[candidate] > turn[truth])
    return waits
