"""Several prediction dumps compared on one ground truth, from their streams to their rows."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from hoicli.comparison.rows import Compared, Comparison, Diagnosed, error_rows, protocol_rows
from hoicli.diagnosis.gather import Gathered, match_and_diagnose
from hoicli.evaluation.coverage import served
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.rows import Evaluated, Wanted
from hoicli.evaluation.run import read_truth
from hoicli.evaluation.selection import protocol_of
from hoicli.evaluation.views import ALONE, Views
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import Row
from hoicli.resampling.draws import Resampling
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
    sides: list[Gathered] = []
    for model in models:
        predictions = model.unmatched(f"{model.name}: compare")
        sides.append(match_and_diagnose(predictions, truth, protocols, errors_of, filters, policy))
    for model, side in zip(models, sides, strict=True):
        side.coverage.report(truth, protocols, model.name, model=model.model)
    shared = Comparison(vocabulary, sorted(truth.scenes.image_ids), resampling, top, tags)
    settings = {**filters.signature(), "data": vocabulary.signed, **wanted.settings()}

    def of_protocols() -> Iterator[Row]:
        """Apart, so that the ranked lists are gone before those of the errors come."""
        ranked = [side.tally.ranked(vocabulary, shared.image_ids) for side in sides]
        for found in zip(*ranked, strict=True):
            compared = []
            for model, side, (protocol, results, lists) in zip(models, sides, found, strict=True):
                signed, tagged = {**settings, **side.tally.settings(protocol)}, {"model": model.model, **tags}
                parts = Evaluated.of(protocol, vocabulary, wanted, results, signed, tagged)
                compared.append(Compared(model.model, lists, parts))
            yield from protocol_rows(compared, shared)

    yield from of_protocols()
    settings = {**filters.signature(), "data": vocabulary.signed}
    leave = {key: value for side in sides for key, value in side.tally.leave.items()}
    for number, view in enumerate(errors_of):
        same = [Diagnosed(model.model, side.diagnoses[number]) for model, side in zip(models, sides, strict=True)]
        yield from error_rows(same, settings | leave | truth.settings(view) | view.settings(), shared)
