"""Every prediction with its type, and every ground truth with what became of it: `diagnose --emit predictions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from hoicli.diagnosis.error_types import ERRORS, NOT_COUNTED
from hoicli.diagnosis.located import Located, Settled, each_match, locate
from hoicli.diagnosis.repair_assignment import SIGNATURES, ErrorTypes, Reading, types_of
from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import Coverage, check_counted
from hoicli.evaluation.evaluating import matched_batches
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import protocol_of
from hoicli.evaluation.tally import Tally
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record, dump
from hoicli.records.result_rows import SIGNATURE_KEYS
from hoicli.vocabulary.labels import Vocabulary


def typed_batches(
    lines: Iterable[Line],
    truth: GroundTruth,
    filters: Filters,
    policy: ErrorPolicy,
    reading: Reading = "shared",
    protocol: Protocol | None = None,
) -> Iterator[tuple[Batch, Located, ErrorTypes]]:
    """Yield each batch of predictions, matched, with the type of each prediction. protocol: the view to match by, None
    for the dataset's own protocol."""
    protocol = protocol or protocol_of(truth.vocabulary)
    for batch, outcomes in matched_batches(lines, truth, [protocol], filters, policy):
        located = locate(batch, outcomes[protocol.key], protocol)
        yield batch, located, types_of(located, reading)


def emitted_predictions(
    predictions: Predictions, of: Settled, filters: Filters, policy: ErrorPolicy, reading: Reading = "shared"
) -> Iterator[bytes]:
    """Yield a line for each image: every prediction with its type and repair (`diagnosis_records`), and every ground
    truth with what became of it. Parameters and errors are those of `diagnose_models`; only one view is possible."""
    vocabulary, row, views, truth = of
    if views.slices or len(views.thresholds.values) > 1:
        raise UsageError(_ONE_VIEW_ONLY)
    if truth is not None and not predictions.matched:
        (row,) = views.diagnosis_views(row)
        settings = {**filters.signature(), **SIGNATURES[reading], **truth.settings(row), **row.settings()}
        batches = typed_batches(predictions, truth, filters, policy, reading, row)
        typed_images = _with_coverage_report(batches, truth, row, filters, predictions.name)
    else:
        located_batches, (row, settings) = _located_matches(predictions, of, filters, policy)
        settings = {**settings, **SIGNATURES[reading]}
        typed_images = ((located, types_of(located, reading)) for located in located_batches)
    images_seen: set[str] = set()
    for located, types in typed_images:
        images_seen.update(located.image_ids)
        yield from map(dump, diagnosis_records(located, types, vocabulary, settings, row))
    if truth is not None:
        yield from map(dump, unseen_records(truth, images_seen, settings, row))


_ONE_VIEW_ONLY = (
    f"{arg('emit')} predictions: of one threshold, on all images; leave out {arg('slice')} and further {arg('iou')}"
)


def _with_coverage_report(
    batches: Iterable[tuple[Batch, Located, ErrorTypes]],
    truth: GroundTruth,
    view: Protocol,
    filters: Filters,
    name: str,
) -> Iterator[tuple[Located, ErrorTypes]]:
    """Yield each of the `typed_batches` without its predictions; after the last, check them and report their coverage.
    view: of the protocol that they are matched by; name: of the stream of predictions."""
    coverage, tally = Coverage(), Tally([], len(truth.vocabulary.interactions))
    for batch, located, types in batches:
        coverage.add(batch)
        tally.add_batch(batch, {})
        yield located, types
    check_counted(tally, truth.vocabulary, name, allowed=filters.allow_uncounted)
    coverage.report(truth, [view], name)


def _located_matches(
    predictions: Predictions, of: Settled, filters: Filters, policy: ErrorPolicy
) -> tuple[list[Located], tuple[Protocol, dict[str, str]]]:
    """Return every batch of match records, and their view with its settings. Raises `UsageError` for several views."""
    batches: list[Located] = []
    views = each_match(predictions, of, filters, policy, lambda _, located: batches.append(located))
    if len(views) > 1:
        raise UsageError(_ONE_VIEW_ONLY)
    return batches, views[0]


def diagnosis_records(
    located: Located,
    types: ErrorTypes,
    vocabulary: Vocabulary,
    settings: Mapping[str, str],
    protocol: Protocol,
) -> Iterator[Record]:
    """Yield a record for each image: every counted prediction with its type and what it repairs, every ground truth
    with its true positive and its repair, and `settings` as in match records. Indices of predictions are those of the
    prediction record's `hois`, followed by the statements that `unstated` adds."""
    images = np.arange(len(located.image_ids) + 1)
    first, truth_first = (np.searchsorted(image, images).tolist() for image in (located.image, located.truth_image))
    repair, missed = types.repair, types.missed

    def index_in_image(row: int, start: int) -> int | None:
        return int(row) - start if row >= 0 else None

    for image, image_id in enumerate(located.image_ids):
        start, truth_start = first[image], truth_first[image]
        predictions = [
            {
                "index": row - start,
                **_class_names(located.interaction[row], vocabulary),
                "score": float(located.score[row]),
                "error": ERRORS[types.error[row]],
                "gt": index_in_image(located.truth[row], truth_start),
                "repairs": index_in_image(types.repairs[row], truth_start),
            }
            for row in range(start, first[image + 1])
            if types.error[row] != NOT_COUNTED
        ]
        gt = [
            {
                **_class_names(located.truth_interaction[row], vocabulary),
                "prediction": index_in_image(types.true_positive[row], start),
                "repair": index_in_image(repair[row], start),
                "missed": bool(missed[row]),
            }
            for row in range(truth_start, truth_first[image + 1])
        ]
        yield _record(image_id, predictions, gt, settings, protocol)


def unseen_records(
    truth: GroundTruth, images_seen: Iterable[str], settings: Mapping[str, str], protocol: Protocol
) -> Iterator[Record]:
    """Yield a record as `diagnosis_records` does for each image without predictions: all its ground truth is missed."""
    image_ids, image, rows = truth.unseen(protocol, images_seen)
    missed: list[list[Record]] = [[] for _ in image_ids]
    for place, interaction in zip(image.tolist(), truth.scenes.interaction[rows].tolist(), strict=True):
        name = _class_names(interaction, truth.vocabulary)
        missed[place].append({**name, "prediction": None, "repair": None, "missed": True})
    for image_id, gt in zip(image_ids, missed, strict=True):
        yield _record(image_id, [], gt, settings, protocol)


def _class_names(interaction: int, vocabulary: Vocabulary) -> dict[str, str]:
    verb, name = vocabulary.interactions[interaction]
    return {"verb": verb, "role" if vocabulary.roles else "label": name}


def _record(
    image_id: str, predictions: list[Record], gt: list[Record], settings: Mapping[str, str], protocol: Protocol
) -> Record:
    ordered = {key: settings[key] for key in SIGNATURE_KEYS if key in settings and key != "data"}
    head = {"image_id": image_id, "protocol": protocol.name, "settings": ordered}
    return {**head, "predictions": predictions, "gt": gt}
