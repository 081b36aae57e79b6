"""Ranked lists whose images have weights: average precision of a thousand resampled test sets from one ranking.

An image drawn twice is an image whose predictions and ground truth stand there twice, each copy beside its original;
one that is not drawn has weight 0. What a resample changes is then a weighted count of the predictions up to each true
positive, a product of a sparse matrix with the weights. Matching and sorting are done once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from hoicli.arrays.kit import Bools, Floats, Ints
from hoicli.resampling.weighted import Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array


Numbers = TypeVar("Numbers", bound="NDArray[Any]")


class _Counts(NamedTuple):
    """Whole numbers of each round: positives [C, R] the ground truth; of each true positive, [K, R]: copies, how often
    it is there; found and rank, the true positives and the predictions of its class up to and with it."""

    positives: NDArray[Any]
    copies: NDArray[Any]
    found: NDArray[Any]
    rank: NDArray[Any]


HITS_AT_ONCE = 1024
"""True positives worked on in one piece, if not of one class: few enough that their arrays of a block of rounds,
0.25 MB each, stay in a processor's cache."""
IMAGES_AT_ONCE = 256
"""Images left out one by one in one piece."""
MOST_LEFT_OUT = 16_384
"""Images of a class that are left out one by one: the time goes with their square. HICO-DET's test set has 9,658."""


@dataclass(frozen=True)
class RankedLists:
    """The predictions that count under one protocol, a ranked list for each of C classes, and what is to be found.

    hit [T] whether each is a true positive, in ranking order; class c owns hit[bounds[c]:bounds[c + 1]]. image [T] of
    each, truth_image [P] and truth_class [P] of the ground truth; images N counts those they point into. grid and cap
    are the protocol's `grid` and `predictions_per_class`.

    gain [T]: what a true positive is worth where that is not 1 for all (SHOE), in whole numbers of 1 / unit. The copies
    of one are then one step: precision and recall are taken after them. area: without a grid, what is under the curve:
    "envelope", "step" (no envelope) or "trapezoid" (straight lines from recall 0, precision 1).
    """

    hit: Bools
    image: Ints
    bounds: Ints
    truth_image: Ints
    truth_class: Ints
    images: int
    grid: tuple[float, ...]
    cap: int | None = None
    gain: Ints | None = None
    unit: int = 1
    area: str = "envelope"

    @property
    def classes(self) -> int:
        """C."""
        return len(self.bounds) - 1

    @property
    def true_positives(self) -> int:
        """How many there are."""
        return int(self.hit.sum())

    @property
    def unannotated(self) -> Bools:
        """[C] the classes without ground truth."""
        without: Bools = np.bincount(self.truth_class, minlength=self.classes) == 0
        return without

    @property
    def truth_images(self) -> Ints:
        """[C] how many images have ground truth of each class."""
        images: Ints = np.diff(self._truth.indptr).astype(np.int64)
        return images

    def images_of_truth(self, members: Ints) -> int:
        """How many images have ground truth of one of the classes."""
        return len(np.unique(self.truth_image[np.isin(self.truth_class, members)]))

    def ap(self, weights: Weights) -> tuple[Floats, Ints]:
        """(AP [C, R] in [0, 1], ground truth [C, R]) when image i counts weights[i, r] times in round r.

        weights [N, R] are whole numbers of at least 0. A class without ground truth in a round has AP 0 there. With
        weights of 1 it is the AP of `hoicli.evaluation.average_precision`.
        """
        return _below([piece._ap(piece._counted(weights)) for piece in self._pieces])

    def ap_of_sides(self, coins: Weights) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
        """(`ap` with the weights `coins` [N, R], of 0 and 1; `ap` with 1 - coins).

        All counts of the second are those of every image less those of the first.
        """
        one, other = zip(*(piece._ap_of_sides(coins) for piece in self._pieces), strict=True)
        return _below(one), _below(other)

    def _ap_of_sides(self, coins: Weights) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
        one = self._counted(coins)
        other = _Counts(*(every - part for every, part in zip(self._all, one, strict=True)))
        return self._ap(one), self._ap(other)

    @cached_property
    def _pieces(self) -> list[RankedLists]:
        """The lists of a few classes at a time, whose arrays stay in a processor's cache; or these themselves."""
        hits = np.searchsorted(self._hits, self.bounds)
        cuts = [0]
        for number in range(1, self.classes):
            if hits[number + 1] - hits[cuts[-1]] > HITS_AT_ONCE:
                cuts.append(number)
        if len(cuts) == 1:
            return [self]
        return [self._of_classes(start, end) for start, end in pairwise([*cuts, self.classes])]

    def _of_classes(self, start: int, end: int) -> RankedLists:
        rows = slice(int(self.bounds[start]), int(self.bounds[end]))
        asked = (self.truth_class >= start) & (self.truth_class < end)
        return replace(
            self,
            hit=self.hit[rows],
            image=self.image[rows],
            bounds=self.bounds[start : end + 1] - self.bounds[start],
            truth_image=self.truth_image[asked],
            truth_class=self.truth_class[asked] - start,
        )

    def _counted(self, weights: Weights) -> _Counts:
        positives, copies = self._truth @ weights, weights[self.image[self._hits]]
        found = self._accumulate(np.add, self._gained(copies))
        same = self._nothing_wrong and self.gain is None
        rank = found if same else self._accumulate(np.add, self._between @ weights)
        return _Counts(positives, copies, found, rank)

    @property
    def _nothing_wrong(self) -> bool:
        """Whether all predictions are true positives."""
        return len(self._hits) == len(self.hit)

    def _gained(self, copies: NDArray[Any]) -> NDArray[Any]:
        """[K, R] what the copies of each true positive are worth, in an array of its own."""
        worth: NDArray[Any] = copies.copy() if self.gain is None else copies * self.gain[self._hits][:, np.newaxis]
        return worth

    @cached_property
    def _all(self) -> _Counts:
        """Of all images, once each."""
        return self._counted(np.ones((self.images, 1), dtype=np.int32))

    def _ap(self, counts: _Counts) -> tuple[Floats, Ints]:
        positives, copies, found, rank = counts
        ap = np.zeros(positives.shape)
        if len(self._hits) == 0:
            return ap, positives
        if self.cap is not None:  # of a true positive's copies, those up to the cap count
            copies = np.clip(self.cap - (rank - copies), 0, copies)
            rank = np.minimum(rank, self.cap)
            found = self._accumulate(np.add, self._gained(copies))
        gained = copies if self.gain is None else self._gained(copies)
        # as long as nothing is counted, nothing is found either: 0 of at least 1
        precision = found / np.maximum(rank, 1)
        if self.area == "trapezoid":  # the mean of the precisions before and after
            earlier = rank - copies
            precision += np.where(earlier > 0, (found - gained) / np.maximum(earlier, 1), self.unit)
            precision /= 2
        elif self.area == "envelope":
            precision = self._accumulate(np.maximum, precision, backwards=True)
        asked = np.maximum(positives[self._owners], 1) * float(self.unit)
        if self.grid:  # the mean over the grid: a point reads the precision of the first to reach it
            precision *= self._steps(found / np.repeat(asked, np.diff(self._starts), axis=0))
            ap[self._owners] = (self._sum_of_class @ precision) / (len(self.grid) * self.unit)
        else:  # the area: every copy is a step of recall
            precision *= gained
            ap[self._owners] = (self._sum_of_class @ precision) / (asked * self.unit)
        return ap, positives

    def _steps(self, recall: Floats) -> NDArray[np.int8]:
        """[K, R] how many points of the grid each true positive is the first of its class to reach."""
        reached = np.zeros(recall.shape, dtype=np.int8)
        for point in self.grid:
            reached += recall >= point
        first = reached[self._starts[:-1]]
        reached[1:] -= reached[:-1].copy()
        reached[self._starts[:-1]] = first
        return reached

    def _accumulate(self, operation: np.ufunc, values: Numbers, *, backwards: bool = False) -> Numbers:
        """In place, running totals (or maxima) down the true positives of each class."""
        for start, end in pairwise(self._starts.tolist()):
            part = values[start:end][::-1] if backwards else values[start:end]
            operation.accumulate(part, axis=0, out=part)
        return values

    def interleaved(self, other: RankedLists) -> RankedLists:
        """This model's lists and another's as one, by place in the class's list; the other's images come after this
        one's, N + i for i. Entries of one place: by image, this model's first.

        With weight 1 for one model's images and 0 for the other's it is that model's lists again.
        """
        parts = (self, other)
        counts = [np.diff(part.bounds) for part in parts]
        bounds = self.bounds + other.bounds
        hit, image = np.empty(bounds[-1], dtype=bool), np.empty(bounds[-1], dtype=np.int64)
        gain = None if self.gain is None else np.empty(bounds[-1], dtype=np.int64)
        for model, (part, rival, theirs) in enumerate(zip(parts, parts[::-1], counts[::-1], strict=True)):
            owner = part._owner_of_entry
            place = np.arange(len(part.hit)) - part.bounds[owner]
            before = np.minimum(place, theirs[owner])  # entries of the other model at places before this one
            level = np.flatnonzero(place < theirs[owner])  # those with an entry of the other model at their own place
            facing = rival.image[rival.bounds[owner[level]] + place[level]]
            before[level] += facing < part.image[level] if model == 0 else facing <= part.image[level]
            at = bounds[owner] + place + before
            hit[at], image[at] = part.hit, part.image + model * self.images
            if gain is not None and part.gain is not None:
                gain[at] = part.gain
        return replace(
            self,
            hit=hit,
            image=image,
            bounds=bounds,
            truth_image=np.concatenate([self.truth_image, other.truth_image + self.images]),
            truth_class=np.concatenate([self.truth_class, other.truth_class]),
            images=self.images + other.images,
            gain=gain,
        )

    def without_each_image(self, members: Ints) -> Floats | None:
        """[N] the mean AP over the classes `members` when one image is left out, the same where it changes nothing;
        None if a class is in more images than MOST_LEFT_OUT.

        A class whose only ground truth is in the image is left out with it; one that has none at all counts 0.
        """
        whole, positives = self.ap(np.ones((self.images, 1), dtype=np.int32))
        change, lost = np.zeros(self.images), np.zeros(self.images, dtype=np.int64)
        for number in members[positives[members, 0] > 0].tolist():
            part, image = self._one_class(number)
            if len(image) > MOST_LEFT_OUT:
                return None
            for start in range(0, len(image), IMAGES_AT_ONCE):
                chosen = np.arange(start, min(start + IMAGES_AT_ONCE, len(image)))
                weights = np.ones((len(image), len(chosen)), dtype=np.int32)
                weights[chosen, chosen - start] = 0
                ap, left = part.ap(weights)
                change[image[chosen]] += ap[0] - whole[number, 0]  # ap is 0 where nothing is left
                lost[image[chosen]] += left[0] == 0
        means: Floats = (whole[members, 0].sum() + change) / np.maximum(len(members) - lost, 1)
        return means

    def _one_class(self, number: int) -> tuple[RankedLists, Ints]:
        """(the list of one class on the images alone whose leaving may change its AP, [M] which they are)."""
        rows = slice(int(self.bounds[number]), int(self.bounds[number + 1]))
        hit, image = self.hit[rows], self.image[rows]
        counted = (
            len(hit) - int(np.argmax(hit[::-1])) if hit.any() else 0
        )  # what follows the last true positive is idle
        asked = self.truth_image[self.truth_class == number]
        images, place = np.unique(np.concatenate([image[:counted], asked]), return_inverse=True)
        part = replace(
            self,
            hit=hit[:counted],
            image=place[:counted],
            bounds=np.array([0, counted]),
            truth_image=place[counted:],
            truth_class=np.zeros(len(asked), dtype=np.int64),
            images=len(images),
            gain=None if self.gain is None else self.gain[rows][:counted],
        )
        return part, images

    @property
    def _owner_of_entry(self) -> Ints:
        """[T] the class of each prediction."""
        return np.repeat(np.arange(self.classes), np.diff(self.bounds))

    @cached_property
    def _hits(self) -> Ints:
        """[K] the true positives."""
        return np.flatnonzero(self.hit)

    @cached_property
    def _owners(self) -> Ints:
        """The classes that have true positives."""
        return np.flatnonzero(np.diff(np.searchsorted(self._hits, self.bounds)))

    @cached_property
    def _starts(self) -> Ints:
        """The first true positive of each of `_owners`, and their number."""
        return np.append(np.searchsorted(self._hits, self.bounds[self._owners]), len(self._hits))

    @cached_property
    def _sum_of_class(self) -> csr_array:
        """[O, K] a matrix that sums over each class's true positives, ten times as fast as `np.add.reduceat`."""
        owner = np.repeat(np.arange(len(self._owners)), np.diff(self._starts))
        return _counts(owner, np.arange(len(owner)), (len(self._owners), len(self._hits)))

    @cached_property
    def _between(self) -> csr_array:
        """[K, N] of each image, the predictions of the class after the last true positive, up to and with this one."""
        count = np.arange(len(self.hit))
        place = np.searchsorted(self._hits, count)  # the true positive each prediction is counted at
        owner = self._owner_of_entry
        kept = place < len(self._hits)  # what comes after the last true positive changes nothing
        kept[kept] &= self._hits[place[kept]] < self.bounds[owner[kept] + 1]
        return _counts(place[kept], self.image[kept], (len(self._hits), self.images))

    @cached_property
    def _truth(self) -> csr_array:
        """[C, N] ground truth of each class in each image."""
        return _counts(self.truth_class, self.truth_image, (self.classes, self.images))


def _counts(row: Ints, column: Ints, shape: tuple[int, int]) -> csr_array:
    """How often each (row, column) occurs, as a sparse matrix."""
    from scipy.sparse import coo_array

    ones = np.ones(len(row), dtype=np.int32)
    matrix: Any = coo_array((ones, (row.astype(np.int32), column.astype(np.int32))), shape=shape)
    return matrix.tocsr()


def _below(pieces: Sequence[tuple[Floats, Ints]]) -> tuple[Floats, Ints]:
    """AP and ground truth of all classes, from those of a few at a time."""
    ap, positives = zip(*pieces, strict=True)
    return (np.concatenate(ap), np.concatenate(positives)) if len(pieces) > 1 else pieces[0]
