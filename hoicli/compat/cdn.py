"""The evaluators of CDN, MUREN and SL-HOI (YueLiao/CDN datasets/hico_eval.py, vcoco_eval.py)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.api.network_outputs.ranking_rules import Arrays
from hoicli.compat import query_evaluators
from hoicli.compat.files import write_file
from hoicli.compat.query_evaluators import Outputs, Triplet, nms_of


class HICOEvaluator(query_evaluators.HICODETEvaluator):
    """Takes the place of CDN's class of this name. args: its options; `use_nms_filter`, `thres_nms`, `nms_alpha` and
    `nms_beta` say whether pairs are suppressed, and `json_file` names the file that predictions and ground truth are
    written to."""

    def __init__(
        self, preds: Sequence[Outputs], gts: Sequence[Outputs], rare_triplets: Collection[Triplet],
        non_rare_triplets: Collection[Triplet], correct_mat: Any, args: Any,
    ) -> None:  # fmt: skip
        super().__init__(preds, gts, rare_triplets, non_rare_triplets, correct_mat, nms_of(args))
        write_json_file(self, getattr(args, "json_file", None))


class VCOCOEvaluator(query_evaluators.VCOCOEvaluator):
    """Takes the place of CDN's class of this name, which takes `use_nms_filter` and does nothing with it."""

    def __init__(
        self, preds: Sequence[Outputs], gts: Sequence[Outputs], correct_mat: Any, use_nms_filter: bool = False
    ) -> None:
        super().__init__(preds, gts, correct_mat)


def write_json_file(evaluator: query_evaluators.HICODETEvaluator, path: str | None) -> None:
    """Write predictions after pair NMS and ground truth as CDN does: one JSON text with a Python dictionary."""
    if path is None:
        return
    preds = [
        {"filename": name, "predictions": _boxes(arrays), "hoi_prediction": _hois(arrays, _numbers(arrays["score"]))}
        for name, arrays in evaluator.remaining_predictions.items()
    ]
    shift = query_evaluators.HICO_DATASET_SHIFT
    gts = [
        {"filename": name, "annotations": _boxes(arrays, shift), "hoi_annotation": _hois(arrays)}
        for name, arrays in evaluator.truth.items()
    ]
    write_file(path, "json_file", json.dumps(str({"preds": preds, "gts": gts})).encode())


def _boxes(arrays: Arrays, shift: float = 0.0) -> list[dict[str, Any]]:
    """Return the boxes of an image, moved by `shift`, with their labels."""
    boxes, labels = _numbers(arrays["boxes"] + shift), arrays["labels"].tolist()
    return [{"bbox": box, "category_id": label} for box, label in zip(boxes, labels, strict=True)]


def _hois(arrays: Arrays, scores: list[float] | None = None) -> list[dict[str, Any]]:
    """Return the triplets of an image, with their scores if given."""
    names = {"subject_id": "subject", "object_id": "object", "category_id": "verb"}
    columns = {key: arrays[name].tolist() for key, name in names.items()} | (
        {} if scores is None else {"score": scores}
    )
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _numbers(array: NDArray[Any]) -> list[Any]:
    """Return the numbers as Python's, a float32 as the shortest decimal that it prints as."""
    numbers: list[Any] = array.astype(str).astype(np.float64).tolist()
    return numbers
