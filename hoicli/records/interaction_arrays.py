"""Triplets given by the numbers of their interactions, as arrays of an image with verbs and labels.

Interactions are numbered as the dataset lists them (`hoicli vocab`): 0 to 599 in HICO-DET, 0 to 14,129 in SWIG-HOI."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError
from hoicli.records.arrays import box_array, check_range, read_array, read_integers
from hoicli.records.kit import Ints
from hoicli.records.parsing import short
from hoicli.vocabulary.labels import Vocabulary

ROW = "interaction, score, the four numbers of the person's box, and those of the object's"


@cache
def verbs_and_objects(vocabulary: Vocabulary) -> tuple[Ints, Ints]:
    """Return two columns [C]: the verb id and the object id of each interaction of a dataset without roles."""
    numbers = [(vocabulary.verb_ids[verb], vocabulary.object_ids[name]) for verb, name in vocabulary.interactions]
    verb, object_ = np.array(numbers, dtype=np.int64).T
    return verb, object_


def row_arrays(rows: Any) -> dict[str, Any]:
    """Return the arrays of an image from rows [T, 10] of ROW. Raises `DataError` for anything else."""
    table = read_array(rows, "")
    if not table.size:
        table = np.empty((0, 10))
    if table.ndim != 2 or table.shape[1] != 10 or table.dtype.kind not in "fiu":
        raise DataError(f"has shape {table.shape} and dtype {table.dtype}, wants rows of 10 numbers: {ROW}")
    number = table[:, 0]
    is_whole = np.abs(number) < 1 << 53  # false for NaN and infinity, too
    is_whole[is_whole] = number[is_whole] % 1 == 0
    if not is_whole.all():
        place = int(np.flatnonzero(~is_whole)[0])
        raise DataError(f"{short(number[place].item())} is no interaction; they are whole numbers", field=f"[{place}]")
    row = np.arange(len(table))
    return {
        "boxes": np.concatenate([table[:, 2:6], table[:, 6:]]),  # the persons' boxes, then the objects'
        "subject": row,
        "object": row + len(table),
        "interaction": number.astype(np.int64),
        "score": table[:, 1],
    }


def check_interactions(number: Ints, count: int, vocabulary: Vocabulary) -> None:
    """Raise `DataError` for a number that is not of one of the dataset's first `count` interactions."""
    check_range(number, count, "interaction", f"interactions in {vocabulary.name} (see `hoicli vocab`)")


def replace_interactions(arrays: Mapping[str, Any], vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the arrays of an image with `verb` in place of `interaction` numbers.

    If `labels` are not given, they are derived from the interactions: a box that is the object of two classes then
    appears twice, and a box of no triplet is left out. Raises `DataError` for numbers that are no interactions, or do
    not fit the other arrays."""
    number = _read_interactions(arrays, vocabulary)
    verb_of, object_of = verbs_and_objects(vocabulary)
    replaced = {name: value for name, value in arrays.items() if name != "interaction"}
    replaced["verb"] = verb_of[number]
    if arrays.get("labels") is not None or any(arrays.get(name) is None for name in ("boxes", "subject", "object")):
        return replaced
    boxes = box_array(arrays["boxes"])
    subject = read_integers(arrays["subject"], "subject")
    object_ = read_integers(arrays["object"], "object")
    rows = np.concatenate([subject, object_])
    is_usable = len(subject) == len(object_) and not ((rows < 0) | (rows >= len(boxes))).any()
    if not is_usable:  # any labels do: the later checks of every image report the bad index
        return replaced | {"labels": np.zeros(len(boxes), dtype=np.int64)}
    return replaced | label_boxes(boxes, subject, object_, object_of[number], vocabulary)


def _read_interactions(arrays: Mapping[str, Any], vocabulary: Vocabulary) -> Ints:
    """Return the numbers [T] in `interaction`. Raises `DataError` for numbers that are no interactions, or not as many
    as triplets, for a `verb` besides, and for a dataset with roles."""
    number = read_integers(arrays["interaction"], "interaction", "numbers of interactions")
    if vocabulary.roles:
        raise DataError(f"{vocabulary.name} has roles; give verb and role", field="interaction")
    if arrays.get("verb") is not None:
        raise DataError("give interaction or verb, not both", field="interaction")
    check_interactions(number, len(vocabulary.interactions), vocabulary)
    if arrays.get("subject") is not None:
        triplets = read_array(arrays["subject"], "subject").size
        if triplets != len(number):
            problem = f"{len(number)} values for {triplets} triplets (`subject` has {triplets})"
            raise DataError(problem, field="interaction")
    return number


def label_boxes(
    boxes: NDArray[Any], subject: Ints, object_: Ints, object_label: Ints, vocabulary: Vocabulary
) -> dict[str, Any]:
    """Return the arrays of an image (boxes, labels, subject, object) in which a box appears once for each label that
    its triplets give it. subject, object_, object_label [T]: of each triplet the rows of its boxes, and the label of
    its object."""
    person_label = np.full(len(subject), vocabulary.object_ids[vocabulary.subjects[0]])
    box = np.concatenate([subject, object_])
    label = np.concatenate([person_label, object_label])
    # a number for each (box, label), in the order of the boxes
    keys, place = np.unique(box * len(vocabulary.objects) + label, return_inverse=True)
    box_of_key, label_of_key = np.divmod(keys, len(vocabulary.objects))
    subject, object_ = np.split(place.reshape(-1), 2)
    return {"boxes": boxes[box_of_key], "labels": label_of_key, "subject": subject, "object": object_}


def check_objects(numbers: Any, label: Ints, vocabulary: Vocabulary) -> None:
    """Raise `DataError` for a triplet whose object box has another label than its interaction. numbers, label [T]: the
    interaction of each triplet, and the label of its object box."""
    number = read_integers(numbers, "interaction")
    _, object_of = verbs_and_objects(vocabulary)
    wrong = np.flatnonzero(label != object_of[number])
    if len(wrong):
        row = wrong[0]
        names = " ".join(vocabulary.interactions[number[row]])
        problem = f"{number[row]} is {names}, but the box's label is {vocabulary.objects[label[row]]}"
        raise DataError(f"{problem}; leave out the labels, or correct one", field=f"interaction[{row}]")
