"""Which verb, and which object, a detector says in place of the true one.

A pair of boxes may truly have several verbs, so a list of predictions has no single answer to put into a confusion
matrix. The question asked here is: of the predictions of this pair, which comes first (by score) once the pair's other
true verbs are set aside? A verb that is right for the pair is never a confusion.

Verbs, for each ground-truth triplet g (a pair with verb v), from the predictions that the protocol counts:

- right for g: its true positive. Wrong for g: interaction errors (`diagnosis.error_types`) whose two boxes are g's.
  Others, such as true positives of the pair's other verbs and duplicates, say nothing about g.
- g is in the cell (v, the verb of the first of these predictions), or in (v, nothing) if there is none. So every
  triplet is in one cell, and a wrong verb below the right one is no confusion.
- A prediction that is on no annotated pair (association, object box, human box, both boxes) is in (nothing, its verb).

Objects, for each annotated pair of boxes, whatever the verbs: right are the predictions on the pair; wrong are those
with its human box whose object box overlaps the pair's object enough but has another label (and lies on no annotated
box of its own label). The pair is in the cell (its label, the label of the first). A predicted pair whose object box is
wrong without being such is in (nothing, its label).

Equal scores are ordered by class, and within a class as in the record. In V-COCO names are of action-roles, and there
are no objects to confuse: its protocols do not compare labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from hoicli.diagnosis.error_types import (
    ASSOCIATION,
    BOTH_BOXES,
    INTERACTION,
    NOT_COUNTED,
    OBJECT_BOX,
    Typed,
    error_types,
    members,
    predictions_that_fit,
)
from hoicli.diagnosis.located import Located
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import Protocol
from hoicli.records.kit import Bools, Ints, run_starts, starts_of
from hoicli.records.scenes import class_actions
from hoicli.vocabulary.labels import Vocabulary

NOTHING = -1
"""Stands for a name where nothing is annotated, or nothing is predicted."""
Meets = Callable[[Ints, Ints], Bools]
"""Takes numbers of predicted and of annotated boxes [M]; returns [M] whether the two overlap enough, labels aside."""


@dataclass(frozen=True)
class KindConfusions:
    """The confusions of verbs, or of objects, in some images, as columns. Names are numbers, NOTHING for none.

    true, predicted [U]: the annotated and the predicted name of each unit, which is a ground-truth triplet (for verbs)
    or an annotated pair of boxes (for objects); they name the unit's cell. of_truth [G]: the unit that each ground
    truth belongs to. stray_name [L]: the names predicted where nothing is annotated, in the cells (NOTHING, name).

    The other columns say what the repair of each cell does. Prediction fix_row [F] becomes the true positive of ground
    truth fix_truth, in the cell of unit fix_unit. Prediction drop_row [D], which has the boxes of unit drop_unit, is
    dropped in that unit's cell; prediction stray_row [S] in the cell (NOTHING, name_of_stray). Ground truth of a unit
    for which nothing is predicted no longer counts."""

    true: Ints
    predicted: Ints
    of_truth: Ints
    fix_row: Ints
    fix_truth: Ints
    fix_unit: Ints
    drop_row: Ints
    drop_unit: Ints
    stray_name: Ints
    stray_row: Ints
    name_of_stray: Ints


@dataclass(frozen=True)
class ConfusionColumns:
    """The confusions of a model in some images.

    counted, hit [T]: whether each prediction counts, and whether it is a true positive; truth_class [G]: the class of
    each ground truth; true_positive [G]: its true positive, else -1. kinds: "verb" and perhaps "object"."""

    counted: Bools
    hit: Bools
    truth_class: Ints
    true_positive: Ints
    kinds: Mapping[str, KindConfusions]

    @classmethod
    def join(cls, parts: Sequence[ConfusionColumns]) -> ConfusionColumns:
        """Return the confusions of several groups of images as one. parts: the confusions of each group, at least one;
        predictions and ground truths are renumbered in the order of the parts."""
        rows = starts_of([len(part.hit) for part in parts]).tolist()
        truths = starts_of([len(part.truth_class) for part in parts]).tolist()
        # These columns hold numbers of predictions, of ground truths or of units. To them is added how many of these
        # the parts before have; the last item of `rows` and the like is the total, which no part needs.
        starts = {"fix_truth": truths, **dict.fromkeys(("true_positive", "fix_row", "drop_row", "stray_row"), rows)}

        def join_column(name: str, owners: Sequence[object], starts: Mapping[str, list[int]] = starts) -> Any:
            """Return the columns of this name joined. owners: what has the column, one object for each part."""
            columns = [getattr(owner, name) for owner in owners]
            if name in starts:
                columns = [
                    np.where(numbers < 0, numbers, numbers + start)  # -1 stands for none
                    for numbers, start in zip(columns, starts[name], strict=False)
                ]
            return np.concatenate(columns)

        kinds = {}
        for kind in parts[0].kinds:
            of_kind = [part.kinds[kind] for part in parts]
            units = starts_of([len(part.true) for part in of_kind]).tolist()
            starts_of_kind = starts | dict.fromkeys(("of_truth", "fix_unit", "drop_unit"), units)
            kinds[kind] = KindConfusions(
                **{column.name: join_column(column.name, of_kind, starts_of_kind) for column in fields(KindConfusions)}
            )
        names = ("counted", "hit", "truth_class", "true_positive")
        return cls(**{name: join_column(name, parts) for name in names}, kinds=kinds)

    @classmethod
    def from_batch(cls, located: Located, vocabulary: Vocabulary, meets: Meets | None) -> ConfusionColumns:
        """Return the confusions of a batch of matched images. meets: whether boxes overlap enough; None if confusions
        of objects are not wanted, or the protocol does not compare labels."""
        # Predictions whose subject is no person are left out: mAP does not count them, so they confuse nothing.
        located = replace(located, misnamed=None)
        typed = error_types(located)
        kinds = {"verb": verb_confusions(located, typed)}
        if meets is not None:
            object_of = [vocabulary.object_ids[name] for _, name in vocabulary.interactions]
            kinds["object"] = object_confusions(located, typed, meets, np.array(object_of, dtype=np.int64))
        return cls(located.counted, located.hit, located.truth_interaction, located.true_positive, kinds)

    @classmethod
    def unseen(cls, truth: GroundTruth, protocol: Protocol, images_seen: Iterable[str]) -> ConfusionColumns:
        """Return the confusions of the images without predictions (not among `images_seen`): all is missed."""
        scenes, (image_ids, image, rows) = truth.scenes, truth.find_unseen(protocol, images_seen)
        none, never = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        located = Located(  # matched images with ground truth and no predictions
            image_ids=image_ids,
            image=none,
            subject=none,
            object=none,
            interaction=none,
            truth=none,
            score=np.zeros(0),
            counted=never,
            hit=never,
            truth_image=image,
            truth_subject=scenes.subject[rows],
            truth_object=scenes.object[rows],
            truth_interaction=scenes.interaction[rows],
            box_match=none,
            truth_box_match=none,
            action_of=class_actions(truth.vocabulary),
        )
        # There is no predicted box, so this function of boxes is only ever called with empty columns.
        return cls.from_batch(located, truth.vocabulary, None if protocol.person_first else lambda box, _: box < 0)


def _best_candidates(unit: Ints, row: Ints, located: Located, units: int) -> Ints:
    """Return [units] which candidate of each unit has the highest score, as an index into `unit` and `row`; -1 for a
    unit without any. Equal scores are ordered by class, then by row.

    unit, row [K]: the candidates: prediction row[k] may be what is predicted of unit[k] (a ground-truth triplet, or a
    pair of boxes); units: how many units there are."""
    # lexsort sorts by its last key first: by unit, then by descending score
    order = np.lexsort((row, located.interaction[row], -located.score[row], unit))
    best = order[run_starts(unit[order])]
    best_of_unit = np.full(units, -1, dtype=np.int64)
    best_of_unit[unit[best]] = best
    return best_of_unit


def _first_occurrences(first_column: Ints, other: Ints) -> Ints:
    """Return the positions, ascending, at which a combination of values occurs for the first time in two columns."""
    _, first = np.unique(first_column * (int(other.max(initial=0)) + 1) + other, return_index=True)
    return np.sort(first)


class _Units(NamedTuple):
    """The units that are counted in the cells of a confusion matrix: ground-truth triplets, or annotated pairs.

    true, predicted [U]: the annotated and the predicted name of each unit, NOTHING if none is predicted; is_confused
    [U]: whether its best prediction is wrong for it; of_truth [G]: the unit that each ground truth belongs to."""

    true: Ints
    predicted: Ints
    is_confused: Bools
    of_truth: Ints


def verb_confusions(located: Located, typed: Typed) -> KindConfusions:
    """Return the confusions of verbs in a batch: the verb predicted of each ground-truth triplet's pair of boxes."""
    verb = located.action_of[located.interaction]  # of each prediction
    # truth, wrong: each triplet with each interaction error on its two boxes
    truth, wrong = predictions_that_fit(typed, typed.same_pair, typed.error == INTERACTION)
    units, best_row = _verb_units(located, truth, wrong)
    # A triplet's best, wrong, prediction becomes its true positive; of several triplets in one cell with the same best
    # prediction, only the first one gets it.
    confused = np.flatnonzero(units.is_confused)
    confused = confused[_first_occurrences(best_row[confused], units.true[confused])]
    # Every wrong prediction of the verb that a triplet is confused with is dropped, once for each cell.
    dropped = np.flatnonzero(units.is_confused[truth] & (verb[wrong] == units.predicted[truth]))
    dropped = dropped[_first_occurrences(wrong[dropped], units.true[truth[dropped]])]
    # Strays are on no annotated pair: the types ASSOCIATION to BOTH_BOXES. Each is counted, and its repair drops it.
    stray = np.flatnonzero((typed.error >= ASSOCIATION) & (typed.error <= BOTH_BOXES))
    return KindConfusions(
        true=units.true,
        predicted=units.predicted,
        of_truth=units.of_truth,
        fix_row=best_row[confused],
        fix_truth=confused,
        fix_unit=confused,  # a unit of verbs is a ground-truth triplet
        drop_row=wrong[dropped],
        drop_unit=truth[dropped],
        stray_name=verb[stray],
        stray_row=stray,
        name_of_stray=verb[stray],
    )


def _verb_units(located: Located, truth: Ints, wrong: Ints) -> tuple[_Units, Ints]:
    """Return the ground-truth triplets as units, and [U] the best prediction of each, its true positive or a wrong one,
    -1 for none. truth, wrong [K]: a triplet, and a prediction that is wrong for it."""
    hits = np.flatnonzero(located.hit)
    unit, row = np.concatenate([located.truth[hits], truth]), np.concatenate([hits, wrong])
    best = _best_candidates(unit, row, located, len(located.truth_image))
    # A unit without a prediction has best = -1, so it takes the value appended at the end.
    predicted_verb = np.append(located.action_of[located.interaction[row]], NOTHING)[best]
    is_confused = np.append(~located.hit[row], False)[best]
    true_verb = located.action_of[located.truth_interaction]
    units = _Units(true_verb, predicted_verb, is_confused, of_truth=np.arange(len(true_verb)))
    return units, np.append(row, -1)[best]


def object_confusions(located: Located, typed: Typed, meets: Meets, object_of: Ints) -> KindConfusions:
    """Return the confusions of objects in a batch: which object is predicted of each annotated pair of boxes instead of
    its own. meets: whether boxes overlap enough, whatever their labels; object_of [C]: the object of each class."""
    predicted = _predicted_pairs(located, typed, object_of)
    # one unit for each pair of boxes, however many triplets (ground truths) it has
    pairs = np.stack([located.truth_subject, located.truth_object])
    _, first_truth, pair_of_truth = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    pair_of_truth = pair_of_truth.reshape(-1)
    true_label = object_of[located.truth_interaction[first_truth]]
    claims = _object_claims(located, typed, meets, predicted, pair_of_truth)
    units = _object_units(located, predicted, claims, true_label, pair_of_truth)

    # Every prediction that names the wrong object which its annotated pair (`unit`) is confused with.
    has_its_label = predicted.label[claims.group] == units.predicted[claims.unit]
    confusing_claim = np.flatnonzero(claims.is_wrong & units.is_confused[claims.unit] & has_its_label)
    run, entry = members(predicted.group, len(predicted.best), claims.group[confusing_claim])
    row, unit = predicted.counted[entry], claims.unit[confusing_claim][run]
    fix_row, fix_truth, fix_unit = _object_fixes(located, row, unit, units)
    # once for each cell: a prediction may confuse several pairs that have the same object
    distinct = _first_occurrences(row, units.true[unit])
    # The predicted pairs whose wrong object is confused with no annotated one, each with its predictions.
    stray = np.flatnonzero(predicted.is_astray & ~np.isin(np.arange(len(predicted.best)), claims.group))
    run, entry = members(predicted.group, len(predicted.best), stray)
    return KindConfusions(
        true=units.true,
        predicted=units.predicted,
        of_truth=units.of_truth,
        fix_row=fix_row,
        fix_truth=fix_truth,
        fix_unit=fix_unit,
        drop_row=row[distinct],
        drop_unit=unit[distinct],
        stray_name=predicted.label[stray],
        stray_row=predicted.counted[entry],
        name_of_stray=predicted.label[stray][run],
    )


class _PredictedPairs(NamedTuple):
    """The predicted pairs of boxes, which are the groups of `Typed`.

    counted, group [N]: the predictions that count, and the pair of each. best [P]: the counted prediction of each pair
    with the highest score, -1 for none; label [P]: the object that it names, NOTHING for none; is_astray [P]: whether
    the pair has such a prediction and its object box is wrong."""

    counted: Ints
    group: Ints
    best: Ints
    label: Ints
    is_astray: Bools


class _Claims(NamedTuple):
    """Every predicted pair that, by its boxes, says which object an annotated pair has. unit, group [K]: the annotated
    and the predicted pair, each combination once; is_wrong [K]: whether the predicted object is not the annotated one.
    """

    unit: Ints
    group: Ints
    is_wrong: Bools


def _predicted_pairs(located: Located, typed: Typed, object_of: Ints) -> _PredictedPairs:
    """Return the predicted pairs of boxes of a batch, with the best prediction and the object of each."""
    counted = np.flatnonzero(typed.error != NOT_COUNTED)
    group = typed.group_of[counted]
    position = _best_candidates(group, counted, located, len(typed.type_of_group))
    # A pair without a counted prediction has position -1, so it takes the value appended at the end.
    best = np.append(counted, -1)[position]
    label = np.append(object_of[located.interaction[counted]], NOTHING)[position]
    is_astray = (position >= 0) & np.isin(typed.type_of_group, (OBJECT_BOX, BOTH_BOXES))
    return _PredictedPairs(counted, group, best, label, is_astray)


def _object_claims(
    located: Located, typed: Typed, meets: Meets, predicted: _PredictedPairs, pair_of_truth: Ints
) -> _Claims:
    """Return which predicted pairs are right, and which are wrong, for each annotated pair. Right ones have both of its
    boxes; wrong ones have its human box and an object box that overlaps its own but has another label. meets: whether
    boxes overlap enough, labels aside; pair_of_truth [G]: the annotated pair of each ground truth."""
    # Both hold positions in the list of every predicted pair with every ground truth of its image (`Typed.group`).
    right_match = np.flatnonzero(typed.same_pair & (predicted.best >= 0)[typed.group])
    same_human_match = np.flatnonzero(typed.same_human & predicted.is_astray[typed.group])
    box = located.object[predicted.best[typed.group[same_human_match]]]
    wrong_match = same_human_match[meets(box, located.truth_object[typed.truth[same_human_match]])]
    match = np.concatenate([right_match, wrong_match])
    unit, group = pair_of_truth[typed.truth[match]], typed.group[match]
    distinct = _first_occurrences(unit, group)
    return _Claims(unit[distinct], group[distinct], is_wrong=distinct >= len(right_match))


def _object_units(
    located: Located, predicted: _PredictedPairs, claims: _Claims, true_label: Ints, pair_of_truth: Ints
) -> _Units:
    """Return the annotated pairs as units; what is predicted of each is the object of its best-scored claim. true_label
    [U]: the annotated object; pair_of_truth [G]: the annotated pair of each ground truth."""
    best = _best_candidates(claims.unit, predicted.best[claims.group], located, len(true_label))
    # A unit without a claim has best = -1, so it takes the value appended at the end.
    is_confused = np.append(claims.is_wrong, False)[best]
    best_label = np.append(predicted.label[claims.group], NOTHING)[best]
    predicted_label = np.where(is_confused | (best < 0), best_label, true_label)
    return _Units(true_label, predicted_label, is_confused, of_truth=pair_of_truth)


def _object_fixes(located: Located, row: Ints, unit: Ints, units: _Units) -> tuple[Ints, Ints, Ints]:
    """Return (the predictions that become true positives, the ground truth of each, and its unit), each once for each
    cell. row, unit: the predictions that name a wrong object, and the annotated pair that each is on. A ground truth
    takes the best of those on its pair that name its verb, if that one ranks above its true positive."""
    # each prediction (by its position, `entry`) with every ground truth of the annotated pair it is on
    entry, truth = members(units.of_truth, int(units.of_truth.max(initial=-1)) + 1, unit)
    action = located.action_of
    same_action = action[located.interaction[row[entry]]] == action[located.truth_interaction[truth]]
    truth, entry = truth[same_action], entry[same_action]
    hits = np.flatnonzero(located.hit)
    candidate = np.concatenate([hits, row[entry]])
    best = _best_candidates(np.concatenate([located.truth[hits], truth]), candidate, located, len(units.of_truth))
    # The true positives come first among the candidates: a ground truth is fixed if its best one comes after them.
    fixed_truth = np.flatnonzero(best >= len(hits))
    entry = entry[best[fixed_truth] - len(hits)]
    row, unit = row[entry], unit[entry]
    distinct = _first_occurrences(row, units.true[unit])
    return row[distinct], fixed_truth[distinct], unit[distinct]
