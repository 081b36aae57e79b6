"""Grounding: which of the pairs that an interaction has in an image are found, as average recall (AR).

As recalculate_ground_metrics.py of hoi-benchmarks (SIT-AIGCDesignLab, commit 78ab063) and its batch scripts have it:
predicted pairs, in their order, take the free true pair that they overlap most, if the mean of the two IoUs is at least
the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

import numpy as np

from hoicli.evaluation.box_rules import AREAS
from hoicli.evaluation.pairing import first_largest
from hoicli.records.boxes import iou
from hoicli.records.kit import Bools, Floats, Ints, expanded, run_starts, runs_of, starts_of
from hoicli.resampling.draws import Weights
from hoicli.vlm.measured import Key, Measured, share
from hoicli.vlm.results import NOWHERE, Grounding

THRESHOLDS: Floats = np.arange(50, 100, 5) / 100
RELEASED_THRESHOLDS: Floats = np.arange(0.5, 1.0, 0.05)
"""Those of AR. The released ones are a little more than they say (0.7500000000000002), so that an IoU of exactly 0.75
does not reach them."""
SIZES = {size: bounds for size, bounds in AREAS.items() if size != "all"}
"""The least area of the true pair's object in pixels, and the area that is too much."""


@dataclass(frozen=True)
class Grounded(Measured):
    """hits [T, 12]: whether each true pair is found at 0.5, at 0.75 and at each threshold of AR; question [T]
    whose it is; area [T] of its object; image [Q] of each question, by name, of `images`. Questions without a pair are
    left out."""

    hits: Bools
    question: Ints
    area: Floats
    image: Ints
    images: int

    @cached_property
    def _shares(self) -> Floats:
        """[Q, thresholds] the share of each question's pairs found."""
        count = np.bincount(self.question, minlength=len(self.image))
        found = np.stack([np.bincount(self.question, column, len(self.image)) for column in self.hits.T], axis=1)
        shares: Floats = found / count[:, np.newaxis]
        return shares

    def _of_size(self, size: str) -> Bools:
        least, most = SIZES[size]
        mine: Bools = (self.area >= least) & (self.area < most)
        return mine | (self.area < 0) if size == "small" else mine

    def counts(self) -> dict[Key, int]:
        """By (metric, subset): AR, AR@0.5 and AR@0.75 are means over questions; AR of a size is over its pairs."""
        asked = {(metric, "full"): len(self.image) for metric in ("AR", "AR@0.5", "AR@0.75")}
        return asked | {("AR", size): int(self._of_size(size).sum()) for size in SIZES}

    def rounds(self, weights: Weights) -> dict[Key, Floats]:
        """[R] each recall, by how often each image counts."""
        drawn = weights[self.image].astype(np.float64)
        asked = drawn.sum(axis=0)
        columns = {("AR", "full"): self._shares[:, 2:].mean(axis=1)}
        columns |= {("AR@0.5", "full"): self._shares[:, 0], ("AR@0.75", "full"): self._shares[:, 1]}
        found = {key: share((column[:, np.newaxis] * drawn).sum(axis=0), asked) for key, column in columns.items()}
        for size in SIZES:
            mine = self._of_size(size)
            pairs = drawn[self.question[mine]]
            hits = self.hits[mine, 2:].sum(axis=1) / (self.hits.shape[1] - 2)
            found["AR", size] = share((hits[:, np.newaxis] * pairs).sum(axis=0), pairs.sum(axis=0))
        return found


def grounded(rows: Sequence[Grounding], *, most: int | None = None, released: bool = False) -> Grounded:
    """Which true pairs are found. most: how many predicted pairs of a question count, the first; released: at
    RELEASED_THRESHOLDS."""
    asked = [row for row in rows if row.truth]
    images = {name: at for at, name in enumerate(sorted({row.image for row in asked}))}
    truth_starts = starts_of([len(row.truth) for row in asked])
    found = [[pair for pair in row.found[:most] if pair != NOWHERE] for row in asked]
    found_starts = starts_of([len(pairs) for pairs in found])
    truth, predicted = _boxes(chain.from_iterable(row.truth for row in asked)), _boxes(chain.from_iterable(found))
    of_found = runs_of(found_starts)
    counts = np.diff(truth_starts)
    row, column = expanded(truth_starts[of_found], counts[of_found])
    people, others = (iou(predicted[side][:, row], truth[side][:, column], inclusive=False) for side in (0, 1))
    score = (people + others) / 2.0
    rank = (np.arange(len(of_found)) - found_starts[of_found])[row]
    every = RELEASED_THRESHOLDS if released else THRESHOLDS
    hits = np.zeros((len(truth[0].T), 2 + len(every)), dtype=bool)
    for at, threshold in enumerate((0.5, 0.75, *every)):
        kept = np.flatnonzero(score >= threshold)
        _take(hits[:, at], row[kept], column[kept], score[kept], rank[kept])
    boxes = truth[1]
    with np.errstate(over="ignore", invalid="ignore"):
        area = (boxes[2] - boxes[0]) * (boxes[3] - boxes[1])
    return Grounded(
        hits, runs_of(truth_starts), area, np.array([images[row.image] for row in asked], dtype=np.int64), len(images)
    )


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
