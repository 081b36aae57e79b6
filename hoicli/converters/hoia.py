"""HICO-DET in the HOI-A layout: trainval_hico.json, test_hico.json (PPDM, QPIC, CDN), test_hico_ann.json (INP-CC).

    {"file_name", "annotations": [{"bbox", "category_id"}], "hoi_annotation": [{"subject_id", "object_id",
     "category_id"}]}, and in some files img_id, height, width, hoi_category_id

Boxes are [x1, y1, x2, y2], 1-based inclusive: 1 is subtracted from all four numbers. category_id of a box is a COCO id
(1-90 with gaps), of an interaction a verb counted from 1; either may be text that ends in a line break. subject_id and
object_id are 0-based indices of `annotations`, so every box stays its own, equal ones too. Interactions that point at
no box (QPIC leaves them out as well) are dropped and counted. height and width are kept, other keys are not. There are
no image-level labels and no invisible instances: Known Object labels are derived from the pairs, and the conversion
says so. V-COCO has the same layout with verbs from 0 (hoia_vcoco.py); `read` refuses it.

Read by YueLiao/CDN and hitachi-rd-cv/qpic (datasets/hico.py), YueLiao/PPDM (src/lib/eval/hico_eval.py) and
ltttpku/INP-CC (datasets/hico.py). `read` raises `DataError` naming the item, from [0].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.formats import image_id_of
from hoicli.converters.numbers import box_indices
from hoicli.errors import DataError
from hoicli.records.parsing import Record

BEYOND = "interactions that point beyond the boxes of their image"
HINT = "; is this file HICO-DET's?"
WITHOUT = "interactions without a subject or an object (index -1)"


def sniff(source: Source) -> bool:
    """A list whose first item has hoi_annotation and annotations, without scores (with them it is PPDM's)."""
    if source.kind != "json-list":
        return False
    item = source.first_item
    if not isinstance(item, dict) or not {"hoi_annotation", "annotations"} <= item.keys():
        return False
    rows = item["hoi_annotation"]
    return not (isinstance(rows, list) and rows and isinstance(rows[0], dict) and "score" in rows[0])


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image, those without interactions included."""
    if _is_vcoco(source):
        problem = "is V-COCO in the HOI-A layout (COCO_ file names, verbs from 0)"
        raise DataError(f"{problem}: use --from qpic-vcoco or ppdm-vcoco-gt", place=source.name)
    context.announce(
        "no image-level labels in this file: Known Object will derive them from the pairs (use anno_bbox.mat)"
    )
    objects = context.objects("coco-id", HINT)
    odd_boxes: list[str] = []

    def build(placed: tuple[str, dict[str, Any]]) -> Record:
        where, item = placed
        boxes, labels = [], []
        for index, annotation in enumerate(item["annotations"]):
            field = f".annotations[{index}]"
            box = _zero_based(annotation["bbox"], f"{field}.bbox")
            boxes.append(box)
            labels.append(objects.name(annotation["category_id"], f"{field}.category_id"))
            if box[2] < box[0] or box[3] < box[1]:
                odd_boxes.append(f"{source.name}: {where}{field}.bbox")
        return {
            "image_id": image_id_of(item["file_name"]),
            "file_name": item["file_name"],
            **{key: item[key] for key in ("width", "height") if key in item},
            "boxes": boxes,
            "labels": labels,
            "hois": list(_interactions(item, len(boxes), f"{source.name}: {where}", context)),
        }

    yield from context.each(((where, (where, item)) for where, item in source.items()), build, source)
    if odd_boxes:
        context.announce(
            f"boxes with x2 < x1 or y2 < y1: {len(odd_boxes):,} (the first: {odd_boxes[0]}); they only make sense as "
            "[x, y, w, h], but are read as [x1, y1, x2, y2], as every evaluator reads this layout"
        )


def _is_vcoco(source: Source) -> bool:
    """File names of COCO images, and a verb 0. Only such names cost a look at every verb: HICO-DET's are its own."""
    if "COCO_" not in str((source.first_item or {}).get("file_name")):
        return False
    return any(str(hoi.get("category_id")).strip() == "0" for _, item in source.items() for hoi in _hois(item))


def _hois(item: Any) -> list[dict[str, Any]]:
    """The interactions of an item, as far as it is shaped as expected."""
    hois = item.get("hoi_annotation") if isinstance(item, dict) else None
    return [hoi for hoi in hois if isinstance(hoi, dict)] if isinstance(hois, list) else []


def _interactions(item: dict[str, Any], boxes: int, place: str, context: Context) -> Iterator[dict[str, Any]]:
    """The interactions whose two boxes are there; the others are dropped and counted."""
    for index, hoi in enumerate(item["hoi_annotation"]):
        field = f".hoi_annotation[{index}]"
        ends = box_indices(hoi, field)
        verb = context.verb(hoi["category_id"], f"{field}.category_id", base=1)
        if min(ends) < 0:
            context.drop(WITHOUT, place + field)
        elif max(ends) >= boxes:
            context.drop(BEYOND, place + field)
        else:
            yield {"subject": ends[0], "object": ends[1], "verb": verb}


def _zero_based(box: list[float], field: str) -> list[float]:
    if len(box) != 4:
        raise DataError(f"{box} is no box; give [x1, y1, x2, y2]", field=field)
    return [side - 1 for side in box]
