"""V-COCO's own annotations: vcoco_{train,val,trainval,test}.json with COCO's instances file and the split's .ids.

    VSRL        a list of actions: {"action_name", "role_name": ["agent", ...], "image_id": [N], "ann_id": [N],
                "label": [N], "role_object_id": flat K x N, role by role; 0 where a role has no object}
    INSTANCES   COCO's {"images", "annotations": [{"id", "image_id", "category_id", "bbox", "area"}], "categories"}
    IDS         one COCO image id per line: the images to convert, in this order; without it all of VSRL

The files may come in any order. Boxes are COCO's [x, y, w, h], 0-based, and become x2 = x + w - 1, y2 = y + h - 1,
clipped to the image, as the official evaluator has them; boxes that it leaves out (no area, marked `ignore`) are left
out here. Every COCO box of an image is kept; a person missing in VSRL is `annotated: false`, and ignored in matching.
Each action of a person gives one triplet for each role, with a null object if the role has none.

Read by the code of s-gupta/v-coco (vsrl_eval.py). Image ids are COCO's numbers. `read` raises `DataError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from hoicli.converters.containers.source import HEAD, Source
from hoicli.converters.context import Context, guarded
from hoicli.converters.numbers import whole_number
from hoicli.errors import DataError, Place
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT, normalise

Action = tuple[str, tuple[int, ...]]
"""An action and the annotation ids that fill its roles, 0 for none."""

_NUMBERS = re.compile(rb"[\d.e+\s]+")

LOST_OBJECT = "roles whose object has no valid box (the role is taken as empty)"
LOST_PERSON = "actions of people without a valid box"


def sniff(source: Source) -> bool:
    """The list of actions, or one of its companions: COCO's instances or a list of image ids."""
    is_split = source.kind == "unknown" and _NUMBERS.fullmatch(source.data[:HEAD]) is not None
    return _is_vsrl(source) or _is_instances(source) or is_split


def _is_vsrl(source: Source) -> bool:
    return source.first_has("action_name", "role_object_id")


def _is_instances(source: Source) -> bool:
    return source.mapping_has("images", "annotations", "categories")


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image of the split."""
    sources = [source, *source.companions]
    vsrl = next((one for one in sources if _is_vsrl(one)), None)
    instances = next((one for one in sources if one is not vsrl and _is_instances(one)), None)
    split = [one for one in sources if one not in (vsrl, instances)]
    if vsrl is None or instances is None or len(split) > 1:
        problem = "give VSRL.json,INSTANCES.json,IDS.txt together (vcoco_test.json, instances_vcoco_all_2014.json, ids)"
        raise DataError(problem, place=source.name)
    actions, images = _actions(vsrl, context)
    if split:
        images = _ids(split[0])
    coco = guarded(lambda: _Instances(instances.mapping, {*images}), instances, "")

    def build(image: Mapping[str, Any]) -> Record:
        return _record(image, coco, actions, context, vsrl.name)

    items = ((f"image {image_id}", coco.images[image_id]) for image_id in images if image_id in coco.images)
    yield from context.each(items, build, instances)
    for image_id in images:
        if image_id not in coco.images:
            context.drop(f"images that {instances.name} does not have", f"image {image_id}")


def _actions(vsrl: Source, context: Context) -> tuple[dict[int, list[Action]], list[int]]:
    """(the actions of each annotated person, by annotation id; the images, ascending)."""
    actions: dict[int, list[Action]] = {}
    images: set[int] = set()
    roles_of = context.vocabulary.roles_of
    for where, column in vsrl.items():
        people = guarded(partial(_people_of, column, roles_of), vsrl, where)
        for image, person, action in people:
            images.add(image)
            done = actions.setdefault(person, [])
            if action is not None:
                done.append(action)
    return actions, sorted(images)


def _people_of(column: Any, roles_of: Mapping[str, tuple[str, ...]]) -> list[tuple[int, int, Action | None]]:
    """(image, person, the action or None) of everybody in the list of one action."""
    verb = normalise(str(column["action_name"]))
    if verb not in roles_of:
        raise DataError(f"{verb!r} is no V-COCO action", field=".action_name")
    columns = [column[key] for key in ("image_id", "ann_id", "label")]
    roles = [str(role) for role in column["role_name"]]
    if roles != ["agent", *roles_of[verb]]:
        expected = ", ".join(("agent", *roles_of[verb]))
        raise DataError(f"{roles} are not the roles of {verb}: {expected}", field=".role_name")
    count, filled = len(columns[0]), column["role_object_id"]
    if {len(each) for each in columns} != {count} or len(filled) != count * len(roles):
        problem = f"image_id, ann_id, label and role_object_id / {len(roles)} differ in length; fetch the file again"
        raise DataError(problem)
    by_role = [filled[number * count : (number + 1) * count] for number in range(1, len(roles))]
    fillers = zip(*by_role, strict=True) if by_role else [()] * count
    people: list[tuple[int, int, Action | None]] = []
    for image, person, label, objects in zip(*columns, fillers, strict=True):
        done = (verb, tuple(whole_number(each, ".role_object_id") for each in objects)) if label == 1 else None
        people.append((whole_number(image, ".image_id"), whole_number(person, ".ann_id"), done))
    return people


def _ids(split: Source) -> list[int]:
    """The image ids of a split, one a line; NumPy writes 2.94e+02."""
    ids = []
    for number, line in enumerate(split.data.decode("utf-8", "replace").split("\n"), start=1):
        try:
            ids += [whole_number(float(line), "")] if line.strip() else []
        except (ValueError, DataError):
            problem = f"{line.strip()[:40]!r} is no image id; give one COCO image id a line"
            raise DataError(problem, place=Place.of(split.name, number)) from None
    return ids


class _Instances:
    """COCO's rows of the chosen images, by id; their annotations, in the file's order; the categories' names."""

    def __init__(self, content: Mapping[str, Any], chosen: set[int]) -> None:
        self.images = {row["id"]: row for row in content["images"] if row["id"] in chosen}
        self.annotations: dict[int, list[Mapping[str, Any]]] = {}
        for row in content["annotations"]:
            if row["image_id"] in chosen:
                self.annotations.setdefault(row["image_id"], []).append(row)
        self.names = {row["id"]: normalise(row["name"]) for row in content["categories"]}


def _record(
    image: Mapping[str, Any], coco: _Instances, actions: Mapping[int, list[Action]], context: Context, file: str
) -> Record:
    width, height, annotations = image["width"], image["height"], coco.annotations.get(image["id"], ())
    boxes: list[list[float]] = []
    labels: list[str] = []
    annotated: list[bool] = []
    place_of: dict[int, int] = {}
    for row in annotations:
        box = _corners(row, width, height)
        if box is None:
            continue
        if row["category_id"] not in coco.names:
            raise DataError(f"no category {row['category_id']}", field=f", annotation {row['id']}")
        place_of[row["id"]] = len(boxes)
        boxes.append(box)
        labels.append(coco.names[row["category_id"]])
        annotated.append(labels[-1] != SUBJECT or row["id"] in actions)
    hois = []
    for row in annotations:
        for verb, fillers in actions.get(row["id"], ()):
            if row["id"] not in place_of:
                context.drop(LOST_PERSON, f"{file}: annotation {row['id']}")
                continue
            subject = place_of[row["id"]]
            if not fillers:
                hois.append({"subject": subject, "object": None, "verb": verb})
            for role, filler in zip(context.vocabulary.roles_of[verb], fillers, strict=True):
                if filler and filler not in place_of:
                    context.drop(LOST_OBJECT, f"{file}: annotation {row['id']}, {verb} {role}")
                hois.append({"subject": subject, "object": place_of.get(filler), "verb": verb, "role": role})
    head = {"image_id": image["id"], "file_name": image["file_name"], "width": width, "height": height}
    return {**head, "boxes": boxes, "labels": labels, "annotated": annotated, "hois": hois}


def _corners(row: Mapping[str, Any], width: float, height: float) -> list[float] | None:
    """[x1, y1, x2, y2] as the official evaluator clips it, None for a box that it leaves out."""
    if row.get("ignore") == 1:
        return None
    x, y, w, h = row["bbox"]
    x1, x2 = (min(width - 1.0, max(0.0, side)) for side in (x, x + max(0.0, w - 1.0)))
    y1, y2 = (min(height - 1.0, max(0.0, side)) for side in (y, y + max(0.0, h - 1.0)))
    return [x1, y1, x2, y2] if row["area"] > 0 and x2 > x1 and y2 > y1 else None
