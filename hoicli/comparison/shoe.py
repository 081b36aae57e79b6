"""SHOE's metrics of two models or more: each model's numbers, and the differences from the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from hoicli.comparison.comparison_rows import difference_row
from hoicli.io.streams import Stream
from hoicli.records.result_rows import Row, interval_keys, percent, result_row, row_ends
from hoicli.resampling.comparison import Difference, PairedRounds, difference
from hoicli.resampling.draws import Resampling
from hoicli.resampling.rounds import resample, swap_outputs
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
    for at_delta in zip(*(run.each() for _, run in runs), strict=True):
        named = [(name, run) for (name, _), (_, run) in zip(runs, at_delta, strict=True)]
        yield from _rows(named, metrics, resampling, {**at_delta[0][0], **tags})


def _rows(
    models: Sequence[tuple[str, Run]], metrics: Sequence[str], resampling: Resampling, tags: Mapping[str, str]
) -> Iterator[Row]:
    """Yield the rows at one delta. tags: those of all rows. models: (name, run) of each."""
    resampling_settings = resampling.signature()
    weighted = [weighted_metrics(run) for _, run in models]
    first = models[0][1]
    subset = first.subset
    differences: list[Row] = []
    for metric in metrics:
        # a model without scores has no soft_map
        all_have_it = all(metric in metrics_of_model for metrics_of_model in weighted)
        resamples = (
            resample([metrics_of_model[metric] for metrics_of_model in weighted], resampling, f"{metric}: resamples")
            if all_have_it
            else []
        )
        for number, (name, run) in enumerate(models):
            value, n = getattr(run.scores, metric), run.scores.count(metric)
            ends_of_interval = interval_of(run, metric, resamples[number]) if all_have_it else None
            numbers = {"value": percent(value), "n": n, **interval_keys(ends_of_interval), "unit": "%"}
            ends = row_ends("shoe", {"model": name, **tags}, {**run.signature, **resampling_settings})
            yield result_row(metric, subset=subset, **numbers, **ends)
            if number == 0:
                continue
            before = getattr(first.scores, metric)
            change = Difference(before, value)
            if all_have_it:
                label = f"{metric}: {name}, swaps"
                swaps = swap_outputs(weighted[0][metric], weighted[number][metric], resampling, label)
                paired = PairedRounds((resamples[0], resamples[number]), (swaps[0], swaps[1]))
                images = min(first.images[metric], run.images[metric])
                change = difference(before, value, *paired.differences(partial(means, metric)), images, largest=1.0)
            settings = {**first.signature, **_join_settings(first.signature, run.signature), **resampling_settings}
            ends = row_ends("shoe", {"model": name, "baseline": models[0][0], **tags}, settings)
            differences.append(difference_row(f"{metric}_diff", {"subset": subset}, change, n, ends))
    yield from differences


def _join_settings(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in which two runs differ, with both values joined by "+"."""
    differ = {key for key in first.keys() | second.keys() if first.get(key) != second.get(key)}
    return {key: "+".join(side[key] for side in (first, second) if key in side) for key in differ}
