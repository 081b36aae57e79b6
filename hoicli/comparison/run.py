"""Several prediction dumps compared on one ground truth, from their streams to their rows."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from hoicli.comparison.rows import Compared, Setting, error_rows, protocol_rows
from hoicli.diagnosis.gather import match_and_diagnose
from hoicli.diagnosis.oracles import Diagnosis
from hoicli.diagnosis.run import Model
from hoicli.evaluation.coverage import served
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.protocols import PROTOCOL_OF, Protocol
from hoicli.evaluation.rows import Wanted
from hoicli.evaluation.run import read_truth
from hoicli.evaluation.tally import Tally
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import Row
from hoicli.resampling.draws import Resampling
from hoicli.vocabulary.labels import Vocabulary


def compare(
    models: Sequence[Model],
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
) -> Iterator[Row]:
    """The rows of `resampling.rows`, the first model being the baseline of the others; `errors` adds the types of
    errors, for a dataset that can be diagnosed. `named` as `served` has it.

    Raises `DataError` for what is wrong with a stream, `UsageError` for match records.
    """
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    protocols = served(truth, protocols, named)
    diagnosed = PROTOCOL_OF.get(vocabulary.name) if errors else None
    if diagnosed is not None and not truth.serves(diagnosed):
        note(f"left out: types of errors, which {diagnosed.name} defines: {truth.name} cannot serve it")
        diagnosed = None
    tallies: list[Tally] = []
    diagnoses: list[tuple[str, Diagnosis]] = []
    for model in models:
        predictions = model.stream.unmatched(f"{model.stream.name}: compare")
        gathered = match_and_diagnose(predictions, truth, protocols, diagnosed, filters, policy)
        gathered.coverage.report(truth, protocols, model=model.name)
        tallies.append(gathered.tally)
        if gathered.diagnosis is not None:
            diagnoses.append((model.name, gathered.diagnosis))
    image_ids = sorted(truth.scenes.image_ids)
    settings = {**filters.signature(), "data": vocabulary.name}
    setting = Setting(vocabulary, image_ids, wanted, resampling, top, {**settings, **wanted.settings()}, tags)
    results = [{row.name: of for row, of in tally.results(vocabulary)} for tally in tallies]
    lists = [{row.name: of for row, of in tally.ranked(image_ids)} for tally in tallies]
    for protocol in protocols:
        name = protocol.name
        sides = [
            Compared(model.name, tally.settings(protocol), of[name], ranked[name])
            for model, tally, of, ranked in zip(models, tallies, results, lists, strict=True)
        ]
        yield from protocol_rows(protocol, sides, setting)
    if diagnosed is not None:
        settings |= truth.settings(diagnosed)
    plain = Setting(vocabulary, image_ids, wanted, resampling, top, settings, tags)
    for other in diagnoses[1:]:
        yield from error_rows(diagnoses[0], other, plain)
