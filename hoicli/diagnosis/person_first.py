"""The error types of V-COCO, whose official matching is person-first (scenario 1).

A statement belongs to the annotated person its subject overlaps most; its human box is right with IoU >= 0.5 there. An
object box is right for a ground truth with IoU >= 0.5; labels are ignored. A statement has one type, the first of:

1. true positive; duplicate (right, but a higher score has that ground truth);
2. the human right: interaction, where the person is annotated with that very object in another action or role; else
   association, where the object box lies on some other ground-truth box; else object box;
3. the human wrong, the object box that of some annotated role of the image: association, where the human box lies on a
   ground-truth box (which is no person); else human box;
4. both boxes.

A statement may say that its role has no object, and so may the annotation. Such a statement has no second box to be
right or wrong, so the annotation decides the type:

- no object predicted, one annotated: object box, since the action is right and its object was not found;
- no object predicted, and the person, who is right, does not do the action: interaction, since the action is all that
  the statement claims;
- no object predicted, the human wrong: human box (association, as in 3) where somebody in the image does the action
  with no object, since the right human would make it true; else both boxes;
- an object predicted, none annotated: as any wrong object (interaction, association or object box).

Repairs are those of `hoicli.diagnosis.repairs` with these definitions of a right box. Only the 100 best counted
statements of an image can be repairs (neu-vi/Diag-HOI); otherwise a detector that scores every action of every person
would miss nothing.

neu-vi/Diag-HOI map_improvement_vcoco.py compares the object box only with that of the best person for this action and
role. So it finds interaction errors only if no object is predicted, and calls a right object with a wrong action an
association error; the paper defines both as above.
"""

from __future__ import annotations

import numpy as np

from hoicli.diagnosis.errors import (
    ASSOCIATION,
    BOTH_BOXES,
    HUMAN_BOX,
    INTERACTION,
    OBJECT_BOX,
    BoxMatches,
    Located,
    Typed,
    beside,
    each_error,
)
from hoicli.records.kit import Bools, best_of_groups

REPAIR_CANDIDATES = 100
"""How many statements of an image can be repairs, the best-scored first."""


def person_first_types(found: Located) -> Typed:
    """The error types of a batch with `person`; each image is independent of the others."""
    assert found.person is not None
    boxes = max(int(column.max(initial=-1)) for column in (found.subject, found.object, found.box_match)) + 1
    lies_on_truth = np.zeros(boxes + 1, dtype=bool)
    lies_on_truth[found.box_match] = True  # the last, for no object, stays false

    # Everything is computed once for each pair of boxes; a statement without object is identified by its action, too.
    no_object = found.object < 0
    action = np.where(no_object, found.interaction, -1) + 1
    key = (found.subject * (boxes + 1) + found.object + 1) * (int(action.max(initial=0)) + 1) + action
    _, first, group_of = np.unique(key, return_index=True, return_inverse=True)
    group, truth = beside(found.image[first], found.truth_image)
    row, empty = first[group], no_object[first]
    of_person = found.person[row] == found.truth_subject[truth]  # -1 is nobody's
    same_action = found.interaction[row] == found.truth_interaction[truth]
    truth_empty = found.truth_object[truth] < 0
    both, neither = ~empty[group] & ~truth_empty, empty[group] & truth_empty
    of_object = np.zeros(len(row), dtype=bool)
    of_object[both] = BoxMatches(found)(found.object[row[both]], found.truth_object[truth[both]])
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
            human & lies_on_truth[found.object[first]],
            human,
            object_found & lies_on_truth[found.subject[first]],
            object_found,
        ],
        [INTERACTION, INTERACTION, ASSOCIATION, OBJECT_BOX, ASSOCIATION, HUMAN_BOX],
        BOTH_BOXES,
    ).astype(np.uint8)
    pair = of_person & (of_object | neither)
    counted = np.flatnonzero(found.counted)
    may_repair = np.zeros(len(found.score), dtype=bool)
    may_repair[counted[best_of_groups(found.image[counted], found.score[counted], REPAIR_CANDIDATES)]] = True
    error = each_error(found, kind[group_of])
    return Typed(error, group_of, kind, group, truth, of_person, of_object, pair, may_repair)
