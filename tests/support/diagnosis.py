"""Predictions diagnosed, in every reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hoicli.diagnosis.emitted import diagnosis_records
from hoicli.diagnosis.gather import typed_batches
from hoicli.diagnosis.oracles import Diagnosis
from hoicli.diagnosis.repairs import Reading
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.datasets import load
from tests.support.kernel import ground_truth, lines
from tests.support.project import FIXTURES

HICO = load("hico")
DIAG = PROTOCOLS["diag"]
Record = dict[str, Any]
PAIR = ("--gt", FIXTURES / "gt.jsonl", FIXTURES / "predictions.jsonl")


READINGS: tuple[Reading, ...] = ("shared", "independent", "released")


def diagnosis(truth: Sequence[Record], predictions: Sequence[Record], reading: Reading = "shared") -> Diagnosis:
    annotated = ground_truth(truth)
    result = Diagnosis(DIAG, len(HICO.interactions), reading)
    for _, found, types in typed_batches(lines(predictions), annotated, Filters(), ErrorPolicy(), reading):
        result.add(found, types)
    result.add_unseen(annotated)
    return result


def typed(truth: Sequence[Record], predictions: Sequence[Record], reading: Reading = "shared") -> list[Record]:
    batches = typed_batches(lines(predictions), ground_truth(truth), Filters(), ErrorPolicy(), reading)
    diag = PROTOCOLS["diag"]
    return [record for _, found, types in batches for record in diagnosis_records(found, types, HICO, {}, diag)]
