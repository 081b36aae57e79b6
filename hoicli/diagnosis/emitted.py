"""Every prediction with its type, and every ground truth with what became of it: `diagnose --emit predictions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from hoicli.diagnosis.error_types import ERRORS, NOT_COUNTED
from hoicli.diagnosis.located import Located, Settled, each_match, locate
from hoicli.diagnosis.repair_assignment import SIGNATURES, ErrorTypes, Reading, types_of
from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import Coverage, check_counted
from hoicli.evaluation.evaluating import match_batches
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import diagnosed_protocol
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
    """Match a stream of prediction records; yield each batch with its matches and the error type of each prediction.
    protocol: at one threshold and on some part of the data; None for the dataset's own."""
    protocol = protocol or diagnosed_protocol(truth.vocabulary)
    for batch, outcomes in match_batches(lines, truth, [protocol], filters, policy):
        located = locate(batch, outcomes[protocol.key], protocol)
        yield batch, located, types_of(located, reading)


def emitted_predictions(
    predictions: Predictions, settled: Settled, filters: Filters, policy: ErrorPolicy, reading: Reading = "shared"
) -> Iterator[bytes]:
    """Yield a line of JSON for each image: every prediction with its error type and repair, and every ground truth with
    what became of it (`diagnosis_records`). Raises `UsageError` for several thresholds and for slices."""
    vocabulary, protocol, views, truth = settled
    if views.slices or len(views.thresholds.values) > 1:
        raise UsageError(_ONE_VIEW_ONLY)
    if truth is not None and not predictions.matched:
        (protocol,) = views.diagnosis_views(protocol)  # one, as several thresholds and slices were refused
        settings = {**filters.signature(), **SIGNATURES[reading], **truth.settings(protocol), **protocol.settings()}
        batches = typed_batches(predictions, truth, filters, policy, reading, protocol)
        typed_images = _with_coverage_report(batches, truth, protocol, filters, predictions.name)
    else:
        matched: list[Located] = []
        views_there = each_match(predictions, settled, filters, policy, lambda _, located: matched.append(located))
        if len(views_there) > 1:
            raise UsageError(_ONE_VIEW_ONLY)
        protocol, settings = views_there[0]
        settings = {**settings, **SIGNATURES[reading]}
        typed_images = ((located, types_of(located, reading)) for located in matched)
    images_seen: set[str] = set()
    for located, types in typed_images:
        images_seen.update(located.image_ids)
        yield from map(dump, diagnosis_records(located, types, vocabulary, settings, protocol))
    if truth is not None:
        yield from map(dump, unseen_records(truth, images_seen, settings, protocol))


_ONE_VIEW_ONLY = (
    f"{arg('emit')} predictions: of one threshold, on all images; leave out {arg('slice')} and further {arg('iou')}"
)


def _with_coverage_report(
    batches: Iterable[tuple[Batch, Located, ErrorTypes]],
    truth: GroundTruth,
    protocol: Protocol,
    filters: Filters,
    name: str,
) -> Iterator[tuple[Located, ErrorTypes]]:
    """Yield the matches and error types of each of the `typed_batches`. After the last one, check that some predictions
    count, and report on stderr which images have no predictions. name: of the stream of predictions."""
    # a tally of no protocol: it only counts which predictions have a class
    coverage, tally = Coverage(), Tally([], len(truth.vocabulary.interactions))
    for batch, located, types in batches:
        coverage.add(batch)
        tally.add_batch(batch, {})
        yield located, types
    check_counted(tally, truth.vocabulary, name, allowed=filters.allow_uncounted)
    coverage.report(truth, [protocol], name)


def diagnosis_records(
    located: Located, types: ErrorTypes, vocabulary: Vocabulary, settings: Mapping[str, str], protocol: Protocol
) -> Iterator[Record]:
    """Yield a record for each image of a batch: every counted prediction with its error type and the ground truth that
    it repairs, every ground truth with its true positive and its repair, and `settings` as in match records. Indices of
    predictions are those of the prediction record's `hois`, followed by the statements that the option `unstated` adds.
    """
    # Image i has the predictions first[i], ..., first[i + 1] - 1, and likewise the ground truths.
    images = np.arange(len(located.image_ids) + 1)
    first, truth_first = (np.searchsorted(image, images).tolist() for image in (located.image, located.truth_image))
    repair, missed = types.repair, types.missed

    def index_in_image(row: int, start: int) -> int | None:
        """Return the index in its image of a prediction or ground truth, None for -1. start: the image's first row."""
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
    """Yield a record without predictions for each image not among `images_seen`, whose ground truth is missed."""
    image_ids, image, rows = truth.find_unseen(protocol, images_seen)
    gt_by_image: list[list[Record]] = [[] for _ in image_ids]
    for place, interaction in zip(image.tolist(), truth.scenes.interaction[rows].tolist(), strict=True):
        name = _class_names(interaction, truth.vocabulary)
        gt_by_image[place].append({**name, "prediction": None, "repair": None, "missed": True})
    for image_id, gt in zip(image_ids, gt_by_image, strict=True):
        yield _record(image_id, [], gt, settings, protocol)


def _class_names(interaction: int, vocabulary: Vocabulary) -> dict[str, str]:
    """Return the keys that name a class in a record: its verb, and its object's label or, in V-COCO, its role."""
    verb, name = vocabulary.interactions[interaction]
    return {"verb": verb, "role" if vocabulary.roles else "label": name}


def _record(
    image_id: str, predictions: list[Record], gt: list[Record], settings: Mapping[str, str], protocol: Protocol
) -> Record:
    """Return the record of an image; its `settings` are in the order of signatures, without the dataset."""
    ordered = {key: settings[key] for key in SIGNATURE_KEYS if key in settings and key != "data"}
    head = {"image_id": image_id, "protocol": protocol.name, "settings": ordered}
    return {**head, "predictions": predictions, "gt": gt}
