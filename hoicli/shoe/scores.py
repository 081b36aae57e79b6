"""SHOE's numbers: soft mAP and soft mF1 of a matching (SHOE supplement, Algorithms 1 and 2), as result rows, and on
resampled images, with 95 % intervals.

- Unmatched ground truth is a pair (0, 0) of Algorithm 1. It adds no recall, so it is left out of the list and only
  counts as ground truth. For positive scores this changes nothing; negative scores (log probabilities) would wrongly
  rank below a pair at score 0.
- The small constant in the denominators only avoids 0; here 0 / 0 is 0 instead, so that a perfect result is 100.
- Algorithm 1's recall is over the number of ground truth, Algorithm 2's over TP + FN, where a match of similarity 0.4
  adds 0.4 to TP and nothing to FN. Both are followed.
- Matching is within an image, so a resampled image brings its matches along; only lists and sums change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hoicli.errors import write_number
from hoicli.evaluation.pairing import first_largest
from hoicli.evaluation.ranking import order_by_class
from hoicli.evaluation.recall_grids import GRID_TENTHS
from hoicli.records.kit import Bools, Floats, Ints, distinct, rank_by_id, run_starts
from hoicli.records.result_rows import Row, interval_keys, percent, result_row, row_ends
from hoicli.resampling.draws import Resampling
from hoicli.resampling.intervals import interval
from hoicli.resampling.ranked import RankedLists
from hoicli.resampling.rounds import HIDDEN, HIDDEN_OF_MEANS, Rounds, Weighted, resample
from hoicli.resampling.sums import ImageSums, rate, sum_by_image
from hoicli.shoe.likenesses import predicted_classes
from hoicli.shoe.settings import METRICS
from hoicli.shoe.triplet_matching import UNIT, Matching, Shoe

OF_CLASS = {"soft_map": "soft_ap", "mf1": "f1", "map": "ap"}
"""The metrics that are means over classes, with the name of a class's own value."""


@dataclass(frozen=True)
class ClassScores:
    """The values of one class (verb, object), as fractions. positives: its number of ground-truth triplets; soft_ap,
    ap: None if predictions have no scores; ap: None, too, if predicted objects have no labels."""

    verb: str
    object: str
    positives: int
    soft_ap: float | None
    f1: float
    ap: float | None


@dataclass(frozen=True)
class Scores:
    """The numbers of an evaluation, as fractions, None where there is nothing to average: means over the classes that
    have ground truth, and the shares of ground truth and of predictions that match nothing.

    truths: the number of ground-truth triplets; predictions: the number of predictions that mF1 is over."""

    classes: list[ClassScores]
    soft_map: float | None
    mf1: float | None
    map: float | None
    gt_miss_rate: float | None
    prediction_miss_rate: float | None
    truths: int
    predictions: int

    def count(self, metric: str) -> int:
        """Return how many things a metric is over: ground truth or predictions for a miss rate, else classes."""
        return {"gt_miss_rate": self.truths, "prediction_miss_rate": self.predictions}.get(metric, len(self.classes))


def scores_of(shoe: Shoe, filtered: Matching, ranked: Matching | None = None) -> Scores:
    """Return all numbers of an evaluation: mF1 and the miss rates from the matching `filtered`, of the predictions that
    pass the filters; soft mAP and mAP from the matching `ranked`, of those that they rank (None: the same)."""
    class_count = len(shoe.classes.classes)
    positives = np.bincount(shoe.classes.class_of, minlength=class_count)
    f1 = _f1(shoe, filtered, class_count)
    soft = plain = None
    if shoe.scored:
        ranked = ranked or filtered
        soft = _areas(shoe, soft_entries(shoe, ranked), positives)
        plain = None if shoe.unlabelled else _areas(shoe, plain_entries(shoe, ranked.keep), positives)
    no_values = [None] * class_count
    columns = zip(shoe.classes.classes, positives.tolist(), soft or no_values, f1, plain or no_values, strict=True)
    rows = [
        ClassScores(verb, name, count, soft_ap=soft_ap, f1=class_f1, ap=ap)
        for (verb, name), count, soft_ap, class_f1, ap in columns
    ]
    truths, kept_count = len(shoe.truth.verb), int(filtered.keep.sum())
    missed = int((filtered.prediction_of < 0).sum())
    return Scores(
        classes=rows,
        soft_map=_mean(soft),
        mf1=_mean(f1),
        map=_mean(plain),
        gt_miss_rate=missed / truths if truths else None,
        prediction_miss_rate=(kept_count - (truths - missed)) / kept_count if kept_count else None,
        truths=truths,
        predictions=kept_count,
    )


@dataclass(frozen=True)
class Entries:
    """The ranked list of each class (S and L of Algorithm 1), all classes one after the other. prediction [T]: best
    score first (then by image id, then values); gain [T]: the similarity to the ground truth that it is matched with, 0
    without a match, in UNITs; class c has the rows bounds[c]:bounds[c + 1]."""

    prediction: Ints
    gain: Ints
    bounds: Ints


def soft_entries(shoe: Shoe, matching: Matching) -> Entries:
    """Return the lists for soft mAP: every matched prediction is in the list of its ground truth's class, with its
    similarity in UNITs as its gain, and every unmatched one that counts against a class (that of its most similar
    ground truth) is in that class's list, with a gain of 0."""
    class_of, gain = np.full(len(matching.truth_of), -1), np.zeros(len(matching.truth_of), dtype=np.int64)
    taken, unmatched = np.flatnonzero(matching.truth_of >= 0), false_positives(shoe, matching)
    class_of[taken] = shoe.classes.class_of[matching.truth_of[taken]]
    class_of[unmatched] = shoe.nearest_class[unmatched]
    gain[taken] = shoe.similarities(matching.truth_of[taken], taken)
    return _rank_entries(shoe, class_of, gain)


def plain_entries(shoe: Shoe, keep: Bools) -> Entries:
    """Return the lists for plain mAP, which needs equal labels: every prediction is in the list of its own class, with
    a gain of UNIT for a true positive.

    A prediction belongs to the ground truth of its class with the largest min(IoU), the first of equally large ones. Of
    the predictions that belong to a ground truth, the one with the highest score is the true positive."""
    class_of = np.where(keep, predicted_classes(shoe.predictions, shoe.classes.classes), -1)
    pairs = shoe.overlapping_pairs
    same_class = np.flatnonzero(class_of[pairs.prediction] == shoe.classes.class_of[pairs.truth])
    overlap = np.fmin(pairs.iou_subject[same_class], pairs.iou_object[same_class])  # fmin skips the NaN of no object
    best = same_class[first_largest(pairs.prediction[same_class], overlap)]
    truth, prediction = pairs.truth[best], pairs.prediction[best]
    # Sorted by ground truth, then by rank: each ground truth's run begins with its best-scored prediction.
    order = np.lexsort((shoe.rank[prediction], truth))
    true_positives = prediction[order[run_starts(truth[order])]]
    gain = np.zeros(len(class_of), dtype=np.int64)
    gain[true_positives] = UNIT
    return _rank_entries(shoe, class_of, gain)


def _rank_entries(shoe: Shoe, class_of: Ints, gain: Ints) -> Entries:
    """Return the ranked list of each class. class_of [P]: in whose list each prediction stands, -1: in none."""
    ranked = shoe.ranking[class_of[shoe.ranking] >= 0]
    prediction = order_by_class(class_of, ranked)
    bounds = np.searchsorted(class_of[prediction], np.arange(len(shoe.classes.classes) + 1))
    return Entries(prediction, gain[prediction], bounds)


def _areas(shoe: Shoe, entries: Entries, positives: Ints) -> list[float]:
    """Return [C]: the average precision of each class. positives [C]: the number of its ground-truth triplets."""
    bounds = entries.bounds.tolist()
    return [
        average_precision(entries.gain[begin:end], count, shoe.options.ap)
        for begin, end, count in zip(bounds[:-1], bounds[1:], positives.tolist(), strict=True)
    ]


def outcomes(shoe: Shoe, matching: Matching) -> tuple[Ints, Ints, Ints]:
    """Return three columns (class, true, false): what each row adds to the TP and the FP of its class, in UNITs,
    (Algorithm 2, lines 15 to 28). There is a row for each ground truth, in order, and then one for each unmatched
    prediction that counts against a class. A match of similarity s adds s to TP and 1 - s to FP; missed ground truth
    adds to neither."""
    truth_class = shoe.classes.class_of
    true = np.zeros(len(truth_class), dtype=np.int64)
    matched = np.flatnonzero(matching.prediction_of >= 0)
    true[matched] = shoe.similarities(matched, matching.prediction_of[matched])
    false = np.where(matching.prediction_of >= 0, UNIT - true, 0)
    unmatched = false_positives(shoe, matching)
    classes = np.concatenate([truth_class, shoe.nearest_class[unmatched]])
    true = np.concatenate([true, np.zeros(len(unmatched), dtype=np.int64)])
    return classes, true, np.concatenate([false, np.full(len(unmatched), UNIT)])


def false_positives(shoe: Shoe, matching: Matching) -> Ints:
    """Return the rows of the unmatched predictions that pass the filters and are similar enough to a class to count."""
    return np.flatnonzero(matching.keep & (matching.truth_of < 0) & shoe.counts_against)


def f1_of(true: Floats, false: Floats, missed: Floats) -> Floats:
    """Return F1 as in lines 30 to 35 of Algorithm 2, of sums of any shape; 0 without a true positive. true, false,
    missed: the sums of TP, FP and FN in UNITs."""
    zeros = np.zeros(true.shape)
    precision = np.divide(true, true + false, out=zeros.copy(), where=true > 0)
    recall = np.divide(true, true + missed, out=zeros.copy(), where=true > 0)
    f1: Floats = np.divide(2 * precision * recall, precision + recall, out=zeros, where=true > 0)
    return f1


def _f1(shoe: Shoe, matching: Matching, class_count: int) -> list[float]:
    """Return [C]: the F1 of each class by Algorithm 2."""
    classes, true, false = outcomes(shoe, matching)
    missed = np.where(matching.prediction_of < 0, UNIT, 0)
    columns = (classes, true), (classes, false), (shoe.classes.class_of, missed)
    # np.bincount adds floats, but those are whole numbers, so the sums are exact.
    sums: list[Any] = [np.bincount(class_of, weights=values, minlength=class_count) for class_of, values in columns]
    f1: list[float] = f1_of(*sums).tolist()
    return f1


def average_precision(gain: Ints, positives: int, area: str) -> float:
    """Return the average precision of a class in [0, 1], the area under its curve of soft precision and recall
    (Algorithm 1, lines 35 to 39). gain: of each prediction, best score first, UNIT for a perfect match; positives: the
    number of the class's ground-truth triplets."""
    rank = np.flatnonzero(gain) + 1  # precision is highest at gains, and only they change recall
    if len(rank) == 0 or positives == 0:
        return 0.0
    step, gained = gain[rank - 1], np.cumsum(gain)[rank - 1]
    precision, recall = gained / (rank * UNIT), gained / (positives * UNIT)
    if area == "trapezoid":  # between the curve's points at this prediction and at the one before it in the list
        precision_before = np.divide(gained - step, (rank - 1) * UNIT, out=np.ones(len(rank)), where=rank > 1)
        return math.fsum((step * (precision + precision_before) / 2).tolist()) / (positives * UNIT)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]  # the best precision at this recall or beyond
    if area == "envelope":
        return math.fsum((step * envelope).tolist()) / (positives * UNIT)
    first_to_reach = np.searchsorted(recall, GRID_TENTHS)
    return math.fsum(envelope[first_to_reach[first_to_reach < len(recall)]].tolist()) / len(GRID_TENTHS)


def _mean(values: list[float] | None) -> float | None:
    """Return the mean, None for no values; `fsum` makes it independent of their order to the last digit."""
    return math.fsum(values) / len(values) if values else None


@dataclass(frozen=True)
class Run:
    """The evaluation of one model. matching: that of the predictions which pass the filters (for mF1 and the miss
    rates); ranked: that of the predictions which soft mAP ranks; subset: "single_hoi" or "full"."""

    shoe: Shoe
    matching: Matching
    ranked: Matching
    subset: str
    signature: dict[str, str]

    def runs_by_delta(self) -> list[tuple[dict[str, str], Run]]:
        """Return (columns that name the delta, evaluation at it) for each delta of the options. The delta decides only
        what counts against a class, so the matches stay. A single delta has no column: {}."""
        deltas = self.shoe.options.deltas
        tags = [{"delta": write_number(delta)} for delta in deltas]
        runs = [
            replace(self, shoe=self.shoe.change_delta(delta), signature={**self.signature, **tag})
            for delta, tag in zip(deltas, tags, strict=True)
        ]
        return list(zip(tags if len(deltas) > 1 else [{}], runs, strict=True))

    @cached_property
    def scores(self) -> Scores:
        """Return all numbers of the evaluation, computed once."""
        return scores_of(self.shoe, self.matching, self.ranked)

    @cached_property
    def images(self) -> dict[str, int]:
        """Return {metric: the number of images with what it is computed over, ground truth or predictions}."""
        truth = len(distinct(self.shoe.truth.image_of_hoi))
        kept_images = len(distinct(self.shoe.predictions.image_of_hoi[self.matching.keep]))
        return {**dict.fromkeys(METRICS, truth), "prediction_miss_rate": kept_images}


def weighted_metrics(run: Run) -> dict[str, Weighted]:
    """Return {metric: it in a form that can be computed again with weights of the images}, for each metric that has a
    value. Images are in the order of their ids. A mean has the run's classes, in their order; a miss rate has one."""
    shoe, weighting = run.shoe, _Weighting(run)
    has_classes = bool(shoe.classes.classes)
    metrics: dict[str, Weighted] = {}
    if has_classes and shoe.scored:
        metrics["soft_map"] = weighting.ranked_lists(soft_entries(shoe, run.ranked))
    if has_classes:
        metrics["mf1"] = weighting.mf1()
        metrics["gt_miss_rate"] = weighting.share(weighting.truth_image, run.matching.prediction_of < 0)
    if run.matching.keep.any():
        rows = np.flatnonzero(run.matching.keep)
        is_missed = run.matching.truth_of[rows] < 0
        metrics["prediction_miss_rate"] = weighting.share(weighting.prediction_image[rows], is_missed)
    if has_classes and shoe.scored and not shoe.unlabelled:
        metrics["map"] = weighting.ranked_lists(plain_entries(shoe, run.ranked.keep))
    return metrics


class _Weighting:
    """Makes metrics of a run that take weights of its N images, which are numbered in the order of their ids."""

    def __init__(self, run: Run) -> None:
        """Find the image number of each ground truth [G] and of each prediction [P] of a run."""
        self._shoe, self._matching = run.shoe, run.matching
        rank = rank_by_id(run.shoe.truth.image_ids)
        self._images = len(rank)
        self.truth_image = rank[run.shoe.truth.image_of_hoi]
        self.prediction_image = rank[run.shoe.image[run.shoe.predictions.image_of_hoi]]

    def ranked_lists(self, entries: Entries) -> RankedLists:
        """Return the lists of all classes, whose mean of average precisions is soft mAP or plain mAP."""
        shoe = self._shoe
        grid = GRID_TENTHS if shoe.options.ap == "11-point" else ()
        return RankedLists(
            hit=entries.gain > 0,
            image=self.prediction_image[entries.prediction],
            bounds=entries.bounds,
            truth_image=self.truth_image,
            truth_class=shoe.classes.class_of,
            images=self._images,
            grid=grid,
            gain=entries.gain,
            unit=UNIT,
            area="envelope" if grid else shoe.options.ap,
            score=shoe.predictions.score[entries.prediction],
        )

    def mf1(self) -> ImageSums:
        """Return the mean F1 over classes, as the sums for each class and image that F1 is made of: TP, FP (both of
        `outcomes`) and missed ground truth, in UNITs (one UNIT is a perfect match)."""
        shoe, matching, truth_image = self._shoe, self._matching, self.truth_image
        truth_class, shape = shoe.classes.class_of, (len(shoe.classes.classes), self._images)
        outcome_class, true, false = outcomes(shoe, matching)
        outcome_image = np.concatenate([truth_image, self.prediction_image[false_positives(shoe, matching)]])
        missed = np.where(matching.prediction_of < 0, UNIT, 0)
        parts = [
            sum_by_image(outcome_class, outcome_image, true, shape),
            sum_by_image(outcome_class, outcome_image, false, shape),
            sum_by_image(truth_class, truth_image, missed, shape),
        ]
        positives = sum_by_image(truth_class, truth_image, np.ones_like(truth_image), shape)
        return ImageSums(parts, positives, f1_of)

    def share(self, image: Ints, is_counted: Bools) -> ImageSums:
        """Return the share of items that count, given the image number of each."""
        one_class, shape = np.zeros_like(image), (1, self._images)
        totals = sum_by_image(one_class, image, np.ones_like(image), shape)
        counts = sum_by_image(one_class, image, np.where(is_counted, 1, 0), shape)
        return ImageSums([counts, totals], counted=totals, of=rate)


def means(metric: str, rounds: Rounds) -> Floats:
    """Return [R]: a metric in each round of resampling, the mean over the classes that have ground truth in it. rounds:
    the metric's values for each class. HIDDEN and HIDDEN_OF_MEANS correct for classes with ground truth in few images,
    whose values vary less between resamples than between test sets."""
    classes, hidden = np.arange(len(rounds.ap)), HIDDEN_OF_MEANS if metric == "soft_map" else HIDDEN
    return rounds.means(classes, np.zeros(len(classes), dtype=bool), hidden)


def interval_of(run: Run, metric: str, rounds: Rounds) -> tuple[float, float] | None:
    """Return the 95 % interval (low, high), in [0, 1], of a metric that has a value; None where fewer than two images
    have what it is computed over."""
    return interval(getattr(run.scores, metric), means(metric, rounds), run.images[metric], lowest=0.0, highest=1.0)


def intervals_of(run: Run, resampling: Resampling) -> dict[str, tuple[float, float] | None]:
    """Return {metric: its 95 % interval (low, high), None for too few images} for each metric that has a value."""
    metrics = weighted_metrics(run)
    rounds_by_metric = resample(list(metrics.values()), resampling, "shoe: resamples") if metrics else []
    return {metric: interval_of(run, metric, rounds) for metric, rounds in zip(metrics, rounds_by_metric, strict=True)}


def evaluation_rows(
    run: Run, tags: Mapping[str, str], resampling: Resampling | None = None, *, per_class: bool = False
) -> Iterator[Row]:
    """Yield the result rows of a run, in percent: the five metrics at each delta and, with `per_class`, then soft_ap,
    f1 and ap of each class. Where there are several deltas, the tag `delta` is added.

    `n` is the count behind a value: classes for a mean, ground truth or predictions for a rate, ground truth for a
    class. A value is null where there is nothing to average, or no scores to rank by."""
    resampling_settings = {} if resampling is None else resampling.signature()
    for delta, run_at_delta in run.runs_by_delta():
        intervals = None if resampling is None else intervals_of(run_at_delta, resampling)
        common = {"unit": "%", **row_ends("shoe", {**tags, **delta}, {**run_at_delta.signature, **resampling_settings})}
        for metric in METRICS:
            number = {"value": percent(getattr(run_at_delta.scores, metric)), "n": run_at_delta.scores.count(metric)}
            interval_columns = {} if intervals is None else interval_keys(intervals.get(metric))
            yield result_row(metric, subset=run_at_delta.subset, **number, **interval_columns, **common)
        for row in run_at_delta.scores.classes if per_class else ():
            for metric in OF_CLASS.values():
                class_ = {"subset": run_at_delta.subset, "verb": row.verb, "object": row.object}
                numbers = {"value": percent(getattr(row, metric)), "n": row.positives}
                yield result_row(metric, **class_, **numbers, **common)
