"""Predictions diagnosed, in every reading."""

from __future__ import annotations

from collections.abc import Sequence

from hoicli.diagnosis.emitted import diagnosis_records, typed_batches
from hoicli.diagnosis.repair_assignment import Reading
from hoicli.diagnosis.repairs import Diagnosis
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.ranking import Listed
from hoicli.evaluation.selection import diagnosed_protocol
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary
from tests.support.kernel import ground_truth, lines
from tests.support.project import Record

HICO = load("hico")
DIAG = PROTOCOLS["diag"]


READINGS: tuple[Reading, ...] = ("shared", "independent", "released")


def diagnosis(
    truth: Sequence[Record], predictions: Sequence[Record], reading: Reading = "shared", vocabulary: Vocabulary = HICO
) -> Diagnosis:
    result = diagnosis_of(truth, predictions, reading, vocabulary)[1]
    result.add_unseen(ground_truth(truth, vocabulary))
    return result


def diagnosis_of(
    truth: Sequence[Record], predictions: Sequence[Record], reading: Reading, vocabulary: Vocabulary = HICO
) -> tuple[Listed, Diagnosis]:
    """The predictions, and their diagnosis without images that have none."""
    listed, annotated = Listed(), ground_truth(truth, vocabulary)
    result = Diagnosis(diagnosed_protocol(vocabulary), len(vocabulary.interactions), listed, reading)
    for _, found, types in typed_batches(lines(predictions), annotated, Filters(), ErrorPolicy(), reading):
        listed.add(found.image_ids, found.image, found.interaction, found.score)
        result.add(found, types)
    return listed, result


def typed(
    truth: Sequence[Record], predictions: Sequence[Record], reading: Reading = "shared", vocabulary: Vocabulary = HICO
) -> list[Record]:
    batches = typed_batches(lines(predictions), ground_truth(truth, vocabulary), Filters(), ErrorPolicy(), reading)
    row = diagnosed_protocol(vocabulary)
    return [record for _, found, types in batches for record in diagnosis_records(found, types, vocabulary, {}, row)]


def counts(truth: Sequence[Record], predictions: Sequence[Record], vocabulary: Vocabulary = HICO) -> dict[str, int]:
    found = diagnosis(truth, predictions, vocabulary=vocabulary).counts()
    totals = {name: int(numbers.sum()) for name, numbers in found.items() if name != "true_positive"}
    return {name: total for name, total in totals.items() if total}


INJECTED = ("duplicate", "interaction", "association", "object_box", "human_box", "both_boxes", "missed_gt")
