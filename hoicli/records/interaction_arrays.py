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

_SIDES = ("subject", "object")
ROW = "interaction, score, the four numbers of the person's box, and those of the object's"


@cache
def verbs_and_objects(vocabulary: Vocabulary) -> tuple[Ints, Ints]:
    """Return the verb and the object number [C] of each interaction of a dataset without roles."""
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
    is_whole = np.abs(number) < 1 << 53
    is_whole[is_whole] = number[is_whole] % 1 == 0
    if not is_whole.all():
        place = int(np.flatnonzero(~is_whole)[0])
        raise DataError(f"{short(number[place].item())} is no interaction; they are whole numbers", field=f"[{place}]")
    pair = np.arange(len(table))
    boxes = np.concatenate([table[:, 2:6], table[:, 6:]])
    return {"boxes": boxes, "subject": pair, "object": pair + len(pair), "interaction": number.astype(np.int64),
            "score": table[:, 1]}  # fmt: skip


def check_interactions(number: Ints, count: int, vocabulary: Vocabulary) -> None:
    """Raise `DataError` for a number that is not of one of the dataset's first `count` interactions."""
    check_range(number, count, "interaction", f"interactions in {vocabulary.name} (see `hoicli vocab`)")


def replace_interactions(arrays: Mapping[str, Any], vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the arrays of an image with `verb` in place of `interaction`. Without `labels` these follow, too: a box
    that is the object of two classes is there twice, one of no triplet is left out."""
    number = read_integers(arrays["interaction"], "interaction", "numbers of interactions")
    if vocabulary.roles:
        raise DataError(f"{vocabulary.name} has roles; give verb and role", field="interaction")
    if arrays.get("verb") is not None:
        raise DataError("give interaction or verb, not both", field="interaction")
    check_interactions(number, len(vocabulary.interactions), vocabulary)
    triplets = None if arrays.get("subject") is None else read_array(arrays["subject"], "subject").size
    if triplets not in (None, len(number)):
        problem = f"{len(number)} values for {triplets} triplets (`subject` has {triplets})"
        raise DataError(problem, field="interaction")
    verb_of, object_of = verbs_and_objects(vocabulary)
    stated = {name: value for name, value in arrays.items() if name != "interaction"} | {"verb": verb_of[number]}
    if arrays.get("labels") is not None or any(arrays.get(name) is None for name in ("boxes", "subject", "object")):
        return stated
    boxes, subject, object_ = box_array(arrays["boxes"]), *(read_integers(arrays[name], name) for name in _SIDES)
    rows = np.concatenate([subject, object_])
    is_usable = len(subject) == len(object_) and not ((rows < 0) | (rows >= len(boxes))).any()
    if not is_usable:  # the checks of every image say what is wrong
        return stated | {"labels": np.zeros(len(boxes), dtype=np.int64)}
    return stated | label_boxes(boxes, subject, object_, object_of[number], vocabulary)


def label_boxes(
    boxes: NDArray[Any], subject: Ints, object_: Ints, object_label: Ints, vocabulary: Vocabulary
) -> dict[str, Any]:
    """Return the arrays of an image in which a box is there once for each label that its triplets [T] give it."""
    person_label = np.full(len(subject), vocabulary.object_ids[vocabulary.subjects[0]])
    # a number for each (box, label), in the order of the boxes
    key = np.concatenate([subject, object_]) * len(vocabulary.objects) + np.concatenate([person_label, object_label])
    keys, place = np.unique(key, return_inverse=True)
    row, label = np.divmod(keys, len(vocabulary.objects))
    subject, object_ = np.split(place.reshape(-1), 2)
    return {"boxes": boxes[row], "labels": label, "subject": subject, "object": object_}


def check_objects(numbers: Any, label: Ints, vocabulary: Vocabulary) -> None:
    """Raise `DataError` for a triplet [T] whose object box has another label than its interaction."""
    number = read_integers(numbers, "interaction")
    wrong = np.flatnonzero(label != verbs_and_objects(vocabulary)[1][number])
    if len(wrong):
        names = " ".join(vocabulary.interactions[number[wrong[0]]])
        problem = f"{number[wrong[0]]} is {names}, but the box's label is {vocabulary.objects[label[wrong[0]]]}"
        raise DataError(f"{problem}; leave out the labels, or correct one", field=f"interaction[{wrong[0]}]")
