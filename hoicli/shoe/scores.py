"""SHOE's numbers: soft mAP and soft mF1 of a matching (SHOE supplement, Algorithms 1 and 2), as result rows, and on
resampled images, with 95 % intervals.

- Unmatched ground truth is a pair (0, 0) of Algorithm 1. It adds no recall, so it is left out of the list and only
  counts as ground truth. For positive scores this changes nothing; negative scores (log probabilities) would wrongly
  rank below a pair at score 0.
- The small constant in the denominators only avoids 0; here 0 / 0 is 0 instead, so that a perfect result is 100.
- Algorithm 1's recall is over the number of ground truth, Algorithm 2's over TP + FN, where a match of similarity 0.4
  adds 0.4 to TP and nothing to FN. Both are followed.
- Matching is within an image, so a resampled image brings its matches along; only lists and sums change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hoicli.errors import write_number
from hoicli.evaluation.pairing import first_largest
from hoicli.evaluation.protocols import GRID_TENTHS
from hoicli.evaluation.ranking import order_by_class
from hoicli.records.kit import Bools, Floats, Ints, distinct, rank_by_id, run_starts
from hoicli.records.results import Row, interval_keys, percent, result_row, row_ends
from hoicli.resampling.draws import Resampling
from hoicli.resampling.intervals import interval
from hoicli.resampling.ranked import RankedLists
from hoicli.resampling.rounds import HIDDEN, HIDDEN_OF_MEANS, Rounds, Weighted, resample
from hoicli.resampling.sums import ImageSums, rate, sum_by_image
from hoicli.shoe.labels import predicted_classes
from hoicli.shoe.matching import UNIT, Matching, Shoe
from hoicli.shoe.settings import METRICS

OF_CLASS = {"soft_map": "soft_ap", "mf1": "f1", "map": "ap"}
"""The metrics that are means over classes, and what they are means of."""


@dataclass(frozen=True)
class ClassScores:
    """The scores of one (verb, object), as fractions. soft_ap, ap: None without scores, ap also without labels."""

    verb: str
    object: str
    positives: int
    soft_ap: float | None
    f1: float
    ap: float | None


@dataclass(frozen=True)
class Scores:
    """The means over the classes that have ground truth, fractions, None where there is nothing to average.

    gt_miss_rate of `truths`, prediction_miss_rate of `predictions` (those the mF1 kept).
    """

    classes: list[ClassScores]
    soft_map: float | None
    mf1: float | None
    map: float | None
    gt_miss_rate: float | None
    prediction_miss_rate: float | None
    truths: int
    predictions: int

    def count(self, metric: str) -> int:
        """The count behind a metric's value: classes, or ground truth or predictions for a miss rate."""
        return {"gt_miss_rate": self.truths, "prediction_miss_rate": self.predictions}.get(metric, len(self.classes))


def scores_of(shoe: Shoe, strict: Matching, loose: Matching | None = None) -> Scores:
    """All numbers: mF1 and the miss rates over the predictions that `strict` kept, soft mAP and mAP over those of
    `loose` (None: the same)."""
    counts = len(shoe.classes.classes)
    positives = np.bincount(shoe.classes.class_of, minlength=counts)
    f1 = _f1(shoe, strict, counts)
    soft = plain = None
    if shoe.scored:
        loose = loose or strict
        soft = _areas(shoe, soft_entries(shoe, loose), positives)
        plain = None if shoe.unlabelled else _areas(shoe, plain_entries(shoe, loose.keep), positives)
    none = [None] * counts
    columns = (shoe.classes.classes, positives.tolist(), soft or none, f1, plain or none)
    rows = [ClassScores(verb, name, *rest) for (verb, name), *rest in zip(*columns, strict=True)]
    truths, kept_count = len(shoe.truth.verb), int(strict.keep.sum())
    missed = int((strict.prediction_of < 0).sum())
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
    """The lists of Algorithm 1, S and L, of all classes one after the other: prediction [T] in ranking order (by score,
    then image id, then values), gain [T] the similarity gained, in UNITs; class c owns the rows
    bounds[c]:bounds[c + 1]."""

    prediction: Ints
    gain: Ints
    bounds: Ints


def soft_entries(shoe: Shoe, matching: Matching) -> Entries:
    """Every prediction that was taken, in the list of its ground truth's class, and the others that count against a
    class, with a gain of 0."""
    entry, gain = np.full(len(matching.truth_of), -1), np.zeros(len(matching.truth_of), dtype=np.int64)
    taken, loose = np.flatnonzero(matching.truth_of >= 0), loose_of(shoe, matching)
    entry[taken] = shoe.classes.class_of[matching.truth_of[taken]]
    entry[loose] = shoe.classes.class_of[shoe.nearest[loose]]
    gain[taken] = shoe.similarities(matching.truth_of[taken], taken)
    return _rank_entries(shoe, entry, gain)


def plain_entries(shoe: Shoe, keep: Bools) -> Entries:
    """The `keep` predictions [P] in the lists of their own classes, with UNIT for a true positive of hoicli's own
    matching: a prediction belongs to the ground truth of its class with the largest min(IoU), the first of equals, and
    the highest score takes it."""
    entry = np.where(keep, predicted_classes(shoe.predictions, shoe.classes.classes), -1)
    meet = shoe.meetings
    same = np.flatnonzero(entry[meet.prediction] == shoe.classes.class_of[meet.truth])
    overlap = np.fmin(meet.iou_subject[same], meet.iou_object[same])
    best = same[first_largest(meet.prediction[same], overlap)]
    truth, prediction = meet.truth[best], meet.prediction[best]
    order = np.lexsort((shoe.rank[prediction], truth))
    gain = np.zeros(len(entry), dtype=np.int64)
    gain[prediction[order[run_starts(truth[order])]]] = UNIT
    return _rank_entries(shoe, entry, gain)


def _rank_entries(shoe: Shoe, entry: Ints, gain: Ints) -> Entries:
    """The lists, from the class (-1: none) and the gain of each prediction [P]."""
    used = order_by_class(entry, shoe.ranking[entry[shoe.ranking] >= 0])
    return Entries(used, gain[used], np.searchsorted(entry[used], np.arange(len(shoe.classes.classes) + 1)))


def _areas(shoe: Shoe, entries: Entries, positives: Ints) -> list[float]:
    """[C] the average precision of each class."""
    bounds = entries.bounds.tolist()
    return [
        average_precision(entries.gain[begin:end], count, shoe.options.ap)
        for begin, end, count in zip(bounds[:-1], bounds[1:], positives.tolist(), strict=True)
    ]


def outcomes(shoe: Shoe, matching: Matching) -> tuple[Ints, Ints, Ints]:
    """Algorithm 2, lines 15 to 28: (class, true, false), a row for each ground truth and each unmatched prediction that
    counts against a class: its class, and what it adds to that class's TP and FP, in UNITs. Ground truth that is missed
    adds to neither; the first rows, [G], are the ground truth in its order."""
    of_truth = shoe.classes.class_of
    true = np.zeros(len(of_truth), dtype=np.int64)
    matched = np.flatnonzero(matching.prediction_of >= 0)
    true[matched] = shoe.similarities(matched, matching.prediction_of[matched])
    false = np.where(matching.prediction_of >= 0, UNIT - true, 0)
    loose = loose_of(shoe, matching)
    classes = np.concatenate([of_truth, of_truth[shoe.nearest[loose]]])
    true = np.concatenate([true, np.zeros(len(loose), dtype=np.int64)])
    return classes, true, np.concatenate([false, np.full(len(loose), UNIT)])


def loose_of(shoe: Shoe, matching: Matching) -> Ints:
    """The predictions that were kept, are unmatched, and count against a class."""
    return np.flatnonzero(matching.keep & (matching.truth_of < 0) & shoe.counts_against)


def f1_of(true: Floats, false: Floats, missed: Floats) -> Floats:
    """F1 of sums of any shape: lines 30 to 35."""
    none = np.zeros(true.shape)
    precision = np.divide(true, true + false, out=none.copy(), where=true > 0)
    recall = np.divide(true, true + missed, out=none.copy(), where=true > 0)
    f1: Floats = np.divide(2 * precision * recall, precision + recall, out=none, where=true > 0)
    return f1


def _f1(shoe: Shoe, matching: Matching, count: int) -> list[float]:
    """[C] Algorithm 2."""
    classes, true, false = outcomes(shoe, matching)
    # Weights are whole numbers, so these float sums are exact.
    missed = np.where(matching.prediction_of < 0, UNIT, 0)
    columns = (classes, true), (classes, false), (shoe.classes.class_of, missed)
    sums: list[Any] = [np.bincount(of, weights=gain, minlength=count) for of, gain in columns]
    f1: list[float] = f1_of(*sums).tolist()
    return f1


def average_precision(gain: Ints, positives: int, area: str) -> float:
    """Algorithm 1, lines 35 to 39, in [0, 1]: of gains in UNITs, best score first, for a class of `positives` ground
    truth, under the curve of soft precision and recall that `area` (a key of AREAS) names. Without any gain it is 0."""
    rank = np.flatnonzero(gain) + 1  # precision is highest at gains, and only they change recall
    if len(rank) == 0 or positives == 0:
        return 0.0
    gained = np.cumsum(gain)[rank - 1]
    precision, recall = gained / (rank * UNIT), gained / (positives * UNIT)
    if area == "trapezoid":  # from each gain's point back to the one before it, which may be another prediction's
        before = np.divide(gained - gain[rank - 1], (rank - 1) * UNIT, out=np.ones(len(rank)), where=rank > 1)
        return math.fsum((gain[rank - 1] * (precision + before) / 2).tolist()) / (positives * UNIT)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    if area == "envelope":
        return math.fsum((gain[rank - 1] * envelope).tolist()) / (positives * UNIT)
    at = np.searchsorted(recall, GRID_TENTHS)
    return math.fsum(envelope[at[at < len(recall)]].tolist()) / len(GRID_TENTHS)


def _mean(values: list[float] | None) -> float | None:
    """The mean, exactly independent of the order of values; None for no values."""
    return math.fsum(values) / len(values) if values else None


@dataclass(frozen=True)
class Run:
    """An evaluation and what its signature says. matching: of the predictions that mF1 and the miss rates are over;
    loose: of those that soft mAP is over."""

    shoe: Shoe
    matching: Matching
    loose: Matching
    subset: str
    signature: dict[str, str]

    def each(self) -> list[tuple[dict[str, str], Run]]:
        """(tags, evaluation) at each delta; a delta changes no match. One alone has no tag."""
        deltas = self.shoe.options.deltas
        tags = [{"delta": write_number(delta)} for delta in deltas]
        runs = [
            replace(self, shoe=self.shoe.change_delta(delta), signature={**self.signature, **tag})
            for delta, tag in zip(deltas, tags, strict=True)
        ]
        return list(zip(tags if len(deltas) > 1 else [{}], runs, strict=True))

    @cached_property
    def scores(self) -> Scores:
        """Its numbers."""
        return scores_of(self.shoe, self.matching, self.loose)

    @cached_property
    def images(self) -> dict[str, int]:
        """Return how many images have what each metric is over."""
        truth = len(distinct(self.shoe.truth.image_of_hoi))
        kept_images = len(distinct(self.shoe.predictions.image_of_hoi[self.matching.keep]))
        return {**dict.fromkeys(METRICS, truth), "prediction_miss_rate": kept_images}


def weighted_metrics(run: Run) -> dict[str, Weighted]:
    """Each metric that has a value, for weights of the images in the order of their ids. Of the means over classes the
    classes are the run's, in their order; a rate has one class."""
    shoe, truth = run.shoe, run.shoe.truth
    rank, classes = rank_by_id(truth.image_ids), len(shoe.classes.classes)
    of_truth = rank[truth.image_of_hoi]
    of_prediction = rank[shoe.image[shoe.predictions.image_of_hoi]]
    shape, one_row = (classes, len(rank)), (1, len(rank))

    def lists(entries: Entries) -> RankedLists:
        grid = GRID_TENTHS if shoe.options.ap == "11-point" else ()
        return RankedLists(
            hit=entries.gain > 0,
            image=of_prediction[entries.prediction],
            bounds=entries.bounds,
            truth_image=of_truth,
            truth_class=shoe.classes.class_of,
            images=len(rank),
            grid=grid,
            gain=entries.gain,
            unit=UNIT,
            area="envelope" if grid else shoe.options.ap,
            score=shoe.predictions.score[entries.prediction],
        )

    def share(image: Ints, some: Ints) -> ImageSums:
        """The rate of rows, one an image's."""
        every = sum_by_image(np.zeros_like(image), image, np.ones_like(image), one_row)
        return ImageSums([sum_by_image(np.zeros_like(image), image, some, one_row), every], every, rate)

    metrics: dict[str, Weighted] = {}
    if classes and shoe.scored:
        metrics["soft_map"] = lists(soft_entries(shoe, run.loose))
    if classes:
        class_, true, false = outcomes(shoe, run.matching)
        image = np.concatenate([of_truth, of_prediction[loose_of(shoe, run.matching)]])
        missed = np.where(run.matching.prediction_of < 0, UNIT, 0)
        parts = [sum_by_image(class_, image, values, shape) for values in (true, false)]
        parts.append(sum_by_image(shoe.classes.class_of, of_truth, missed, shape))
        every = sum_by_image(shoe.classes.class_of, of_truth, np.ones_like(of_truth), shape)
        metrics["mf1"] = ImageSums(parts, every, f1_of)
        metrics["gt_miss_rate"] = share(of_truth, np.where(run.matching.prediction_of < 0, 1, 0))
    if run.matching.keep.any():
        kept_rows = np.flatnonzero(run.matching.keep)
        metrics["prediction_miss_rate"] = share(
            of_prediction[kept_rows], np.where(run.matching.truth_of[kept_rows] < 0, 1, 0)
        )
    if classes and shoe.scored and not shoe.unlabelled:
        metrics["map"] = lists(plain_entries(shoe, run.loose.keep))
    return metrics


def means(metric: str, rounds: Rounds) -> Floats:
    """[R] a metric in each round: the mean over the classes that have ground truth in it."""
    every, hidden = np.arange(len(rounds.ap)), HIDDEN_OF_MEANS if metric == "soft_map" else HIDDEN
    return rounds.means(every, np.zeros(len(every), dtype=bool), hidden)


def interval_of(run: Run, metric: str, rounds: Rounds) -> tuple[float, float] | None:
    """The 95 % interval of a metric that has a value, in [0, 1]; None where fewer than two images have what it is
    over."""
    return interval(getattr(run.scores, metric), means(metric, rounds), run.images[metric], lowest=0.0, highest=1.0)


def intervals_of(run: Run, resampling: Resampling) -> dict[str, tuple[float, float] | None]:
    """The interval of each metric that has a value."""
    metrics = weighted_metrics(run)
    every = resample(list(metrics.values()), resampling, "shoe: resamples") if metrics else []
    return {metric: interval_of(run, metric, rounds) for metric, rounds in zip(metrics, every, strict=True)}


def evaluation_rows(
    run: Run, tags: Mapping[str, str], resampling: Resampling | None = None, *, per_class: bool = False
) -> Iterator[Row]:
    """The five numbers of each delta in percent, with intervals from `resampling`, then with `per_class` soft_ap, f1
    and ap of each class. tags: on every row, and the delta's where there are several.

    `n` is the count behind a value: classes for a mean, ground truth or predictions for a rate, ground truth for a
    class. A value is null where there is nothing to average, or no scores to rank by.
    """
    resampling_settings = {} if resampling is None else resampling.signature()
    for delta, done in run.each():
        intervals = None if resampling is None else intervals_of(done, resampling)
        common = {"unit": "%", **row_ends("shoe", {**tags, **delta}, {**done.signature, **resampling_settings})}
        for metric in METRICS:
            number = {"value": percent(getattr(done.scores, metric)), "n": done.scores.count(metric)}
            ends = {} if intervals is None else interval_keys(intervals.get(metric))
            yield result_row(metric, subset=done.subset, **number, **ends, **common)
        for row in done.scores.classes if per_class else ():
            for metric in OF_CLASS.values():
                class_ = {"subset": done.subset, "verb": row.verb, "object": row.object}
                numbers = {"value": percent(getattr(row, metric)), "n": row.positives}
                yield result_row(metric, **class_, **numbers, **common)
