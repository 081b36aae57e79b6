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
from hoicli.converters.context import BoxTable, Context, entry
from hoicli.converters.vcoco_names import action_role, coco_number, statement
from hoicli.errors import DataError
from hoicli.records.caveats import PAIRS_ONLY
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT, normalise


def sniff(source: Source) -> bool:
    """A dictionary with annotations, classes and action_to_object."""
    return source.kind == "json-object" and {"annotations", "classes", "action_to_object"} <= source.mapping.keys()


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image, those without pairs included."""
    content = source.mapping
    for key in ("classes", "objects", "annotations"):
        if not isinstance(content.get(key), list):
            raise DataError("must be a list", place=source.name, field=key)
    try:
        names = [action_role(str(name), context) for name in content["classes"]]
    except DataError as error:
        raise DataError(error.problem, place=source.name, field="classes") from None
    objects = [normalise(str(name)) for name in content["objects"]]
    strangers = [name for name in objects[1:] if name not in context.vocabulary.object_ids]
    if strangers:
        raise DataError(f"{strangers[0]!r} is no COCO name", place=source.name, field="objects")
    context.announce(
        "this file has only pairs with an object: agents and both scenarios need the official files (vcoco_test.json "
        "with COCO's instances)"
    )

    def build(annotation: dict[str, Any]) -> Record:
        table = BoxTable()
        hois = []
        columns = zip(*(annotation[key] for key in ("boxes_h", "boxes_o", "actions", "objects")), strict=True)
        for human, thing, action, label in columns:
            subject = table.add(_inclusive(human), SUBJECT)
            object_ = table.add(_inclusive(thing), entry(objects, label, ".objects"))
            hois.append(statement(subject, object_, action, ".actions", names))
        return {
            "image_id": coco_number(annotation["file_name"]),
            "file_name": annotation["file_name"],
            "boxes": table.boxes,
            "labels": table.labels,
            "hois": hois,
            "caveats": [PAIRS_ONLY],
        }

    items = ((f"annotations[{index}]", item) for index, item in enumerate(content["annotations"]))
    yield from context.each(items, build, source)


def _inclusive(box: list[float]) -> list[float]:
    x1, y1, x2, y2 = box
    return [x1, y1, x2 - 1, y2 - 1]
