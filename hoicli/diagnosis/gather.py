"""From streams to diagnoses: read predictions with ground truth, or match records, and gather their error types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple
from typing import Protocol as Interface

import numpy as np

from hoicli.diagnosis.errors import MISNAMED, Located, actions, located
from hoicli.diagnosis.oracles import Diagnosis
from hoicli.diagnosis.repairs import ErrorTypes, Reading, types_of
from hoicli.errors import DataError, UsageError, arg
from hoicli.evaluation.coverage import Coverage, check_counted
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.match_stream import MatchedView, MatchStream
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import OUTCOME_CODES, TRUE_POSITIVE
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.run import gathered, matched_batches
from hoicli.evaluation.selection import protocol_of
from hoicli.evaluation.tally import Tally
from hoicli.evaluation.views import Views, check_diagnosed, with_part
from hoicli.io.streams import Line
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import Vocabulary

MOST_BOXES = 1_000_000
"""Boxes of an image. A larger index in a match record is damage, and would allocate memory."""


class Settled(NamedTuple):
    """What a diagnosis is of: the dataset, whose rules decide what is right, which views, and the ground truth, which
    match records may do without."""

    vocabulary: Vocabulary
    protocol: Protocol
    views: Views
    truth: GroundTruth | None


def typed_batches(
    lines: Iterable[Line],
    truth: GroundTruth,
    filters: Filters,
    policy: ErrorPolicy,
    reading: Reading = "shared",
    protocol: Protocol | None = None,
) -> Iterator[tuple[Batch, Located, ErrorTypes]]:
    """Each batch of predictions with the type of each. protocol: a view of the one that defines them, or None."""
    protocol = protocol or protocol_of(truth.vocabulary)
    for batch, outcomes in matched_batches(lines, truth, [protocol], filters, policy):
        found = located(batch, outcomes[protocol.key], protocol)
        yield batch, found, types_of(found, reading)


@dataclass(frozen=True)
class Placed:
    """A matched batch and where its boxes lie; the types of its predictions are found when they are asked for."""

    batch: Batch
    found: Located
    reading: Reading

    @cached_property
    def types(self) -> ErrorTypes:
        """The type of each prediction."""
        return types_of(self.found, self.reading)


class Collector(Interface):
    """What is kept of the batches besides their diagnosis; in any order, and by several processes."""

    def add(self, placed: Placed) -> None:
        """Add a batch."""

    def merge(self, other: Any) -> None:
        """Add what another collector of the same kind has of other images."""


@dataclass
class Gathered:
    """One model's predictions matched with ground truth: their tally, their diagnosis by each view of a protocol, the
    coverage, and what was collected by each view that is collected."""

    tally: Tally
    diagnoses: list[Diagnosis]
    coverage: Coverage
    kept: list[Any]

    def merge(self, other: Gathered) -> None:
        """Add what was gathered from another part of the same stream."""
        self.tally.merge(other.tally)
        self.coverage.merge(other.coverage)
        for mine, theirs in zip([*self.kept, *self.diagnoses], [*other.kept, *other.diagnoses], strict=True):
            mine.merge(theirs)


def match_and_diagnose(
    predictions: Predictions,
    truth: GroundTruth,
    protocols: Sequence[Protocol],
    views: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    *,
    reading: Reading = "shared",
    collector: Callable[[Protocol], Collector | None] = lambda _: None,
    diagnosed: bool = True,
) -> Gathered:
    """A tally of `protocols` and, by each of `views`, a diagnosis (if `diagnosed`) and what a `collector` keeps (None:
    nothing of that view), in one pass over the predictions; a large file is split among processors.

    The caller reports the coverage.
    """
    classes = len(truth.vocabulary.interactions)
    tallied = {row.key for row in protocols}
    every = [*protocols, *(row for row in views if row.key not in tallied)]

    def gather(part: Iterable[Line], shared: ErrorPolicy) -> Gathered:
        tally = Tally(protocols, classes)
        diagnoses = [Diagnosis(row, classes, tally.listed, reading) for row in views if diagnosed]
        collectors = [collector(row) for row in views]
        coverage = Coverage()
        for batch, outcomes in matched_batches(part, truth, every, filters, shared):
            coverage.add(batch)
            tally.add_batch(batch, {key: outcome for key, outcome in outcomes.items() if key in tallied})
            for number, view in enumerate(views):
                placed = Placed(batch, located(batch, outcomes[view.key], view), reading)
                if diagnosed:
                    diagnoses[number].add(placed.found, placed.types)
                if (kept := collectors[number]) is not None:
                    kept.add(placed)
        return Gathered(tally, diagnoses, coverage, [kept for kept in collectors if kept is not None])

    parts = gathered(gather, predictions, policy, lambda part: part.tally.listed.image_ids)
    whole = parts[0]
    for other in parts[1:]:
        whole.merge(other)
    check_counted(whole.tally, truth.vocabulary, predictions.name, allowed=filters.allow_uncounted)
    whole.tally.add_truth(truth)
    for diagnosis in whole.diagnoses:
        diagnosis.add_unseen(truth)
    return whole


def each_match(
    predictions: Predictions,
    of: Settled,
    filters: Filters,
    policy: ErrorPolicy,
    add: Callable[[MatchedView, Located], None],
) -> list[tuple[Protocol, dict[str, str]]]:
    """Hand every batch of match records to `add`, with the view of the protocol that they are of; (each view, in their
    order, with the settings of its signature). Records of other protocols are ignored; of views only those of slices of
    classes are possible now.

    Raises `DataError` for a bad line, an image twice, a stream without a line of this protocol, or as
    `MatchedView.check_whole`; `UsageError` for what acts before matching, and for matches on parts of a slice of
    triplets.
    """
    vocabulary, protocol, asked, truth = of
    if "noint" in protocol.settings():
        problem = f"match records leave them out; give the predictions, with {arg('gt')}"
        raise UsageError(f"{arg('with_no_interaction')}: {problem}")
    for given, when, names in (
        (filters.removes, "before matching", ("top_k", "nms")),
        (asked.thresholds.values or asked.of_data, "while matching", ("iou", "slice")),
    ):
        if given:
            options = ", ".join(map(arg, names))
            raise UsageError(f"{options}: act {when}; give them to hoicli match, or predictions with {arg('gt')}")

    def check(record: Record, line: Line) -> None:
        if record["protocol"] == protocol.name:
            _check_indices(record, line, protocol)

    stream = MatchStream(vocabulary, {protocol.name: protocol}, truth)
    lines = (line for line in predictions if not _is_of_another_protocol(line, protocol))
    with no_garbage_collection():
        for view, records in stream.batches(lines, policy, check):
            if view.row.name == protocol.name:
                found = _located_records(records, vocabulary, protocol)
                view.tally.listed.add(found.image_ids, found.image, found.interaction, found.score)
                add(view, found)
    views = [stream.views[key] for key in stream.of([protocol.name])]
    if not views:
        advice = f"write them with hoicli match --protocol {protocol.name}"
        problem = f"no match records of protocol {protocol.name} in it; {advice}"
        raise DataError(problem, place=predictions.name)
    for view in views:
        view.check_whole(truth, stream.unread, predictions.name)
    of_views = []
    for view in views:
        check_diagnosed(view.row)
        view.check_counted(vocabulary, predictions.name, allowed=filters.allow_uncounted)
        if truth is not None:
            with_part(view.row)
        of_truth = view.truth_settings() if truth is None else truth.settings(protocol)
        of_views.append((view.row, {"data": vocabulary.signed, **of_truth, **view.signed()}))
    return of_views


def _is_of_another_protocol(line: Line, protocol: Protocol) -> bool:
    """Whether the first bytes of a line, as `match` writes it, name another protocol: this saves parsing most lines."""
    head = line.data[:400]
    start = head.find(b'"protocol":"')
    return start > 0 and not head.startswith(f'"protocol":"{protocol.name}"'.encode(), start)


def _check_indices(record: Record, line: Line, protocol: Protocol) -> None:
    """Raises `DataError` if an index in a match record is out of range."""
    may_be_null = {"gt", "prediction"} | ({"object", "person"} if protocol.person_first else set())
    matches = record.get("box_matches")
    if type(matches) is not list or not all(type(row) is list for row in matches):
        raise DataError("missing or no array of arrays; match again", place=line.place, field="box_matches")
    of_predictions: dict[str, int | None] = {"subject": len(matches), "object": len(matches), "gt": len(record["gt"])}
    if protocol.person_first:
        of_predictions["person"] = None
    for key, limits in (
        ("predictions", of_predictions),
        ("gt", {"prediction": len(record["predictions"]), "subject": None, "object": None}),
    ):
        for index, item in enumerate(record[key]):
            for name, limit in limits.items():
                value = item.get(name)
                if value is None and name in may_be_null and name in item:
                    continue
                if type(value) is not int or not 0 <= value < (MOST_BOXES if limit is None else limit):
                    raise DataError(
                        f"{value} is no index; match again", place=line.place, field=f"{key}[{index}].{name}"
                    )
    if not all(type(value) is int and 0 <= value < MOST_BOXES for row in matches for value in row):
        raise DataError("holds a value that is no index; match again", place=line.place, field="box_matches")


def _located_records(records: list[Record], vocabulary: Vocabulary, protocol: Protocol) -> Located:
    """Match records as `Located`; boxes and ground truth are numbered one image after another."""
    rows: dict[str, list[int]] = {field.name: [] for field in fields(Located)}
    codes: list[int] = []
    boxes = truth_boxes = triplets = 0  # of the images before
    for image, record in enumerate(records):
        predictions, gt, matches = record["predictions"], record["gt"], record["box_matches"]
        rows["image"] += [image] * len(predictions)
        rows["subject"] += [item["subject"] + boxes for item in predictions]
        rows["object"] += [_shifted(item["object"], boxes) for item in predictions]
        rows["interaction"] += [_class(item, vocabulary) for item in predictions]
        rows["score"] += [item["score"] for item in predictions]
        rows["truth"] += [_shifted(item["gt"], triplets) for item in predictions]
        rows["person"] += [_shifted(item.get("person"), truth_boxes) for item in predictions]
        codes += [OUTCOME_CODES[item["outcome"]] for item in predictions]
        rows["truth_image"] += [image] * len(gt)
        rows["truth_subject"] += [item["subject"] + truth_boxes for item in gt]
        rows["truth_object"] += [_shifted(item["object"], truth_boxes) for item in gt]
        rows["truth_interaction"] += [_class(item, vocabulary) for item in gt]
        rows["box_match"] += [box + boxes for box, of_box in enumerate(matches) for _ in of_box]
        rows["truth_box_match"] += [box + truth_boxes for of_box in matches for box in of_box]
        boxes += len(matches)
        triplets += len(gt)
        used = [item[side] for item in gt for side in ("subject", "object") if item[side] is not None]
        truth_boxes += 1 + max(chain(used, *matches), default=-1)
    code = np.array(codes, dtype=np.int64)
    columns: dict[str, Any] = {
        name: np.array(values, dtype=np.float64 if name == "score" else np.int64) for name, values in rows.items()
    }
    columns |= {
        "image_ids": [str(record["image_id"]) for record in records],
        "counted": code <= TRUE_POSITIVE,
        "hit": code == TRUE_POSITIVE,
        "action_of": actions(vocabulary),
        "misnamed": code == MISNAMED,
    }
    return Located(**(columns if protocol.person_first else columns | {"person": None}))


def _shifted(index: int | None, base: int) -> int:
    """An index within an image as an index within the batch; -1 for None."""
    return -1 if index is None else index + base


def _class(item: Record, vocabulary: Vocabulary) -> int:
    """The class of a prediction or ground truth of a match record, -1 for none."""
    name = (item.get("role") or "") if vocabulary.roles else item["label"]
    return vocabulary.interaction_ids.get((item["verb"], name), -1)
