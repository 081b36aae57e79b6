"""V-COCO predictions as lists of boxes and interactions: what QPIC, CDN or PPDM evaluate while training.

    {"file_name" (or "filename", "image_id"), "predictions": [{"bbox", "category_id"}],
     "hoi_prediction": [{"subject_id", "object_id", "category_id", "score"}]}

category_id of an interaction is an action-role counted from 0, in QPIC's order or, with `--from ppdm-vcoco-list`, in
PPDM's: a file does not tell. category_id of a box is a COCO id (1-90, person 1) or a position in COCO's list (0-79,
person 0; 80 says that there is no object): the subjects of the first images tell which. An object_id of -1 is no
object, too. Boxes are taken as they are. The keys that PPDM's reader knows besides are understood (see `ppdm`).

What no record says, the action of a person by itself, is derived from the roles when the records are read.
`read` raises `DataError` naming the item, from [0].
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.hoi_lists import BOX_KEYS, CHECK_FIRST, HOI_KEYS, float_boxes, interactions_of, key_of
from hoicli.converters.numbers import whole_number
from hoicli.converters.ppdm import is_scored_list
from hoicli.converters.vcoco_names import action_roles, coco_number, statement
from hoicli.records.parsing import Record

IMAGE_KEYS = ("file_name", "filename", "image_id")
NO_OBJECT = 80
"""The position after COCO's 80: a query without object, in QPIC's family."""


def sniff(source: Source) -> bool:
    """A list of boxes and scored interactions, of images called COCO_."""
    return is_scored_list(source) and any("COCO_" in str(source.first_item.get(key)) for key in IMAGE_KEYS)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image."""
    names = action_roles(context)
    numbered = context.objects("coco-id" if _has_coco_ids(source) else "coco")
    objects: dict[int, str | None] = {**numbered.names}
    if 0 in objects:
        objects[NO_OBJECT] = None

    def build(item: dict[str, Any]) -> Record:
        box_key, hoi_key = key_of(item, BOX_KEYS), key_of(item, HOI_KEYS)
        image = next((item[key] for key in IMAGE_KEYS if key in item), None)
        boxes, labels, hois = float_boxes(item, box_key), [], []
        for index, box in enumerate(item[box_key]):
            category = f".{box_key}[{index}].category_id"
            number = whole_number(box["category_id"], category)
            labels.append(objects[number] if number in objects else numbered.name(number, category))
        for field, subject, index, hoi in interactions_of(item, hoi_key, len(boxes), context, objectless=True):
            object_ = None if index < 0 or labels[index] is None else index
            category = f"{field}.category_id"
            made = statement(subject, object_, hoi["category_id"], category, names, base=context.base(0))
            hois.append({**made, "score": float(hoi["score"])})
        return {
            "image_id": coco_number(image),
            **({"file_name": image} if "COCO_" in str(image) else {}),
            "boxes": boxes,
            "labels": labels,
            "hois": hois,
        }

    yield from context.each(source.items(), build, source)


def _has_coco_ids(source: Source) -> bool:
    """Whether boxes are numbered by COCO id: no subject of the first images has category 0."""
    for _, item in islice(source.items(), CHECK_FIRST):
        try:
            boxes = item[key_of(item, BOX_KEYS)]
            people = {int(boxes[int(hoi["subject_id"])]["category_id"]) for hoi in item[key_of(item, HOI_KEYS)]}
        except (KeyError, TypeError, ValueError, IndexError):
            continue  # `build` will say what is wrong with it
        if people:
            return 0 not in people
    return False
