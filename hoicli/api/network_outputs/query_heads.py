"""Networks with queries that each have a pair of boxes and an object, and a score for every verb (QPIC, CDN) or every
interaction (GEN-VLKT, HOICLIP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoicli.api.network_outputs.ranking_rules import (
    VCOCO_INTERACTIONS,
    Arrays,
    Ranked,
    best_of_interactions,
    best_of_queries,
    interaction_pairs,
    paired_arrays,
    score_actions,
    state_roles,
    vcoco_verbs_and_roles,
)
from hoicli.converters.inpcc import sigmoid, softmax
from hoicli.errors import DataError
from hoicli.records.arrays import box_corners, read_array
from hoicli.records.kit import Floats, Ints
from hoicli.records.scenes import class_table
from hoicli.vocabulary.labels import Vocabulary

VERBS, INTERACTIONS, MATCHING = "pred_verb_logits", "pred_hoi_logits", "pred_matching_logits"


class Heads(NamedTuple):
    """How the outputs of a network become triplets. vocabulary: the dataset. matching: whether the probability that a
    query's boxes belong together is a factor of its scores. allowed: the factor of each verb and object label, None for
    1. limit: how many triplets an image gets, None for all."""

    vocabulary: Vocabulary
    matching: bool
    allowed: NDArray[Any] | None
    limit: int | None


def query_triplets(outputs: Mapping[str, Any], sizes: Any, heads: Heads) -> list[Arrays]:
    """Return the triplets of each image of a batch as the arguments of `Evaluator.update`. Raises `DataError`."""
    arrays = _read_outputs(outputs, heads)
    image_sizes = read_sizes(sizes, len(arrays["pred_obj_logits"]))
    return [
        _image_triplets({name: array[image] for name, array in arrays.items()}, size, heads)
        for image, size in enumerate(image_sizes)
    ]


def read_sizes(sizes: Any, count: int, field: str = "sizes") -> NDArray[Any]:
    """Return the sizes of `count` images [N, 2]; raise `DataError` if they are none. field: what errors call them."""
    array = read_array(sizes, field)
    if not array.size and not count:
        return np.zeros((0, 2))
    if array.shape != (count, 2) or array.dtype.kind not in "fiu" or not ((array > 0) & (array < np.inf)).all():
        problem = f"wants ({count}, 2): height and width of each image in pixels"
        raise DataError(f"has shape {array.shape}, {problem}", field=field)
    return array


def _read_outputs(outputs: Mapping[str, Any], heads: Heads) -> dict[str, Floats]:
    """Return the outputs of a network that are read, checked, in double precision. Raises `DataError`."""
    vocabulary = heads.vocabulary
    if VERBS in outputs and INTERACTIONS in outputs:
        raise DataError(f"beside {VERBS}; leave out the one that does not score triplets", field=INTERACTIONS)
    has_interactions = INTERACTIONS in outputs
    if vocabulary.roles:
        classes = VCOCO_INTERACTIONS if has_interactions else len(vcoco_verbs_and_roles()[0])
    else:
        classes = len(vocabulary.interactions if has_interactions else vocabulary.verbs)
    # the last object is that of a query without a pair; V-COCO's last but one that of an action without an object
    widths = {"pred_obj_logits": len(vocabulary.objects) + (2 if vocabulary.roles else 1)}
    widths |= {INTERACTIONS if has_interactions else VERBS: classes, "pred_sub_boxes": 4, "pred_obj_boxes": 4}
    if heads.matching:
        widths[MATCHING] = 2
    arrays: dict[str, Floats] = {}
    for name, width in widths.items():
        if name not in outputs:
            raise DataError(f"missing; a model's outputs have {', '.join(widths)}", field=name)
        shape = arrays[next(iter(arrays))].shape[:2] if arrays else None
        arrays[name] = _check_output(read_array(outputs[name], name), name, shape, width)
    return arrays


def _check_output(array: NDArray[Any], name: str, shape: tuple[int, ...] | None, width: int) -> Floats:
    """Return one output of a model as an array [N, Q, width] in double precision. shape: (N, Q), None if it is not
    known yet. Raises `DataError` for others, and for numbers that are not finite (a logit may be -inf)."""
    if array.ndim != 3 or array.shape[2] != width or shape not in (None, array.shape[:2]):
        expected = f"({', '.join(map(str, shape)) if shape else 'images, queries'}, {width})"
        raise DataError(f"has shape {array.shape}, wants {expected}", field=name)
    if array.dtype.kind not in "fiu":
        raise DataError(f"has dtype {array.dtype}, wants numbers", field=name)
    wrong = ~(array < np.inf) if name.endswith("logits") else ~np.isfinite(array)  # -inf hides a class
    if wrong.any():
        place = np.argwhere(wrong)[0].tolist()
        raise DataError(f"{array[tuple(place)]}: numbers must be finite", field=f"{name}{place}")
    return array.astype(np.float64)


def _image_triplets(outputs: dict[str, Floats], size: Any, heads: Heads) -> Arrays:
    """Return the best triplets of one image. outputs: by name, a row for every query; size: height and width."""
    vocabulary = heads.vocabulary
    subject_boxes = box_corners(outputs["pred_sub_boxes"], "cxcywh", size)
    object_boxes = box_corners(outputs["pred_obj_boxes"], "cxcywh", size)
    if INTERACTIONS in outputs and not vocabulary.roles:  # the classes are scored themselves
        scores, object_scores = sigmoid(outputs[INTERACTIONS]), sigmoid(outputs["pred_obj_logits"])
        ranked = best_of_interactions(scores, object_scores, vocabulary, heads.limit)
        return interaction_pairs(subject_boxes, object_boxes, ranked, vocabulary)
    object_probabilities = softmax(outputs["pred_obj_logits"])[:, :-1]  # the last is that of a query without a pair
    label = object_probabilities.argmax(axis=1)
    scores = _verb_scores(outputs, object_probabilities, label, heads)
    if vocabulary.roles:  # V-COCO: verbs with their roles
        ranked = best_of_queries(scores, heads.limit)
        return state_roles(_query_pairs(subject_boxes, object_boxes, label, ranked, vocabulary))
    # verbs alone: those that make no interaction with the query's object come last, and are then removed
    is_interaction = class_table(vocabulary)[:, label].T >= 0
    ranked = best_of_queries(np.where(is_interaction, scores, -1.0), heads.limit)
    is_class = ranked.score >= 0
    ranked = Ranked(ranked.query[is_class], ranked.number[is_class], ranked.score[is_class])
    return _query_pairs(subject_boxes, object_boxes, label, ranked, vocabulary)


def _verb_scores(
    outputs: dict[str, Floats], object_probabilities: NDArray[Any], label: Ints, heads: Heads
) -> NDArray[Any]:
    """Return [Q, verbs] the score of each verb for each query. label [Q]: its likeliest object."""
    scores: NDArray[Any]
    if INTERACTIONS in outputs:
        scores = score_actions(sigmoid(outputs[INTERACTIONS]), sigmoid(outputs["pred_obj_logits"]))
    else:
        scores = sigmoid(outputs[VERBS]) * object_probabilities.max(axis=1)[:, np.newaxis]
    if heads.matching:
        scores = scores * softmax(outputs[MATCHING])[:, 1:]
    if heads.allowed is not None:
        scores = scores * heads.allowed[:, label].T
    return scores


def _query_pairs(
    subject_boxes: NDArray[Any], object_boxes: NDArray[Any], label: Ints, ranked: Ranked, vocabulary: Vocabulary
) -> Arrays:
    """Return the arrays of an image from triplets of verbs, with two boxes for each query that has any."""
    used, pair = np.unique(ranked.query, return_inverse=True)
    boxes = subject_boxes[used], object_boxes[used]
    arrays = paired_arrays(boxes, label[used], pair.reshape(-1), vocabulary)
    return arrays | {"verb": ranked.number, "score": ranked.score}
