"""Records in, numbers out: the kernel as tests call it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.run import matched_batches
from hoicli.evaluation.selection import protocols
from hoicli.evaluation.tally import ClassResults, Tally
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.reading import concatenate, read_scenes
from hoicli.vocabulary.datasets import load

HICO = load("hico")
Record = dict[str, Any]


def lines(records: Iterable[Record]) -> list[Line]:
    return [Line("test", number, orjson.dumps(record)) for number, record in enumerate(records, start=1)]


def ground_truth(records: Sequence[Record]) -> GroundTruth:
    batches = read_scenes(lines(records), HICO, scored=False, policy=ErrorPolicy())
    return GroundTruth(concatenate(batches, HICO), HICO)


def tally(
    truth: Sequence[Record], predictions: Sequence[Record], rows: Sequence[Protocol], filters: Filters | None = None
) -> Tally:
    annotated = ground_truth(truth)
    result = Tally(rows, len(HICO.interactions))
    for batch, outcomes in matched_batches(lines(predictions), annotated, rows, filters or Filters(), ErrorPolicy()):
        result.add_batch(batch, outcomes)
    result.add_truth(annotated)
    return result


def evaluate(
    truth: Sequence[Record], predictions: Sequence[Record], filters: Filters | None = None
) -> dict[str, ClassResults]:
    rows = protocols(["all"], "hico")
    return {row.name: results for row, results in tally(truth, predictions, rows, filters).results(HICO)}
