"""The oracles, and the ranked lists after applying one alone or several in order.

An oracle for interaction, association, object box or human box errors turns each repair of its type
(`hoicli.diagnosis.repairs`) into a true positive of the ground truth's class with its own score, drops the true
positive it replaces (a lower score), and drops all other predictions of the type. The oracles for duplicates and both
boxes drop them; missed ground truth leaves the count; false_positive drops everything but true positives;
false_negative counts only the ground truth that is found. (Diag-HOI sections 3.2 and 3.3.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.errors import BOTH_BOXES, DUPLICATE, ERRORS, HIT, MISSED, NOT_COUNTED
from hoicli.diagnosis.repairs import REPAIRED
from hoicli.errors import UsageError, arg
from hoicli.evaluation.listed import Listed
from hoicli.evaluation.pairing import FALSE_POSITIVE, TRUE_POSITIVE
from hoicli.records.kit import Growing, Ints

DROPPED = {"duplicate": DUPLICATE, "both_boxes": BOTH_BOXES}
ORACLES: Mapping[str, str] = {
    "duplicate": "further predictions of a ground truth that is found already are dropped",
    "interaction": "predictions with the right pair of boxes and a wrong verb get a verb of that pair, or are dropped",
    "association": "predictions whose two boxes are right but do not interact get the right pair, or are dropped",
    "object_box": "predictions with the right human box only get an object box and its verb, or are dropped",
    "human_box": "predictions with the right object box only get a human box and its verb, or are dropped",
    "both_boxes": "predictions with neither box right are dropped",
    MISSED: "ground truth that no prediction finds or could find after a fix is left out",
    "false_positive": "everything but the true positives is dropped",
    "false_negative": "only the ground truth that is found is counted",
}
"""Each oracle and what it fixes."""
ASKING = ("none", MISSED, "false_negative")
"""Those that change the ground truth alone, not the ranked lists; and no oracle at all."""
IN_TURN = ("human_box", "object_box", "both_boxes", "association", "duplicate", "interaction", MISSED)
"""The oracles that fix one type of error each, in the order of Diag-HOI section 3.2; together they fix all errors."""

EXPLANATION = f"""
What a prediction is corrected to. A fix changes what its type names: an interaction error becomes a ground truth of its
own pair, both of whose boxes it has; an object box error one with its human box; a human box error one with its object
box; an association error one with one of its boxes. Each ground truth, in annotation order, takes the best-scored
prediction above its own true positive that can be corrected to it and is not taken yet. But an association error waits
while it could still become a later ground truth with its own verb; errors that waited without success go, at the end,
to ground truth that has taken nothing. Ground truth with neither a true positive nor a correction is missed. A
duplicate is dropped, never corrected. The paper fixes each ground-truth pair once; here each triplet of a pair is.
--independent: each oracle on its own, so each may correct another prediction to the same ground truth.
--progressive ORDER: each oracle after the ones before it (Diag-HOI Eq. 4 and 5); all together give mAP 100. ORDER
is a comma-separated list of names, or all: {",".join(IN_TURN)}.
--as-released: what the released code does. Any false positive, duplicates included, is corrected to ground truth with
its human box or, if that box is wrong, with its object box, even to a pair that was never predicted. Classes whose
predictions are all wrong leave the mean. Its oracles together need not give 100.
In V-COCO a statement has the human box of the person it belongs to, and its verb is its action in its role.
What is right, and mAP, are as the protocol has them: diag is the released code, which made the paper's tables;
diag-paper is the paper's text (section 2.3). They differ twice:
- IoU: an overlap of exactly 0.5 is right by diag, wrong by diag-paper, which wants more than 0.5.
- AP: diag reads the precision-recall curve at 11 recalls, diag-paper takes the area under it.
For example, a class has two ground truths, and its one prediction overlaps one of them: with IoU 0.6, AP is 6/11 =
54.55 by diag (6 of the recalls are reached) and 50.00 by diag-paper; with IoU 0.5, 54.55 and 0.00.
For V-COCO, vcoco-s1 takes the area, and 0.5 is right.
--with-no-interaction: the no_interaction classes count, too, on both sides; otherwise they are dropped first.
A class without ground truth left by missed_gt or false_negative leaves the mean: n is how many classes a mean is over.
So these deltas are between means over different classes.
Errors overlap: the deltas do not add up to what is missing to 100."""


def explanation() -> str:
    """What each oracle fixes, one line for each, how it does so, and how to read the deltas."""
    width = max(map(len, ORACLES))
    return "\n".join(f"{name:<{width}}  {text}" for name, text in ORACLES.items()) + "\n" + EXPLANATION


def progressive_order(text: str) -> tuple[str, ...]:
    """The oracles in a comma-separated list, or `all`; raises `UsageError` for an unknown name or one named twice."""
    if text.strip() == "all":
        return IN_TURN
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in IN_TURN]
    if unknown:
        raise UsageError(
            f"{arg('progressive')}: unknown {', '.join(map(repr, unknown))}; choose all, or {', '.join(IN_TURN)}"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{arg('progressive')}: {', '.join(twice)} twice; an oracle is applied once")
    return names


COLUMNS: Mapping[str, type[np.generic]] = {
    "error": np.uint8,
    **dict.fromkeys(("repair", "repaired_class", "replaced", "truth_image", "truth_class"), np.int64),
    **dict.fromkeys(("unlisted", "missed"), np.bool_),
}
"""The errors of a model, and the types of these columns. error [T] of the predictions; unlisted [T]: those that mAP
leaves out, with a type or without. repair [R] the predictions that are corrected, repaired_class [R] their new class,
replaced [R] the true positive that this drops, else -1. truth_image, truth_class [P] of the ground truth; missed [P]:
no prediction finds it, or could find it after a fix."""


@dataclass(frozen=True)
class Applied:
    """What some oracles leave: code [M] the outcome of each prediction that `Corrections` ranks, NOT_COUNTED if it is
    dropped; truth_class, truth_image [P] of the ground truth that counts. Oracles of `ASKING` share the code."""

    code: NDArray[np.uint8]
    truth_class: Ints
    truth_image: Ints


_CORRECTED = len(ERRORS)
"""What is added to a prediction's error where it stands corrected."""


class Corrections:
    """All predictions that mAP counts and, besides them, each one that is corrected, in its new class with its own
    score. They are ranked once; oracles choose among them.

    row [M] of `listed`, ranked: class c has row[bounds[c]:bounds[c + 1]]; equal scores rank by the images' ids. image
    [M] of each. columns: COLUMNS.
    """

    def __init__(self, listed: Listed, columns: Growing, classes: int) -> None:
        self._listed, self._columns = listed, columns
        error, repair = columns["error"], columns["repair"]
        row = np.concatenate([np.arange(len(listed)), repair])
        counted = np.where(columns["unlisted"], -1, listed.interaction)
        ranked = listed.ranked(np.concatenate([counted, columns["repaired_class"]]), classes, row)
        self.row, self.bounds = row[ranked.order], ranked.bounds
        self.image: Ints = listed.image[self.row]
        self._state = np.concatenate([error, error[repair] + _CORRECTED])[ranked.order]
        hits = np.flatnonzero(self._state == HIT)
        at = np.empty(len(listed), dtype=np.int64)
        at[self.row[hits]] = hits
        replacing = columns["replaced"] >= 0
        self._replaced: Ints = at[columns["replaced"][replacing]]
        self._replacing = error[repair[replacing]] + _CORRECTED

    @cached_property
    def place(self) -> Ints:
        """[M] the place of each prediction among those of all classes, by descending score."""
        place = np.empty_like(self.row)
        place[np.argsort(-self._listed.score[self.row], kind="stable")] = np.arange(len(place))
        return place

    def after(self, oracles: Sequence[str]) -> Applied:
        """What is left after the oracles are applied together; false_positive and false_negative are applied alone."""
        columns, outcome = self._columns, _OUTCOMES.copy()
        asked = np.ones(len(columns["missed"]), dtype=bool)
        for oracle in oracles:
            if oracle in DROPPED:
                outcome[DROPPED[oracle]] = NOT_COUNTED
            elif oracle in REPAIRED:
                outcome[REPAIRED[oracle]] = NOT_COUNTED
                outcome[REPAIRED[oracle] + _CORRECTED] = TRUE_POSITIVE
            elif oracle == "false_positive":
                outcome[HIT + 1 :] = NOT_COUNTED
            elif oracle == MISSED:
                asked = ~columns["missed"]
        code = self._plain if set(oracles) <= set(ASKING) else self._code(outcome)
        if "false_negative" in oracles:  # the true positives give the found ground truth
            hits = columns["error"] == HIT
            return Applied(code, self._listed.interaction[hits], self._listed.image[hits])
        return Applied(code, columns["truth_class"][asked], columns["truth_image"][asked])

    @cached_property
    def _plain(self) -> NDArray[np.uint8]:
        """Without an oracle."""
        return self._code(_OUTCOMES)

    def _code(self, outcome: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """[M] the outcomes, given that of each state. What a correction replaces is dropped with it."""
        code: NDArray[np.uint8] = outcome[self._state]
        code[self._replaced[outcome[self._replacing] == TRUE_POSITIVE]] = NOT_COUNTED
        return code


_OUTCOMES = np.full(2 * _CORRECTED, NOT_COUNTED, dtype=np.uint8)
_OUTCOMES[HIT], _OUTCOMES[HIT + 1 : _CORRECTED] = TRUE_POSITIVE, FALSE_POSITIVE
"""Without an oracle, those of each error and of each error corrected."""
