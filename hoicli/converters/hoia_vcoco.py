"""V-COCO ground truth in the HOI-A layout: trainval_vcoco.json, test_vcoco.json of QPIC, CDN, GEN-VLKT; PPDM's.

    {"file_name", "annotations": [{"bbox", "category_id"}], "hoi_annotation": [{"subject_id", "object_id",
     "category_id"}]}

category_id of a box is a COCO id (1-90 with gaps), of an interaction an action-role counted from 0, in QPIC's order or,
with `--from ppdm-vcoco-gt`, in PPDM's: a file does not tell. object_id is -1 for a role without object. Boxes are
COCO's with x2 = x + w, y2 = y + h (0-based far edges): 1 is taken off x2 and y2, and protocol vcoco-qpic puts it back.

Nothing here says which people nobody annotated: all count as annotated, and the conversion and the records say so
(caveat `unmarked_people`). Written by hitachi-rd-cv/qpic convert_vcoco_annotations.py. `read` raises `DataError` naming
the item, from [0].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters import hoia
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, image_record, kept
from hoicli.converters.hoi_lists import boxes_of, interactions_of, is_vcoco, labels_of
from hoicli.converters.numbers import FAR_EDGES
from hoicli.converters.vcoco_names import action_roles, coco_number, statement
from hoicli.records.caveats import UNMARKED_PEOPLE
from hoicli.records.parsing import Record


def sniff(source: Source) -> bool:
    """The HOI-A layout without scores, images called COCO_, and an interaction 0 (HICO-DET counts from 1)."""
    return hoia.sniff(source) and is_vcoco(source)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image."""
    names = action_roles(context)
    objects = context.objects("coco-id")
    context.announce("this file does not say which people nobody annotated: predictions on them will count as false")

    def build(item: dict[str, Any]) -> Record:
        boxes = boxes_of(item, "annotations", FAR_EDGES)
        labels = labels_of(item, "annotations", objects)
        hois = [
            statement(subject, object_, hoi["category_id"], f"{field}.category_id", names, base=context.base(0))
            for field, subject, object_, hoi in interactions_of(
                item, "hoi_annotation", len(boxes), context, objectless=True
            )
        ]
        head = {"image_id": coco_number(item["file_name"])} | kept(item, "width", "height")
        return image_record(item["file_name"], boxes, labels, hois, head, caveats=[UNMARKED_PEOPLE])

    yield from context.each(source.items(), build, source)
