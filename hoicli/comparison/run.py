"""Several prediction dumps compared on one ground truth, from their streams to their rows."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

from hoicli.comparison.rows import Compared, Comparison, Diagnosed, error_rows, protocol_rows, runs_setting
from hoicli.diagnosis.gather import Gathered, match_and_diagnose
from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import served
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.rows import Evaluated, Wanted
from hoicli.evaluation.run import read_truth
from hoicli.evaluation.selection import protocol_of
from hoicli.evaluation.tally import ClassResults
from hoicli.evaluation.views import ALONE, Views
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import Row
from hoicli.resampling.draws import Resampling
from hoicli.resampling.ranked import RankedLists
from hoicli.vocabulary.labels import Vocabulary


def compare(
    models: Sequence[Predictions],
    gt: Stream,
    vocabulary: Vocabulary,
    protocols: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    wanted: Wanted,
    resampling: Resampling,
    *,
    named: Container[str] | None = None,
    errors: bool,
    top: int,
    tags: Mapping[str, str],
    views: Views = ALONE,
) -> Iterator[Row]:
    """The rows of `comparison.rows`, the first model being the baseline of the others; `errors` adds the types of
    errors. `views`: the protocols at other thresholds and on parts of the data, where errors have them, too (but for
    triplets and classes). `named` as `served` has it.

    Raises `DataError` for what is wrong with a stream, `UsageError` for match records.
    """
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    protocols = views.of(served(truth, protocols, named), named)
    diagnosed = protocol_of(vocabulary) if errors else None
    if diagnosed is not None and not truth.serves(diagnosed):
        note(f"left out: types of errors, which {diagnosed.name} defines: {truth.name} cannot serve it")
        diagnosed = None
    errors_of = [] if diagnosed is None else views.diagnosed(diagnosed)
    together = _together(models)
    sides: list[list[Gathered]] = []
    for name, streams in together.items():
        sides.append([])
        for number, each in enumerate(streams, start=1):
            predictions = each.unmatched(f"{each.name}: compare")
            gathered = match_and_diagnose(predictions, truth, protocols, errors_of, filters, policy)
            called = name if len(streams) == 1 else f"{name}, run {number}"
            gathered.coverage.report(truth, protocols, predictions.name, model=called)
            sides[-1].append(gathered)
    shared = Comparison(vocabulary, sorted(truth.scenes.image_ids), resampling, top, tags)
    settings = {**filters.signature(), "data": vocabulary.signed, **wanted.settings()}

    def of_protocols() -> Iterator[Row]:
        """Apart, so that the ranked lists are gone before those of the errors come."""
        ranked = [[run.tally.ranked(vocabulary, shared.image_ids) for run in side] for side in sides]
        for _ in protocols:
            compared = []
            for name, side, of_runs in zip(together, sides, ranked, strict=True):
                found = [next(run) for run in of_runs]
                evaluated = []
                for run, (protocol, results, _) in zip(side, found, strict=True):
                    signed, tagged = {**settings, **run.tally.settings(protocol)}, {"model": name, **tags}
                    evaluated.append(Evaluated.of(protocol, vocabulary, wanted, results, signed, tagged))
                compared.append(_compared(name, [lists for _, _, lists in found], evaluated))
            yield from protocol_rows(compared, shared)

    yield from of_protocols()
    settings = {**filters.signature(), "data": vocabulary.signed}
    leave = {key: value for side in sides for run in side for key, value in run.tally.leave.items()}
    for number, view in enumerate(errors_of):
        same = [
            Diagnosed(name, [run.diagnoses[number] for run in side]) for name, side in zip(together, sides, strict=True)
        ]
        yield from error_rows(same, settings | leave | truth.settings(view) | view.settings(), shared)


def _together(models: Sequence[Predictions]) -> dict[str, list[Predictions]]:
    """Name -> the streams of this name, its runs."""
    found: dict[str, list[Predictions]] = {}
    for model in models:
        found.setdefault(model.model, []).append(model)
    if len(found) < 2:
        raise UsageError(f"{arg('name')}: all streams are runs of {models[0].model}; compare needs two or more models")
    for name, runs in found.items():
        if len(runs) > 1:
            note(f"{name}: the mean of {len(runs)} runs; its intervals are over images and runs")
    return found


def _compared(name: str, lists: Sequence[RankedLists], runs: Sequence[Sequence[Evaluated]]) -> Compared:
    """A model of one run or the mean of several, part by part."""
    if len(runs) == 1:
        return Compared(name, lists, runs[0])
    parts = []
    for of_part in zip(*runs, strict=True):
        results = ClassResults.mean([run.results for run in of_part])
        settings = {key: value for run in of_part for key, value in run.settings.items()}
        parts.append(replace(of_part[0], results=results, settings=settings | runs_setting(len(runs))))
    return Compared(name, lists, parts, runs)
