"""Streams to diagnoses: predictions with ground truth, or match records, read, typed and gathered."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from hoicli.diagnosis.errors import ERRORS, MISSED, NOT_COUNTED, ErrorTypes, Located, error_types, located
from hoicli.diagnosis.oracles import Diagnosis
from hoicli.errors import DataError
from hoicli.matches import MatchStream, checked_match
from hoicli.matching import OUTCOME_CODES, TRUE_POSITIVE, Batch, Filters, GroundTruth
from hoicli.pairing import Coverage, gathered, matched_batches
from hoicli.protocols import PROTOCOLS
from hoicli.records import Record, parse
from hoicli.scenes import BATCH, ErrorPolicy, ImageRegister, Ints
from hoicli.streams import Line
from hoicli.vocabulary import Vocabulary
from hoicli.workers import no_garbage_collection

PROTOCOL = PROTOCOLS["diag"]
"""Error types are defined on this protocol's idea of a correct box."""


def typed_batches(
    lines: Iterable[Line], truth: GroundTruth, filters: Filters, policy: ErrorPolicy
) -> Iterator[tuple[Batch, Located, ErrorTypes]]:
    """Each batch of predictions with the type of each."""
    for batch, outcomes in matched_batches(lines, truth, [PROTOCOL], filters, policy, all_boxes=True):
        found = located(batch, outcomes[PROTOCOL.name], PROTOCOL)
        yield batch, found, error_types(found)


class Examples:
    """The highest-scored errors of each type with their boxes, for the gallery, and missed ground truth."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: dict[str, list[Record]] = {}

    def add(self, batch: Batch, found: Located, types: ErrorTypes) -> None:
        """Keep a batch's best of each type."""
        vocabulary, scenes = batch.truth.vocabulary, batch.predictions
        for code, name in enumerate(ERRORS[1:], start=1):
            rows = np.flatnonzero(types.error == code)
            for row in rows[np.argsort(-found.score[rows], kind="stable")][: self._limit].tolist():
                verb, label = vocabulary.interactions[int(found.interaction[row])]
                target = int(types.repairs[row] if types.repairs[row] >= 0 else found.truth[row])
                item = self._item(batch, found, int(found.image[row]), name, target)
                boxes = [scenes.boxes[box[row]].tolist() for box in (found.subject, found.object)]
                self._keep(item | {"verb": verb, "label": label, "score": float(found.score[row]), "predicted": boxes})
        for row in np.flatnonzero(types.missed)[: self._limit].tolist():
            item = self._item(batch, found, int(found.truth_image[row]), MISSED, row)
            verb, label = vocabulary.interactions[int(found.truth_interaction[row])]
            self._keep(item | {"verb": verb, "label": label, "score": None, "predicted": None})

    def add_unseen(self, truth: GroundTruth, seen: Container[str]) -> None:
        """The missed ground truth of images without predictions."""
        scenes, vocabulary = truth.scenes, truth.vocabulary
        image = scenes.image_of_hoi
        absent = np.array([image_id not in seen for image_id in scenes.image_ids], dtype=bool)
        for row in np.flatnonzero(truth.counted(PROTOCOL) & absent[image])[: self._limit].tolist():
            verb, label = vocabulary.interactions[int(scenes.interaction[row])]
            self._keep(
                {
                    "image_id": scenes.image_ids[image[row]],
                    "error": MISSED,
                    "verb": verb,
                    "label": label,
                    "score": None,
                    "predicted": None,
                    "truth": [scenes.boxes[box[row]].tolist() for box in (scenes.subject, scenes.object)],
                    "truth_name": f"{verb} {label}",
                }
            )

    def _item(self, batch: Batch, found: Located, image: int, error: str, truth: int) -> Record:
        item: Record = {"image_id": found.image_ids[image], "error": error, "truth": None, "truth_name": None}
        if truth >= 0:
            boxes = batch.truth.scenes.boxes
            item["truth"] = [boxes[box[truth]].tolist() for box in (found.truth_subject, found.truth_object)]
            item["truth_name"] = " ".join(batch.truth.vocabulary.interactions[int(found.truth_interaction[truth])])
        return item

    def _keep(self, item: Record) -> None:
        self._items.setdefault(item["error"], []).append(item)

    def merge(self, other: Examples) -> None:
        """Take over another's."""
        for error, items in other._items.items():
            self._items.setdefault(error, []).extend(items)

    def items(self) -> Iterator[Record]:
        """The best of each type, by score, then image."""
        for error in (*ERRORS[1:], MISSED):
            items = self._items.get(error, [])
            items.sort(key=lambda item: (-(item["score"] or 0.0), item["image_id"], item["verb"], item["label"]))
            for rank, item in enumerate(items[: self._limit], start=1):
                yield item | {"rank": rank}


def diagnose_predictions(
    lines: Iterable[Line],
    paths: Sequence[str],
    truth: GroundTruth,
    filters: Filters,
    policy: ErrorPolicy,
    *,
    examples: int = 0,
) -> tuple[Diagnosis, Examples]:
    """One model's diagnosis, and up to `examples` errors of each type; a large file is shared out among processors.

    `lines` are those of `paths`. Coverage is reported on stderr.
    """

    def gather(part: Iterable[Line], shared: ErrorPolicy) -> tuple[Diagnosis, Examples, Coverage]:
        diagnosis = Diagnosis(PROTOCOL, len(truth.vocabulary.interactions))
        chosen, coverage = Examples(examples), Coverage()
        for batch, found, types in typed_batches(part, truth, filters, shared):
            coverage.add(batch)
            diagnosis.add(found, types)
            if examples:
                chosen.add(batch, found, types)
        return diagnosis, chosen, coverage

    parts = gathered(gather, lines, paths, policy, lambda parts: Diagnosis.disjoint([part for part, _, _ in parts]))
    diagnosis, chosen, coverage = parts[0]
    for other, others, covered in parts[1:]:
        diagnosis.merge(other)
        chosen.merge(others)
        coverage.merge(covered)
    diagnosis.add_unseen(truth)
    if examples:
        chosen.add_unseen(truth, diagnosis.images)
    coverage.report(truth, [PROTOCOL])
    return diagnosis, chosen


def diagnose_matches(
    lines: Iterable[Line], name: str, vocabulary: Vocabulary, policy: ErrorPolicy
) -> tuple[Diagnosis, MatchStream]:
    """One model's diagnosis from the match records of the stream `name` (those of other protocols are passed over).

    Raises `DataError` for a bad line, an image twice, or a stream without a line of this protocol.
    """
    diagnosis, stream = Diagnosis(PROTOCOL, len(vocabulary.interactions)), MatchStream()
    register, lines = ImageRegister(), iter(lines)
    with no_garbage_collection():
        while chunk := list(islice(lines, BATCH)):
            records = []
            for line in chunk:
                if _is_of_another_protocol(line):
                    continue
                try:
                    record = parse(line)
                    protocol, image_id = checked_match(record, line, vocabulary, stream)
                    if protocol != PROTOCOL.name:
                        continue
                    register.add(image_id, line)
                    _check_indices(record, line)
                    records.append(record)
                except DataError as error:
                    policy.handle(error)
            if records:
                found = _located_records(records, vocabulary)
                diagnosis.add(found, error_types(found))
    if not diagnosis.images:
        problem = "no match records of protocol diag in it; write them with hoicli match --protocol diag"
        raise DataError(problem, place=name)
    return diagnosis, stream


def _is_of_another_protocol(line: Line) -> bool:
    """Whether a line as `match` writes it says so in its first bytes: most of a stream of all protocols does."""
    head = line.data[:400]
    start = head.find(b'"protocol":"')
    return start > 0 and not head.startswith(f'"protocol":"{PROTOCOL.name}"'.encode(), start)


def _check_indices(record: Record, line: Line) -> None:
    """Raises `DataError` where an index of a match record points beyond what the line has."""
    matches = record.get("box_matches")
    if type(matches) is not list or not all(type(row) is list for row in matches):
        raise DataError("missing or no array of arrays; match again", place=line.place, field="box_matches")
    for key, limits in (
        ("predictions", {"subject": len(matches), "object": len(matches), "gt": len(record["gt"])}),
        ("gt", {"prediction": len(record["predictions"]), "subject": None, "object": None}),
    ):
        for index, item in enumerate(record[key]):
            for name, limit in limits.items():
                value = item.get(name)
                if value is None and name in ("gt", "prediction"):
                    continue
                if type(value) is not int or value < 0 or (limit is not None and value >= limit):
                    raise DataError(
                        f"{value} is no index; match again", place=line.place, field=f"{key}[{index}].{name}"
                    )
    if not all(type(value) is int and value >= 0 for row in matches for value in row):
        raise DataError("holds something that is no index; match again", place=line.place, field="box_matches")


def _located_records(records: list[Record], vocabulary: Vocabulary) -> Located:
    """Match records as `Located`: boxes and ground truth are numbered image after image."""
    columns: dict[str, list[Any]] = {name: [] for name in ("prediction", "gt", "match")}
    box_base = truth_box_base = truth_base = 0
    for image, record in enumerate(records):
        matches, gt = record["box_matches"], record["gt"]
        for item in record["predictions"]:
            belongs = -1 if item["gt"] is None else item["gt"] + truth_base
            interaction = vocabulary.interaction_ids.get((item["verb"], item["label"]), -1)
            code = OUTCOME_CODES[item["outcome"]]
            row = (
                image,
                item["subject"] + box_base,
                item["object"] + box_base,
                interaction,
                item["score"],
                code,
                belongs,
            )
            columns["prediction"].append(row)
        for item in gt:
            interaction = vocabulary.interaction_ids.get((item["verb"], item["label"]), -1)
            columns["gt"].append(
                (image, item["subject"] + truth_box_base, item["object"] + truth_box_base, interaction)
            )
        columns["match"] += [
            (box + box_base, truth_box + truth_box_base) for box, row in enumerate(matches) for truth_box in row
        ]
        box_base += len(matches)
        truth_base += len(gt)
        indices = [item[side] for item in gt for side in ("subject", "object")]
        truth_box_base += 1 + max([*indices, *(box for row in matches for box in row)], default=-1)
    prediction = np.array(columns["prediction"], dtype=np.float64).reshape(-1, 7).T
    images, subject, object_, interaction_, _, code_, truth = prediction.astype(np.int64)
    gt_columns: Ints = np.array(columns["gt"], dtype=np.int64).reshape(-1, 4).T
    match_columns: Ints = np.array(columns["match"], dtype=np.int64).reshape(-1, 2).T
    return Located(
        image_ids=[str(record["image_id"]) for record in records],
        image=images,
        subject=subject,
        object=object_,
        interaction=interaction_,
        score=prediction[4],
        counted=code_ <= TRUE_POSITIVE,
        hit=code_ == TRUE_POSITIVE,
        truth=truth,
        truth_image=gt_columns[0],
        truth_subject=gt_columns[1],
        truth_object=gt_columns[2],
        truth_interaction=gt_columns[3],
        box_match=match_columns[0],
        truth_box_match=match_columns[1],
    )


def diagnosis_records(batch: Batch, found: Located, types: ErrorTypes) -> Iterator[Record]:
    """One record an image: every counted prediction with its type and what it repairs, every ground truth with its
    true positive and its repair. Indices of predictions are those of the prediction record's `hois`."""
    vocabulary = batch.truth.vocabulary
    first = batch.predictions.hoi_start
    truth_first = np.searchsorted(found.truth_image, np.arange(len(found.image_ids) + 1))

    def local(row: int, start: int) -> int | None:
        return row - start if row >= 0 else None

    for image, image_id in enumerate(found.image_ids):
        start, end = int(first[image]), int(first[image + 1])
        truth_start, truth_end = int(truth_first[image]), int(truth_first[image + 1])
        predictions = []
        for row in range(start, end):
            if types.error[row] == NOT_COUNTED:
                continue
            verb, label = vocabulary.interactions[int(found.interaction[row])]
            predictions.append(
                {
                    "index": row - start,
                    "verb": verb,
                    "label": label,
                    "score": float(found.score[row]),
                    "error": ERRORS[types.error[row]],
                    "gt": local(int(found.truth[row]), truth_start),
                    "repairs": local(int(types.repairs[row]), truth_start),
                }
            )
        gt = []
        for row in range(truth_start, truth_end):
            verb, label = vocabulary.interactions[int(found.truth_interaction[row])]
            found_by, repair = local(int(types.found[row]), start), local(int(types.repair[row]), start)
            missed = bool(types.missed[row])
            gt.append({"verb": verb, "label": label, "prediction": found_by, "repair": repair, "missed": missed})
        yield {"image_id": image_id, "protocol": PROTOCOL.name, "predictions": predictions, "gt": gt}
