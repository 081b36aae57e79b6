"""The oracles, and the ranked lists after applying one alone or several in order.

An oracle for interaction, association, object box or human box errors turns each repair of its type
(`hoicli.diagnosis.repairs`) into a true positive of the ground truth's class with its own score, drops the true
positive it replaces (a lower score), and drops all other predictions of the type. The oracles for duplicates and both
boxes drop them; missed ground truth leaves the count; false_positive drops everything but true positives;
false_negative counts only the ground truth that is found. (Diag-HOI sections 3.2 and 3.3.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.errors import BOTH_BOXES, DUPLICATE, HIT, MISSED
from hoicli.diagnosis.repairs import REPAIRED
from hoicli.errors import UsageError, arg
from hoicli.evaluation.listed import Listed
from hoicli.records.kit import Bools, Floats, Ints

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


@dataclass(frozen=True)
class ErrorColumns:
    """The errors of a model in some images.

    listed: the T predictions; unseen_ids: images of ground truth alone, which come after those of the predictions.
    error [T] of the predictions; unlisted [T]: those that mAP leaves out, with a type or without. repair [R] the
    predictions that are corrected, repaired_class [R] their new class, replaced [R] the true positive that this drops,
    else -1. truth_image, truth_class, missed, unseen [P] of the ground truth: missed has neither a true
    positive nor a repair; unseen is missed in an image without counted predictions.
    """

    listed: Listed
    unseen_ids: list[str]
    error: NDArray[np.uint8]
    unlisted: Bools
    repair: Ints
    repaired_class: Ints
    replaced: Ints
    truth_image: Ints
    truth_class: Ints
    missed: Bools
    unseen: Bools

    @cached_property
    def image_ids(self) -> list[str]:
        """[N] all images."""
        return [*self.listed.image_ids, *self.unseen_ids]

    @cached_property
    def image(self) -> Ints:
        """[T] the image of each."""
        return self.listed.image


COLUMNS: Mapping[str, type[np.generic]] = {
    "error": np.uint8,
    **dict.fromkeys(("repair", "repaired_class", "replaced", "truth_image", "truth_class"), np.int64),
    **dict.fromkeys(("unlisted", "missed", "unseen"), np.bool_),
}
"""The columns of `ErrorColumns` besides those of the predictions, and their types."""


@dataclass(frozen=True)
class Applied:
    """The lists after some oracles: interaction, hit, image, score [T] of the counted predictions, in ranking order;
    truth_class, truth_image [P] of the counted ground truth. Oracles of `ASKING` share the columns of the lists."""

    interaction: NDArray[Any]
    hit: Bools
    image: Ints
    score: Floats
    truth_class: Ints
    truth_image: Ints


class Corrections:
    """All predictions of a model, ranked once; `after` applies oracles to them. Equal scores rank by the images' ids.
    missed [P]: the ground truth that no prediction finds or could find after a fix.
    """

    def __init__(self, errors: ErrorColumns, missed: Bools) -> None:
        self._errors, self._missed = errors, missed
        count = len(errors.listed.score)
        kind = np.int32 if count < 1 << 31 else np.int64
        # One number of (class, rank among all) for every prediction: kept predictions stay in order, and the few
        # repairs are inserted where their number belongs.
        self._place: NDArray[Any] = np.empty(count, dtype=kind)
        self._place[errors.listed.by_score()] = np.arange(count, dtype=kind)
        classes = int(errors.listed.interaction.max(initial=-1)) + 1
        self._ranked = errors.listed.ranked(errors.listed.interaction, classes).order
        self._repaired_key = self._key(errors.repair, errors.repaired_class)

    def _key(self, rows: Ints, classes: NDArray[Any]) -> Ints:
        """[M] the number of predictions in a class."""
        key: Ints = classes.astype(np.int64) * len(self._place) + self._place[rows]
        return key

    def _before(self, rows: Ints, keys: Ints) -> Ints:
        """[K] how many of some predictions, as they rank, come before each key."""
        before: Ints = np.searchsorted(self._key(rows, self._errors.listed.interaction[rows]), keys)
        return before

    def after(self, oracles: Sequence[str]) -> Applied:
        """The lists after the oracles are applied together; false_positive and false_negative are applied alone."""
        errors = self._errors
        error, type_of_repair = errors.error, errors.error[errors.repair]
        keep = ~errors.unlisted
        fixed = np.zeros(len(type_of_repair), dtype=bool)
        asked = np.ones(len(errors.truth_class), dtype=bool)
        for oracle in oracles:
            if oracle in DROPPED:
                keep &= error != DROPPED[oracle]
            elif oracle in REPAIRED:
                of_type = type_of_repair == REPAIRED[oracle]
                former = errors.replaced[of_type]
                keep &= error != REPAIRED[oracle]
                keep[former[former >= 0]] = False
                fixed |= of_type
            elif oracle == MISSED:
                asked &= ~self._missed
            elif oracle == "false_positive":
                keep &= error == HIT
        left = self._plain if set(oracles) <= set(ASKING) else self._lists(keep, np.flatnonzero(fixed))
        if "false_negative" in oracles:  # the true positives give the found ground truth
            hits = error == HIT
            return replace(left, truth_class=errors.listed.interaction[hits], truth_image=errors.image[hits])
        return replace(left, truth_class=errors.truth_class[asked], truth_image=errors.truth_image[asked])

    @cached_property
    def _plain(self) -> Applied:
        """Without an oracle."""
        return self._lists(~self._errors.unlisted, np.zeros(0, dtype=np.int64))

    def _lists(self, keep: Bools, fixed: Ints) -> Applied:
        """The ranked lists of the kept predictions, with the corrected ones in their new places; all ground truth."""
        errors = self._errors
        rows = self._ranked[keep[self._ranked]]
        order = fixed[np.argsort(self._repaired_key[fixed])]
        at = self._before(rows, self._repaired_key[order])
        listed = np.insert(rows, at, errors.repair[order])
        classes = np.asarray(errors.repaired_class)[order]
        kind = np.promote_types(errors.listed.interaction.dtype, classes.dtype)
        return Applied(
            np.insert(errors.listed.interaction[rows].astype(kind, copy=False), at, classes),
            np.insert(errors.error[rows] == HIT, at, True),
            errors.image[listed],
            errors.listed.score[listed],
            errors.truth_class,
            errors.truth_image,
        )
