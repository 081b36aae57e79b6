"""SHOE's result rows, and its numbers on resampled images: each as a function of the images' weights, with 95 %
intervals.

Matching is within an image, so a resampled image brings its matches along; only lists and sums change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from hoicli.evaluation.protocols import GRID_TENTHS
from hoicli.records.kit import Floats, Ints, rank_by_id
from hoicli.records.results import Row, interval_keys, percent, row_ends
from hoicli.resampling.draws import Resampling
from hoicli.resampling.intervals import interval
from hoicli.resampling.ranked import RankedLists
from hoicli.resampling.rounds import HIDDEN, HIDDEN_OF_MEANS, Rounds, Weighted, resampled
from hoicli.resampling.sums import ImageSums, by_image, rate
from hoicli.shoe.matching import UNIT
from hoicli.shoe.run import Run
from hoicli.shoe.scores import OF_CLASS, Entries, f1_of, loose_of, outcomes, plain_entries, soft_entries
from hoicli.shoe.settings import METRICS


def weighted(run: Run) -> dict[str, Weighted]:
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
        every = by_image(np.zeros_like(image), image, np.ones_like(image), one_row)
        return ImageSums([by_image(np.zeros_like(image), image, some, one_row), every], every, rate)

    found: dict[str, Weighted] = {}
    if classes and shoe.scored:
        found["soft_map"] = lists(soft_entries(shoe, run.loose))
    if classes:
        class_, true, false = outcomes(shoe, run.matching)
        image = np.concatenate([of_truth, of_prediction[loose_of(shoe, run.matching)]])
        missed = np.where(run.matching.prediction_of < 0, UNIT, 0)
        parts = [by_image(class_, image, values, shape) for values in (true, false)]
        parts.append(by_image(shoe.classes.class_of, of_truth, missed, shape))
        every = by_image(shoe.classes.class_of, of_truth, np.ones_like(of_truth), shape)
        found["mf1"] = ImageSums(parts, every, f1_of)
        found["gt_miss_rate"] = share(of_truth, np.where(run.matching.prediction_of < 0, 1, 0))
    if run.matching.kept.any():
        kept = np.flatnonzero(run.matching.kept)
        found["prediction_miss_rate"] = share(of_prediction[kept], np.where(run.matching.truth_of[kept] < 0, 1, 0))
    if classes and shoe.scored and not shoe.unlabelled:
        found["map"] = lists(plain_entries(shoe, run.loose.kept))
    return found


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
    metrics = weighted(run)
    every = resampled(list(metrics.values()), resampling, "shoe: resamples") if metrics else []
    return {metric: interval_of(run, metric, rounds) for metric, rounds in zip(metrics, every, strict=True)}


def evaluation_rows(
    run: Run, tags: Mapping[str, str], resampling: Resampling | None = None, *, per_class: bool = False
) -> Iterator[Row]:
    """The five numbers of each delta in percent, with intervals from `resampling`, then with `per_class` soft_ap, f1
    and ap of each class. tags: on every row, and the delta's where there are several.

    `n` is the count behind a value: classes for a mean, ground truth or predictions for a rate, ground truth for a
    class. A value is null where there is nothing to average, or no scores to rank by.
    """
    drawn = {} if resampling is None else resampling.signature()
    for delta, done in run.each():
        intervals = None if resampling is None else intervals_of(done, resampling)
        common = {"unit": "%", **row_ends("shoe", {**tags, **delta}, {**done.signature, **drawn})}
        for metric in METRICS:
            number = {"value": percent(getattr(done.scores, metric)), "n": done.scores.count(metric)}
            ends = {} if intervals is None else interval_keys(intervals.get(metric))
            yield {"metric": metric, "subset": done.subset, **number, **ends, **common}
        for row in done.scores.classes if per_class else ():
            for metric in OF_CLASS.values():
                place = {"metric": metric, "subset": done.subset, "verb": row.verb, "object": row.object}
                yield {**place, "value": percent(getattr(row, metric)), "n": row.positives, **common}
