"""All predictions of a model, their ranking class by class, and the average precision of many classes at once, from the
ranks of their true positives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.evaluation.pairing import TRUE_POSITIVE
from hoicli.evaluation.protocols import Protocol
from hoicli.records.kit import Floats, Growing, Ints, distinct, rank_by_id, run_starts, runs_of, starts_of


class Listed:
    """The predictions of images, added in any order: image, class and score of each."""

    def __init__(self) -> None:
        self.image_ids: list[str] = []
        self._counts = Growing(count=np.int32)
        self._rows = Growing(interaction=np.int32, score=np.float64)
        self._length = 0
        self._by_score: Ints | None = None

    def __len__(self) -> int:
        return self._length

    def add(self, image_ids: Sequence[str], image: Ints, interaction: Ints, score: Floats) -> None:
        """Add a batch: image [T], ascending, indexes image_ids; interaction [T] the classes, -1 for none."""
        self.image_ids.extend(image_ids)
        self._counts.add(count=np.bincount(image, minlength=len(image_ids)))
        self._rows.add(interaction=interaction, score=score)
        self._length += len(score)
        self._by_score = None

    def merge(self, other: Listed) -> None:
        """Add the predictions of other images."""
        self.image_ids.extend(other.image_ids)
        self._counts.merge(other._counts)
        self._rows.merge(other._rows)
        self._length += len(other)
        self._by_score = None

    @property
    def interaction(self) -> NDArray[np.int32]:
        """[T] the class of each prediction."""
        return self._rows["interaction"]

    @property
    def score(self) -> Floats:
        """[T] the score of each."""
        return self._rows["score"]

    @property
    def image(self) -> Ints:
        """[T] the image of each."""
        return runs_of(starts_of(self._counts["count"]))

    def classless(self) -> int:
        """Return how many predictions have no class."""
        return int(np.count_nonzero(self.interaction < 0))

    def classless_best(self) -> tuple[int, int]:
        """(images whose best prediction, the first of equals, has no class; images with predictions)."""
        image = self.image
        order = np.lexsort((-self.score, image))
        best = order[np.flatnonzero(np.diff(image[order], prepend=-1))]
        return int((self.interaction[best] < 0).sum()), len(best)

    def order_by_score(self) -> Ints:
        """[T] the predictions by descending score, then image id, then place in the image; sorted once, until others
        are added."""
        if self._by_score is None:
            self._by_score = order_by_score(self.score, self._image_ranks)
        return self._by_score

    def rank_by_class(
        self,
        classes: NDArray[np.signedinteger[Any]],
        many: int,
        rows: Ints | None = None,
        place: NDArray[np.signedinteger[Any]] | None = None,
    ) -> Ranked:
        """The predictions with a class, by class, then as in `order_by_score`. classes: of each prediction, below
        `many`; -1 for none. With `rows` [R], which may have a prediction several times, classes [R] and the order are
        of these. place [T]: what orders those of one image before their places there."""
        row = np.arange(len(self)) if rows is None else rows
        before = [] if place is None else [place]

        def ties(tied: Ints) -> list[NDArray[Any]]:
            return [row[tied], *(column[row[tied]] for column in before), *self._image_ranks(row[tied])]

        order = ranking(classes, self.score[row], ties)
        bounds = starts_of(np.bincount(classes + 1, minlength=many + 1))
        return Ranked(order[bounds[1] :], bounds[1:] - bounds[1])

    def _image_ranks(self, rows: Ints) -> list[Ints]:
        """Return what orders predictions of one score: their images' ids."""
        return [rank_by_id(self.image_ids)[self.image[rows]]]


@dataclass(frozen=True)
class Ranked:
    """Predictions in the order of a ranking: order [R] their rows; class c has order[bounds[c]:bounds[c + 1]]."""

    order: Ints
    bounds: Ints


Ties = Callable[[Ints], Sequence[NDArray[Any]]]
"""Of some rows [R], what orders those of one score: keys [R], the last one first, as `numpy.lexsort` takes them."""


def ranking(classes: NDArray[np.signedinteger[Any]], score: Floats, ties: Ties = lambda _: ()) -> Ints:
    """[T] the order by class, then descending score, then `ties`, then place in the arrays.

    Each class is sorted alone, which is less work, and by a fast unstable sort, since equal scores are rare; these are
    put in order after it. So the order depends on the values alone, never on the sort's implementation."""
    classes = _digits(classes)
    order = np.argsort(classes, kind="stable")
    falling, owner = -score[order], classes[order]
    for start, end in pairwise([*run_starts(owner).tolist(), len(order)]):
        inside = np.argsort(falling[start:end])
        order[start:end], falling[start:end] = order[start:end][inside], falling[start:end][inside]
    same = np.flatnonzero((falling[1:] == falling[:-1]) & (owner[1:] == owner[:-1]))
    if len(same):
        tied = distinct(np.concatenate([same, same + 1]))
        rows = order[tied]
        order[tied] = rows[np.lexsort((rows, *ties(rows), -score[rows], classes[rows]))]
    return order


def order_by_score(score: Floats, ties: Ties = lambda _: ()) -> Ints:
    """[T] the order by descending score, then `ties`, then place in the array."""
    return ranking(np.zeros(len(score), dtype=np.int8), score, ties)


def order_by_class(classes: NDArray[np.signedinteger[Any]], order: Ints) -> Ints:
    """[T] the predictions by class, and those of one class as in `order`."""
    return order[np.argsort(_digits(classes)[order], kind="stable")]


def _digits(classes: NDArray[np.signedinteger[Any]]) -> NDArray[np.signedinteger[Any]]:
    """The classes, if possible of the type that NumPy sorts by its digits."""
    return classes.astype(np.int16) if classes.max(initial=0) < 1 << 15 else classes


def per_class(code: NDArray[np.uint8], bounds: Ints, positives: Ints, protocol: Protocol) -> tuple[Floats, Floats]:
    """(ap, max recall), each [C], of outcome codes in ranking order; class c has code[bounds[c]:bounds[c + 1]].

    A true positive's rank is the number of counted predictions of its class up to and including it.
    """
    counted_before = starts_of(code <= TRUE_POSITIVE)
    hit = np.flatnonzero(code == TRUE_POSITIVE)
    hit_bounds = np.searchsorted(hit, bounds)
    rank = counted_before[hit + 1] - np.repeat(counted_before[bounds[:-1]], np.diff(hit_bounds))
    return ranked_ap(rank, hit_bounds, positives, protocol)


def ranked_ap(rank: Ints, bounds: Ints, positives: Ints, protocol: Protocol) -> tuple[Floats, Floats]:
    """(ap, max recall), each [C], of the ranks of true positives; class c has rank[bounds[c]:bounds[c + 1]]."""
    if protocol.predictions_per_class is not None:
        counted = rank <= protocol.predictions_per_class
        rank = rank[counted]
        bounds = starts_of(counted)[bounds]
    recall: Floats = np.divide(np.diff(bounds), positives, out=np.zeros(len(positives)), where=positives > 0)
    if not protocol.grid:
        return enveloped_ap(rank, bounds, positives), recall
    return interpolated_ap(rank, bounds, positives, protocol.grid), recall


def precision_from(rank: Ints, bounds: Ints, positives: Ints, recalls: Sequence[float]) -> Iterator[Floats]:
    """For each of `recalls` [C] the largest precision of each class at that recall or more, in [0, 1].

    Arguments as for `interpolated_ap`. Precision is highest at a true positive (a false positive only lowers it), so
    only these matter: the k-th true positive at rank r gives precision k / r and recall k / positives. Recall is
    compared with `>=` in float64: the grid decides for a recall of exactly 3/10, 6/10 or 7/10
    (tests/evaluation/test_average_precision.py).
    """
    count = np.diff(bounds)
    owner = np.repeat(np.arange(len(positives)), count)
    hits_so_far = np.arange(len(rank)) - bounds[owner] + 1
    precision, recall = hits_so_far / rank, hits_so_far / positives[owner]
    has_some = np.flatnonzero(count)
    for point in recalls:
        largest = np.zeros(len(positives))
        if len(has_some):
            largest[has_some] = np.maximum.reduceat(np.where(recall >= point, precision, 0.0), bounds[has_some])
        yield largest


def interpolated_ap(rank: Ints, bounds: Ints, positives: Ints, grid: tuple[float, ...]) -> Floats:
    """[C] the mean over `grid` of each class's largest precision at any recall >= the grid value, in [0, 1].

    rank [K]: 1-based ranks of the true positives in their class's list, ascending; class c has
    rank[bounds[c]:bounds[c + 1]]. positives [C]: ground truth. A class without ground truth or true positives gets 0,
    as in every released evaluator.
    """
    ap = np.zeros(len(positives))
    for largest in precision_from(rank, bounds, positives, grid):
        ap += largest
    # The evaluators divide each summand, so a perfect class gets 100.00000000000003; this differs by at most 1e-15.
    return ap / len(grid)


def enveloped_ap(rank: Ints, bounds: Ints, positives: Ints) -> Floats:
    """[C] the area under each class's precision envelope, with a step at every recall, in [0, 1].

    Arguments as for `interpolated_ap`. Each true positive adds 1 / positives of recall at the largest precision
    of any recall from there on (PASCAL VOC since 2010; s-gupta/v-coco vsrl_eval.py `voc_ap`).
    """
    ap = np.zeros(len(positives))
    for number in np.flatnonzero(np.diff(bounds)).tolist():
        ranks = rank[bounds[number] : bounds[number + 1]]
        precision = np.arange(1, len(ranks) + 1) / ranks
        ap[number] = np.maximum.accumulate(precision[::-1]).sum() / positives[number]
    return ap
