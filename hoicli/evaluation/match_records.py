"""Match records, which `match` writes and `eval` and `diagnose` read: one line for each image and protocol. A line
holds all that the metrics need, without boxes (formats/match.schema.json has every field), so `match | eval` prints the
same rows as `eval`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from hoicli.arrays.kit import Bools
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch, Outcomes
from hoicli.evaluation.protocols import PROTOCOLS, Protocol
from hoicli.records import caveats
from hoicli.records.outcomes import OUTCOMES, TRUE_POSITIVE
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import Vocabulary


def match_records(
    batch: Batch, outcomes: Mapping[str, Outcomes], protocols: Iterable[Protocol], filters: Filters
) -> Iterator[Record]:
    """The match records of a batch: image by image, and for each image protocol by protocol."""
    columns = [_BatchColumns(batch, outcomes[protocol.key], protocol) for protocol in protocols]
    of_truth = batch.truth.scenes.caveats[batch.image] & caveats.TRUTH
    masks = (of_truth | (batch.predictions.caveats & caveats.PREDICTIONS)).tolist()
    hashes = batch.truth.hashes[batch.image].tolist()
    vocabulary = batch.truth.vocabulary
    for row, image_id in enumerate(batch.predictions.image_ids):
        for column in columns:
            head = _head(image_id, column.protocol, filters, masks[row], hashes[row], vocabulary)
            yield {**head, **column.image(row)}


def _head(
    image_id: str, protocol: Protocol, filters: Filters, mask: int, gt_hash: int, vocabulary: Vocabulary
) -> Record:
    """The first keys of a match record: `dataset` if the protocol's name does not tell it; `caveats` are those of the
    image's records that the protocol depends on; `gt_hash` is of its annotations."""
    told = protocol.name in PROTOCOLS and PROTOCOLS[protocol.name].dataset == vocabulary.name
    found = caveats.names(mask & protocol.depends_on) if mask & protocol.depends_on else []
    return {
        "image_id": image_id,
        "protocol": protocol.name,
        **({"view": dict(protocol.view)} if protocol.view else {}),
        **({} if told else {"dataset": vocabulary.signed}),
        "settings": {**filters.signature(), **protocol.settings()},
        **({"caveats": found} if found else {}),
        "gt_hash": f"{gt_hash:016x}",
    }


def missed_records(
    truth: GroundTruth, seen: set[str], protocols: Iterable[Protocol], filters: Filters
) -> Iterator[Record]:
    """Match records of the ground-truth images without predictions, so that their triplets count as missed."""
    protocols = list(protocols)
    counted = {protocol.key: truth.counted(protocol) for protocol in protocols}
    masks = (truth.scenes.caveats & caveats.TRUTH).tolist()
    for row, image_id in enumerate(truth.scenes.image_ids):
        if image_id in seen:
            continue
        for protocol in protocols:
            gt = _ground_truth(truth, row, counted[protocol.key])
            head = _head(image_id, protocol, filters, masks[row], int(truth.hashes[row]), truth.vocabulary)
            yield {**head, "predictions": [], "gt": gt, "box_matches": []}


def _ground_truth(truth: GroundTruth, image: int, counted: Bools) -> list[Record]:
    """The counted triplets of an image, with `prediction` still null."""
    scenes, vocabulary = truth.scenes, truth.vocabulary
    start, end = scenes.hoi_start[image : image + 2].tolist()
    first_box, last_box = scenes.box_start[image : image + 2].tolist()
    labels = scenes.labels[first_box:last_box].tolist()
    columns = (scenes.subject, scenes.object, scenes.verb, scenes.interaction, counted)
    rows = zip(*(column[start:end].tolist() for column in columns), strict=True)
    triplets = []
    for subject, object_, verb, interaction, counts in rows:
        if counts:
            triplets.append(
                {
                    "subject": subject - first_box,
                    "object": None if object_ < 0 else object_ - first_box,
                    "verb": vocabulary.verbs[verb],
                    **_role(vocabulary, interaction),
                    "label": None if object_ < 0 else _label(vocabulary, labels[object_ - first_box]),
                    "prediction": None,
                }
            )
    return triplets


def _label(vocabulary: Vocabulary, number: int) -> str | None:
    """The name of an object, None for a box without a label."""
    return None if number < 0 else vocabulary.objects[number]


def _role(vocabulary: Vocabulary, interaction: int) -> dict[str, str | None]:
    """The `role` of a triplet, in a dataset with roles; null for the action itself."""
    return {"role": vocabulary.interactions[interaction][1] or None} if vocabulary.roles else {}


class _BatchColumns:
    """A batch under one protocol as plain lists, from which `image` takes an image's rows."""

    def __init__(self, batch: Batch, outcomes: Outcomes, protocol: Protocol) -> None:
        self.protocol = protocol
        self._batch = batch
        self._counted = batch.truth.counted(protocol)
        scenes, vocabulary = batch.predictions, batch.truth.vocabulary
        first_box = scenes.box_start[scenes.image_of_hoi]
        gt: list[int | None] = [None] * len(scenes.score)
        iou_subject, iou_object = gt.copy(), gt.copy()
        no_object, people = _person_first(batch, protocol)
        objects: list[int | None] = (scenes.object - first_box).tolist()
        for row in np.flatnonzero(no_object).tolist():
            objects[row] = None
        # A ground-truth triplet's place among those of its image that count.
        counted_before = batch.truth.counted_before(protocol)
        image_start = batch.truth.scenes.hoi_start[batch.image_of_hoi[outcomes.row]]
        place = counted_before[outcomes.truth] - counted_before[image_start]
        of_class = (outcomes.row, place, outcomes.iou_subject, outcomes.iou_object, outcomes.enough)
        for row, index, subject, object_, enough in zip(*(column.tolist() for column in of_class), strict=True):
            iou_subject[row], iou_object[row] = subject, object_
            gt[row] = index if enough else None
        roles = (
            [vocabulary.interactions[number][1] or None for number in scenes.interaction] if vocabulary.roles else []
        )
        columns: dict[str, list[Any]] = {
            "subject": (scenes.subject - first_box).tolist(),
            "object": objects,
            "verb": [vocabulary.verbs[verb] for verb in scenes.verb.tolist()],
            **({"role": roles} if vocabulary.roles else {}),
            "label": [_label(vocabulary, label) for label in scenes.object_label.tolist()],
            "score": scenes.score.tolist(),
            "outcome": [OUTCOMES[code] for code in outcomes.code.tolist()],
            "gt": gt,
            "iou_subject": iou_subject,
            "iou_object": iou_object,
            **({} if people is None else {"person": people}),
        }
        self._keys = tuple(columns)
        self._rows = list(zip(*columns.values(), strict=True))
        self._hits: dict[int, list[tuple[int, int | None]]] = {}
        image, start = scenes.image_of_hoi, scenes.hoi_start
        for row in np.flatnonzero(outcomes.code == TRUE_POSITIVE).tolist():
            self._hits.setdefault(int(image[row]), []).append((row - int(start[image[row]]), gt[row]))
        self._hoi_start = start.tolist()
        self._box_start = scenes.box_start.tolist()
        self._matches = batch.box_matches(protocol)

    def image(self, row: int) -> Record:
        """predictions, gt and box_matches of one image."""
        gt = _ground_truth(self._batch.truth, int(self._batch.image[row]), self._counted)
        rows = self._rows[self._hoi_start[row] : self._hoi_start[row + 1]]
        predictions = [dict(zip(self._keys, values, strict=True)) for values in rows]
        for index, place in self._hits.get(row, ()):
            if place is not None:
                gt[place]["prediction"] = index
        boxes = self._matches[self._box_start[row] : self._box_start[row + 1]]
        return {"predictions": predictions, "gt": gt, "box_matches": boxes}


def _person_first(batch: Batch, protocol: Protocol) -> tuple[Bools, list[int | None] | None]:
    """([T] statements without an object, [T] the index of the annotated person each belongs to, or None). The second is
    None unless the protocol is person-first; such a protocol takes a box of zeros as no object."""
    scenes = batch.predictions
    if not protocol.person_first:
        return scenes.object < 0, None
    people = batch.found_people(protocol)
    first_box = batch.truth.scenes.box_start[batch.image_of_hoi]
    local = np.where(people < 0, -1, people - first_box).tolist()
    return batch.empty_object, [None if person < 0 else person for person in local]
