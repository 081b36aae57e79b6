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
from typing import Any

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


def _once(first_column: Ints, other: Ints) -> Ints:
    """Return where each combination of two values occurs first, ascending."""
    _, first = np.unique(first_column * (int(other.max(initial=0)) + 1) + other, return_index=True)
    return np.sort(first)


def verbs_said(located: Located, typed: Typed) -> Said:
    """Return the confusions of verbs in a batch, whose units are the ground-truth triplets."""
    action, units = located.action_of, len(located.truth_image)
    truth, wrong = candidates(typed, typed.same_pair, typed.error == INTERACTION)
    hits = np.flatnonzero(located.hit)
    unit, row = np.concatenate([located.truth[hits], truth]), np.concatenate([hits, wrong])
    first = _firsts(unit, row, located, units)
    # A unit without a prediction has first = -1, so it takes the value appended at the end.
    first_row = np.append(row, -1)[first]
    true = action[located.truth_interaction]
    predicted = np.append(action[located.interaction[row]], NOTHING)[first]
    mistaken = np.append(~located.hit[row], False)[first]
    fixed = np.flatnonzero(mistaken)
    fixed = fixed[_once(first_row[fixed], true[fixed])]
    dropped = np.flatnonzero(mistaken[truth] & (action[located.interaction[wrong]] == predicted[truth]))
    dropped = dropped[_once(wrong[dropped], true[truth[dropped]])]
    lone = np.flatnonzero((typed.error >= ASSOCIATION) & (typed.error <= BOTH_BOXES))
    missed = np.flatnonzero(first < 0)
    return Said(
        true=true,
        said=predicted,
        lone=action[located.interaction[lone]],
        fix_row=first_row[fixed],
        fix_truth=fixed,
        fix_true=true[fixed],
        fix_said=predicted[fixed],
        drop_row=np.concatenate([wrong[dropped], lone]),
        drop_true=np.concatenate([true[truth[dropped]], np.full(len(lone), NOTHING)]),
        drop_said=action[located.interaction[np.concatenate([wrong[dropped], lone])]],
        missed=missed,
        missed_true=true[missed],
    )


def objects_said(located: Located, typed: Typed, meets: Meets, object_of: Ints) -> Said:
    """Return the confusions of objects in a batch, whose units are the annotated pairs of boxes. object_of [C]: the
    object of each class. A group is a predicted pair of boxes (`Typed`)."""
    groups = len(typed.type_of_group)
    counted = np.flatnonzero(typed.error != NOT_COUNTED)
    first_counted = _firsts(typed.group_of[counted], counted, located, groups)
    best, has_counted = np.append(counted, -1)[first_counted], first_counted >= 0
    label = np.append(object_of[located.interaction[counted]], NOTHING)[first_counted]

    pairs = np.stack([located.truth_subject, located.truth_object])
    _, first_of, pair_of = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    pair_of = pair_of.reshape(-1)
    true = object_of[located.truth_interaction[first_of]]
    right_match = np.flatnonzero(typed.same_pair & has_counted[typed.group])
    astray = np.isin(typed.type_of_group, (OBJECT_BOX, BOTH_BOXES))
    same_human_match = np.flatnonzero(typed.same_human & has_counted[typed.group] & astray[typed.group])
    box = located.object[best[typed.group[same_human_match]]]
    wrong_match = same_human_match[meets(box, located.truth_object[typed.truth[same_human_match]])]

    pair_match = np.concatenate([right_match, wrong_match])
    unit, group = pair_of[typed.truth[pair_match]], typed.group[pair_match]
    is_wrong = np.arange(len(pair_match)) >= len(right_match)
    once = _once(unit, group)
    unit, group, is_wrong = unit[once], group[once], is_wrong[once]
    first = _firsts(unit, best[group], located, len(true))
    mistaken = np.append(is_wrong, False)[first]
    first_group = np.append(group, -1)[first]
    predicted = np.where(first < 0, NOTHING, np.where(mistaken, np.append(label, NOTHING)[first_group], true))

    # every prediction of a group whose wrong label is the one that its pair is confused with
    chosen_match = np.flatnonzero(is_wrong & mistaken[unit] & (label[group] == predicted[unit]))
    run, entry = members(typed.group_of[counted], groups, group[chosen_match])
    row, pair_of_row = counted[entry], unit[chosen_match][run]
    dropped = _once(row, true[pair_of_row])
    truth, fixing = _becoming(located, row, pair_of_row, pair_of)
    once = _once(row[fixing], true[pair_of_row[fixing]])
    truth, fixing = truth[once], fixing[once]
    touched = np.zeros(groups, dtype=bool)
    touched[group] = True
    lone = np.flatnonzero(has_counted & astray & ~touched)
    lone_of_entry, entry = members(typed.group_of[counted], groups, lone)
    lone_row = counted[entry]
    missed = np.flatnonzero(first[pair_of] < 0)
    return Said(
        true=true,
        said=predicted,
        lone=label[lone],
        fix_row=row[fixing],
        fix_truth=truth,
        fix_true=true[pair_of_row[fixing]],
        fix_said=predicted[pair_of_row[fixing]],
        drop_row=np.concatenate([row[dropped], lone_row]),
        drop_true=np.concatenate([true[pair_of_row[dropped]], np.full(len(lone_row), NOTHING)]),
        drop_said=np.concatenate([predicted[pair_of_row[dropped]], label[lone][lone_of_entry]]),
        missed=missed,
        missed_true=true[pair_of[missed]],
    )


def _becoming(located: Located, row: Ints, pair_of_row: Ints, pair_of: Ints) -> tuple[Ints, Ints]:
    """Return (ground truth, where in `row` its repair stands) for each ground truth that a prediction would find if it
    had the right label. That is the best prediction with the verb of the ground truth among those on its pair, if it
    ranks above the true positive. row, pair_of_row: predictions, and the pair that each is on; pair_of [G]: the pair of
    each ground truth."""
    entry, truth = members(pair_of, int(pair_of.max(initial=-1)) + 1, pair_of_row)
    action = located.action_of
    same_action = action[located.interaction[row[entry]]] == action[located.truth_interaction[truth]]
    truth, entry_of_truth = truth[same_action], entry[same_action]
    hits = np.flatnonzero(located.hit)
    unit, rows = np.concatenate([located.truth[hits], truth]), np.concatenate([hits, row[entry_of_truth]])
    first = _firsts(unit, rows, located, len(pair_of)) - len(hits)
    fixed = np.flatnonzero(first >= 0)
    return fixed, entry_of_truth[first[fixed]]
