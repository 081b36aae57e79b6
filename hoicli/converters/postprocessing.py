"""From a detector's raw outputs to triplets, as INP-CC's PostProcess does it (ltttpku/INP-CC models/model.py).

    score = sigmoid or softmax of a query's logits  x  (its box score) ** lambda;  kept above the threshold
    boxes = [cx, cy, w, h] to [x1, y1, x2, y2], clamped to the image, times its width and height

The released class then removes pairs: within a class of the image, the persons' boxes are suppressed at IoU 0.5 by
score, the objects' boxes likewise, and a pair goes if it lost on both sides (`box_nms`). Its defaults are lambda 1,
sigmoid and that suppression; its command line sets lambda 2, softmax, threshold 0.0001. All numbers here are float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hoicli.converters.numbers import ACTIVATIONS, BOX_SCORES
from hoicli.errors import DataError, UsageError, arg
from hoicli.records.boxes import iou
from hoicli.records.kit import Bools, Floats, Ints, run_starts

MOST_TRIPLETS = 100_000
"""Of one image, before suppression. Benchmarks count up to 100, and a record of so many has 9 MB."""


@dataclass(frozen=True)
class PostProcessing:
    """The settings. box_scores None: they are logits if one of them lies outside [0, 1], else probabilities."""

    activation: str = "sigmoid"
    power: float = 1.0
    threshold: float = 0.1
    box_scores: str | None = None
    box_nms: float | None = None

    @classmethod
    def checked(cls, **given: Any) -> PostProcessing:
        """From a command's options; None is the default. Raises `UsageError` for values out of range."""
        settings = cls(**{name: value for name, value in given.items() if value is not None})
        chosen = (("activation", settings.activation, ACTIVATIONS), ("box_scores", settings.box_scores, BOX_SCORES))
        for option, value, choices in chosen:
            if value not in (None, *choices):
                raise UsageError(f"{arg(option, value)}: choose {' or '.join(choices)}")
        if not 0 <= settings.power < np.inf:
            raise UsageError(f"{arg('lambda_', settings.power)}: an exponent, at least 0")
        if not 0 <= settings.threshold < 1:
            raise UsageError(f"{arg('threshold', settings.threshold)}: scores lie between 0 and 1")
        if settings.box_nms is not None and not 0 <= settings.box_nms <= 1:
            raise UsageError(f"{arg('box_nms', settings.box_nms)}: the threshold is an overlap, between 0 and 1")
        return settings


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)) without overflow."""
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, decay) / (1.0 + decay)


def softmax(x: Floats) -> Floats:
    """[Q, C] exp(x) over its sum along the last axis."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    total: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return total


def triplets(
    logits: Floats, boxes: Floats, box_probability: Floats, settings: PostProcessing
) -> tuple[Ints, Ints, Floats]:
    """(query, column, score), each [K], of the kept triplets, by query, then column.

    logits [Q, C]; boxes [Q, 8] the corners of person and object (`corners`), needed for `box_nms` only;
    box_probability [Q] in [0, 1]. Raises `DataError` for more than MOST_TRIPLETS above the threshold.
    """
    probability = sigmoid(logits) if settings.activation == "sigmoid" else softmax(logits)
    scores = probability * (box_probability**settings.power)[:, np.newaxis]
    query, column = np.nonzero(scores > settings.threshold)
    if len(query) > MOST_TRIPLETS:
        problem = (
            f"{len(query):,} triplets, at most {MOST_TRIPLETS:,} an image; raise {arg('threshold')} "
            f"({settings.threshold:g})"
        )
        raise DataError(problem, field=".pred_logits")
    score = scores[query, column]
    if settings.box_nms is not None:
        kept = np.zeros(len(query), dtype=bool)
        for sides in (boxes[:, :4], boxes[:, 4:]):
            kept |= _survivors(sides, query, column, score, settings.box_nms)
        query, column, score = query[kept], column[kept], score[kept]
    return query, column, score


def corners(boxes: Floats, size: tuple[float, float]) -> Floats:
    """[Q, 8] pixels, x1 y1 x2 y2 of the person and of the object, from [Q, 8] relative cx cy w h; size: height, width.

    Clamped to the image first, as the released code does.
    """
    centre, extent = (boxes.reshape(-1, 2, 2, 2)[:, :, part] for part in (0, 1))  # [Q, side, xy]
    relative = np.concatenate([centre - extent / 2, centre + extent / 2], axis=2)
    height, width = size
    pixels: Floats = relative.clip(0.0, 1.0) * np.array([width, height, width, height])
    return pixels.reshape(-1, 8)


def _survivors(boxes: Floats, query: Ints, column: Ints, score: Floats, threshold: float) -> Bools:
    """[K] what remains after greedy suppression within each class by descending score, ties by query. All classes share
    the queries' boxes, so overlaps are computed once for Q x Q; each round keeps the best remaining one of every class.
    """
    first, second = np.repeat(boxes, len(boxes), axis=0), np.tile(boxes, (len(boxes), 1))
    overlap = iou(first.T, second.T, inclusive=False).reshape(len(boxes), len(boxes))
    kept = np.zeros(len(query), dtype=bool)
    rows = np.lexsort((query, -score, column))
    while len(rows):
        group = column[rows]
        starts = run_starts(group)
        leader = np.repeat(rows[starts], np.diff(np.r_[starts, len(rows)]))
        kept[rows[starts]] = True
        left = overlap[query[leader], query[rows]] <= threshold
        left[starts] = False
        rows = rows[left]
    return kept
