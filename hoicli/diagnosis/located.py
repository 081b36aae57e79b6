"""Matched images without box coordinates: what error types need, from batches of predictions or from match records (the
output of `hoicli match`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

from hoicli.errors import DataError, UsageError, arg
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.match_stream import MatchedView, MatchStream, class_numbers
from hoicli.evaluation.matching import Batch, Outcomes
from hoicli.evaluation.pairing import OUTCOME_CODES, TRUE_POSITIVE
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.views import Views, check_diagnosed, check_part
from hoicli.io.memory import no_garbage_collection
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Floats, Ints, expand_runs, starts_of
from hoicli.records.parsing import Record
from hoicli.records.scenes import class_actions
from hoicli.vocabulary.labels import Vocabulary

MISNAMED = OUTCOME_CODES["subject_not_person"]
"""The outcome of a prediction that does not count because its subject box is not labelled a person."""
MOST_BOXES = 1_000_000
"""The most boxes an image can have. A larger index in a match record is damage, and would allocate memory."""


@dataclass(frozen=True)
class Located:
    """Some matched images, as columns. A missing object is -1.

    Predictions: image [T], a row of image_ids; subject, object [T], predicted boxes; interaction, score [T]; counted,
    hit [T], whether the protocol counts it and whether it is a true positive; truth [T], the row of the ground truth
    below that a prediction belongs to (even if a better prediction takes it), else -1.

    Ground truth that the protocol counts, image by image in annotation order: truth_image, truth_subject, truth_object
    (boxes), truth_interaction [G]. box_match, truth_box_match [K]: each predicted box and ground-truth box that match.

    action_of [C]: `class_actions` of the vocabulary. person [T], only for a person-first protocol: the ground-truth box
    of the person that each prediction belongs to, -1 if its subject overlaps nobody enough. misnamed [T]: the
    predictions that do not count because their subject is no person, None if there are none."""

    image_ids: Sequence[str]
    image: Ints
    subject: Ints
    object: Ints
    interaction: Ints
    score: Floats
    counted: Bools
    hit: Bools
    truth: Ints
    truth_image: Ints
    truth_subject: Ints
    truth_object: Ints
    truth_interaction: Ints
    box_match: Ints
    truth_box_match: Ints
    action_of: Ints
    person: Ints | None = None
    misnamed: Bools | None = None

    @property
    def typed(self) -> Bools:
        """Whether each prediction [T] has an error type: it counts, or would if its subject were a person."""
        return self.counted if self.misnamed is None else self.counted | self.misnamed

    @property
    def true_positive(self) -> Ints:
        """The prediction [G] that is the true positive of each ground truth, else -1."""
        hits = np.flatnonzero(self.hit)
        true_positive = np.full(len(self.truth_image), -1, dtype=np.int64)
        true_positive[self.truth[hits]] = hits
        return true_positive


def locate(batch: Batch, outcomes: Outcomes, protocol: Protocol) -> Located:
    """Return the columns that error types are computed from, for a batch and its outcomes under a protocol."""
    scenes, truth = batch.predictions, batch.truth.scenes
    image, rows = counted_truth(batch, protocol)
    box, truth_box = batch.matched_boxes(protocol)
    return Located(
        image_ids=scenes.image_ids,
        image=scenes.image_of_hoi,
        subject=scenes.subject,
        object=np.where(batch.empty_object, -1, scenes.object) if protocol.person_first else scenes.object,
        interaction=scenes.interaction,
        score=scenes.score,
        counted=outcomes.code <= TRUE_POSITIVE,  # only the codes of false and true positives are as low
        hit=outcomes.code == TRUE_POSITIVE,
        truth=_matched_truth(batch, outcomes, protocol),
        truth_image=image,
        truth_subject=truth.subject[rows],
        truth_object=truth.object[rows],
        truth_interaction=truth.interaction[rows],
        box_match=box,
        truth_box_match=truth_box,
        action_of=class_actions(batch.truth.vocabulary),
        person=batch.find_people(protocol) if protocol.person_first else None,
        misnamed=outcomes.code == MISNAMED,
    )


def _matched_truth(batch: Batch, outcomes: Outcomes, protocol: Protocol) -> Ints:
    """Return [T] the ground truth that each prediction is matched to, -1 if none overlaps it enough. The ground truths
    are numbered as in `Located`: those of the batch that the protocol counts, from 0."""
    scenes, hoi_start = batch.predictions, batch.truth.scenes.hoi_start
    # `outcomes.truth` numbers the triplets of the whole dataset; counted_before: how many of them count before each
    counted_before = batch.truth.counted_before(protocol)
    start, end = hoi_start[batch.image], hoi_start[batch.image + 1]
    # the number of each image's first ground truth in the batch
    first_number = starts_of(counted_before[end] - counted_before[start])
    truth = np.full(len(scenes.score), -1, dtype=np.int64)
    prediction, triplet = outcomes.row[outcomes.enough], outcomes.truth[outcomes.enough]
    image = scenes.image_of_hoi[prediction]
    number_in_image = counted_before[triplet] - counted_before[start[image]]
    truth[prediction] = first_number[image] + number_in_image
    return truth


def counted_truth(batch: Batch, protocol: Protocol) -> tuple[Ints, Ints]:
    """Return the ground truth of the batch's images that the protocol counts, in annotation order, as two columns [G]:
    the image, numbered in the batch, and the triplet, a row of the ground truth's `Scenes`."""
    hoi_start = batch.truth.scenes.hoi_start
    start, end = hoi_start[batch.image], hoi_start[batch.image + 1]
    image, rows = expand_runs(start, end - start)
    counted = batch.truth.counted_triplets(protocol)[rows]
    return image[counted], rows[counted]


class Settled(NamedTuple):
    """What the options of a diagnosis come to: the dataset, the protocol that decides what is right, the thresholds and
    slices under which it is evaluated (`views`), and the ground truth (None if there are only match records)."""

    vocabulary: Vocabulary
    protocol: Protocol
    views: Views
    truth: GroundTruth | None


def each_match(
    predictions: Predictions,
    settled: Settled,
    filters: Filters,
    policy: ErrorPolicy,
    add: Callable[[MatchedView, Located], None],
) -> list[tuple[Protocol, dict[str, str]]]:
    """Read match records, hand each batch of them with its view to `add`, and return the views in them, each with the
    settings of its signature. A view is the protocol at one threshold, on all images or on a part of a slice.

    Records of other protocols are ignored. Raises `DataError` for a bad line, an image twice, a stream without a line
    of this protocol, or one that lacks records of images. Raises `UsageError` for options that act before matching, and
    for matches on parts of a slice of triplets."""
    vocabulary, protocol, truth = settled.vocabulary, settled.protocol, settled.truth
    _refuse_earlier_options(settled, filters)

    def check(record: Record, line: Line) -> None:
        """Raise `DataError` if a record of this protocol has an index that is out of range."""
        if record["protocol"] == protocol.name:
            _check_indices(record, line, protocol)

    stream = MatchStream(vocabulary, {protocol.name: protocol}, truth)
    # Lines that begin with another protocol's name are not parsed; a few others may turn out to be of another one.
    lines = (line for line in predictions if not _is_of_another_protocol(line, protocol))
    with no_garbage_collection():
        for view, records in stream.batches(lines, policy, check):
            if view.protocol.name == protocol.name:
                located = _located_records(records, vocabulary, protocol)
                view.tally.listed.add(located.image_ids, located.image, located.interaction, located.score)
                add(view, located)
    views = [stream.views[key] for key in stream.view_keys([protocol.name])]
    if not views:
        advice = f"write them with hoicli match --protocol {protocol.name}"
        problem = f"no match records of protocol {protocol.name} in it; {advice}"
        raise DataError(problem, place=predictions.name)
    for view in views:
        view.check_whole(truth, stream.unread, predictions.name)
    return [(view.protocol, _view_settings(view, settled, predictions.name, filters)) for view in views]


def _refuse_earlier_options(settled: Settled, filters: Filters) -> None:
    """Raise `UsageError` for options that act before or while predictions are matched, which match records are."""
    if "noint" in settled.protocol.settings():  # the setting of `--with-no-interaction`
        problem = f"match records leave them out; give the predictions, with {arg('gt')}"
        raise UsageError(f"{arg('with_no_interaction')}: {problem}")
    for is_used, when, names in (
        (filters.removes, "before matching", ("top_k", "nms")),
        (settled.views.thresholds.values or settled.views.of_data, "while matching", ("iou", "slice")),
    ):
        if is_used:
            options = ", ".join(map(arg, names))
            raise UsageError(f"{options}: act {when}; give them to hoicli match, or predictions with {arg('gt')}")


def _view_settings(view: MatchedView, settled: Settled, name: str, filters: Filters) -> dict[str, str]:
    """Check that the errors of a view can be diagnosed, and return the settings of its signature."""
    check_diagnosed(view.protocol)
    view.check_counted(settled.vocabulary, name, allowed=filters.allow_uncounted)
    if settled.truth is not None:
        check_part(view.protocol)
    truth_settings = view.truth_settings() if settled.truth is None else settled.truth.settings(settled.protocol)
    return {"data": settled.vocabulary.signed, **truth_settings, **view.signed_settings()}


def _is_of_another_protocol(line: Line, protocol: Protocol) -> bool:
    """Return whether a line is seen, without parsing it, to be of another protocol, which it names at its beginning."""
    head = line.data[:400]
    start = head.find(b'"protocol":"')
    return start > 0 and not head.startswith(f'"protocol":"{protocol.name}"'.encode(), start)


def _check_indices(record: Record, line: Line, protocol: Protocol) -> None:
    """Raise `DataError` if an index in a match record, such as that of a box or of a ground truth, is out of range."""
    may_be_null = {"gt", "prediction"} | ({"object", "person"} if protocol.person_first else set())
    matches = record.get("box_matches")
    if type(matches) is not list or not all(type(row) is list for row in matches):
        raise DataError("missing or no array of arrays; match again", place=line.place, field="box_matches")
    # The limit of each index. How many ground-truth boxes there are nothing says, so MOST_BOXES is their limit.
    limits_of_predictions = {"subject": len(matches), "object": len(matches), "gt": len(record["gt"])}
    if protocol.person_first:
        limits_of_predictions["person"] = MOST_BOXES
    limits_of_truth = {"prediction": len(record["predictions"]), "subject": MOST_BOXES, "object": MOST_BOXES}
    for key, limits in (("predictions", limits_of_predictions), ("gt", limits_of_truth)):
        for (index, item), (name, limit) in product(enumerate(record[key]), limits.items()):
            value = item.get(name)
            is_allowed_null = value is None and name in may_be_null and name in item
            if not is_allowed_null and (type(value) is not int or not 0 <= value < limit):
                raise DataError(f"{value} is no index; match again", place=line.place, field=f"{key}[{index}].{name}")
    if not all(type(value) is int and 0 <= value < MOST_BOXES for value in chain.from_iterable(matches)):
        raise DataError("holds a value that is no index; match again", place=line.place, field="box_matches")


def _located_records(records: list[Record], vocabulary: Vocabulary, protocol: Protocol) -> Located:
    """Return match records as `Located`. A record numbers its boxes and ground truths from 0; here those of one image
    follow those of the image before; null becomes -1."""
    rows: dict[str, list[int]] = {field.name: [] for field in fields(Located)}
    codes: list[int] = []
    boxes = truth_boxes = triplets = 0  # how many the images before have
    for image, record in enumerate(records):
        # matches: for each predicted box, the ground-truth boxes that it matches
        predictions, gt, matches = record["predictions"], record["gt"], record["box_matches"]
        rows["image"] += [image] * len(predictions)
        rows["subject"] += [item["subject"] + boxes for item in predictions]
        rows["object"] += [_shift_index(item["object"], boxes) for item in predictions]
        rows["interaction"] += class_numbers(predictions, vocabulary).tolist()
        rows["score"] += [item["score"] for item in predictions]
        rows["truth"] += [_shift_index(item["gt"], triplets) for item in predictions]
        rows["person"] += [_shift_index(item.get("person"), truth_boxes) for item in predictions]
        codes += [OUTCOME_CODES[item["outcome"]] for item in predictions]
        rows["truth_image"] += [image] * len(gt)
        rows["truth_subject"] += [item["subject"] + truth_boxes for item in gt]
        rows["truth_object"] += [_shift_index(item["object"], truth_boxes) for item in gt]
        rows["truth_interaction"] += class_numbers(gt, vocabulary).tolist()
        for box, matched_truth_boxes in enumerate(matches):
            rows["box_match"] += [box + boxes] * len(matched_truth_boxes)
        rows["truth_box_match"] += [box + truth_boxes for box in chain.from_iterable(matches)]
        boxes += len(matches)
        triplets += len(gt)
        # A record does not say how many ground-truth boxes there are, only which ones its triplets and matches use.
        used = [item[side] for item, side in product(gt, ("subject", "object")) if item[side] is not None]
        truth_boxes += 1 + max(chain(used, *matches), default=-1)
    code = np.array(codes, dtype=np.int64)
    columns: dict[str, Any] = {
        name: np.array(values, dtype=np.float64 if name == "score" else np.int64) for name, values in rows.items()
    }
    columns |= {
        "image_ids": [str(record["image_id"]) for record in records],
        "counted": code <= TRUE_POSITIVE,
        "hit": code == TRUE_POSITIVE,
        "action_of": class_actions(vocabulary),
        "misnamed": code == MISNAMED,
    }
    return Located(**(columns if protocol.person_first else columns | {"person": None}))


def _shift_index(index: int | None, base: int) -> int:
    """Return the index in the batch of an item with this index in its image, whose first one is `base`; -1 for None."""
    return -1 if index is None else index + base
