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
are no objects to confuse: its protocols do not compare labels.
"""

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
    candidates,
    error_types,
    members,
)
from hoicli.diagnosis.located import Located, actions
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import Protocol
from hoicli.records.kit import Bools, Ints, run_starts, starts_of
from hoicli.vocabulary.labels import Vocabulary

NOTHING = -1
Meets = Callable[[Ints, Ints], Bools]
"""Whether predicted boxes overlap annotated ones enough, row by row, whatever their labels."""


@dataclass(frozen=True)
class Said:
    """One kind of confusion in some images, as columns. Names are numbers, NOTHING for none.

    true, said [U]: the annotated and the predicted name of each unit (a ground-truth triplet, or an annotated pair).
    lone [L]: the names that were predicted where nothing is annotated. What the repair of a cell does: prediction
    fix_row [F] becomes the true positive of ground truth fix_truth, in the cell (fix_true, fix_said); prediction
    drop_row [D] is dropped, in the cell (drop_true, drop_said); ground truth missed [M] leaves the count, in the cell
    (missed_true, nothing)."""

    true: Ints
    said: Ints
    lone: Ints
    fix_row: Ints
    fix_truth: Ints
    fix_true: Ints
    fix_said: Ints
    drop_row: Ints
    drop_true: Ints
    drop_said: Ints
    missed: Ints
    missed_true: Ints


@dataclass(frozen=True)
class ConfusionColumns:
    """The confusions of a model in some images, by kind. counted, hit [T]: whether each prediction counts, and whether
    it is a true positive; truth_class [G]: the class of each ground truth; found [G]: its true positive, else -1."""

    counted: Bools
    hit: Bools
    truth_class: Ints
    found: Ints
    kinds: Mapping[str, Said]

    @classmethod
    def join(cls, parts: Sequence[ConfusionColumns]) -> ConfusionColumns:
        """Return one or more parts as one; predictions and ground truth are renumbered in the order of the parts."""
        rows = starts_of([len(part.hit) for part in parts]).tolist()
        truths = starts_of([len(part.truth_class) for part in parts]).tolist()
        # the columns that hold numbers of predictions or of ground truth, and what each part adds to them
        starts = {"found": rows, "fix_row": rows, "drop_row": rows, "fix_truth": truths, "missed": truths}

        def column(name: str, holders: Sequence[object]) -> Any:
            columns = [getattr(holder, name) for holder in holders]
            if name in starts:
                columns = [
                    np.where(numbers < 0, numbers, numbers + start)
                    for numbers, start in zip(columns, starts[name], strict=False)
                ]
            return np.concatenate(columns)

        kinds = {
            kind: Said(
                **{
                    column_field.name: column(column_field.name, [part.kinds[kind] for part in parts])
                    for column_field in fields(Said)
                }
            )
            for kind in parts[0].kinds
        }
        return cls(**{name: column(name, parts) for name in ("counted", "hit", "truth_class", "found")}, kinds=kinds)

    @classmethod
    def from_batch(cls, located: Located, vocabulary: Vocabulary, meets: Meets | None) -> ConfusionColumns:
        """Return the confusions of a batch; without `meets` (labels are not compared) only those of verbs."""
        located = replace(located, misnamed=None)  # confusions are of what mAP counts
        typed = error_types(located)
        kinds = {"verb": verbs_said(located, typed)}
        if meets is not None:
            object_of = [vocabulary.object_ids[name] for _, name in vocabulary.interactions]
            kinds["object"] = objects_said(located, typed, meets, np.array(object_of, dtype=np.int64))
        return cls(located.counted, located.hit, located.truth_interaction, located.true_positive, kinds)

    @classmethod
    def unseen(cls, truth: GroundTruth, protocol: Protocol, images_seen: Iterable[str]) -> ConfusionColumns:
        """Return the confusions of the images without predictions: all their ground truth is missed."""
        scenes, (image_ids, image, rows) = truth.scenes, truth.unseen(protocol, images_seen)
        none, never = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        located = Located(
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
            action_of=actions(truth.vocabulary),
        )
        return cls.from_batch(located, truth.vocabulary, None if protocol.person_first else lambda box, _: box < 0)


def _firsts(unit: Ints, row: Ints, located: Located, units: int) -> Ints:
    """Return for each unit [units] where in `unit` and `row` its prediction with the highest score stands, -1 for none.
    Equal scores are ordered by class, then by row. unit, row: aligned columns, a unit and a prediction that may be its
    first; units: the number of units."""
    order = np.lexsort((row, located.interaction[row], -located.score[row], unit))
    best = order[run_starts(unit[order])]
    first = np.full(units, -1, dtype=np.int64)
    first[unit[best]] = best
    return first


def _first_occurrences(first_column: Ints, other: Ints) -> Ints:
    """Return where each combination of two values occurs first, ascending."""
    _, first = np.unique(first_column * (int(other.max(initial=0)) + 1) + other, return_index=True)
    return np.sort(first)


class _Units(NamedTuple):
    """The units of a kind of confusion, and the cell (true, said) of each. true, said [U]: the annotated and the
    predicted name, NOTHING if none is predicted; is_confused [U]: whether the first prediction is wrong for the unit;
    of_truth [G]: the unit of each ground truth."""

    true: Ints
    said: Ints
    is_confused: Bools
    of_truth: Ints


class _Fixes(NamedTuple):
    """The predictions that a cell's repair makes true positives. row, truth, unit [F]: a prediction, the ground truth
    that it then finds, and a unit in the cell."""

    row: Ints
    truth: Ints
    unit: Ints


class _Drops(NamedTuple):
    """The predictions that a cell's repair drops. row, unit: a prediction and a unit in the cell, which it is on."""

    row: Ints
    unit: Ints


class _Strays(NamedTuple):
    """What is predicted where nothing is annotated. names [L]: the name of each such prediction (of objects, of each
    such predicted pair); row, name_of_row: the predictions that the repair drops, and the name of each."""

    names: Ints
    row: Ints
    name_of_row: Ints


def _join_parts(units: _Units, fixes: _Fixes, drops: _Drops, strays: _Strays) -> Said:
    """Return one kind of confusion from its parts: the cell of a fix or a drop is that of its unit, the cell of a stray
    is (nothing, its name), and the ground truth of units for which nothing is predicted is missed."""
    missed = np.flatnonzero(units.said[units.of_truth] == NOTHING)
    return Said(
        true=units.true,
        said=units.said,
        lone=strays.names,
        fix_row=fixes.row,
        fix_truth=fixes.truth,
        fix_true=units.true[fixes.unit],
        fix_said=units.said[fixes.unit],
        drop_row=np.concatenate([drops.row, strays.row]),
        drop_true=np.concatenate([units.true[drops.unit], np.full(len(strays.row), NOTHING)]),
        drop_said=np.concatenate([units.said[drops.unit], strays.name_of_row]),
        missed=missed,
        missed_true=units.true[units.of_truth[missed]],
    )


def verbs_said(located: Located, typed: Typed) -> Said:
    """Return the confusions of verbs in a batch, whose units are the ground-truth triplets."""
    verb = located.action_of[located.interaction]
    truth, wrong = candidates(typed, typed.same_pair, typed.error == INTERACTION)
    units, first_row = _verb_units(located, truth, wrong)
    # the first prediction becomes a true positive; if it is first for several triplets, of the first of them
    confused = np.flatnonzero(units.is_confused)
    confused = confused[_first_occurrences(first_row[confused], units.true[confused])]
    fixes = _Fixes(first_row[confused], confused, confused)
    # every wrong prediction of the verb that a triplet is confused with is dropped, once for each cell
    alike = np.flatnonzero(units.is_confused[truth] & (verb[wrong] == units.said[truth]))
    alike = alike[_first_occurrences(wrong[alike], units.true[truth[alike]])]
    drops = _Drops(wrong[alike], truth[alike])
    stray = np.flatnonzero((typed.error >= ASSOCIATION) & (typed.error <= BOTH_BOXES))
    return _join_parts(units, fixes, drops, _Strays(verb[stray], stray, verb[stray]))


def _verb_units(located: Located, truth: Ints, wrong: Ints) -> tuple[_Units, Ints]:
    """Return the ground-truth triplets as units, and the first prediction [U] of each, -1 for none. truth, wrong:
    aligned columns, a triplet and a prediction that is wrong for it."""
    hits = np.flatnonzero(located.hit)
    unit, row = np.concatenate([located.truth[hits], truth]), np.concatenate([hits, wrong])
    first = _firsts(unit, row, located, len(located.truth_image))
    # A unit without a prediction has first = -1, so it takes the value appended at the end.
    predicted_verb = np.append(located.action_of[located.interaction[row]], NOTHING)[first]
    is_confused = np.append(~located.hit[row], False)[first]
    true_verb = located.action_of[located.truth_interaction]
    return _Units(true_verb, predicted_verb, is_confused, np.arange(len(true_verb))), np.append(row, -1)[first]


def objects_said(located: Located, typed: Typed, meets: Meets, object_of: Ints) -> Said:
    """Return the confusions of objects in a batch, whose units are the annotated pairs of boxes. object_of [C]: the
    object of each class."""
    predicted = _predicted_pairs(located, typed, object_of)
    pairs = np.stack([located.truth_subject, located.truth_object])
    _, first_truth, pair_of_truth = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    pair_of_truth = pair_of_truth.reshape(-1)
    true_label = object_of[located.truth_interaction[first_truth]]
    claims = _object_claims(located, typed, meets, predicted, pair_of_truth)
    units = _object_units(located, predicted, claims, true_label, pair_of_truth)

    confusing = _confusing_predictions(predicted, claims, units)
    fixes = _object_fixes(located, confusing, units)
    # a prediction is dropped once for each cell
    distinct = _first_occurrences(confusing.row, units.true[confusing.unit])
    drops = _Drops(confusing.row[distinct], confusing.unit[distinct])
    return _join_parts(units, fixes, drops, _stray_pairs(predicted, claims))


class _PredictedPairs(NamedTuple):
    """The predicted pairs of boxes, which are the groups of `Typed`. counted, group [N]: the predictions that count,
    and the pair of each. best [P]: the first counted prediction of each pair, -1 for none; label [P]: the object that
    it names, NOTHING for none; is_astray [P]: whether the pair has one and its object box is wrong."""

    counted: Ints
    group: Ints
    best: Ints
    label: Ints
    is_astray: Bools


class _Claims(NamedTuple):
    """Which predicted pairs tell which object an annotated pair has, each combination once. unit, group [K]: the
    annotated and the predicted pair; is_wrong [K]: whether the predicted label is another than the annotated one."""

    unit: Ints
    group: Ints
    is_wrong: Bools


def _predicted_pairs(located: Located, typed: Typed, object_of: Ints) -> _PredictedPairs:
    """Return the predicted pairs of boxes of a batch, with the best prediction and the label of each."""
    counted = np.flatnonzero(typed.error != NOT_COUNTED)
    group = typed.group_of[counted]
    first = _firsts(group, counted, located, len(typed.type_of_group))
    # A pair without a counted prediction has first = -1, so it takes the value appended at the end.
    best, label = np.append(counted, -1)[first], np.append(object_of[located.interaction[counted]], NOTHING)[first]
    is_astray = (first >= 0) & np.isin(typed.type_of_group, (OBJECT_BOX, BOTH_BOXES))
    return _PredictedPairs(counted, group, best, label, is_astray)


def _object_claims(
    located: Located, typed: Typed, meets: Meets, predicted: _PredictedPairs, pair_of_truth: Ints
) -> _Claims:
    """Return which predicted pairs are right and which are wrong for an annotated pair: right ones have both of its
    boxes, wrong ones its human box and an object box that overlaps its own but has another label. pair_of_truth [G]:
    the annotated pair of each ground truth."""
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
    """Return the annotated pairs as units: what is said of each is the label of the first of its claims. true_label
    [U]: the annotated label; pair_of_truth [G]: the annotated pair of each ground truth."""
    first = _firsts(claims.unit, predicted.best[claims.group], located, len(true_label))
    # A unit without a claim has first = -1, so it takes the value appended at the end.
    is_confused = np.append(claims.is_wrong, False)[first]
    first_label = np.append(predicted.label[claims.group], NOTHING)[first]
    predicted_label = np.where(is_confused | (first < 0), first_label, true_label)
    return _Units(true_label, predicted_label, is_confused, pair_of_truth)


def _confusing_predictions(predicted: _PredictedPairs, claims: _Claims, units: _Units) -> _Drops:
    """Return every prediction of the predicted pairs whose wrong label is the one that their unit is confused with."""
    has_its_label = predicted.label[claims.group] == units.said[claims.unit]
    confusing_claim = np.flatnonzero(claims.is_wrong & units.is_confused[claims.unit] & has_its_label)
    run, entry = members(predicted.group, len(predicted.best), claims.group[confusing_claim])
    return _Drops(predicted.counted[entry], claims.unit[confusing_claim][run])


def _object_fixes(located: Located, confusing: _Drops, units: _Units) -> _Fixes:
    """Return which of the confusing predictions become true positives, each once for each cell. A ground truth takes
    the best one with its verb among those on its pair, if it ranks above the true positive."""
    entry, truth = members(units.of_truth, int(units.of_truth.max(initial=-1)) + 1, confusing.unit)
    action = located.action_of
    same_action = action[located.interaction[confusing.row[entry]]] == action[located.truth_interaction[truth]]
    truth, entry = truth[same_action], entry[same_action]
    hits = np.flatnonzero(located.hit)
    finder = np.concatenate([hits, confusing.row[entry]])
    first = _firsts(np.concatenate([located.truth[hits], truth]), finder, located, len(units.of_truth))
    # the true positives stand in front: a ground truth is fixed if its first prediction comes after them
    fixed_truth = np.flatnonzero(first >= len(hits))
    entry = entry[first[fixed_truth] - len(hits)]
    row, unit = confusing.row[entry], confusing.unit[entry]
    distinct = _first_occurrences(row, units.true[unit])
    return _Fixes(row[distinct], fixed_truth[distinct], unit[distinct])


def _stray_pairs(predicted: _PredictedPairs, claims: _Claims) -> _Strays:
    """Return the predicted pairs whose object box is wrong and that are not wrong for any annotated pair."""
    claiming = np.zeros(len(predicted.best), dtype=bool)
    claiming[claims.group] = True
    stray = np.flatnonzero(predicted.is_astray & ~claiming)
    run, entry = members(predicted.group, len(predicted.best), stray)
    return _Strays(predicted.label[stray], predicted.counted[entry], predicted.label[stray][run])
