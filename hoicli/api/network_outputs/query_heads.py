"""Networks with queries that each have a pair of boxes and an object, and a score for every verb (QPIC, CDN) or every
interaction (GEN-VLKT, HOICLIP)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoicli.api.network_outputs.ranking_rules import (
    Arrays,
    Ranked,
    allow_no_object,
    best_of_interactions,
    best_of_queries,
    interaction_pairs,
    score_interactions,
    state_roles,
    vcoco_verbs_and_roles,
)
from hoicli.converters.inpcc import sigmoid, softmax
from hoicli.errors import DataError
from hoicli.records.arrays import box_corners, read_array
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.records.scenes import class_table
from hoicli.vocabulary.labels import Vocabulary

VERBS, INTERACTIONS, MATCHING = "pred_verb_logits", "pred_hoi_logits", "pred_matching_logits"

_GEN_VLKT_VCOCO = (
    "0:41 16:80 17:53 0:53 2:80 8:53 9:80 23:80 21:37 0:73 2:13 5:73 27:73 1:80 22:36 20:30 0:80 8:80 2:56 5:63 "
    "19:63 0:40 24:40 5:31 28:31 0:76 5:80 5:76 16:76 17:80 5:37 2:17 3:17 4:80 5:29 10:80 14:29 18:80 5:53 0:48 "
    "8:48 0:67 19:80 0:24 13:24 11:80 11:57 0:17 0:15 11:59 15:29 3:80 12:67 0:31 10:31 5:36 10:36 0:79 27:80 "
    "0:39 24:39 2:59 5:48 0:30 0:38 5:32 6:38 7:32 5:0 5:17 0:47 5:18 8:47 25:32 0:44 5:55 8:55 9:44 0:63 6:80 "
    "2:3 3:3 0:43 5:43 16:43 17:55 7:80 0:34 6:34 15:80 2:57 0:77 13:49 0:42 9:42 5:62 0:28 13:28 2:20 3:20 5:15 "
    "0:56 5:60 24:41 14:80 13:26 5:16 0:46 13:46 5:28 9:43 0:37 13:37 8:54 0:0 0:35 0:65 0:54 0:26 13:80 13:0 "
    "0:32 14:32 5:54 0:1 2:1 3:1 5:1 25:80 5:67 5:6 0:29 0:36 3:7 26:63 0:3 13:30 0:25 5:45 17:51 0:52 8:52 0:33 "
    "5:13 12:80 22:80 5:35 15:32 26:80 13:25 5:40 10:37 5:33 13:33 3:6 5:44 0:20 21:80 5:20 3:8 5:23 13:67 11:56 "
    "5:19 5:42 0:55 13:32 5:30 13:36 26:67 5:52 8:46 20:80 28:80 0:14 11:60 0:16 0:72 5:72 5:7 5:41 2:61 24:80 "
    "0:27 5:27 17:27 5:10 26:10 11:13 17:18 0:64 5:64 5:66 16:42 17:0 5:5 3:2 10:30 5:4 5:46 2:28 13:29 5:26 8:50 "
    "17:46 0:18 17:48 26:0 5:3 5:24 0:45 26:27 0:49 8:49 5:34 13:31 17:54 5:38 8:51 17:47 13:40 26:48 26:62 13:74 "
    "5:61 26:19 5:65 26:18 0:50 0:13 26:33 0:7 13:41 24:45 13:38 13:39 5:47 5:56 2:24 26:60 0:78 5:39 26:55 26:66 "
    "26:72 5:74 0:8 17:45 26:23 5:25 0:66 2:26 26:52 2:60 13:77 0:51 13:34 5:2 3:5 17:50 5:14 13:73 5:50"
)
"""The interactions of V-COCO that GEN-VLKT and HOICLIP score (datasets/vcoco_text_label.py), in their order: the number
of QPIC's action-role, and of COCO's object, with 80 for none."""


class Heads(NamedTuple):
    """How the outputs of a network become triplets. vocabulary: the dataset. matching: whether the probability that a
    query's boxes belong together is a factor of its scores. allowed: the factor of each verb and object label, None for
    1. most: how many triplets an image gets, None for all."""

    vocabulary: Vocabulary
    matching: bool
    allowed: NDArray[Any] | None
    most: int | None


def query_triplets(outputs: Mapping[str, Any], sizes: Any, heads: Heads) -> list[Arrays]:
    """Return the triplets of each image of a batch as the arguments of `Evaluator.update`. outputs, sizes: as the user
    gave them to `triplets`. Raises `DataError` that names the output and the place."""
    arrays = _read_outputs(outputs, heads)
    image_sizes = read_sizes(sizes, len(arrays["pred_obj_logits"]))
    return [
        _image_triplets({name: array[image] for name, array in arrays.items()}, size, heads)
        for image, size in enumerate(image_sizes)
    ]


def read_sizes(sizes: Any, count: int, field: str = "sizes") -> NDArray[Any]:
    """Return the sizes of `count` images [N, 2]; raise `DataError` if they are none. field: what errors call them."""
    array = read_array(sizes, field)
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
        classes = len(_gen_vlkt_vcoco()[0]) if has_interactions else len(vcoco_verbs_and_roles()[0])
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
    """Return one output of a model as an array [N, Q, width] in double precision. name: of the output; shape: (N, Q),
    None if it is not known yet; width: how long the last axis must be. Raises `DataError` for another shape or type,
    and for numbers that are not finite (but a logit may be -inf)."""
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
    """Return the best triplets of one image. outputs: the model's for this image, by name, each with a row for every
    query; size: the image's height and width."""
    subject_boxes, object_boxes = (
        box_corners(outputs[f"pred_{side}_boxes"], "cxcywh", size) for side in ("sub", "obj")
    )
    probabilities = softmax(outputs["pred_obj_logits"])[:, :-1]
    label = probabilities.argmax(axis=1)
    if INTERACTIONS in outputs:
        scores, object_scores = sigmoid(outputs[INTERACTIONS]), sigmoid(outputs["pred_obj_logits"])
        if not heads.vocabulary.roles:
            ranked = best_of_interactions(scores, object_scores, heads.vocabulary, heads.most)
            return interaction_pairs(subject_boxes, object_boxes, ranked, heads.vocabulary)
        action, object_of = _gen_vlkt_vcoco()
        combined = score_interactions(scores, object_scores, object_of)
        actions = range(len(vcoco_verbs_and_roles()[0]))
        scores = np.stack([combined[:, action == number].max(axis=1) for number in actions], axis=1)
    else:
        scores = sigmoid(outputs[VERBS]) * probabilities.max(axis=1)[:, np.newaxis]
    if heads.matching:
        scores = scores * softmax(outputs[MATCHING])[:, 1:]
    if heads.allowed is not None:
        scores = scores * heads.allowed[:, label].T
    if heads.vocabulary.roles:
        ranked = best_of_queries(scores, heads.most)
        return state_roles(_query_pairs(subject_boxes, object_boxes, label, ranked, heads.vocabulary))
    is_interaction: Bools = class_table(heads.vocabulary)[:, label].T >= 0
    ranked = best_of_queries(np.where(is_interaction, scores, -1.0), heads.most)
    kept = ranked.score >= 0
    ranked = Ranked(ranked.query[kept], ranked.number[kept], ranked.score[kept])
    return _query_pairs(subject_boxes, object_boxes, label, ranked, heads.vocabulary)


def _query_pairs(
    subject_boxes: NDArray[Any], object_boxes: NDArray[Any], label: Ints, ranked: Ranked, vocabulary: Vocabulary
) -> Arrays:
    """Return the arrays of an image from triplets of verbs, with two boxes for each query that has any. subject_boxes,
    object_boxes [Q, 4]; label [Q]: the objects."""
    used, pair = np.unique(ranked.query, return_inverse=True)
    pair = pair.reshape(-1)
    person = np.full(len(used), vocabulary.object_ids[vocabulary.subjects[0]])
    return {
        "boxes": np.concatenate([subject_boxes[used], object_boxes[used]]),
        "labels": np.concatenate([person, label[used]]),
        "subject": pair, "object": pair + len(used), "verb": ranked.number, "score": ranked.score,
    }  # fmt: skip


@cache
def _gen_vlkt_vcoco() -> tuple[Ints, Ints]:
    """Return the action-role and the object label [263] of each of GEN-VLKT's interactions of V-COCO."""
    action, label = np.array([entry.split(":") for entry in _GEN_VLKT_VCOCO.split()], dtype=np.int64).T
    return action, label


def read_correct_mat(correct_mat: Any) -> NDArray[Any]:
    """Return [29, 81] the factors of scores in V-COCO's `correct_mat` [29 action-roles, 80 objects], a column for no
    object added. Raises `DataError` for another shape."""
    array = read_array(correct_mat, "correct_mat")
    if array.shape != (29, 80) or array.dtype.kind not in "bfiu" or not np.isfinite(array).all():
        raise DataError(f"has shape {array.shape}, wants (29, 80): action-roles and objects", field="correct_mat")
    return allow_no_object(array)
