"""What a comparison with ground truth says about a file of predictions as a whole: whether its scores rank annotated
classes first, and whether its boxes are copies of the annotated ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hoicli.evaluation.pairing import iterate_pairs
from hoicli.records.kit import Bools, Floats, Ints, distinct, find, starts_of
from hoicli.validation.batches import Checked, Facts, TripletClass
from hoicli.vocabulary.labels import Vocabulary

COPIED = 0.01
"""A share of images. A detector's box equals an annotated one in all four numbers by chance only."""
WORSE_THAN_CHANCE = 0.45
"""Ours: the share of ordered pairs below which scores rank the wrong way round. Random scores have 0.5, those of weak
detectors 0.6 and more."""
ENOUGH_COPIES, ENOUGH_RANKED = 5, 20
"""Ours: with copies in fewer images, or fewer images to rank in, nothing is concluded."""


@dataclass
class TruthCounts:
    """What is counted of predictions beside their ground truth, in whole numbers: the order of images is no matter.

    images: how many are in the ground truth; copied: in how many of them a predicted box equals an annotated one;
    ranked: how many have predictions of annotated and of other classes; pairs: how many pairs these are; ordered: twice
    the number of pairs in which the annotated class has the higher score, equal scores counting as one half."""

    images: int = 0
    copied: int = 0
    ranked: int = 0
    pairs: int = 0
    ordered: int = 0

    def merge(self, other: TruthCounts) -> None:
        """Add the counts of other images."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def findings(self) -> Iterator[tuple[str, str, int]]:
        """Yield the check that failed, what is wrong in words, and the number of images that this is about."""
        if self.copied >= ENOUGH_COPIES and self.copied > COPIED * self.images:
            text = f"in {self.copied:,} of {self.images:,} images a box is an annotated one to the digit"
            yield "boxes-of-ground-truth", text, self.copied
        if self.ranked >= ENOUGH_RANKED and self.ordered < 2 * WORSE_THAN_CHANCE * self.pairs:
            share = self.ordered / (2 * self.pairs)
            text = f"an annotated class has a higher score than another one of its image in {share:.0%} of all pairs"
            yield "scores-worse-than-chance", text, self.ranked


class TruthEvidence:
    """Compares predictions with ground truth, batch by batch, and adds to `counts`."""

    def __init__(self, truth: Facts, vocabulary: Vocabulary | None, counts: TruthCounts) -> None:
        """truth: what the ground truth says; vocabulary: None for free text; counts: what to add to."""
        self._truth, self._counts = truth, counts
        self._has_roles = vocabulary is not None and bool(vocabulary.roles)
        self._box_start = starts_of(truth.columns["box_count"])  # of each row of the ground truth
        class_of_number = list(map(self._class_of, truth.names))
        self._class_numbers = {name: number for number, name in enumerate(dict.fromkeys(class_of_number))}
        # one number for each image and class annotated there, ascending
        number = np.array([self._class_numbers[name] for name in class_of_number], dtype=np.int64)
        row = np.repeat(np.arange(len(truth.columns["class_count"])), truth.columns["class_count"])
        self._annotated_keys = distinct(row * len(self._class_numbers) + number[truth.columns["classes"]])

    def add(self, batch: Checked, rows: Sequence[int | None]) -> None:
        """Compare a batch of predictions. rows [N]: the images' rows in the ground truth, None for one it lacks."""
        row = np.array([-1 if row is None else row for row in rows], dtype=np.int64)
        ranked, pairs, ordered = ordered_pairs(batch.image_of_hoi, batch.score, self._find_annotated(batch, row))
        images, copied = int(np.count_nonzero(row >= 0)), self._count_copied(batch, row)
        self._counts.merge(TruthCounts(images, copied, ranked, pairs, ordered))

    @np.errstate(over="ignore")  # a number that is too large becomes infinite
    def _count_copied(self, batch: Checked, row: Ints) -> int:
        """Return in how many images a box equals an annotated one, in single precision, as detectors store them."""
        is_compared = ~batch.whole[batch.image_of_box] & (row[batch.image_of_box] >= 0)
        boxes, box_row = batch.boxes.astype(np.float32), row[batch.image_of_box]
        annotated = self._truth.columns["boxes"].reshape(-1, 4)
        box_count = np.append(self._truth.columns["box_count"], 0)  # the last is for a row that no box has, -1
        count = np.where(is_compared, box_count[box_row], 0)
        copied = np.zeros(len(row), dtype=bool)
        for box, other in iterate_pairs(self._box_start[box_row], count):
            same = (boxes[box] == annotated[other].astype(np.float32)).all(axis=1)
            copied[batch.image_of_box[box[same]]] = True
        return int(copied.sum())

    def _find_annotated(self, batch: Checked, row: Ints) -> Bools:
        """Return [T] whether each triplet is of a class that is annotated in its image. row [N]: -1 for no ground
        truth."""
        names, place = batch.classes
        numbers = self._class_numbers
        number = np.array([numbers.get(self._class_of(name), -1) for name in names], dtype=np.int64)[place]
        _, is_annotated = find(self._annotated_keys, row[batch.image_of_hoi] * len(numbers) + number)
        return is_annotated & (number >= 0) & (row[batch.image_of_hoi] >= 0)

    def _class_of(self, name: TripletClass) -> TripletClass:
        """Return the class of a triplet without its role; in a dataset with roles, without the object, too."""
        return TripletClass(name.verb, label=None if self._has_roles else name.label)


def ordered_pairs(image: Ints, score: Floats, is_right: Bools) -> tuple[int, int, int]:
    """Compare the score of every right item with that of every wrong one of its image. Return how many images have
    both, how many pairs there are, and twice the number of those in which the right one has the higher score, equal
    scores counting as one half.

    image, score, is_right: [T] the image, from 0, the score and whether it is right of each item."""
    order = np.lexsort((score, image))
    image, score, is_right = image[order], score[order], is_right[order]
    # Items before each one, and those of equal score as one half, both doubled (a sum of ranks, as Mann and Whitney).
    begins = np.ones(len(image), dtype=bool)  # whether an item is the first of its score in its image
    begins[1:] = (image[1:] != image[:-1]) | (score[1:] != score[:-1])
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(image))
    images = int(image.max(initial=-1)) + 1
    first = starts_of(np.bincount(image, minlength=images))[image]
    doubled_rank = np.repeat(starts + ends - 1, ends - starts) - 2 * first
    right = np.bincount(image[is_right], minlength=images)
    wrong = np.bincount(image[~is_right], minlength=images)
    is_ranked = (right > 0) & (wrong > 0)
    rank_sum = np.bincount(image[is_right], weights=doubled_rank[is_right], minlength=images).astype(np.int64)
    ordered = rank_sum - right * (right - 1)  # without the pairs of two right items
    return int(is_ranked.sum()), int((right * wrong).sum()), int(ordered[is_ranked].sum())
