"""Predictions of PPDM and GGNet: predictions_model_N.json, best_predictions.json.

    {"file_name", "predictions": [{"bbox", "category_id"}], "hoi_prediction": [{"subject_id", "object_id",
     "category_id", "score"}]}

category_id of a box is a COCO id (1-90 with gaps), of an interaction a verb counted from 1 (1-117); either may be text
that ends in a line break. Boxes are 0-based and taken as they are. One trap is only announced, because the file does
not say: PPDM's evaluator adds 1 to the boxes in place, and what is saved after it ran (best_predictions.json always,
predictions_model_N.json with --test_with_eval) is 1-based. PPDM clips boxes at 0, so a large file in which no box
begins before 1 looks like that. GGNet saves first.

Readers of these files also know the keys prediction, annotation and annotations for the boxes, hoi_predictions for the
interactions, and hoi_annotation where its rows have scores. Interactions that point at no box are dropped and counted.
V-COCO results (COCO_ file names), whose verbs count otherwise, are `vcoco_list`'s.

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
from hoicli.errors import DataError
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record

ENOUGH_BOXES = 1000
"""From so many boxes on, none of them beginning before 1 is no accident."""


def sniff(source: Source) -> bool:
    """A list with file_name, boxes and scored interactions (without scores it is ground truth in the same layout)."""
    return is_scored_list(source) and source.first_has("file_name")


def is_scored_list(source: Source) -> bool:
    """A list of boxes and interactions by any of their names; of those called annotations the scores tell."""
    item = source.first_item
    if not isinstance(item, dict) or item.keys().isdisjoint(BOX_KEYS) or item.keys().isdisjoint(HOI_KEYS):
        return False
    return not item.keys().isdisjoint(HOI_KEYS[:2]) or bool(first_row_has(source, "hoi_annotation", "score"))


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image."""
    objects = context.objects("coco-id")
    boxes_seen, smallest = 0, float("inf")

    def build(item: dict[str, Any]) -> Record:
        nonlocal boxes_seen, smallest
        file_name, box_key, hoi_key = item["file_name"], key_of(item, BOX_KEYS), key_of(item, HOI_KEYS)
        if image_id_of(file_name).startswith("COCO_"):
            problem = f"{file_name!r} is a V-COCO image, whose verbs count otherwise"
            raise DataError(f"{problem}: use --from qpic-vcoco-list or ppdm-vcoco-list", field=".file_name")
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
