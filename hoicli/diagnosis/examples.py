"""Examples of each type of error with their boxes, for the gallery, independent of the order of the images."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import numpy as np

from hoicli.arrays.kit import Floats, Ints, rank_by_id
from hoicli.diagnosis.beside import RELATIONS, truth_beside
from hoicli.diagnosis.errors import ERRORS, MISSED, Located
from hoicli.diagnosis.repairs import ErrorTypes
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.protocols import Protocol
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import Vocabulary


class Examples:
    """The highest-scored errors of each type, and missed ground truth; `limit` of each. Ties are broken by image id,
    then by place in the image, so the choice does not depend on the order of the images or on how processes split them.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: dict[str, list[tuple[float, str, int, Record]]] = {}

    def add(self, batch: Batch, found: Located, types: ErrorTypes, protocol: Protocol) -> None:
        """Keep the best-scored errors of each type in a batch, each with the ground truth beside it."""
        vocabulary, boxes, truth_boxes = batch.truth.vocabulary, batch.predictions.boxes, batch.truth.scenes.boxes
        by_id = rank_by_id(found.image_ids)
        for code, error in enumerate(ERRORS[1:], start=1):
            rows = self._first(np.flatnonzero(types.error == code), by_id[found.image], -found.score)
            shown = truth_beside(batch, found, types, protocol, np.array(rows, dtype=np.int64))
            for place, row in enumerate(rows):
                item = _of_class(vocabulary, found.interaction[row])
                item["predicted"] = _boxes(boxes, found.subject[row], found.object[row])
                target = int(shown.truth[place])
                item["relation"] = RELATIONS[shown.relation[place]]
                if target >= 0:
                    item["truth_name"] = " ".join(vocabulary.interactions[found.truth_interaction[target]])
                    item["truth"] = _boxes(truth_boxes, found.truth_subject[target], found.truth_object[target])
                    item["iou"] = [
                        None if np.isnan(value) else float(value)
                        for value in (shown.iou_subject[place], shown.iou_object[place])
                    ]
                self._keep(error, found.image_ids[found.image[row]], row, item, float(found.score[row]))
        for row in self._first(np.flatnonzero(types.missed), by_id[found.truth_image]):
            item = _of_missed(vocabulary, found.truth_interaction[row])
            item["truth"] = _boxes(truth_boxes, found.truth_subject[row], found.truth_object[row])
            self._keep(MISSED, found.image_ids[found.truth_image[row]], row, item)

    def add_unseen(self, truth: GroundTruth, seen: Container[str], protocol: Protocol) -> None:
        """Add the missed ground truth of images without predictions."""
        scenes, vocabulary = truth.scenes, truth.vocabulary
        image = scenes.image_of_hoi
        absent = np.array([image_id not in seen for image_id in scenes.image_ids], dtype=bool)
        missed = np.flatnonzero(truth.counted(protocol) & absent[image])
        for row in self._first(missed, rank_by_id(scenes.image_ids)[image]):
            item = _of_missed(vocabulary, scenes.interaction[row])
            item["truth"] = _boxes(scenes.boxes, scenes.subject[row], scenes.object[row])
            self._keep(MISSED, scenes.image_ids[image[row]], row, item)

    def merge(self, other: Examples) -> None:
        """Add the examples of another part of the stream."""
        for error, items in other._items.items():
            self._items.setdefault(error, []).extend(items)

    def items(self) -> Iterator[Record]:
        """The best of each type, by score, then image, then place in the image."""
        for error in (*ERRORS[1:], MISSED):
            items = sorted(self._items.get(error, []), key=lambda item: item[:3])
            for rank, (*_, item) in enumerate(items[: self._limit], start=1):
                yield item | {"rank": rank}

    def _first(self, rows: Ints, image: Ints, last: Floats | None = None) -> list[int]:
        """The first `limit` of `rows`, by `last`, then image, then row; `rows` index these two columns."""
        keys = (rows, image[rows]) if last is None else (rows, image[rows], last[rows])
        chosen: list[int] = rows[np.lexsort(keys)][: self._limit].tolist()
        return chosen

    def _keep(self, error: str, image_id: str, row: int, item: Record, score: float | None = None) -> None:
        """Keep an example; `row` orders the examples of an image, which all come from one batch."""
        blank = {"score": score, "predicted": None, "truth": None, "relation": "own", "iou": None}
        whole = {"image_id": image_id, "error": error, **blank, **item}
        self._items.setdefault(error, []).append((-(score or 0.0), image_id, row, whole))


def _of_class(vocabulary: Vocabulary, interaction: int) -> dict[str, Any]:
    verb, label = vocabulary.interactions[interaction]
    return {"verb": verb, "label": label, "truth_name": None}


def _of_missed(vocabulary: Vocabulary, interaction: int) -> dict[str, Any]:
    item = _of_class(vocabulary, interaction)
    return {**item, "truth_name": f"{item['verb']} {item['label']}"}


def _boxes(boxes: Floats, subject: int, object_: int) -> list[list[float]]:
    """The subject's box, and the object's if it has one."""
    chosen: list[list[float]] = boxes[[box for box in (subject, object_) if box >= 0]].tolist()
    return chosen
