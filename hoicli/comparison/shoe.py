"""SHOE's metrics of two models or more: each model's numbers, and the differences from the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from hoicli.comparison.comparison_rows import difference_row
from hoicli.io.streams import Stream
from hoicli.records.result_rows import Row, interval_keys, percent, result_row, row_ends
from hoicli.resampling.comparison import Difference, PairedRounds, difference
from hoicli.resampling.draws import Resampling
from hoicli.resampling.rounds import Rounds, Weighted, resample, swap_outputs
from hoicli.shoe.scores import Run, interval_of, means, weighted_metrics
from hoicli.shoe.shoe_evaluation import Evaluation


def compare_shoe(
    models: Sequence[tuple[str, Stream]],
    evaluation: Evaluation,
    metrics: Sequence[str],
    resampling: Resampling,
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """Yield for each delta the metrics of every model, then as `METRIC_diff` the difference of each other model from
    the first. models: (name, predictions) of each.

    Raises `DataError` for what is wrong with a stream."""
    runs = [(name, evaluation.run(stream)) for name, stream in models]
    for at_delta in zip(*(run.runs_by_delta() for _, run in runs), strict=True):
        named = [(name, run) for (name, _), (_, run) in zip(runs, at_delta, strict=True)]
        yield from _rows(named, metrics, resampling, {**at_delta[0][0], **tags})


class _MetricOfModel(NamedTuple):
    """One metric of one model at one delta. resampled: the metric in a form that takes weights of images, and its
    rounds on resamples; None if some model of the comparison does not have the metric."""

    name: str
    run: Run
    metric: str
    resampled: tuple[Weighted, Rounds] | None

    @property
    def value(self) -> float | None:
        """The metric, in [0, 1]; None without a value."""
        value: float | None = getattr(self.run.scores, self.metric)
        return value

    @property
    def n(self) -> int:
        """How many cases the metric is over."""
        return self.run.scores.count(self.metric)


def _rows(
    models: Sequence[tuple[str, Run]], metrics: Sequence[str], resampling: Resampling, tags: Mapping[str, str]
) -> Iterator[Row]:
    """Yield the rows at one delta. tags: those of all rows. models: (name, run) of each."""
    weighted = [weighted_metrics(run) for _, run in models]
    differences: list[Row] = []
    for metric in metrics:
        sides = _sides(metric, models, weighted, resampling)
        for side in sides:
            yield _value_row(side, resampling, tags)
            if side is not sides[0]:
                differences.append(_difference_row(sides[0], side, resampling, tags))
    yield from differences


def _sides(
    metric: str,
    models: Sequence[tuple[str, Run]],
    weighted: Sequence[Mapping[str, Weighted]],
    resampling: Resampling,
) -> list[_MetricOfModel]:
    """Return the metric of each model, all on the same resamples. weighted: of each model the metrics that it has."""
    # a model without scores has no soft_map
    if not all(metric in metrics_of_model for metrics_of_model in weighted):
        return [_MetricOfModel(name, run, metric, None) for name, run in models]
    of_models = [metrics_of_model[metric] for metrics_of_model in weighted]
    resamples = resample(of_models, resampling, f"{metric}: resamples")
    return [
        _MetricOfModel(name, run, metric, resampled)
        for (name, run), resampled in zip(models, zip(of_models, resamples, strict=True), strict=True)
    ]


def _value_row(side: _MetricOfModel, resampling: Resampling, tags: Mapping[str, str]) -> Row:
    """Return the row of a model's metric."""
    ends_of_interval = interval_of(side.run, side.metric, side.resampled[1]) if side.resampled else None
    numbers = {"value": percent(side.value), "n": side.n, **interval_keys(ends_of_interval), "unit": "%"}
    ends = row_ends("shoe", {"model": side.name, **tags}, {**side.run.signature, **resampling.signature()})
    return result_row(side.metric, subset=side.run.subset, **numbers, **ends)


def _difference_row(
    baseline: _MetricOfModel, side: _MetricOfModel, resampling: Resampling, tags: Mapping[str, str]
) -> Row:
    """Return the row of a metric's difference from the baseline's; it is tested if both have resamples."""
    metric, first, second = side.metric, baseline.run, side.run
    change = Difference(baseline.value, side.value)
    if baseline.resampled and side.resampled:
        (first_weighted, first_rounds), (second_weighted, second_rounds) = baseline.resampled, side.resampled
        label = f"{metric}: {side.name}, swaps"
        swaps = swap_outputs(first_weighted, second_weighted, resampling, label)
        paired = PairedRounds((first_rounds, second_rounds), (swaps[0], swaps[1]))
        images = min(first.images[metric], second.images[metric])
        tested = paired.differences(partial(means, metric))
        change = difference(baseline.value, side.value, *tested, images, largest=1.0)
    joined = _join_settings(first.signature, second.signature)
    settings = {**first.signature, **joined, **resampling.signature()}
    ends = row_ends("shoe", {"model": side.name, "baseline": baseline.name, **tags}, settings)
    return difference_row(f"{metric}_diff", {"subset": first.subset}, change, side.n, ends)


def _join_settings(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in which two runs differ, with both values joined by "+"."""
    differ = {key for key in first.keys() | second.keys() if first.get(key) != second.get(key)}
    return {key: "+".join(side[key] for side in (first, second) if key in side) for key in differ}
