"""instances_vcoco_{train,val,trainval,test}.json of fredzzhang/vcoco (UPT, PViC, SCG): pairs of V-COCO.

    {"annotations": [{"boxes_h", "boxes_o", "actions", "objects", "file_name"}], "classes": 24 action-roles,
     "objects": ["background", ...80], "images": [ids], "action_to_object"}

Boxes are COCO's with x2 = x + w, y2 = y + h (0-based far edges): 1 is taken off x2 and y2. Numbers count from 0 in the
file's own tables. Only pairs with an object box are in it: no action without object, no role without one, no point, no
unannotated person. So it serves vcoco-qpic for those 24 roles and none of the official protocols, which count everybody
who does an action: the records say so (caveat `pairs_only`), and the conversion does.

`read` raises `DataError` naming the item, from annotations[0].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, entry, guarded, image_record
from hoicli.converters.numbers import FAR_EDGES, corners
from hoicli.converters.pocket import known_names
from hoicli.converters.vcoco_names import action_role, coco_number, statement
from hoicli.errors import DataError
from hoicli.records.caveats import PAIRS_ONLY
from hoicli.records.parsing import Record


def sniff(source: Source) -> bool:
    """A dictionary with annotations, classes and action_to_object."""
    return source.mapping_has("annotations", "classes", "action_to_object")


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image, those without pairs included."""
    content = source.mapping
    for key in ("classes", "objects", "annotations"):
        if not isinstance(content.get(key), list):
            raise DataError("must be a list", place=source.name, field=key)
    names = guarded(lambda: [action_role(str(name), context) for name in content["classes"]], source, "classes")
    objects = ["background", *known_names(content["objects"][1:], context.vocabulary.object_ids, source, "objects")]
    context.announce(
        "this file has only pairs with an object: agents and both scenarios need the official files (vcoco_test.json "
        "with COCO's instances)"
    )

    def build(annotation: dict[str, Any]) -> Record:
        table = BoxTable()
        hois = []
        columns = zip(*(annotation[key] for key in ("boxes_h", "boxes_o", "actions", "objects")), strict=True)
        for person, other, action, label in columns:
            boxes = corners(person, ".boxes_h", FAR_EDGES), corners(other, ".boxes_o", FAR_EDGES)
            pair = table.pair(*boxes, entry(objects, label, ".objects"))
            hois.append(statement(pair["subject"], pair["object"], action, ".actions", names))
        head = {"image_id": coco_number(annotation["file_name"])}
        return image_record(annotation["file_name"], table.boxes, table.labels, hois, head, caveats=[PAIRS_ONLY])

    items = ((f"annotations[{index}]", item) for index, item in enumerate(content["annotations"]))
    yield from context.each(items, build, source)
