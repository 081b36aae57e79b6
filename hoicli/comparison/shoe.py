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
    """Evaluate several models by SHOE, and yield the rows at each delta (the similarity from which an unmatched
    prediction counts against a class): each model's metrics, then as `METRIC_diff` the differences from the first.

    Raises `DataError` for what is wrong with a stream."""
    runs = [(name, evaluation.run(stream)) for name, stream in models]
    for runs_at_delta in zip(*(run.runs_by_delta() for _, run in runs), strict=True):
        delta_tag, _ = runs_at_delta[0]
        named_runs = [(name, run) for (name, _), (_, run) in zip(runs, runs_at_delta, strict=True)]
        yield from _rows(named_runs, metrics, resampling, {**delta_tag, **tags})


class _MetricOfModel(NamedTuple):
    """One metric of one model at one delta. resampled: the metric as a function of weights of images, and its values on
    resamples of the images; None if some model of the comparison does not have the metric."""

    name: str
    run: Run
    metric: str
    resampled: tuple[Weighted, Rounds] | None

    @property
    def value(self) -> float | None:
        """The value of the metric in [0, 1], None if it cannot be computed."""
        value: float | None = getattr(self.run.scores, self.metric)
        return value

    @property
    def n(self) -> int:
        """The number of cases (classes or predictions) that the metric is computed over."""
        return self.run.scores.count(self.metric)


def _rows(
    models: Sequence[tuple[str, Run]], metrics: Sequence[str], resampling: Resampling, tags: Mapping[str, str]
) -> Iterator[Row]:
    """Yield the rows at one delta: each metric of each model, then all differences from the first model."""
    weighted = [weighted_metrics(run) for _, run in models]  # functions of how often each image counts
    differences: list[Row] = []
    for metric in metrics:
        baseline, *others = _resample_metric(metric, models, weighted, resampling)
        yield _value_row(baseline, resampling, tags)
        for other in others:
            yield _value_row(other, resampling, tags)
            differences.append(_difference_row(baseline, other, resampling, tags))
    yield from differences


def _resample_metric(
    metric: str, models: Sequence[tuple[str, Run]], weighted: Sequence[Mapping[str, Weighted]], resampling: Resampling
) -> list[_MetricOfModel]:
    """Return one metric of each model, computed on the same resamples for all. weighted: for each model its metrics by
    name, as functions of weights of images."""
    # a model without scores has no soft_map
    if not all(metric in metrics_of_model for metrics_of_model in weighted):
        return [_MetricOfModel(name, run, metric, resampled=None) for name, run in models]
    of_models = [metrics_of_model[metric] for metrics_of_model in weighted]
    resamples = resample(of_models, resampling, f"{metric}: resamples")
    return [
        _MetricOfModel(name, run, metric, resampled)
        for (name, run), resampled in zip(models, zip(of_models, resamples, strict=True), strict=True)
    ]


def _value_row(side: _MetricOfModel, resampling: Resampling, tags: Mapping[str, str]) -> Row:
    """Return the row with the value of a model's metric and its 95 % interval. tags: further fields of the row."""
    interval = None
    if side.resampled is not None:
        _, rounds = side.resampled
        interval = interval_of(side.run, side.metric, rounds)
    numbers = {"value": percent(side.value), "n": side.n, **interval_keys(interval), "unit": "%"}
    last_keys = row_ends("shoe", {"model": side.name, **tags}, {**side.run.signature, **resampling.signature()})
    return result_row(side.metric, subset=side.run.subset, **numbers, **last_keys)


def _difference_row(
    baseline: _MetricOfModel, side: _MetricOfModel, resampling: Resampling, tags: Mapping[str, str]
) -> Row:
    """Return the row with the difference of a model's metric (`side`) from the baseline's. It has an interval and p if
    both models have resamples. tags: further fields of the row."""
    metric, first, second = side.metric, baseline.run, side.run
    change = Difference(before=baseline.value, after=side.value)
    if baseline.resampled and side.resampled:
        (first_weighted, first_rounds), (second_weighted, second_rounds) = baseline.resampled, side.resampled
        label = f"{metric}: {side.name}, swaps"
        swaps = swap_outputs(first_weighted, second_weighted, resampling, label)
        paired = PairedRounds(resamples=(first_rounds, second_rounds), swaps=(swaps[0], swaps[1]))
        images = min(first.images[metric], second.images[metric])
        on_resamples, on_swaps = paired.differences(partial(means, metric))
        change = difference(baseline.value, side.value, on_resamples, on_swaps, images, largest=1.0)
    settings = {**first.signature, **resampling.signature()}
    for key in first.signature.keys() | second.signature.keys():  # the values of what differs are joined by "+"
        if first.signature.get(key) != second.signature.get(key):
            settings[key] = "+".join(run.signature[key] for run in (first, second) if key in run.signature)
    last_keys = row_ends("shoe", {"model": side.name, "baseline": baseline.name, **tags}, settings)
    return difference_row(f"{metric}_diff", {"subset": first.subset}, change, side.n, last_keys)
