"""The prediction that repairs each ground truth: the one that would find it, were its error fixed.

The oracles apply these repairs. A fix changes what its error type names, so by its type a prediction can repair

- interaction: the ground truth of its own pair, both of whose boxes it has (it changes the verb);
- object box: ground truth with its human box; human box: ground truth with its object box;
- association: ground truth with one of its boxes.

True positives need no fix, and duplicates and both boxes errors are dropped, so these repair nothing. The ground truths
of an image take turns by the number of their class, the order of official annotations. Each takes the first prediction
by descending score, then class, that can repair it, ranks above its own true positive and repairs nothing yet. But an
association error waits while it could repair a later ground truth with its own verb. At the end those that waited
without success are assigned, in the same way, to ground truth without a repair. A ground truth without a true positive
or a repair is missed.

All oracles share these repairs: each ground truth is fixed once, each prediction repairs one ground truth, and with all
oracles applied every counted ground truth has its true positive and nothing else is left. (Diag-HOI section 3.2;
preferring the same verb is its "minimal changes necessary".) There are two other readings. `independent`: the oracles
do not share repairs, so a ground truth may have one of each type. `released` is neu-vi/Diag-HOI's code: every
prediction except true positives, duplicates included, repairs ground truth with its human box or, if that box is wrong,
with its object box. So a prediction can repair a pair that was never predicted, and no oracle fixes ground truth
assigned to a duplicate.

In V-COCO matching is person-first: a statement has a ground truth's human box if it belongs to that person, and "its
verb" is the action in the same role. Without an object, the pair of an interaction error is its person alone, who does
another action without an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.error_types import (
    ASSOCIATION,
    ERRORS,
    INTERACTION,
    OBJECT_BOX,
    REPAIRED,
    Typed,
    error_types,
    predictions_that_fit,
)
from hoicli.diagnosis.located import Located
from hoicli.records.kit import Bools, Ints, run_starts

Reading: TypeAlias = Literal["shared", "independent", "released"]
"""How repairs are assigned: by the rules above (`shared`), or by one of the two other readings."""
SIGNATURES: Mapping[Reading, Mapping[str, str]] = {
    "shared": {},
    "independent": {"repairs": "independent"},
    "released": {"released": "yes"},
}
"""The settings of each reading in a row's signature."""


@dataclass(frozen=True)
class ErrorTypes:
    """The error types and repairs of a batch. error [T]: the type of each prediction, an index of ERRORS (NOT_COUNTED
    if the protocol drops it); repairs [T]: the ground truth that it repairs, else -1; true_positive [G]: the prediction
    that is the true positive of each ground truth, else -1."""

    error: NDArray[np.uint8]
    repairs: Ints
    true_positive: Ints

    @property
    def repair(self) -> Ints:
        """The prediction [G] that repairs each ground truth, else -1; of several (by `independent`) one."""
        repair = np.full(len(self.true_positive), -1, dtype=np.int64)
        repairing = np.flatnonzero(self.repairs >= 0)
        repair[self.repairs[repairing]] = repairing
        return repair

    @property
    def missed(self) -> Bools:
        """Whether each ground truth [G] has neither a true positive nor a repair."""
        return (self.true_positive < 0) & (self.repair < 0)


def types_of(located: Located, reading: Reading = "shared") -> ErrorTypes:
    """Return the error type of each prediction of a batch of matched images, and the ground truth that it repairs: the
    one whose true positive it becomes when an oracle corrects its error."""
    if reading == "released":  # the released diagnosis has no type for predictions whose subject is no person
        located = replace(located, misnamed=None)
    typed = error_types(located)
    return ErrorTypes(typed.error, _repairs(located, typed, reading), located.true_positive)


def _repairs(located: Located, typed: Typed, reading: Reading) -> Ints:
    """Return [T] the ground truth that each prediction repairs, else -1: the one whose true positive it becomes when an
    oracle corrects its error. The module's docstring has the rules.

    The ground truths of an image take turns, by class and then as they stand in the record (by `released`, only as they
    stand in the record). Each takes the best-scored prediction that is left for it, equal scores in the same order."""
    as_listed = reading == "released"
    # times 0 if as listed: with one class for all, only the record's order counts
    truth_turn = _turns(located.truth_image, located.truth_interaction * (not as_listed))
    turn = _turns(located.image, located.interaction * (not as_listed))
    truth, candidate = _possible_repairs(located, typed, turn, as_listed=as_listed)
    waits = np.zeros(len(truth), dtype=bool) if as_listed else _waits(located, typed, truth, candidate, truth_turn)
    # A taker gets at most one repair: a ground truth, or under `independent` each ground truth for each error type.
    taker = truth * len(ERRORS) + typed.error[candidate] if reading == "independent" else truth

    # The k-th ground truths of all images take their repairs in one step, since those of one image compete.
    turns = int(truth_turn.max(initial=-1)) + 1
    step = truth_turn[truth] + turns * waits  # those that wait come after all others
    order = np.lexsort((turn[candidate], -located.score[candidate], taker, step))
    truth, candidate, taker = truth[order], candidate[order], taker[order]
    repairs = np.full(len(located.score), -1, dtype=np.int64)
    is_served = np.zeros(int(taker.max(initial=-1)) + 1, dtype=bool)
    for start, stop in pairwise([*run_starts(step[order]).tolist(), len(order)]):
        rows = start + np.flatnonzero((repairs[candidate[start:stop]] < 0) & ~is_served[taker[start:stop]])
        if len(rows):
            best = rows[run_starts(taker[rows])]
            is_served[taker[best]] = True
            repairs[candidate[best]] = truth[best]
    return repairs


def _possible_repairs(located: Located, typed: Typed, turn: Ints, *, as_listed: bool) -> tuple[Ints, Ints]:
    """Return every (ground truth, prediction) of which the prediction could repair the ground truth by its type and
    ranks above the true positive. turn [T]: orders equal scores; as_listed: by the released code."""
    type_of_group = typed.type_of_group[typed.group]
    if as_listed:  # all but true positives repair what has their human box, or if that is wrong their object box
        right_human = np.isin(type_of_group, (INTERACTION, ASSOCIATION, OBJECT_BOX))
        fits, may_repair = typed.same_human | (~right_human & typed.same_object), typed.may_repair & ~located.hit
    else:
        # what must match for each type, in the order of REPAIRED
        shared = [typed.same_pair, typed.same_human | typed.same_object, typed.same_human, typed.same_object]
        fits = np.select([type_of_group == code for code in REPAIRED.values()], shared, False)
        may_repair = typed.may_repair & np.isin(typed.error, tuple(REPAIRED.values()))
    truth, candidate = predictions_that_fit(typed, fits, may_repair)
    score, true_positive = located.score[candidate], located.true_positive[truth]
    hit_score = np.append(located.score, -np.inf)[true_positive]  # without a true positive (-1) the last entry
    ranks_above = (
        (score > hit_score) | ((score == hit_score) & (turn[candidate] < turn[true_positive])) | (true_positive < 0)
    )
    return truth[ranks_above], candidate[ranks_above]


def _turns(image: Ints, class_: Ints) -> Ints:
    """Return [M] the number of each row within its image, from 0, by class and then as rows stand. Images ascend."""
    order, turn = np.lexsort((class_, image)), np.empty_like(image)  # sorted by image, then by class
    turn[order] = np.arange(len(image)) - np.searchsorted(image, image)
    return turn


def _waits(located: Located, typed: Typed, truth: Ints, candidate: Ints, turn: Ints) -> Bools:
    """Return [K] whether each prediction waits before it may repair the ground truth beside it: it is an association
    error with another verb, and could repair a later ground truth of the image that has its own verb. turn [G]: the
    number of each ground truth within its image."""
    is_association = typed.error[candidate] == ASSOCIATION
    action = located.action_of
    same_verb = is_association & (action[located.interaction[candidate]] == action[located.truth_interaction[truth]])
    # for each prediction, the last turn of a ground truth with its verb
    last_turn = np.full(len(located.score), -1, dtype=np.int64)
    np.maximum.at(last_turn, candidate[same_verb], turn[truth[same_verb]])
    waits: Bools = is_association & ~same_verb & (last_turn[candidate] > turn[truth])
    return waits
