"""SHOE's result rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hoicli.records.results import Row, interval_keys, percent, row_ends
from hoicli.resampling.draws import Resampling
from hoicli.shoe.resampled import Interval, Intervals, intervals_of
from hoicli.shoe.run import Run
from hoicli.shoe.scores import OF_CLASS, Scores
from hoicli.shoe.settings import METRICS


def evaluation_rows(
    run: Run, tags: Mapping[str, str], resampling: Resampling | None = None, *, per_class: bool = False
) -> Iterator[Row]:
    """The rows of each delta, with intervals from `resampling`; tags: on every row, and the delta's where there are
    several."""
    for delta, done in run.each():
        intervals = None if resampling is None else intervals_of(done, resampling, per_class=per_class)
        settings = done.signature | ({} if resampling is None else resampling.signature())
        yield from shoe_rows(
            done.scores, subset=done.subset, settings=settings, tags={**tags, **delta}, per_class=per_class,
            intervals=intervals,
        )  # fmt: skip


def shoe_rows(
    scores: Scores,
    *,
    subset: str,
    settings: Mapping[str, str],
    tags: Mapping[str, str],
    per_class: bool = False,
    intervals: Intervals | None = None,
) -> Iterator[Row]:
    """The five numbers in percent, then with `per_class` soft_ap, f1 and ap of each class. `n` is the count behind a
    value: classes for a mean, ground truth or predictions for a rate, ground truth for a class. A value is null where
    there is nothing to average, or no scores to rank by.
    """
    common = {"unit": "%", **row_ends("shoe", tags, settings)}

    def ends(interval: Interval) -> Row:
        return common if intervals is None else {**interval_keys(interval), **common}

    for metric in METRICS:
        interval = intervals.of_means.get(metric) if intervals is not None else None
        value = percent(getattr(scores, metric))
        yield {"metric": metric, "subset": subset, "value": value, "n": scores.count(metric), **ends(interval)}
    for number, row in enumerate(scores.classes if per_class else ()):
        for mean, metric in OF_CLASS.items():
            interval = intervals.of_classes[mean][number] if intervals is not None else None
            place = {"metric": metric, "subset": subset, "verb": row.verb, "object": row.object}
            yield {**place, "value": percent(getattr(row, metric)), "n": row.positives, **ends(interval)}
