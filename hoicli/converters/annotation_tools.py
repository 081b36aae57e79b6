"""Ground truth as annotation tools export it. The files state their labels, so any are taken without --dataset; boxes
that are turned are refused. Both readers raise `DataError` naming the item.

label-studio: Label Studio's JSON export (labelstud.io, guide/task_format and tags/relations).

    [{"data": {"image": "/data/upload/1/5f2c1a3b-site_0001.jpg"}, "annotations": [{"result": [
       {"type": "rectanglelabels", "id": "a", "original_width", "original_height",
        "value": {"x", "y", "width", "height", "rotation", "rectanglelabels": ["worker"]}},
       {"type": "relation", "from_id": "a", "to_id": "b", "direction": "right", "labels": ["wear"]}]}]}]

x, y, width and height are per cent of the image, between edges, and become [x, y, x + width, y + height] in pixels,
rounded to a ten-thousandth. A relation goes from from_id to to_id (right), back (left) or both ways (bi), and is a
triplet for each of its labels. Of several annotations of a task that is taken which is marked `ground_truth`, else the
latest. Tasks that nobody annotated are no images, and predictions of models are not read: both are counted. The image's
name is that of `data.image` without its server, and without the eight digits that an upload puts before it, unless two
uploads have one name without them, or with `--id path`. JSON-MIN has no relations.

cvat: CVAT's "CVAT for images 1.1" (annotations.xml).

    <image name="site_0001.jpg" width="640" height="480">
      <box label="worker" xtl="10.0" ytl="20.0" xbr="110.0" ybr="220.0" group_id="1">
        <attribute name="action">wear</attribute></box>
      <box label="helmet" xtl="40.0" ytl="20.0" xbr="70.0" ybr="45.0" group_id="1"/>
    </image>

CVAT has no relations: its makers advise an attribute with the action and a group (cvat-ai/cvat#7121). A box with a
value in an attribute called action, interaction, verb, relation or predicate (or a plural of these; several verbs with
commas between them) acts on the other boxes of its group; where all boxes act, on the other one. Where several verbs
or several boxes act on several objects the file does not say which on which, and is refused. Coordinates are edges in
pixels from 0 and stay as they are. Its COCO export has no groups; one to which somebody added rel_annotations is
`coco-rel`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain, product
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree.ElementTree import Element

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, image_record, run_step
from hoicli.converters.numbers import finite, read_list, shorten_value, whole_number
from hoicli.errors import DataError
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import normalise


def _rotation_error(degrees: Any, field: str) -> DataError:
    return DataError(f"{degrees} degrees: boxes of records are upright; draw it so", field=field)


# Label Studio

WAYS = {"right": ((0, 1),), "left": ((1, 0),), "bi": ((0, 1), (1, 0))}
"""From which end of a relation to which a triplet goes."""

_UPLOADED = re.compile(r"/data/upload/(?:\d+/)?([0-9a-f]{8}-)")


def read_tasks(source: Source, context: Context) -> Iterator[Record]:
    """One record for each task that somebody annotated."""
    full = context.id_rule == "path" or _names_collide(source, context)

    def build(task: dict[str, Any]) -> Record | None:
        annotations = task["annotations"]
        if task.get("predictions"):
            context.drop("predictions of models (annotations are read)", context.place, len(task["predictions"]))
        finished = [at for at, annotation in enumerate(annotations) if not annotation.get("was_cancelled")]
        if not finished:
            context.drop("tasks that nobody annotated", context.place)
            return None
        if annotations[1:]:
            further = "further annotations of a task (taken is the one marked ground_truth, else the latest)"
            context.drop(further, context.place, len(annotations) - 1)
        changed = [str(annotation.get("updated_at") or "") for annotation in annotations]  # ISO's notation, in UTC
        taken = max(finished, key=lambda at: (bool(annotations[at].get("ground_truth")), changed[at], at))
        results = [
            (f".annotations[{taken}].result[{at}]", item) for at, item in enumerate(annotations[taken]["result"])
        ]
        rectangles: dict[Any, tuple[str, dict[str, Any]]] = {}
        for field, item in results:
            names = _names(item, field)
            first = rectangles.setdefault(item["id"], (field, item))[1] if names else item
            if first is not item and _rectangle(first, field) != _rectangle(item, field):
                raise DataError("another rectangle has this id; export it again", field=f"{field}.id")
            if first is not item or names[1:]:
                context.drop("further labels of a rectangle", context.place + field)
        images = ("to_name", "item_index", "original_width", "original_height")
        if len({tuple(map(item.get, images)) for _, item in rectangles.values()}) > 1:
            problem = "has rectangles of several images, or of several sizes of one; make a task of each image"
            raise DataError(problem, field=f".annotations[{taken}]")
        for field, item in results:
            plain = item["type"] == "rectangle" and item["id"] in rectangles
            if not _names(item, field) and not plain and item["type"] != "relation":
                other = f"results that are neither a labelled rectangle nor a relation ({str(item['type'])[:40]})"
                context.drop(other, context.place + field)
        boxes = [_rectangle(item, field) for field, item in rectangles.values()]
        labels = [_names(item, field)[0] for field, item in rectangles.values()]
        size = {key: item[f"original_{key}"] for (_, item), key in product(rectangles.values(), ("width", "height"))}
        hois = _relations(results, {name: at for at, name in enumerate(rectangles)}, context)
        return image_record(_file_name(task["data"], full=full), boxes, labels, hois, size)

    yield from context.each(source.items(), build, source)


def _names(result: Mapping[str, Any], field: str) -> list[str]:
    """The labels of a rectangle; none of another result. Where "labels" are a result of their own, they repeat it."""
    kind, value = result["type"], result.get("value", {})
    if kind not in ("rectanglelabels", "labels") or "x" not in value:
        return []
    return _texts(value.get(kind), f"{field}.value.{kind}")


def _texts(labels: Any, field: str) -> list[str]:
    """The labels of a rectangle or a relation, normalised. Raises `DataError` for what is no list of names."""
    names = [normalise(label) if type(label) is str else "" for label in read_list(labels or [], field)]
    if "" in names:
        raise DataError("a label is empty, or no text; name it in the annotation tool", field=field)
    return list(dict.fromkeys(names))


def _rectangle(result: Mapping[str, Any], field: str) -> list[float]:
    """A rectangle in pixels. Raises `DataError` for one that is turned, or in an image that was."""
    value = result["value"]
    for key, turned in (("value.rotation", value.get("rotation")), ("image_rotation", result.get("image_rotation"))):
        if turned:
            raise _rotation_error(turned, f"{field}.{key}")
    wide, high = (finite(result[key], f"{field}.{key}") for key in ("original_width", "original_height"))
    x, y, width, height = (finite(value[key], f"{field}.value.{key}") for key in ("x", "y", "width", "height"))
    return [round(side / 100, 4) for side in (x * wide, y * high, (x + width) * wide, (y + height) * high)]


def _relations(
    results: list[tuple[str, dict[str, Any]]], places: Mapping[str, int], context: Context
) -> list[dict[str, Any]]:
    """Return what the relations say; places: the box of each rectangle's id."""
    hois: list[dict[str, Any]] = []
    for field, item in results:
        if item["type"] != "relation":
            continue
        ends, way = [places.get(item[key]) for key in ("from_id", "to_id")], item.get("direction", "right")
        verbs = _texts(item.get("labels"), f"{field}.labels")
        if None in ends or not verbs:
            what = "of what is no labelled rectangle" if None in ends else "without a label"
            context.drop(f"relations {what}", context.place + field)
            continue
        if way not in WAYS:
            raise DataError(f"{str(way)[:40]} is none of {', '.join(WAYS)}", field=f"{field}.direction")
        hois += [{"subject": ends[a], "object": ends[b], "verb": verb} for verb, (a, b) in product(verbs, WAYS[way])]
    return hois


def _names_collide(source: Source, context: Context) -> bool:
    """Whether two images have one name without the digits before uploads; a note says so. Bad tasks are passed over:
    reading them says what is wrong."""
    named: dict[str, str] = {}
    with suppress(DataError):
        for where, task in source.items():
            with suppress(DataError):
                short, full = run_step(partial(_ids, task), source, where)
                if (first := named.setdefault(short, full)) != full:
                    context.announce(f"uploads have one name ({first} and {full}): their ids keep the digits before it")
                    return True
    return False


def _ids(task: Mapping[str, Any]) -> list[str]:
    """The ids of a task's image, without and with the digits before an upload."""
    return [image_id_of(_file_name(task["data"], full=full)) for full in (False, True)]


def _file_name(data: Mapping[str, Any], *, full: bool) -> str:
    """The name of a task's image, with its folders, and if `full` with the digits before an upload; of a task without
    `image`, its only text is taken for it. Raises `DataError` if there is none, or if the image itself is there in the
    place of its address."""
    texts = [value for value in data.values() if type(value) is str]
    if "image" not in data and len(texts) != 1:
        raise DataError(f"has no image, but {', '.join(data)[:80]}; call the image's address image", field=".data")
    address = data.get("image", texts[0] if texts else None)
    if type(address) is not str or not address or address.startswith("data:"):
        raise DataError("is no address of a file, which gives the image its name; name it there", field=".data.image")
    parts = urlsplit(address)
    path = parse_qs(parts.query).get("d", [unquote(parts.path)])[0]  # ?d=: a file of the server's own folder
    return _UPLOADED.sub(r"\1" if full else "", path).lstrip("/")


# CVAT

NOTHING = ("", "none", "__undefined__")
"""Values of an attribute that say that nobody acts."""
_ACTION = re.compile(r"(action|interaction|verb|relation|predicate)s?", re.IGNORECASE)


def is_cvat(source: Source) -> bool:
    """XML of annotations."""
    return source.kind == "xml" and source.xml.tag == "annotations"


def read_cvat(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image, also those without boxes."""
    if source.xml.find("track") is not None:
        raise DataError('is "CVAT for video"; export it as "CVAT for images 1.1"', place=source.name)

    def build(image: Element) -> Record:
        for shape in image:
            if shape.tag != "box":
                context.drop(f"shapes that are no box ({shape.tag[:40]})", context.place)
        rows = image.findall("box")
        boxes = [_corners(row, f".box[{index}]") for index, row in enumerate(rows)]
        labels = [normalise(row.attrib["label"]) for row in rows]
        size = {key: whole_number(image.attrib[key], f".{key}") for key in ("width", "height")}
        return image_record(image.attrib["name"], boxes, labels, _triplets(rows, context), size)

    items = ((f"image[{index}]", image) for index, image in enumerate(source.xml.findall("image")))
    yield from context.each(items, build, source)


def _corners(row: Element, field: str) -> list[float]:
    """The box. Raises `DataError` for one that is turned."""
    keys = ("xtl", "ytl", "xbr", "ybr", *({"rotation"} & row.attrib.keys()))
    sides = {key: _number(row.attrib[key], f"{field}.{key}") for key in keys}
    if sides.pop("rotation", 0):
        raise _rotation_error(row.get("rotation"), f"{field}.rotation")
    return [*sides.values()]


def _number(text: str, field: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{shorten_value(text)} is no number; export it again", field=field) from None


def _triplets(rows: list[Element], context: Context) -> list[dict[str, Any]]:
    """Return what the boxes of an image do, by group. Raises `DataError` where it is not said on which object."""
    groups: dict[str, dict[int, list[str]]] = {}
    hois: list[dict[str, Any]] = []
    for at, row in enumerate(rows):
        group = row.get("group_id", "0")
        groups.setdefault(f"alone {at}" if group == "0" else group, {})[at] = _verbs(row)
    for members in groups.values():
        acting = [at for at, verbs in members.items() if verbs]
        if not acting and len(members) > 1:
            context.drop("groups without an action", f"{context.place}.box[{min(members)}]")
        for at in acting:
            verbs, field = members[at], f".box[{at}]"
            others = [other for other in members if other not in acting] or [each for each in acting if each != at]
            if not others:
                context.drop("actions of a box that is alone in its group, or in none", f"{context.place}{field}")
            if len(others) > 1 and len(verbs) * len(acting) > 1:
                problem = f"{', '.join(verbs)[:60]}: {len(others)} objects in the group, and not said on which of them"
                raise DataError(f"{problem}; make a group of each (draw the box again)", field=field)
            hois += [{"subject": at, "object": other, "verb": verb} for verb, other in product(verbs, others)]
    return hois


def _verbs(row: Element) -> list[str]:
    """The verbs in a box's attributes."""
    values = [each.text or "" for each in row.findall("attribute") if _ACTION.fullmatch(each.get("name", "").strip())]
    verbs = [normalise(verb) for verb in chain.from_iterable(value.split(",") for value in values)]
    return [verb for verb in verbs if verb.lower() not in NOTHING]
