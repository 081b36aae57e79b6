"""Which prediction could find each ground truth after a fix: its repair, which the oracles apply.

A fix changes what its type names, so by its type a prediction can repair

- interaction: the ground truth of its own pair, both of whose boxes it has (it changes the verb);
- object box: ground truth with its human box; human box: ground truth with its object box;
- association: ground truth with one of its boxes.

True positives need no fix, and duplicates and both boxes errors are dropped, so these repair nothing. Each ground truth
of an image, in annotation order, takes the first prediction by descending score that can repair it, stands above its
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
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.errors import (
    ASSOCIATION,
    ERRORS,
    HUMAN_BOX,
    INTERACTION,
    OBJECT_BOX,
    Located,
    Typed,
    error_types,
)
from hoicli.records.kit import Bools, Ints, expanded, run_starts, starts_of

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
class ErrorTypes:
    """error [T] indexes ERRORS (NOT_COUNTED for what the protocol drops); repairs [T] the ground truth that a
    prediction repairs, else -1; found [G] the true positive of each ground truth, else -1."""

    error: NDArray[np.uint8]
    repairs: Ints
    found: Ints

    @property
    def repair(self) -> Ints:
        """[G] the repair of each ground truth, else -1; under `independent`, which may give it several, one of them."""
        repair = np.full(len(self.found), -1, dtype=np.int64)
        repairing = np.flatnonzero(self.repairs >= 0)
        repair[self.repairs[repairing]] = repairing
        return repair

    @property
    def missed(self) -> Bools:
        """[G] ground truth with neither a true positive nor a repair."""
        return (self.found < 0) & (self.repair < 0)


def types_of(found: Located, reading: Reading = "shared") -> ErrorTypes:
    """The error types and repairs of a batch, by its protocol's rules; each image is independent of the others."""
    if reading == "released":
        found = replace(found, misnamed=None)
    typed, taken = error_types(found), found.true_positive
    return ErrorTypes(typed.error, _repairs(found, typed, taken, reading), taken)


def _repairs(found: Located, typed: Typed, taken: Ints, reading: Reading) -> Ints:
    """repairs [T] of `ErrorTypes`; taken [G] are the true positives.

    The k-th ground truth of every image takes its repair in one step: within an image the order is that of annotation,
    since an earlier one may take a later one's candidate.
    """
    repairs = np.full(len(found.score), -1, dtype=np.int64)
    kind = typed.type_of_group[typed.group]
    if reading == "released":
        right_human = np.isin(kind, (INTERACTION, ASSOCIATION, OBJECT_BOX))
        fits, free = typed.same_human | (~right_human & typed.same_object), typed.may_repair & ~found.hit
    else:
        shared = [typed.same_pair, typed.same_human | typed.same_object, typed.same_human, typed.same_object]
        fits = np.select([kind == code for code in REPAIRED.values()], shared, False)
        free = typed.may_repair & np.isin(typed.error, tuple(REPAIRED.values()))
    truth, candidate = candidates(typed, fits, free)

    score, hit = found.score[candidate], taken[truth]
    least = np.append(found.score, -np.inf)[hit]  # the last where there is no true positive
    above = (score > least) | ((score == least) & (candidate < hit)) | (hit < 0)
    truth, candidate, score = truth[above], candidate[above], score[above]
    late = np.zeros(len(truth), dtype=bool) if reading == "released" else _waits(found, typed, truth, candidate)
    taker = truth * len(ERRORS) + typed.error[candidate] if reading == "independent" else truth

    first = np.searchsorted(found.truth_image, found.truth_image)
    turn = np.arange(len(first)) - first  # of each ground truth in its image
    turns = int(turn.max(initial=-1)) + 1
    step = turn[truth] + turns * late
    order = np.lexsort((-score, taker, step))  # of equals the first candidate
    truth, candidate, taker = truth[order], candidate[order], taker[order]
    has_one = np.zeros(int(taker.max(initial=-1)) + 1, dtype=bool)
    for begin, end in pairwise([*run_starts(step[order]).tolist(), len(order)]):
        rows = begin + np.flatnonzero((repairs[candidate[begin:end]] < 0) & ~has_one[taker[begin:end]])
        if len(rows):
            best = rows[run_starts(taker[rows])]
            has_one[taker[best]] = True
            repairs[candidate[best]] = truth[best]
    return repairs


def candidates(typed: Typed, fits: Bools, free: Bools) -> tuple[Ints, Ints]:
    """(ground truth, prediction) of each free prediction whose group fits a ground truth, by prediction; fits [K], free
    [T]."""
    rows = np.flatnonzero(free)
    start = starts_of(np.bincount(typed.group[fits], minlength=len(typed.type_of_group)))
    group = typed.group_of[rows]
    run, entry = expanded(start[group], np.diff(start)[group])
    return typed.truth[fits][entry], rows[run]


def _waits(found: Located, typed: Typed, truth: Ints, candidate: Ints) -> Bools:
    """Whether, for each (ground truth, candidate), the candidate is an association error with another verb that could
    repair a later ground truth of the image with its own verb."""
    loose = typed.error[candidate] == ASSOCIATION
    action = found.action_of
    own = loose & (action[found.interaction[candidate]] == action[found.truth_interaction[truth]])
    last = np.full(len(found.score), -1, dtype=np.int64)
    np.maximum.at(last, candidate[own], truth[own])
    waits: Bools = loose & ~own & (last[candidate] > truth)
    return waits
