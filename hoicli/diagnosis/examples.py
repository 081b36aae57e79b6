"""Examples of each type of error with their boxes, for the gallery: the same ones in whatever order the images come."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import numpy as np

from hoicli.arrays.kit import Floats, Ints, rank_by_id
from hoicli.diagnosis.errors import ERRORS, MISSED, Located
from hoicli.diagnosis.repairs import ErrorTypes
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.protocols import Protocol
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import Vocabulary


class Examples:
    """The highest-scored errors of each type, and missed ground truth; `limit` of each.

    Ties go by the image's id, then by the place in the image: a total order, so that neither the order of the images
    nor how they are shared out says which are shown.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: dict[str, list[tuple[float, str, int, Record]]] = {}

    def add(self, batch: Batch, found: Located, types: ErrorTypes) -> None:
        """Keep a batch's best of each type."""
        vocabulary, boxes, truth_boxes = batch.truth.vocabulary, batch.predictions.boxes, batch.truth.scenes.boxes
        by_id = rank_by_id(found.image_ids)
        # A duplicate is of the ground truth that it found once more; any other error of the one that it could repair.
        targets = np.where(found.truth >= 0, found.truth, types.repairs)
        for code, error in enumerate(ERRORS[1:], start=1):
            for row in self._first(np.flatnonzero(types.error == code), by_id[found.image], -found.score):
                item = _of_class(vocabulary, found.interaction[row])
                item["predicted"] = _boxes(boxes, found.subject[row], found.object[row])
                target = int(targets[row])
                if target >= 0:
                    item["truth_name"] = " ".join(vocabulary.interactions[found.truth_interaction[target]])
                    item["truth"] = _boxes(truth_boxes, found.truth_subject[target], found.truth_object[target])
                self._keep(error, found.image_ids[found.image[row]], row, item, float(found.score[row]))
        for row in self._first(np.flatnonzero(types.missed), by_id[found.truth_image]):
            item = _of_missed(vocabulary, found.truth_interaction[row])
            item["truth"] = _boxes(truth_boxes, found.truth_subject[row], found.truth_object[row])
            self._keep(MISSED, found.image_ids[found.truth_image[row]], row, item)

    def add_unseen(self, truth: GroundTruth, seen: Container[str], protocol: Protocol) -> None:
        """The missed ground truth of images without predictions."""
        scenes, vocabulary = truth.scenes, truth.vocabulary
        image = scenes.image_of_hoi
        absent = np.array([image_id not in seen for image_id in scenes.image_ids], dtype=bool)
        missed = np.flatnonzero(truth.counted(protocol) & absent[image])
        for row in self._first(missed, rank_by_id(scenes.image_ids)[image]):
            item = _of_missed(vocabulary, scenes.interaction[row])
            item["truth"] = _boxes(scenes.boxes, scenes.subject[row], scenes.object[row])
            self._keep(MISSED, scenes.image_ids[image[row]], row, item)

    def merge(self, other: Examples) -> None:
        """Take over another's."""
        for error, items in other._items.items():
            self._items.setdefault(error, []).extend(items)

    def items(self) -> Iterator[Record]:
        """The best of each type, by score, then image, then place in the image."""
        for error in (*ERRORS[1:], MISSED):
            items = sorted(self._items.get(error, []), key=lambda item: item[:3])
            for rank, (*_, item) in enumerate(items[: self._limit], start=1):
                yield item | {"rank": rank}

    def _first(self, rows: Ints, image: Ints, last: Floats | None = None) -> list[int]:
        """The `limit` first of `rows`, which index the others: by `last`, then image, then row."""
        keys = (rows, image[rows]) if last is None else (rows, image[rows], last[rows])
        chosen: list[int] = rows[np.lexsort(keys)][: self._limit].tolist()
        return chosen

    def _keep(self, error: str, image_id: str, row: int, item: Record, score: float | None = None) -> None:
        """`row` grows with the place in the image; the rows of one image come from one batch."""
        whole = {"image_id": image_id, "error": error, "score": score, "predicted": None, "truth": None} | item
        self._items.setdefault(error, []).append((-(score or 0.0), image_id, row, whole))


def _of_class(vocabulary: Vocabulary, interaction: int) -> dict[str, Any]:
    verb, label = vocabulary.interactions[interaction]
    return {"verb": verb, "label": label, "truth_name": None}


def _of_missed(vocabulary: Vocabulary, interaction: int) -> dict[str, Any]:
    item = _of_class(vocabulary, interaction)
    return {**item, "truth_name": f"{item['verb']} {item['label']}"}


def _boxes(boxes: Floats, subject: int, object_: int) -> list[list[float]]:
    """The subject's box, and the object's where there is one."""
    chosen: list[list[float]] = boxes[[box for box in (subject, object_) if box >= 0]].tolist()
    return chosen
