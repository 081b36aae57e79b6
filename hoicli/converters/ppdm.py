"""Predictions of PPDM and GGNet: predictions_model_N.json, best_predictions.json.

    {"file_name", "predictions": [{"bbox", "category_id"}], "hoi_prediction": [{"subject_id", "object_id",
     "category_id", "score"}]}

category_id of a box is a COCO id (1-90 with gaps), of an interaction a verb counted from 1 (1-117); either may be text
that ends in a line break. Boxes are 0-based and read unchanged. One problem only gives a note, because the file does
not show it for certain: PPDM's evaluator adds 1 to the boxes in place, so files saved after it ran
(best_predictions.json always, predictions_model_N.json with --test_with_eval) are 1-based. PPDM clips boxes at 0, so a
large file in which no box begins before 1 is probably 1-based. GGNet saves first.

Readers of these files also know the keys prediction, annotation and annotations for the boxes, hoi_predictions for the
interactions, and hoi_annotation where its rows have scores. Interactions that point at no box are dropped and counted.
`vcoco_list` reads V-COCO results (COCO_ file names), whose verbs are numbered differently.

Written by YueLiao/PPDM (src/test_hoi.py, src/lib/detectors/hoidet.py) and SherlockHolmes221/GGNet (the same paths);
the keys are those of PPDM's src/lib/eval/vcoco_eval.py. `read` raises `DataError` naming the item, from [0].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, image_record
from hoicli.converters.hoi_lists import (
    BOX_KEYS,
    HOI_KEYS,
    first_row_has,
    float_boxes,
    interactions_of,
    key_of,
    labels_of,
    scores,
)
from hoicli.errors import DataError, arg
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record

ENOUGH_BOXES = 1000
"""With at least this many boxes, it is no accident that none begins before 1."""


def sniff(source: Source) -> bool:
    """A list with file_name, boxes and scored interactions (without scores it is ground truth in the same layout)."""
    return is_scored_list(source) and source.first_has("file_name")


def is_scored_list(source: Source) -> bool:
    """A list of boxes and interactions under any of their keys; hoi_annotation needs scores."""
    item = source.first_item
    if not isinstance(item, dict) or item.keys().isdisjoint(BOX_KEYS) or item.keys().isdisjoint(HOI_KEYS):
        return False
    return not item.keys().isdisjoint(HOI_KEYS[:2]) or bool(first_row_has(source, "hoi_annotation", "score"))


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image."""
    objects = context.objects("coco-id")
    boxes_seen, smallest = 0, float("inf")

    def build(item: dict[str, Any]) -> Record:
        nonlocal boxes_seen, smallest
        file_name, box_key, hoi_key = item["file_name"], key_of(item, BOX_KEYS), key_of(item, HOI_KEYS)
        if image_id_of(file_name).startswith("COCO_"):
            problem = f"{file_name!r} is a V-COCO image, whose verbs are numbered differently"
            raise DataError(f"{problem}: use {arg('from_', 'qpic-vcoco-list')} or ppdm-vcoco-list", field=".file_name")
        boxes = float_boxes(item, box_key)
        hois = []
        for field, subject, object_, hoi in interactions_of(item, hoi_key, len(boxes), context):
            verb = context.verb(hoi["category_id"], f"{field}.category_id", base=1)
            hois.append({"subject": subject, "object": object_, "verb": verb, **scores(hoi)})
        boxes_seen += len(boxes)
        smallest = min([smallest, *(min(box[:2]) for box in boxes)])
        return image_record(file_name, boxes, labels_of(item, box_key, objects), hois)

    yield from context.each(source.items(), build, source)
    if boxes_seen >= ENOUGH_BOXES and smallest >= 1:
        context.announce(
            f"{source.name}: boxes taken as they are (0-based), but none of {boxes_seen:,} begins before 1: PPDM files "
            "saved after its own evaluation are 1-based (best_predictions.json); use the file saved before"
        )
