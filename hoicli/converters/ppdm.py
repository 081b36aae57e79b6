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

from hoicli.converters.cdn import CHECK_FIRST, corners, triplet
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.formats import image_id_of
from hoicli.converters.numbers import box_indices
from hoicli.errors import DataError
from hoicli.records.parsing import Record

BOX_KEYS = ("predictions", "prediction", "annotations", "annotation")
HOI_KEYS = ("hoi_prediction", "hoi_predictions", "hoi_annotation")

BEYOND = "interactions that point at no box of their image"

ENOUGH_BOXES = 1000
"""From so many boxes on, none of them beginning before 1 is no accident."""


def sniff(source: Source) -> bool:
    """A list with file_name, boxes and scored interactions (without scores it is ground truth in the same layout)."""
    item = source.first_item
    if not isinstance(item, dict) or "file_name" not in item or item.keys().isdisjoint(BOX_KEYS):
        return False
    if "hoi_annotation" in item and item.keys().isdisjoint(HOI_KEYS[:2]):
        return _has_scores(source)
    return not item.keys().isdisjoint(HOI_KEYS)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image."""
    objects = context.objects("coco-id")
    boxes_seen, smallest = 0, float("inf")

    def build(placed: tuple[str, dict[str, Any]]) -> Record:
        nonlocal boxes_seen, smallest
        where, item = placed
        file_name, box_key, hoi_key = item["file_name"], key_of(item, BOX_KEYS), key_of(item, HOI_KEYS)
        if image_id_of(file_name).startswith("COCO_"):
            problem = f"{file_name!r} is a V-COCO image, whose verbs count otherwise"
            raise DataError(f"{problem}: use --from qpic-vcoco-list or ppdm-vcoco-list", field=".file_name")
        boxes = [corners(box) for box in item[box_key]]
        labels = [
            objects.name(box["category_id"], f".{box_key}[{index}].category_id")
            for index, box in enumerate(item[box_key])
        ]
        hois = []
        for index, hoi in enumerate(item[hoi_key]):
            field = f".{hoi_key}[{index}]"
            subject, thing = box_indices(hoi, field)
            if not (0 <= subject < len(boxes) and 0 <= thing < len(boxes)):
                context.drop(BEYOND, f"{source.name}: {where}{field}")
                continue
            verb = context.verb(hoi["category_id"], f"{field}.category_id", base=1)
            hois.append(triplet(subject, thing, verb, hoi))
        boxes_seen += len(boxes)
        smallest = min([smallest, *(min(box[:2]) for box in boxes)])
        return {
            "image_id": image_id_of(file_name),
            "file_name": file_name,
            "boxes": boxes,
            "labels": labels,
            "hois": hois,
        }

    items = ((where, (where, item)) for where, item in source.items())
    yield from context.each(items, build, source)
    if boxes_seen >= ENOUGH_BOXES and smallest >= 1:
        context.announce(
            f"{source.name}: boxes taken as they are (0-based), but none of {boxes_seen:,} begins before 1: PPDM files "
            "saved after its own evaluation are 1-based (best_predictions.json); use the file saved before"
        )


def _has_scores(source: Source) -> bool:
    """Whether the first interaction found has a score."""
    for (_, item), _ in zip(source.items(), range(CHECK_FIRST), strict=False):
        hois = item.get("hoi_annotation") if isinstance(item, dict) else None
        for hoi in hois if isinstance(hois, list) else ():
            return isinstance(hoi, dict) and "score" in hoi
    return False


def key_of(item: dict[str, Any], keys: tuple[str, ...]) -> str:
    """Which spelling the item uses; the first where it has none, for the message that it is missing."""
    return next((key for key in keys if key in item), keys[0])
