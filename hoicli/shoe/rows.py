"""SHOE's result rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hoicli.records.results import Row, interval_keys, percent, row_ends
from hoicli.resampling.draws import Resampling
from hoicli.shoe.resampled import intervals_of
from hoicli.shoe.run import Run
from hoicli.shoe.scores import OF_CLASS
from hoicli.shoe.settings import METRICS


def evaluation_rows(
    run: Run, tags: Mapping[str, str], resampling: Resampling | None = None, *, per_class: bool = False
) -> Iterator[Row]:
    """The five numbers of each delta in percent, then with `per_class` soft_ap, f1 and ap of each class; with
    intervals from `resampling`. tags: on every row, and the delta's where there are several.

    `n` is the count behind a value: classes for a mean, ground truth or predictions for a rate, ground truth for a
    class. A value is null where there is nothing to average, or no scores to rank by.
    """
    drawn = {} if resampling is None else resampling.signature()
    for delta, done in run.each():
        intervals = None if resampling is None else intervals_of(done, resampling, per_class=per_class)
        common = {"unit": "%", **row_ends("shoe", {**tags, **delta}, {**done.signature, **drawn})}
        for metric in METRICS:
            number = {"value": percent(getattr(done.scores, metric)), "n": done.scores.count(metric)}
            ends = {} if intervals is None else interval_keys(intervals.of_means.get(metric))
            yield {"metric": metric, "subset": done.subset, **number, **ends, **common}
        for at, row in enumerate(done.scores.classes if per_class else ()):
            for mean, metric in OF_CLASS.items():
                place = {"metric": metric, "subset": done.subset, "verb": row.verb, "object": row.object}
                number = {"value": percent(getattr(row, metric)), "n": row.positives}
                ends = {} if intervals is None else interval_keys(intervals.of_classes[mean][at])
                yield {**place, **number, **ends, **common}
