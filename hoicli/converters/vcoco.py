"""V-COCO's own annotations (s-gupta/v-coco, vsrl_eval.py); `vcoco_detections` has what its evaluator reads besides.

vsrl: vcoco_{train,val,trainval,test}.json with COCO's instances file and the split's .ids, in any order.

    VSRL        a list of actions: {"action_name", "role_name": ["agent", ...], "image_id": [N], "ann_id": [N],
                "label": [N], "role_object_id": flat K x N, role by role; 0 where a role has no object}
    INSTANCES   COCO's {"images", "annotations": [{"id", "image_id", "category_id", "bbox", "area"}], "categories"}
    IDS         one COCO image id per line: the images to convert, in this order; without it all of VSRL

Boxes are COCO's [x, y, w, h], 0-based, and become x2 = x + w - 1, y2 = y + h - 1, clipped to the image, as the official
evaluator has them; boxes that it leaves out (no area, marked `ignore`) are left out here. Every COCO box of an image is
kept; a person missing in VSRL is `annotated: false`, and ignored in matching. Each action of a person gives one triplet
for each role, with a null object if the role has none. Image ids are COCO's numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, run_step
from hoicli.converters.numbers import whole_number
from hoicli.errors import DataError, Place
from hoicli.io.opened_files import FIRST
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT, normalise

LOST_OBJECT = "roles whose object has no valid box (the role is taken as empty)"

Action = tuple[str, tuple[int, ...]]
"""An action and the annotation ids that fill its roles, 0 for none."""

_NUMBERS = re.compile(rb"\s*\d[\d.e+\s]*")


def is_vsrl(source: Source) -> bool:
    """Return whether a file is V-COCO's list of actions, COCO's instances, or a list of image ids."""
    is_id_list = source.kind == "unknown" and _NUMBERS.fullmatch(source.data[:FIRST]) is not None
    return _is_actions(source) or _is_instances(source) or is_id_list


def _is_actions(source: Source) -> bool:
    """Return whether a file is V-COCO's list of actions, such as vcoco_test.json."""
    return source.first_has("action_name", "role_object_id")


def _is_instances(source: Source) -> bool:
    """Return whether a file is COCO's instances, the annotations of all its boxes."""
    return source.mapping_has("images", "annotations", "categories")


def read_annotations(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of V-COCO, from its list of actions, COCO's instances, and perhaps a split."""
    sources = [source, *source.companions]
    vsrl = next((file_source for file_source in sources if _is_actions(file_source)), None)
    instances = next(
        (file_source for file_source in sources if file_source is not vsrl and _is_instances(file_source)), None
    )
    split = [file_source for file_source in sources if file_source not in (vsrl, instances)]
    if vsrl is None or instances is None or len(split) > 1:
        problem = "give VSRL.json,INSTANCES.json,IDS.txt together (vcoco_test.json, instances_vcoco_all_2014.json, ids)"
        if vsrl is None and instances is not None:
            problem = f"is COCO's annotations without triplets (rel_annotations, rel_categories); for V-COCO {problem}"
        raise DataError(problem, place=source.name)
    actions, images = _actions(vsrl, context)
    if split:
        images = _image_ids(split[0])
    coco = run_step(lambda: _Instances(instances.mapping, {*images}), instances, "")

    def build(image: Mapping[str, Any]) -> Record:
        """Return the record of an image, which is a row of COCO's `images`."""
        return _record(image, coco, actions, context, vsrl.name)

    items = ((f"image {image_id}", coco.images[image_id]) for image_id in images if image_id in coco.images)
    yield from context.each(items, build, instances)
    for image_id in images:
        if image_id not in coco.images:
            context.drop(f"images that {instances.name} does not have", f"image {image_id}")


def _actions(vsrl: Source, context: Context) -> tuple[dict[int, list[Action]], list[int]]:
    """Return the actions of each annotated person by the id of the annotation, and the ids of all images, ascending."""
    actions: dict[int, list[Action]] = {}
    images: set[int] = set()
    roles_of = context.vocabulary.roles_of
    for where, action_item in vsrl.items():
        people = run_step(partial(_people_of_action, action_item, roles_of), vsrl, where)
        for image, person, action in people:
            images.add(image)
            actions_of_person = actions.setdefault(person, [])
            if action is not None:
                actions_of_person.append(action)
    return actions, sorted(images)


def _people_of_action(item: Any, roles_of: Mapping[str, tuple[str, ...]]) -> list[tuple[int, int, Action | None]]:
    """Return (image id, annotation id, action) of each person listed under one action, None for no action. item: its
    lists have a value for each person; role_object_id first has the agents' own annotations, then each role's."""
    verb = normalise(str(item["action_name"]))
    if verb not in roles_of:
        raise DataError(f"{verb!r} is no V-COCO action", field=".action_name")
    columns = [item[key] for key in ("image_id", "ann_id", "label")]
    roles = [str(role) for role in item["role_name"]]
    if roles != ["agent", *roles_of[verb]]:
        expected = ", ".join(("agent", *roles_of[verb]))
        raise DataError(f"{roles} are not the roles of {verb}: {expected}", field=".role_name")
    count, role_objects = len(columns[0]), item["role_object_id"]
    if {len(column) for column in columns} != {count} or len(role_objects) != count * len(roles):
        problem = f"image_id, ann_id, label and role_object_id / {len(roles)} differ in length; fetch the file again"
        raise DataError(problem)
    objects_by_role = [role_objects[number * count : (number + 1) * count] for number in range(1, len(roles))]
    objects_by_person = zip(*objects_by_role, strict=True) if objects_by_role else [()] * count
    people: list[tuple[int, int, Action | None]] = []
    for image, person, label, objects in zip(*columns, objects_by_person, strict=True):
        action = (verb, tuple(whole_number(filler, ".role_object_id") for filler in objects)) if label == 1 else None
        people.append((whole_number(image, ".image_id"), whole_number(person, ".ann_id"), action))
    return people


def _image_ids(split: Source) -> list[int]:
    """Return the image ids of a split, one a line. Raises `DataError`, with the line, for other content."""
    ids = []
    for number, line in enumerate(split.data.decode("utf-8", "replace").split("\n"), start=1):
        try:
            ids += [whole_number(float(line), "")] if line.strip() else []  # numpy.savetxt writes 2.94e+02
        except (ValueError, DataError):
            problem = f"{line.strip()[:40]!r} is no image id; give one COCO image id a line"
            raise DataError(problem, place=Place.in_file(split.name, number)) from None
    return ids


class _Instances:
    """COCO's instances, of chosen images only. images: the row of each image by its id. annotations: the rows of an
    image's boxes by the image's id, in the file's order. names: the name of each category by its id."""

    def __init__(self, content: Mapping[str, Any], chosen: set[int]) -> None:
        """Sort COCO's lists by image. content: the file's. chosen: the ids of the images to keep."""
        self.images = {row["id"]: row for row in content["images"] if row["id"] in chosen}
        self.annotations: dict[int, list[Mapping[str, Any]]] = {}
        for row in content["annotations"]:
            if row["image_id"] in chosen:
                self.annotations.setdefault(row["image_id"], []).append(row)
        self.names = {row["id"]: normalise(row["name"]) for row in content["categories"]}


def _action_triplets(
    subject: int, verb: str, fillers: Sequence[int], box_index_of: Mapping[int, int], context: Context, place: str
) -> Iterator[Record]:
    """Yield a triplet for each role of a person's action, or one without an object for an action without roles.
    fillers: for each role the id of the annotation whose box fills it, 0 for none. box_index_of: by that id."""
    if not fillers:
        yield {"subject": subject, "object": None, "verb": verb}
    for role, filler in zip(context.vocabulary.roles_of[verb], fillers, strict=True):
        if filler and filler not in box_index_of:
            context.drop(LOST_OBJECT, f"{place}, {verb} {role}")
        yield {"subject": subject, "object": box_index_of.get(filler), "verb": verb, "role": role}


def _record(
    image: Mapping[str, Any], coco: _Instances, actions: Mapping[int, list[Action]], context: Context, file: str
) -> Record:
    """Return the record of an image: all its COCO boxes, and a triplet for each action and role of its people. actions:
    by the id of the person's annotation."""
    width, height, annotations = image["width"], image["height"], coco.annotations.get(image["id"], ())
    boxes: list[list[float]] = []
    labels: list[str] = []
    annotated: list[bool] = []
    box_index_of: dict[int, int] = {}
    for row in annotations:
        box = _corners(row, width, height)
        if box is None:
            continue
        if row["category_id"] not in coco.names:
            raise DataError(f"no category {row['category_id']}", field=f", annotation {row['id']}")
        box_index_of[row["id"]] = len(boxes)
        boxes.append(box)
        labels.append(coco.names[row["category_id"]])
        annotated.append(labels[-1] != SUBJECT or row["id"] in actions)  # V-COCO passes some people over
    hois: list[Record] = []
    for row in annotations:
        place = f"{file}: annotation {row['id']}"
        for verb, fillers in actions.get(row["id"], ()):
            if row["id"] in box_index_of:
                hois += _action_triplets(box_index_of[row["id"]], verb, fillers, box_index_of, context, place)
            else:
                context.drop("actions of people without a valid box", place)
    head = {"image_id": image["id"], "file_name": image["file_name"], "width": width, "height": height}
    return {**head, "boxes": boxes, "labels": labels, "annotated": annotated, "hois": hois}


def _corners(row: Mapping[str, Any], width: float, height: float) -> list[float] | None:
    """Return the box of a COCO annotation as [x1, y1, x2, y2], where x2, y2 is the last pixel inside, clipped as in the
    official evaluator; None for a box that the evaluator leaves out: one marked `ignore`, or without an area."""
    if row.get("ignore") == 1:
        return None
    x, y, w, h = row["bbox"]
    x1, x2 = (min(width - 1.0, max(0.0, side)) for side in (x, x + max(0.0, w - 1.0)))
    y1, y2 = (min(height - 1.0, max(0.0, side)) for side in (y, y + max(0.0, h - 1.0)))
    return [x1, y1, x2, y2] if row["area"] > 0 and x2 > x1 and y2 > y1 else None
