"""Ranked lists whose images have weights: average precision of a thousand resampled test sets from one ranking.

An image drawn twice is an image whose predictions and ground truth stand there twice, each copy beside its original;
one that is not drawn has weight 0. What a resample changes is then a weighted count of the predictions up to each true
positive, a product of a sparse matrix with the weights. Matching and sorting are done once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hoicli.records.kit import Bools, Floats, Ints, expand_runs, starts_of
from hoicli.resampling.draws import Weights
from hoicli.resampling.lists import ListColumns
from hoicli.resampling.pieces import Piece, Times, small
from hoicli.resampling.rounds import Observed
from hoicli.resampling.sums import sum_by_image

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array


Sides: TypeAlias = "tuple[tuple[Floats, Ints], tuple[Floats, Ints]]"
"""(AP, ground truth) of each of the two systems that swapping makes."""
ROWS_AT_ONCE = 4096
"""Rows worked on in one piece, unless one class has more: few enough that their arrays of some blocks of rounds, 0.5 to
2 MB each, stay in a processor's cache, and enough that the overhead of NumPy's calls does not count."""
IMAGES_AT_ONCE = 512
"""Images left out one by one in one piece."""
MOST_LEFT_OUT = 16_384
"""Images of a class that are left out one by one: the time goes with their square. HICO-DET's test set has 9,658."""


@dataclass(frozen=True)
class RankedLists(ListColumns):
    """The ranked lists of one model, with what resampling needs of them."""

    @property
    def classes(self) -> int:
        """Return C, the number of classes."""
        return len(self.bounds) - 1

    @property
    def true_positives(self) -> int:
        """Return the number of true positives."""
        return int(self.hit.sum())

    @property
    def unannotated(self) -> Bools:
        """Return [C]: whether each class is without ground truth."""
        without: Bools = self.annotated[:, 0] == 0
        return without

    @property
    def truth_images(self) -> Ints:
        """Return [C]: how many images have ground truth of each class."""
        images: Ints = np.diff(self.truth.indptr).astype(np.int64)
        return images

    def images_of_truth(self, members: Ints) -> int:
        """Return how many images have ground truth of one of the classes `members`."""
        return len(np.unique(self.truth_image[np.isin(self.truth_class, members)]))

    def ap(self, weights: Weights) -> tuple[Floats, Ints]:
        """Return (AP [C, R] in [0, 1], ground truth [C, R]) when image i counts weights[i, r] times in round r.

        weights [N, R] are whole numbers of at least 0. A class without ground truth in a round has AP 0 there. With
        weights of 1 it is the AP of `hoicli.evaluation.ranking`.
        """
        return self._itself.ap(Times(weights))[0]

    def ap_of_sides(self, coins: Weights) -> Sides:
        """Return `ap` with the weights `coins` [N, R], which are 0 or 1, and `ap` with the weights 1 - coins."""
        return self._itself.ap_of_sides(Times(coins))[0]

    @property
    def observed(self) -> Observed:
        """Return the AP on the test set itself, without resampling."""
        return self._itself.observed[0]

    @cached_property
    def _itself(self) -> Prepared:
        return Prepared([self])

    def interleave(self, other: RankedLists) -> RankedLists:
        """Return this model's lists and another's as one, ordered by place among all predictions of a model.

        Without `score` it is the place in the class's list. The other's images come after this one's, as N + i for
        image i. Predictions of the same place are ordered by image, this model's first. With weight 1 for one model's
        images and 0 for the other's, the result is that model's lists again.
        """
        longest = max(len(self.hit), len(other.hit))
        # one number that sorts by class, then place, then image; each of the two parts is in order already
        keys = [(part._class_of * longest + part._place) * self.images + part.image for part in (self, other)]
        order = np.argsort(np.concatenate(keys), kind="stable")
        mixed = replace(
            self,
            hit=np.concatenate([self.hit, other.hit])[order],
            image=np.concatenate([self.image, other.image + self.images])[order],
            bounds=self.bounds + other.bounds,
            images=self.images + other.images,
            gain=None if self.gain is None or other.gain is None else np.concatenate([self.gain, other.gain])[order],
            score=None,
            place=None,
        )
        return mixed.with_truth_of_both(self, other)

    @property
    def _place(self) -> Ints:
        """Return [T]: each prediction's place among those of all classes; without `score` among those of its class."""
        if self.place is not None:
            return self.place
        position = np.arange(len(self.hit))
        if self.score is None:
            return position - self.bounds[self._class_of]
        place = np.empty_like(position)
        place[np.argsort(-self.score, kind="stable")] = position
        return place

    def with_truth_of_both(self, first: RankedLists, second: RankedLists) -> RankedLists:
        """Return these lists, in which two models' predictions are mixed, with the ground truth of both models' lists:
        the images of the second model are numbered after those of the first."""
        return replace(
            self,
            truth_image=np.concatenate([first.truth_image, second.truth_image + first.images]),
            truth_class=np.concatenate([first.truth_class, second.truth_class]),
        )

    def images_with(self, numbers: Ints) -> Ints:
        """Return the images, rising, that have predictions or ground truth of the classes `numbers`."""
        rows, in_classes = self._rows_of(numbers), np.isin(self.truth_class, numbers)
        return np.flatnonzero(np.bincount(np.concatenate([self.image[rows], self.truth_image[in_classes]])))

    def select_classes(self, numbers: Ints, images: Ints) -> RankedLists:
        """Return the lists of the classes `numbers`, on `images` alone, which must include all of `images_with`; both
        rising. Scores are left out, as they rank predictions among all classes."""
        rows, in_classes = self._rows_of(numbers), np.isin(self.truth_class, numbers)
        new_number = np.zeros(self.images, dtype=np.int64)
        new_number[images] = np.arange(len(images))
        return replace(
            self,
            hit=self.hit[rows],
            image=new_number[self.image[rows]],
            bounds=starts_of(np.diff(self.bounds)[numbers]),
            truth_image=new_number[self.truth_image[in_classes]],
            truth_class=np.searchsorted(numbers, self.truth_class[in_classes]),
            images=len(images),
            gain=None if self.gain is None else self.gain[rows],
            score=None,
            place=None,
        )

    def _rows_of(self, numbers: Ints) -> Ints:
        return expand_runs(self.bounds[numbers], np.diff(self.bounds)[numbers])[1]

    def without_each_image(self, members: Ints) -> Floats | None:
        """Return [N]: the mean AP over the classes `members` when one image is left out, for each image.

        None if a class is in more images than MOST_LEFT_OUT. A class whose only ground truth is in the image is left
        out with it; one that has no ground truth at all counts 0.
        """
        observed_ap, positives = self.ap(np.ones((self.images, 1), dtype=np.int32))
        change, classes_lost = np.zeros(self.images), np.zeros(self.images, dtype=np.int64)
        for number in members[positives[members, 0] > 0].tolist():
            part, image = self._one_class(number)
            if len(image) > MOST_LEFT_OUT:
                return None
            piece = Piece(part, np.zeros(1, dtype=np.int64), weighted=False)
            annotated = np.bincount(part.truth_image, minlength=len(image))
            for start in range(0, len(image), IMAGES_AT_ONCE):
                chosen = image[start : start + IMAGES_AT_ONCE]
                end = start + len(chosen)
                annotated_elsewhere = annotated.sum() - annotated[np.newaxis, start:end]
                ap = np.zeros(annotated_elsewhere.shape)
                if len(part.hit):
                    piece.rate(piece.others(piece.alone(part, start, end)), [annotated_elsewhere], [ap])
                change[chosen] += ap[0] - observed_ap[number, 0]  # ap is 0 where nothing is left
                classes_lost[chosen] += annotated_elsewhere[0] == 0
        means: Floats = (observed_ap[members, 0].sum() + change) / np.maximum(len(members) - classes_lost, 1)
        return means

    def _one_class(self, number: int) -> tuple[RankedLists, Ints]:
        """Return one class's list on the images [M] whose leaving may change its AP, and these images' numbers."""
        rows = slice(int(self.bounds[number]), int(self.bounds[number + 1]))
        hit, image = self.hit[rows], self.image[rows]
        # predictions behind the last true positive do not change AP: argmax of the reversed list counts them
        counted = len(hit) - int(np.argmax(hit[::-1])) if hit.any() else 0
        images_annotated = self.truth_image[self.truth_class == number]
        images, new_number = np.unique(np.concatenate([image[:counted], images_annotated]), return_inverse=True)
        part = replace(
            self,
            hit=hit[:counted],
            image=new_number[:counted],
            bounds=np.array([0, counted]),
            truth_image=new_number[counted:],
            truth_class=np.zeros(len(images_annotated), dtype=np.int64),
            images=len(images),
            gain=None if self.gain is None else self.gain[rows][:counted],
            score=None,
            place=None,
        )
        return part, images

    @property
    def _class_of(self) -> Ints:
        """Return [T]: the class of each prediction."""
        return np.repeat(np.arange(self.classes), np.diff(self.bounds))

    @property
    def annotated(self) -> NDArray[np.int32]:
        """Return [C, 1]: how much ground truth each class has."""
        return np.bincount(self.truth_class, minlength=self.classes).astype(np.int32)[:, np.newaxis]

    @cached_property
    def truth(self) -> csr_array:
        """Return a sparse [C, N]: how much ground truth each class has in each image."""
        ones, shape = np.ones_like(self.truth_class), (self.classes, self.images)
        return small(sum_by_image(self.truth_class, self.truth_image, ones, shape))


@dataclass(frozen=True)
class AveragedLists(RankedLists):
    """One model's ranked lists at several thresholds, whose AP is the mean over the thresholds: COCO's AP over IoU. The
    fields it inherits (images, ground truth) are those of the first list; all lists share them."""

    lists: Sequence[RankedLists] = ()

    @classmethod
    def average(cls, lists: Sequence[RankedLists]) -> AveragedLists:
        """Return the given lists of one model as one object whose numbers are their mean."""
        first = {field.name: getattr(lists[0], field.name) for field in fields(RankedLists)}
        return cls(**first, lists=lists)

    @property
    def true_positives(self) -> int:
        """Return the number of true positives in all lists together."""
        return sum(lists.true_positives for lists in self.lists)

    def ap(self, weights: Weights) -> tuple[Floats, Ints]:
        """Return the mean over the thresholds of `RankedLists.ap`."""
        return _mean([lists.ap(weights) for lists in self.lists])

    def ap_of_sides(self, coins: Weights) -> Sides:
        """Return the mean over the thresholds of `RankedLists.ap_of_sides`."""
        first_side, second_side = zip(*(lists.ap_of_sides(coins) for lists in self.lists), strict=True)
        return _mean(first_side), _mean(second_side)

    @property
    def observed(self) -> Observed:
        """Return the mean over the thresholds of the AP on the test set itself."""
        all_observed = [lists.observed for lists in self.lists]
        return Observed(np.mean([at_threshold.ap for at_threshold in all_observed], axis=0), all_observed[0].images)

    def interleave(self, other: RankedLists) -> RankedLists:
        """Return both models' lists interleaved at each threshold."""
        assert isinstance(other, AveragedLists)
        return AveragedLists.average(
            [own.interleave(others) for own, others in zip(self.lists, other.lists, strict=True)]
        )

    def images_with(self, numbers: Ints) -> Ints:
        """Return the images with predictions (at any threshold) or ground truth of the classes `numbers`."""
        return np.unique(np.concatenate([lists.images_with(numbers) for lists in self.lists]))

    def select_classes(self, numbers: Ints, images: Ints) -> RankedLists:
        """Return `RankedLists.select_classes` at each threshold."""
        return AveragedLists.average([lists.select_classes(numbers, images) for lists in self.lists])

    def without_each_image(self, members: Ints) -> Floats | None:
        """Return the mean over the thresholds of `RankedLists.without_each_image`; None where one of them has none."""
        results = [lists.without_each_image(members) for lists in self.lists]
        known = [each for each in results if each is not None]
        means: Floats = np.mean(known, axis=0)
        return means if len(known) == len(results) else None


def _mean(several: Sequence[tuple[Floats, Ints]]) -> tuple[Floats, Ints]:
    """Return the mean of several APs [C, R], and the ground truth [C, R] that all of them share."""
    aps, positives = zip(*several, strict=True)
    mean: Floats = np.mean(aps, axis=0)
    return mean, positives[0]


class Prepared:
    """Lists that share one ranking but each have ground truth of their own (`lists`), prepared for rounds of weights.
    It keeps no more of the lists than rounds take. pieces: the true positives of a few classes at a time, so that their
    arrays stay in a processor's cache; classes of similar length are together."""

    def __init__(self, lists: Sequence[RankedLists]) -> None:
        count = np.diff(lists[0].rows.bounds)
        order = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
        piece = (np.cumsum(count[order]) - count[order]) // ROWS_AT_ONCE
        parts = np.split(order, np.flatnonzero(np.diff(piece)) + 1) if len(order) else []
        self.pieces = [Piece(lists[0], part) for part in parts]
        self._truth = [(one.truth, one.annotated) for one in lists]

    @cached_property
    def observed(self) -> list[Observed]:
        """Return `RankedLists.observed` of each of the lists."""
        images = self._truth[0][0].shape[1]
        ap_found = self.ap(Times(np.ones((images, 1), dtype=np.int32)))
        return [
            Observed(ap[:, 0], np.diff(truth.indptr)) for (ap, _), (truth, _) in zip(ap_found, self._truth, strict=True)
        ]

    def positives(self, times: Times) -> list[Ints]:
        """Return the ground truth [C, R] in each round, for each of the lists."""
        return [times.sum_products(truth, int(annotated.max(initial=0))) for truth, annotated in self._truth]

    def _count_positives(self, times: Times, annotated: Sequence[Ints] | None) -> Sequence[Ints]:
        return self.positives(times) if annotated is None else annotated[: len(self._truth)]

    def ap(self, times: Times, annotated: Sequence[Ints] | None = None) -> list[tuple[Floats, Ints]]:
        """Return `RankedLists.ap` of each of the lists; annotated: what `positives` returns, or more of them."""
        positives = self._count_positives(times, annotated)
        aps = [np.zeros(counts.shape) for counts in positives]
        for piece in self.pieces:
            piece.rate(piece.count(times), positives, aps)
        return list(zip(aps, positives, strict=True))

    def ap_of_sides(self, coins: Times, annotated_before: Sequence[Ints] | None = None) -> list[Sides]:
        """Return `RankedLists.ap_of_sides` of each of the lists; annotated_before: as `annotated` in `ap`.

        All counts of the second side are those of every image less those of the first.
        """
        first = self._count_positives(coins, annotated_before)
        second = [annotated - positives for (_, annotated), positives in zip(self._truth, first, strict=True)]
        aps = [[np.zeros(positives.shape) for positives in side] for side in (first, second)]
        for piece in self.pieces:
            counts = piece.count(coins)
            rest = piece.others(counts)  # before `rate`, which overwrites the counts
            piece.rate(counts, first, aps[0])
            piece.rate(rest, second, aps[1])
        first_side, second_side = (zip(*side, strict=True) for side in zip(aps, (first, second), strict=True))
        return list(zip(first_side, second_side, strict=True))
