"""Ranked lists whose images have weights: average precision of a thousand resampled test sets from one ranking.

A round (a resample) draws each image a number of times, its weight: with weight 2, the predictions and the ground truth
of the image count twice, each copy ranked right after its original; with weight 0 they do not count. So only the counts
of predictions up to each true positive change, which are a product of a sparse matrix with the weights. Matching and
sorting are done once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hoicli.records.kit import Bools, Floats, Ints, distinct, expand_runs, starts_of
from hoicli.resampling.draws import Weights
from hoicli.resampling.lists import ListColumns, Observed
from hoicli.resampling.pieces import Piece, Times
from hoicli.resampling.sparse import Sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

Sides: TypeAlias = "tuple[tuple[Floats, Ints], tuple[Floats, Ints]]"
"""For each of the two systems that swapping makes: ([C, R] AP, [C, R] ground truth)."""
ROWS_AT_ONCE = 4096
"""The rows (`lists.Rows`) of a piece, unless one class has more: few enough that their arrays of some blocks of rounds,
0.5 to 2 MB each, stay in a processor's cache, and enough that the overhead of NumPy's calls does not count."""
IMAGES_AT_ONCE = 512
"""How many images are left out, each by itself, in one pass."""
MOST_LEFT_OUT = 16_384
"""The most images of a class that are left out, each by itself: the time grows with their square. HICO-DET's test set
has 9,658."""


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
        """Return [C] a mask of the classes without ground truth."""
        without: Bools = self.annotated[:, 0] == 0
        return without

    @property
    def truth_images(self) -> Ints:
        """Return [C] how many images have ground truth of each class."""
        class_and_image = distinct(self.truth_class * self.images + self.truth_image)  # as one number
        return np.bincount(class_and_image // self.images, minlength=self.classes)

    def images_of_truth(self, members: Ints) -> int:
        """Return how many images have ground truth of any of the classes `members`."""
        return len(np.unique(self.truth_image[np.isin(self.truth_class, members)]))

    def ap(self, weights: Weights) -> tuple[Floats, Ints]:
        """Return ([C, R] the AP of each class, in [0, 1]; [C, R] how much ground truth it has) when image i counts
        weights[i, r] times in round r.

        weights: [N, R] whole numbers, 0 or more. A class without ground truth in a round has AP 0 there. With weights
        of 1 it is the AP of `hoicli.evaluation.ranking`."""
        (ap_and_truth,) = self._prepared.ap(Times(weights))
        return ap_and_truth

    def ap_of_sides(self, coins: Weights) -> Sides:
        """Return what `ap` returns with the weights `coins` [N, R], which are 0 or 1, and with 1 - coins."""
        (sides,) = self._prepared.ap_of_sides(Times(coins))
        return sides

    @property
    def observed(self) -> Observed:
        """Return the AP on the test set itself, where every image counts once."""
        return self._prepared.observed[0]

    @cached_property
    def _prepared(self) -> Prepared:
        """Return these lists, prepared for rounds of weights."""
        return Prepared([self])

    def join_outputs(self, other: RankedLists) -> RankedLists:
        """Return the lists of this model and another one, mixed by their places in the ranking of all predictions of
        their model; without `score`, by their places in the list of the class.

        The other model's images come after this one's N: image i is N + i. Predictions of the same place are ordered by
        image, this model's first. With weight 0 for one model's images, the result is the other's lists."""
        longest = max(len(self.hit), len(other.hit))
        # one number that sorts by class, then place, then image; each model's predictions are in this order already
        keys = [(model._class_of * longest + model._place) * self.images + model.image for model in (self, other)]
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
        """Return [T] the place of each prediction, from 0, in the ranking of all by score, or else of its class."""
        if self.place is not None:
            return self.place
        position = np.arange(len(self.hit))
        if self.score is None:
            return position - self.bounds[self._class_of]
        place = np.empty_like(position)
        place[np.argsort(-self.score, kind="stable")] = position
        return place

    def with_truth_of_both(self, first: RankedLists, second: RankedLists) -> RankedLists:
        """Return these lists, in which the predictions of two models are mixed, with the ground truth of both models;
        the images of the second model are numbered after those of the first."""
        return replace(
            self,
            truth_image=np.concatenate([first.truth_image, second.truth_image + first.images]),
            truth_class=np.concatenate([first.truth_class, second.truth_class]),
        )

    def images_with(self, numbers: Ints) -> Ints:
        """Return the images, ascending, that have predictions or ground truth of the classes `numbers`."""
        positions, in_classes = self._positions_of(numbers), np.isin(self.truth_class, numbers)
        return np.flatnonzero(np.bincount(np.concatenate([self.image[positions], self.truth_image[in_classes]])))

    def select_classes(self, numbers: Ints, images: Ints) -> RankedLists:
        """Return the lists of the classes `numbers` alone, which are numbered anew, and so are `images`, which must
        include all of `images_with`; both ascending. Scores, which rank among all classes, are left out."""
        positions, in_classes = self._positions_of(numbers), np.isin(self.truth_class, numbers)
        new_number = np.zeros(self.images, dtype=np.int64)
        new_number[images] = np.arange(len(images))
        return replace(
            self,
            hit=self.hit[positions],
            image=new_number[self.image[positions]],
            bounds=starts_of(np.diff(self.bounds)[numbers]),
            truth_image=new_number[self.truth_image[in_classes]],
            truth_class=np.searchsorted(numbers, self.truth_class[in_classes]),
            images=len(images),
            gain=None if self.gain is None else self.gain[positions],
            score=None,
            place=None,
        )

    def _positions_of(self, numbers: Ints) -> Ints:
        """Return the positions of the predictions of the classes `numbers`, one class after another."""
        _, positions = expand_runs(self.bounds[numbers], np.diff(self.bounds)[numbers])
        return positions

    def without_each_image(self, members: Ints) -> Floats | None:
        """Return [N] for each image, the mean AP over the classes numbered `members` if that image is left out.

        A class whose ground truth is all in the image is left out with it; a class without any ground truth counts 0.
        None if a class has more images than MOST_LEFT_OUT."""
        observed_ap, positives = self.ap(np.ones((self.images, 1), dtype=np.int32))
        change, classes_lost = np.zeros(self.images), np.zeros(self.images, dtype=np.int64)
        for number in members[positives[members, 0] > 0].tolist():
            lists, images = self._select_class(number)
            if len(images) > MOST_LEFT_OUT:
                return None
            piece = Piece(lists, np.zeros(1, dtype=np.int64), weighted=False)
            annotated = np.bincount(lists.truth_image, minlength=len(images))
            for start in range(0, len(images), IMAGES_AT_ONCE):
                some_images = images[start : start + IMAGES_AT_ONCE]
                end = start + len(some_images)
                annotated_elsewhere = annotated.sum() - annotated[np.newaxis, start:end]
                ap = np.zeros(annotated_elsewhere.shape)
                if len(lists.hit):  # `rate` writes the AP into its last argument
                    piece.rate(piece.others(piece.alone(lists, start, end)), [annotated_elsewhere], [ap])
                change[some_images] += ap[0] - observed_ap[number, 0]  # ap is 0 where nothing is left
                classes_lost[some_images] += annotated_elsewhere[0] == 0
        means: Floats = (observed_ap[members, 0].sum() + change) / np.maximum(len(members) - classes_lost, 1)
        return means

    def _select_class(self, number: int) -> tuple[RankedLists, Ints]:
        """Return the list of one class on those images that may change its AP, numbered anew; and their numbers."""
        positions = slice(int(self.bounds[number]), int(self.bounds[number + 1]))
        hit, image = self.hit[positions], self.image[positions]
        # predictions after the last true positive do not change AP; argmax of the reversed list is their number
        counted = len(hit) - int(np.argmax(hit[::-1])) if hit.any() else 0
        truth_image = self.truth_image[self.truth_class == number]
        images, new_number = np.unique(np.concatenate([image[:counted], truth_image]), return_inverse=True)
        lists = replace(
            self,
            hit=hit[:counted],
            image=new_number[:counted],
            bounds=np.array([0, counted]),
            truth_image=new_number[counted:],
            truth_class=np.zeros(len(truth_image), dtype=np.int64),
            images=len(images),
            gain=None if self.gain is None else self.gain[positions][:counted],
            score=None,
            place=None,
        )
        return lists, images

    @property
    def _class_of(self) -> Ints:
        """Return [T] the class of each prediction."""
        return np.repeat(np.arange(self.classes), np.diff(self.bounds))

    @property
    def annotated(self) -> NDArray[np.int32]:
        """Return [C, 1] how much ground truth each class has."""
        return np.bincount(self.truth_class, minlength=self.classes).astype(np.int32)[:, np.newaxis]

    @cached_property
    def truth(self) -> Sparse:
        """Return a sparse matrix [C, N]: how much ground truth each class has in each image."""
        return Sparse.count_pairs(self.truth_class, self.truth_image, (self.classes, self.images))


@dataclass(frozen=True)
class AveragedLists(RankedLists):
    """The ranked lists of one model at several IoU thresholds, whose AP is the mean over the thresholds, as in COCO.
    lists: at each threshold. The inherited fields are those of the first; images and ground truth are the same at all.
    """

    lists: Sequence[RankedLists] = ()

    @classmethod
    def average(cls, lists: Sequence[RankedLists]) -> AveragedLists:
        """Return one object whose AP is the mean of that of the lists, one at each threshold."""
        first = {field.name: getattr(lists[0], field.name) for field in fields(RankedLists)}
        return cls(**first, lists=lists)

    @property
    def true_positives(self) -> int:
        """Return the number of true positives in all lists together."""
        return sum(lists.true_positives for lists in self.lists)

    def ap(self, weights: Weights) -> tuple[Floats, Ints]:
        """Return the mean over the thresholds of what `RankedLists.ap` returns."""
        return _mean_ap([lists.ap(weights) for lists in self.lists])

    def ap_of_sides(self, coins: Weights) -> Sides:
        """Return the mean over the thresholds of what `RankedLists.ap_of_sides` returns."""
        first_side, second_side = zip(*(lists.ap_of_sides(coins) for lists in self.lists), strict=True)
        return _mean_ap(first_side), _mean_ap(second_side)

    @property
    def observed(self) -> Observed:
        """Return the mean over the thresholds of the AP on the test set itself."""
        all_observed = [lists.observed for lists in self.lists]
        return Observed(np.mean([at_threshold.ap for at_threshold in all_observed], axis=0), all_observed[0].images)

    def join_outputs(self, other: RankedLists) -> RankedLists:
        """Return both models' lists, mixed at each threshold as `RankedLists.join_outputs` does."""
        assert isinstance(other, AveragedLists)
        pairs = zip(self.lists, other.lists, strict=True)
        return AveragedLists.average([lists.join_outputs(other_lists) for lists, other_lists in pairs])

    def images_with(self, numbers: Ints) -> Ints:
        """Return what `RankedLists.images_with` does at any threshold."""
        return np.unique(np.concatenate([lists.images_with(numbers) for lists in self.lists]))

    def select_classes(self, numbers: Ints, images: Ints) -> RankedLists:
        """Return the lists of the classes `numbers` at each threshold, as `RankedLists.select_classes` does."""
        return AveragedLists.average([lists.select_classes(numbers, images) for lists in self.lists])

    def without_each_image(self, members: Ints) -> Floats | None:
        """Return [N] the mean over the thresholds of what `RankedLists.without_each_image` returns, or None."""
        results = []
        for lists in self.lists:
            means = lists.without_each_image(members)
            if means is None:
                return None
            results.append(means)
        mean_of_thresholds: Floats = np.mean(results, axis=0)
        return mean_of_thresholds


def _mean_ap(several: Sequence[tuple[Floats, Ints]]) -> tuple[Floats, Ints]:
    """Return the mean of the APs [C, R] at several thresholds, and the ground truth [C, R], the same at all."""
    aps, positives = zip(*several, strict=True)
    mean: Floats = np.mean(aps, axis=0)
    return mean, positives[0]


class Prepared:
    """Ranked lists that share one ranking of predictions but have different ground truths, prepared for rounds of
    weights. It keeps no more of the lists than rounds need.

    pieces: each has a few classes, so that its arrays stay in a processor's cache; classes with about as many rows are
    together, so that little of the layout is padding."""

    def __init__(self, lists: Sequence[RankedLists]) -> None:
        """Prepare the lists: the ranking of the first, and the ground truth of each."""
        row_counts = np.diff(lists[0].rows.bounds)
        classes = np.argsort(-row_counts, kind="stable")[: np.count_nonzero(row_counts)]
        # a new piece begins where the rows of the classes before reach a multiple of ROWS_AT_ONCE
        rows_before = np.cumsum(row_counts[classes]) - row_counts[classes]
        piece_starts = np.flatnonzero(np.diff(rows_before // ROWS_AT_ONCE)) + 1
        classes_of_pieces = np.split(classes, piece_starts) if len(classes) else []
        self.pieces = [Piece(lists[0], piece_classes) for piece_classes in classes_of_pieces]
        # of each of the lists: [C, N] its ground truth by class and image, and [C, 1] by class
        self._truths = [(each.truth, each.annotated) for each in lists]
        self._truth_images = [each.truth_images for each in lists]

    @cached_property
    def observed(self) -> list[Observed]:
        """Return the AP on the test set itself, for each of the lists."""
        results = self.ap(Times(np.ones((self._truths[0][0].width, 1), dtype=np.int32)))
        return [Observed(ap[:, 0], images) for (ap, _), images in zip(results, self._truth_images, strict=True)]

    def positives(self, times: Times) -> list[Ints]:
        """Return [C, R] how much ground truth each class has in each round, for each of the lists."""
        return [times.sum_products(truth, int(annotated.max(initial=0))) for truth, annotated in self._truths]

    def ap(self, times: Times, annotated: Sequence[Ints] | None = None) -> list[tuple[Floats, Ints]]:
        """Return ([C, R] the AP; [C, R] the ground truth) of each class in each round, for each of the lists.

        times: how often each image counts. annotated: the result of `positives`, perhaps with more behind."""
        positives = self.positives(times) if annotated is None else annotated[: len(self._truths)]
        aps = [np.zeros(counts.shape) for counts in positives]
        for piece in self.pieces:
            piece.rate(piece.count(times), positives, aps)  # writes the AP into `aps`
        return list(zip(aps, positives, strict=True))

    def ap_of_sides(self, coins: Times, annotated: Sequence[Ints] | None = None) -> list[Sides]:
        """Return what `ap` returns for two mixed systems, for each of the lists: with the weights `coins`, which are 0
        or 1, and with the weights 1 - coins. annotated: the result of `positives` for `coins`, if it is known.

        The counts of the second system are those of all images minus those of the first system."""
        first = self.positives(coins) if annotated is None else annotated[: len(self._truths)]
        second = [total - positives for (_, total), positives in zip(self._truths, first, strict=True)]
        first_aps, second_aps = ([np.zeros(positives.shape) for positives in side] for side in (first, second))
        for piece in self.pieces:
            counts = piece.count(coins)
            other_counts = piece.others(counts)  # before `rate`, which overwrites the counts
            piece.rate(counts, first, first_aps)
            piece.rate(other_counts, second, second_aps)
        first_sides = zip(first_aps, first, strict=True)
        second_sides = zip(second_aps, second, strict=True)
        return list(zip(first_sides, second_sides, strict=True))
