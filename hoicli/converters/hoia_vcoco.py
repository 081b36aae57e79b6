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

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.numbers import box_indices
from hoicli.converters.vcoco_names import action_roles, coco_number, statement
from hoicli.records.caveats import UNMARKED_PEOPLE
from hoicli.records.parsing import Record

BEYOND = "interactions that point at no box of their image"


def sniff(source: Source) -> bool:
    """The HOI-A layout without scores, images called COCO_, and an interaction 0 (HICO-DET counts from 1)."""
    item = source.first_item
    if not isinstance(item, dict) or not {"file_name", "annotations", "hoi_annotation"} <= item.keys():
        return False
    if "COCO_" not in str(item["file_name"]):
        return False
    hois = [hoi for _, item in source.items() for hoi in _hois(item)]
    return not any("score" in hoi for hoi in hois) and any(str(hoi.get("category_id")).strip() == "0" for hoi in hois)


def _hois(item: Any) -> list[dict[str, Any]]:
    hois = item.get("hoi_annotation") if isinstance(item, dict) else None
    return [hoi for hoi in hois if isinstance(hoi, dict)] if isinstance(hois, list) else []


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image."""
    names = action_roles(context)
    objects = context.objects("coco-id")
    context.announce("this file does not say which people nobody annotated: predictions on them will count as false")

    def build(placed: tuple[str, dict[str, Any]]) -> Record:
        where, item = placed
        boxes, labels, hois = [], [], []
        for index, row in enumerate(item["annotations"]):
            field = f".annotations[{index}]"
            x1, y1, x2, y2 = row["bbox"]
            boxes.append([x1, y1, x2 - 1, y2 - 1])
            labels.append(objects.name(row["category_id"], f"{field}.category_id"))
        for index, hoi in enumerate(item["hoi_annotation"]):
            field = f".hoi_annotation[{index}]"
            subject, thing = box_indices(hoi, field)
            if not 0 <= subject < len(boxes) or thing >= len(boxes):
                context.drop(BEYOND, f"{source.name}: {where}{field}")
                continue
            object_, category = None if thing < 0 else thing, hoi["category_id"]
            hois.append(statement(subject, object_, category, f"{field}.category_id", names, base=context.base(0)))
        return {
            "image_id": coco_number(item["file_name"]),
            "file_name": item["file_name"],
            **{key: item[key] for key in ("width", "height") if key in item},
            "boxes": boxes,
            "labels": labels,
            "hois": hois,
            "caveats": [UNMARKED_PEOPLE],
        }

    yield from context.each(((where, (where, item)) for where, item in source.items()), build, source)
