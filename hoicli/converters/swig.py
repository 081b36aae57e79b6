"""SWIG-HOI annotations: swig_{train,val,trainval,test,dev}_1000.json.

    {"file_name", "img_id", "height", "width", "box_annotations": [{"bbox", "category_id", "aux_category_id"}],
     "hoi_annotations": [{"subject_id", "object_id", "action_id"}]}

Boxes are [x1, y1, x2, y2] in pixels of the images as the dataset hands them out, resized to a short side of 512
(images_512); they are taken as they are, as its loader and its evaluator take them. Everything counts from 0: the
1,000 categories (a person is 0), the 407 actions, and subject_id and object_id, which index box_annotations.
category_id alone makes the class of an interaction; aux_category_id, what else annotators called the box, serves
training only and is left out.

The image id is the file name without its extension (wrapping_196), by which anything can be joined. Dumps of the
INP-CC family call the image by `img_id`, which says nothing else: it is kept, and `--image-list` finds it there.

Read by ltttpku/INP-CC (datasets/swig.py, datasets/swig_evaluator.py). `read` raises `DataError` naming the item, from
[0], and for CHOIR's HICO-DET, which has `target_id` for object_id and numbers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, entry
from hoicli.converters.formats import image_id_of
from hoicli.errors import DataError
from hoicli.records.parsing import Record


def sniff(source: Source) -> bool:
    """A list whose first item has box_annotations and hoi_annotations."""
    item = source.first_item if source.kind == "json-list" else None
    return isinstance(item, dict) and {"box_annotations", "hoi_annotations"} <= item.keys()


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image, those without interactions included."""
    vocabulary = context.vocabulary
    odd_boxes: list[str] = []

    def build(placed: tuple[str, dict[str, Any]]) -> Record:
        where, item = placed
        boxes, labels = [], []
        for index, annotation in enumerate(item["box_annotations"]):
            field = f".box_annotations[{index}]"
            box = annotation["bbox"]
            if len(box) != 4:
                raise DataError(f"{box} is no box; give [x1, y1, x2, y2]", field=f"{field}.bbox")
            if box[2] < box[0] or box[3] < box[1]:
                odd_boxes.append(f"{source.name}: {where}{field}.bbox")
            boxes.append(list(box))
            labels.append(entry(vocabulary.objects, annotation["category_id"], f"{field}.category_id"))
        return {
            "image_id": image_id_of(item["file_name"]),
            "file_name": item["file_name"],
            **{key: item[key] for key in ("img_id", "width", "height") if key in item},
            "boxes": boxes,
            "labels": labels,
            "hois": [
                _interaction(hoi, len(boxes), f".hoi_annotations[{index}]", context)
                for index, hoi in enumerate(item["hoi_annotations"])
            ],
        }

    yield from context.each(((where, (where, item)) for where, item in source.items()), build, source)
    if odd_boxes:
        context.announce(
            f"boxes with x2 < x1 or y2 < y1: {len(odd_boxes):,} (the first: {odd_boxes[0]}); they only make sense as "
            "[x, y, w, h], but are read as [x1, y1, x2, y2], as the evaluator reads them"
        )


def _interaction(hoi: dict[str, Any], boxes: int, field: str, context: Context) -> dict[str, Any]:
    ends = range(boxes)
    return {
        "subject": entry(ends, hoi["subject_id"], f"{field}.subject_id"),
        "object": entry(ends, hoi["object_id"], f"{field}.object_id"),
        "verb": entry(context.vocabulary.verbs, hoi["action_id"], f"{field}.action_id"),
    }
