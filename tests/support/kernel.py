"""Records in, numbers out: the kernel as tests call it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import orjson
import pytest

from hoicli.evaluation.evaluating import match_batches
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import choose_protocols
from hoicli.evaluation.tally import ClassResults, Tally
from hoicli.io.streams import Line, Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.reading import concatenate, read_scenes
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary
from tests.support.project import Record

HICO = load("hico")


class Given(Predictions):
    """Predictions of these lines, which may be none."""

    def __init__(self, lines: Iterable[Line]) -> None:
        super().__init__([])
        self._lines = list(lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines)


def lines(records: Iterable[Any], file: str = "test") -> list[Line]:
    return [Line(file, number, orjson.dumps(record)) for number, record in enumerate(records, start=1)]


def stream(records: Iterable[Any], name: str) -> Stream:
    return Stream([name], name, lines_held=lines(records, name))


def ground_truth(records: Sequence[Record], vocabulary: Vocabulary = HICO) -> GroundTruth:
    batches = read_scenes(lines(records), vocabulary, scored=False, policy=ErrorPolicy())
    return GroundTruth(concatenate(batches, vocabulary), vocabulary)


def tally(
    truth: Sequence[Record],
    predictions: Sequence[Record],
    rows: Sequence[Protocol],
    filters: Filters | None = None,
    vocabulary: Vocabulary = HICO,
) -> Tally:
    annotated = ground_truth(truth, vocabulary)
    result = Tally(rows, len(vocabulary.interactions))
    for batch, outcomes in match_batches(lines(predictions), annotated, rows, filters or Filters(), ErrorPolicy()):
        result.add_batch(batch, outcomes)
    result.add_truth(annotated)
    return result


def evaluate(
    truth: Sequence[Record],
    predictions: Sequence[Record],
    filters: Filters | None = None,
    vocabulary: Vocabulary = HICO,
    names: Sequence[str] = ("all",),
) -> dict[str, ClassResults]:
    rows = choose_protocols(names, vocabulary)
    found = tally(truth, predictions, rows, filters, vocabulary)
    return {row.name: results for row, results in found.results(vocabulary)}


def arrays(record: Record, *, scored: bool = True) -> dict[str, Any]:
    """The arguments of `Evaluator.update` for a record; names stay names, and -1 stands for no object."""
    hois = record["hois"]
    given: dict[str, Any] = {
        "boxes": np.array(record["boxes"], dtype=np.float64).reshape(-1, 4),
        "labels": record["labels"],
        "subject": np.array([hoi["subject"] for hoi in hois], dtype=np.int64),
        "object": np.array([-1 if hoi["object"] is None else hoi["object"] for hoi in hois], dtype=np.int64),
        "verb": [hoi["verb"] for hoi in hois],
    }
    if any("role" in hoi for hoi in hois):
        given["role"] = [hoi.get("role") for hoi in hois]
    return given | ({"score": np.array([hoi["score"] for hoi in hois])} if scored else {})


def share_out(monkeypatch: pytest.MonkeyPatch, size: int = 256) -> None:
    """From now on, files are read by as many as three processes, one for each `size` bytes."""
    monkeypatch.setattr("hoicli.io.streams.BYTES_PER_PROCESS", size)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
