"""SHOE's matching: which prediction each ground-truth triplet takes (SHOE supplement, Algorithms 1 and 2).

A predicted triplet is worth the similarity of its verb and object to the ground truth it is matched with, from 0 to 1.
Where the supplement leaves a choice, or its parts disagree:

- A box pair matches at IoU >= 0.5 on both boxes, as both algorithms write it (section 6.4 says > 0.5). x2, y2 are far
  edges (`boxes.iou`, inclusive=False): the supplement names no convention, and the detector it uses has this one.
- Ground truth takes the most similar unmatched prediction, of equals the highest score, then the first by object, verb
  and corners of the boxes (`Triplets.sort_keys`; `ties` in signatures). "In annotation order" is our reading by the
  dataset's classes, in which the official annotations are listed, then by the same values. So the order of a record's
  boxes and triplets changes nothing. Similarity 0 is taken too, as line 14 of both algorithms has no floor; section 2
  speaks of an "IoU and similarity threshold", which `min_similarity` sets.
- A predicted object without a label (V-COCO's) is compared by its verb alone.
- An unmatched prediction counts against the most similar class of its image, of equals the first annotated, at
  similarity >= delta, as both algorithms write it; in an image without ground truth it counts against no class. Figure
  6 searches all classes of the dataset (`against`): where only `pet giraffe` is annotated, `feed giraffe` goes to the
  class `feed giraffe` at 1.000. It then counts in any image, but not if the class has no ground truth at all.

`greedy` is the supplement's assignment (both algorithms, lines 9 to 22); `optimal` gives an image the greatest total
similarity that one-to-one matches can have, and with it the most matches. Between equally good assignments the
predictions that come first in the same order are preferred.

Similarities are whole numbers of UNIT, a billionth: sums are exact in any order, and 0.1 + 0.7 ties with 0.3 + 0.5."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hoicli.errors import DataError
from hoicli.evaluation.pairing import PAIRS_AT_ONCE, blocks_of, check_pairs, first_largest, iterate_pairs
from hoicli.evaluation.ranking import order_by_score
from hoicli.records.boxes import iou, take_columns
from hoicli.records.columns import NO_BOX
from hoicli.records.kit import Bools, Floats, Ints, expand_runs, rank_by_id, run_starts, starts_of
from hoicli.records.triplets import NOTHING, UNLABELLED, Triplets
from hoicli.shoe.likenesses import ComparedClasses, Likeness, TruthClasses
from hoicli.shoe.settings import ShoeOptions

Overlap = Callable[[Ints, Ints], Floats]
"""A function (rows of predicted boxes [M], of ground-truth boxes [M]) -> the IoU of each two, which share an image."""

IOU_THRESHOLD = 0.5
UNIT = 1_000_000_000
IMAGES_AT_ONCE = 256
"""How many images' boxes are compared together: so few that their overlaps stay in cache."""
MOST_PAIRS = 1 << 22
"""How many pairs of triplets may overlap in one image: a hundred thousand predictions on forty annotations."""


class OverlappingPairs(NamedTuple):
    """The K pairs of a ground-truth and a predicted triplet that overlap enough on both boxes, sorted by (prediction,
    truth). iou_object is NaN where neither has an object; similarity is that of the whole triplets, in UNITs."""

    truth: Ints
    prediction: Ints
    iou_subject: Floats
    iou_object: Floats
    similarity: Ints

    def select(self, rows: Ints | Bools) -> OverlappingPairs:
        """Return only the pairs at the given rows (numbers, or a mask)."""
        columns: Any = (column[rows] for column in self)
        return OverlappingPairs(*columns)


@dataclass(frozen=True)
class Matching:
    """The outcome of Algorithm 1, lines 5 to 31. prediction_of [G]: the prediction that each ground truth took, -1 for
    none; truth_of [P]: the ground truth that took each prediction, -1 for none; keep [P]: which took part."""

    prediction_of: Ints
    truth_of: Ints
    keep: Bools


def places_of(triplets: Triplets) -> Ints:
    """Return [T]: the position of each triplet among those of its image, counted from 0."""
    return np.arange(len(triplets.verb)) - triplets.hoi_start[triplets.image_of_hoi]


class Shoe:
    """G ground-truth and P predicted triplets of the same images, with the columns that both algorithms need.

    places: the position of each triplet in its record, for ground truth and for predictions; scored: whether every
    prediction has a score; unlabelled: whether some predicted object has no label; image: the ground truth's number of
    each image with predictions; overlapping_pairs: all pairs of triplets that overlap enough; nearest [P]: the most
    similar ground truth in a prediction's image, -1 without any; nearest_names [2, P], nearest_class,
    nearest_similarity [P]: the verb and the object (rows of `TruthClasses`) of the most similar class, in the image or
    in the dataset, its number, and how similar it is, each -1 without any. A class without ground truth has no number.
    """

    def __init__(
        self,
        truth: Triplets,
        predictions: Triplets,
        classes: TruthClasses,
        likenesses: tuple[Likeness, Likeness],
        options: ShoeOptions,
    ) -> None:
        """Compare the predictions with the ground truth, which must have every image of the predictions."""
        self.truth, self.predictions, self.classes, self.options = truth, predictions, classes, options
        self.delta = options.deltas[0]
        self.places = places_of(truth), places_of(predictions)
        self.verbs, self.objects = likenesses
        # of each different object name: whether it stands for an action without an object, or has no label
        self._is_no_object_truth = np.array([name == NOTHING for name in classes.objects], dtype=bool)
        self._is_no_object = np.array([name == NOTHING for name in predictions.objects], dtype=bool)
        self._unlabelled = np.array([name == UNLABELLED for name in predictions.objects], dtype=bool)
        self.scored, self.unlabelled = not np.isnan(predictions.score).any(), bool(self._unlabelled.any())
        self._both_without_object = bool(self._is_no_object_truth.any() and self._is_no_object.any())
        position = {image_id: number for number, image_id in enumerate(truth.image_ids)}
        self.image = np.array([position[image_id] for image_id in predictions.image_ids], dtype=np.int64)
        self.nearest = np.full(len(predictions.verb), -1, dtype=np.int64)
        self.nearest_similarity = np.full(len(predictions.verb), -1, dtype=np.int64)
        self.overlapping_pairs = self._find_overlapping()
        if classes.compared is None:
            has_nearest = self.nearest >= 0
            self.nearest_names = np.where(has_nearest, self.names_of(self.nearest), -1)
            self.nearest_class = np.where(has_nearest, np.append(classes.class_of, -1)[self.nearest], -1)
        else:
            place, self.nearest_similarity = self._compare_with_dataset(classes.compared)
            self.nearest_names = np.stack([classes.compared.verb_row, classes.compared.object_row])[:, place]
            self.nearest_class = classes.compared.class_of[place]

    def names_of(self, truth: Ints) -> Ints:
        """Return [2, M]: the verb and the object of each ground-truth triplet (a row), as rows of `TruthClasses`."""
        return np.stack([np.append(rows, -1)[truth] for rows in (self.classes.verb_row, self.classes.object_row)])

    def similarities(self, truth: Ints, prediction: Ints) -> Ints:
        """Return [M]: the similarity of each ground-truth triplet to a predicted one (rows), verb and object combined
        as the options say, in whole UNITs, of which one is the similarity 1: sums of whole numbers are exact."""
        names = self.classes.verb_row[truth], self.classes.object_row[truth]
        return self.combine(*self.verb_and_object(*names, prediction))

    def combine(self, verb: Floats, object_: Floats) -> Ints:
        """Return [M]: similarities of verbs and of objects combined as the options say, in whole UNITs."""
        weight = self.options.verb_weight
        if self.options.combine == "mean":
            combined = weight * verb + (1 - weight) * object_
        elif self.options.combine == "geometric":
            combined = verb**weight * object_ ** (1 - weight)
        else:
            combined = np.minimum(verb, object_)
        if self._both_without_object or self.unlabelled:  # there is nothing but the verbs to compare
            combined = np.where(np.isnan(object_), verb, combined)
        return np.rint(combined * UNIT).astype(np.int64)

    def verb_and_object(self, truth_verb: Ints, truth_label: Ints, prediction: Ints) -> tuple[Floats, Floats]:
        """Return the similarity of the verbs [M] and that of the objects [M] of each class to a predicted triplet (a
        row). truth_verb, truth_label: the classes' names, as rows of `TruthClasses`. An object's similarity is NaN
        where neither has an object or the predicted one has no label, but 0 where one without a label stands against
        none."""
        label = self.predictions.label[prediction]
        verb = self.verbs.look_up(truth_verb, self.predictions.verb[prediction])
        object_ = self.objects.look_up(truth_label, label)
        if self._both_without_object:
            object_[self._is_no_object_truth[truth_label] & self._is_no_object[label]] = np.nan
        if self.unlabelled:
            no_label = self._unlabelled[label]
            object_[no_label] = np.where(self._is_no_object_truth[truth_label[no_label]], 0.0, np.nan)
        return verb, object_

    def allowed_rows(self, keep: Bools) -> Bools:
        """Return [K]: whether each overlapping pair is similar enough for a match, of the predictions in `keep` [P]."""
        threshold = round(self.options.min_similarity * UNIT)
        allowed: Bools = keep[self.overlapping_pairs.prediction] & (self.overlapping_pairs.similarity >= threshold)
        return allowed

    def match(self, keep: Bools | None = None) -> Matching:
        """Return the matching of ground truth and predictions (lines 9 to 22 of both algorithms). keep [P]: the
        predictions that may take part, None for all."""
        keep = np.ones(len(self.predictions.verb), dtype=bool) if keep is None else keep
        allowed = self.allowed_rows(keep)
        pairs = self.overlapping_pairs if allowed.all() else self.overlapping_pairs.select(allowed)
        columns = pairs.truth, pairs.prediction, pairs.similarity, self.rank
        if self.options.assignment == "optimal":
            prediction_of = optimal(*columns, self.truth.image_of_hoi)
        else:
            prediction_of = greedy(*columns, places_of(self.truth))
        truth_of = np.full(len(keep), -1, dtype=np.int64)
        matched = np.flatnonzero(prediction_of >= 0)
        truth_of[prediction_of[matched]] = matched
        return Matching(prediction_of, truth_of, keep)

    def change_delta(self, delta: float) -> Shoe:
        """Return a copy of this evaluation with another delta. Only what counts against a class depends on it."""
        changed = copy(self)
        changed.delta = delta
        return changed

    @cached_property
    def ranking(self) -> Ints:
        """Return [P]: the rows of the predictions, best score first, those without a score last; equal scores by image
        id, then by the values of `Triplets.sort_keys`."""
        predictions = self.predictions

        def tie_keys(rows: Ints) -> list[Ints | Floats]:
            """Return the columns that order predictions of equal scores, the most important one last."""
            return [*predictions.sort_keys(rows), rank_by_id(predictions.image_ids)[predictions.image_of_hoi[rows]]]

        return order_by_score(np.nan_to_num(predictions.score, nan=-np.inf), tie_keys)

    @cached_property
    def rank(self) -> Ints:
        """Return [P]: the place of each prediction in the ranking, 0 for the best."""
        rank = np.empty(len(self.ranking), dtype=np.int64)
        rank[self.ranking] = np.arange(len(rank))
        return rank

    @property
    def counts_against(self) -> Bools:
        """Return [P]: whether each prediction, if unmatched, is a false positive: whether the most similar class has
        ground truth and is at least as similar as delta."""
        counts: Bools = (self.nearest_similarity >= round(self.delta * UNIT)) & (self.nearest_class >= 0)
        return counts

    def _compare_with_dataset(self, compared: ComparedClasses) -> tuple[Ints, Ints]:
        """Return [P] the place of the class most similar to each prediction, of equals the first; and how similar."""
        codes = self.predictions.verb * max(len(self.predictions.objects), 1) + self.predictions.label
        _, first, names_number = np.unique(codes, return_index=True, return_inverse=True)
        place, similarity = np.zeros(len(first), dtype=np.int64), np.zeros(len(first), dtype=np.int64)
        count = len(compared.class_of)
        # some predictions at a time, each with all classes
        for part in blocks_of(np.full(len(first), count)):
            rows = np.tile(np.arange(count), part.stop - part.start)
            verb_and_object = self.verb_and_object(
                compared.verb_row[rows], compared.object_row[rows], np.repeat(first[part], count)
            )
            values = self.combine(*verb_and_object).reshape(-1, count)
            place[part], similarity[part] = values.argmax(axis=1), values.max(axis=1)
        return place[names_number], similarity[names_number]

    def _blocks(self) -> list[slice]:
        """Return slices of the images with predictions, such that each slice is small enough to be compared at once.
        Raises `DataError` for an image with too many pairs."""
        counts = np.zeros(len(self.image), dtype=np.int64)  # the pairs of each image: triplets or boxes, the larger
        for what, predicted_start, truth_start in (
            ("triplets", self.predictions.hoi_start, self.truth.hoi_start),
            ("boxes", self.predictions.box_start, self.truth.box_start),
        ):
            pairs = np.diff(predicted_start) * np.diff(truth_start)[self.image]
            check_pairs(pairs, np.arange(len(pairs)), self.predictions.image_ids, what)
            counts = np.maximum(counts, pairs)
        # `blocks_of` limits the pairs of a slice; a least number for each image limits its images, too.
        return blocks_of(np.maximum(counts, PAIRS_AT_ONCE // IMAGES_AT_ONCE))

    def _find_overlapping(self) -> OverlappingPairs:
        """Compare all triplets, image by image. Return the overlapping pairs, and set `nearest`, the ground truth that
        is most similar to each prediction (the first of equally similar ones), and `nearest_similarity`."""
        nothing, no_ious = np.zeros(0, dtype=np.int64), np.zeros(0)
        parts = [OverlappingPairs(nothing, nothing, iou_subject=no_ious, iou_object=no_ious, similarity=nothing)]
        for block in self._blocks():
            overlap, count = self._overlap(block), 0  # the function that looks IoUs up, and the block's pairs so far
            for prediction, truth in self._pairs(block):
                similarity = self.similarities(truth, prediction)
                best = first_largest(prediction, similarity)
                self.nearest[prediction[best]] = truth[best]
                self.nearest_similarity[prediction[best]] = similarity[best]
                parts.append(self._select_overlapping(overlap, prediction, truth, similarity))
                count += len(parts[-1].truth)
                if count > MOST_PAIRS:  # an image with so many is a block by itself, so it can be named
                    raise DataError(
                        f"image {self.predictions.image_ids[block.start]!r}: more than {MOST_PAIRS:,} pairs of "
                        "predicted and annotated triplets overlap; does the record hold many images?"
                    )
        return OverlappingPairs(*map(np.concatenate, zip(*parts, strict=True)))

    def _pairs(self, block: slice) -> Iterator[tuple[Ints, Ints]]:
        """Yield the rows (predictions, ground truth) of every two triplets of an image, for the images of a block, some
        at a time, sorted by prediction, then ground truth."""
        starts = self.predictions.hoi_start[block.start : block.stop + 1]
        image = np.repeat(self.image[block], np.diff(starts))
        first, count = self.truth.hoi_start[image], np.diff(self.truth.hoi_start)[image]
        for row_in_block, truth in iterate_pairs(first, count):
            yield row_in_block + starts[0], truth

    def _select_overlapping(
        self, overlap: Overlap, prediction: Ints, truth: Ints, similarity: Ints
    ) -> OverlappingPairs:
        """Return the overlapping ones among pairs of triplets (rows of both, and their similarity): those whose subject
        boxes overlap enough, and whose object boxes do unless neither has an object."""
        iou_subject = overlap(self.predictions.subject[prediction], self.truth.subject[truth])
        near = np.flatnonzero(iou_subject >= IOU_THRESHOLD)
        truth, prediction, iou_subject = truth[near], prediction[near], iou_subject[near]
        object_, truth_object = self.predictions.object[prediction], self.truth.object[truth]
        neither, both = (object_ == NO_BOX) & (truth_object == NO_BOX), (object_ != NO_BOX) & (truth_object != NO_BOX)
        iou_object = np.where(neither, np.nan, 0.0)
        iou_object[both] = overlap(object_[both], truth_object[both])
        enough = neither | (iou_object >= IOU_THRESHOLD)
        values = iou_subject[enough], iou_object[enough], similarity[near[enough]]
        return OverlappingPairs(truth[enough], prediction[enough], *values)

    def _overlap(self, block: slice) -> Overlap:
        """Compute the IoU of every two boxes of a block's images; return a function that looks it up. Many triplets
        share a box, so this computes each IoU once."""
        truth, predictions = self.truth, self.predictions
        begin, end = predictions.box_start[[block.start, block.stop]]
        image = self.image[predictions.image_of_box[begin:end]]
        first, count = truth.box_start[image], np.diff(truth.box_start)[image]
        start = starts_of(count)  # where the IoUs of each predicted box begin in `all_ious`
        all_ious = np.empty(start[-1])
        for part in blocks_of(count):
            box, truth_box = expand_runs(first[part], count[part])
            all_ious[start[part.start] : start[part.stop]] = iou(
                take_columns(predictions.boxes, box + begin + part.start),
                take_columns(truth.boxes, truth_box),
                inclusive=False,
            )
        # The IoU of a predicted box with ground-truth box t of its image is at start + (t - first) = offset + t.
        offset = start[:-1] - first
        return lambda box, truth_box: all_ious[offset[box - begin] + truth_box]


def greedy(truth: Ints, prediction: Ints, similarity: Ints, rank: Ints, turn: Ints) -> Ints:
    """Return [G]: the prediction that each ground truth takes, -1 for none. The ground truth of an image chooses in
    order, each the most similar free prediction; of equally similar ones, the one of the lowest rank.

    truth, prediction, similarity [K]: the pairs that overlap enough; rank [P]: the place of each prediction in
    `Shoe.ranking`, or at least among those of its image; turn [G]: the place of each ground truth in its image."""
    count = max(len(rank), 1)
    # One number that sorts by similarity, then by rank, and from which the rank can be read again.
    worth = similarity * count + (count - 1 - rank[prediction])
    prediction_at_rank = np.empty(len(rank), dtype=np.int64)
    prediction_at_rank[rank] = np.arange(len(rank))
    taken = np.full(len(turn), -1, dtype=np.int64)
    free = np.ones(len(rank), dtype=bool)
    # Sort the pairs by the turn of their ground truth: the place of each in that order, then the pairs by place.
    place = np.empty(len(turn), dtype=np.int64)
    place[np.argsort(turn, kind="stable")] = np.arange(len(turn))
    by_turn = np.argsort(place[truth], kind="stable")
    truth, prediction, worth = truth[by_turn], prediction[by_turn], worth[by_turn]
    starts = np.append(run_starts(truth), len(truth))  # of the pairs of each ground truth that has any
    choosers = truth[starts[:-1]]
    bounds = np.searchsorted(turn[choosers], np.arange(turn.max(initial=-1) + 2))
    # The first triplets of all images choose together, then the second ones: two of one image never compete.
    for begin, end in pairwise(bounds.tolist()):
        if begin == end:
            continue
        pairs = slice(starts[begin], starts[end])
        # the highest worth among the pairs of each choosing triplet, -1 if all its predictions are taken
        free_worth = np.where(free[prediction[pairs]], worth[pairs], -1)
        best = np.maximum.reduceat(free_worth, starts[begin:end] - starts[begin])
        served = np.flatnonzero(best >= 0)
        chosen = prediction_at_rank[count - 1 - best[served] % count]
        taken[choosers[begin:end][served]] = chosen
        free[chosen] = False
    return taken


def optimal(truth: Ints, prediction: Ints, similarity: Ints, rank: Ints, image_of_truth: Ints) -> Ints:
    """Return [G]: the prediction that each ground truth takes, -1 for none, such that each image has the greatest total
    similarity. truth, prediction, similarity [K]: the pairs that overlap enough; rank [P]: the place of each prediction
    in the order of scores; image_of_truth [G]: the image of each ground truth.

    SciPy's `linear_sum_assignment` solves an image at a time. What it maximises is one number a pair, made of three:
    first the similarity, then 1 for each match, then the rank of the prediction. They are whole numbers, added without
    rounding as long as an image has fewer than some hundred ground-truth triplets with a thousand predictions on them.
    """
    from scipy.optimize import linear_sum_assignment

    taken = np.full(len(image_of_truth), -1, dtype=np.int64)
    order = np.lexsort((rank[prediction], image_of_truth[truth]))
    truth, prediction, similarity = truth[order], prediction[order], similarity[order]
    bounds = [*run_starts(image_of_truth[truth]).tolist(), len(truth)]
    for begin, end in pairwise(bounds):
        rows, row = np.unique(truth[begin:end], return_inverse=True)
        _, first, column = np.unique(prediction[begin:end], return_index=True, return_inverse=True)
        by_score = np.argsort(first)  # the pairs are sorted by rank, so predictions first occur in that order
        rank_column = np.argsort(by_score)[column]
        columns = prediction[begin:end][first[by_score]]
        most_matches, width = min(len(rows), len(columns)), len(columns)
        match = most_matches * width + 1  # more than all ranks together
        worth = np.zeros((len(rows), len(columns)))
        one_unit = float(most_matches * (match + width) + 1)  # of similarity: more than all the rest together
        worth[row, rank_column] = similarity[begin:end] * one_unit + match + (width - rank_column)
        assigned_rows, assigned_columns = linear_sum_assignment(worth, maximize=True)
        overlapping = worth[assigned_rows, assigned_columns] > 0  # SciPy also pairs two that do not overlap
        taken[rows[assigned_rows[overlapping]]] = columns[assigned_columns[overlapping]]
    return taken
