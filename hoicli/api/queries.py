"""`hoicli.triplets`: the outputs of detectors like QPIC and CDN, as `Evaluator.update` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.inpcc import sigmoid, softmax
from hoicli.errors import DataError, UsageError
from hoicli.interface.command import wrap_for_python
from hoicli.interface.option_values import text_of
from hoicli.interface.options import Path
from hoicli.records.arrays import box_corners, read_array
from hoicli.records.kit import Bools, Floats
from hoicli.records.scenes import class_table
from hoicli.vocabulary.datasets import load

MATCHING = "pred_matching_logits"


@wrap_for_python
def triplets(
    outputs: Mapping[str, Any], sizes: Any, *, dataset: Path | None = None, top_k: int = 100
) -> list[dict[str, Any]]:
    """Return the best triplets of each image of a batch, as the arguments of `Evaluator.update`:

        for image_id, found in zip(image_ids, hoicli.triplets(model(images), sizes), strict=True):
            evaluator.update(image_id, **found)

    outputs: the arrays that QPIC and CDN return for N images with Q queries each, by their names:
    pred_obj_logits [N, Q, objects + 1], the last for no object; pred_verb_logits [N, Q, verbs]; pred_sub_boxes and
    pred_obj_boxes [N, Q, 4], cx, cy, w, h as shares of the image's sides; pred_matching_logits [N, Q, 2] if the model
    has them. Classes are in the dataset's order (`hoicli vocab`; objects in COCO's). Other outputs are not read.
    sizes [N, 2]: height and width of the original images in pixels. dataset: a name or a file, HICO-DET by default.

    A query's object is its likeliest. A score is sigmoid(verb) x softmax(object) x softmax(matching), for the verbs
    that make an interaction of the dataset with the object; the top_k best stay, of equal ones the first. This is what
    QPIC and CDN do (models/hoi.py, datasets/hico_eval.py), here in double precision. CDN's suppression of pairs is an
    option of `Evaluator` (`nms`).

    Raises `DataError` that names the output and the place, `UsageError` for V-COCO, whose verbs have roles.
    """
    vocabulary = load(text_of(dataset) or "hico")
    if vocabulary.roles:
        raise UsageError(f"dataset={vocabulary.name!r}: its verbs have roles; give them to Evaluator.update")
    if top_k < 1:
        raise UsageError(f"top_k={top_k}: give a number from 1")
    widths = {"pred_obj_logits": len(vocabulary.objects) + 1, "pred_verb_logits": len(vocabulary.verbs),
              "pred_sub_boxes": 4, "pred_obj_boxes": 4, MATCHING: 2}  # fmt: skip
    arrays: dict[str, Floats] = {}
    for name, width in widths.items():
        if name in outputs:
            shape = arrays[next(iter(arrays))].shape[:2] if arrays else None
            arrays[name] = _check_output(read_array(outputs[name], name), name, shape, width)
        elif name != MATCHING:
            raise DataError(f"missing; a model's outputs have {', '.join(list(widths)[:-1])}", field=name)
    image_sizes, count = read_array(sizes, "sizes"), len(arrays["pred_obj_logits"])
    if image_sizes.shape != (count, 2) or image_sizes.dtype.kind not in "fiu" or not (image_sizes > 0).all():
        problem = f"wants ({count}, 2): height and width of each image in pixels"
        raise DataError(f"has shape {image_sizes.shape}, {problem}", field="sizes")
    is_interaction, person = class_table(vocabulary) >= 0, vocabulary.object_ids[vocabulary.subjects[0]]
    best_by_image = []
    for image, size in enumerate(image_sizes):
        outputs_of_image = {name: array[image] for name, array in arrays.items()}
        best_by_image.append(_best_triplets(outputs_of_image, size, is_interaction, person, top_k))
    return best_by_image


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


def _best_triplets(
    outputs: dict[str, Floats], size: Any, is_interaction: Bools, person: int, top_k: int
) -> dict[str, Any]:
    """Return the top_k best triplets of one image as the arguments of `Evaluator.update`: boxes, labels and so on.

    outputs: the model's outputs for this image by name, each with a row for every query; size: the image's height and
    width; is_interaction [verbs, objects]: which pairs are classes of the dataset; person: the object id of every
    subject."""
    object_scores = softmax(outputs["pred_obj_logits"])[:, :-1]
    label = object_scores.argmax(axis=1)
    score = sigmoid(outputs["pred_verb_logits"]) * object_scores.max(axis=1)[:, None]
    if MATCHING in outputs:
        score *= softmax(outputs[MATCHING])[:, 1:]
    # Scores are negated, so that ascending order has the best first; 1, above them all, marks what is no interaction.
    sort_key = np.where(is_interaction[:, label].T, -score, 1.0).ravel()
    best = np.argsort(sort_key, kind="stable")[:top_k]
    best = best[sort_key[best] <= 0]
    query, verb = np.divmod(best, len(is_interaction))
    used_queries, pair = np.unique(query, return_inverse=True)
    corners = [box_corners(outputs[f"pred_{side}_boxes"][used_queries], "cxcywh", size) for side in ("sub", "obj")]
    return {
        "boxes": np.concatenate(corners),
        "labels": np.concatenate([np.full(len(used_queries), person), label[used_queries]]),
        "subject": pair,
        "object": pair + len(used_queries),
        "verb": verb,
        "score": score.ravel()[best],
    }
