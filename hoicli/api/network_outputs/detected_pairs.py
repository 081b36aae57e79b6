"""Networks that pair the boxes of a detector (UPT, PViC and successors): the dictionaries of their `postprocessing`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoicli.api.network_outputs.query_heads import read_sizes
from hoicli.api.network_outputs.ranking_rules import Arrays, paired_arrays, vcoco_verbs_and_roles
from hoicli.errors import DataError
from hoicli.records.arrays import box_array, check_range, flat_array, read_array, read_integers, to_floats
from hoicli.records.interaction_arrays import label_boxes
from hoicli.records.kit import Ints
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary

NAMES = ("boxes", "pairing", "scores", "labels", "objects", "size")


class DetectedPairs(NamedTuple):
    """The output for one image. boxes [N, 4]: in pixels of the resized image, which has `size`, height and width;
    pairs [2, P] or [P, 2]: the rows of `boxes` of each pair, subject first; score, verb, label [P]: its score, its
    verb, and the label of its object."""

    boxes: NDArray[Any]
    pairs: NDArray[Any]
    score: NDArray[Any]
    verb: Ints
    label: Ints
    size: NDArray[Any]


def pair_triplets(
    outputs: Sequence[Mapping[str, Any]],
    sizes: Any,
    vocabulary: Vocabulary,
    *,
    limit: int | None,
    last_pixels: bool,
    form: str | None,
) -> list[Arrays]:
    """Return the triplets of each image as the arguments of `Evaluator.update`. form: of the pairs, "2xP" or "Px2", if
    the caller named it. Raises `DataError`."""
    images = [_read_image(output, f"outputs[{place}]", vocabulary) for place, output in enumerate(outputs)]
    pairs_of_images = [image.pairs for image in images]
    arrays = []
    for place, (image, image_size) in enumerate(zip(images, read_sizes(sizes, len(outputs)), strict=True)):
        subject, object_ = _split_pairs(image.pairs, pairs_of_images, form, f"outputs[{place}]")
        rows = np.concatenate([subject, object_])
        if ((rows < 0) | (rows >= len(image.boxes))).any():
            problem = f"has a row outside 0 to {len(image.boxes) - 1}, the image's boxes"
            raise DataError(problem, field=f"outputs[{place}].pairing")
        arrays.append(
            _image_arrays(image, subject, object_, image_size, vocabulary, last_pixels=last_pixels, limit=limit)
        )
    return arrays


def _read_image(output: Mapping[str, Any], place: str, vocabulary: Vocabulary) -> DetectedPairs:
    """Return the checked output for one image. place: what messages call it."""
    missing = [name for name in NAMES if not isinstance(output, Mapping) or name not in output]
    if missing:
        raise DataError(f"missing; an image has {', '.join(NAMES)}", field=f"{place}.{missing[0]}")
    try:
        boxes, pairs = box_array(output["boxes"]), read_array(output["pairing"], "pairing")
        score = to_floats(flat_array(read_array(output["scores"], "scores"), "scores"), "scores")
        if not np.isfinite(score).all():
            raise DataError("not finite", field=f"scores[{np.flatnonzero(~np.isfinite(score))[0]}]")
        verbs = len(_pocket_actions()[0]) if vocabulary.roles else len(vocabulary.verbs)
        verb = read_integers(output["labels"], "labels", "numbers of verbs")
        label = read_integers(output["objects"], "objects", "numbers of objects")
        check_range(verb, verbs, "labels", "verbs")
        check_range(label, len(vocabulary.objects), "objects", "objects in COCO's order")
        count = len(score)
        if not count and pairs.size == 0:
            pairs = np.zeros((2, 0), dtype=np.int64)
        if pairs.dtype.kind not in "iu" or pairs.shape not in ((2, count), (count, 2)):
            problem = f"has shape {pairs.shape} and dtype {pairs.dtype}, wants integers (2, {count}) or ({count}, 2)"
            raise DataError(problem, field="pairing")
        for name, numbers in (("labels", verb), ("objects", label)):
            if len(numbers) != count:
                raise DataError(f"{len(numbers)} values for {count} scores", field=name)
        size = read_sizes(read_array(output["size"], "size")[np.newaxis], 1, "size")[0]
    except DataError as error:
        raise DataError(error.problem, field=f"{place}.{error.field}") from None
    return DetectedPairs(boxes, pairs, score, verb, label, size)


def _split_pairs(
    pairs: NDArray[Any], pairs_of_images: Sequence[NDArray[Any]], form: str | None, place: str
) -> tuple[Ints, Ints]:
    """Return the subject and the object [P] of each pair. pairs: [2, P] or [P, 2]; two pairs look alike in both forms,
    so that `form` ("2xP", "Px2") says which it is, or the pairs of the other images, or that no box is paired with
    itself. Raises `DataError` if none of these tells, and for pairs that do not have this form."""
    if not pairs.size:
        return pairs[0], pairs[1]
    forms = _possible_forms(pairs)
    if form is not None and form not in forms:
        raise DataError(f"has shape {pairs.shape}, but pairing={form!r}", field=f"{place}.pairing")
    if len(forms) == 2:
        forms_of_others = [_possible_forms(others) for others in pairs_of_images]
        forms = {form} if form else set().union(*(others for others in forms_of_others if len(others) == 1))
    if len(forms) != 1:  # those in which no box is paired with itself
        named_forms = (("2xP", pairs), ("Px2", pairs.T))
        forms = {name for name, (subject, object_) in named_forms if (subject != object_).all()}
    if len(forms) != 1 and (pairs != pairs.T).any():
        problem = "two pairs in either form; say pairing='2xP' (UPT) or 'Px2' (PViC)"
        raise DataError(f"shape (2, 2) may be {problem}", field=f"{place}.pairing")
    subject, object_ = (pairs.T if forms == {"Px2"} else pairs).astype(np.int64)
    return subject, object_


def _possible_forms(pairs: NDArray[Any]) -> set[str]:
    """Return the forms that pairs of this shape may have: both if there are two pairs, or none."""
    return {form for form, length in zip(("2xP", "Px2"), pairs.shape, strict=True) if length == 2 or not pairs.size}


def _image_arrays(
    image: DetectedPairs,
    subject: Ints,
    object_: Ints,
    original_size: NDArray[Any],
    vocabulary: Vocabulary,
    *,
    last_pixels: bool,
    limit: int | None,
) -> Arrays:
    """Return the arrays of one image. subject, object_ [P]: rows of its boxes; original_size: before resizing."""
    # in the precision of the boxes, as the released cache_hico and cache_vcoco compute
    scale = original_size.astype(image.boxes.dtype) / image.size.astype(image.boxes.dtype)
    boxes = image.boxes * scale[[1, 0, 1, 0]]
    if last_pixels:
        boxes[:, 2:] -= 1
    rows = np.arange(len(image.score))
    if limit is not None and limit < len(rows):
        rows = np.sort(np.argsort(-image.score, kind="stable")[:limit])
    subject, object_, label, verb = (column[rows] for column in (subject, object_, image.label, image.verb))
    if vocabulary.roles:  # the released cache has a detected person for each triplet
        action, role = (numbers[verb] for numbers in _pocket_actions())
        arrays = paired_arrays((boxes[subject], boxes[object_]), label, np.arange(len(rows)), vocabulary)
        return arrays | {"verb": action, "role": role, "score": image.score[rows]}
    return label_boxes(boxes, subject, object_, label, vocabulary) | {"verb": verb, "score": image.score[rows]}


@cache
def _pocket_actions() -> tuple[Ints, Ints]:
    """Return the verb and the role [24] of each action of fredzzhang/vcoco: QPIC's action-roles in their order, without
    those that have no role, and without `point`."""
    verb, role = vcoco_verbs_and_roles()
    is_action = (role >= 0) & (verb != load("vcoco").verb_ids["point"])
    return verb[is_action], role[is_action]
