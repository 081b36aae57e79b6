"""Grounding: which of the pairs that an interaction has in an image are found, as average recall (AR).

As recalculate_ground_metrics.py of hoi-benchmarks (SIT-AIGCDesignLab, commit 78ab063) and its batch scripts have it:
predicted pairs, in their order, take the free true pair that they overlap most, if the mean of the two IoUs is at least
the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from hoicli.evaluation.box_rules import AREAS
from hoicli.evaluation.pairing import first_largest
from hoicli.records.boxes import iou
from hoicli.records.kit import Bools, Floats, Ints, expanded, run_starts, runs_of, starts_of
from hoicli.vlm.measured import Measured, Shares
from hoicli.vlm.results import Grounding

THRESHOLDS: Floats = np.arange(50, 100, 5) / 100
RELEASED_THRESHOLDS: Floats = np.arange(0.5, 1.0, 0.05)
"""Those of AR. The released ones are a little more than they say (0.7500000000000002), so that an IoU of exactly 0.75
does not reach them."""
SIZES = {size: bounds for size, bounds in AREAS.items() if size != "all"}
"""The least area of the true pair's object in pixels, and the area that is too much."""


def grounded(rows: Sequence[Grounding], *, released: bool = False) -> Measured:
    """AR, AR@0.5 and AR@0.75, means over questions, and AR of a size, over its pairs; questions without a pair are left
    out. released: at RELEASED_THRESHOLDS."""
    asked = [row for row in rows if row.truth]
    images = {name: at for at, name in enumerate(sorted({row.image for row in asked}))}
    truth_starts = starts_of([len(row.truth) for row in asked])
    found_starts = starts_of([len(row.found) for row in asked])
    truth = _boxes(chain.from_iterable(row.truth for row in asked))
    predicted = _boxes(chain.from_iterable(row.found for row in asked))
    of_found = runs_of(found_starts)
    counts = np.diff(truth_starts)
    row, column = expanded(truth_starts[of_found], counts[of_found])
    people, others = (iou(predicted[side][:, row], truth[side][:, column], inclusive=False) for side in (0, 1))
    score = (people + others) / 2.0
    rank = (np.arange(len(of_found)) - found_starts[of_found])[row]
    every = RELEASED_THRESHOLDS if released else THRESHOLDS
    hits = np.zeros((len(truth[0].T), 2 + len(every)), dtype=bool)  # at 0.5, at 0.75 and at each threshold of AR
    for at, threshold in enumerate((0.5, 0.75, *every)):
        kept = np.flatnonzero(score >= threshold)
        _take(hits[:, at], row[kept], column[kept], score[kept], rank[kept])
    image = np.array([images[row.image] for row in asked], dtype=np.int64)
    question = runs_of(truth_starts)
    found = np.stack([np.bincount(question, column, len(image)) for column in hits.T], axis=1) / counts[:, np.newaxis]
    values = {"AR": found[:, 2:].mean(axis=1), "AR@0.5": found[:, 0], "AR@0.75": found[:, 1]}
    n = {(metric, "full"): len(image) for metric in values}
    shares = [Shares(image, {(metric, "full"): (value, np.ones_like(image)) for metric, value in values.items()})]
    x1, y1, x2, y2 = truth[1]
    with np.errstate(over="ignore", invalid="ignore"):
        area = (x2 - x1) * (y2 - y1)
    for size, (least, most) in SIZES.items():
        mine = (area >= least) & (area < most) | (area < 0) & (size == "small")
        of_pairs = image[question[mine]]
        part = hits[mine, 2:].sum(axis=1) / len(every)
        shares.append(Shares(of_pairs, {("AR", size): (part, np.ones_like(of_pairs))}))
        n["AR", size] = len(of_pairs)
    return Measured(len(images), n, shares)


def _boxes(pairs: object) -> tuple[Floats, Floats]:
    """Two [4, N]: the people's boxes and the others'."""
    both = np.array(list(pairs), dtype=np.float64).reshape(-1, 2, 4)  # type: ignore[call-overload]
    return np.ascontiguousarray(both[:, 0].T), np.ascontiguousarray(both[:, 1].T)


def _take(hit: Bools, row: Ints, column: Ints, score: Floats, rank: Ints) -> None:
    """Every prediction takes the free true pair with its highest score, those of rank 0 first."""
    order = np.argsort(rank, kind="stable")
    bounds = [*run_starts(rank[order]).tolist(), len(order)]
    for begin, end in pairwise(bounds):  # one round for each rank, over all questions
        mine = order[begin:end]
        mine = mine[~hit[column[mine]]]
        hit[column[mine[first_largest(row[mine], score[mine])]]] = True
