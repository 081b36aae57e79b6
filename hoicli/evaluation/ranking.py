"""All predictions of a model, their ranking class by class, and the average precision of many classes at once, from the
ranks of their true positives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.evaluation.pairing import TRUE_POSITIVE
from hoicli.evaluation.protocols import Protocol
from hoicli.records.kit import Floats, Growing, Ints, distinct, rank_by_id, run_starts, runs_of, starts_of


class Listed:
    """All predictions of a model, added batch by batch: the image, class and score of each. T is their number.

    rankings: those made so far by interaction (False) or verb (True), which all tallies of these predictions share."""

    def __init__(self) -> None:
        """Begin with no predictions."""
        self.image_ids: list[str] = []
        self._counts = Growing(count=np.int32)  # by image: how many predictions it has
        self._rows = Growing(interaction=np.int32, score=np.float64)
        self._length = 0
        self.rankings: dict[bool, Ranked] = {}

    def __len__(self) -> int:
        """Return the number of predictions."""
        return self._length

    def add(self, image_ids: Sequence[str], image: Ints, interaction: Ints, score: Floats) -> None:
        """Add the predictions of some images, M in all. image [M]: the image of each prediction, an index into
        image_ids, ascending; interaction [M]: its class, -1 for none; score [M]."""
        self.image_ids.extend(image_ids)
        self._counts.add(count=np.bincount(image, minlength=len(image_ids)))
        self._rows.add(interaction=interaction, score=score)
        self._length += len(score)
        self.rankings.clear()

    def merge(self, other: Listed) -> None:
        """Add the predictions that another `Listed` holds, which must be of other images."""
        self.image_ids.extend(other.image_ids)
        self._counts.merge(other._counts)
        self._rows.merge(other._rows)
        self._length += len(other)
        self.rankings.clear()

    @property
    def interaction(self) -> NDArray[np.int32]:
        """[T] the class of each prediction."""
        return self._rows["interaction"]

    @property
    def score(self) -> Floats:
        """[T] the score of each prediction."""
        return self._rows["score"]

    @property
    def image(self) -> Ints:
        """[T] the image of each prediction, an index into `image_ids`."""
        return runs_of(starts_of(self._counts["count"]))

    def predicted_images(self) -> Iterator[str]:
        """Return the ids of the images that have predictions."""
        return compress(self.image_ids, self._counts["count"].tolist())

    def classless(self) -> int:
        """Return how many predictions have no class."""
        return int(np.count_nonzero(self.interaction < 0))

    def classless_best(self) -> tuple[int, int]:
        """Return (in how many images the best-scored prediction has no class, how many images have predictions). Of
        equal scores, the first prediction is taken as the best."""
        image = self.image
        order = np.lexsort((-self.score, image))  # by image, then by descending score
        best = order[np.flatnonzero(np.diff(image[order], prepend=-1))]
        return int((self.interaction[best] < 0).sum()), len(best)

    def rank_by_class(
        self,
        classes: NDArray[np.signedinteger[Any]],
        class_count: int,
        rows: Ints | None = None,
        place: NDArray[np.signedinteger[Any]] | None = None,
    ) -> Ranked:
        """Return the predictions that have a class, ranked class by class: by descending score, then by image id, then
        by their order in the image.

        classes [T]: the class of each prediction, below `class_count`, -1 for none. rows [R]: rank only these
        predictions, of which one may occur several times; then `classes` has R entries, and the result holds positions
        in `rows`. place [T]: numbers that order equally scored predictions of one image before their own order does."""
        row = np.arange(len(self)) if rows is None else rows

        def ties(tied: Ints) -> list[NDArray[Any]]:
            """Return the keys that order the predictions at some positions of `row`, if their scores are equal."""
            orders_in_image: list[NDArray[Any]] = [row[tied]] if place is None else [row[tied], place[row[tied]]]
            return [*orders_in_image, rank_by_id(self.image_ids)[self.image[row[tied]]]]

        order = ranking(classes, self.score[row], ties)
        bounds = starts_of(np.bincount(classes + 1, minlength=class_count + 1))  # the first run has no class (-1)
        return Ranked(order[bounds[1] :], bounds[1:] - bounds[1])


@dataclass(frozen=True)
class Ranked:
    """Predictions ranked class by class, the best first: class c has the rows order[bounds[c]:bounds[c + 1]]."""

    order: Ints
    bounds: Ints


Ties = Callable[[Ints], Sequence[NDArray[Any]]]
"""Takes rows [R], and returns the keys [R] that order equally scored ones; the last counts first (`numpy.lexsort`)."""


def ranking(classes: NDArray[np.signedinteger[Any]], score: Floats, ties: Ties = lambda _: ()) -> Ints:
    """Return [T] the order of predictions by class, then by descending score, then by the keys that `ties` returns,
    then by index in the arrays.

    Each class is sorted alone, which is less work, and by a fast unstable sort. Equal scores, which are rare, are put
    in order afterwards, so that the result never depends on the implementation of the sort."""
    classes = _to_fast_type(classes)
    order = np.argsort(classes, kind="stable")
    negated, class_in_order = -score[order], classes[order]
    for start, end in pairwise([*run_starts(class_in_order).tolist(), len(order)]):
        by_score = np.argsort(negated[start:end])
        order[start:end], negated[start:end] = order[start:end][by_score], negated[start:end][by_score]
    equals_next = np.flatnonzero((negated[1:] == negated[:-1]) & (class_in_order[1:] == class_in_order[:-1]))
    if len(equals_next):
        tied = distinct(np.concatenate([equals_next, equals_next + 1]))
        rows = order[tied]
        order[tied] = rows[np.lexsort((rows, *ties(rows), -score[rows], classes[rows]))]  # the last key counts first
    return order


def order_by_score(score: Floats, ties: Ties = lambda _: ()) -> Ints:
    """Return [T] the order of predictions by descending score, then by the keys that `ties` returns, then by index."""
    return ranking(np.zeros(len(score), dtype=np.int8), score, ties)


def order_by_class(classes: NDArray[np.signedinteger[Any]], order: Ints) -> Ints:
    """Return the rows `order` sorted by class: rows of one class keep their sequence. classes [T]: of all rows."""
    return order[np.argsort(_to_fast_type(classes)[order], kind="stable")]


def _to_fast_type(classes: NDArray[np.signedinteger[Any]]) -> NDArray[np.signedinteger[Any]]:
    """Return the classes as int16 if they fit: NumPy has a much faster stable sort for this type (radix sort)."""
    return classes.astype(np.int16) if classes.max(initial=0) < 1 << 15 else classes


def per_class(code: NDArray[np.uint8], bounds: Ints, positives: Ints, protocol: Protocol) -> tuple[Floats, Floats]:
    """Return (the average precision [C], the maximal recall [C]) of each class under a protocol.

    code: the outcome code of every prediction in ranking order; class c has code[bounds[c]:bounds[c + 1]]. positives
    [C]: how much ground truth each class has. Predictions that do not count take no rank."""
    counted_before = starts_of(code <= TRUE_POSITIVE)  # true and false positives have the two smallest codes
    hit = np.flatnonzero(code == TRUE_POSITIVE)
    hit_bounds = np.searchsorted(hit, bounds)
    rank = counted_before[hit + 1] - np.repeat(counted_before[bounds[:-1]], np.diff(hit_bounds))
    return ranked_ap(rank, hit_bounds, positives, protocol)


def ranked_ap(rank: Ints, bounds: Ints, positives: Ints, protocol: Protocol) -> tuple[Floats, Floats]:
    """Return (the average precision [C], the maximal recall [C]) of each class under a protocol.

    rank: the ranks of the true positives among the counted predictions of their class, from 1, ascending; class c has
    rank[bounds[c]:bounds[c + 1]]. positives [C]: how much ground truth each class has."""
    if protocol.predictions_per_class is not None:
        counted = rank <= protocol.predictions_per_class
        rank = rank[counted]
        bounds = starts_of(counted)[bounds]
    recall: Floats = np.divide(np.diff(bounds), positives, out=np.zeros(len(positives)), where=positives > 0)
    if not protocol.grid:
        return enveloped_ap(rank, bounds, positives), recall
    return interpolated_ap(rank, bounds, positives, protocol.grid), recall


def precision_from(rank: Ints, bounds: Ints, positives: Ints, recalls: Sequence[float]) -> Iterator[Floats]:
    """Yield, for each value in `recalls`, [C] the largest precision of each class at that recall or more, in [0, 1].
    rank, bounds, positives: as in `ranked_ap`.

    Precision is highest at a true positive (a false positive only lowers it), so only true positives matter: the k-th,
    at rank r, gives precision k / r and recall k / positives. Recall is compared with `>=` in float64: the grid decides
    about a recall of exactly 3/10, 6/10 or 7/10 (tests/evaluation/test_tally.py)."""
    count = np.diff(bounds)
    owner = np.repeat(np.arange(len(positives)), count)
    hits_so_far = np.arange(len(rank)) - bounds[owner] + 1
    precision, recall = hits_so_far / rank, hits_so_far / positives[owner]
    has_some = np.flatnonzero(count)
    for point in recalls:
        largest = np.zeros(len(positives))
        if len(has_some):
            # the maximum of each class; reduceat needs classes without true positives left out
            largest[has_some] = np.maximum.reduceat(np.where(recall >= point, precision, 0.0), bounds[has_some])
        yield largest


def interpolated_ap(rank: Ints, bounds: Ints, positives: Ints, grid: tuple[float, ...]) -> Floats:
    """Return [C] the mean, over the values of `grid`, of each class's largest precision at that recall or more, in [0,
    1]; 0 without true positives, as in every released evaluator. rank, bounds, positives: as in `ranked_ap`."""
    ap = np.zeros(len(positives))
    for largest in precision_from(rank, bounds, positives, grid):
        ap += largest
    # The evaluators divide each summand, so a perfect class gets 100.00000000000003; this differs by at most 1e-15.
    return ap / len(grid)


def enveloped_ap(rank: Ints, bounds: Ints, positives: Ints) -> Floats:
    """Return [C] the area under each class's precision envelope, with a step at every recall, in [0, 1]. rank, bounds,
    positives: as in `ranked_ap`. Each true positive adds 1 / positives of recall, at the largest precision of any
    recall from there on (PASCAL VOC since 2010; s-gupta/v-coco vsrl_eval.py `voc_ap`)."""
    ap = np.zeros(len(positives))
    for number in np.flatnonzero(np.diff(bounds)).tolist():
        ranks = rank[bounds[number] : bounds[number + 1]]
        precision = np.arange(1, len(ranks) + 1) / ranks
        envelope = np.maximum.accumulate(precision[::-1])  # the largest precision from each true positive on, backwards
        ap[number] = envelope.sum() / positives[number]
    return ap
