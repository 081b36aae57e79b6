"""Which verb, and which object, a detector says in place of the true one.

A pair of boxes may truly have several verbs, so a list of predictions has no single answer to put into a confusion
matrix. The question asked here is: of the predictions of this pair, which comes first (by score) once the pair's other
true verbs are set aside? A verb that is right for the pair is never a confusion.

Verbs, for each ground-truth triplet g (a pair with verb v), from the predictions that the protocol counts:

- right for g: its true positive. Wrong for g: interaction errors (`diagnosis.errors`) whose two boxes are g's. Others,
  such as true positives of the pair's other verbs and duplicates, say nothing about g.
- g is in the cell (v, the verb of the first of these), or in (v, nothing) if there is none. So every triplet is in one
  cell, and a wrong verb below the right one is none.
- A prediction that is on no annotated pair (association, object box, human box, both boxes) is in (nothing, its verb).

Objects, for each annotated pair of boxes, whatever the verbs: right are the predictions on the pair; wrong are those
with its human box whose object box overlaps the pair's object enough but has another label (and lies on no annotated
box of its own label). The pair is in the cell (its label, the label of the first). A predicted pair whose object box is
wrong without being such is in (nothing, its label).

Equal scores: by class, of one class as in the record. In V-COCO names are of action-roles, and there are no objects to
confuse: its protocols do not compare labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from hoicli.diagnosis.errors import (
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
    """One kind of confusion in some images. Names are numbers, NOTHING for none.

    true, said [U] the two names of each unit (a triplet, or an annotated pair). lone [L] the names said about nothing.
    What repairing a cell does: fix_row [F] the prediction that becomes the true positive of fix_truth, in the cell
    (fix_true, fix_said); drop_row [D] the predictions that are dropped, in the cell (drop_true, drop_said); missed [M]
    the ground truth of the cell (missed_true, nothing).
    """

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
    """The confusions of a model in some images: counted, hit [T] whether each prediction counts and hits; truth_class
    [G], and found [G] the true positive of each ground truth, else -1."""

    counted: Bools
    hit: Bools
    truth_class: Ints
    found: Ints
    kinds: Mapping[str, Said]

    @classmethod
    def join(cls, parts: Sequence[ConfusionColumns]) -> ConfusionColumns:
        """At least one part, as one; predictions and ground truth are renumbered in the order of the parts."""
        rows = starts_of([len(part.hit) for part in parts]).tolist()
        truths = starts_of([len(part.truth_class) for part in parts]).tolist()
        starts = {"found": rows, "fix_row": rows, "drop_row": rows, "fix_truth": truths, "missed": truths}

        def column(name: str, holders: Sequence[object]) -> Any:
            columns = [getattr(holder, name) for holder in holders]
            if name in starts:
                columns = [
                    np.where(numbers < 0, numbers, numbers + at)
                    for numbers, at in zip(columns, starts[name], strict=False)
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
        """The confusions of a batch; without `meets` (labels are not compared) those of verbs alone."""
        located = replace(located, misnamed=None)  # confusions are of what mAP counts
        typed = error_types(located)
        kinds = {"verb": verbs_said(located, typed)}
        if meets is not None:
            object_of = [vocabulary.object_ids[name] for _, name in vocabulary.interactions]
            kinds["object"] = objects_said(located, typed, meets, np.array(object_of, dtype=np.int64))
        return cls(located.counted, located.hit, located.truth_interaction, located.true_positive, kinds)

    @classmethod
    def unseen(cls, truth: GroundTruth, protocol: Protocol, images_seen: Iterable[str]) -> ConfusionColumns:
        """The ground truth of the images that no prediction is of: all of it is in the cells of nothing said."""
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
    """[units] the place, in aligned `unit` and `row`, of the row with the highest score of each unit, of equals the
    first by class, then row; -1 for a unit without."""
    order = np.lexsort((row, located.interaction[row], -located.score[row], unit))
    best = order[run_starts(unit[order])]
    first = np.full(units, -1, dtype=np.int64)
    first[unit[best]] = best
    return first


def _once(first_column: Ints, other: Ints) -> Ints:
    """The first place of each combination of values, ascending."""
    _, first = np.unique(first_column * (int(other.max(initial=0)) + 1) + other, return_index=True)
    return np.sort(first)


def verbs_said(located: Located, typed: Typed) -> Said:
    """The confusions of verbs in a batch; units are the ground-truth triplets."""
    action, units = located.action_of, len(located.truth_image)
    truth, wrong = candidates(typed, typed.same_pair, typed.error == INTERACTION)
    hits = np.flatnonzero(located.hit)
    unit, row = np.concatenate([located.truth[hits], truth]), np.concatenate([hits, wrong])
    first = _firsts(unit, row, located, units)
    first_row = np.append(row, -1)[first]
    true = action[located.truth_interaction]
    predicted = np.append(action[located.interaction[row]], NOTHING)[first]
    mistaken = np.append(~located.hit[row], False)[first]
    fixed = np.flatnonzero(mistaken)
    fixed = fixed[_once(first_row[fixed], true[fixed])]
    of_cell = np.flatnonzero(mistaken[truth] & (action[located.interaction[wrong]] == predicted[truth]))
    of_cell = of_cell[_once(wrong[of_cell], true[truth[of_cell]])]
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
        drop_row=np.concatenate([wrong[of_cell], lone]),
        drop_true=np.concatenate([true[truth[of_cell]], np.full(len(lone), NOTHING)]),
        drop_said=action[located.interaction[np.concatenate([wrong[of_cell], lone])]],
        missed=missed,
        missed_true=true[missed],
    )


def objects_said(located: Located, typed: Typed, meets: Meets, object_of: Ints) -> Said:
    """The confusions of objects in a batch; units are the annotated pairs of boxes. object_of [C]: of each class."""
    groups = len(typed.type_of_group)
    counted = np.flatnonzero(typed.error != NOT_COUNTED)
    place = _firsts(typed.group_of[counted], counted, located, groups)
    best, some = np.append(counted, -1)[place], place >= 0
    label = np.append(object_of[located.interaction[counted]], NOTHING)[place]

    pairs = np.stack([located.truth_subject, located.truth_object])
    _, first_of, pair_of = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    pair_of = pair_of.reshape(-1)
    true = object_of[located.truth_interaction[first_of]]
    right = np.flatnonzero(typed.same_pair & some[typed.group])
    astray = np.isin(typed.type_of_group, (OBJECT_BOX, BOTH_BOXES))
    near = np.flatnonzero(typed.same_human & some[typed.group] & astray[typed.group])
    box = located.object[best[typed.group[near]]]
    wrong = near[meets(box, located.truth_object[typed.truth[near]])]

    edge = np.concatenate([right, wrong])
    unit, group = pair_of[typed.truth[edge]], typed.group[edge]
    is_wrong = np.arange(len(edge)) >= len(right)
    once = _once(unit, group)
    unit, group, is_wrong = unit[once], group[once], is_wrong[once]
    first = _firsts(unit, best[group], located, len(true))
    mistaken = np.append(is_wrong, False)[first]
    first_group = np.append(group, -1)[first]
    predicted = np.where(first < 0, NOTHING, np.where(mistaken, np.append(label, NOTHING)[first_group], true))

    # every prediction of a group with the wrong label that was said, on its pair
    chosen = np.flatnonzero(is_wrong & mistaken[unit] & (label[group] == predicted[unit]))
    run, entry = members(typed.group_of[counted], groups, group[chosen])
    row, on = counted[entry], unit[chosen][run]
    dropped = _once(row, true[on])
    truth, fixing = _becoming(located, row, on, pair_of)
    once = _once(row[fixing], true[on[fixing]])
    truth, fixing = truth[once], fixing[once]
    touched = np.zeros(groups, dtype=bool)
    touched[group] = True
    lone = np.flatnonzero(some & astray & ~touched)
    alone, entry = members(typed.group_of[counted], groups, lone)
    lone_row = counted[entry]
    missed = np.flatnonzero(first[pair_of] < 0)
    return Said(
        true=true,
        said=predicted,
        lone=label[lone],
        fix_row=row[fixing],
        fix_truth=truth,
        fix_true=true[on[fixing]],
        fix_said=predicted[on[fixing]],
        drop_row=np.concatenate([row[dropped], lone_row]),
        drop_true=np.concatenate([true[on[dropped]], np.full(len(lone_row), NOTHING)]),
        drop_said=np.concatenate([predicted[on[dropped]], label[lone][alone]]),
        missed=missed,
        missed_true=true[pair_of[missed]],
    )


def _becoming(located: Located, row: Ints, on: Ints, pair_of: Ints) -> tuple[Ints, Ints]:
    """(ground truth, place in `row`) of each ground truth that a prediction would become with the right label: of the
    predictions `row` on the pairs `on` the best one of its verb, if it stands above its true positive."""
    run, truth = members(pair_of, int(pair_of.max(initial=-1)) + 1, on)
    action = located.action_of
    same = action[located.interaction[row[run]]] == action[located.truth_interaction[truth]]
    truth, place = truth[same], run[same]
    hits = np.flatnonzero(located.hit)
    unit, rows = np.concatenate([located.truth[hits], truth]), np.concatenate([hits, row[place]])
    first = _firsts(unit, rows, located, len(pair_of)) - len(hits)
    fixed = np.flatnonzero(first >= 0)
    return fixed, place[first[fixed]]
